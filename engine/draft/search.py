"""Search for plans: a knapsack over the model's own sublayers, within a share of the time (docs/method.md)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.clock import Clock
from engine.config.policies import KnapSpecConfig
from engine.draft.base import RequestView
from engine.draft.costs import CostModel
from engine.draft.estimator import PlanCounts, union
from engine.draft.tpt import count
from engine.plans import LOW_BIT, RECENT, SINKS, SKIP, TARGET, WINDOW, Variants
from engine.step import References

_TICKS = 8  # weight of the cheaper kind of sublayer: a ratio of 1.4 must not become 1
_SLICE = 0.5  # the share of a plain pass that a search takes in a round: other requests wait meanwhile


@dataclass(slots=True)
class SearchState:
    """A request's rounds since its last search, and the rows that its next one starts from."""

    rounds: int = 0
    seconds: float = 0.0  # the time of the rounds since the last search
    rows: deque[References] = field(default_factory=deque)

    def record(self, references: References, most: int) -> None:
        """Add verified rows; drop the oldest while `most` remain."""
        self.rows.append(references)
        while self.recorded - len(self.rows[0].positions) >= most:
            self.rows.popleft()

    @property
    def recorded(self) -> int:
        """The number of rows."""
        return sum(len(references.positions) for references in self.rows)

    def take(self, most: int) -> References:
        """Forget all rows and return the last `most`."""
        import torch

        states = torch.cat([references.states for references in self.rows], dim=1)[:, -most:]
        positions = tuple(position for references in self.rows for position in references.positions)[-most:]
        self.rows.clear()
        return References(states, positions)


class Searcher:
    """Chooses who searches, fills that request's knapsack, and replays the candidates over its rows.

    A request searches after max(T, price ÷ budget) rounds of its own, so that no answer loses more than the budget. All
    requests together search after price ÷ (budget · p), where p is the probability that a search adds a plan, by
    Laplace's rule of succession: (1 + found) / (1 + searches). So searches become rare where they find nothing: in the
    time of N plain passes they take about √(2 · budget · price / N) of it, with the price in passes.
    """

    def __init__(self, config: KnapSpecConfig, costs: CostModel, clock: Clock, *, low_bit: bool) -> None:
        """`low_bit`: whether a copy of the weights in fewer bits is on the menu."""
        self._config, self._costs, self._clock, self._low_bit = config, costs, clock, low_bit
        self.searches = self.found = 0  # found: searches that added a plan
        self.spent = 0.0  # seconds
        self._rounds, self._earned = 0, 0.0  # rounds since the last search, and their seconds
        self.recorder: RequestView[SearchState] | None = None  # the request whose rows are recorded, or that searches
        self._search: Iterator[PlanCounts | None] | None = None  # the recorder's search
        self._predicted = self._seconds = 0.0  # predicted and measured seconds of the current search

    def earn(self, seconds: float) -> None:
        """Count a round that took so many seconds."""
        self._rounds += 1
        self._earned += seconds

    def choose_recorder(self, views: Sequence[RequestView[SearchState]]) -> None:
        """Choose the request whose rows are recorded from the next round on, if one may search."""
        if self.recorder in views:
            return
        view = max(views, key=lambda view: view.state.rounds)
        due = view.state.rounds >= self._config.interval and self._paid(view.context, view.state.seconds)
        self.recorder, self._search = view if due else None, None

    def _paid(self, context: int, seconds: float) -> bool:
        """Whether a request that has decoded for so many seconds, and all together, have paid for a search."""
        price, budget = self.predicted_seconds(context), self._config.budget
        return price <= budget * min(seconds, self._probability * self._earned)

    @property
    def _probability(self) -> float:
        return (1 + self.found) / (1 + self.searches)

    def interval(self, context: int) -> float:
        """Return max(T, price ÷ (budget · p)) in rounds, which take as long as those since the last search did."""
        each = self._earned / self._rounds if self._rounds else self._costs.verify_pass(1, [context])
        share = self._config.budget * self._probability
        return max(self._config.interval, self.predicted_seconds(context) / share / each if share else math.inf)

    def predicted_seconds(self, context: int) -> float:
        """Predict the seconds of a search, corrected by earlier ones."""
        return self._costs.search_factor * self._profiled_seconds(context)

    def _profiled_seconds(self, context: int) -> float:
        """Predict a search by the latency profile: a pass of all states for every variant that runs something."""
        states = self._config.beam or self._costs.spec.sublayers
        runs = len(self._variants(context)) - (SKIP in self._variants(context))
        return runs * self._costs.verify_pass(states * self._config.rows, [context])

    def _variants(self, context: int) -> list[int]:
        """Variants that may be on the menus, the target first."""
        copies = [LOW_BIT, WINDOW] if context > SINKS + RECENT else [LOW_BIT]
        return [TARGET, *(copies if self._low_bit else ()), *([SKIP] if self._config.menu != "low-bit" else ())]

    def search(self, view: RequestView[SearchState], drafting: Sequence[Variants]) -> PlanCounts | None:
        """Start the `recorder`'s search once it has enough rows, or continue it for a slice of time.

        `drafting`: plans of other requests that draft. Returns the candidates' replayed tokens when the search is done.
        """
        started, state = self._clock.now(), view.state
        if self._search is None:
            if state.recorded < self._config.rows:
                return None
            self._predicted, self._seconds = self._profiled_seconds(view.context), 0.0
            self._search = self._steps(view, state.take(self._config.rows), drafting)
        until = started + _SLICE * self._costs.verify_pass(1, [view.context])
        while (found := next(self._search)) is None and self._clock.now() < until:
            pass
        seconds = self._clock.now() - started
        self._seconds += seconds
        self.spent += seconds
        if found is not None:
            self._costs.correct_searches(self._seconds / self._predicted)
            self.searches += 1
            state.rounds, state.seconds, self._rounds, self._earned = 0, 0.0, 0, 0.0
            self.recorder = self._search = None
        return found

    def _steps(
        self, view: RequestView[SearchState], references: References, drafting: Sequence[Variants]
    ) -> Iterator[PlanCounts | None]:
        """Fill a row of the knapsack at each step, then replay the candidates; yield the replayed tokens last.

        The cosine only prunes. A candidate's agreement is the share of rows at which it draws the target's token (eq.
        9), which these counts hold by confidence.
        """
        import torch

        from engine.model.knapsack import Knapsack

        offered = self._menus(view.context, drafting)
        capacity = sum(max(menu.values()) for menu in offered)
        table = Knapsack(references.states, offered, capacity=capacity, tau=self._config.tau, beam=self._config.beam)
        passes = view.candidates(references.positions)
        while not table.done:
            table.advance(passes.sublayer)
            yield None
        head, nothing = LOW_BIT if self._low_bit else TARGET, (SKIP,) * self._costs.spec.sublayers
        states = {(*c.variants, head): c.state for c in table.candidates() if c.variants != nothing}
        states[self._costs.spec.whole] = references.states[-1]
        tokens, confidences = passes.draws(torch.stack([*states.values()]), [*states])
        target = tokens[[*states].index(self._costs.spec.whole)]
        drawn = zip(states, tokens, confidences, strict=True)
        yield {
            variants: count(sure, [a == b for a, b in zip(drew, target, strict=True)])
            for variants, drew, sure in drawn
            if variants != self._costs.spec.whole
        }

    def _menus(self, context: int, drafting: Sequence[Variants]) -> list[dict[int, int]]:
        """Build each sublayer's menu, for one more request beside those that draft with these plans."""
        costs, others = self._costs, union(drafting) if drafting else None
        cheaper = min((price for price in costs.sublayers(context)[:2] if price > 0), default=1.0)
        prices: dict[int, list[float]] = {
            variant: costs.sublayers(context, 1 + len(drafting), others, variant) for variant in self._variants(context)
        }
        if WINDOW in prices:  # only attention has windows
            prices[WINDOW][1::2] = [math.inf] * costs.spec.layers
        return menus(prices, cheaper / _TICKS)


def menus(prices: Mapping[int, Sequence[float]], unit: float) -> list[dict[int, int]]:
    """Build each sublayer's menu from the seconds of its variants (infinite where a variant does not exist).

    Savings are rounded to ticks of `unit` seconds. Variants that save nothing are left out.
    """
    found = []
    for index, whole in enumerate(prices[TARGET]):
        saved = {v: whole - each[index] for v, each in prices.items()}
        found.append({v: round(s / unit) for v, s in saved.items() if v in (TARGET, SKIP) or s > 0})
    return found
