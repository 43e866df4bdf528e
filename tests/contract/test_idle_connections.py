"""Idle connections take no request's place, change no stream and leak nothing."""

from __future__ import annotations

import resource
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import TEXT_PATH, status_of_reply
from tests.support.serving import MODEL, Process
from tests.support.waiting import PATIENCE, until

IDLE = 600
FEW_FILES = 256  # soft limit at the start, below what the connections need
BODY: dict[str, Any] = {"prompt": "Once upon a time", "temperature": 0, "ignore_eos": True, "max_tokens": 400}


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files the way Linux shows them")
def test_a_stream_is_answered_among_many_idle_connections(
    profile_dir: Path, shared_server: Process, tmp_path: Path
) -> None:
    """The server raises its limit of open files, and closes what its clients have closed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW_FILES, hard))
    try:
        process = Process(tmp_path / "stderr", "--profile-dir", str(profile_dir))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * IDLE), hard))
    with process, ExitStack() as idle:

        def files() -> int:
            return len(list(Path(f"/proc/{process.popen.pid}/fd").iterdir()))

        host, port = process.url.removeprefix("http://").split(":")
        alone = process.http.post(TEXT_PATH, json=BODY).json()["choices"][0]["text"]
        before = files()
        options: Any = {"model": MODEL, "prompt": BODY["prompt"], "max_tokens": 400, "temperature": 0, "stream": True}
        with process.client() as client:
            stream = client.completions.create(**options, extra_body={"ignore_eos": True})
            text = next(stream).choices[0].text
            for _ in range(IDLE):
                connection = idle.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
                connection.sendall(f"GET /live HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                assert status_of_reply(connection) == 200
            assert files() >= before + IDLE
            assert text + "".join(chunk.choices[0].text for chunk in stream if chunk.choices) == alone
        assert process.http.post(TEXT_PATH, json=BODY).json()["choices"][0]["text"] == alone
        idle.close()
        until(lambda: files() <= before, "the server to close what its clients have closed")
    assert "Too many open files" not in process.log
