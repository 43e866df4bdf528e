"""Log throughput and the speed-up by drafting every few seconds."""

import asyncio
import logging
import time
from collections.abc import Callable

from engine.api import Engine
from server.metrics.registry import Metrics, Totals

log = logging.getLogger("knapserve.server")


class ThroughputLog:
    """Compute rates between two readings of the counters. An idle interval is not logged."""

    def __init__(self, metrics: Metrics, engine: Engine, now: Callable[[], float] = time.monotonic) -> None:
        self._metrics, self._engine, self._now = metrics, engine, now
        self._before, self._then = metrics.totals(), now()

    async def every(self, seconds: float) -> None:
        """Log a line every `seconds`, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            if (facts := self.facts()) is not None:
                log.info("throughput", extra={"facts": facts})

    def facts(self) -> dict[str, float] | None:
        """Return rates in tokens per second since the last call, or None if the server was idle.

        `acceptance` is the share of drafted tokens that were accepted, `speedup` the generated tokens over the
        predicted tokens of plain decoding. Both are absent without data.
        """
        totals, now = self._metrics.totals(), self._now()
        tokens, seconds = Totals(*(a - b for a, b in zip(totals, self._before, strict=True))), now - self._then
        self._before, self._then = totals, now
        stats = self._engine.stats()
        if seconds <= 0 or not (any(tokens) or stats.running or stats.waiting):
            return None
        facts = {
            "generated": round(tokens.generated / seconds, 1),
            "read": round(tokens.prompt / seconds, 1),
            "running": stats.running,
            "waiting": stats.waiting,
            "kv_usage": round(stats.kv_usage, 4),
        }
        if tokens.drafted:
            facts["acceptance"] = round(tokens.accepted / tokens.drafted, 3)
        if tokens.plain:
            facts["speedup"] = round(tokens.decoded / tokens.plain, 2)
        return facts
