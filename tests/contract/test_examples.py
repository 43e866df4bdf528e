"""Every file in `examples/` runs unchanged against a server."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support import REPOSITORY
from tests.support.serving import Process

FILES = sorted(path for path in (REPOSITORY / "examples").iterdir() if path.suffix in (".py", ".sh"))


NEEDS = {"chat_langchain.py": "langchain_openai"}  # modules that `make nightly` installs


@pytest.mark.parametrize("path", [path for path in FILES if path.name != "client.py"], ids=lambda path: path.name)
def test_an_example_prints_an_answer(path: Path, request: pytest.FixtureRequest) -> None:
    needed = NEEDS.get(path.name)
    if needed and find_spec(needed) is None:
        pytest.skip(f"needs {needed}, which `make nightly` installs")
    server: Process = request.getfixturevalue("server")
    command = [sys.executable, str(path)] if path.suffix == ".py" else [str(path)]
    environment = os.environ | {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not done.stderr


def test_every_example_is_listed() -> None:
    listed = (REPOSITORY / "examples" / "README.md").read_text("utf-8")
    assert all(f"`{path.name}`" in listed for path in FILES if path.name != "client.py")
