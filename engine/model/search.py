"""Define the table that a search for plans fills: sublayers × candidate states (`engine.draft.knapsack`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

# (sublayer, [states, rows, hidden], variant) -> the same after the sublayer
Transition = Callable[[int, Tensor, int], Tensor]


class Row(NamedTuple):
    """A filled row of the table, by entry."""

    saved: list[int]  # weight j: ticks that the entry's plan saves
    source: list[int]  # the entry of the row above that this one continues
    variant: list[int]  # the sublayer's variant


class SearchTable(Protocol):
    """Rows of live entries, one row a sublayer.

    An entry stays live if its cosine is at least `tau` and its saved weight at most `capacity`.
    """

    @property
    def menus(self) -> Sequence[Mapping[int, int]]:
        """The ticks that each variant saves, by sublayer."""

    @property
    def directions(self) -> Tensor:
        """Unit vectors of the full model's states: [sublayers + 1, rows, hidden]."""

    capacity: int
    tau: float
    beam: int  # maximum live entries of a row; 0: no limit
    rows: list[Row]  # filled so far
    # Of the live entries of the last row:
    saved: list[int]
    states: Tensor  # [live, rows, hidden]
    cosines: list[float]

    @property
    def done(self) -> bool: ...

    def advance(self, transition: Transition) -> None:
        """Fill the next row, computing states by `transition`."""

    def take(self, rows: Sequence[Row], states: Tensor, cosines: list[float]) -> None:
        """Append filled rows. `states` [live, rows, hidden] and `cosines` [live] belong to the last one's entries."""
