"""The multiple-choice knapsack over 2L sublayers (KnapSpec, Algorithm 1; docs/method.md), transitions injected.

Items are sublayers, and of each exactly one entry of its menu is taken: the sublayer as the target has it, a cheaper
variant of it, or nothing. The weight of an entry is what it saves, in integer ticks of latency; the value of a partial
choice is the mean cosine between its hidden states and the full model's at the same depth. The table is indexed by the
*saved* weight j:

    g[i+1, j + s_iv]  <-  f_iv(g[i, j])     for every entry v of the menu of i; the larger cosine wins

and ties go to the entry that comes first. With the menu {as the target (saves 0), skip (saves w_i)} this is KnapSpec as
published, but that its printed algorithm nests the skip under an accepted run: here the two are independent, and the
choice is read from back-pointers, never found again by comparing tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import linear_regression
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.plans import SKIP, TARGET
from engine.tensors import to_device

# (sublayer, [states, rows, hidden], variant) -> the same after the sublayer
Transition = Callable[[int, Tensor, int], Tensor]
Menu = Mapping[int, int]  # ticks that each variant of a sublayer saves: TARGET, which saves none, comes first


class Row(NamedTuple):
    """A filled row of the table, by entry."""

    saved: list[int]  # weight j: ticks that the entry's plan saves
    source: list[int]  # the entry of the row above that this one continues
    variant: list[int]  # the sublayer's variant


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sub-network from the last row of the table."""

    variants: tuple[int, ...]  # the variant of each sublayer
    saved: int  # weight, in ticks
    cosine: float  # mean over rows, at the last sublayer
    state: Tensor  # [rows, hidden], its residual stream there


def directions(references: Tensor) -> Tensor:
    """Scale references [.., hidden] to unit length, in float32 or wider."""
    return F.normalize(references.to(torch.promote_types(references.dtype, torch.float32)), dim=-1)


def cosines(states: Tensor, direction: Tensor) -> Tensor:
    """Return each state's mean cosine: states [.., rows, hidden], unit-length direction [rows, hidden] -> [..]."""
    wide = states.to(direction.dtype)
    lengths = torch.linalg.vector_norm(wide, dim=-1).clamp_(min=1e-12)
    agreement: Tensor = torch.linalg.vecdot(wide, direction) / lengths
    return agreement.mean(-1)


def skipping(weights: Sequence[int]) -> list[dict[int, int]]:
    """Return the menus of KnapSpec as published: sublayers of these weights run or are skipped."""
    return [{TARGET: 0, SKIP: weight} for weight in weights]


class Knapsack:
    """The table, filled one sublayer at a time so that a search can be spread over rounds.

    `references` [2L+1, rows, hidden] are the full model's residual streams X^(0) … X^(2L). Entries whose cosine is
    below `tau`, or whose saved weight exceeds `capacity`, are dropped. `beam` > 0 keeps at most that many entries a
    row, one of each of `beam` equal ranges of saved weight: the one whose cosine is furthest above the row's trend. By
    cosine alone it would be the one that saves least, everywhere, and plans that save much would die out.
    """

    def __init__(
        self, references: Tensor, menus: Sequence[Menu], *, capacity: int, tau: float = -1.0, beam: int = 0
    ) -> None:
        assert len(menus) == references.shape[0] - 1
        assert all(next(iter(menu.items())) == (TARGET, 0) for menu in menus)
        # The full model's states at unit length: [sublayers + 1, rows, hidden].
        self.directions = directions(references)
        self.menus = tuple(menus)
        self.capacity = capacity
        self.tau = tau
        self.beam = beam
        self.rows: list[Row] = []  # filled
        # The live entries of the last row, by their saved weight.
        self.saved: list[int] = [0]
        self.states = references[:1]  # [live, rows, hidden]
        self.cosines: list[float] = [1.0]

    @property
    def done(self) -> bool:
        return len(self.rows) == len(self.menus) or not self.saved

    def advance(self, transition: Transition) -> None:
        """Fill the next row: one transition a variant, for all live states together."""
        index = len(self.rows)
        menu = self.menus[index]
        reached = torch.stack([self.states if v == SKIP else transition(index, self.states, v) for v in menu])
        best = self._best(menu, cosines(reached, self.directions[index + 1]).tolist())
        kept, variants = self._prune(best), tuple(menu)
        row = Row(kept, [best[j][2] for j in kept], [variants[best[j][1]] for j in kept])
        picked = [best[j][1] * len(self.saved) + best[j][2] for j in kept]
        states = reached.flatten(0, 1).index_select(0, to_device(picked, reached.device, torch.int64))
        self.rows.append(row)
        self.saved, self.states, self.cosines = kept, states, [best[j][0] for j in kept]

    def _best(self, menu: Menu, scores: list[list[float]]) -> dict[int, tuple[float, int, int]]:
        """Return the best entry of each saved weight j: cosine, number of its variant, index of the live state.

        `scores` [variants][live states]: cosines after the sublayer.
        """
        best: dict[int, tuple[float, int, int]] = {}
        for number, (saves, row) in enumerate(zip(menu.values(), scores, strict=True)):
            for live, (j, cosine) in enumerate(zip(self.saved, row, strict=True)):
                whole = number == 0 and j == 0  # the full model itself
                good = (cosine >= self.tau or whole) and j + saves <= self.capacity
                if good and cosine > best.get(j + saves, (-2.0,))[0]:
                    best[j + saves] = cosine, number, live
        return best

    def _prune(self, best: dict[int, tuple[float, int, int]]) -> list[int]:
        if not self.beam or len(best) <= self.beam:
            return sorted(best)
        saved = sorted(best)
        trend = linear_regression(saved, [best[j][0] for j in saved]).slope
        first, width = saved[0], (saved[-1] - saved[0] + 1) / self.beam
        winners: dict[int, tuple[float, int]] = {}
        for j in saved:
            cell, above = int((j - first) / width), best[j][0] - trend * j
            if cell not in winners or above > winners[cell][0]:
                winners[cell] = above, j
        return sorted(j for _, j in winners.values())

    def candidates(self) -> list[Candidate]:
        """Return the last row's entries, least saved first; none if no entry was good enough. Call when `done`."""
        assert self.done
        return [
            Candidate(self._backtrack(i), j, cosine, state)
            for i, (j, cosine, state) in enumerate(zip(self.saved, self.cosines, self.states, strict=True))
        ]

    def _backtrack(self, entry: int) -> tuple[int, ...]:
        variants: list[int] = []
        for row in reversed(self.rows):
            variants.append(row.variant[entry])
            entry = row.source[entry]
        return tuple(reversed(variants))


def solve(references: Tensor, menus: Sequence[Menu], transition: Transition, **options: object) -> list[Candidate]:
    """Run a whole search over references [2L+1, rows, hidden] at once; options as for `Knapsack`."""
    table = Knapsack(references, menus, **options)  # type: ignore[arg-type]
    while not table.done:
        table.advance(transition)
    return table.candidates()
