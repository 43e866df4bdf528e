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
