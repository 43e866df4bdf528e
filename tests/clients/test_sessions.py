"""Sessions of clients with a running server and real weights (`make clients` installs both).

Each script in `sessions` gets text, the same text as a stream, a tool call and an answer by a schema, and checks them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.checkpoints.default import find_default_model
from tests.support import REPOSITORY
from tests.support.serving import Process

INSTALLED = REPOSITORY / "build" / "clients"
SESSIONS = sorted((Path(__file__).parent / "sessions").glob("*.*"))
PYTHON = INSTALLED / "venv" / "bin" / "python"
pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    log = tmp_path_factory.mktemp("clients") / "stderr"
    flags = ("--model", str(find_default_model()), "--served-model-name", "ours", "--response-store", "1MiB")
    with Process(log, *flags, KNAPSERVE_THREADS="2") as process:
        yield process


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_a_session_of_a_client_passes(session: Path, server: Process) -> None:
    if session.suffix == ".mjs":
        if not (INSTALLED / "node_modules").exists():
            pytest.skip("needs `make clients` and npm")
        script = INSTALLED / session.name  # packages are looked up beside the script
        shutil.copy(session, script)
        command = ["node", str(script)]
    else:
        if not PYTHON.exists():
            pytest.skip("needs `make clients`")
        command = [str(PYTHON), str(session)]
    environ = os.environ | {"CLIENTS_URL": server.url, "CLIENTS_MODEL": "ours"}
    run = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr[-2000:]
