"""The objective's expectations equal the enumerated stop rule; plans of the policies that never change."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.results import expected_tokens
from engine.draft.fixed import uniform_variants
from engine.draft.tpt import THRESHOLDS, Prices, count, expectations, objective
from engine.plans import skipped
from engine.step import Plan
from tests.support.examples import examples

BINS = len(THRESHOLDS)
COUNTS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=BINS, max_size=BINS
).filter(lambda bins: any(map(any, bins))).map(lambda bins: np.array(bins, float))  # fmt: skip


def play(kinds: tuple[tuple[int, int], ...], threshold: int) -> tuple[int, int]:
    """Play one round whose draft tokens have these kinds (confidence bin, agrees). Returns drafted and accepted."""
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
def test_expectations_equal_an_enumeration_of_the_stop_rule(rows: list[tuple[int, bool]]) -> None:
    counts = np.zeros((BINS, 2))
    for confidence, agrees in rows:
        counts[confidence, int(agrees)] += 1
    drafted, accepted = expectations(counts[None], 3)
    for threshold, gamma in product(range(BINS), range(4)):
        played = enumerated(counts, threshold, gamma)
        assert (drafted[0, threshold, gamma], accepted[0, threshold, gamma]) == pytest.approx(played)


@examples(50)
@given(COUNTS, st.integers(0, 12))
def test_expectations_without_a_threshold_equal_the_papers_formula(counts: np.ndarray, gammas: int) -> None:
    drafted, accepted = expectations(counts[None], gammas)
    alpha = counts[:, 1].sum() / counts.sum()
    assert drafted[0, 0] == pytest.approx(range(gammas + 1))
    assert 1 + accepted[0, 0] == pytest.approx([expected_tokens(alpha, gamma) for gamma in range(gammas + 1)])


@examples(30)
@given(st.lists(COUNTS, min_size=2, max_size=4))
def test_a_batch_of_plans_equals_each_plan_alone(plans: list[np.ndarray]) -> None:
    """Plans in a batch do not affect each other."""
    together = expectations(np.stack(plans), 4)
    assert [part.shape for part in together] == [(len(plans), BINS, 5)] * 2
    for i, counts in enumerate(plans):
        for a, b in zip(together, expectations(counts[None], 4), strict=True):
            assert a[i] == pytest.approx(b[0])


def best_by_loops(counts: np.ndarray, prices: Prices) -> float:
    """The highest tokens per second of one plan over all thresholds and γ, from counts [bins, 2], by loops."""
    best, share = 0.0, counts / counts.sum()
    for threshold, gamma in product(range(BINS), range(1, prices.gamma + 1)):
        sure, both = share[threshold:].sum(), share[threshold:, 1].sum()
        drafted = sum(sure**k for k in range(gamma))
        accepted = share[:, 1].sum() * sum(both**k for k in range(gamma))
        passes = sum(1 - (1 - sure**k) ** prices.requests for k in range(gamma))
        seconds = passes * prices.draft[0]
        seconds += np.interp(prices.requests * (1 + drafted), prices.rows, prices.verify)
        best = max(best, float((1 + accepted) / seconds))
    return best


@examples(40)
@given(COUNTS, st.sampled_from([1, 1, 4]), st.floats(0.5, 1.5))
def test_the_objectives_optimum_equals_a_search_over_all_thresholds_and_gammas(
    counts: np.ndarray, requests: int, share: float
) -> None:
    verify = np.array([4e-4, 5e-4, 9e-4])
    prices = Prices(requests, 5, np.array([1e-4 * share]), [1, 4, 6 * requests], verify)
    found = objective(counts[None], prices)
    assert found.tpt[0][found.best(0)] == pytest.approx(best_by_loops(counts, prices))


@pytest.mark.parametrize(
    ("confidence", "bin_"),
    [(0.0, 0), (0.29, 0), (0.3, 1), (0.5, 2), (0.69, 3), (0.7, 4), (0.8, 5), (0.89, 5), (0.9, 6), (1.0, 6)],
)
def test_a_confidence_falls_into_the_bin_of_the_highest_threshold_it_meets(confidence: float, bin_: int) -> None:
    assert count([confidence], [True])[:, 1].tolist() == [float(i == bin_) for i in range(BINS)]
    assert THRESHOLDS[bin_] <= confidence


@examples(100)
@given(st.integers(1, 80), st.floats(0, 1))
def test_a_uniform_plan_skips_whole_layers_at_even_distances(layers: int, ratio: float) -> None:
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
@given(st.integers(0, 12), st.integers(-3, 12))
def test_capping_a_plan_changes_only_its_length(gamma: int, most: int) -> None:
    plan = Plan((0, 1, 1, 0, 0, 1), gamma, 0.7, 0.0, 12.0, 0.9)
    capped = plan.capped(most)
    assert capped == Plan((0, 1, 1, 0, 0, 1), max(min(gamma, most), 0), 0.7, 0.0, 12.0, 0.9)
    assert skipped(capped.variants) == (2, 1)
