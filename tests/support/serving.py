"""The real command line as a process, and its metrics as numbers."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import openai
from prometheus_client.parser import text_string_to_metric_families

from engine.kernels.library import kernel_library
from tests.support import PREPARED, REPOSITORY, faults
from tests.support.waiting import PATIENCE

MODEL = PREPARED.name
LENGTH = 2048  # of the longest context that is served here
# With our own kernels a row's logits do not depend on its neighbours; without a compiler float32 comes nearest.
DTYPE = "bfloat16" if kernel_library() else "float32"
MAIN = "import sys; from server.cli import main; sys.exit(main(sys.argv[1:]))"

_FAULTY = "import sys; from tests.support.faults import serve; sys.exit(serve(sys.argv[1:]))"


def command(*arguments: str, fault: str | None = None, **environ: str) -> dict[str, Any]:
    """Arguments of `subprocess` that run `knapserve` from this checkout with the prepared fixture."""
    if fault is not None:
        environ[faults.VARIABLE] = fault
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KNAPSERVE_")}
    return {
        "args": [sys.executable, "-c", MAIN if fault is None else _FAULTY, *arguments],
        "cwd": REPOSITORY,
        "env": inherited
        | {"PYTHONPATH": str(REPOSITORY), "KNAPSERVE_MODEL": str(PREPARED), "KNAPSERVE_THREADS": "1"}
        | environ,
        "text": True,
    }


def knapserve(*arguments: str, wait: float = PATIENCE, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself, within `wait` seconds."""
    return subprocess.run(**command(*arguments, **environ), capture_output=True, timeout=wait)


class Process:
    """`knapserve serve` on a free port with the prepared fixture."""

    def __init__(self, log: Path, *flags: str, fault: str | None = None, **environ: str) -> None:
        """`fault`: of the engine's process (`tests.support.faults`)."""
        self._log = log
        flags = ("--port", "0", "--dtype", DTYPE, "--max-model-len", str(LENGTH), *flags)
        with log.open("w") as errors:
            self.popen: subprocess.Popen[str] = subprocess.Popen(
                **command("serve", *flags, fault=fault, **environ), stdout=subprocess.PIPE, stderr=errors
            )
        assert self.popen.stdout is not None
        watchdog = threading.Timer(PATIENCE, self.popen.kill)
        watchdog.start()
        self.ready = self.popen.stdout.readline()
        watchdog.cancel()
        if not self.ready:
            self.close()
            raise AssertionError(f"the server did not start: {self.log}")
        address = re.search(r"http://[\w.]+:\d+", self.ready)
        assert address, self.ready
        self.url = address[0]
        self.http = httpx.Client(base_url=self.url, timeout=PATIENCE)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def client(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, timeout=PATIENCE)

    def async_client(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, timeout=PATIENCE)

    def metrics(self) -> Metrics:
        reply = self.http.get("/metrics")
        assert reply.status_code == 200
        return Metrics(reply.text)

    @property
    def requests(self) -> float:
        """Requests that run or wait."""
        metrics = self.metrics()
        return metrics.total("vllm:num_requests_running") + metrics.total("vllm:num_requests_waiting")

    @property
    def engine(self) -> int:
        """The process id of the server's engine."""
        found = engine_of(self.popen.pid)
        assert found is not None
        return found

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        assert "Traceback" not in self.log

    def close(self) -> None:
        if hasattr(self, "http"):
            self.http.close()
        self.popen.kill()
        self.popen.communicate()


class Metrics:
    """One scrape of /metrics."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def families(self) -> dict[str, Any]:
        return {family.name: family for family in text_string_to_metric_families(self._text)}

    def total(self, name: str, **labels: str) -> float:
        """Sum of all samples of this name with these labels; 0 where there is none."""
        lines = [line for line in self._text.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
        return sum(
            sample.value
            for family in text_string_to_metric_families("\n".join(lines) + "\n")
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


def children_of(process: int) -> list[int]:
    """The process ids of a process's children."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):  # gone meanwhile
                if (folder / "stat").read_text().rpartition(")")[2].split()[1] == str(process):
                    found.append(int(folder.name))
    return found


def descendants_of(process: int) -> list[int]:
    """The process ids of a process's children, and of theirs."""
    return [each for child in children_of(process) for each in (child, *descendants_of(child))]


def runs(process: int) -> bool:
    """Whether the process runs. A zombie that is not reaped yet does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def engine_of(server: int) -> int | None:
    """The process id of a server's engine, once there is one. A server has other children too."""
    for child in children_of(server):
        with contextlib.suppress(OSError):  # gone meanwhile
            started_with = Path(f"/proc/{child}/cmdline").read_bytes()
            if b"engine.host.child" in started_with or faults.__name__.encode() in started_with:
                return child
    return None
