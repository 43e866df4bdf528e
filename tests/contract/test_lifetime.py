"""From start to SIGTERM: the profile is measured once, and a stopping server leaves no client waiting."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from profiles import store
from tests.support.harness import TEXT_PATH, sse
from tests.support.serving import DTYPE, MODEL, Process, command, engine_of, runs
from tests.support.waiting import PATIENCE, free_port, is_ok, until

BODY: dict[str, Any] = {"prompt": "Once upon a time", "stream": True, "ignore_eos": True, "draft_policy": "none"}
SHUTDOWN = 2  # seconds; many times what the short stream needs, a fraction of what the endless one does
LONG = ("--max-model-len", "8192", "--shutdown-timeout", str(SHUTDOWN))


def test_the_first_start_measures_and_saves_a_profile(shared_server: Process, profile_dir: Path) -> None:
    (path,) = profile_dir.iterdir()
    (profile,) = store.load(path)
    assert profile.key.dtype.startswith(DTYPE)
    assert path == store.path_of(profile.key.hardware, path.parent)
    assert profile.mlp(1) > 0
    assert str(path) in shared_server.ready
    assert shared_server.ready.startswith(f"knapserve: serving {MODEL} on http://127.0.0.1:")
    assert f"policy knapspec, device cpu, dtype {DTYPE}" in shared_server.ready
    assert str(path) in shared_server.log
    (info,) = shared_server.metrics().families["knapserve_profile_info"].samples
    assert (info.labels["file"], info.labels["dtype"]) == (path.name, DTYPE)


def look(port: int) -> tuple[list[httpx.Response], socket.socket]:
    """Ask a server whose model is still loading. Returns replies, and an idle connection."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as http:
        until(lambda: is_ok(http, "/live"), "an answer")
        refused = http.get("/health"), http.post(TEXT_PATH, json={"prompt": "x" * 100_000})
        return [*refused, http.get("/metrics")], socket.create_connection(("127.0.0.1", port))


def test_the_second_start_loads_the_profile_and_sigterm_ends_it(
    shared_server: Process, profile_dir: Path, tmp_path: Path
) -> None:
    """A server is live and not healthy while it loads, whatever silent connection it has."""
    (path,) = profile_dir.iterdir()
    before, port = path.stat(), free_port()
    flags = ("--profile-dir", str(profile_dir), "--port", str(port), *LONG)
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(look, port)
        with Process(tmp_path / "stderr", *flags) as second:
            (*refused, metrics), idle = loading.result(PATIENCE)
            for reply in refused:
                assert (reply.status_code, reply.json()["error"]["code"]) == (503, "loading")
                assert int(reply.headers["retry-after"]) > 0
                assert reply.headers["x-request-id"]
            assert metrics.text.splitlines()[-1] == "knapserve_loading 1.0", "a loading server is up"
            assert second.http.get("/health").status_code == 200
            assert "\nknapserve_loading 0.0\n" in second.http.get("/metrics").text
            assert f"latency profile loaded: {path}\n" in second.log
            assert list(profile_dir.iterdir()) == [path]
            now = path.stat()
            assert (now.st_ino, now.st_mtime_ns) == (before.st_ino, before.st_mtime_ns), "it is not measured again"
            check_that_sigterm_finishes_short_requests_and_ends_long_ones(second)
            idle.close()


def check_that_sigterm_finishes_short_requests_and_ends_long_ones(second: Process) -> None:
    """One stream has a few tokens left, the other thousands: both end with [DONE], the long one after an error."""
    http = second.http
    with (
        http.stream("POST", TEXT_PATH, json=BODY | {"max_tokens": 8000, "n": 8, "temperature": 1}) as endless,
        http.stream("POST", TEXT_PATH, json=BODY | {"max_tokens": 16}) as short,
    ):
        endless_bytes, short_bytes = endless.iter_raw(), short.iter_raw()
        first, beginning = next(endless_bytes), next(short_bytes)
        second.popen.send_signal(signal.SIGTERM)
        until(lambda: http.get("/health").status_code == 503, "the server to drain")
        assert http.get("/live").status_code == 200
        assert second.popen.poll() is None
        refused = http.post(TEXT_PATH, json={"prompt": "x"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "draining")
        assert int(refused.headers["retry-after"]) > 0
        with second.client() as client, pytest.raises(openai.InternalServerError) as unavailable:
            client.completions.create(model=MODEL, prompt="x")
        assert unavailable.value.status_code == 503
        *finished, done = sse(beginning + b"".join(short_bytes))
        assert done == "[DONE]"
        assert finished[-1]["choices"][0]["finish_reason"] == "length"
        assert finished[-1]["metrics"]["speculative_decoding"]["num_rounds"] == 16
        *chunks, error, done = sse(first + b"".join(endless_bytes))
        assert done == "[DONE]"
        assert error.keys() == {"error"}
        assert error["error"]["code"] == "draining"
        assert all(choice["finish_reason"] is None for chunk in chunks for choice in chunk["choices"])
    assert second.popen.wait(PATIENCE) == 0
    assert "Traceback" not in second.log
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{second.url}/health")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the engine's process the way Linux shows it")
def test_sigterm_while_the_model_loads_ends_both_processes(tmp_path: Path) -> None:
    """The server needs its own handler: the first process of a container gets no other signals."""
    arguments = command("serve", "--port", "0", "--profile-dir", str(tmp_path))
    with subprocess.Popen(**arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        try:
            until(lambda: engine_of(server.pid) is not None, "its engine's process")
            engine = engine_of(server.pid)
            server.send_signal(signal.SIGTERM)
            said, complained = server.communicate(timeout=PATIENCE)
        finally:
            server.kill()  # else leaving would wait for it
    assert server.returncode == 128 + signal.SIGTERM
    assert (said, complained) == ("", "")
    assert engine is not None
    until(lambda: not runs(engine), "the end of the engine's process")


def test_an_engine_whose_server_ends_first_exits_silently() -> None:
    """A signal may end the server between the start of its child and the first message to it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = [sys.executable, "-m", "engine.host.child", str(theirs.fileno())]
        with subprocess.Popen(child, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE) as engine:
            ours.shutdown(socket.SHUT_RDWR)
            _, complained = engine.communicate(timeout=PATIENCE)
    assert (engine.returncode, complained) == (1, b"")
