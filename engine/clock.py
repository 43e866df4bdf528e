"""The one clock that decisions and figures use; tests inject their own."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Monotonic seconds."""


class SystemClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        return time.perf_counter()
