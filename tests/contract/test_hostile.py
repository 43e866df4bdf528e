"""`tests.support.hostile` against a real server in Python's development mode: nothing lost, no 5xx, no warning."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import REPOSITORY
from tests.support.serving import Process

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]


def hostile(*flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.hostile", *flags]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=800)


def test_hostile_requests_disturb_nobody(
    profile_dir: Path, shared_server: Process, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--profile-dir", str(profile_dir), "--max-queued", "300")
    server = Process(tmp_path / "log", *flags, PYTHONFAULTHANDLER="1", PYTHONDEVMODE="1")
    try:
        tables = hostile("--url", server.url, "--bodies", "10000", "--requests", "5000")
        with capsys.disabled():
            print(f"\n{tables.stdout}")
        assert tables.returncode == 0, tables.stdout
        assert server.http.get("/health").status_code == 200
        server.popen.terminate()
        assert server.popen.wait(60) == 0
    finally:
        server.close()
    found = [line for line in server.log.splitlines() if re.search(r"Warning:|Traceback|Fatal", line)]
    assert found == []


def test_the_report_as_json_has_every_part(server: Process) -> None:
    done = hostile("--url", server.url, "--only", "lowest", "--bodies", "50", "--requests", "20", "--json")
    results = json.loads(done.stdout)
    assert done.returncode == 0
    assert results.keys() == {"bombs", "fuzz", "soak"}
    names = [row["name"] for row in results["bombs"]["rows"]]
    assert names == ["nothing", "schema: lowest integer", "schema: lowest integer, deep", "schema: equal lowest bounds"]
    assert sum(results["soak"]["outcomes"].values()) == 20
