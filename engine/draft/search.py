"""Searching for plans: a knapsack over the model's own sublayers, within a budget of time (METHODS 1, stage 1)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.clock import Clock
from engine.config import EngineConfig
from engine.draft.base import CandidatePass, References, View
from engine.draft.costs import CostModel
from engine.draft.knapsack import Knapsack, ticks
from engine.draft.library import union
from engine.draft.tpt import AcceptanceCounts
from engine.model.spec import SKIP, TARGET, Variants, exit_plan

_REPLAY_WEIGHT = 0.5  # of a replayed row against a token really tested: rows replay with the target's own K/V
_DRAWN_ROWS = 128  # of a replay at once: a row of logits may take a megabyte,
_DRAWN_LOGITS = 1 << 20  # or more, of so many logits
_FEWEST_ROWS = 4  # to search with, where requests end too soon for more
MOST_HURRY = 3
_SLICE = 0.25  # of a plain pass that a search may take in a round beside others
_LONE_SLICE = 0.25  # seconds, or four plain passes: the longest that an answer stands still for one
_MOST_BARREN = 5
_MOST_GIVEN_UP = 3.0  # searches' time, beyond which the first is not free
_ORDINARY = 0.4  # of the budget is for searches as they come due, the rest for those that long answers are owed
_LEAST_PRICE = 0.25  # of the last search's, for one that reads a shorter context
_DEARER = 2.0  # most that the next search is thought to take of the last: a slow one may have been bad luck


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


class Replay:
    """What every candidate would have drafted at the rows, a few rows at a time.

    Candidates' final states [rows, hidden] are compared with the full model's `final` [rows, hidden].
    """

    def __init__(self, states: Mapping[Variants, Tensor], final: Tensor, vocab: int) -> None:
        self._step = max(1, max(_DRAWN_ROWS, _DRAWN_LOGITS // vocab) // (len(states) + 1))
        self.counts = {variants: AcceptanceCounts() for variants in states}
        self._states = torch.stack([*states.values(), final])
        self._next = 0 if states else len(final)  # row

    @property
    def done(self) -> bool:
        return self._next == self._states.shape[1]

    def advance(self, passes: CandidatePass) -> None:
        """Rows that follow those of the last call."""
        rows = self._states[:, self._next : self._next + self._step]
        tokens, confidences = passes.draws(rows)
        for counts, drawn, confidence in zip(self.counts.values(), tokens, confidences, strict=False):
            agreed = [a == b for a, b in zip(drawn, tokens[-1], strict=True)]
            counts.add(confidence, agreed, weight=_REPLAY_WEIGHT)
        self._next += rows.shape[1]


@dataclass(slots=True)
class Search:
    """A knapsack being filled, then what it found being replayed. `owed`: to a long answer."""

    table: Knapsack
    passes: CandidatePass
    references: References
    owed: bool = False
    replay: Replay | None = None
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        return self.replay is not None and self.replay.done


class Budget:
    """The share of the time that searches may take.

    Of what decisions among known plans leave of it, two fifths are for searches as they come due. Each is earned by
    rounds since the one before, so that nothing is saved up for a burst of them; the first is free where nothing is
    known without it; those in a row that find nothing halve what the next one gets. Long answers are owed a search
    whatever others found and decisions took: from all that was ever earned and not spent.
    """

    def __init__(self, share: float, cost: float) -> None:
        """`cost`: seconds that the next search may take."""
        self._share, self.cost = share, cost
        self._barren = 0
        self._earned_then = 0.0  # by when the last search that came due ended,
        self._spent_since = 0.0  # and what went to others since, whose requests ended before them
        self.busy = 0.0  # seconds of rounds so far,
        self.decided = 0.0  # of proposing in them, searches left out,
        self.spent = 0.0  # and of searches
        self.searches = 0

    def earned(self, *, ignorant: bool, plain: bool) -> float:
        """Seconds that a search may take now. `ignorant`: there is nothing to draft with; `plain`: what there is does
        not pay now, and more of it is hardly better."""
        if ignorant and not self.searches and self._spent_since <= _MOST_GIVEN_UP * self.cost:
            return math.inf if self._share else 0.0
        halved = 1 << (self._barren + 2 * plain)
        return _ORDINARY * (self._all_earned - self._earned_then) / halved - self._spent_since

    @property
    def left(self) -> float:
        """Seconds that one may take which is owed."""
        return self._share * self.busy - self.spent

    @property
    def _all_earned(self) -> float:
        """Seconds for searches as they come due, ever: fewer than before where decisions take more than their share."""
        return self._share * self.busy - self.decided

    def charge(self, seconds: float, *, owed: bool) -> None:
        """A search took these."""
        self.spent += seconds
        if not owed:
            self._spent_since += seconds

    def done(self, seconds: float, *, useful: bool, owed: bool) -> None:
        """A search ended which took so long in all."""
        self.cost = min(seconds, _DEARER * self.cost)
        self.searches += 1
        if useful:
            self._barren = 0
        if not owed:
            self._earned_then, self._spent_since = self._all_earned, 0.0
            self._barren = 0 if useful else min(self._barren + 1, _MOST_BARREN)


class Searcher:
    """Fills knapsacks and judges what they found.

    Early exits come again and again, and what was seen of them is remembered: after the first search, each looks at
    every other one.
    """

    def __init__(self, config: EngineConfig, costs: CostModel, clock: Clock, layers: int) -> None:
        self._config, self._costs, self._clock, self._layers = config, costs, clock, layers
        protected = {layer % layers for layer in config.knapspec_protect}
        self._protected = frozenset(i for layer in protected for i in (2 * layer, 2 * layer + 1))
        states = config.knapspec_beam or 2 * layers
        self._width = states * config.knapspec_rows
        self._priced = self._price(self._width)  # the search that the budget knows
        self.budget = Budget(config.knapspec_budget, self._priced)
        self.slices = 0

    def recalibrate(self) -> None:
        """Price the next search by the profile."""
        self._priced = self.budget.cost = self._price(self._width)

    def done(self, search: Search, *, useful: bool) -> None:
        """Whether what a finished search brought was chosen, and better than what there was."""
        self.budget.done(search.seconds, useful=useful, owed=search.owed)
        self._costs.search_factor = self.budget.cost / self._priced

    def _price(self, context: int) -> float:
        """Seconds that a search reads for, about."""
        return self._costs.verify_pass(self._width, [context])

    def cost(self, view: View) -> float:
        """Seconds of a search of this request: of the last one, by the contexts that both read."""
        return self.budget.cost * max(self._price(view.context) / self._priced, _LEAST_PRICE)

    @property
    def least_cost(self) -> float:
        """Seconds of the cheapest that a search may be."""
        return self.budget.cost * _LEAST_PRICE

    def rows(self) -> Rows:
        """Room for the rows that a search looks at."""
        return Rows(self._config.knapspec_rows)

    def enough(self, rows: Rows, hurry: int = 0) -> bool:
        """Whether to search with these rows: half of those that are asked for, for each time that a request ended
        before its search did."""
        most = self._config.knapspec_rows
        return len(rows) >= max(most >> hurry, min(most, _FEWEST_ROWS))

    def begin(self, view: View, rows: Rows, running: Sequence[Variants], *, owed: bool = False) -> Search:
        """A search over these rows, which are taken, beside requests that draft with the plans `running`."""
        config = self._config
        references = rows.take(config.knapspec_rows)
        prices = self._costs.sublayers(view.context, 1 + len(running), union(running) if running else None)
        unit = min(self._costs.sublayers(view.context, 1, None)[:2]) / config.knapspec_resolution
        weights = ticks(prices, unit) if unit > 0 else (1,) * len(prices)
        table = Knapsack(
            references.states,
            weights,
            capacity=int(config.knapspec_max_skip * sum(weights)),
            tau=config.knapspec_tau,
            protected=self._protected,
            beam=config.knapspec_beam,
        )
        return Search(table, view.candidates(references.positions), references, owed)

    def advance(self, view: View, search: Search, *, alone: bool, hurry: int = 0) -> bool:
        """Alone, a request searches in one go, unless its context is so long that one would see it stand still; beside
        others, a sublayer or a few a round, twice as many for each time that a request ended before its search did.
        Whether it is done."""
        started = self._clock.now()
        plain = self._costs.verify_pass(1, [view.context])
        slice_ = max(_LONE_SLICE, 4 * plain) if alone else _SLICE * (1 << hurry) * plain
        while not search.done and (left := slice_ - (self._clock.now() - started)) > 0:
            if not search.table.done:
                if not search.passes.fill(search.table, max(1, int(left / self._row_cost(view, search)))):
                    search.table.advance(search.passes.reach)
            elif search.replay is None:
                search.replay = self._replay(view, search)
            else:
                search.replay.advance(search.passes)
        self.slices += 1
        self.charge(search, self._clock.now() - started)
        if search.done:
            price = self._price(view.context)
            self.budget.cost *= price / self._priced  # of one like this, for comparison
            self._priced = price
        return search.done

    def _row_cost(self, view: View, search: Search) -> float:
        """Seconds of a row of the knapsack, at most."""
        return max(self.cost(view) / len(search.table.weights), 1e-6)

    def charge(self, search: Search, seconds: float) -> None:
        search.seconds += seconds
        self.budget.charge(seconds, owed=search.owed)

    def _replay(self, view: View, search: Search) -> Replay:
        """Of the table's candidates and of the early exits, whose final states the full model's own references are."""
        references = search.references.states
        states = {
            (*c.variants, TARGET): c.state for c in search.table.candidates() if 0 < sum(c.variants) < len(c.variants)
        }
        searches = self.budget.searches
        for depth in range(1 + searches % 2, self._layers, 2 if searches else 1):
            states.setdefault(exit_plan(self._costs.spec, depth), references[2 * depth])
        allowed = self.allowed(states, view.context)
        return Replay({variants: states[variants] for variants in allowed}, references[-1], self._costs.spec.vocab)

    def allowed(self, plans: Iterable[Variants], context: int) -> list[Variants]:
        """Those that run what is protected, and leave out no more or less of the time than is allowed."""
        prices = self._costs.sublayers(context, 1, None)
        whole, least, most = sum(prices), self._config.knapspec_min_skip, self._config.knapspec_max_skip

        def skipped(variants: Variants) -> float:
            return sum(price for price, run in zip(prices, variants, strict=False) if run == SKIP) / whole

        return [v for v in plans if all(v[i] for i in self._protected) and least <= skipped(v) <= most]
