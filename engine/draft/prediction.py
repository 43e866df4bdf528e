"""Drafts that cost no pass: the continuation of a text that the client expects (`prediction`), found by copying."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

_SUFFIX = 8  # tokens of the answer that are compared at most
_PLACES = 32  # looked at on either side of where the answer was
_MOST = 7  # tokens proposed: with the pending one, rows that cost little more than one
_MOST_MISSES = 3  # that make it harder to be proposed again


class Prediction:
    """Where in the expected text an answer is; one per request."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = tuple(tokens)
        self._places: dict[int, list[int]] = defaultdict(list)  # behind each occurrence of a token
        for position, token in enumerate(self._tokens):
            self._places[token].append(position + 1)
        self._at = 0  # where the last proposal began
        self._said = 0  # tokens of the answer before it
        self._proposed: tuple[int, ...] = ()
        self._misses = 0  # proposals in a row of which nothing was right

    def propose(self, answer: Sequence[int], most: int) -> tuple[int, ...]:
        """What follows in the expected text where the answer's end is in it; nothing if it is not there.

        Of several places the one with the longest common suffix counts, of these the first one ahead. A word in common
        is enough to begin with; after proposals that were wrong from their first token it takes a longer suffix.
        """
        if self._proposed and len(answer) > self._said:
            self._misses = 0 if answer[self._said] == self._proposed[0] else min(self._misses + 1, _MOST_MISSES)
        self._proposed = ()
        place: int | None = 0
        if answer:
            places = self._places.get(answer[-1], [])
            ahead = bisect_left(places, self._at)
            places = places[max(ahead - _PLACES, 0) : ahead + _PLACES]
            place = max(places, key=lambda p: (self._common(answer, p), p >= self._at, -p), default=None)
        if place is None or (self._misses and self._common(answer, place) <= self._misses):
            return ()
        self._at, self._said = place, len(answer)
        self._proposed = self._tokens[place : place + min(most, _MOST)]
        return self._proposed

    def _common(self, answer: Sequence[int], place: int) -> int:
        """Length of the common suffix of the answer and what precedes `place`, at most `_SUFFIX`."""
        most = min(_SUFFIX, len(answer), place)
        return next((n for n in range(most) if answer[-1 - n] != self._tokens[place - 1 - n]), most)
