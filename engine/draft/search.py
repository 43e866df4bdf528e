"""Searching for plans: a knapsack over the model's own sublayers, within a budget of time (METHODS 1, stage 1)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.architecture.spec import LOW_BIT, RECENT, SINKS, SKIP, TARGET, WINDOW, Variants, exit_plan
from engine.clock import Clock
from engine.config import EngineConfig
from engine.draft.base import CandidatePass, View
from engine.draft.costs import CostModel
from engine.draft.estimator import Counts, union
from engine.draft.knapsack import Knapsack, menus, skipping
from engine.draft.tpt import count
from engine.step import References

_REPLAY_WEIGHT = 0.5  # of a replayed row against a token really tested: rows replay with the target's own K/V
_DRAWN_ROWS = 128  # of a replay at once: a row of logits may take a megabyte,
_DRAWN_LOGITS = 1 << 20  # or more, of so many logits
_SLICE = 0.25  # of a plain pass that a search may take in a round beside others
_LONE_SLICE = 0.25  # seconds, or four plain passes: the longest that an answer stands still for one
_SAVED = 2.0  # searches of the usual price, so that one over a longer context can be paid
_MOST_BARREN = 5
_DEARER = 2.0  # most that the next search is thought to take of the last: a slow one may have been bad luck


@dataclass(slots=True)
class Search:
    """A knapsack being filled; then what its candidates would have drafted at the rows, a few rows at a time."""

    table: Knapsack
    passes: CandidatePass
    states: Tensor  # X^(0) … X^(2L) of the full model: [2L+1, rows, hidden]
    price: float  # seconds that it computes for, about
    seconds: float = 0.0
    plans: tuple[Variants, ...] = ()  # candidates, the full model last,
    final: Tensor | None = None  # [plans, rows, hidden], and the states that they end with
    counts: Counts = field(default_factory=dict)  # of the candidates
    row: int = 0  # to draw from next

    def begin_replay(self, candidates: Mapping[Variants, Tensor], whole: Variants) -> None:
        """`candidates`: final states [rows, hidden]. `whole`: the plan that is the full model."""
        self.plans = (*candidates, whole)
        self.final = torch.stack([*candidates.values(), self.states[-1]])
        self.counts = {variants: count((), ()) for variants in candidates}
        self.row = 0 if candidates else self.final.shape[1]

    @property
    def done(self) -> bool:
        return self.final is not None and self.row == self.final.shape[1]

    def replay(self, rows: int) -> None:
        """So many rows more."""
        assert self.final is not None
        tokens, confidences = self.passes.draws(self.final[:, self.row : self.row + rows], self.plans)
        for counts, drawn, confidence in zip(self.counts.values(), tokens, confidences, strict=False):
            counts += _REPLAY_WEIGHT * count(confidence, [a == b for a, b in zip(drawn, tokens[-1], strict=True)])
        self.row += len(tokens[-1])


@dataclass(slots=True)
class Trail:
    """What a search of one request goes by: its last verified rows."""

    due: int  # round from which on it may search
    kept: deque[References] = field(default_factory=deque)
    search: Search | None = None

    @property
    def rows(self) -> int:
        return sum(len(references.positions) for references in self.kept)

    def keep(self, references: References, most: int) -> None:
        """Append rows; forget the oldest beyond `most`."""
        self.kept.append(references)
        while self.rows - len(self.kept[0].positions) >= most:
            self.kept.popleft()

    def take(self, most: int) -> References:
        """The last `most` rows; none are left."""
        states = torch.cat([references.states for references in self.kept], dim=1)[:, -most:]
        positions = tuple(position for references in self.kept for position in references.positions)[-most:]
        self.kept.clear()
        return References(states, positions)

    def forget(self) -> None:
        """What the rows refer to is gone."""
        self.kept.clear()
        self.search = None


class Searcher:
    """Keeps the rows of whoever searches next, fills knapsacks with them, and replays what these found.

    One request searches at a time: of several, whose last search was longest ago. Searches take a share of the time,
    saved up for `_SAVED` of them at most; each that brought nothing halves it, `_MOST_BARREN` times at most.
    """

    def __init__(self, config: EngineConfig, costs: CostModel, clock: Clock, *, low_bit: bool) -> None:
        """`low_bit`: whether a copy of the weights in fewer bits is on the menu."""
        self._config, self._costs, self._clock, self._low_bit = config, costs, clock, low_bit
        layers = costs.spec.layers
        self._skips = config.knapspec_menu != "low-bit"
        self._protected = frozenset(2 * (layer % layers) + i for layer in config.knapspec_protect for i in (0, 1))
        # Where it is not known to pay (docs/results.md), a search has to be earned: the menu of the paper asks for it.
        free = config.knapspec_menu == "skip" and config.knapspec_budget > 0
        self._saved = _SAVED * self.price(0) if free else 0.0  # seconds
        self.spent = 0.0  # seconds
        self.searches = self.slices = 0
        self.barren = 0  # the last searches that brought nothing
        self.recorder: View | None = None  # whose rows are kept, or who searches

    def earn(self, seconds: float) -> None:
        """So long a round was."""
        self._saved += self._config.knapspec_budget * seconds / 2 ** min(self.barren, _MOST_BARREN)

    def choose(self, trails: Mapping[View, Trail], round: int) -> None:
        """Whose rows to keep from the next round on."""
        if self.recorder in trails:
            return
        view = min(trails, key=lambda view: trails[view].due)
        price, due = self.price(view.context), trails[view].due <= round + self._config.knapspec_rows
        self._saved = min(self._saved, _SAVED * price)
        self.recorder = view if due and price <= self._saved else None

    def price(self, context: int) -> float:
        """Seconds of a search, by the last one."""
        return self._costs.search_factor * self._computed(context)

    def _computed(self, context: int) -> float:
        """Seconds that a search computes for, about: every variant of the menu but nothing."""
        width = (self._config.knapspec_beam or self._costs.spec.sublayers) * self._config.knapspec_rows
        return (len(self._variants(context)) - 1) * self._costs.verify_pass(width, [context])

    def _variants(self, context: int) -> list[int]:
        """Of sublayers, that may be on their menus; the best known first, nothing last."""
        copies = [LOW_BIT, WINDOW] if context > SINKS + RECENT else [LOW_BIT]
        return [TARGET, *(copies if self._low_bit else ()), SKIP]

    def search(
        self, view: View, trail: Trail, running: Sequence[Variants], round: int, *, alone: bool
    ) -> Counts | None:
        """Go on with the search of the `recorder`, beside requests that draft with the plans `running`, or begin it
        once there are rows enough. What its candidates would have drafted, when it is done."""
        started = self._clock.now()
        if trail.search is None:
            if trail.rows < self._config.knapspec_rows or round < trail.due:
                return None
            trail.search = self._begin(view, trail.take(self._config.knapspec_rows), running)
        search = trail.search
        self._advance(view, search, started, alone=alone)
        seconds = self._clock.now() - started
        search.seconds += seconds
        self.spent += seconds
        self._saved -= seconds
        if not search.done:
            return None
        self._costs.search_factor = min(search.seconds / search.price, _DEARER * self._costs.search_factor)
        self.searches += 1
        trail.search, trail.due, self.recorder = None, round + self._config.knapspec_interval, None
        return search.counts

    def _begin(self, view: View, references: References, running: Sequence[Variants]) -> Search:
        """A search over these rows."""
        config = self._config
        offered = self._menus(view.context, running)
        most = 1.0 if self._low_bit else config.knapspec_max_skip  # what a plan skips is looked at when it is whole
        capacity = int(most * sum(max(menu.values()) for menu in offered))
        table = Knapsack(
            references.states, offered, capacity=capacity, tau=config.knapspec_tau, beam=config.knapspec_beam
        )
        passes = view.candidates(references.positions)
        return Search(table, passes, references.states, self._computed(view.context))

    def _menus(self, context: int, running: Sequence[Variants]) -> list[dict[int, int]]:
        """Of each sublayer, for one more request beside those that draft with these plans."""
        costs, others = self._costs, union(running) if running else None
        unit = min(costs.sublayers(context)[:2]) / self._config.knapspec_resolution
        prices: dict[int, list[float]] = {
            variant: costs.sublayers(context, 1 + len(running), others, variant) for variant in self._variants(context)
        }
        if WINDOW in prices:
            prices[WINDOW][1::2] = [math.inf] * costs.spec.layers
        offered = menus(prices, unit) if unit > 0 else skipping((1,) * costs.spec.sublayers)
        for index in self._protected if self._skips else range(costs.spec.sublayers):
            del offered[index][SKIP]
        return offered

    def _advance(self, view: View, search: Search, started: float, *, alone: bool) -> None:
        """Alone, a request searches in one go, unless its context is so long that one would see it stand still; beside
        others, a sublayer or a few a round."""
        plain = self._costs.verify_pass(1, [view.context])
        slice_ = max(_LONE_SLICE, 4 * plain) if alone else _SLICE * plain
        row = max(self.price(view.context) / len(search.table.menus), 1e-6)  # seconds of one of the knapsack, at most
        self.slices += 1
        while not search.done and (left := slice_ - (self._clock.now() - started)) > 0:
            if not search.table.done:
                if not search.passes.fill(search.table, max(1, int(left / row))):
                    search.table.advance(search.passes.reach)
            elif search.final is None:
                search.begin_replay(self._candidates(view, search), self._costs.spec.whole)
            else:
                logits = max(_DRAWN_ROWS, _DRAWN_LOGITS // self._costs.spec.vocab)
                search.replay(max(1, logits // len(search.plans)))

    def _candidates(self, view: View, search: Search) -> dict[Variants, Tensor]:
        """Those of the table, with each head that is on the menu; where the only one is the target's, the early exits
        too, whose final states [rows, hidden] are the full model's."""
        spec = self._costs.spec
        heads = (TARGET, LOW_BIT) if self._low_bit else (TARGET,)
        states = {(*c.variants, head): c.state for c in search.table.candidates() for head in heads}
        if not self._low_bit:
            states = {exit_plan(spec, depth): search.states[2 * depth] for depth in range(1, spec.layers)} | states
        nothing = (SKIP,) * spec.sublayers
        allowed = [v for v in self.allowed(states, view.context) if v != spec.whole and v[:-1] != nothing]
        return {variants: states[variants] for variants in allowed}

    def allowed(self, plans: Iterable[Variants], context: int) -> list[Variants]:
        """Those that run what is protected, and leave out no more or less of the time than is allowed."""
        prices = self._costs.sublayers(context)
        whole, least, most = sum(prices), self._config.knapspec_min_skip, self._config.knapspec_max_skip

        def skipped(variants: Variants) -> float:
            return sum(price for price, run in zip(prices, variants, strict=False) if run == SKIP) / whole

        return [v for v in plans if all(v[i] for i in self._protected) and least <= skipped(v) <= most]
