"""Behaviour that needs a socket: disconnects, draining, engine failures, keep-alive comments, chunked bodies."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import httpx
import pytest

from server.http import bodies, connections
from tests.support.fake import FakeEngine
from tests.support.harness import (
    CHAT,
    CHAT_PATH,
    TEXT,
    TEXT_PATH,
    Live,
    connect,
    exchange,
    posted,
    rest_of,
    sse,
    status_of_reply,
)
from tests.support.waiting import until

Start = Callable[..., Live]


@pytest.mark.parametrize("n", [1, 3])
def test_a_client_that_leaves_a_stream_cancels_all_choices(live: Start, n: int) -> None:
    engine = FakeEngine(("x",) * 10, gated=True)
    server = live(engine)
    engine.release()  # a stream begins with its first token
    with server.client.stream("POST", CHAT_PATH, json=CHAT | {"stream": True, "n": n}) as reply:
        assert reply.status_code == 200
        assert next(reply.iter_lines()).startswith("data: ")
    assert engine.left.wait(10)
    assert server.client.get("/live").status_code == 200  # once this is answered, every cancellation has arrived
    assert sorted(engine.cancelled) == sorted(request.id for request in engine.submitted)
    assert len(engine.submitted) == n
    assert engine.running == set()


@pytest.mark.parametrize("body", [CHAT, CHAT | {"stream": True}, CHAT | {"n": 2}])
def test_a_client_that_leaves_before_the_first_token_cancels_its_request(live: Start, body: dict[str, Any]) -> None:
    engine = FakeEngine(gated=True)
    server = live(engine)
    with connect(server.port) as connection:
        connection.sendall(posted(CHAT_PATH, body))
        assert engine.arrived.wait(10)
    assert engine.left.wait(10)
    assert server.client.get("/live").status_code == 200
    assert sorted(engine.cancelled) == sorted(request.id for request in engine.submitted)


def test_a_body_that_does_not_arrive_is_a_408(live: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "IDLE_SECONDS", 0.1)
    head = f"POST {CHAT_PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n"
    answer = exchange(live(FakeEngine()).port, head.encode() + b'{"messages":')
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"request_timeout"' in answer


def test_half_sent_bodies_make_way(live: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BUDGET", 10_000)
    server = live(FakeEngine(), max_body_size=5000)
    head = f"POST {CHAT_PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 4999\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(6):
            half = stack.enter_context(connect(server.port))
            half.sendall(head.encode() + b" " * 2000)
        large = json.dumps(TEXT).encode() + b" " * 4000
        headers = {"Content-Type": "application/json"}
        assert server.client.post(TEXT_PATH, content=large, headers=headers).status_code == 200


def test_a_malformed_second_request_gets_a_400(live: Start) -> None:
    server = live(FakeEngine())
    with connect(server.port) as connection:
        connection.sendall(b"GET /live HTTP/1.1\r\nHost: x\r\n\r\n")
        assert status_of_reply(connection) == 200
        connection.sendall(b"what is this\r\n\r\n")
        answer = rest_of(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert (error["type"], error["param"], error["message"] > "") == ("invalid_request_error", None, True)
    assert b"x-request-id: " in answer


@pytest.mark.slow
@pytest.mark.parametrize("reads", [0, 1 << 16])
def test_a_stalled_client_is_disconnected_and_a_slow_one_is_not(
    live: Start, monkeypatch: pytest.MonkeyPatch, reads: int
) -> None:
    monkeypatch.setattr(connections, "STALL_TIMEOUT", 0.3)
    engine = FakeEngine(("x" * 1_000_000,) * 16)
    server = live(engine)
    with closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(posted(TEXT_PATH, TEXT | {"stream": True}))
        for _ in range(20):
            if engine.left.wait(0.1):
                break
            taken = 0
            while taken < 8 * reads:
                taken += len(connection.recv(reads))
        assert engine.left.is_set() == (reads == 0)


def test_a_stream_is_sent_token_by_token(live: Start) -> None:
    engine = FakeEngine(("a", "b"), gated=True)
    server = live(engine)
    engine.release()  # a stream begins with its first token
    with server.client.stream("POST", TEXT_PATH, json=TEXT | {"stream": True}) as reply:
        lines = reply.iter_lines()
        assert '"text":"a"' in next(lines)  # the second token does not exist yet
        engine.release()
        rest = list(lines)
    assert any('"text":"b"' in line for line in rest)
    assert rest[-2:] == ["data: [DONE]", ""]


def test_idle_streams_get_comments(live: Start) -> None:
    engine = FakeEngine(gated=True)
    server = live(engine, keepalive_seconds=0.01)
    with server.client.stream("POST", TEXT_PATH, json=TEXT | {"stream": True}) as reply:
        raw = reply.iter_raw()
        assert next(raw).startswith(b": keep-alive\n\n")
        engine.release(2)
        rest = b"".join(raw)
    data = b"\n\n".join(part for part in rest.split(b"\n\n") if not part.startswith(b":"))
    assert [chunk["choices"][0]["text"] for chunk in sse(data)[:-1]] == ["Hel", "lo", ""]


def test_a_failure_after_a_comment_is_an_error_chunk(live: Start) -> None:
    engine = FakeEngine(gated=True)
    server = live(engine, keepalive_seconds=0.01)
    with server.client.stream("POST", TEXT_PATH, json=TEXT | {"stream": True}) as reply:
        raw = reply.iter_raw()
        next(raw)
        engine.release(error=RuntimeError("secret"))
        rest = b"".join(raw)
    assert rest.endswith(b"data: [DONE]\n\n")
    assert b'data: {"error":{' in rest
    assert b"secret" not in rest


def test_a_chunked_body_over_the_limit_is_refused_while_reading(live: Start) -> None:
    engine = FakeEngine()
    server = live(engine, max_body_size=1000)
    with connect(server.port) as connection:
        head = f"POST {CHAT_PATH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode() + b"400\r\n" + b"x" * 1024 + b"\r\n")
        # The body has not ended, and never does.
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")
    assert engine.submitted == []


def test_a_client_that_sends_too_large_a_body_still_reads_the_refusal(live: Start) -> None:
    server = live(FakeEngine(), max_body_size=1000)
    assert server.client.post(CHAT_PATH, content=b"x" * 5_000_000).status_code == 413
    assert server.client.get("/live").status_code == 200


@pytest.mark.slow
def test_draining_keeps_the_socket_open_and_refuses(live: Start) -> None:
    engine = FakeEngine(("a", "b"), gated=True)
    server = live(engine)
    engine.release()  # a stream begins with its first token
    with server.client.stream("POST", TEXT_PATH, json=TEXT | {"stream": True}) as reply:
        lines = reply.iter_lines()
        next(lines)
        server.terminate()
        with httpx.Client(base_url=server.url) as other:
            while (health := other.get("/health")).status_code == 200:  # until the signal has been handled
                pass
            assert health.json()["error"]["code"] == "draining"
            refused = other.post(TEXT_PATH, json=TEXT)
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "draining"
        engine.release()
        assert list(lines)[-2] == "data: [DONE]"
    server.thread.join(20)
    assert not server.thread.is_alive()
    assert server.server.exit_code == 0
    assert engine.cancelled == []


@pytest.mark.slow
def test_a_request_that_outlasts_the_drain_ends_with_an_error(live: Start) -> None:
    engine = FakeEngine(("a", "b"), gated=True)
    server = live(engine, shutdown_timeout=0.0)
    engine.release()  # a stream begins with its first token
    with server.client.stream("POST", TEXT_PATH, json=TEXT | {"stream": True}) as reply:
        lines = reply.iter_lines()
        next(lines)
        server.terminate()
        rest = [line for line in lines if line]
    assert '"code":"draining"' in rest[-2]
    assert rest[-1] == "data: [DONE]"
    server.thread.join(20)
    assert not server.thread.is_alive()
    assert server.server.exit_code == 0


@pytest.mark.slow
def test_an_engine_failure_reaches_every_client_and_ends_the_server(live: Start) -> None:
    engine = FakeEngine(("a", "b"), gated=True)
    server = live(engine)
    engine.release()  # a stream begins with its first token
    with server.client.stream("POST", TEXT_PATH, json=TEXT | {"stream": True, "n": 2}) as reply:
        lines = reply.iter_lines()
        next(lines)
        engine.die("boom")
        with httpx.Client(base_url=server.url) as other:
            assert other.get("/health").json()["error"]["code"] == "engine_dead"
            assert other.post(TEXT_PATH, json=TEXT).status_code == 503
        rest = [line for line in lines if line]
    assert '{"error":{' in rest[-2]
    assert rest[-1] == "data: [DONE]"
    server.thread.join(20)
    assert not server.thread.is_alive()
    assert server.server.exit_code == 1


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "after", [b"GET /live HTTP/1.1\r\nHost: x\r\n\r\n", b"\0nonsense", b"GET / HTTP/1.1\r\na: " + b"b" * 90_000]
)
@pytest.mark.parametrize("together", [True, False])
def test_pipelined_bytes_are_dropped_and_do_not_hide_a_disconnect(
    live: Start, stream: bool, after: bytes, together: bool
) -> None:
    engine = FakeEngine(("a", "b"), gated=True)
    server = live(engine)
    for leaves in (False, True):
        engine.arrived.clear()
        engine.left.clear()
        with connect(server.port) as connection:
            connection.sendall(posted(TEXT_PATH, TEXT | {"stream": stream}) + (after if together else b""))
            assert engine.arrived.wait(10)
            if not together:
                connection.sendall(after)
            if leaves:
                continue
            engine.release(2)
            reply = rest_of(connection)  # the server closes: the client has to send dropped requests again
        assert reply.startswith(b"HTTP/1.1 200 ")
        assert reply.count(b"HTTP/1.1") == 1
        assert reply.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n") if stream else b'"finish_reason":"stop"' in reply
    assert engine.left.wait(10)
    assert server.client.get("/live").status_code == 200
    assert len(engine.cancelled) == 1


@pytest.mark.slow
@pytest.mark.parametrize("row", [b"a: " + b"b" * 8000 + b"\r\n", b"b" * 8000])
def test_trailers_of_a_chunked_body_are_limited(live: Start, row: bytes) -> None:
    server = live(FakeEngine(), api_key=("k",))
    with connect(server.port) as connection:
        head = f"POST {TEXT_PATH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\na: b"
        connection.sendall(head.encode())
        with pytest.raises(ConnectionError):
            connection.sendall(10_000 * row)  # 80 MB


def test_a_chunked_body_may_have_trailers(live: Start) -> None:
    server = live(FakeEngine(("a",)))
    content = json.dumps(TEXT).encode()
    with connect(server.port) as connection:
        head = f"POST {TEXT_PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
        head += "Transfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode() + b"%x\r\n" % len(content) + content + b"\r\n0\r\nx-checksum: 1\r\n\r\n")
        assert rest_of(connection).startswith(b"HTTP/1.1 200 ")


@pytest.mark.slow
@pytest.mark.parametrize("offer", ["", "Connection: upgrade\r\nUpgrade: h2c\r\n"])
@pytest.mark.parametrize("pieces", [1, 3])
def test_a_reply_to_http_1_0_is_not_chunked(live: Start, offer: str, pieces: int) -> None:
    server = live(FakeEngine(("a", "b")))
    request = posted(TEXT_PATH, TEXT | {"stream": True}, "1.0", offer)
    with connect(server.port) as connection:
        step = -(-len(request) // pieces)
        for first in range(0, len(request), step):
            connection.sendall(request[first : first + step])
            if first + step < len(request):
                server.client.get("/live")  # once this is answered, the server has read the piece
        head, body = rest_of(connection).split(b"\r\n\r\n", 1)
    assert head.split(b" ")[1] == b"200"
    assert b"chunked" not in head.lower()
    assert [event for event in sse(body) if event == "[DONE]"]


def slow_template() -> tuple[FakeEngine, threading.Semaphore, threading.Event]:
    """An engine whose chats are rendered once the event is set; the semaphore counts those that have begun."""
    engine, begun, rendered = FakeEngine(), threading.Semaphore(0), threading.Event()

    def render(*_: Any, **__: Any) -> str:
        begun.release()
        rendered.wait()
        return "Hi"

    engine.tokenizer.render_chat = render  # type: ignore[method-assign]
    return engine, begun, rendered


def test_a_template_that_takes_long_stops_nobody_else(live: Start) -> None:
    """Chats wait for it, short and long ones. Probes, completions and SIGTERM do not."""
    engine, begun, rendered = slow_template()
    server = live(engine)
    padded = CHAT | {"user": "u" * 5000}
    with ThreadPoolExecutor(16) as clients:
        chats = [clients.submit(server.client.post, CHAT_PATH, json=body) for body in (CHAT, padded) for _ in range(8)]
        try:
            for _ in range(6):
                begun.acquire()
            assert server.client.get("/live").status_code == 200
            for body in (TEXT, TEXT | {"user": "u" * 5000}):
                assert server.client.post(TEXT_PATH, json=body).status_code == 200
        finally:
            rendered.set()
        assert {chat.result().status_code for chat in chats} == {200}


def test_chats_that_wait_for_a_template_are_refused_when_the_server_ends(live: Start) -> None:
    """None of them keeps the server from its end."""
    engine, begun, rendered = slow_template()
    server = live(engine)
    with ThreadPoolExecutor(6) as clients:
        chats = [clients.submit(server.client.post, CHAT_PATH, json=CHAT) for _ in range(6)]
        try:
            for _ in range(2):
                begun.acquire()
            server.terminate()
            until(lambda: sum(chat.done() for chat in chats) >= 4, "refusals")
        finally:
            rendered.set()
        assert [chat.result().status_code for chat in chats] == [503] * 6
    server.thread.join(20)
    assert server.server.exit_code == 0
