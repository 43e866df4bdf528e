"""`tests.support.hostile` against a real server in Python's development mode: nothing lost, no 5xx, no warning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.hostile.__main__ import main
from tests.support.serving import Process

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]


def test_hostile_requests_disturb_nobody(
    profile_dir: Path, shared_server: Process, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--profile-dir", str(profile_dir), "--max-queued", "300")
    with Process(tmp_path / "log", *flags, PYTHONFAULTHANDLER="1", PYTHONDEVMODE="1") as server:
        code = main(["--url", server.url, "--bodies", "10000", "--requests", "5000"])
        tables = capsys.readouterr().out
        with capsys.disabled():
            print(f"\n{tables}")
        assert code == 0, tables
        assert server.http.get("/health").status_code == 200
        server.popen.terminate()
        assert server.popen.wait(60) == 0
    assert [line for line in server.log.splitlines() if re.search(r"Warning:|Fatal", line)] == []


def test_the_report_has_every_part(server: Process, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url", server.url, "--only", "lowest", "--bodies", "50", "--requests", "20"]) == 0
    shown = capsys.readouterr().out
    for part in ("nothing", "schema: lowest integer", "schema: equal lowest bounds", "fuzz: 50", "soak: 20"):
        assert part in shown
