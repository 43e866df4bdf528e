"""Expected tokens, drafted tokens and time of a round: the objective (METHODS section 1).

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
MEMORY = 256.0  # tested tokens, usually
CELLS = 2 * len(THRESHOLDS)  # rejected and agreed of each bin


def expected_tokens(alpha: float, gamma: float) -> float:
    """E(α, γ): tokens per round when each of γ draft tokens is accepted with probability α."""
    return gamma + 1 if alpha >= 1 else float((1 - alpha ** (gamma + 1)) / (1 - alpha))


class AcceptanceCounts:
    """Tested draft tokens by confidence bin and outcome; old ones fade once `memory` is exceeded."""

    __slots__ = ("cells", "memory", "total")

    def __init__(self, memory: float = MEMORY) -> None:
        self.cells = [0.0] * CELLS  # a round adds a few
        self.total = 0.0
        self.memory = memory

    @classmethod
    def of(cls, counts: np.ndarray) -> AcceptanceCounts:
        """What was counted before: [bins, rejected | agreed]."""
        made = cls()
        made.cells, made.total = [float(count) for count in counts.flat], float(counts.sum())
        made._fade()
        return made

    @property
    def counts(self) -> np.ndarray:
        """[bins, rejected | agreed]."""
        return np.array(self.cells).reshape(-1, 2)

    @property
    def agreement(self) -> float:
        """Share that agreed."""
        return sum(self.cells[1::2]) / self.total if self.total else 0.0

    def add(self, confidences: Iterable[float], agreed: Iterable[bool], weight: float = 1.0) -> None:
        self.add_cells(cells(confidences, agreed), weight)

    def add_cells(self, found: Sequence[int], weight: float = 1.0) -> None:
        """The same for tokens whose `cells` are known."""
        for cell in found:
            self.cells[cell] += weight
        self.total += weight * len(found)
        self._fade()

    def merge(self, other: AcceptanceCounts) -> None:
        """Take over another's counts."""
        self.cells = [a + b for a, b in zip(self.cells, other.cells, strict=True)]
        self.total += other.total
        self._fade()

    def _fade(self) -> None:
        if self.total > self.memory:
            share = self.memory / self.total
            self.cells = [count * share for count in self.cells]
            self.total = self.memory


def cells(confidences: Iterable[float], agreed: Iterable[bool]) -> list[int]:
    """Where in the counts each token belongs: two cells a bin, rejected and agreed."""
    return [2 * bisect_right(THRESHOLDS, c, 1) - 2 + a for c, a in zip(confidences, agreed, strict=False)]


def expectations(counts: np.ndarray, gammas: int) -> tuple[np.ndarray, np.ndarray]:
    """D and A for every plan, threshold and γ: counts [plans, bins, 2] -> two of [plans, thresholds, gammas + 1]."""
    above = counts[:, ::-1].cumsum(axis=1)[:, ::-1] / counts.sum(axis=(1, 2))[:, None, None]  # at or above each θ
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


class Objective(NamedTuple):
    """Arrays [plans, thresholds, γ + 1]: expected drafted and accepted tokens, and tokens per second."""

    drafted: np.ndarray
    accepted: np.ndarray
    tpt: np.ndarray

    @property
    def best(self) -> np.ndarray:
        """Highest TPT of each plan while it drafts."""
        highest: np.ndarray = self.tpt[:, :, 1:].max(axis=(1, 2), initial=-1.0)  # of none: -1
        return highest

    def argmax(self, plan: int | None = None) -> tuple[int, int, int]:
        """Plan, threshold and γ ≥ 1 of the highest TPT, of one plan if given (γ = 0 is every plan's plain decoding)."""
        first, tpt = (0, self.tpt) if plan is None else (plan, self.tpt[plan : plan + 1])
        index, threshold, gamma = np.unravel_index(int(tpt[:, :, 1:].argmax()), tpt[:, :, 1:].shape)
        return first + int(index), int(threshold), int(gamma) + 1
