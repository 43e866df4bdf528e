"""Drafts that cost no pass: what followed the end of the text where it stood before, in the prompt or the answer.

Whether to draft so is an arm beside the policy's plan. What was found can be compared with what is said then whether it
was drafted or not, so that nothing has to be tried: tokens that agreed and that did not are counted by how many tokens
before them agree (Beta counts, the old ones fading), for the request and for all requests, whose mean weighs as much as
a few of the request's own. A match of m tokens is expected to bring

    E(γ) = Σ_{k ≤ γ} Π_{j < k} p(m + j)

tokens, p being the posterior mean, and the arm is taken where E(γ) per time of a verify pass that is γ rows wider is
more than the plan promises.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.draft.base import Plan
from engine.draft.costs import CostModel

MOST = 15  # tokens proposed: with the pending one, rows that kernels take together
_FEWEST = 2  # tokens that a match has, at least,
_MOST_MATCH = 16  # and that are compared
_PLACES = 16  # looked at, the newest first
_BINS = (3, 5, 9, 16)  # lengths of matches that are counted apart: below these, and beyond
# Rejected and agreed tokens by length of the match before any were seen, worth two each: shares in the answers of
# Qwen2.5-Coder-0.5B (4 bits) to engine/prompts.jsonl, 16 of 128 tokens: 72 of 146, 108 of 149, 124 of 154, 52 of 70 and
# 101 of 102.
_PRIOR = ((1.0, 1.0), (0.6, 1.4), (0.4, 1.6), (0.5, 1.5), (0.02, 1.98))
_MEMORY = 256.0  # tokens after which the old ones fade
_POOLED = 4.0  # tokens that the mean of all requests counts for: with 2 and 8 the same answers took as long


class Found(NamedTuple):
    """What followed, and how many tokens are the same before it."""

    tokens: tuple[int, ...]
    match: int


class LookUp:
    """The text of one request, by pairs of tokens: where each was last, and where before that. It takes some hundred
    bytes a token."""

    def __init__(self, pool: Counts) -> None:
        """`pool`: of all requests."""
        self._pool, self._own = pool, Counts()
        self._last: dict[int, int] = {}  # position behind a pair
        self._before = array("i")  # by position: that behind the same pair before it, 0 if there is none
        self.found: Found | None = None  # at the end of the text as it was,
        self._read = 0  # so long

    def find(self, text: Sequence[int]) -> Found | None:
        """The continuation of the longest match of the text's end; of equals the newest. `text` is that of the last
        call, and more: what was found then is compared with it."""
        if len(text) != self._read:
            self._learn(text[self._read :])
            self._index(text)
            self.found, self._read = self._find(text), len(text)
        return self.found

    def chances(self, match: int, count: int) -> list[float]:
        """Of each of so many tokens behind a match to agree, where those before it do."""
        return [self._own.mean(match + j, self._pool) for j in range(count)]

    def _learn(self, said: Sequence[int]) -> None:
        if self.found is None:
            return
        for j, (token, found) in enumerate(zip(said, self.found.tokens, strict=False)):
            for counts in (self._own, self._pool):
                counts.add(self.found.match + j, token == found)
            if token != found:
                break

    def _find(self, text: Sequence[int]) -> Found | None:
        if len(text) < _FEWEST:
            return None
        place, best, found = self._last.get(text[-2] << 32 | text[-1], 0), 0, 0
        for _ in range(_PLACES):
            if not place:
                break
            match = _common(text, place)
            if match > best:
                best, found = match, place
            place = self._before[place]
        return Found(tuple(text[found : found + MOST]), best) if best else None

    def _index(self, text: Sequence[int]) -> None:
        """Take in all pairs that something follows."""
        before, last = self._before, self._last
        before.extend([0] * (_FEWEST - len(before)))
        for place in range(len(before), len(text)):
            pair = text[place - 2] << 32 | text[place - 1]
            before.append(last.get(pair, 0))
            last[pair] = place


def _common(text: Sequence[int], place: int) -> int:
    """Tokens before `place` that are those at the text's end, two at least."""
    end, match = len(text), _FEWEST
    most = min(_MOST_MATCH, place)
    while match < most and text[place - 1 - match] == text[end - 1 - match]:
        match += 1
    return match


class Counts:
    """Tokens that followed a match of each length and did not agree, or did; the old ones fade."""

    def __init__(self) -> None:
        self.cells = [[0.0, 0.0] for _ in range(len(_BINS) + 1)]

    def add(self, match: int, agreed: bool) -> None:
        cells = self.cells[bisect_right(_BINS, match)]
        cells[agreed] += 1
        if (total := sum(cells)) > _MEMORY:
            cells[:] = [count * _MEMORY / total for count in cells]

    def mean(self, match: int, pool: Counts) -> float:
        """The share that agrees, believed to be the pool's as long as little is known."""
        i = bisect_right(_BINS, match)
        (rejected, agreed), (others_rejected, others_agreed), (no, yes) = self.cells[i], pool.cells[i], _PRIOR[i]
        share = (others_agreed + yes) / (others_rejected + others_agreed + no + yes)
        return (agreed + _POOLED * share) / (rejected + agreed + _POOLED)


def looked_up(lookup: LookUp, most: int, plan: Plan, contexts: Sequence[int], costs: CostModel) -> Plan | None:
    """The plan that drafts the first tokens of what was found, `most` at most; None where nothing was, or where `plan`
    promises more. `contexts`: of all requests that decode, and draft with `plan` if they do not look up."""
    found = lookup.found
    if found is None or most < 1:
        return None
    chances = lookup.chances(found.match, min(most, len(found.tokens)))
    expected = 1.0 + np.cumprod(chances).cumsum()  # E(1), E(2), …
    rows = np.arange(2, len(expected) + 2)
    requests, rate = len(contexts), plan.predicted_tpt or 0.0
    others = (requests - 1) * (1 + plan.gamma)  # rows
    knots, verify = costs.verify_curve(others + 1 + max(plan.gamma, MOST), contexts)
    seconds = np.interp(others + rows, knots, verify)
    if requests == 1:
        seconds += costs.overhead(1, drafts=True)
    elif rate:  # the round of all takes longer, or less long, by what its verify pass does
        seconds += plan.expected / rate - np.interp(others + 1 + plan.gamma, knots, verify)
    tpt = (expected + (requests - 1) * plan.expected) / seconds / requests
    best = int(tpt.argmax())
    if tpt[best] <= rate:
        return None
    return Plan(plan.variants, best + 1, 0.0, 0.0, float(tpt[best]), None, plan.plain_tpt, float(expected[best]))
