"""The offline searches behind `knapserve tune`: layer sets of self-sd and knn-ssd, and the anchors of knn-ssd."""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from engine.plans import SKIP, TARGET, Variants
from papers.layer_sets import unit

SEED = 1  # the seed of K-means and of the searches, as in Draft & Verify's code
# Of the authors' code (`searching.py`): the share above which a variable means to skip its sublayer. The weight of the
# uncertainty is the one that the library had then, which the authors do not change.
_SKIP_ABOVE = 0.5
_KAPPA = 2.576
_ANCHORS = 10  # anchors of each domain (KNN-SSD, appendix C.1)
# The least similarity is rounded down to these parts, as a vector that is computed again may differ in the last bits.
_PARTS = 10_000


class LayerSearch:
    """Search a layer set by Bayesian optimisation (Zhang et al. 2024, Draft & Verify, section 3.2).

    It maximises tokens per second over which sublayers a draft skips: 2L binary variables, relaxed to [0, 1]. As in the
    authors' code, every layer may be skipped, the first and the last included, and each candidate is measured once.
    """

    def __init__(self, layers: int, measure: Callable[[Variants], float], first: Iterable[Variants] = ()) -> None:
        """`measure` returns the tokens per second of a plan. The plans `first` are measured before others."""
        self.best: Variants = ()
        self.speed = 0.0  # tokens per second of the best
        self._dimensions, self._measure = 2 * layers, measure
        self._first = deque(first)
        self._scored: list[tuple[np.ndarray, float]] = []

    def step(self) -> bool:
        """Measure one more candidate. Returns whether it is the best so far."""
        point = self._suggest()
        plan = (*(SKIP if x > _SKIP_ABOVE else TARGET for x in point), TARGET)
        speed = self._measure(plan)
        self._scored.append((point, speed))
        improved = speed > self.speed
        if improved:
            self.best, self.speed = plan, speed
        return improved

    def _suggest(self) -> np.ndarray:
        if self._first:
            return np.array([float(variant == SKIP) for variant in self._first.popleft()[:-1]])
        from papers.bayesian import suggest

        return suggest(self._scored, self._dimensions, SEED + len(self._scored), _KAPPA)


def representatives(vectors: np.ndarray, count: int, seed: int = SEED) -> list[int]:
    """Return the numbers of the `count` vectors that represent all unit vectors [n, hidden] best; all, if they are few.

    They are the vectors nearest to the centroids of K-means, by cosine (KNN-SSD, eq. 2, with a centroid for each
    representative as in appendix C.1).
    """
    if len(vectors) <= count:
        return list(range(len(vectors)))
    from sklearn.cluster import KMeans  # takes a second to import

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # equal vectors leave clusters empty
        means = KMeans(count, n_init=10, random_state=seed).fit(vectors)
    similarities = vectors @ unit(means.cluster_centers_).T
    members = [np.flatnonzero(means.labels_ == cluster) for cluster in range(count)]
    return sorted(int(own[similarities[own, cluster].argmax()]) for cluster, own in enumerate(members) if own.size)


def choose(domains: Sequence[str], vectors: np.ndarray, count: int = _ANCHORS) -> dict[str, list[int]]:
    """Return the numbers of up to `count` prompts that represent each domain: by default its anchors.

    Prompt i is of `domains[i]`, and has the unit vector `vectors[i]`: [prompts, hidden].
    """
    chosen: dict[str, list[int]] = {}
    for domain in dict.fromkeys(domains):
        own = [i for i, other in enumerate(domains) if other == domain]
        chosen[domain] = [own[i] for i in representatives(vectors[own], count)]
    return chosen


def least_similarity(vectors: np.ndarray, anchors: Sequence[int]) -> float:
    """Return the cosine to the nearest anchor that a prompt needs in order to match.

    It is the lowest of the tuning prompts' own, where an anchor does not count for itself (leave-one-out): a new prompt
    may be as far from the anchors as the most remote of these. `vectors`: unit vectors [prompts, hidden]; `anchors`: of
    these prompts, two or more.
    """
    similarities = vectors @ vectors[list(anchors)].T
    similarities[list(anchors), range(len(anchors))] = -1.0
    return math.floor(float(similarities.max(axis=1).min()) * _PARTS) / _PARTS
