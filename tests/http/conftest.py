"""The `live` fixture: servers that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from server.config import ServerConfig
from tests.support.fake import FakeEngine
from tests.support.harness import Live


@pytest.fixture
def live() -> Iterator[Callable[..., Live]]:
    servers: list[Live] = []

    def start(engine: FakeEngine, **settings: Any) -> Live:
        servers.append(Live(engine, ServerConfig(**settings)))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
