"""The knapsack over 2L sublayers (KnapSpec, Algorithm 1), transitions injected.

Items are sublayers, weights are integer ticks of latency, the value of a partial choice is the mean cosine between its
hidden states and the full model's at the same depth. The table is indexed by *skipped* weight j:

    g[i+1, j]        <- f_i(g[i, j])   (run)
    g[i+1, j + w_i]  <- g[i, j]        (skip)        the larger cosine wins, ties go to run

Where the paper's printed algorithm nests the skip under an accepted run, the two are independent here, and the choice
is read from back-pointers, never found again by comparing tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.upload import upload

Transition = Callable[[int, Tensor], Tensor]  # (sublayer, [states, rows, hidden]) -> the same after it has run
# (sublayer, [states, rows, hidden], `directions` after it [rows, hidden]) -> [2, states, rows, hidden], with the
# sublayer run and left out, and the `cosines` of these [2][states]
Reach = Callable[[int, Tensor, Tensor], tuple[Tensor, list[list[float]]]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sub-network from the last row of the table."""

    variants: tuple[int, ...]
    skipped: int  # weight, in ticks
    cosine: float  # mean over rows, at the last sublayer
    state: Tensor  # [rows, hidden], its residual stream there


class Row(NamedTuple):
    """A filled row: each entry's skipped weight j, which entry of the row before it comes from, and whether it ran."""

    skipped: list[int]
    source: list[int]
    ran: list[bool]


def directions(references: Tensor) -> Tensor:
    """References of unit length, float32 or wider: [.., hidden]."""
    return F.normalize(references.to(torch.promote_types(references.dtype, torch.float32)), dim=-1)


def cosines(states: Tensor, direction: Tensor) -> Tensor:
    """Mean cosine per state: states [.., rows, hidden], direction [rows, hidden] (of unit length) -> [..]."""
    wide = states.to(direction.dtype)
    lengths = torch.linalg.vector_norm(wide, dim=-1).clamp_(min=1e-12)
    agreement: Tensor = torch.linalg.vecdot(wide, direction) / lengths
    return agreement.mean(-1)


def reaching(run: Transition) -> Reach:
    """What is reached by a transition, in torch's operations: the definition of `Reach`."""

    def reach(index: int, states: Tensor, direction: Tensor) -> tuple[Tensor, list[list[float]]]:
        reached = torch.stack((run(index, states), states))
        return reached, cosines(reached, direction).tolist()

    return reach


def ticks(seconds: Sequence[float], unit: float) -> tuple[int, ...]:
    """Latencies as integer multiples of `unit` seconds, rounded."""
    return tuple(round(s / unit) for s in seconds)


class Knapsack:
    """The table, filled one sublayer at a time so that a search can be spread over rounds.

    `references` [2L+1, rows, hidden] are the full model's residual streams X^(0) … X^(2L). Entries whose cosine is
    below `tau`, or whose skipped weight exceeds `capacity`, are dropped; `protected` sublayers always run. `beam` > 0
    keeps at most that many entries a row, one of each of `beam` equal ranges of skipped weight: the one whose cosine is
    furthest above the row's trend. By cosine alone it would be the one that skips least, everywhere, and plans that
    skip much would die out.
    """

    def __init__(
        self,
        references: Tensor,
        weights: Sequence[int],
        *,
        capacity: int,
        tau: float = -1.0,
        protected: frozenset[int] = frozenset(),
        beam: int = 0,
    ) -> None:
        assert len(weights) == references.shape[0] - 1
        self.directions = directions(references)
        self.weights = tuple(weights)
        self.capacity = capacity
        self.tau = tau
        self.protected = protected
        self.beam = beam
        self.rows: list[Row] = []  # filled
        # The live entries, by their skipped weight.
        self.skipped: list[int] = [0]
        self.states = references[:1]  # [live, rows, hidden]
        self.cosines: list[float] = [1.0]

    @property
    def done(self) -> bool:
        return len(self.rows) == len(self.weights) or not self.skipped

    def advance(self, reach: Reach) -> None:
        """Fill the next row: one call for all live states together."""
        index = len(self.rows)
        weight = self.weights[index]
        reached, (scores_run, scores_skip) = reach(index, self.states, self.directions[index + 1])
        best: dict[int, tuple[float, bool, int]] = {}  # j -> cosine, ran, index among the live states
        for live, j in enumerate(self.skipped):
            if scores_run[live] >= self.tau or j == 0:  # nothing skipped: the full model itself
                best[j] = (scores_run[live], True, live)
        if index not in self.protected:
            for live, j in enumerate(self.skipped):
                score, target = scores_skip[live], j + weight
                if score >= self.tau and target <= self.capacity and score > best.get(target, (-2.0,))[0]:
                    best[target] = (score, False, live)
        count, kept = len(self.skipped), self._prune(best)
        row = Row(kept, [best[j][2] for j in kept], [best[j][1] for j in kept])
        picked = [source if ran else count + source for source, ran in zip(row.source, row.ran, strict=True)]
        states = reached.flatten(0, 1).index_select(0, upload(picked, reached.device, torch.int64))
        self.take([row], states, [best[j][0] for j in kept])

    def take(self, rows: Sequence[Row], states: Tensor, cosines: list[float]) -> None:
        """Rows that were filled; states and cosines of the last one's entries."""
        self.rows += rows
        self.skipped, self.states, self.cosines = rows[-1].skipped, states, cosines

    def _prune(self, best: dict[int, tuple[float, bool, int]]) -> list[int]:
        if not self.beam or len(best) <= self.beam:
            return sorted(best)
        skipped = sorted(best)
        trend = _slope(skipped, [best[j][0] for j in skipped])
        first, width = skipped[0], (skipped[-1] - skipped[0] + 1) / self.beam
        winners: dict[int, tuple[float, int]] = {}
        for j in skipped:
            cell, above = int((j - first) / width), best[j][0] - trend * j
            if cell not in winners or above > winners[cell][0]:
                winners[cell] = above, j
        return sorted(j for _, j in winners.values())

    def candidates(self) -> list[Candidate]:
        """The last row, least skipped first; none where no entry was good enough. Only when `done`."""
        assert self.done
        return [
            Candidate(self._backtrack(i), j, cosine, state)
            for i, (j, cosine, state) in enumerate(zip(self.skipped, self.cosines, self.states, strict=True))
        ]

    def _backtrack(self, entry: int) -> tuple[int, ...]:
        variants: list[int] = []
        for row in reversed(self.rows):
            variants.append(1 if row.ran[entry] else 0)
            entry = row.source[entry]
        return tuple(reversed(variants))


def _slope(x: Sequence[int], y: Sequence[float]) -> float:
    """Of the line through these points by least squares."""
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - x_mean) ** 2 for a in x)
    return sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True)) / spread


def solve(references: Tensor, weights: Sequence[int], run: Transition, **options: object) -> list[Candidate]:
    """The whole search at once; options as for `Knapsack`."""
    table = Knapsack(references, weights, **options)  # type: ignore[arg-type]
    reach = reaching(run)
    while not table.done:
        table.advance(reach)
    return table.candidates()
