"""Idle connections take no request's place, change no stream and leak nothing."""

from __future__ import annotations

import json
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.examples import nightly
from tests.support.harness import CHAT_PATH, TEXT_PATH, sse, status_of_reply
from tests.support.serving import Process
from tests.support.waiting import PATIENCE, until

pytestmark = pytest.mark.nightly  # `make test` has engine failures in tests/http/test_process.py

IDLE, HALF_SENT = (1000, 200) if nightly() else (300, 60)
FEW_FILES = 256  # soft limit at the start; the usual 1024 would be too low as well
BODY: dict[str, Any] = {"prompt": "Once upon a time", "temperature": 0, "ignore_eos": True, "max_tokens": 400}
BODY |= {"stream": True}


@contextmanager
def open_files(soft: int) -> Iterator[None]:
    """Limit the open files of this process and its children, unless they raise the limit."""
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * (IDLE + HALF_SENT):
        pytest.skip(f"this machine allows a process {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


@pytest.fixture(scope="module")
def modest(profile_dir: Path, shared_server: Process, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server started with a low limit of open files, once the shared server has measured the profile."""
    with open_files(FEW_FILES):
        process = Process(tmp_path_factory.mktemp("modest") / "stderr", "--profile-dir", str(profile_dir))
    with process:
        yield process
    assert "Too many open files" not in process.log


def text_of(raw: bytes) -> str:
    *chunks, done = sse(raw)
    assert done == "[DONE]"
    return "".join(choice["text"] for chunk in chunks for choice in chunk["choices"])


def files_of(process: Process) -> int:
    """Number of files that the server has open."""
    return len(list(Path(f"/proc/{process.popen.pid}/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files the way Linux shows them")
def test_a_stream_is_answered_among_many_idle_connections(modest: Process) -> None:
    host, port = modest.url.removeprefix("http://").split(":")
    alone = text_of(modest.http.post(TEXT_PATH, json=BODY).content)
    before = files_of(modest)
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}).encode()
    head = f"POST {CHAT_PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    half = (head + f"Content-Length: {len(body)}\r\n\r\n").encode() + body[: len(body) // 2]
    with open_files(4 * (IDLE + HALF_SENT)), ExitStack() as stack:
        lines = stack.enter_context(modest.http.stream("POST", TEXT_PATH, json=BODY)).iter_raw()
        raw = next(lines)

        def connect() -> socket.socket:
            return stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))

        idle = [connect() for _ in range(IDLE)]
        for connection in idle:
            connection.sendall(f"GET /live HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert all(status_of_reply(connection) == 200 for connection in idle)
        waiting = [connect() for _ in range(HALF_SENT)]
        for connection in waiting[::2]:
            connection.sendall(half)
        for connection in waiting[1::2]:
            connection.sendall(head.encode())  # the head has no end
        until(lambda: files_of(modest) >= before + IDLE + HALF_SENT, "the server to accept all connections")
        assert text_of(raw + b"".join(lines)) == alone

        assert modest.http.get("/health").status_code == 200
        assert text_of(modest.http.post(TEXT_PATH, json=BODY).content) == alone
        waiting[0].sendall(body[len(body) // 2 :])  # the slow request is answered
        assert status_of_reply(waiting[0]) == 200
        idle[-1].sendall(f"GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert status_of_reply(idle[-1]) == 200
    until(lambda: files_of(modest) <= before, "the server to close what its clients have closed")
    assert modest.metrics().total("vllm:num_requests_running") == 0
    assert modest.http.get("/health").status_code == 200
