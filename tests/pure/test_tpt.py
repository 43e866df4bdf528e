"""The objective's expectations against the stop rule played out, and the plans of policies that never change."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.draft.base import Outcome, Plan
from engine.draft.fixed import uniform_variants
from engine.draft.objective import HOPE, POOLED_ROWS, PRIOR, Prices, Question, choose, evidence, smoothed
from engine.draft.tpt import THRESHOLDS, AcceptanceCounts, expectations, expected_tokens
from engine.model.spec import exit_plan
from engine.model.synthetic import shape
from tests.support.examples import examples

BINS = len(THRESHOLDS)
COUNTS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=BINS, max_size=BINS
).filter(lambda bins: any(map(any, bins))).map(lambda bins: np.array(bins, float))  # fmt: skip


def play(kinds: tuple[tuple[int, int], ...], threshold: int) -> tuple[int, int]:
    """One round: draft tokens of these kinds (confidence bin, agrees) come in turn. Returns drafted and accepted."""
    drafted = 0
    for confidence, _ in kinds:
        drafted += 1
        if confidence < threshold:
            break  # that token is still verified
    accepted = 0
    for _, agrees in kinds[:drafted]:
        if not agrees:
            break
        accepted += 1
    return drafted, accepted


def enumerated(counts: np.ndarray, threshold: int, gamma: int) -> tuple[float, float]:
    """Expected drafted and accepted tokens over all sequences of gamma rows drawn from the counts."""
    share = counts / counts.sum()
    kinds = [(b, a) for b in range(BINS) for a in (0, 1) if share[b, a] > 0]
    drafted = accepted = 0.0
    for sequence in product(kinds, repeat=gamma):
        chance = float(np.prod([share[kind] for kind in sequence]))
        d, a = play(sequence, threshold)
        drafted += chance * d
        accepted += chance * a
    return drafted, accepted


@examples(25)
@given(st.lists(st.tuples(st.integers(0, BINS - 1), st.booleans()), min_size=1, max_size=5))
def test_expectations_are_the_stop_rule_played_out(rows: list[tuple[int, bool]]) -> None:
    counts = np.zeros((BINS, 2))
    for confidence, agrees in rows:
        counts[confidence, int(agrees)] += 1
    drafted, accepted = expectations(counts[None], 3)
    for threshold, gamma in product(range(BINS), range(4)):
        played = enumerated(counts, threshold, gamma)
        assert (drafted[0, threshold, gamma], accepted[0, threshold, gamma]) == pytest.approx(played)


@examples(50)
@given(COUNTS, st.integers(0, 12))
def test_without_threshold_they_are_the_papers(counts: np.ndarray, gammas: int) -> None:
    drafted, accepted = expectations(counts[None], gammas)
    alpha = counts[:, 1].sum() / counts.sum()
    assert drafted[0, 0] == pytest.approx(range(gammas + 1))
    assert 1 + accepted[0, 0] == pytest.approx([expected_tokens(alpha, gamma) for gamma in range(gammas + 1)])


@examples(50)
@given(st.lists(COUNTS, min_size=1, max_size=3), st.integers(0, 12))
def test_more_gamma_never_drafts_or_accepts_less(plans: list[np.ndarray], gammas: int) -> None:
    drafted, accepted = expectations(np.stack(plans), gammas)
    assert drafted.shape == accepted.shape == (len(plans), BINS, gammas + 1)
    assert not drafted[:, :, 0].any()
    assert not accepted[:, :, 0].any()
    assert (np.diff(drafted, axis=2) >= 0).all()
    assert (np.diff(accepted, axis=2) >= 0).all()
    assert (accepted <= drafted + 1e-9).all()


@examples(50)
@given(COUNTS)
def test_a_higher_threshold_never_drafts_more(counts: np.ndarray) -> None:
    drafted, accepted = expectations(counts[None], 6)
    assert (np.diff(drafted, axis=1) <= 1e-9).all()
    assert (np.diff(accepted, axis=1) <= 1e-9).all()


@examples(30)
@given(st.lists(COUNTS, min_size=2, max_size=4))
def test_plans_do_not_touch_each_other(plans: list[np.ndarray]) -> None:
    """A batch is its plans one by one."""
    together = expectations(np.stack(plans), 4)
    for i, counts in enumerate(plans):
        for a, b in zip(together, expectations(counts[None], 4), strict=True):
            assert a[i] == pytest.approx(b[0])


@examples(30)
@given(st.lists(COUNTS, min_size=2, max_size=4))
def test_what_is_believed_beforehand_weighs_little(plans: list[np.ndarray]) -> None:
    """Each plan is believed to have a few tokens more, the same for all: made-up ones, and what they have in common."""
    added = smoothed(np.stack(plans)) - np.stack(plans)
    assert (added > 0).all()
    assert added == pytest.approx(np.stack([added[0]] * len(plans)))
    assert added[0].sum() == pytest.approx(PRIOR.sum() + POOLED_ROWS)
    assert smoothed(np.zeros((1, BINS, 2)))[0] == pytest.approx(PRIOR), "nothing is in common where nothing was seen"


def best_by_loops(counts: np.ndarray, asked: Question) -> float:
    """The highest TPT of all plans, thresholds and γ, one after the other, from [plans, bins, 2]."""
    prices, best = asked.prices, 0.0
    for plan, threshold, gamma in product(range(len(counts)), range(BINS), range(1, prices.gamma + 1)):
        share = counts[plan] / counts[plan].sum()
        sure, both = share[threshold:].sum(), share[threshold:, 1].sum()
        drafted = sum(sure**k for k in range(gamma))
        accepted = share[:, 1].sum() * sum(both**k for k in range(gamma))
        passes = sum(1 - (1 - sure**k) ** prices.requests for k in range(gamma))
        seconds = passes * prices.draft[plan] + prices.overhead + prices.requests * accepted * prices.accepted
        seconds += np.interp(prices.requests * (1 + drafted), prices.rows, prices.verify)
        best = max(best, float((1 + accepted) / seconds * asked.trust[plan]))
    return best


@examples(40)
@given(st.lists(COUNTS, min_size=1, max_size=4), st.sampled_from([1, 1, 4]), st.data())
def test_a_choice_is_the_best_of_all(plans: list[np.ndarray], requests: int, data: st.DataObject) -> None:
    """And what may be better is better than it, were more of its tokens to agree."""
    several = st.lists(st.floats(0.5, 1.5), min_size=len(plans), max_size=len(plans))
    draft, trust = [1e-4 * share for share in data.draw(several)], data.draw(several)
    prices = Prices(requests, 5, draft, [1, 4, 6 * requests], [4e-4, 5e-4, 9e-4], 5e-5, 3e-6)
    own = [data.draw(st.none() | COUNTS.map(lambda counts: counts.ravel().tolist())) for _ in plans]
    drift = data.draw(st.floats(0.4, 1.0))
    asked = Question([p.ravel().tolist() for p in plans], own, drift, trust, prices, hope=requests == 1)
    chosen, other = choose(asked)
    assert chosen.tpt == pytest.approx(best_by_loops(evidence(asked), asked))
    hoped = evidence(asked)
    hoped[:, -1, 1] += HOPE
    hoped[chosen.plan] = PRIOR * [1.0, 0.0]  # of the others
    expected = best_by_loops(hoped, asked)
    if expected != pytest.approx(chosen.tpt):
        assert (other is not None) == (requests == 1 and expected > chosen.tpt)
    assert other is None or other.plan != chosen.plan


@pytest.mark.parametrize(
    ("alpha", "gamma", "tokens"), [(0.0, 5, 1.0), (1.0, 5, 6.0), (0.5, 2, 1.75), (0.9, 0, 1.0), (0.5, 1, 1.5)]
)
def test_expected_tokens(alpha: float, gamma: int, tokens: float) -> None:
    assert expected_tokens(alpha, gamma) == pytest.approx(tokens)


@examples(60)
@given(
    st.floats(1, 40),
    st.lists(
        st.tuples(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=10), st.floats(0.1, 1)), max_size=12
    ),
)
def test_counts_remember_no_more_than_their_memory(
    memory: float, rounds: list[tuple[list[tuple[float, bool]], float]]
) -> None:
    counts = AcceptanceCounts(memory)
    seen = 0.0
    for rows, weight in rounds:
        counts.add([c for c, _ in rows], [a for _, a in rows], weight)
        seen += weight * len(rows)
        assert counts.total <= memory
        assert counts.total <= seen + 1e-9
        assert counts.counts.sum() == pytest.approx(counts.total)
        assert (counts.counts >= 0).all()
    if seen <= memory:
        assert counts.total == pytest.approx(seen)


def test_what_is_old_fades() -> None:
    counts = AcceptanceCounts(memory=10)
    counts.add([0.95] * 10, [False] * 10)
    shares = []
    for _ in range(5):
        counts.add([0.95] * 5, [True] * 5)
        shares.append(float(counts.counts[-1, 1]) / counts.total)
    assert shares == sorted(shares)
    assert shares[-1] > 0.8


@pytest.mark.parametrize(
    ("confidence", "bin_"),
    [(0.0, 0), (0.29, 0), (0.3, 1), (0.5, 2), (0.69, 3), (0.7, 4), (0.8, 5), (0.89, 5), (0.9, 6), (1.0, 6)],
)
def test_a_confidence_falls_into_the_bin_of_the_highest_threshold_it_meets(confidence: float, bin_: int) -> None:
    counts = AcceptanceCounts()
    counts.add([confidence], [True])
    assert counts.counts[:, 1].tolist() == [float(i == bin_) for i in range(BINS)]
    assert THRESHOLDS[bin_] <= confidence


@examples(100)
@given(st.integers(1, 80), st.floats(0, 1))
def test_uniform_skips_whole_layers_at_even_distances(layers: int, ratio: float) -> None:
    variants = uniform_variants(layers, ratio)
    skip = round(ratio * layers)
    assert len(variants) == 2 * layers + 1
    assert variants.count(0) == 2 * skip
    assert variants[0:-1:2] == variants[1::2]
    assert variants[0] == 1 or skip == layers
    skipped = [i for i in range(layers) if not variants[2 * i]]
    distances = [b - a for a, b in pairwise(skipped)]
    assert not distances or max(distances) - min(distances) <= 1
    assert not skipped or skipped[-1] == layers - 1


@examples(60)
@given(st.integers(1, 40), st.data())
def test_an_exit_keeps_the_first_layers(layers: int, data: st.DataObject) -> None:
    depth = data.draw(st.integers(1, layers))
    variants = exit_plan(replace(shape("smollm2-135m"), layers=layers), depth)
    assert variants == (1,) * (2 * depth) + (0,) * (2 * (layers - depth)) + (1,)


@examples(60)
@given(st.integers(0, 12), st.integers(-3, 12))
def test_a_plan_is_capped_in_length_and_nothing_else(gamma: int, most: int) -> None:
    plan = Plan((0, 1, 1, 0, 0, 1), gamma, 0.7, 0.0, 12.0, 0.9)
    capped = plan.capped(most)
    assert capped == Plan((0, 1, 1, 0, 0, 1), max(min(gamma, most), 0), 0.7, 0.0, 12.0, 0.9)
    assert (capped.skipped_attention, capped.skipped_mlp) == (2, 1)


@pytest.mark.parametrize(("drafted", "accepted", "tested"), [(0, 0, 0), (3, 3, 3), (3, 0, 1), (3, 2, 3)])
def test_tested_are_the_accepted_and_the_first_rejection(drafted: int, accepted: int, tested: int) -> None:
    assert Outcome(Plan((1, 1), 3), drafted, accepted, (0.5,) * drafted, accepted + 1).tested == tested
