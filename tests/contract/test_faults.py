"""Faults of either process under load: every client gets an error and [DONE], or its whole answer."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.harness import CHAT_PATH, TEXT_PATH, sse
from tests.support.serving import Process, descendants_of, runs
from tests.support.waiting import PATIENCE, until

STREAMS = 16
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
SHORT: dict[str, Any] = {"prompt": "Once", "max_tokens": 8, "temperature": 0, "ignore_eos": True}
Serve = Callable[..., Process]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes the way Linux shows them"),
]


@pytest.fixture
def serve(profile_dir: Path, shared_server: Process, tmp_path: Path) -> Iterator[Serve]:
    """Starts servers, all processes of which must be gone in the end."""
    started: list[Process] = []

    def start(*flags: str, **options: Any) -> Process:
        log = tmp_path / f"{len(started)}.log"
        started.append(Process(log, "--profile-dir", str(profile_dir), *flags, **options))
        return started[-1]

    yield start
    for process in started:
        children = descendants_of(process.popen.pid)
        process.close()
        until(lambda children=children: not any(map(runs, children)), "the end of all processes")  # type: ignore[misc]


class Streams:
    """Streams that run when the fault happens, one of them by a schema."""

    def __init__(self, server: Process, tokens: int = 1500) -> None:
        self._server = server
        self._begun = threading.Semaphore(0)
        threads = ThreadPoolExecutor(STREAMS)
        self._streams = [threads.submit(self._read, index, tokens) for index in range(STREAMS)]
        for _ in self._streams:
            assert self._begun.acquire(timeout=PATIENCE)

    def _read(self, index: int, tokens: int) -> list[Any]:
        body: dict[str, Any] = {"stream": True, "max_tokens": tokens, "ignore_eos": True, "temperature": 1.0}
        if index == 0:
            body |= {"messages": [{"role": "user", "content": "A list"}], "response_format": SCHEMA}
        else:
            body |= {"prompt": f"Once upon {index}"}
        data = b""
        path = CHAT_PATH if index == 0 else TEXT_PATH
        url = self._server.url + path
        with suppress(httpx.HTTPError), httpx.stream("POST", url, json=body, timeout=PATIENCE) as reply:
            for piece in reply.iter_raw():
                if not data:
                    self._begun.release()
                data += piece
        return sse(data)

    def wait(self) -> list[list[Any]]:
        """Return the events of each stream once it has ended."""
        return [stream.result(PATIENCE) for stream in self._streams]

    def must_end(self, *codes: str) -> None:
        """All streams end, each with an error of these codes, or with its last chunk."""
        for events in self.wait():
            *_, end, done = events
            assert done == "[DONE]"
            if "error" in end:
                assert end["error"]["code"] in codes
            else:
                assert end["choices"][0]["finish_reason"]


def answers(server: Process) -> bool:
    with suppress(httpx.HTTPError):
        return server.http.post(TEXT_PATH, json=SHORT).status_code == 200
    return False


@pytest.mark.parametrize(
    ("number", "flags", "said"),
    [  # `make test` has test_an_engine_that_stays_silent_is_given_up
        (signal.SIGKILL, (), "SIGKILL"),
        pytest.param(signal.SIGSTOP, ("--heartbeat-timeout", "2"), "not responded", marks=pytest.mark.nightly),
    ],
)
def test_an_engine_that_is_killed_or_stopped_ends_every_stream_and_the_server(
    serve: Serve, number: int, flags: tuple[str, ...], said: str
) -> None:
    server = serve(*flags)
    streams = Streams(server)
    resident = server.metrics().total("knapserve_engine_process_resident_memory_bytes")
    pages = int(Path(f"/proc/{server.engine}/statm").read_text().split()[1])
    assert 0.5 < resident / (pages * os.sysconf("SC_PAGE_SIZE")) < 2, "that of the process with the model"
    os.kill(server.engine, number)
    streams.must_end("engine_unavailable")
    assert server.popen.wait(PATIENCE) == 1
    assert said in server.log
    assert "Traceback" not in server.log


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_a_killed_engine_is_restarted_where_the_setting_asks_for_it(serve: Serve, times: int) -> None:
    server = serve("--restart")
    text = server.http.post(TEXT_PATH, json=SHORT).json()["choices"][0]["text"]
    for restarts in range(1, times + 1):
        streams = Streams(server)
        os.kill(server.engine, signal.SIGKILL)
        streams.must_end("engine_unavailable", "engine_restarting")
        refused = server.http.post(TEXT_PATH, json=SHORT)
        if refused.status_code != 200:
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "engine_restarting")
            assert int(refused.headers["retry-after"]) > 0
            assert server.http.get("/live").status_code == 200
        until(lambda: answers(server), "the engine to serve again")
        assert server.http.get("/health").status_code == 200
        assert server.http.post(TEXT_PATH, json=SHORT).json()["choices"][0]["text"] == text
        assert server.metrics().total("knapserve_engine_restarts") == restarts
    assert server.popen.poll() is None


@pytest.mark.nightly
@pytest.mark.parametrize("which", ["engine", "server"])
def test_a_process_that_is_stopped_for_a_moment_goes_on(serve: Serve, which: str) -> None:
    server = serve("--heartbeat-timeout", "2")
    streams = Streams(server, tokens=300)
    stopped = server.engine if which == "engine" else server.popen.pid
    os.kill(stopped, signal.SIGSTOP)
    time.sleep(1.0 if which == "engine" else 3.0)  # the server's own pause does not count
    os.kill(stopped, signal.SIGCONT)
    every = streams.wait()
    assert [events[-1] for events in every] == ["[DONE]"] * STREAMS
    assert all("error" not in events[-2] for events in every)
    assert server.http.get("/health").status_code == 200


def test_a_killed_server_leaves_no_process(serve: Serve) -> None:
    server = serve()
    streams = Streams(server)
    children = descendants_of(server.popen.pid)
    assert len(children) >= 3, "the engine, and those that follow a grammar"
    server.popen.send_signal(signal.SIGKILL)
    until(lambda: not any(map(runs, children)), "the end of all processes")
    streams.wait()


@pytest.mark.parametrize(
    "fault", ["memory", *(pytest.param(fault, marks=pytest.mark.nightly) for fault in ("raise", "nan"))]
)
def test_a_round_that_fails_ends_its_requests_and_nothing_else(serve: Serve, fault: str) -> None:
    server = serve(fault=f"{fault}:40")
    streams = Streams(server)
    streams.must_end("internal")
    assert server.http.get("/health").status_code == 200
    assert server.http.post(TEXT_PATH, json=SHORT).status_code == 200
    assert server.metrics().total("vllm:request_success_total", finished_reason="error") >= 1
    assert fault == "nan" or "a round has failed" in server.log


@pytest.mark.nightly
def test_a_full_disk_loses_no_request(serve: Serve, tmp_path: Path) -> None:
    """The log is a file here: what cannot be written to it is lost, and nothing else."""
    server = serve("--profile-dir", str(tmp_path / "profiles"), fault="disk:0")
    assert server.http.post(TEXT_PATH, json=SHORT).status_code == 200
    assert server.http.get("/health").status_code == 200
    assert [*(tmp_path / "profiles").iterdir()] == []
    server.popen.terminate()
    assert server.popen.wait(PATIENCE) == 0
