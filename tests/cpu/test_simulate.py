"""Simulated time: the model answers, and the profile decides how long passes take."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import PREPARED, PROMPT_FILE, simulate
from tests.support.cores import made_up_profile


def simulated(capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, Any]:
    given = ("--model", str(PREPARED), "--prompts", str(PROMPT_FILE), "--limit", "5", "--max-tokens", "24")
    simulate.main([*given, *flags], made_up_profile())  # a measured one would differ from machine to machine
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("streams", [pytest.param("1", marks=pytest.mark.nightly), "2"])
def test_a_simulation_repeats_exactly(capsys: pytest.CaptureFixture[str], streams: str) -> None:
    """Nothing depends on this machine's load."""
    flags = ("--shuffle", "1", "--concurrency", streams)
    first = simulated(capsys, *flags)
    assert first == simulated(capsys, *flags)
    assert len(first["domains"]) > 3
    assert first["acceptance_error"] is not None


@pytest.mark.nightly
def test_slow_moments_change_decisions_but_not_measured_speed(capsys: pytest.CaptureFixture[str]) -> None:
    few = ("--limit", "3", "--max-tokens", "200")
    plain = simulated(capsys, "--policy", "none", "--unsteady", "3", *few)
    assert plain["speedup"] == plain["mean"] == plain["lowest"] == 1.0
    assert plain["acceptance_error"] is None
    fixed = ("--policy", "layerskip", *few)
    steady, unsteady = (simulated(capsys, *fixed, "--unsteady", factor) for factor in ("1", "3"))
    assert unsteady["domains"] == pytest.approx(steady["domains"], rel=1e-9), (
        "decisions that ignore the clock do not change"
    )
    looking = [simulated(capsys, "--unsteady", factor, *few)["speedup"] for factor in ("1", "3")]
    assert looking[0] != pytest.approx(looking[1], rel=1e-6)


def test_a_setting_can_be_varied_by_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulated(capsys, "--knapspec-gamma", "0")["acceptance_error"] is None
