"""`knapserve serve` as a process: the ready line, signals, exit codes."""

from __future__ import annotations

import ast
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support import PREPARED, REPOSITORY

pytestmark = pytest.mark.slow

# The real command line over the fake engine. `boom` as a prompt kills the engine.
PROGRAM = """
import sys, types
from tests.support.fake import FakeEngine
from engine.errors import ModelError

class Engine(FakeEngine):
    def submit(self, request):
        if request.prompt == tuple(b"boom"):
            self.failure = "boom"
        return super().submit(request)

def build_engine(config):
    if config.model is not None:
        raise ModelError(f"no model in {config.model}")
    return Engine(gated=config.max_num_seqs == 1)

sys.modules["engine.host.thread"] = types.SimpleNamespace(build_engine=build_engine)
from server.cli import main
sys.exit(main(sys.argv[1:]))
"""


# Prints the exit code of the command line, and which of the heavy libraries it has imported.
PROBE = """
import sys
from server.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as left:
    code = left.code
heavy = [name for name in ("torch", "fastapi", "pydantic", "uvicorn", "transformers") if name in sys.modules]
print((code, heavy))
"""


def imports(*arguments: str) -> tuple[int, list[str]]:
    """The exit code of a command, and the heavy libraries that it imports."""
    command = [sys.executable, "-c", PROBE, *arguments]
    shown = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    code, heavy = ast.literal_eval(shown.stdout.splitlines()[-1])
    return code, heavy


def start(*flags: str) -> subprocess.Popen[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("KNAPSERVE_")}
    environ["PYTHONPATH"] = str(REPOSITORY)
    command = [sys.executable, "-c", PROGRAM, "serve", "--engine", "thread", *flags]
    return subprocess.Popen(command, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@contextmanager
def serving(*flags: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A process, its ready line and its address; killed if the test leaves it running."""
    process = start("--port", "0", *flags)
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        yield process, ready, ready.partition(" on ")[2].partition(" ")[0]
    finally:
        process.kill()
        process.communicate()


def test_sigterm_after_the_ready_line_exits_0() -> None:
    with serving("--served-model-name", "mine") as (process, ready, url):
        assert ready.startswith("knapserve: serving mine on http://127.0.0.1:")
        facts = "(policy knapspec, device cpu, dtype float32, profile fake.json)"
        assert ready.endswith(f"{facts}; chat in a browser: {url}/\n")
        assert httpx.get(f"{url}/health").status_code == 200
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=20)
    assert (process.returncode, output) == (0, "")
    assert "Traceback" not in errors


def test_a_second_interrupt_ends_the_process_at_once() -> None:
    with serving("--max-num-seqs", "1") as (process, _, url):
        # A request that never ends; a keep-alive comment shows that it runs.
        body = {"prompt": "x", "stream": True}
        with httpx.stream("GET", f"{url}/live"), httpx.Client(base_url=url) as client:
            request = client.build_request("POST", "/v1/completions", json=body)
            with socket.create_connection((request.url.host, request.url.port or 0)) as connection:
                head = "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                head += f"Content-Length: {len(request.content)}\r\n\r\n"
                connection.sendall(head.encode() + request.content)
                while (
                    'vllm:num_requests_running{engine="0",model_name="fake/model"} 1.0'
                    not in client.get("/metrics").text
                ):
                    pass
                process.send_signal(signal.SIGINT)
                while client.get("/health").status_code == 200:
                    pass
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=20)
    assert process.returncode == 130


def test_an_engine_failure_exits_1() -> None:
    with serving() as (process, _, url):
        httpx.post(f"{url}/v1/completions", json={"prompt": "boom"})
        assert httpx.get(f"{url}/health").status_code == 503
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "the engine has failed; the process exits: boom" in errors


def test_a_taken_port_exits_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = start("--port", str(taken.getsockname()[1]))
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 1
    assert errors.startswith("knapserve: error: cannot listen on 127.0.0.1:")
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--model", str(PREPARED)], f"knapserve: error: no model in {PREPARED}\n"),
        (["--max-num-seqs", "0"], "knapserve: error: --max-num-seqs must be at least 1, not 0\n"),
    ],
)
def test_a_model_that_cannot_be_served_exits_2(flags: list[str], error: str) -> None:
    process = start("--port", "0", *flags)
    assert process.communicate(timeout=20) == ("", error)
    assert process.returncode == 2


def test_a_server_on_a_unix_socket_removes_it_at_exit(tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    with serving("--uds", str(path)) as (process, ready, url):
        assert (url, "browser" in ready) == (f"unix:{path}", False)
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
            assert client.get("http://socket/health").status_code == 200
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert (process.returncode, path.exists()) == (0, False)


@pytest.mark.parametrize(
    "flags",
    [
        ["--prot", "1"],
        ["--port", "http"],
        ["--port", "70000"],
        ["/missing"],
        ["one", "--model", "two"],
        ["--model", "bad name"],
        ["--config", "/missing.toml"],
        ["--api-key-file", "/missing"],
        ["--metrics-auth"],
        ["--ssl-keyfile", sys.executable],
        ["--ssl-certfile", sys.executable],
        ["--prior", "/missing.json"],
        ["--model", "synthetic:nothing"],
        ["--model", str(REPOSITORY)],
        ["--kernels", "native", "--dtype", "float32"],
        ["--profile", "/missing.json"],
    ],
)
def test_bad_flags_are_refused_before_anything_heavy_is_imported(flags: list[str]) -> None:
    assert imports("serve", *flags) == (2, [])


def test_a_reader_that_leaves_is_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    code = "import sys; from server.cli import main; sys.exit(main(['models']))"
    command = [sys.executable, "-u", "-c", code]
    done = subprocess.run(command, cwd=REPOSITORY, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("flags", [["--help"], ["serve", "--help"], ["bench", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(flags: list[str]) -> None:
    assert imports(*flags) == (0, [])
