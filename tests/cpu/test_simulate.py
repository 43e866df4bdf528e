"""Simulated time: the model answers, the profile says how long that takes."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any

import pytest

from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from tests.support import PREPARED, PROMPT_FILE, simulate
from tests.support.cores import made_up_profile


def simulated(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *flags: str) -> dict[str, Any]:
    given = ("--model", str(PREPARED), "--prompts", str(PROMPT_FILE), "--limit", "5", "--max-tokens", "24")
    made_up = partial(LoadedModel, profile=made_up_profile())  # else what is measured here and now decides
    monkeypatch.setattr(simulate, "LoadedModel", made_up)
    monkeypatch.setattr(sys, "argv", ["simulate", *given, *flags])
    simulate.main()
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("streams", [pytest.param("1", marks=pytest.mark.nightly), "2"])
def test_a_simulation_can_be_repeated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, streams: str
) -> None:
    """To the last bit: nothing of it depends on what this machine does meanwhile."""
    flags = ("--shuffle", "1", "--concurrency", streams)
    first = simulated(capsys, monkeypatch, *flags)
    assert first == simulated(capsys, monkeypatch, *flags)
    assert len(first["domains"]) > 3
    assert first["acceptance_error"] is not None


@pytest.mark.nightly
def test_what_drafts_nothing_gains_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = simulated(capsys, monkeypatch, "--policy", "none")
    assert found["speedup"] == found["mean"] == found["lowest"] == 1.0
    assert found["acceptance_error"] is None


@pytest.mark.nightly
def test_an_unsteady_machine_is_seen_and_not_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ("--limit", "3")
    plain = simulated(capsys, monkeypatch, "--policy", "none", "--unsteady", "3", *few)
    assert plain["speedup"] == plain["mean"] == 1.0
    fixed = ("--policy", "layerskip", *few)
    steady, unsteady = (simulated(capsys, monkeypatch, *fixed, "--unsteady", factor) for factor in ("1", "3"))
    assert unsteady["domains"] == pytest.approx(steady["domains"], rel=1e-9), "what is decided without looking"
    looking = [simulated(capsys, monkeypatch, "--unsteady", factor, *few)["speedup"] for factor in ("1", "3")]
    assert looking[0] != pytest.approx(looking[1], rel=1e-6)


def test_a_setting_may_be_another(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert simulated(capsys, monkeypatch, "--set", "knapspec_gamma=0")["acceptance_error"] is None
    with pytest.raises(ConfigError, match="knapspec-rowz=4"):
        simulated(capsys, monkeypatch, "--set", "knapspec_rowz=4")
