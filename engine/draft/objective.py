"""Which plan, threshold and γ promise most: the objective over what is believed of every plan (METHODS 1, stage 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.draft.tpt import THRESHOLDS, Objective, expectations, lock_step_passes

SHARED_ROWS = 24.0  # most weight of what other requests saw of a plan, in tested tokens
PRIOR = np.array([[0.4, 0.1]] + [[0.05, 0.05]] * (len(THRESHOLDS) - 2) + [[0.2, 0.8]])  # two rows that say little
POOLED_ROWS = 6.0  # of what plans have in common that each is believed to have, against the luck of the best of many;
POOLED_FROM = 64.0  # so many tokens of each, at most, tell what that is
HOPE = 4.0  # agreeing tokens that are believed of a plan while little is known, to see whether it should be tried


class Prices(NamedTuple):
    """Seconds of the passes of a round in which so many requests draft alike."""

    requests: int
    gamma: int  # most draft tokens
    draft: Sequence[float]  # a pass with each plan
    rows: Sequence[float]  # ascending; verify passes of so many rows take, linear in between,
    verify: Sequence[float]  # as many seconds
    overhead: float  # beside the passes, and more
    accepted: float  # for each accepted token


class Question(NamedTuple):
    """What is known of each plan's drafts, in `cells`, and what drafting costs."""

    known: Sequence[Sequence[float]]  # what all have seen
    own: Sequence[Sequence[float] | None]  # what the one request that asks has
    drift: float  # factor on agreement
    trust: Sequence[float]  # factor on the promise of each plan
    prices: Prices
    hope: bool  # whether to look for a plan that may be better, for all that is known of it


class Chosen(NamedTuple):
    """A place of the objective, and what is expected there: tokens per second, drafted and accepted tokens."""

    plan: int
    threshold: int
    gamma: int
    tpt: float
    drafted: float
    accepted: float


def choose(question: Question) -> tuple[Chosen, Chosen | None]:
    """The argmax of TPT, and another plan's place where that may be better."""
    counts = evidence(question)
    trust = np.array(question.trust)[:, None, None]
    known = objective(counts, question.prices, trust)
    best = _chosen(known, known.argmax())
    if not question.hope:
        return best, None
    counts[:, -1, 1] += HOPE
    hoped = objective(counts, question.prices, trust)
    others = hoped.best
    others[best.plan] = 0.0
    index = int(others.argmax())
    if others[index] <= best.tpt:
        return best, None
    return best, _chosen(known, hoped.argmax(index))


def promises(known: Sequence[Sequence[float]], prices: Prices) -> list[float]:
    """The highest TPT of each plan while it drafts, by such `cells` of each alone."""
    counts = smoothed(np.array(known).reshape(len(known), -1, 2))
    highest: list[float] = objective(counts, prices).best.tolist()
    return highest


def evidence(question: Question) -> np.ndarray:
    """What is believed of each plan's drafts [plans, bins, rejected | agreed]."""
    known = smoothed(np.array(question.known).reshape(len(question.known), -1, 2))
    counts: np.ndarray = known * (SHARED_ROWS / np.maximum(known.sum(axis=(1, 2)), SHARED_ROWS))[:, None, None]
    counts[:, :, 0] += (1.0 - question.drift) * counts[:, :, 1]  # fewer agree now
    counts[:, :, 1] *= question.drift
    for i, own in enumerate(question.own):
        if own is not None:
            counts[i] += np.reshape(own, (-1, 2))
    return counts


def smoothed(counts: np.ndarray) -> np.ndarray:
    """Counts [plans, bins, 2] and what is believed beforehand: few tokens prove little, and α̂ = 1 is common."""
    some = counts * (POOLED_FROM / np.maximum(counts.sum(axis=(1, 2)), POOLED_FROM))[:, None, None]
    believed: np.ndarray = counts + PRIOR + POOLED_ROWS * some.sum(axis=0) / max(some.sum(), 1.0)
    return believed


def objective(counts: np.ndarray, prices: Prices, trust: np.ndarray | float = 1.0) -> Objective:
    """TPT of every plan, threshold and γ for one of `prices.requests` that all draft alike; counts [plans, bins, 2].

    `trust` [plans, 1, 1]: a factor on each plan's.
    """
    requests = prices.requests
    drafted, accepted = expectations(counts, prices.gamma)
    passes = lock_step_passes(drafted, requests)
    verify = np.interp(requests * (1.0 + drafted), prices.rows, prices.verify)
    overhead = prices.overhead + requests * accepted * prices.accepted
    seconds = passes * np.array(prices.draft)[:, None, None] + verify + overhead
    return Objective(drafted, accepted, (1.0 + accepted) / seconds * trust)


def _chosen(found: Objective, at: tuple[int, int, int]) -> Chosen:
    return Chosen(*at, *(float(a[at]) for a in (found.tpt, found.drafted, found.accepted)))
