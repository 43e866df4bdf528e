"""Promises of tokens per time against what came."""

from __future__ import annotations

from dataclasses import dataclass

_TRUST_ROUNDS = 200.0  # over which promised and kept tokens are compared
_FORGIVE_ROUNDS = 1000.0  # over which a broken promise is forgotten while none is made
_TRUST_PRIOR = 30.0  # tokens promised and kept before any were seen
_TRUST_BOUNDS = (0.1, 1.2)


@dataclass(slots=True)
class Trust:
    """How many of the promised tokens came: what the prices and the acceptance estimates miss together.

    Estimates that are chosen for being high are too high on average; this says by how much.
    """

    promised: float = 0.0
    kept: float = 0.0

    def add(self, promised: float, kept: float) -> None:
        self._fade(_TRUST_ROUNDS)
        self.promised += promised
        self.kept += kept

    def forget(self) -> None:
        """A round went by that showed nothing of this kind: in the long run a promise is believed again."""
        self._fade(_FORGIVE_ROUNDS)

    def _fade(self, rounds: float) -> None:
        self.promised *= 1.0 - 1.0 / rounds
        self.kept *= 1.0 - 1.0 / rounds

    @property
    def factor(self) -> float:
        ratio = (self.kept + _TRUST_PRIOR) / (self.promised + _TRUST_PRIOR)
        return min(max(ratio, _TRUST_BOUNDS[0]), _TRUST_BOUNDS[1])
