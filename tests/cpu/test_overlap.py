"""What the host does while a device computes, on a CPU that is taken for one: rounds are told one late, nothing else
changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from support import chat_ids, load

import engine.speculate
from engine.build import LoadedModel
from engine.config import EngineConfig
from engine.core import EngineCore
from engine.draft.base import Plan, RoundOutcome, View
from engine.loop import Message, ResetCalibration, run_rounds
from engine.types import ErrorEvent, GenerateRequest, RoundReport, SamplingParams, TokenEvent

CONFIG = EngineConfig(layerskip_exit=6, layerskip_gamma=4)
OBJECT = '{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}'
VARIETY = (
    SamplingParams(max_tokens=24),
    SamplingParams(max_tokens=24, temperature=0.8, seed=5, stop=("the", "e s")),
    SamplingParams(max_tokens=12, logprobs=2, ignore_eos=True),
    SamplingParams(max_tokens=20, min_tokens=8, stop=("a",), include_stop=True),
    SamplingParams(max_tokens=3, prompt_logprobs=True, logprobs=0),
    SamplingParams(max_tokens=24, temperature=0.5, seed=1, frequency_penalty=1.0, trace=True),
    SamplingParams(max_tokens=32, grammar=OBJECT),
    SamplingParams(max_tokens=1),
)
POLICIES = ("none", "layerskip")


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load(torch.float64, max_num_seqs=4, max_model_len=256, kernels="torch")


@pytest.fixture
def core(model: LoadedModel) -> EngineCore:
    core = model.core(CONFIG)
    core.runner.apart = True
    return core


def requests(core: EngineCore, prompts: Sequence[str]) -> list[GenerateRequest]:
    ids = [chat_ids(core, text)[:120] for text in prompts[:: len(prompts) // len(VARIETY)]]
    return [
        GenerateRequest(str(i), ids[i], sampling, POLICIES[i % len(POLICIES)]) for i, sampling in enumerate(VARIETY)
    ]


class Script:
    """What comes in and goes out of `run_rounds`: message lists by the number of the look, then nothing; ends when the
    engine has nothing to do."""

    def __init__(self, *messages: Sequence[Message]) -> None:
        self.reports: list[RoundReport] = []
        self.stopped = False
        self._messages = list(messages)

    def take(self) -> list[Message]:
        return list(self._messages.pop(0)) if self._messages else []

    def wait(self, timeout: float) -> None:
        self.stopped = not self._messages

    def deliver(self, report: RoundReport) -> None:
        self.reports.append(report)

    def show_life(self) -> None:
        pass

    def said(self) -> dict[str, list[TokenEvent | ErrorEvent]]:
        """All events, without what the clock or the cache's memory of earlier prompts says."""
        found: dict[str, list[TokenEvent | ErrorEvent]] = {}
        for event in (event for report in self.reports for event in report.events):
            if isinstance(event, TokenEvent):
                event = replace(event, timing=None, speculation=None, cached_tokens=0)
            found.setdefault(event.request_id, []).append(event)
        return found


def test_clients_get_the_same_events(model: LoadedModel, core: EngineCore, prompts: Sequence[str]) -> None:
    asked = requests(core, prompts)
    at_once, late = Script(asked[:5], asked[5:]), Script(asked[:5], asked[5:])
    run_rounds(model.core(CONFIG), at_once)
    run_rounds(core, late)
    said = at_once.said()
    assert late.said() == said
    assert {events[-1].finish_reason for events in said.values() if isinstance(events[-1], TokenEvent)} >= {
        *("stop", "length"),
    }
    assert len(late.reports) >= len(at_once.reports), "every round is told, and an empty engine's last one"
    assert sum(report.batched_tokens for report in late.reports) == sum(r.batched_tokens for r in at_once.reports)
    assert late.reports[-1].running == late.reports[-1].waiting == 0


def test_a_round_is_told_while_the_next_one_runs(
    core: EngineCore, prompts: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    launch, deliver = engine.speculate.launch, Script.deliver

    def launched(*args: Any, **kwargs: Any) -> Any:
        drawn = launch(*args, **kwargs)
        order.append("launched")
        wait = type(drawn).wait

        class Waited:
            tokens = drawn.tokens

            def wait(self) -> Any:
                order.append("waited")
                return wait(drawn)

        return Waited()

    def told(script: Script, report: RoundReport) -> None:
        order.append("told")
        deliver(script, report)

    monkeypatch.setattr("engine.speculate.launch", launched)
    monkeypatch.setattr(Script, "deliver", told)
    one = GenerateRequest("0", chat_ids(core, prompts[0]), SamplingParams(max_tokens=4, ignore_eos=True), "none")
    run_rounds(core, Script([one]))
    first, later = ["launched", "waited"], ["launched", "told", "waited"]
    assert order == [*first, *(later * 3), "told"]
    order.clear()
    run_rounds(core, Script([replace(one, sampling=replace(one.sampling, max_tokens=40), draft_policy="layerskip")]))
    drafting = [i for i in range(len(order) - 2) if order[i : i + 3] == ["launched", "launched", "told"]]
    assert drafting, "two draft passes are under way when the last round is told"
    assert order.count("told") == order[-1:].count("told") + sum(
        "launched" in order[:i] and "waited" in order[i:] for i, what in enumerate(order) if what == "told"
    )


class Watched(Script):
    """Gives its messages while a round runs, but for the first ones; notes what the core did with them, and when."""

    def __init__(self, core: EngineCore, *messages: Sequence[Message]) -> None:
        super().__init__(*messages)
        self.within = self._begun = False
        self.done: list[tuple[str, bool]] = []  # while a round ran?
        self._watch(core, "add", lambda request: request.id)
        self._watch(core, "cancel", lambda id: f"cancel {id}")
        self._watch(core, "reset_calibration", lambda: "reset")
        run = core.runner.run

        def watched(*args: Any) -> Any:
            self.within = True
            out = run(*args)
            self.within = False
            return out

        core.runner.run = watched  # type: ignore[method-assign]

    def _watch(self, core: EngineCore, name: str, what: Callable[..., str]) -> None:
        method = getattr(core, name)

        def watched(*args: Any) -> None:
            self.done.append((what(*args), self.within))
            method(*args)

        setattr(core, name, watched)

    def take(self) -> list[Message]:
        if self._begun and not self.within:
            return []
        self._begun = True
        return super().take()


def test_requests_are_taken_in_while_the_device_computes(core: EngineCore, prompts: Sequence[str]) -> None:
    """Cancellations, and what else may be about the round that runs, wait for its end."""
    first, second, third = requests(core, prompts)[:3]
    script = Watched(core, [first], [second, first.id, ResetCalibration()], [third])
    run_rounds(core, script)
    assert sorted(script.done) == sorted(
        [(first.id, False), (second.id, True), (f"cancel {first.id}", False), ("reset", False), (third.id, True)]
    )
    said = script.said()
    ends = {id: events[-1].finish_reason for id, events in said.items() if isinstance(events[-1], TokenEvent)}
    assert ends.get(first.id) is None, "cancelled"
    assert ends[second.id] is not None
    assert ends[third.id] is not None


def test_policies_learn_from_every_round_once(core: EngineCore, prompts: Sequence[str]) -> None:
    """Later than at once, but before they decide again, and before anybody asks for the engine's state."""
    policy = core.policy("knapspec")
    learnt: list[tuple[int, ...]] = []
    asked: list[tuple[int, int]] = []  # how many rounds were run and learnt from when it was asked
    observe, propose, run, rounds = policy.observe, policy.propose, core.runner.run, [0]

    def observing(views: Sequence[View], round: RoundOutcome) -> None:
        learnt.append(tuple(outcome.emitted for outcome in round.outcomes))
        observe(views, round)

    def proposing(views: Sequence[View], others: Sequence[tuple[int, Plan]]) -> Sequence[Plan]:
        asked.append((rounds[0], len(learnt)))
        return propose(views, others)

    def running(*args: Any) -> Any:
        rounds[0] += 1
        return run(*args)

    core.runner.run = running  # type: ignore[method-assign]
    policy.observe, policy.propose = observing, proposing  # type: ignore[method-assign]
    policy.stands = lambda: False  # type: ignore[method-assign]
    asking = [
        GenerateRequest(
            str(i), chat_ids(core, prompts[20 * i])[:120], SamplingParams(max_tokens=40, ignore_eos=True), "knapspec"
        )
        for i in range(3)
    ]
    script = Script(asking[:2], [], [], asking[2:])
    run_rounds(core, script)
    told = [tuple(part.emitted for part in report.rounds) for report in script.reports if report.batched_tokens]
    assert sum(map(sum, learnt)) == sum(map(sum, told))
    assert len(learnt) == len(told)
    assert len(asked) > 10
    assert all(ran == known for ran, known in asked)


def test_one_that_cannot_begin_fails_alone_while_the_device_computes(core: EngineCore, prompts: Sequence[str]) -> None:
    good = GenerateRequest("good", chat_ids(core, prompts[0]), SamplingParams(max_tokens=6, ignore_eos=True), "none")
    bad = replace(good, id="bad", sampling=replace(good.sampling, grammar="no grammar"))
    script = Watched(core, [good], [bad])
    run_rounds(core, script)
    assert script.done == [("good", False), ("bad", True)]
    said = script.said()
    assert isinstance(said["bad"][-1], ErrorEvent)
    assert sum(len(e.token_ids) for e in said["good"] if isinstance(e, TokenEvent)) == 6
