"""The clock of decisions and measurements. Tests inject their own."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Return seconds that never go back; only differences have a meaning."""


class SystemClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        return time.perf_counter()
