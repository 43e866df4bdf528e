"""What the host does while a device computes, on a CPU that is taken for one: rounds are told one late, nothing else
changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from support import chat_ids, load

import engine.speculate
from engine.build import LoadedModel
from engine.config import EngineConfig
from engine.core import EngineCore
from engine.draft.base import DraftPolicy, Plan, View
from engine.loop import Message, run_rounds
from engine.step import StepOutput, StepPlan
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
    SamplingParams(max_tokens=40, predicted=(5, 6, 7), ignore_eos=True),
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
                figures = event.speculation and replace(event.speculation, tokens_per_second=None, predicted_tpt=None)
                event = replace(event, timing=None, speculation=figures, cached_tokens=0)
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
    at_once, late = ["launched", "waited", "told"], ["launched", "told", "waited"]
    assert order == [*at_once, "launched", "waited", *(late * 2), "told"], "the first token before anything is decided"
    order.clear()
    run_rounds(core, Script([replace(one, sampling=replace(one.sampling, max_tokens=40), draft_policy="layerskip")]))
    drafting = [i for i in range(len(order) - 2) if order[i : i + 3] == ["launched", "launched", "told"]]
    assert drafting, "two draft passes are under way when the last round is told"
    for i, what in enumerate(order[:-1]):
        if what == "told" and order[:i].count("waited") > 1:
            assert order[i - 1] == "launched", "not between two rounds"


@pytest.mark.parametrize("policy", ["layerskip", "knapspec"])
def test_policies_learn_from_every_round_once(core: EngineCore, prompts: Sequence[str], policy: str) -> None:
    """While the next one runs, if what they proposed stands there; before they are asked, if not."""
    ran: list[StepOutput] = []
    learnt: list[StepOutput] = []
    asked: list[int] = []  # how many rounds had been run,
    behind: list[tuple[int, int]] = []  # and how many of them were not learnt from when another one began
    propose, run, observe = core.policy(policy).propose, core.runner.run, core._observe

    def proposing(views: Sequence[View], others: Sequence[tuple[int, Plan]]) -> Sequence[Plan]:
        asked.append(len(ran))
        assert learnt == ran
        return propose(views, others)

    def running(*args: Any) -> StepOutput:
        behind.append((len(ran), len(ran) - len(learnt)))
        ran.append(run(*args))
        return ran[-1]

    def observing(standing: DraftPolicy | None, plan: StepPlan, out: StepOutput, *rest: Any) -> None:
        learnt.append(out)
        observe(standing, plan, out, *rest)

    core.policy(policy).propose = proposing  # type: ignore[method-assign]
    core.runner.run, core._observe = running, observing  # type: ignore[method-assign, assignment]
    sampling = SamplingParams(max_tokens=40, ignore_eos=True)
    ids = [chat_ids(core, text)[:120] for text in prompts[::20]]
    run_rounds(core, Script([GenerateRequest(str(i), ids[i], sampling, policy) for i in range(2)], [], []))
    assert learnt == ran
    decided = [late for before, late in behind if before in asked]
    stood = [late for before, late in behind if before not in asked]
    assert set(decided) == {0}
    assert stood.count(1) > 5


def test_a_round_that_fails_takes_nothing_along(core: EngineCore, prompts: Sequence[str]) -> None:
    one = GenerateRequest("0", chat_ids(core, prompts[0]), SamplingParams(max_tokens=4, ignore_eos=True), "none")
    run, rounds = core.runner.run, [0]

    def failing(*args: Any) -> Any:
        rounds[0] += 1
        if rounds[0] == 4:
            raise RuntimeError("no memory")
        return run(*args)

    core.runner.run = failing  # type: ignore[method-assign]
    script = Script([one])
    with pytest.raises(RuntimeError, match="no memory"):
        run_rounds(core, script)
    assert sum(len(e.token_ids) for e in script.said()["0"] if isinstance(e, TokenEvent)) == 3


def test_what_is_known_waits_for_no_newcomer(core: EngineCore, prompts: Sequence[str]) -> None:
    """Whose grammar, say, may take a while to read."""
    one = GenerateRequest("0", chat_ids(core, prompts[0]), SamplingParams(max_tokens=8, ignore_eos=True), "none")
    bad = replace(one, id="bad", sampling=replace(one.sampling, grammar="no grammar"))
    script = Script([one], [], [], [], [bad])
    told: list[int] = []
    add = core.add

    def adding(request: GenerateRequest) -> None:
        told.append(len(script.reports))
        add(request)

    core.add = adding  # type: ignore[method-assign]
    run_rounds(core, script)
    assert told == [0, 4]
    assert isinstance(script.said()["bad"][-1], ErrorEvent)
    assert sum(len(e.token_ids) for e in script.said()["0"] if isinstance(e, TokenEvent)) == 8
