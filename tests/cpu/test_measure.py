"""Measured passes fit into the context."""

from __future__ import annotations

import pytest

from engine.runtime.measure import QUICK, THOROUGH, Grid


@pytest.mark.parametrize("length", [40, 200, 512, 1024, 8192])
@pytest.mark.parametrize("grid", [QUICK, THOROUGH, Grid((1, 4), (64, 8000), (32, 512)), Grid((1,), (8000,), (512,))])
def test_no_pass_goes_beyond_the_context(grid: Grid, length: int) -> None:
    within = grid.within(length)
    assert within.rows
    assert len(within.contexts) >= 2
    assert max(within.contexts) + max(within.rows) <= length
    for rows in within.wide:  # at the first two contexts
        assert within.contexts[1] + rows <= length
