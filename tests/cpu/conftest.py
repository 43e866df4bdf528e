from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.support.cores import tiny_model
from tests.support.timed import TickingClock

torch.set_num_threads(1)  # tests run beside each other, and threads that wait for one another wait busily


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _steady_grammars(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of a grammar takes 50 µs: otherwise a slow moment of the machine delays answers and limits drafts."""
    monkeypatch.setattr("engine.sampling.grammar.time", SimpleNamespace(monotonic=TickingClock(5e-5).now))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random checkpoint of four layers, for tests in float64. Two of its layers draft a quarter of its tokens."""
    directory = tmp_path_factory.mktemp("tiny")
    tiny_model(directory, scale=0.6, drafts=True, max_position_embeddings=1024)
    return directory
