"""Expected tokens, drafted tokens and time of a round: the objective (docs/method.md).

A draft token has a confidence c and, if everything before it was accepted, either agrees with the target or not.
Counted over rows: p_a = P(agrees), p_c = P(c ≥ θ), p_ca = both. A round of at most γ tokens that stops after a token
with c < θ then drafts and gets accepted, in expectation,

    D(γ) = Σ_{k<γ} p_c^k            A(γ) = p_a · Σ_{k<γ} p_ca^k

which is the replay of the stop rule over the rows, taken as exchangeable. With θ = 0 it is the paper's
E(α, γ) = 1 + A(γ) = (1 − α^{γ+1}) / (1 − α).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

THRESHOLDS = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9)  # lower edges of the confidence bins, and the θ to choose from


def count(confidences: Iterable[float], agreed: Iterable[bool]) -> np.ndarray:
    """Tested draft tokens by confidence bin and outcome: [bins, rejected | agreed]."""
    counts = np.zeros((len(THRESHOLDS), 2))
    for confidence, right in zip(confidences, agreed, strict=False):
        counts[bisect_right(THRESHOLDS, confidence, 1) - 1, int(right)] += 1
    return counts


def expectations(counts: np.ndarray, gammas: int) -> tuple[np.ndarray, np.ndarray]:
    """D and A for every plan, threshold and γ: counts [plans, bins, 2] -> two of [plans, thresholds, gammas + 1]."""
    # Shares of the counts at or above each θ.
    above = counts[:, ::-1].cumsum(axis=1)[:, ::-1] / counts.sum(axis=(1, 2))[:, None, None]
    p_a = above[:, 0, 1, None, None]
    rates = np.stack([above.sum(axis=2), above[:, :, 1]])  # p_c and p_ca
    sums = np.zeros((*rates.shape, gammas + 1))
    powers = sums[..., 1:]
    powers[..., :1], powers[..., 1:] = 1.0, rates[..., None]
    powers.cumprod(axis=-1, out=powers).cumsum(axis=-1, out=powers)
    return sums[0], p_a * sums[1]


def lock_step_passes(drafted: np.ndarray, requests: int) -> np.ndarray:
    """Draft passes of a round in which `requests` draft alike and leave as they stop: D [.., γ + 1] -> the same shape.

    A pass runs while any row is alive: Σ_{k<γ} 1 − (1 − p_c^k)^requests, D itself for a single request.
    """
    if requests == 1:
        return drafted
    alive = np.diff(drafted, axis=-1)  # p_c^k
    passes = (1.0 - (1.0 - alive) ** requests).cumsum(axis=-1)
    lock_step: np.ndarray = np.concatenate([np.zeros_like(drafted[..., :1]), passes], axis=-1)
    return lock_step


class Prices(NamedTuple):
    """Seconds of the passes of a round in which so many requests draft alike."""

    requests: int
    gamma: int  # most draft tokens
    draft: np.ndarray  # [plans]: a pass with each
    rows: Sequence[float]  # row counts of verify passes, ascending
    verify: np.ndarray  # seconds of a verify pass for each count in `rows`; linear in between


class Objective(NamedTuple):
    """Arrays [plans, thresholds, γ + 1]: expected drafted and accepted tokens, and tokens per second of a request."""

    drafted: np.ndarray
    accepted: np.ndarray
    tpt: np.ndarray

    def best(self, plan: int) -> tuple[int, int]:
        """Threshold and γ ≥ 1 of a plan's highest TPT."""
        threshold, gamma = np.unravel_index(int(self.tpt[plan, :, 1:].argmax()), self.tpt[plan, :, 1:].shape)
        return int(threshold), int(gamma) + 1


def objective(counts: np.ndarray, prices: Prices) -> Objective:
    """TPT of every plan, threshold and γ for one of `prices.requests` that all draft alike; counts [plans, bins, 2]."""
    drafted, accepted = expectations(counts, prices.gamma)
    passes = lock_step_passes(drafted, prices.requests)
    verify = np.interp(prices.requests * (1.0 + drafted), prices.rows, prices.verify)
    return Objective(drafted, accepted, (1.0 + accepted) / (passes * prices.draft[:, None, None] + verify))
