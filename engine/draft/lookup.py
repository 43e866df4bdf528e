"""Drafts that cost no pass: what followed the end of the text where it stood before, in the prompt or the answer, or in
the answer that the client expects (`prediction`).

Whether to draft so is an arm beside the policy's plan. What was found can be compared with what is said then whether it
was drafted or not, so that nothing has to be tried: tokens that agreed and that did not are counted by how many tokens
before them agree (Beta counts, the old ones fading), for the request and for all requests, whose mean weighs as much as
a few of the request's own. A match of m tokens is expected to bring

    E(γ) = Σ_{k ≤ γ} Π_{j < k} p(m + j)

tokens, p being the posterior mean, and the arm is taken where E(γ) per time of a verify pass that is γ rows wider is
more than the plan promises.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.draft.costs import CostModel
from engine.step import Plan

MOST = 15  # tokens proposed: with the pending one, rows that kernels take together
_FEWEST = 2  # tokens that a match has, at least,
_MOST_MATCH = 16  # and that are compared
_PLACES = 16  # looked at: the newest, and on either side of where the answer was in the expected one
_EXPECTED = 1000  # what a match in the expected answer is longer by: such are counted apart
_BINS = (3, 5, 9, 16, _EXPECTED)  # lengths of matches that are counted apart: below these, and beyond
# Rejected and agreed tokens by length of the match before any were seen, worth two each: shares in the answers of
# Qwen2.5-Coder-0.5B (4 bits) to bench/prompts.jsonl, 16 of 128 tokens: 72 of 146, 108 of 149, 124 of 154, 52 of 70 and
# 101 of 102. What a client expects is believed as much as the longest.
_PRIOR = ((1.0, 1.0), (0.6, 1.4), (0.4, 1.6), (0.5, 1.5), (0.02, 1.98), (0.02, 1.98))
_MEMORY = 256.0  # tokens after which the old ones fade
_POOLED = 4.0  # tokens that the mean of all requests counts for: with 2 and 8 the same answers took as long


class Found(NamedTuple):
    """What followed, how many tokens are the same before it (`_EXPECTED` more in the expected answer), and where it
    stands."""

    tokens: tuple[int, ...]
    match: int
    source: str  # "lookup": in the prompt or the answer; "prediction": in the answer that the client expects


class LookUp:
    """The text of one request behind the answer that its client expects, by pairs of tokens: where each was. It takes
    a few hundred bytes a token."""

    def __init__(self, pool: Counts, expected: Sequence[int] = (), *, own: bool = True) -> None:
        """`pool`: of all requests. `own`: whether what the text itself says is looked up, not only what is expected."""
        self._pool, self._counts, self._own = pool, Counts(), own
        self._text = [*expected]
        self._front = len(expected)
        self._at = 0  # in the expected answer: where what was found there last goes on
        self._places: dict[int, list[int]] = {}  # behind a pair, ascending
        self._indexed = _FEWEST
        self.found: Found | None = None  # at the end of the text as it was,
        self._read = 0  # so long
        self._index(self._front)

    def find(self, text: Sequence[int]) -> Found | None:
        """The continuation of the longest match of the text's end. `text` is that of the last call, and more: what was
        found then is compared with it."""
        if len(text) != self._read:
            said, first = text[self._read :], not self._read
            self._learn(said)
            self._text += said
            if self._own:
                self._index(len(self._text))
            self.found, self._read = self._find(first), len(text)
        return self.found

    def chances(self, match: int, count: int) -> list[float]:
        """Of each of so many tokens behind a match to agree, where those before it do."""
        return [self._counts.mean(match + j, self._pool) for j in range(count)]

    def _learn(self, said: Sequence[int]) -> None:
        if self.found is None:
            return
        expected = self.found.source == "prediction"
        for j, (token, found) in enumerate(zip(said, self.found.tokens, strict=False)):
            for counts in (self._counts, self._pool):
                counts.add(self.found.match + j, token == found)
            if token != found:
                break
            self._at += expected

    def _find(self, first: bool) -> Found | None:
        """Of equals the expected answer's, the nearest ahead; then the newest. An answer that begins as the expected
        one does (`first`: it has one token) goes on as that does."""
        text, front = self._text, self._front
        if first and front > 1 and text[-1] == text[0]:
            return self._at_place(1, _FEWEST)
        if len(text) - front < _FEWEST:
            return None
        places = self._places.get(text[-2] << 32 | text[-1], [])
        expected = bisect_left(places, front)
        ahead = bisect_left(places, self._at, 0, expected)
        near = places[max(ahead - _PLACES, 0) : min(ahead + _PLACES, expected)]
        near.sort(key=lambda place: (place < self._at, abs(place - self._at)))
        near += reversed(places[max(expected, len(places) - _PLACES) :])
        found = max(near, key=lambda place: _common(text, place), default=0)
        return self._at_place(found, _common(text, found)) if found else None

    def _at_place(self, place: int, match: int) -> Found:
        if place >= self._front:
            return Found(tuple(self._text[place : place + MOST]), match, "lookup")
        self._at = place
        return Found(tuple(self._text[place : min(place + MOST, self._front)]), match + _EXPECTED, "prediction")

    def _index(self, end: int) -> None:
        """Take in all pairs before `end` that something follows; not those that lie across the end of what is
        expected."""
        text, places = self._text, self._places
        for place in range(self._indexed, end):
            if not self._front <= place < self._front + _FEWEST:
                places.setdefault(text[place - 2] << 32 | text[place - 1], []).append(place)
        self._indexed = max(self._indexed, end)


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
    requests, rate = len(contexts), plan.predicted_tpt or costs.plain_tpt(contexts)
    gamma = plan.gamma if plan.predicted_tpt else 0  # of what `rate` is of
    others = (requests - 1) * (1 + gamma)  # rows
    knots, verify = costs.verify_curve(others + 1 + max(gamma, MOST), contexts)
    seconds = np.interp(others + 2 + np.arange(len(expected)), knots, verify)
    if requests > 1:  # the round of all takes longer, or less long, by what its verify pass does
        seconds += plan.expected / rate - np.interp(others + 1 + gamma, knots, verify)
    tpt = (expected + (requests - 1) * plan.expected) / seconds / requests
    best = int(tpt.argmax())
    if tpt[best] <= rate:
        return None
    return Plan(plan.variants, best + 1, 0.0, 0.0, float(tpt[best]), None, plan.plain_tpt, float(expected[best]))
