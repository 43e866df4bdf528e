"""LayerSkip: three rules for the length of drafts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.checkpoints.shapes import shape
from engine.config.engine import EngineConfig
from engine.draft.base import BatchView, Outcome, PolicyContext, RequestView, RoundOutcome
from engine.draft.costs import CostModel
from engine.step import Plan
from papers.layerskip import DraftLength, EarlyExit, steer_threshold
from papers.settings import LayerSkipConfig
from tests.support.cores import ManualClock, made_up_profile
from tests.support.examples import examples

SPEC = shape("smollm2-135m")


def policy(**settings: int | float | str) -> EarlyExit:
    config = EngineConfig(policies=(LayerSkipConfig(**settings),))  # type: ignore[arg-type]
    return EarlyExit(PolicyContext(SPEC, config, CostModel(SPEC, made_up_profile()), ManualClock()))


def outcome(drafted: int, accepted: int) -> Outcome:
    return Outcome(None, drafted, accepted, (), accepted + 1)


def views(made: EarlyExit, count: int = 1) -> list[RequestView[DraftLength]]:
    return [RequestView(str(i), lambda positions: pytest.fail("no pass"), made.new_state()) for i in range(count)]


def played(made: EarlyExit, *rounds: tuple[int, int]) -> list[Plan]:
    """The plan of each round of one request, and the plan after them; `rounds`: drafted and accepted tokens."""
    (view,) = views(made)
    plans = [*made.propose(BatchView([view], (), 1))]
    for drafted, accepted in rounds:
        made.observe([view], RoundOutcome([outcome(drafted, accepted)], 1, 0.1))
        plans += made.propose(BatchView([view], (), 1))
    return plans


def lengths(plans: Sequence[Plan]) -> list[int]:
    return [plan.gamma for plan in plans]


def test_a_static_length_never_changes() -> None:
    made = policy(gamma=3)
    assert made.can_reuse_plans()
    assert {*played(made, (3, 3), (3, 0), (0, 0))} == {Plan(played(made)[0].variants, 3, 0.7)}


def test_a_finite_state_length_grows_after_full_accepts_and_shrinks_after_rejections() -> None:
    made = policy(gamma=3, length="finite-state")
    rounds = [(3, 3), (4, 4), (5, 2), (4, 0), (3, 0), (2, 1), (1, 0), (1, 1), (2, 2)]
    assert lengths(played(made, *rounds)) == [3, 4, 5, 4, 3, 2, 1, 1, 2, 3]
    assert not made.can_reuse_plans()


def test_a_round_without_a_draft_changes_no_length() -> None:
    """The last token of an answer is not drafted, and copied tokens say nothing about the layers."""
    for length in ("finite-state", "adaptive"):
        made = policy(gamma=3, length=length)
        assert len({*played(made, (0, 0), (0, 0))}) == 1


def test_each_request_has_a_length_of_its_own() -> None:
    made = policy(gamma=3, length="finite-state")
    first, second = views(made, 2)
    made.observe([first, second], RoundOutcome([outcome(3, 3), outcome(3, 1)], 2, 0.1))
    assert lengths(made.propose(BatchView([first, second], (), 2))) == [4, 2]


def test_an_adaptive_threshold_follows_the_published_rule() -> None:
    """r ← (r + accepted/drafted) / 2, and θ moves by a tenth of 0.01: up below a rate of 0.9, else down."""
    made = policy(length="adaptive")
    rounds = [(4, 4), (4, 4), (4, 4), (4, 4), (4, 4), (4, 0)]
    rates = [0.5, 0.75, 0.875, 0.9375, 0.96875, 0.484375]
    moves = [0.001 if rate < 0.9 else -0.001 for rate in rates]
    assert moves[2:5] == [0.001, -0.001, -0.001]
    plans = played(made, *rounds)
    assert [plan.min_confidence for plan in plans] == pytest.approx([0.7 + sum(moves[:i]) for i in range(7)])
    assert lengths(plans) == [12] * 7


def test_a_draft_of_the_greatest_length_does_not_lower_the_threshold() -> None:
    state = DraftLength(12, 0.7, acceptance=1.0)
    steer_threshold(state, outcome(12, 12), 0.9)
    assert state.threshold == pytest.approx(0.7)
    steer_threshold(state, outcome(11, 11), 0.9)
    assert state.threshold < 0.7


@examples(100)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 11), st.booleans())
def test_an_adaptive_threshold_stays_between_0_and_1(start: float, target: float, drafted: int, good: bool) -> None:
    state = DraftLength(12, start)
    for _ in range(1500):
        before = state.threshold
        steer_threshold(state, outcome(drafted, drafted if good else 0), target)
        assert 0 < state.threshold < 1
    if good and target < 1:
        assert state.threshold <= before
    if not good and target > 0:
        assert state.threshold >= before
