"""What a search asks of a model: rows of a table over its sublayers, filled where the states are (`draft.knapsack`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from torch import Tensor


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

    def take(self, rows: Sequence[Row], states: Tensor, cosines: list[float]) -> None:
        """Rows that were filled; states and cosines of the last one's entries."""
