"""Promises of tokens per time against what came."""

from __future__ import annotations

import math
from dataclasses import dataclass

_ROUNDS = 200.0  # over which promised and kept tokens are compared
_FORGIVE_ROUNDS = 1000.0  # over which a broken promise is forgotten while none is made
_PRIOR = 30.0  # tokens promised and kept before any were seen
_BOUNDS = (0.1, 1.2)
_RENEWED = 0.25  # of what was seen that still counts once it is to be seen again


@dataclass(slots=True)
class Trust:
    """How many of the promised tokens came: what the prices and the acceptance estimates miss together.

    Estimates that are chosen for being high are too high on average; this says by how much. Rounds are counted by
    whoever asks, and those in which nothing was promised are forgiving.
    """

    promised: float = 0.0
    kept: float = 0.0
    round: int = 0  # of the last promise

    def add(self, round: int, promised: float, kept: float) -> None:
        fade = self._forgiven(round) * (1.0 - 1.0 / _ROUNDS)
        self.promised = self.promised * fade + promised
        self.kept = self.kept * fade + kept
        self.round = round

    def renew(self) -> None:
        """Let what is seen next decide."""
        self.promised *= _RENEWED
        self.kept *= _RENEWED

    def factor(self, round: int, expected: float = 1.0) -> float:
        """Kept over promised, by what is still remembered at this round; `expected` before anything was seen."""
        fade = self._forgiven(round)
        ratio = (self.kept * fade + _PRIOR * expected) / (self.promised * fade + _PRIOR)
        return min(max(ratio, _BOUNDS[0]), _BOUNDS[1])

    def _forgiven(self, round: int) -> float:
        return math.exp((self.round - round) / _FORGIVE_ROUNDS)


_DRIFT_TOKENS = 48.0  # tested tokens over which agreement is compared with what is usual,
_USUAL_TOKENS = 1000.0  # and over which that is taken
_DRIFT_PRIOR = 8.0  # tokens, expected and seen, before any were
_DRIFT_ROUNDS = 300.0  # over which a drift is forgotten while nothing is tested
_LEAST_DRIFT = 0.4


class Drift:
    """How often drafts agree now, of how often those of their plans usually do.

    Texts of another kind come without notice, and are hard or easy for all plans alike: what the one in use shows
    within a few tokens would take each of the others as many to show.
    """

    __slots__ = ("_now", "_round", "_usual")

    def __init__(self) -> None:
        self._now, self._usual = [0.0, 0.0], [0.0, 0.0]  # tokens expected to agree, and that did
        self._round = 0  # of the last test

    def add(self, round: int, tested: int, expected: float, agreed: int) -> None:
        """`expected` of the `tested` tokens were to agree, by what was known of their plan."""
        forgotten = math.exp((self._round - round) / _DRIFT_ROUNDS)
        for kept, memory, fade in ((self._now, _DRIFT_TOKENS, forgotten), (self._usual, _USUAL_TOKENS, 1.0)):
            fade *= (1.0 - 1.0 / memory) ** tested
            kept[:] = kept[0] * fade + expected, kept[1] * fade + agreed
        self._round = round

    def factor(self, round: int) -> float:
        """Of the share that agrees, at most 1: what is better than usual shows in the plans' own counts."""
        fade = math.exp((self._round - round) / _DRIFT_ROUNDS)
        usual = (self._usual[1] + _DRIFT_PRIOR) / (self._usual[0] + _DRIFT_PRIOR)
        now = (self._now[1] * fade + _DRIFT_PRIOR * usual) / (self._now[0] * fade + _DRIFT_PRIOR)
        return min(max(now / usual, _LEAST_DRIFT), 1.0)


_MOST_PATIENCE = 16.0


class Losses:
    """Seconds by which drafting was slower than plain decoding would have been (a cumulative sum: Page, 1954).

    What was gained before excuses nothing, so a change shows within a few rounds. Who is asked to decide anew and
    stays with what loses is asked half as often each time, until it no longer loses.
    """

    __slots__ = ("_patience", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self._patience = 1.0

    @property
    def known(self) -> bool:
        """Whether it was slower when last asked, and has not been as fast since."""
        return self._patience > 1

    def add(self, seconds: float) -> None:
        """One round's loss, or, below zero, gain."""
        self.seconds += seconds
        if self.seconds <= 0:
            self.seconds, self._patience = 0.0, 1.0

    def beyond(self, limit: float) -> bool:
        """Whether so many seconds, or what patience makes of them, are lost; then counting begins anew."""
        if self.seconds <= limit * self._patience:
            return False
        self.seconds, self._patience = 0.0, min(2 * self._patience, _MOST_PATIENCE)
        return True
