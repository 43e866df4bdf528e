"""A host that works while the device computes reports rounds one later, and changes nothing else.

The device is a CPU that is treated as asynchronous.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.architecture.spec import load_spec
from engine.backends.cuda.backend import cuda_backend
from engine.clock import SystemClock
from engine.config.engine import EngineConfig
from engine.core.engine import EngineCore
from engine.core.loop import run_rounds
from engine.core.rounds import FinishedRound, RequestOutput
from engine.kv.cache import bytes_per_token
from engine.messages import CancelRequest, EngineMessage, Shutdown
from engine.runtime.build import LoadedModel
from engine.runtime.overlap import PlainPass
from engine.runtime.runner import Runner
from engine.sampling.sample import Sampler
from engine.step import StepOutput, Work
from engine.types import GenerateRequest, RequestFailure, RoundReport, SamplingParams, TokenEvent
from papers.settings import LayerSkipConfig
from tests.support.cores import Learning, chat_ids, load
from tests.support.timed import Delegate

CONFIG = EngineConfig(policies=(LayerSkipConfig(exit=2, gamma=4),))
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
OBJECT = json.dumps({"grammars": [{"json_schema": SCHEMA}]})
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
def model(tiny: Path) -> LoadedModel:
    return load(torch.float64, model=tiny, max_num_seqs=4, max_model_len=256, kernels="torch")


@pytest.fixture
def core(model: LoadedModel) -> EngineCore:
    return model.core(CONFIG, overlaps=True)


def requests(core: EngineCore, prompts: Sequence[str]) -> list[GenerateRequest]:
    ids = [chat_ids(core, text)[:120] for text in prompts[:: len(prompts) // len(VARIETY)]]
    return [
        GenerateRequest(str(i), ids[i], sampling, POLICIES[i % len(POLICIES)]) for i, sampling in enumerate(VARIETY)
    ]


def plain_request(core: EngineCore, prompts: Sequence[str], tokens: int) -> GenerateRequest:
    return GenerateRequest("0", chat_ids(core, prompts[0]), SamplingParams(tokens, ignore_eos=True), "none")


class Script:
    """The port of a scripted client: one list of messages at each look, then none, then `Shutdown`."""

    def __init__(self, *messages: Sequence[EngineMessage]) -> None:
        self.reports: list[RoundReport] = []
        self._messages = list(messages)

    def take(self) -> list[EngineMessage]:
        return list(self._messages.pop(0)) if self._messages else []

    def wait(self, timeout: float) -> None:
        if not self._messages:
            self._messages.append([Shutdown()])

    def deliver(self, report: RoundReport) -> None:
        self.reports.append(report)

    def beat(self) -> None:
        pass

    def said(self) -> dict[str, list[TokenEvent | RequestFailure]]:
        """All events by request, without timings and the cache's hits."""
        found: dict[str, list[TokenEvent | RequestFailure]] = {}
        for event in (event for report in self.reports for event in report.events):
            if isinstance(event, TokenEvent):
                figures = event.speculation and replace(event.speculation, tokens_per_second=None, predicted_tpt=None)
                event = replace(event, timing=None, speculation=figures, cached_tokens=0)
            found.setdefault(event.request_id, []).append(event)
        return found


def test_reporting_rounds_late_changes_no_event(model: LoadedModel, core: EngineCore, prompts: Sequence[str]) -> None:
    asked = requests(core, prompts)
    at_once, late = Script(asked[:5], asked[5:]), Script(asked[:5], asked[5:])
    other = model.core(CONFIG)
    for each in (core, other):
        while not all(
            each.processors.ready(request.sampling) for request in asked
        ):  # grammars are compiled beside the rounds
            time.sleep(0.01)
    run_rounds(other, at_once)
    run_rounds(core, late)
    said = at_once.said()
    assert repr(late.said()) == repr(said)
    assert {events[-1].finish_reason for events in said.values() if isinstance(events[-1], TokenEvent)} >= {
        *("stop", "length"),
    }
    assert len(late.reports) >= len(at_once.reports), "every round is reported, and a last one of the idle engine"
    assert sum(report.batched_tokens for report in late.reports) == sum(r.batched_tokens for r in at_once.reports)
    assert late.reports[-1].running == late.reports[-1].waiting == 0


def test_a_round_is_reported_while_the_next_one_runs(
    core: EngineCore, prompts: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    launch, deliver = Sampler.sample, Script.deliver

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

    def reported(script: Script, report: RoundReport) -> None:
        order.append("reported")
        deliver(script, report)

    monkeypatch.setattr(Sampler, "sample", launched)
    monkeypatch.setattr(Script, "deliver", reported)
    one = plain_request(core, prompts, 4)
    run_rounds(core, Script([one]))
    assert order == [
        *("launched", "waited", "reported"),  # the first token, before anything is decided
        *("launched", "waited"),  # the decided round
        *("launched", "launched", "reported", "waited"),  # the next round reuses the plan
        *("reported", "waited", "reported"),
    ]
    order.clear()
    run_rounds(core, Script([replace(one, sampling=replace(one.sampling, max_tokens=40), draft_policy="layerskip")]))
    drafting = [i for i in range(len(order) - 2) if order[i : i + 3] == ["launched", "launched", "reported"]]
    assert drafting, "two draft passes run while the last round is reported"
    for i, what in enumerate(order[:-1]):
        if what == "reported" and order[:i].count("waited") > 1:
            assert order[i - 1] == "launched", "no round is reported between two rounds"


@pytest.mark.slow
@pytest.mark.parametrize("pages", [False, True], ids=["slabs", "pages"])
def test_passes_begun_ahead_of_their_round_change_no_token(
    tiny: Path, prompts: Sequence[str], monkeypatch: pytest.MonkeyPatch, pages: bool
) -> None:
    """Requests arrive, end by a token, a stop string or their length, draft, are cancelled or preempted."""
    blocks = 14 * 16 * bytes_per_token(load_spec(tiny), torch.float64)
    backend = cuda_backend(torch.device("cpu"), torch.float64) if pages else None
    settings: dict[str, Any] = {"max_num_seqs": 4, "max_model_len": 128, "kernels": "torch", "kv_cache_memory": blocks}
    model = load(torch.float64, model=tiny, backend=backend, **settings)
    passes: list[tuple[int, bool]] = []  # requests, and whether the pass starts from unread tokens
    reused: list[bool] = []
    begin, computes = PlainPass.__init__, PlainPass.computes

    def beginning(self: PlainPass, *args: Any) -> None:
        passes.append((len(args[2]), len(args) > 3))
        begin(self, *args)

    def computing(self: PlainPass, work: Sequence[Work]) -> bool:
        reused.append(computes(self, work))
        return reused[-1]

    monkeypatch.setattr(PlainPass, "__init__", beginning)
    monkeypatch.setattr(PlainPass, "computes", computing)
    ids = [chat_ids(model.core(CONFIG), text)[:48] for text in prompts[:: len(prompts) // 8]]
    samplings = [
        SamplingParams(max_tokens=75, seed=1, temperature=0.8, ignore_eos=True),
        SamplingParams(max_tokens=75, seed=2, temperature=0.9, ignore_eos=True),
        SamplingParams(max_tokens=40, stop=("e",)),
        SamplingParams(max_tokens=17, ignore_eos=True),
        SamplingParams(max_tokens=90, seed=4, temperature=0.9, ignore_eos=True),
        SamplingParams(max_tokens=70, seed=3, temperature=1.0, ignore_eos=True),
    ]
    asked = [
        GenerateRequest(str(i), ids[i], sampling, "layerskip" if i == 3 else "none")
        for i, sampling in enumerate(samplings)
    ]
    nothing: list[list[EngineMessage]] = [[]]
    messages = [asked[:2], *nothing * 9, [asked[2]], *nothing * 2, asked[3:5], *nothing * 20, asked[5:]]
    messages.append([CancelRequest("4")])

    def said(ahead: bool) -> dict[str, tuple[list[int], str]]:
        core = model.core(CONFIG, overlaps=ahead)
        script = Script(*messages)
        run_rounds(core, script)
        core.scheduler.blocks.check_integrity()
        assert core.scheduler.blocks.usage == 0
        assert core.scheduler.preemptions
        found: dict[str, tuple[list[int], str]] = {}
        for id, events in script.said().items():
            parts = [e for e in events if isinstance(e, TokenEvent)]
            found[id] = [t for e in parts for t in e.token_ids], "".join(e.text for e in parts)
        return found

    plain = said(False)
    assert not passes
    late = said(True)
    (cancelled, _), (whole, _) = late.pop("4"), plain.pop("4")
    assert late == plain
    least = min(len(cancelled), len(whole))
    assert 0 < least < 90
    assert cancelled[:least] == whole[:least]
    ahead = sum(unread for _, unread in passes)
    assert sum(reused) > 40
    assert 0 < ahead - sum(reused) < 12, "a few passes are thrown away"
    assert {requests for requests, unread in passes if unread} >= {1, 2}
    fewer = [now < before for (before, _), (now, unread) in pairwise(passes) if unread]
    assert any(fewer), "some requests have no room or no need for another token"


def test_a_pass_begun_for_a_cancelled_request_is_not_used_by_its_namesake(
    core: EngineCore, prompts: Sequence[str]
) -> None:
    """The namesake's prompt of one token makes a row of the same shape."""
    one = plain_request(core, prompts, 40)
    other = replace(one, prompt=(77,), sampling=replace(one.sampling, max_tokens=6))
    alone, script = Script([other]), Script([one], *([[]] * 6), [CancelRequest("0"), other])
    run_rounds(core, alone)
    run_rounds(core, script)
    first = next(i for i, event in enumerate(script.said()["0"]) if event.prompt_tokens == 1)  # type: ignore[union-attr]
    assert first > 4
    assert script.said()["0"][first:] == alone.said()["0"]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["layerskip", "knapspec"])
def test_policies_learn_from_every_round_once(model: LoadedModel, prompts: Sequence[str], policy: str) -> None:
    """They learn during the next round if its plans are reused, and before they propose otherwise."""
    learning = Learning(policy)
    core = learning.core(model.core, CONFIG, overlaps=True)
    sampling = SamplingParams(max_tokens=160, ignore_eos=True)
    ids = [chat_ids(core, text)[:120] for text in prompts[::20]]
    run_rounds(core, Script([GenerateRequest(str(i), ids[i], sampling, policy) for i in range(2)], [], []))
    assert learning.done
    decided = [late for before, late in learning.unobserved if before in learning.proposed]
    reused = [late for before, late in learning.unobserved if before not in learning.proposed]
    assert set(decided) == {0}
    assert reused.count(1) > 5


class FailingRunner(Delegate):
    """Fail in the fourth round."""

    rounds = 0

    def run(self, *args: Any, **named: Any) -> StepOutput:
        self.rounds += 1
        if self.rounds == 4:
            raise RuntimeError("no memory")
        output: StepOutput = self.inner.run(*args, **named)
        return output


def test_a_failing_round_loses_no_token_of_earlier_rounds(model: LoadedModel, prompts: Sequence[str]) -> None:
    core = model.core(CONFIG, overlaps=True, wrap_runner=FailingRunner)
    script = Script([plain_request(core, prompts, 4)])
    run_rounds(core, script)
    *events, failure = script.said()["0"]
    assert sum(len(e.token_ids) for e in events if isinstance(e, TokenEvent)) == 3
    assert isinstance(failure, RequestFailure)


def test_a_finished_round_is_reported_before_a_new_request_is_added(core: EngineCore, prompts: Sequence[str]) -> None:
    """A new request may take a while to begin."""
    one = plain_request(core, prompts, 8)
    bad = replace(one, id="bad", draft_policy="no policy")
    script = Script([one], [], [], [], [bad])
    reported: list[int] = []  # rounds reported before each request is added

    class WatchedCore(Delegate):
        def add(self, request: GenerateRequest) -> None:
            reported.append(len(script.reports))
            self.inner.add(request)

    run_rounds(WatchedCore(core), script)  # type: ignore[arg-type]
    assert reported == [0, 4]
    assert isinstance(script.said()["bad"][-1], RequestFailure)
    assert sum(len(e.token_ids) for e in script.said()["0"] if isinstance(e, TokenEvent)) == 8


@pytest.mark.parametrize("overlaps", [False, True])
def test_a_request_that_ends_in_a_round_that_fails_afterwards_is_not_forgotten(
    model: LoadedModel, prompts: Sequence[str], monkeypatch: pytest.MonkeyPatch, overlaps: bool
) -> None:
    core = model.core(CONFIG, overlaps=overlaps)
    learn = FinishedRound.learn

    def failing(finished: FinishedRound) -> None:
        learn(finished)
        if any(output.event.finish_reason for output in finished.commit.outputs if isinstance(output, RequestOutput)):
            raise ZeroDivisionError

    monkeypatch.setattr(FinishedRound, "learn", failing)
    one = plain_request(core, prompts, 3)
    script = Script([one], [], [], [], [], [])
    run_rounds(core, script)
    assert isinstance(script.said()["0"][-1], RequestFailure)
    monkeypatch.undo()
    again = Script([replace(one, id="1")])
    run_rounds(core, again)
    assert isinstance(again.said()["1"][-1], TokenEvent)


def test_a_pass_that_a_draft_threw_away_counts_as_the_drafts(
    model: LoadedModel, prompts: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device tells when it has finished that pass: only what comes after is the verify pass."""

    class Mark:
        def synchronize(self) -> None:
            pass

        def elapsed_time(self, end: Mark) -> float:
            return 0.01  # ms

    class Watched(Delegate):
        def run(self, *arguments: Any) -> StepOutput:
            ran.append(self.inner.run(*arguments))
            return ran[-1]

    ran: list[StepOutput] = []
    monkeypatch.setattr("engine.runtime.runner.Runner._mark", lambda runner: Mark())
    runner = Runner(model.decoder, model.attention, SystemClock(), overlaps=True)
    core = LoadedModel.core(model, CONFIG, wrap_runner=lambda timed: Watched(runner))
    core.add(GenerateRequest("0", chat_ids(core, prompts[0]), SamplingParams(8, ignore_eos=True), "layerskip"))
    while not core.scheduler.idle:
        core.step()
    drafting = [out for out in ran if out.draft_seconds]
    assert drafting
    assert all(out.verify_seconds == pytest.approx(1e-5) for out in drafting)
