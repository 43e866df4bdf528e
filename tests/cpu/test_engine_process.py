"""The engine in its own process: the answers of a thread, and failures on either side."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.config.engine import EngineConfig
from engine.errors import ContextLengthError, EngineDeadError, ModelError, QueueFullError, RequestError
from engine.host.channel import Channel, packed
from engine.host.client import TokenStream
from engine.host.process import EngineLaunch, EngineProcess
from engine.messages import CancelRequest, Heartbeat
from engine.types import (
    EngineInfo,
    FinishReason,
    GenerateRequest,
    RequestFailure,
    RequestRound,
    RoundReport,
    SamplingParams,
    TokenEvent,
)
from profiles import store
from tests.support import PREPARED, REPOSITORY
from tests.support.cores import ManualClock, answer, chat_ids, load, made_up_profile
from tests.support.fake import INFO
from tests.support.serving import runs

pytestmark = pytest.mark.anyio

SHORT = SamplingParams(max_tokens=24, temperature=0.0, ignore_eos=True)
ENDLESS = SamplingParams(max_tokens=1500, temperature=0.0, ignore_eos=True)


@pytest.fixture(autouse=True)
def this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children import this checkout, whether or not it is installed."""
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> EngineConfig:
    """float32 without drafting, and a made-up profile, so that nothing is measured."""
    tmp_path = tmp_path_factory.mktemp("profiles")
    store.save(replace(made_up_profile(), key=load(torch.float32).key), tmp_path)
    settings: dict[str, Any] = {"dtype": "float32", "threads": 1, "max_num_seqs": 4, "max_queued": 1}
    return EngineConfig(model=str(PREPARED), profile_dir=tmp_path, draft_policy="none", **settings)


@asynccontextmanager
async def running(config: EngineConfig) -> AsyncIterator[EngineProcess]:
    with EngineLaunch(config) as launch:
        engine = await asyncio.to_thread(launch.ready)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.drain(0)
    assert not runs(engine.pid), "the child has ended"


async def reported(engine: EngineProcess, condition: Callable[[], bool]) -> None:
    """Wait for a report after which `condition` is true."""
    event = asyncio.Event()
    engine.add_listener(lambda report: event.set())
    while not condition():
        event.clear()
        await event.wait()


async def rest(stream: TokenStream) -> list[TokenEvent]:
    return [event async for event in stream]


async def collect(engine: EngineProcess, id: str, sampling: SamplingParams = SHORT) -> list[TokenEvent]:
    return await rest(engine.submit(GenerateRequest(id, chat_ids(engine, f"What is {id}?"), sampling)))


@pytest.mark.slow
async def test_the_process_answers_like_the_engine_until_it_is_killed(
    config: EngineConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starts are slow, so one engine answers, refuses, cancels and is killed during an answer.

    It ignores signals meant for its parent, and modules in the current directory.
    """
    for name in ("pickle.py", "queue.py", "profiles.py"):
        (tmp_path / name).write_text("raise SystemExit(77)")
    monkeypatch.chdir(tmp_path)
    reports: list[RoundReport] = []
    asked = ("snow", "a river", "a boat")
    async with running(config) as engine:
        engine.add_listener(reports.append)
        assert engine.stats().ready
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(engine.pid, number)
        with pytest.raises(RequestError):
            engine.submit(GenerateRequest("bad", ()))
        said = await asyncio.gather(*(collect(engine, id) for id in asked))
        long = tuple(range(5, 500)) * 2
        with pytest.raises(RequestError):
            engine.submit(GenerateRequest("long", long * 200, SHORT))
        events = await rest(engine.submit(GenerateRequest("long", long, SHORT)))
        assert events[-1].prompt_tokens == len(long)
        await reported(engine, lambda: not reports[-1].running)  # the last report may follow the last event
        assert sum(r.emitted for report in reports for r in report.rounds) == 4 * 24
        await check_cancellation_and_a_full_queue(engine)
        await check_that_a_killed_engine_fails_every_request(engine)
    core = load(torch.float32).core(config)
    prompts = [chat_ids(core, f"What is {id}?") for id in asked]
    assert [tuple(t for e in events for t in e.token_ids) for events in said] == answer(core, prompts, SHORT, ["none"])
    assert all(events[-1].finish_reason is FinishReason.LENGTH for events in said)


async def check_cancellation_and_a_full_queue(engine: EngineProcess) -> None:
    streams = [engine.submit(GenerateRequest(str(i), chat_ids(engine, "x"), ENDLESS)) for i in range(5)]
    with pytest.raises(QueueFullError):
        engine.submit(GenerateRequest("one more", chat_ids(engine, "x"), SHORT))
    for number in range(len(streams)):
        engine.cancel(str(number))
    assert await collect(engine, "after all")
    await reported(engine, lambda: engine.stats().kv_usage == 0)


async def check_that_a_killed_engine_fails_every_request(engine: EngineProcess) -> None:
    stream = engine.submit(GenerateRequest("snow", chat_ids(engine, "snow"), ENDLESS))
    await anext(stream)
    os.kill(engine.pid, signal.SIGKILL)
    with pytest.raises(EngineDeadError):
        await rest(stream)
    assert engine.stats().failure
    assert not engine.stats().ready
    with pytest.raises(EngineDeadError):
        engine.submit(GenerateRequest("late", chat_ids(engine, "snow"), SHORT))


@pytest.mark.slow
def test_an_error_while_loading_reaches_the_parent(tmp_path: Path) -> None:
    with EngineLaunch(EngineConfig(model=str(tmp_path))) as launch, pytest.raises(ModelError, match=r"config\.json"):
        launch.ready()
    assert launch.child.poll() is not None


@pytest.mark.slow
def test_a_child_killed_while_loading_is_an_error_and_leaving_early_ends_it(config: EngineConfig) -> None:
    with EngineLaunch(config) as launch:
        launch.child.kill()
        with pytest.raises(EngineDeadError, match="SIGKILL"):
            launch.ready()
    with EngineLaunch(config) as launch:
        assert launch.child.poll() is None
    assert launch.child.poll() is not None


@pytest.mark.parametrize("size", [1, 3, 1 << 12])
def test_messages_are_assembled_from_pieces_of_any_size(size: int) -> None:
    messages = [tuple(range(1 << 17)), CancelRequest("b"), Heartbeat(), GenerateRequest("a", (1, 2))]
    sent = b"".join(map(packed, messages))
    end = len(sent) - 4096  # of large pieces
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel, got, at = Channel(theirs), list[Any](), 0
        while at < len(sent):
            piece = sent[at : min(at + (1 << 14), end)] if at < end else sent[at : at + size]
            ours.sendall(piece)
            got += channel.receive()
            at += len(piece)
    assert got == messages


def made(child: list[str], info: EngineInfo = INFO) -> tuple[EngineProcess, socket.socket]:
    """The parent's side of an engine, and the socket of a child that runs another command."""
    ours, theirs = socket.socketpair()
    return EngineProcess(subprocess.Popen(child), Channel(ours), ManualClock(), info, None), theirs  # type: ignore[arg-type]


async def test_requests_wait_in_the_parent_while_the_child_is_busy() -> None:
    """Requests of one turn of the event loop travel together, and write a shared prompt once."""
    short, long = GenerateRequest("first", (1, 2)), GenerateRequest("long", tuple(range(300, 400)) * 5000)
    requests = [short, long, replace(long, id="as long")]
    engine, theirs = made(["true"], replace(INFO, vocab_size=512, max_model_len=1 << 20, max_num_seqs=8))
    with theirs:
        for request in requests:
            engine.submit(request)
        await asyncio.sleep(0)
        engine.cancel("first")
        await asyncio.sleep(0)
        end, got = Channel(theirs), list[Any]()
        while len(got) < 3:
            got += await asyncio.to_thread(end.receive)
    engine.reset_calibration()  # the child reads no message any more
    await engine.drain(0)
    assert got == [[short], requests[1:], [CancelRequest("first")]]
    assert got[1][0].prompt is got[1][1].prompt, "a shared prompt is written once"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x07" + bytes(7) + b"garbage", "could not be read"),
        (packed(RoundReport(events=("no event",))), "could not be delivered"),  # type: ignore[arg-type]
    ],
)
async def test_what_the_child_sends_wrongly_fails_its_streams(sent: bytes, reason: str) -> None:
    engine, theirs = made(["sleep", "60"])
    await engine.start()
    stream = engine.submit(GenerateRequest("a", (1, 2)))
    theirs.sendall(sent)
    with pytest.raises(EngineDeadError, match=reason):
        await anext(stream)
    os.kill(engine.pid, signal.SIGKILL)
    theirs.close()
    await engine.drain(0)


@pytest.mark.parametrize("error", [RequestError("why", param="stop"), ContextLengthError(8, 9, param="messages")])
def test_errors_survive_the_way_to_the_server(error: RequestError) -> None:
    again = pickle.loads(pickle.dumps(RequestFailure("a", error))).error
    assert (type(again), str(again), again.param) == (type(error), str(error), error.param)


def token(number: int, **other: Any) -> TokenEvent:
    return TokenEvent("r", f" {number}", (number,), completion_tokens=number, pieces=(f" {number}",), **other)


async def test_a_late_reader_gets_pending_events_joined() -> None:
    traced = token(4, trace=RequestRound("r", "none", 1, 0, 0, 0, 4, 0, 0, None, None))
    last = token(6, finish_reason=FinishReason.STOP)
    events = [token(1, cached_tokens=3), token(2), token(3), traced, token(5), last]
    stream = TokenStream()
    for event in events:
        stream.put(event)
    first, second, last = await rest(stream)
    assert (first.text, first.token_ids, first.pieces) == (" 1 2 3", (1, 2, 3), (" 1", " 2", " 3"))
    assert first.completion_tokens == 3
    assert second is traced, "a traced round is not joined with others"
    assert (last.text, last.finish_reason) == (" 5 6", FinishReason.STOP)
    assert TokenEvent.joined(events).token_ids == (1, 2, 3, 4, 5, 6)
