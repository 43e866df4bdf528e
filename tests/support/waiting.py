"""Wait for a condition that another process or thread fulfils, as that a server answers."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import httpx

PATIENCE = 60  # seconds after which a missing event counts as a hang
_POLL = 0.002  # seconds


def until(condition: Callable[[], bool], what: str) -> None:
    """Poll `condition`. Fails after `PATIENCE` seconds without `what`."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(_POLL)


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_ok(http: httpx.Client, path: str) -> bool:
    """Whether there is an answer, with the status 200."""
    try:
        return http.get(path).status_code == 200
    except httpx.TransportError:
        return False
