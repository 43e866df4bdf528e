"""Promises against what came: how quickly agreement that changes is noticed, and forgotten, and what was lost."""

from __future__ import annotations

import pytest

from engine.draft.trust import Drift, Losses


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


def test_what_was_gained_excuses_no_loss() -> None:
    losses = Losses()
    losses.add(-100.0)
    losses.add(2.0)
    assert not losses.beyond(2.0)
    losses.add(0.5)
    assert losses.beyond(2.0)
    assert not losses.beyond(0.0), "counted anew"


def test_who_stays_with_a_loss_is_asked_ever_more_rarely_until_it_pays() -> None:
    losses = Losses()
    asked = []
    for second in range(1, 200):
        losses.add(1.0)
        if losses.beyond(4.5):
            asked.append(second)
        assert losses.known == bool(asked)
    assert asked == [5, 5 + 10, 15 + 19, 34 + 37, 71 + 73], "limits of 4.5, 9, 18, 36 and 72, sixteen times at most"
    losses.add(-1000.0)
    assert not losses.known
    losses.add(5.0)
    assert losses.beyond(4.5)
