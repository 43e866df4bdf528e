"""The unit file for systemd is valid, and starts the server with flags that exist."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from server.cli import main
from tests.support import REPOSITORY
from tests.support.files import program, run

UNIT = (REPOSITORY / "deploy" / "systemd" / "knapserve.service").read_text("utf-8")
PROGRAM = "/opt/knapserve/.venv/bin/knapserve"


def test_the_units_flags_are_known_to_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """`main` returns 2 for bad settings, here a file that is missing, and raises SystemExit for unknown arguments."""
    (line,) = re.findall(r"^ExecStart=(.+)$", UNIT.replace("\\\n", " "), re.MULTILINE)
    started, command, *flags = shlex.split(line)
    assert (started, command) == (PROGRAM, "serve")
    assert main([command, *flags, "--config", "missing.toml"]) == 2
    assert "missing.toml" in capsys.readouterr().err


def test_the_unit_waits_until_the_server_has_drained() -> None:
    from server.config import ServerConfig
    from server.edge.lifecycle import GRACE
    from server.serve import FLUSH

    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    assert int(seconds) >= ServerConfig().shutdown_timeout + GRACE + FLUSH


@pytest.mark.slow
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "knapserve.service"
    unit.write_text(UNIT.replace(PROGRAM, sys.executable), "utf-8")  # systemd looks for the program
    done = run(program("systemd-analyze", "systemd"), "verify", str(unit))
    assert (done.returncode, done.stderr) == (0, "")
