"""Drafts without a pass: tokens copied from where the end of the text occurred before.

The copy comes from the prompt, the answer so far, or the answer that the client expects (`prediction`). Copying
competes with the policy's plan. Every continuation that was found is compared with the text that follows, drafted or
not, so nothing has to be tried. Agreeing and rejected tokens are counted by the number of agreeing tokens before them
(Beta counts that fade), for the request and for all requests, whose mean counts for a few of the request's own tokens.
After a match of m tokens, γ copied tokens are expected to add

    E(γ) = Σ_{k ≤ γ} Π_{j < k} p(m + j)

tokens, where p is the posterior mean. The copy is drafted where (1 + E(γ)) per second of a verify pass with γ more rows
exceeds the plan's predicted tokens per second.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from engine.draft.costs import CostModel
from engine.step import Plan

MAX_COPIED = 15  # copied tokens: with the pending token, rows that kernels take together
_MIN_MATCH = 2  # tokens
_MAX_MATCH = 16  # tokens that are compared
_PLACES = 16  # places compared: the newest, and those nearest the position in the expected answer
_BINS = (3, 5, 9, 16)  # upper bounds of the match lengths that are counted together
_EXPECTED_BIN = len(_BINS) + 1  # the bin of matches in the expected answer, of any length
# Prior counts, rejected and agreed, by bin, worth two tokens each: shares in the answers of Qwen2.5-Coder-0.5B (4 bits)
# to bench/prompts.jsonl, 16 of 128 tokens: 72 of 146, 108 of 149, 124 of 154, 52 of 70 and 101 of 102. A client's
# expected answer is trusted as much as the longest match.
_PRIOR = ((1.0, 1.0), (0.6, 1.4), (0.4, 1.6), (0.5, 1.5), (0.02, 1.98), (0.02, 1.98))
_MEMORY = 256.0  # tokens of a bin, at most
_POOLED = 4.0  # tokens that the mean of all requests counts for (2 and 8 gave the same speed)


class Match(NamedTuple):
    """An earlier occurrence of the text's end."""

    tokens: tuple[int, ...]  # the tokens after the earlier occurrence
    length: int  # tokens that are equal
    source: str  # "lookup": the prompt or the answer; "prediction": the answer that the client expects

    def bin_after(self, copied: int) -> int:
        """The bin in which the token after so many copied ones is counted."""
        return _EXPECTED_BIN if self.source == "prediction" else bisect_right(_BINS, self.length + copied)


class Lookup:
    """An index of one request's text, after the answer that its client expects: the places of each pair of tokens.

    The index takes a few hundred bytes a token.
    """

    def __init__(self, pool: AgreementCounts, expected: Sequence[int] = (), *, own: bool = True) -> None:
        """`pool`: counts of all requests. `own`: whether to copy from the text itself too, not only from `expected`."""
        self._pool, self._counts, self._own = pool, AgreementCounts(), own
        self._text = [*expected]
        self._front = len(expected)
        self._at = 0  # where the last match in the expected answer continues
        self._places: dict[int, list[int]] = {}  # the places after each pair of tokens, ascending
        self._indexed = _MIN_MATCH
        self.match: Match | None = None  # the match of the end of the first `_read` tokens
        self._read = 0
        self._index(self._front)

    def extend(self, text: Sequence[int]) -> None:
        """Take in the request's text, which extends the text of the last call, and find the match of its end.

        The new tokens are compared with the continuation of the last match.
        """
        if len(text) == self._read:
            return
        new, first = text[self._read :], not self._read
        self._learn(new)
        self._text += new
        if self._own:
            self._index(len(self._text))
        self.match, self._read = self._find(first), len(text)

    def agreement(self, match: Match, count: int) -> list[float]:
        """Predict, for each of `count` tokens after a match, the probability to agree if the tokens before it do."""
        return [self._counts.mean(match.bin_after(j), self._pool) for j in range(count)]

    def _learn(self, new: Sequence[int]) -> None:
        """Compare new tokens of the text with the last match's continuation."""
        if self.match is None:
            return
        expected = self.match.source == "prediction"
        for j, (token, copied) in enumerate(zip(new, self.match.tokens, strict=False)):
            for counts in (self._counts, self._pool):
                counts.add(self.match.bin_after(j), token == copied)
            if token != copied:
                break
            self._at += expected

    def _find(self, first: bool) -> Match | None:
        """Among matches of equal length, prefer the expected answer's, the nearest ahead; then the newest.

        An answer whose `first` token is that of the expected answer matches it.
        """
        text, front = self._text, self._front
        if first and front > 1 and text[-1] == text[0]:
            return self._at_place(1, _MIN_MATCH)
        if len(text) - front < _MIN_MATCH:
            return None
        places = self._places.get(text[-2] << 32 | text[-1], [])
        expected = bisect_left(places, front)
        ahead = bisect_left(places, self._at, 0, expected)
        near = places[max(ahead - _PLACES, 0) : min(ahead + _PLACES, expected)]
        near.sort(key=lambda place: (place < self._at, abs(place - self._at)))
        near += reversed(places[max(expected, len(places) - _PLACES) :])
        best = max(near, key=lambda place: _common(text, place), default=0)
        return self._at_place(best, _common(text, best)) if best else None

    def _at_place(self, place: int, length: int) -> Match:
        if place >= self._front:
            return Match(tuple(self._text[place : place + MAX_COPIED]), length, "lookup")
        self._at = place
        return Match(tuple(self._text[place : min(place + MAX_COPIED, self._front)]), length, "prediction")

    def _index(self, end: int) -> None:
        """Index all pairs before `end` that a token follows, except pairs across the end of the expected answer."""
        text, places = self._text, self._places
        for place in range(self._indexed, end):
            if not self._front <= place < self._front + _MIN_MATCH:
                places.setdefault(text[place - 2] << 32 | text[place - 1], []).append(place)
        self._indexed = max(self._indexed, end)


def _common(text: Sequence[int], place: int) -> int:
    """Count the tokens before `place` that equal those at the text's end; the first two are known to."""
    end, length = len(text), _MIN_MATCH
    most = min(_MAX_MATCH, place)
    while length < most and text[place - 1 - length] == text[end - 1 - length]:
        length += 1
    return length


class AgreementCounts:
    """Tokens after matches of each length that were rejected, or agreed; old ones fade."""

    def __init__(self) -> None:
        self.cells = [[0.0, 0.0] for _ in _PRIOR]

    def add(self, bin: int, agreed: bool) -> None:
        """Count a token; old ones fade."""
        cells = self.cells[bin]
        cells[agreed] += 1
        if (total := sum(cells)) > _MEMORY:
            cells[:] = [count * _MEMORY / total for count in cells]

    def mean(self, bin: int, pool: AgreementCounts) -> float:
        """Return the posterior mean of agreement; the prior is the pool's share."""
        (rejected, agreed), (pool_rejected, pool_agreed), (no, yes) = self.cells[bin], pool.cells[bin], _PRIOR[bin]
        share = (pool_agreed + yes) / (pool_rejected + pool_agreed + no + yes)
        return (agreed + _POOLED * share) / (rejected + agreed + _POOLED)


def plan_lookup(
    lookup: Lookup, most: int, plan: Plan, contexts: Sequence[int], costs: CostModel, always: int | None = None
) -> Plan | None:
    """Return a plan that copies up to `most` tokens of the last match, or None where `plan` is predicted to be faster.

    `contexts`: of all decoding requests; those that do not copy draft with `plan`. With `always`, nothing is predicted:
    up to so many tokens are copied.
    """
    match = lookup.match
    if match is None or most < 1:
        return None
    if always is not None:
        tokens = match.tokens[: min(most, always)]
        return replace(plan, gamma=len(tokens), tokens=tokens, source=match.source) if tokens else None
    agreement = lookup.agreement(match, min(most, len(match.tokens)))
    expected = 1.0 + np.cumprod(agreement).cumsum()  # tokens of a round with γ = 1, 2, …
    requests, rate = len(contexts), plan.predicted_tpt or costs.plain_tpt(contexts)
    gamma = plan.gamma if plan.predicted_tpt else 0  # the draft length that `rate` assumes
    others = (requests - 1) * (1 + gamma)  # rows
    knots, verify = costs.verify_curve(others + 1 + max(gamma, MAX_COPIED), contexts)
    seconds = np.interp(others + 2 + np.arange(len(expected)), knots, verify)
    if requests > 1:  # the batch's round changes by what its verify pass does
        seconds += plan.expected / rate - np.interp(others + 1 + gamma, knots, verify)
    tpt = (expected + (requests - 1) * plan.expected) / seconds / requests
    best = int(tpt.argmax())
    if tpt[best] <= rate:
        return None
    return Plan(
        plan.variants,
        best + 1,
        tokens=match.tokens[: best + 1],
        source=match.source,
        predicted_tpt=float(tpt[best]),
        plain_tpt=plan.plain_tpt,
        expected=float(expected[best]),
    )
