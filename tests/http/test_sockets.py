"""Sockets whose clients are silent, slow, or write before they read: each kind is bounded, and others are answered."""

from __future__ import annotations

import asyncio
import json
import logging
import select
import selectors
import socket
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from uvicorn.server import ServerState

from server.edge import bodies
from server.edge.bodies import BodyReader
from server.edge.connections import Connections
from server.edge.errors import APIError
from server.edge.protocol import MAX_HEAD, Protocol
from server.loading import answer_while_loading
from tests.support.fake import FakeEngine
from tests.support.harness import CHAT, CHAT_PATH, Live, connect, exchange, posted, rest_of, status_of_reply
from tests.support.waiting import until

Start = Callable[..., Live]

LIVE = b"GET /live HTTP/1.1\r\nHost: x\r\n\r\n"
HEAD = f"POST {CHAT_PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
CONTENT = json.dumps(CHAT).encode()
ASK = posted(CHAT_PATH, CHAT)


# Heads


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "drop", "status"),
    [
        (b"", b"", b""),
        (b"", b"\r\n", b"408"),
        (b"GET /live HTTP/1.1\r\nX: ", b"", b"408"),
        (b"GET /live HTTP/1.1\r\nX: ", b"a", b"408"),
        (LIVE + b"GET /live HTTP/1.1\r\nX: ", b"a", b"408"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: ", b"a", b"408"),
    ],
    ids=["silent", "empty lines", "half a head", "dribbled", "second head", "trailers"],
)
def test_a_head_that_never_ends_ends_the_connection(live: Start, before: bytes, drop: bytes, status: bytes) -> None:
    """Bytes that drop in do not extend its time."""
    server = live(FakeEngine(), header_timeout=0.3)
    with connect(server.port) as connection:
        if before.startswith(LIVE):
            connection.sendall(LIVE)
            before = before.removeprefix(LIVE)
            assert status_of_reply(connection) == 200
        connection.sendall(before)
        for _ in range(2000):
            if select.select([connection], [], [], 0.01)[0]:
                break
            connection.sendall(drop)
        else:
            pytest.fail("the connection stayed open")
        assert rest_of(connection)[9:12] == status


@pytest.mark.parametrize("field", [b"X: %s\r\n" % (b"a" * 70_000), b"X: a\r\n" * 12_000, b"X:%s\r\n" % (b" " * 70_000)])
@pytest.mark.parametrize(
    "line", [b"GET /live HTTP/1.1\r\n", b"GET /live HTTP/1.0\r\n", b"GET /%s HTTP/1.1\r\n" % (b"a" * 70_000)]
)
def test_a_large_head_is_refused_in_one_piece_too(live: Start, line: bytes, field: bytes) -> None:
    assert exchange(live(FakeEngine()).port, line + field + b"\r\n").startswith(b"HTTP/1.1 431 ")


def test_the_limit_of_a_head_counts_all_of_it(live: Start) -> None:
    server = live(FakeEngine())
    for size, status in ((MAX_HEAD - 1, b"200"), (MAX_HEAD + 1, b"431")):
        head = LIVE[:-2] + b"Connection: close\r\nX: "
        head += b"a" * (size - len(head) - 4) + b"\r\n\r\n"
        assert exchange(server.port, head)[9:12] == status


@pytest.mark.parametrize("coding", [b"chunked", b"gzip", b"gzip, chunked", b"chunked\r\nTransfer-Encoding: chunked"])
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_transfer_codings_other_than_chunked_in_http_1_1_are_refused_at_once(
    live: Start, version: bytes, coding: bytes
) -> None:
    if (version, coding) == (b"1.1", b"chunked"):
        pytest.skip("the one that is read")
    head = HEAD.replace(b"HTTP/1.1", b"HTTP/" + version) + b"Transfer-Encoding: " + coding + b"\r\n\r\n"
    assert exchange(live(FakeEngine()).port, head).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("target", [b"/live", b"http://x/live", b"http://x/live?a=b"])
def test_both_forms_of_a_target_are_read(live: Start, version: bytes, target: bytes) -> None:
    request = b"GET " + target + b" HTTP/" + version + b"\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert exchange(live(FakeEngine()).port, request).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("target", [b"x:80", b"/live"])
def test_connect_is_refused(live: Start, target: bytes) -> None:
    answer = exchange(live(FakeEngine()).port, b"CONNECT " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")


# Refused bodies

LARGE = b"x" * 3_000_000


@pytest.mark.slow
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("extra", [b"", b"Connection: close\r\n", b"Expect: 100-continue\r\n"])
@pytest.mark.parametrize(
    ("path", "settings", "status"),
    [
        (CHAT_PATH, {"max_body_size": 1000}, b"413"),
        (CHAT_PATH, {"api_key": ("k",)}, b"401"),
        ("/nothing", {}, b"404"),
        ("/live", {}, b"405"),
    ],
)
def test_a_client_that_writes_before_it_reads_gets_its_refusal(
    live: Start, path: str, settings: dict[str, Any], status: bytes, extra: bytes, version: bytes
) -> None:
    server = live(FakeEngine(), **settings)
    head = f"POST {path} HTTP/".encode() + version + b"\r\nHost: x\r\nContent-Type: application/json\r\n" + extra
    answer = exchange(server.port, head + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head[9:12] == status
    assert b"connection: close" in head.lower().split(b"\r\n")
    assert json.loads(body)["error"]["message"]


def test_a_refused_chunked_body_is_discarded_too(live: Start) -> None:
    chunks = b"".join(b"%x\r\n" % 65_536 + LARGE[:65_536] + b"\r\n" for _ in range(100)) + b"0\r\n\r\n"
    server = live(FakeEngine(), max_body_size=1000)
    answer = exchange(server.port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_bytes_behind_a_malformed_request_do_not_reset_its_reply(live: Start) -> None:
    answer = exchange(live(FakeEngine()).port, b"what is this\r\n\r\n" + LARGE)
    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.slow
def test_a_refused_body_is_read_to_a_limit(live: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.edge.protocol.LINGER_BYTES", 1_000_000)
    server = live(FakeEngine(), max_body_size=1000)
    with connect(server.port) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % 10**12)
        with pytest.raises(ConnectionError):
            connection.sendall(LARGE * 25)


def test_a_refused_body_that_does_not_arrive_ends_with_its_time(live: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.edge.protocol.LINGER_SECONDS", 0.05)
    server = live(FakeEngine(), max_body_size=1000)
    with connect(server.port) as connection:
        connection.sendall(HEAD + b"Content-Length: 5000\r\n\r\n")
        assert rest_of(connection).startswith(b"HTTP/1.1 413 ")
        with suppress(ConnectionError):
            for _ in range(2000):
                select.select([], [], [], 0.01)
                connection.sendall(b"x")
            pytest.fail("the connection stayed open")


def test_a_reply_to_all_of_a_request_keeps_the_connection(live: Start) -> None:
    server = live(FakeEngine(), api_key=("k",))
    with connect(server.port) as connection:
        for _ in range(3):
            connection.sendall(ASK)
            assert status_of_reply(connection) == 401


def test_a_fault_in_a_body_ends_its_request_with_one_reply(live: Start) -> None:
    answer = exchange(live(FakeEngine()).port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\nnot a length\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


# Descriptors


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four connections are the share of the descriptors."""
    monkeypatch.setattr(Connections, "room", lambda self: 4 - len(self._open))


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize(
    "sent",
    [b"", LIVE[:9], LIVE, HEAD + b"Content-Length: 999\r\n\r\n{", HEAD + b"Content-Length: 99999999\r\n\r\n"],
    ids=["silent", "half a head", "idle", "half a body", "refused"],
)
def test_the_longest_silent_connection_makes_way(live: Start, caplog: pytest.LogCaptureFixture, sent: bytes) -> None:
    server = live(FakeEngine())
    with ExitStack() as stack, caplog.at_level(logging.WARNING, "knapserve.server"):
        silent = [stack.enter_context(connect(server.port)) for _ in range(30)]
        for connection in silent:
            connection.sendall(sent)
        for request in (LIVE, ASK) * 3:
            with connect(server.port) as connection:
                connection.sendall(request)
                assert status_of_reply(connection) == 200
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1
    assert "file descriptors run out" in warnings[0]


@pytest.mark.usefixtures("room")
def test_a_connection_that_is_heard_from_stays(live: Start) -> None:
    server = live(FakeEngine())
    with ExitStack() as stack:
        busy = stack.enter_context(connect(server.port))
        for _ in range(10):
            stack.enter_context(connect(server.port))
            busy.sendall(LIVE)
            assert status_of_reply(busy) == 200


@pytest.mark.usefixtures("room")
def test_live_is_answered_when_all_connections_are_being_answered(live: Start) -> None:
    engine = FakeEngine(gated=True)
    server = live(engine)
    with ExitStack() as stack:
        running = [stack.enter_context(connect(server.port)) for _ in range(4)]
        for number, connection in enumerate(running, 1):
            connection.sendall(ASK)
            until(lambda number=number: len(engine.submitted) == number, "the request")  # type: ignore[misc]
        for _ in range(3):
            stack.enter_context(connect(server.port))  # in vain
            assert exchange(server.port, LIVE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))[9:12] == b"200"
            answer = exchange(server.port, ASK)
            assert (answer[9:12], b'"busy"' in answer) == (b"503", True)
        engine.release(8)
        for connection in running:
            assert status_of_reply(connection) == 200


@pytest.mark.usefixtures("room")
def test_silent_connections_take_no_threads_while_the_model_loads() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, answer_while_loading(listener), ExitStack() as stack:
        port = listener.getsockname()[1]
        threads = threading.active_count()
        for _ in range(30):
            stack.enter_context(connect(port))
        assert exchange(port, LIVE).startswith(b"HTTP/1.1 200 ")
        refused = exchange(port, HEAD + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE)
        assert (refused[9:12], b'"loading"' in refused) == (b"503", True)
        assert threading.active_count() == threads


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    try:
        made = subprocess.run([*command.split(), "-keyout", key, "-out", certificate], capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl")
    assert made.returncode == 0, made.stderr
    return certificate, key


@pytest.mark.slow
@pytest.mark.usefixtures("room")
def test_silent_connections_make_way_before_a_tls_handshake_too(certificate: tuple[Path, Path]) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    def ask(port: int) -> bytes:
        context = ssl.create_default_context(cafile=certificate[0])
        context.check_hostname = False
        with connect(port) as raw, context.wrap_socket(raw) as connection:
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE)
            return rest_of(connection)

    async def run(config: uvicorn.Config) -> None:
        connections = Connections(0.3, config.ssl)
        with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as stack:
            connections.listen(listener, partial(Protocol, config, ServerState(), {}, connections))
            port = listener.getsockname()[1]
            last = [stack.enter_context(connect(port)) for _ in range(20)][-1]
            assert (await asyncio.to_thread(ask, port)).startswith(b"HTTP/1.1 413 ")
            assert await asyncio.to_thread(last.recv, 1) == b"", "a handshake has the time of a head"
            asyncio.get_running_loop().remove_reader(listener)
            connections.close()

    files = [str(path) for path in certificate]
    config = uvicorn.Config(application, ssl_certfile=files[0], ssl_keyfile=files[1], log_config=None, lifespan="off")
    config.load()
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run(config))


# Bodies, on a clock that jumps to the next event


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now = 0.0
        loop = self

        class Selector(selectors.SelectSelector):
            def select(self, timeout: float | None = None) -> Any:
                loop.now += timeout or 0.0
                return super().select(0)

        super().__init__(Selector())

    def time(self) -> float:
        return self.now


def request_of(pieces: AsyncIterator[bytes]) -> Request:
    async def receive() -> dict[str, Any]:
        piece = await anext(pieces, b"")
        return {"type": "http.request", "body": piece, "more_body": bool(piece)}

    return Request({"type": "http", "headers": []}, receive)


async def every(seconds: float, piece: bytes, count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield piece
        await asyncio.sleep(seconds)


async def status_of(reader: BodyReader, pieces: AsyncIterator[bytes]) -> int:
    try:
        async with reader.read(request_of(pieces)):
            return 200
    except APIError as error:
        return error.status


def held(reader: BodyReader) -> int:
    """Bytes of the budget that are in use."""
    free: int = vars(reader)["_free"]
    return bodies.BUDGET - free


@pytest.fixture
def jumping() -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=_JumpingLoop) as runner:
        yield runner


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seconds", "size", "count", "status", "most"),
    [
        (19, 65_536, 256, 200, 19 * 256),  # 16 MiB within 81 minutes
        (1, 1000, 5000, 200, 5000),
        (19, 1, 100, 408, 21),
        (1, 1, 10_000, 408, 21),
        (1, 400, 10_000, 408, 101),
        (21, 1_000_000, 16, 408, 21),  # many bytes buy no long silence
    ],
)
def test_a_body_may_be_slow_but_no_byte_buys_another_minute(
    jumping: asyncio.Runner, seconds: float, size: int, count: int, status: int, most: float
) -> None:
    reader = BodyReader(16 * 2**20, 200_000)
    assert jumping.run(status_of(reader, every(seconds, b" " * size, count))) == status
    assert jumping.get_loop().time() <= most


def test_unfinished_bodies_share_a_budget(jumping: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ones that have been silent the longest make way for those that arrive; no memory is lost or counted twice."""
    monkeypatch.setattr(bodies, "BUDGET", 10_000)
    reader = BodyReader(5000, 200_000)

    async def run() -> list[int]:
        stalled = [asyncio.create_task(status_of(reader, every(100, b" " * 900, 2))) for _ in range(50)]
        await asyncio.sleep(0.1)
        assert held(reader) <= 10_000
        assert await status_of(reader, every(0.1, b" " * 100, 50)) == 200
        assert await status_of(reader, every(0, b" ", 1)) == 200
        return [await task for task in stalled]

    assert set(jumping.run(run())) <= {408, 503}
    assert held(reader) == 0


def test_complete_bodies_count_until_they_are_parsed(jumping: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BUDGET", 10_000)
    reader = BodyReader(5000, 200_000)

    async def run() -> None:
        async with reader.read(request_of(every(0, b" " * 5000, 1))) as first:
            async with reader.read(request_of(every(0, b" " * 4000, 1))):
                assert await status_of(reader, every(0, b" " * 1000, 2)) == 503
                assert await status_of(reader, every(0, b" " * 100, 2)) == 200
            assert await status_of(reader, every(0, b" " * 1000, 2)) == 200
            assert len(first) == 5000

    jumping.run(run())
    assert held(reader) == 0


def test_pieces_of_a_body_count_with_the_memory_they_take(
    jumping: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BUDGET", 10_000)
    reader = BodyReader(5000, 200_000)
    assert jumping.run(status_of(reader, every(0.001, b" ", 100))) == 200
    assert jumping.run(status_of(reader, every(0.001, b" ", 1000))) == 503
    assert held(reader) == 0
