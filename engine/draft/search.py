"""Searching for plans: a knapsack over the model's own sublayers, within a budget of time (METHODS 1, stage 1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from engine.clock import Clock
from engine.config import EngineConfig
from engine.draft.alike import Variants
from engine.draft.base import CandidatePass, References, View
from engine.draft.costs import CostModel
from engine.draft.fixed import exit_variants
from engine.draft.knapsack import Knapsack, ticks
from engine.draft.library import union
from engine.draft.tpt import AcceptanceCounts

_REPLAY_WEIGHT = 0.5  # of a replayed row against a token really tested: rows replay with the target's own K/V
_FEWEST_ROWS = 8  # to search with
_SLICE = 0.25  # of a plain pass that a search may take in a round beside others
_LONE_SLICE = 0.25  # seconds, or four plain passes: the longest that an answer stands still for one
_MOST_BARREN = 5
_ORDINARY = 0.4  # of the budget is for searches as they come due, the rest for those that long answers are owed
_SMALL = 0.5  # of a search's time (measured): half of the rows, half of the states


@dataclass(slots=True)
class Rows:
    """The last verified rows of a request."""

    most: int
    kept: deque[References] = field(default_factory=deque)

    def __len__(self) -> int:
        return sum(len(r.positions) for r in self.kept)

    def add(self, references: References) -> None:
        """Append rows; forget the oldest beyond `most`."""
        self.kept.append(references)
        while len(self) - len(self.kept[0].positions) >= self.most:
            self.kept.popleft()

    def take(self, count: int) -> References:
        """The last `count` rows, one at least; none are left."""
        kept, self.kept = self.kept, deque()
        count = max(count, 1)
        states = torch.cat([r.states for r in kept], dim=1)[:, -count:]
        return References(states, tuple(p for r in kept for p in r.positions)[-count:])


@dataclass(slots=True)
class Search:
    """A knapsack being filled."""

    table: Knapsack
    passes: CandidatePass
    references: References
    small: bool = False
    seconds: float = 0.0


class Budget:
    """The share of the time that searching may take: each search is earned by rounds since the one before, so that
    nothing is saved up for a burst of them.

    The first search is free where nothing is known without it. Searches in a row that find nothing halve the share;
    what that leaves is for small searches of long answers.
    """

    def __init__(self, share: float, cost: float) -> None:
        """`cost`: seconds that the next search may take."""
        self._share, self.cost = share, cost
        self._barren = 0
        self._busy_then = self._spent_then = 0.0  # when the last search ended
        self.busy = 0.0  # seconds of rounds so far
        self.spent = 0.0
        self.searches = 0

    def affords(self, *, ignorant: bool, plain: bool, factor: float = 1.0) -> bool:
        """Whether the next search fits. `ignorant`: there is nothing to draft with; `plain`: what there is does not
        pay now, and more of it is hardly better; `factor`: how much dearer it is than the last."""
        if self._share == 0:
            return False
        if ignorant and not self.searches:
            return True
        given_up = self.spent - self._spent_then  # on searches whose requests ended before them
        earned = _ORDINARY * self._share * (self.busy - self._busy_then) / (1 << (self._barren + 2 * plain))
        return self.cost * factor + given_up <= earned

    def affords_small(self, factor: float = 1.0) -> bool:
        """Whether a small search fits into all that was ever earned and not spent."""
        return self.spent + self.cost * factor * _SMALL <= self._share * self.busy

    def done(self, seconds: float, *, useful: bool, small: bool = False) -> None:
        """A search ended; the next may take as long. `spent` has been counted on the way."""
        self.cost = seconds / _SMALL if small else seconds
        self.searches += 1
        self._busy_then, self._spent_then = self.busy, self.spent
        self._barren = 0 if useful else min(self._barren + 1, _MOST_BARREN)


class Searcher:
    """Fills knapsacks and judges what they found."""

    def __init__(self, config: EngineConfig, costs: CostModel, clock: Clock, layers: int) -> None:
        self._config, self._costs, self._clock, self._layers = config, costs, clock, layers
        protected = {layer % layers for layer in config.knapspec_protect}
        self._protected = frozenset(i for layer in protected for i in (2 * layer, 2 * layer + 1))
        states = config.knapspec_beam or 2 * layers
        self._width = states * config.knapspec_rows
        self._priced = self._price(self._width)  # the search that the budget knows
        self.budget = Budget(config.knapspec_budget, self._priced)
        self.slices = 0

    def _price(self, context: int) -> float:
        """Seconds that a search reads for, about."""
        return self._costs.verify_pass(self._width, [context])

    def dearer(self, view: View) -> float:
        """How many times the last search's cost one of this request's takes: it reads a context of another length."""
        return max(self._price(view.context) / self._priced, 1.0)

    def rows(self) -> Rows:
        """Room for the rows that a search looks at."""
        return Rows(self._config.knapspec_rows)

    def enough(self, rows: Rows) -> bool:
        return len(rows) >= min(self._config.knapspec_rows, _FEWEST_ROWS)

    def begin(self, view: View, rows: Rows, running: Sequence[Variants], *, small: bool = False) -> Search:
        """A search over these rows, which are taken, beside requests that draft with the plans `running`."""
        config = self._config
        beam = config.knapspec_beam
        references = rows.take(config.knapspec_rows // 2 if small else config.knapspec_rows)
        if small:
            beam = max((beam or 2 * self._layers) // 2, 1)
        prices = self._costs.sublayers(view.context, 1 + len(running), union(running) if running else None)
        unit = min(self._costs.sublayers(view.context, 1, None)[:2]) / config.knapspec_resolution
        weights = ticks(prices, unit) if unit > 0 else (1,) * len(prices)
        table = Knapsack(
            references.states,
            weights,
            capacity=int(config.knapspec_max_skip * sum(weights)),
            tau=config.knapspec_tau,
            protected=self._protected,
            beam=beam,
        )
        return Search(table, view.candidates(references.positions), references, small)

    def advance(self, view: View, search: Search, *, alone: bool) -> bool:
        """Alone, a request searches in one go, unless its context is so long that one would see it stand still; beside
        others, a sublayer or a few a round. Whether it is done."""
        started = self._clock.now()
        plain = self._costs.verify_pass(1, [view.context])
        slice_ = max(_LONE_SLICE, 4 * plain) if alone else _SLICE * plain
        while not search.table.done and self._clock.now() - started < slice_:
            search.table.advance(search.passes.sublayer)
        self.slices += 1
        self.charge(search, self._clock.now() - started)
        return search.table.done

    def charge(self, search: Search, seconds: float) -> None:
        search.seconds += seconds
        self.budget.spent += seconds

    def found(self, view: View, search: Search) -> Mapping[Variants, AcceptanceCounts]:
        """What every candidate would have drafted at the rows.

        Candidates are the table's and the early exits, whose final states the full model's own references are.
        """
        self._priced = self._price(view.context)
        references = search.references.states
        states = {c.variants: c.state for c in search.table.candidates() if 0 < sum(c.variants) < len(c.variants)}
        for depth in range(1, self._layers):
            states.setdefault(exit_variants(self._layers, depth), references[2 * depth])
        states = {variants: state for variants, state in states.items() if self.allows(variants, view.context)}
        if not states:
            return {}
        tokens, confidences = search.passes.draws(torch.stack([*states.values(), references[-1]]))
        replayed: dict[Variants, AcceptanceCounts] = {}
        for variants, drawn, confidence in zip(states, tokens, confidences, strict=False):
            agreed = [a == b for a, b in zip(drawn, tokens[-1], strict=True)]
            replayed[variants] = AcceptanceCounts()
            replayed[variants].add(confidence, agreed, weight=_REPLAY_WEIGHT)
        return replayed

    def allows(self, variants: Sequence[int], context: int) -> bool:
        """Whether a plan runs what is protected, and leaves out no more or less of the time than is allowed."""
        if not all(variants[i] for i in self._protected):
            return False
        prices = self._costs.sublayers(context, 1, None)
        skipped = sum(price for price, run in zip(prices, variants, strict=True) if not run) / sum(prices)
        return self._config.knapspec_min_skip <= skipped <= self._config.knapspec_max_skip
