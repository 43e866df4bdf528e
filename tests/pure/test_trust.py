"""Promises against what came: how quickly agreement that changes is noticed, and forgotten."""

from __future__ import annotations

import pytest

from engine.draft.trust import Drift


def after(*agreed: int, usual: float = 0.8) -> Drift:
    """One tested token a round, which agrees or not."""
    drift = Drift()
    for round, one in enumerate(agreed):
        drift.add(round, 1, usual, one)
    return drift


OFTEN = (1, 1, 1, 1, 0) * 100


def test_what_is_usual_is_no_drift() -> None:
    assert after().factor(0) == 1.0
    assert after(*OFTEN).factor(500) == pytest.approx(1.0, abs=0.05)
    assert after(*(1,) * 500).factor(500) == 1.0, "better than usual is no drift either"


def test_estimates_that_are_always_too_high_are_no_drift() -> None:
    assert after(*OFTEN, usual=1.0).factor(500) == pytest.approx(1.0, abs=0.05)


def test_harder_text_shows_within_some_tokens() -> None:
    harder = after(*OFTEN, *(1, 0, 0) * 8)
    assert 0.55 < harder.factor(524) < 0.85
    assert after(*OFTEN, *(1, 0, 0) * 40).factor(620) < harder.factor(524)
    assert after(*OFTEN, *(0,) * 400).factor(900) == pytest.approx(0.4), "bounded"


def test_it_is_forgotten_while_nothing_is_drafted() -> None:
    harder = after(*OFTEN, *(1, 0, 0) * 8)
    assert harder.factor(524) < harder.factor(1024) < harder.factor(4000)
    assert harder.factor(4000) == pytest.approx(1.0, abs=0.01)
    back = after(*OFTEN, *(1, 0, 0) * 8, *OFTEN)
    assert back.factor(1024) > 0.95
