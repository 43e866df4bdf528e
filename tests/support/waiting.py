"""Wait for a condition that another process or thread fulfils."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60  # seconds after which a missing event counts as a hang
_POLL = 0.002  # seconds


def until(condition: Callable[[], bool], what: str) -> None:
    """Poll `condition`. Fails after `PATIENCE` seconds without `what`."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(_POLL)
