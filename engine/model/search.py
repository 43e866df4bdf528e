"""The table of a search as a model fills it: sublayers × candidate states (`engine.draft.knapsack`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

# (sublayer, [states, rows, hidden], variant) -> the same after the sublayer
Transition = Callable[[int, Tensor, int], Tensor]


class Row(NamedTuple):
    """A filled row: each entry's saved weight j, which entry of the row before it comes from, and by which variant."""

    saved: list[int]
    source: list[int]
    variant: list[int]


class SearchTable(Protocol):
    """Sublayers × live entries. An entry is kept if its cosine is at least `tau` and its weight at most `capacity`."""

    @property
    def menus(self) -> Sequence[Mapping[int, int]]:
        """Of each sublayer, what its variants save."""

    @property
    def directions(self) -> Tensor:
        """Of the full model's states, of unit length: [sublayers + 1, rows, hidden]."""

    capacity: int
    tau: float
    beam: int  # entries of a row, at most
    rows: list[Row]  # filled
    saved: list[int]  # by the live entries,
    states: Tensor  # [live, rows, hidden]
    cosines: list[float]

    @property
    def done(self) -> bool: ...

    def advance(self, transition: Transition) -> None:
        """Fill one row."""

    def take(self, rows: Sequence[Row], states: Tensor, cosines: list[float]) -> None:
        """Rows that were filled; states and cosines of the last one's entries."""
