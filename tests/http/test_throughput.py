"""Throughput lines cover the time since the last line; an idle engine logs none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from engine.errors import ConfigError
from engine.types import RequestRound, RoundReport
from server.config import ServerConfig
from server.metrics.throughput import ThroughputLog
from tests.support.fake import FakeEngine
from tests.support.harness import Live


class Seconds:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def a_round(part: RequestRound, seconds: float) -> RoundReport:
    return RoundReport((), (part,), 1, 0, 0.5, 5, 0, 0.0, seconds, 0.0, 0.0)


@pytest.fixture
def watched() -> tuple[FakeEngine, Seconds, ThroughputLog]:
    engine, seconds = FakeEngine(), Seconds()
    return engine, seconds, ThroughputLog(engine, seconds)


def test_rates_cover_the_time_since_the_last_line(
    watched: tuple[FakeEngine, Seconds, ThroughputLog],
) -> None:
    engine, seconds, lines = watched
    drafted = RequestRound("a", "knapspec", 4, 5, 3, 5, 9, 1, 1, 8.0, 0.5, plain_tpt=2.0)
    lines.round(a_round(drafted, 1.0))
    seconds.now += 2
    facts = lines.facts()
    assert facts is not None
    assert facts["generated"] == 2.0
    assert (facts["acceptance"], facts["speedup"]) == (0.6, 2.0)
    engine.running.add("a")
    lines.round(a_round(RequestRound("a", "knapspec", 1, 0, 0, 0, 9, 0, 0, 2.0, None, plain_tpt=2.0), 0.5))
    seconds.now += 0.5
    facts = lines.facts()
    assert facts == {"generated": 2.0, "read": 0.0, "running": 1, "waiting": 0, "kv_usage": 0.5, "speedup": 1.0}


def test_a_policy_without_predictions_has_no_speed_up(
    watched: tuple[FakeEngine, Seconds, ThroughputLog],
) -> None:
    _, seconds, lines = watched
    lines.round(a_round(RequestRound("a", "none", 1, 0, 0, 0, 9, 0, 0, None, None), 1.0))
    seconds.now += 1
    facts = lines.facts()
    assert facts is not None
    assert "speedup" not in facts
    assert "acceptance" not in facts


def test_an_idle_engine_logs_no_line(watched: tuple[FakeEngine, Seconds, ThroughputLog]) -> None:
    engine, seconds, lines = watched
    seconds.now += 10
    assert lines.facts() is None
    engine.running.add("slow")
    seconds.now += 10
    facts = lines.facts()
    assert facts is not None
    assert (facts["generated"], facts["running"]) == (0.0, 1)


@pytest.mark.parametrize("interval", [2.5, 0.0])
def test_lines_are_logged_at_the_interval_that_is_set(
    live: Callable[..., Live], monkeypatch: pytest.MonkeyPatch, interval: float
) -> None:
    intervals: list[float] = []

    async def every(self: ThroughputLog, seconds: float) -> None:
        intervals.append(seconds)

    monkeypatch.setattr(ThroughputLog, "every", every)
    server = live(FakeEngine(), log_stats_interval=interval)
    assert server.client.get("/live").status_code == 200
    assert intervals == ([interval] if interval else [])


def test_a_line_is_logged_until_the_log_is_cancelled(
    watched: tuple[FakeEngine, Seconds, ThroughputLog], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "knapserve.server")
    engine, seconds, lines = watched
    engine.running.add("slow")
    seconds.now += 1

    async def first_line() -> None:
        task = asyncio.create_task(lines.every(0))
        while not caplog.records:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(first_line(), 20))
    (record,) = caplog.records
    assert record.message == "throughput"
    assert record.facts["running"] == 1  # type: ignore[attr-defined]


def test_an_interval_below_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="--log-stats-interval"):
        ServerConfig(log_stats_interval=-1)
