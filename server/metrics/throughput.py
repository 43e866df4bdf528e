"""Log throughput and the speed-up by drafting every few seconds."""

import asyncio
import logging
import time
from collections.abc import Callable

from engine.api import Engine
from engine.types import RoundReport

log = logging.getLogger("knapserve.server")


class ThroughputLog:
    """Sum up the rounds between two lines. An idle interval is not logged."""

    def __init__(self, engine: Engine, now: Callable[[], float] = time.monotonic) -> None:
        self._engine, self._now = engine, now
        self._begin()
        engine.add_listener(self.round)

    def _begin(self) -> None:
        self._since = self._now()
        self._generated = self._read = self._drafted = self._accepted = self._decoded = 0  # tokens
        self._plain = 0.0  # predicted tokens of plain decoding in the time of `_decoded`

    def round(self, report: RoundReport) -> None:
        """Add a round. If it has prompt tokens, its time does not measure decoding."""
        seconds = report.draft_seconds + report.verify_seconds + report.search_seconds + report.other_seconds
        self._read += report.prompt_tokens
        for part in report.rounds:
            self._generated += part.emitted
            self._drafted += part.drafted
            self._accepted += part.accepted
            if part.plain_tpt is not None and not part.copied and not report.prompt_tokens:
                self._decoded += part.emitted
                self._plain += part.plain_tpt * seconds

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
        stats, seconds = self._engine.stats(), self._now() - self._since
        facts = {
            "generated": round(self._generated / seconds, 1),
            "read": round(self._read / seconds, 1),
            "running": stats.running,
            "waiting": stats.waiting,
            "kv_usage": round(stats.kv_usage, 4),
        }
        if self._drafted:
            facts["acceptance"] = round(self._accepted / self._drafted, 3)
        if self._plain:
            facts["speedup"] = round(self._decoded / self._plain, 2)
        idle = not (self._generated or self._read or stats.running or stats.waiting)
        self._begin()
        return None if idle else facts
