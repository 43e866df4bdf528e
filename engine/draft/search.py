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
from engine.draft.estimator import Counts, union
from engine.draft.knapsack import Knapsack, menus, skipping
from engine.draft.tpt import count
from engine.model.spec import LOW_BIT, RECENT, SINKS, SKIP, TARGET, WINDOW, Variants, exit_plan

_REPLAY_WEIGHT = 0.5  # of a replayed row against a token really tested: rows replay with the target's own K/V
_DRAWN_ROWS = 128  # of a replay at once: a row of logits may take a megabyte,
_DRAWN_LOGITS = 1 << 20  # or more, of so many logits
_SLICE = 0.25  # of a plain pass that a search may take in a round beside others
_LONE_SLICE = 0.25  # seconds, or four plain passes: the longest that an answer stands still for one
_MOST_BARREN = 5  # searches in a row that found nothing, each of which halves what the next one gets
_LEAST_PRICE = 0.25  # of the last search's, for one that reads a shorter context
_SAVED = 2.0  # searches of the usual price, so that one over a longer context can be paid
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

    def __init__(self, states: Mapping[Variants, Tensor], whole: Variants, final: Tensor, vocab: int) -> None:
        """`whole`: the plan that is the full model."""
        self._plans = (*states, whole)
        self._step = max(1, max(_DRAWN_ROWS, _DRAWN_LOGITS // vocab) // (len(states) + 1))
        self.counts: Counts = {variants: count((), ()) for variants in states}
        self._states = torch.stack([*states.values(), final])
        self._next = 0 if states else len(final)  # row

    @property
    def done(self) -> bool:
        return self._next == self._states.shape[1]

    def advance(self, passes: CandidatePass) -> None:
        """Rows that follow those of the last call."""
        rows = self._states[:, self._next : self._next + self._step]
        tokens, confidences = passes.draws(rows, self._plans)
        for counts, drawn, confidence in zip(self.counts.values(), tokens, confidences, strict=False):
            counts += _REPLAY_WEIGHT * count(confidence, [a == b for a, b in zip(drawn, tokens[-1], strict=True)])
        self._next += rows.shape[1]


@dataclass(slots=True)
class Search:
    """A knapsack being filled, then what it found being replayed."""

    table: Knapsack
    passes: CandidatePass
    references: References
    replay: Replay | None = None
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        return self.replay is not None and self.replay.done


@dataclass(slots=True)
class Trail:
    """What searches of one request go by."""

    rows: Rows
    due: int  # round from which on it may search
    search: Search | None = None


class Budget:
    """The share of the time that searches may take, saved up for `_SAVED` of them at most.

    Each that finds nothing halves what is saved for the next.
    """

    def __init__(self, share: float, cost: float, *, advance: bool) -> None:
        """`cost`: seconds that the next search may take; `advance`: whether the first is free."""
        self._share, self.cost = share, cost
        self._saved = _SAVED * cost if share and advance else 0.0
        self._barren = 0
        self.spent = 0.0  # seconds of searches
        self.searches = 0

    @property
    def left(self) -> float:
        """Seconds that a search may take now."""
        return self._saved if self._share else -1.0

    def earn(self, seconds: float) -> None:
        """So long a round was."""
        self._saved = min(self._saved + self._share * seconds / (1 << self._barren), _SAVED * self.cost)

    def charge(self, seconds: float) -> None:
        self.spent += seconds
        self._saved -= seconds

    def done(self, seconds: float, *, useful: bool) -> None:
        """A search ended which took so long in all."""
        self.cost = min(seconds, _DEARER * self.cost)
        self.searches += 1
        self._barren = 0 if useful else min(self._barren + 1, _MOST_BARREN)


class Searcher:
    """Keeps the rows of whoever searches next, fills knapsacks with them, and replays what these found.

    One request searches at a time: of several, whose last search was longest ago. Where there is no copy of the weights
    in fewer bits, early exits are replayed too: after the first search, each looks at every other one.
    """

    def __init__(self, config: EngineConfig, costs: CostModel, clock: Clock, layers: int, *, low_bit: bool) -> None:
        """`low_bit`: whether that copy is on the menu."""
        self._config, self._costs, self._clock, self._layers = config, costs, clock, layers
        self._low_bit = low_bit
        protected = {layer % layers for layer in config.knapspec_protect}
        self._skips = config.knapspec_menu != "low-bit"
        self._protected = frozenset(i for layer in protected for i in (2 * layer, 2 * layer + 1))
        states = config.knapspec_beam or 2 * layers
        self._width = states * config.knapspec_rows
        self._priced = self._price(self._width)  # the search that the budget knows
        # Where it is not known to pay (docs/knapspec.md), a search has to be earned: the menu of the paper asks for it.
        self.budget = Budget(config.knapspec_budget, self._priced, advance=config.knapspec_menu == "skip")
        self.slices = 0
        self.recorder: View | None = None  # whose rows are kept, or who searches

    def recalibrate(self) -> None:
        """Price the next search by the profile."""
        self._priced = self.budget.cost = self._price(self._width)

    def trail(self, round: int) -> Trail:
        """Of a request that begins."""
        return Trail(Rows(self._config.knapspec_rows), round)

    def suspend(self, trail: Trail) -> None:
        """What the request's rows refer to is gone."""
        trail.rows, trail.search = Rows(self._config.knapspec_rows), None

    def choose(self, views: Sequence[View], trails: Sequence[Trail], round: int) -> None:
        """Whose rows to keep from the next round on."""
        if self.recorder is not None and self.recorder in views:
            return
        self.recorder = None
        soon = round + self._config.knapspec_rows
        due = sorted((trail.due, i) for i, trail in enumerate(trails) if trail.due <= soon)
        self.recorder = next((views[i] for _, i in due if self.affordable(views[i])), None)

    def affordable(self, view: View) -> bool:
        """Whether there is time for a search of this request."""
        return self.cost(view) <= self.budget.left

    def search(
        self, view: View, trail: Trail, running: Sequence[Variants], round: int, *, alone: bool
    ) -> Search | None:
        """Go on with the search of the `recorder`, beside requests that draft with the plans `running`, or begin it
        once there are rows enough. Returns it when it is done."""
        started = self._clock.now()
        if trail.search is None:
            if len(trail.rows) < self._config.knapspec_rows or round < trail.due:
                return None
            trail.search = self._begin(view, trail.rows, running)
        search = trail.search
        done = self._advance(view, search, started, alone=alone)
        seconds = self._clock.now() - started
        search.seconds += seconds
        self.budget.charge(seconds)
        if not done:
            return None
        trail.search, trail.due = None, round + self._config.knapspec_interval
        self.recorder = None
        return search

    def done(self, view: View, search: Search, *, useful: bool) -> None:
        """Whether a finished search brought anything that was chosen."""
        price = self._price(view.context)
        self.budget.cost *= price / self._priced  # of one like this, for comparison
        self._priced = price
        self.budget.done(search.seconds, useful=useful)
        self._costs.search_factor = self.budget.cost / price

    def _price(self, context: int) -> float:
        """Seconds that a search computes for, about: every variant of the menu but nothing."""
        return (len(self._variants(context)) - 1) * self._costs.verify_pass(self._width, [context])

    def _variants(self, context: int) -> list[int]:
        """Of sublayers, that may be on their menus; the best known first, nothing last."""
        copies = [LOW_BIT, WINDOW] if context > SINKS + RECENT else [LOW_BIT]
        return [TARGET, *(copies if self._low_bit else ()), SKIP]

    def cost(self, view: View) -> float:
        """Seconds of a search of this request: of the last one, by the contexts that both read."""
        return self.budget.cost * max(self._price(view.context) / self._priced, _LEAST_PRICE)

    def _begin(self, view: View, rows: Rows, running: Sequence[Variants]) -> Search:
        """A search over these rows, which are taken."""
        config = self._config
        references = rows.take(config.knapspec_rows)
        offered = self._menus(view.context, running)
        most = 1.0 if self._low_bit else config.knapspec_max_skip  # what a plan skips is looked at when it is whole
        table = Knapsack(
            references.states,
            offered,
            capacity=int(most * sum(max(menu.values()) for menu in offered)),
            tau=config.knapspec_tau,
            beam=config.knapspec_beam,
        )
        return Search(table, view.candidates(references.positions), references)

    def _menus(self, context: int, running: Sequence[Variants]) -> list[dict[int, int]]:
        """Of each sublayer, for one more request beside those that draft with these plans."""
        costs, others = self._costs, union(running) if running else None
        unit = min(costs.sublayers(context)[:2]) / self._config.knapspec_resolution
        sublayers = 2 * self._layers
        prices: dict[int, list[float]] = {
            variant: [0.0] * sublayers
            if variant == SKIP
            else costs.sublayers(context, 1 + len(running), others, variant)
            for variant in self._variants(context)
        }
        if WINDOW in prices:
            prices[WINDOW][1::2] = [math.inf] * self._layers
        offered = menus(prices, unit) if unit > 0 else skipping((1,) * sublayers)
        for index in self._protected if self._skips else range(sublayers):
            del offered[index][SKIP]
        return offered

    def _advance(self, view: View, search: Search, started: float, *, alone: bool) -> bool:
        """Alone, a request searches in one go, unless its context is so long that one would see it stand still; beside
        others, a sublayer or a few a round. Whether it is done."""
        plain = self._costs.verify_pass(1, [view.context])
        slice_ = max(_LONE_SLICE, 4 * plain) if alone else _SLICE * plain
        row = max(self.cost(view) / len(search.table.menus), 1e-6)  # seconds of one of the knapsack, at most
        while not search.done and (left := slice_ - (self._clock.now() - started)) > 0:
            if not search.table.done:
                if not search.passes.fill(search.table, max(1, int(left / row))):
                    search.table.advance(search.passes.reach)
            elif search.replay is None:
                search.replay = self._replay(view, search)
            else:
                search.replay.advance(search.passes)
        self.slices += 1
        return search.done

    def _replay(self, view: View, search: Search) -> Replay:
        """Of the table's candidates and of the early exits, whose final states the full model's own references are."""
        references, spec = search.references.states, self._costs.spec
        heads = (TARGET, LOW_BIT) if self._low_bit else (TARGET,)
        states = {(*c.variants, head): c.state for c in search.table.candidates() for head in heads}
        if not self._low_bit:
            searches = self.budget.searches
            for depth in range(1 + searches % 2, self._layers, 2 if searches else 1):
                states.setdefault(exit_plan(spec, depth), references[2 * depth])
        nothing = (SKIP,) * spec.sublayers
        allowed = [v for v in self.allowed(states, view.context) if v != spec.whole and v[:-1] != nothing]
        return Replay({variants: states[variants] for variants in allowed}, spec.whole, references[-1], spec.vocab)

    def allowed(self, plans: Iterable[Variants], context: int) -> list[Variants]:
        """Those that run what is protected, and leave out no more or less of the time than is allowed."""
        prices = self._costs.sublayers(context)
        whole, least, most = sum(prices), self._config.knapspec_min_skip, self._config.knapspec_max_skip

        def skipped(variants: Variants) -> float:
            return sum(price for price, run in zip(prices, variants, strict=False) if run == SKIP) / whole

        return [v for v in plans if all(v[i] for i in self._protected) and least <= skipped(v) <= most]
