"""The `live` fixture: servers that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake import FakeEngine
from harness import Live

from server.config import ServerConfig


@pytest.fixture
def live() -> Iterator[Callable[..., Live]]:
    servers: list[Live] = []

    def start(engine: FakeEngine, **settings: Any) -> Live:
        servers.append(Live(engine, ServerConfig(**settings)))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
