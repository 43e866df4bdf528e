"""What stands in `examples/` runs as it stands there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import REPOSITORY
from tests.support.serving import Process

FILES = sorted(path for path in (REPOSITORY / "examples").iterdir() if path.suffix in (".py", ".sh"))


@pytest.mark.parametrize("path", [path for path in FILES if path.name != "client.py"], ids=lambda path: path.name)
def test_an_example_prints_an_answer(path: Path, server: Process) -> None:
    command = [sys.executable, str(path)] if path.suffix == ".py" else [str(path)]
    environment = os.environ | {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not done.stderr


def test_every_example_is_listed() -> None:
    listed = (REPOSITORY / "examples" / "README.md").read_text("utf-8")
    assert all(f"`{path.name}`" in listed for path in FILES if path.name != "client.py")
