"""The engine's thread over a real core: streams, listeners, cancellation, draining and failures."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from engine.config.engine import EngineConfig
from engine.core.engine import EngineCore
from engine.errors import (
    ContextLengthError,
    EngineDeadError,
    QueueFullError,
    RequestError,
    RequestFailedError,
    UnknownPolicyError,
)
from engine.host.client import TokenStream
from engine.host.thread import EngineThread
from engine.runtime.build import LoadedModel
from engine.types import FinishReason, GenerateRequest, Owner, RoundReport, SamplingParams, TokenEvent
from tests.support.cores import VOCABULARY, ManualClock, answer, chat_ids, load
from tests.support.timed import Delegate

pytestmark = pytest.mark.anyio

SHORT = SamplingParams(max_tokens=24, temperature=0.0, ignore_eos=True)
ENDLESS = SamplingParams(max_tokens=1500, temperature=0.0, ignore_eos=True)


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load(max_model_len=2048)


@pytest.fixture
def core(model: LoadedModel) -> EngineCore:
    return model.core(EngineConfig(max_num_seqs=16))


class Observed(Delegate):
    """A core whose rounds wait for `release`, and its engine, for 8 requests at most; records rounds and reports."""

    def __init__(self, core: EngineCore) -> None:
        super().__init__(core)
        core.info = replace(core.info, max_queued=8 - core.info.max_num_seqs)
        self.clock = ManualClock()
        self.engine = EngineThread(self, self.clock)  # type: ignore[arg-type]
        self.ran: list[list[str]] = []  # requests that run as each round begins
        self.reports: list[RoundReport] = []
        self.errors: list[Exception] = []  # what the next rounds raise
        self.broken = False  # whether rounds without requests fail too
        self._permits = threading.Semaphore(0)
        self._reported = asyncio.Event()
        self.engine.add_listener(self._listen)

    def submit(self, id: str, sampling: SamplingParams = SHORT, policy: str | None = None) -> TokenStream:
        return self.engine.submit(GenerateRequest(id, chat_ids(self.inner, f"What is {id}?"), sampling, policy))

    def release(self, rounds: int = 10_000) -> None:
        self._permits.release(rounds)

    async def rounds(self, count: int) -> RoundReport:
        """Run so many rounds more, and return the report of the last."""
        wanted = len(self.reports) + count
        self.release(count)
        return await self.report(lambda _: len(self.reports) == wanted)

    async def report(self, condition: Callable[[RoundReport], bool]) -> RoundReport:
        """The newest report, once it fulfils `condition`."""
        while not (self.reports and condition(self.reports[-1])):
            self._reported.clear()
            await self._reported.wait()
        return self.reports[-1]

    def works(self) -> bool:
        return not self.broken and bool(self.inner.works())

    def run_round(self, deliver: Callable[[RoundReport], None]) -> None:
        assert self._permits.acquire(timeout=30)
        self.ran.append([request.id for request in self.inner.scheduler.running])
        if self.errors:
            raise self.errors.pop()
        self.inner.run_round(deliver)

    def _listen(self, report: RoundReport) -> None:
        self.reports.append(report)
        self._reported.set()


@pytest.fixture
async def session(core: EngineCore) -> AsyncIterator[Observed]:
    """A started engine, drained at the end, which must leave no thread and no block of the cache in use."""
    session = Observed(core)
    await session.engine.start()
    yield session
    session.release()
    await session.engine.drain(0)
    assert threads() == []
    core.scheduler.blocks.check_integrity()


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("knapserve-engine")]


async def collect(stream: TokenStream) -> list[TokenEvent]:
    return [event async for event in stream]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for another task of this event loop."""
    while not condition():
        await asyncio.sleep(0)


def tokens_of(events: list[TokenEvent]) -> tuple[int, ...]:
    return tuple(token for event in events for token in event.token_ids)


def alone(model: LoadedModel, *ids: str) -> list[tuple[int, ...]]:
    """Tokens of these requests, each alone, without a thread or drafting."""
    core = model.core(EngineConfig())
    return answer(core, [chat_ids(core, f"What is {id}?") for id in ids], SHORT, ["none"])


@pytest.mark.parametrize("policy", ["none", "layerskip", "knapspec"])
async def test_tokens_arrive_and_end_with_one_finish_reason(model: LoadedModel, session: Observed, policy: str) -> None:
    session.release()
    stream = session.submit("snow", policy=policy)
    events = await collect(stream)
    assert await collect(stream) == []  # it stays ended
    assert [tokens_of(events)] == alone(model, "snow")
    assert [event.finish_reason for event in events] == [None] * (len(events) - 1) + [FinishReason.LENGTH]
    assert "".join(event.text for event in events) == session.inner.tokenizer.backend.decode(list(tokens_of(events)))
    counts = [len(tokens_of(events[: i + 1])) for i in range(len(events))]
    assert [event.completion_tokens for event in events] == counts
    last = events[-1]
    assert last.speculation is not None
    assert (last.speculation.policy, last.speculation.num_rounds) == (policy, len(session.ran))
    assert (last.speculation.num_draft_tokens > 0) == (policy != "none")
    assert last.timing is not None
    assert all(event.speculation is None and event.timing is None for event in events[:-1])


async def test_a_cancelled_request_frees_its_cache_within_one_round(session: Observed) -> None:
    stream = session.submit("snow", ENDLESS)
    busy = await session.rounds(3)
    assert (busy.running, session.engine.stats().running) == (1, 1)
    assert busy.kv_usage > 0
    assert (await anext(stream)).token_ids
    session.engine.cancel("snow")
    session.release(1)  # the round that had begun; there is no permit for another
    await session.report(lambda report: report.running == 0)
    assert len(session.ran) <= 4
    assert session.inner.scheduler.idle
    stats = session.engine.stats()
    assert (stats.running, stats.waiting, stats.kv_usage) == (0, 0, 0.0)


async def test_rounds_that_fail_end_their_requests_alone(model: LoadedModel, session: Observed) -> None:
    """As long as a round without requests succeeds, the fault is theirs, however many fail in a row."""
    streams = [session.submit("snow", ENDLESS), session.submit("a river", ENDLESS)]
    await session.rounds(2)
    session.errors = [ValueError("boom")] * 9
    session.release()
    for stream in streams:
        with pytest.raises(RequestFailedError, match="failed to compute"):
            await collect(stream)
        assert await collect(stream) == []
    for _ in range(8):
        with pytest.raises(RequestFailedError):
            await collect(session.submit("snow", ENDLESS))
    assert [tokens_of(await collect(session.submit("again")))] == alone(model, "again")
    assert session.engine.stats().failure is None


async def test_rounds_that_fail_without_requests_end_the_engine(session: Observed) -> None:
    session.errors, session.broken = [ValueError("boom")] * 9, True
    session.release()
    for error in (RequestFailedError, RequestFailedError, EngineDeadError):
        with pytest.raises(error):
            await collect(session.submit("snow", ENDLESS))
    stats = session.engine.stats()
    assert (stats.failure, stats.ready, stats.draining) == ("ValueError: boom", False, False)
    with pytest.raises(EngineDeadError, match="boom"):
        session.submit("snow")
    await until(lambda: threads() == [])
    await session.engine.drain(1e9)  # at once
    assert session.engine.stats().failure == "ValueError: boom"


async def test_a_request_whose_grammar_is_being_compiled_waits_deferred(
    session: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients see it too while nothing else runs, and once others do."""
    compiled = False
    monkeypatch.setattr(session.inner.processors, "ready", lambda sampling: compiled or sampling == ENDLESS)
    slow, _ = session.submit("a"), session.submit("c")
    await session.report(lambda report: report.deferred == 2)
    session.engine.cancel("c")
    session.submit("b", ENDLESS)
    session.release(2)
    assert (await session.report(lambda report: report.running == 1)).deferred == 1
    stats = session.engine.stats()
    assert (stats.running, stats.waiting, stats.deferred) == (1, 1, 1)
    session.engine.cancel("b")
    compiled = True
    session.release()
    assert tokens_of(await collect(slow))
    stats = session.engine.stats()
    assert (stats.running, stats.waiting, stats.deferred) == (0, 0, 0)


async def test_a_request_that_cannot_begin_fails_alone(
    model: LoadedModel, session: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = session.inner.add

    def fails(message: GenerateRequest) -> None:
        if message.id == "b":
            raise ZeroDivisionError("secret")
        add(message)

    monkeypatch.setattr(session.inner, "add", fails)
    session.release()
    streams = [session.submit(id) for id in "ab"]
    said = await collect(streams[0])
    with pytest.raises(RequestFailedError, match="could not be started"):
        await collect(streams[1])
    assert [tokens_of(said)] == alone(model, "a")
    assert session.engine.stats().failure is None


async def test_an_idle_engine_starts_and_drains(session: Observed) -> None:
    assert threads() == ["knapserve-engine"]
    stats = session.engine.stats()
    assert (stats.ready, stats.running, stats.waiting, stats.kv_usage) == (True, 0, 0, 0.0)
    await session.engine.drain(1e9)
    assert threads() == []
    await session.engine.drain(1e9)  # once more does no harm


async def test_calibration_is_reset_between_rounds(session: Observed) -> None:
    session.submit("a", ENDLESS, "knapspec")
    await session.rounds(2)
    session.inner.costs.correct_searches(7.0)
    session.engine.reset_calibration()
    assert (await session.rounds(3)).search_correction == 1.0


async def test_an_engine_that_was_never_started_is_not_ready_and_drains(core: EngineCore) -> None:
    engine = EngineThread(core, ManualClock())
    assert not engine.stats().ready
    await engine.drain(1e9)


async def test_the_heartbeat_of_a_hanging_engine_ages_and_that_of_an_idle_one_stays_young(session: Observed) -> None:
    stream = session.submit("snow")
    await session.rounds(2)
    session.clock.time = 100.0
    assert session.engine.stats().heartbeat_age == 100.0
    await session.rounds(1)
    assert session.engine.stats().heartbeat_age == 0
    session.release()
    await collect(stream)
    session.clock.time = 200.0
    await until(lambda: session.engine.stats().heartbeat_age == 0)


async def test_a_full_queue_refuses_until_a_request_leaves(session: Observed) -> None:
    streams = [session.submit(str(i)) for i in range(8)]
    with pytest.raises(QueueFullError) as full:
        session.submit("a late comer")
    assert full.value.retry_after >= 1
    streams.pop()
    session.engine.cancel("7")
    streams.append(session.submit("another"))
    with pytest.raises(QueueFullError):
        session.submit("a late comer")
    session.release()
    assert all([tokens_of(await collect(stream)) for stream in streams])
    assert tokens_of(await collect(session.submit("a late comer")))  # finished requests have left


BAD_REQUESTS: list[tuple[GenerateRequest, type[RequestError], str]] = [
    (GenerateRequest("bad", ()), RequestError, "prompt"),
    (GenerateRequest("bad", (5, -1)), RequestError, "prompt"),
    (GenerateRequest("bad", (5, VOCABULARY)), RequestError, "prompt"),
    (GenerateRequest("bad", (5,), draft_policy="guesswork"), UnknownPolicyError, "draft_policy"),
    (GenerateRequest("bad", (5,) * 2048), ContextLengthError, "prompt"),
    (GenerateRequest("bad", (5,), SamplingParams(max_tokens=2048)), ContextLengthError, "prompt"),
]


@pytest.mark.parametrize(("request_", "error", "param"), BAD_REQUESTS)
async def test_a_request_that_cannot_run_is_refused_without_a_round(
    session: Observed, request_: GenerateRequest, error: type[RequestError], param: str
) -> None:
    with pytest.raises(error) as refused:
        session.engine.submit(request_)
    assert refused.value.param == param
    assert session.engine.stats().waiting == 0
    assert session.inner.scheduler.idle


async def test_one_of_several_keys_cannot_fill_the_queue(session: Observed) -> None:
    def submit(name: str, key: str) -> TokenStream:
        return session.engine.submit(GenerateRequest(name, (5, 6), SHORT, "none", Owner(key, name)))

    streams = [submit(f"a{i}", "a") for i in range(6)]
    with pytest.raises(QueueFullError):
        submit("a6", "a")
    streams += [submit(f"b{i}", "b") for i in range(2)]
    with pytest.raises(QueueFullError):
        submit("c", "c")
    session.release()
    assert all([await collect(stream) for stream in streams])
