"""Measured passes fit into the context."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.runtime.measure import QUICK, THOROUGH, Grid, Measurement
from tests.support.cores import TickingClock, load


@pytest.mark.parametrize("length", [40, 200, 512, 1024, 8192])
@pytest.mark.parametrize("grid", [QUICK, THOROUGH, Grid((1, 4), (64, 8000), (32, 512)), Grid((1,), (8000,), (512,))])
def test_no_pass_goes_beyond_the_context(grid: Grid, length: int) -> None:
    within = grid.within(length)
    assert within.rows
    assert len(within.contexts) >= 2
    assert max(within.contexts) + max(within.rows) <= length
    for rows in within.wide:  # at the first two contexts
        assert within.contexts[1] + rows <= length


@pytest.mark.parametrize(("seconds", "repetitions"), [(0.02, 3), (1.0, 1)])
def test_a_slow_machine_is_measured_less_often(tiny: Path, seconds: float, repetitions: int) -> None:
    """By a clock: all passes take `seconds`. Three repetitions are made of usual ones, one of those that take long."""
    model = load(model=tiny, max_model_len=128)
    shares: list[float] = []
    Measurement(model.decoder, model.attention, TickingClock(seconds)).run(model.key, progress=shares.append)
    assert shares[-1] == 1.0
    assert len(shares) - 1 == repetitions
