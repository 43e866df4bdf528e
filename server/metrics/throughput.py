"""A line in the log every few seconds: how fast text comes, and whether drafting pays."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from engine.api import Engine
from server.metrics.registry import Metrics, Totals

log = logging.getLogger("knapserve.server")


class ThroughputLog:
    """What came between two looks at the counters. Nothing is said of a time in which nothing ran."""

    def __init__(self, metrics: Metrics, engine: Engine, now: Callable[[], float] = time.monotonic) -> None:
        self._metrics, self._engine, self._now = metrics, engine, now
        self._before, self._then = metrics.totals(), now()

    async def every(self, seconds: float) -> None:
        """A line each time, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            if (facts := self.facts()) is not None:
                log.info("throughput", extra={"facts": facts})

    def facts(self) -> dict[str, float] | None:
        """Rates in tokens per second since the last call. `acceptance` is of the tokens drafted, `speedup` how many
        times the tokens came that plain decoding would have brought: each only where there is something to say."""
        totals, now = self._metrics.totals(), self._now()
        came, seconds = Totals(*(a - b for a, b in zip(totals, self._before, strict=True))), now - self._then
        self._before, self._then = totals, now
        stats = self._engine.stats()
        if seconds <= 0 or not (any(came) or stats.running or stats.waiting):
            return None
        facts = {
            "generated": round(came.generated / seconds, 1),
            "read": round(came.read / seconds, 1),
            "running": stats.running,
            "waiting": stats.waiting,
            "kv_usage": round(stats.kv_usage, 4),
        }
        if came.drafted:
            facts["acceptance"] = round(came.accepted / came.drafted, 3)
        if came.undrafted:
            facts["speedup"] = round(came.decoded / came.undrafted, 2)
        return facts
