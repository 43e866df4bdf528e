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
    EngineDrainingError,
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


@pytest.fixture(params=[16])
def core(request: pytest.FixtureRequest, model: LoadedModel) -> EngineCore:
    return model.core(EngineConfig(max_num_seqs=request.param))


ONE_AT_A_TIME = pytest.mark.parametrize("core", [1], indirect=True)


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


async def test_two_streams_share_rounds_and_say_what_each_says_alone(model: LoadedModel, session: Observed) -> None:
    streams = [session.submit("snow", policy="layerskip"), session.submit("a river", policy="none")]
    session.release()
    said = await asyncio.gather(*map(collect, streams))
    assert [tokens_of(events) for events in said] == alone(model, "snow", "a river")
    assert [{event.request_id for event in events} for events in said] == [{"snow"}, {"a river"}]
    together = [report for report in session.reports if len(report.rounds) == 2]
    assert together
    assert all({part.request_id for part in report.rounds} == {"snow", "a river"} for report in together)


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


async def test_a_cancelled_request_does_not_change_others(model: LoadedModel, session: Observed) -> None:
    session.submit("snow", ENDLESS)
    stays = session.submit("a river", policy="none")  # drafted, it could end before the observed rounds
    await session.rounds(3)  # the first may have begun without the second request
    session.engine.cancel("snow")
    begun = len(session.reports) + 1  # the next waits for its permit already, or will see the cancellation
    session.release()
    events = await collect(stays)
    assert [tokens_of(events)] == alone(model, "a river")
    assert session.ran[2] == ["snow", "a river"]
    assert session.ran[begun:]
    assert all(ids == ["a river"] for ids in session.ran[begun:])
    assert session.inner.scheduler.blocks.usage == 0


@ONE_AT_A_TIME
async def test_a_request_cancelled_while_it_waits_never_runs(model: LoadedModel, session: Observed) -> None:
    first, _, third = (session.submit(id) for id in ("snow", "a boat", "a river"))
    session.release(2)
    await session.report(lambda report: (report.running, report.waiting) == (1, 2))
    assert session.engine.stats().waiting == 2
    session.engine.cancel("a boat")
    session.release()
    said = [tokens_of(events) for events in await asyncio.gather(collect(first), collect(third))]
    assert said == alone(model, "snow", "a river")
    assert not any("a boat" in ids for ids in session.ran)


async def test_cancelling_unknown_and_finished_requests_changes_nothing(model: LoadedModel, session: Observed) -> None:
    session.release()
    first = session.submit("snow")
    await collect(first)
    stream = session.submit("a river")
    session.engine.cancel("snow")
    session.engine.cancel("nobody")
    events = await collect(stream)
    assert [tokens_of(events)] == alone(model, "a river")


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


async def test_a_request_that_the_engine_refuses_is_the_clients_error(session: Observed) -> None:
    sampling = replace(SHORT, grammar="no grammar", grammar_param="response_format")
    session.release()
    with pytest.raises(RequestError) as refused:
        await collect(session.submit("a", sampling))
    assert refused.value.param == "response_format"


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


@ONE_AT_A_TIME
async def test_draining_finishes_running_requests_and_refuses_new_ones(model: LoadedModel, session: Observed) -> None:
    streams = [session.submit("snow"), session.submit("a river")]  # the second waits
    session.release(2)
    await session.report(lambda report: (report.running, report.waiting) == (1, 1))
    drain = asyncio.create_task(session.engine.drain(1e9))
    await until(lambda: session.engine.stats().draining)
    assert not session.engine.stats().ready
    with pytest.raises(EngineDrainingError):
        session.submit("a late comer")
    assert not drain.done()
    session.release()
    said = [tokens_of(events) for events in await asyncio.gather(*map(collect, streams))]
    await drain
    assert threads() == []
    assert session.engine.stats().failure is None
    with pytest.raises(EngineDrainingError):
        session.submit("a later comer")
    assert said == alone(model, "snow", "a river")
    assert not any("comer" in id for ids in session.ran for id in ids)


@ONE_AT_A_TIME
async def test_draining_fails_requests_that_outlast_its_timeout(session: Observed) -> None:
    running, waiting = session.submit("snow", ENDLESS), session.submit("a river", ENDLESS)
    session.release(2)
    await session.report(lambda report: (report.running, report.waiting) == (1, 1))
    drain = asyncio.create_task(session.engine.drain(30))
    await until(lambda: session.engine.stats().draining)
    session.clock.time = 29.9
    readings = session.clock.readings
    await until(lambda: session.clock.readings >= readings + 3)
    assert (await anext(running)).token_ids  # the stream has not failed
    session.clock.time = 30.1
    for stream in (running, waiting):
        with pytest.raises(EngineDrainingError):
            await collect(stream)
        assert await collect(stream) == []
    session.release()
    await drain
    assert threads() == []
    stats = session.engine.stats()
    assert (stats.draining, stats.ready, stats.failure) == (True, False, None)


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


@pytest.mark.slow
@pytest.mark.parametrize(("request_", "error", "param"), BAD_REQUESTS)
async def test_a_request_that_cannot_run_is_refused_without_a_round(
    model: LoadedModel, session: Observed, request_: GenerateRequest, error: type[RequestError], param: str
) -> None:
    session.release()
    with pytest.raises(error) as refused:
        session.engine.submit(request_)
    assert refused.value.param == param
    assert session.engine.stats().waiting == 0
    assert session.inner.scheduler.idle
    # All that ever ran is the next request, which took the rounds that it takes alone.
    events = await collect(session.submit("snow", policy="none"))
    assert [tokens_of(events)] == alone(model, "snow")
    assert events[-1].speculation is not None
    assert session.ran == [[]] + [["snow"]] * (events[-1].speculation.num_rounds - 1)


@pytest.mark.slow
async def test_the_longest_request_that_fits_is_accepted(session: Observed) -> None:
    session.release()
    sampling = SamplingParams(temperature=0.0, ignore_eos=True)
    events = await collect(session.engine.submit(GenerateRequest("full", (5,) * 2047, sampling)))
    assert len(tokens_of(events)) == 1
    assert events[-1].finish_reason == FinishReason.LENGTH


async def test_reports_add_up_to_the_tokens_of_the_streams(session: Observed) -> None:
    session.release()
    policies = {"snow": "layerskip", "a river": "knapspec", "a boat": "none"}
    streams = {id: session.submit(id, policy=policy) for id, policy in policies.items()}
    said = {id: await collect(stream) for id, stream in streams.items()}
    # Once more: its prompt comes from the prefix cache as far as whole blocks go. Another prompt has one token.
    long = chat_ids(session.inner, "What is it? " * 10)
    for id, prompt in (("first", long), ("second", long), ("one", (5,))):
        said[id] = await collect(session.engine.submit(GenerateRequest(id, prompt, SHORT)))
    await session.report(lambda report: report.running == 0)
    reports = session.reports
    for id, events in said.items():
        everything = [event for report in reports for event in report.events]
        reported = [e for e in everything if isinstance(e, TokenEvent) and e.request_id == id]
        assert TokenEvent.joined(reported) == TokenEvent.joined(events)
        parts = [part for report in reports for part in report.rounds if part.request_id == id]
        figures = events[-1].speculation
        assert figures is not None
        assert [part.emitted for part in parts] == [len(event.token_ids) for event in reported]
        assert sum(part.drafted for part in parts) == figures.num_draft_tokens
        assert sum(part.accepted for part in parts) == figures.num_accepted_draft_tokens
        assert sum(part.emitted > 0 for part in parts) == figures.num_rounds
        assert {part.policy for part in parts} == {figures.policy}
    last = {id: events[-1] for id, events in said.items()}
    assert last["first"].cached_tokens == 0
    assert last["second"].cached_tokens == (len(long) - 1) // 16 * 16 > 0
    asked = sum(event.prompt_tokens for event in last.values())
    cached = sum(event.cached_tokens for event in last.values())
    assert sum(report.prefix_queries for report in reports) == asked
    assert sum(report.prefix_hits for report in reports) == cached
    assert sum(report.prompt_tokens for report in reports) == asked - cached
    assert all(report.prompt_tokens <= report.batched_tokens for report in reports)
    assert all(0 <= report.kv_usage <= 1 for report in reports)
    assert (reports[-1].running, reports[-1].waiting, reports[-1].kv_usage) == (0, 0, 0.0)


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
