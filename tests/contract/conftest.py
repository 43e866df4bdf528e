"""One server for most of the tests: it measures its profile when it starts, into an empty directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from tests.support.serving import Process
from tests.support.waiting import until


@pytest.fixture(scope="session")
def profile_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profiles") / "made" / "by the server"


@pytest.fixture(scope="session")
def shared_server(profile_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process(tmp_path_factory.mktemp("log") / "stderr", "--profile-dir", str(profile_dir)) as process:
        yield process


@pytest.fixture
def server(shared_server: Process) -> Iterator[Process]:
    """The shared server, idle before a test and after it."""
    yield shared_server
    until(lambda: shared_server.metrics().total("vllm:num_requests_running") == 0, "an idle server")
    assert shared_server.http.get("/health").status_code == 200


@pytest.fixture
def client(server: Process) -> Iterator[openai.OpenAI]:
    with server.client() as client:
        yield client
