"""Search for plans: a knapsack over the model's own sublayers, within a budget of time (docs/method.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from engine.architecture.spec import LOW_BIT, RECENT, SINKS, SKIP, TARGET, WINDOW, Variants, exit_plan
from engine.clock import Clock
from engine.config.engine import EngineConfig
from engine.draft.base import CandidatePass, RecordedRows, RequestView
from engine.draft.costs import CostModel
from engine.draft.estimator import PlanCounts, union
from engine.draft.tpt import count
from engine.model.knapsack import Knapsack, menus, skipping
from engine.step import References

_REPLAY_WEIGHT = 0.5  # of a replayed token against a tested one: replays see the target's own K/V
_DRAWN_ROWS = 128  # of a replay at once, for a row of logits may take a megabyte; or more rows,
_DRAWN_LOGITS = 1 << 20  # up to this many logits
_SLICE = 0.25  # of a plain pass: what a search may take in a round beside others
_LONE_SLICE = 0.25  # seconds, or four plain passes if longer: how long a search may hold up a lone request
_SAVED_SEARCHES = 2.0  # searches of the usual price that the budget may save up, so that a longer context can pay
_MAX_HALVINGS = 5
_DEARER = 2.0  # most by which one slow search may raise the price of the next


@dataclass(slots=True)
class Search:
    """A knapsack being filled, and then the replay of its candidates over the rows."""

    table: Knapsack
    passes: CandidatePass
    states: Tensor  # X^(0) … X^(2L) of the full model: [2L+1, rows, hidden]
    predicted_seconds: float
    seconds: float = 0.0
    # The replay: candidates with the full model last, and their final states [plans, rows, hidden].
    plans: tuple[Variants, ...] = ()
    final: Tensor | None = None
    counts: PlanCounts = field(default_factory=dict)  # of the candidates
    row: int = 0  # next to be drawn from

    def begin_replay(self, candidates: Mapping[Variants, Tensor], whole: Variants) -> None:
        """Start to replay candidates with these final states [rows, hidden]; `whole` is the full model's plan."""
        self.plans = (*candidates, whole)
        self.final = torch.stack([*candidates.values(), self.states[-1]])
        self.counts = {variants: count((), ()) for variants in candidates}
        self.row = 0 if candidates else self.final.shape[1]

    @property
    def done(self) -> bool:
        return self.final is not None and self.row == self.final.shape[1]

    def replay(self, rows: int) -> None:
        """Draw at up to `rows` more rows, and count which candidates agree with the full model."""
        assert self.final is not None
        tokens, confidences = self.passes.draws(self.final[:, self.row : self.row + rows], self.plans)
        for counts, drawn, confidence in zip(self.counts.values(), tokens, confidences, strict=False):
            counts += _REPLAY_WEIGHT * count(confidence, [a == b for a, b in zip(drawn, tokens[-1], strict=True)])
        self.row += len(tokens[-1])


class Searcher:
    """Chooses who searches, records that request's rows, fills knapsacks and replays their candidates.

    One request searches at a time: the one whose last search was longest ago. Searches may take a share of the time,
    saved up for at most `_SAVED_SEARCHES`. Every fruitless search halves the share, `_MAX_HALVINGS` times at most.
    """

    def __init__(self, config: EngineConfig, costs: CostModel, clock: Clock, *, low_bit: bool) -> None:
        """`low_bit`: whether a copy of the weights in fewer bits is on the menu."""
        self._config, self._costs, self._clock, self._low_bit = config, costs, clock, low_bit
        layers = costs.spec.layers
        self._skips = config.knapspec.menu != "low-bit"
        self._protected = frozenset(2 * (layer % layers) + i for layer in config.knapspec.protect for i in (0, 1))
        # The paper's menu pays for its first searches in advance; elsewhere a search is not known to pay, and has to
        # be earned (docs/results.md).
        prepaid = config.knapspec.menu == "skip" and config.knapspec.budget > 0
        self._budget = _SAVED_SEARCHES * self.predicted_seconds(0) if prepaid else 0.0  # seconds
        self.spent = 0.0  # seconds
        self.searches = self.slices = 0
        self.fruitless = 0  # searches since the last that added a plan
        self.recorder: RequestView[Any] | None = None  # the request whose rows are recorded, or that searches
        self._search: Search | None = None  # of the recorder

    def earn(self, seconds: float) -> None:
        """Add a round of so many seconds to the budget."""
        self._budget += self._config.knapspec.budget * seconds / 2 ** min(self.fruitless, _MAX_HALVINGS)

    def choose_recorder(self, rows: Mapping[RequestView[Any], RecordedRows], round: int) -> None:
        """Choose the request whose rows are recorded from the next round on, if the budget allows a search."""
        if self.recorder in rows:
            return
        view = min(rows, key=lambda view: rows[view].due)
        price, due = self.predicted_seconds(view.context), rows[view].due <= round + self._config.knapspec.rows
        self._budget = min(self._budget, _SAVED_SEARCHES * price)
        self.recorder, self._search = view if due and price <= self._budget else None, None

    def forget(self, view: RequestView[Any]) -> None:
        """Give up the search of a request whose cache is lost."""
        if self.recorder is view:
            self._search = None

    def predicted_seconds(self, context: int) -> float:
        """Predict the seconds of a search, corrected by the last one."""
        return self._costs.search_factor * self._profiled_seconds(context)

    def _profiled_seconds(self, context: int) -> float:
        """Predict a search by the latency profile: a pass of all candidates for every variant that runs something."""
        width = (self._config.knapspec.beam or self._costs.spec.sublayers) * self._config.knapspec.rows
        return (len(self._variants(context)) - 1) * self._costs.verify_pass(width, [context])

    def _variants(self, context: int) -> list[int]:
        """Variants that may be on the menus, the target first and SKIP last."""
        copies = [LOW_BIT, WINDOW] if context > SINKS + RECENT else [LOW_BIT]
        return [TARGET, *(copies if self._low_bit else ()), SKIP]

    def search(
        self, view: RequestView[Any], rows: RecordedRows, drafting: Sequence[Variants], round: int, *, alone: bool
    ) -> PlanCounts | None:
        """Start the `recorder`'s search once it has enough rows, or continue it for a slice of time.

        `drafting`: plans of other requests that draft. Returns the candidates' replayed tokens when the search is done.
        """
        started = self._clock.now()
        if self._search is None:
            if len(rows) < self._config.knapspec.rows or round < rows.due:
                return None
            self._search = self._begin(view, _take(rows, self._config.knapspec.rows), drafting)
        search = self._search
        self._advance(view, search, started, alone=alone)
        seconds = self._clock.now() - started
        search.seconds += seconds
        self.spent += seconds
        self._budget -= seconds
        if not search.done:
            return None
        factor = search.seconds / search.predicted_seconds
        self._costs.search_factor = min(factor, _DEARER * self._costs.search_factor)
        self.searches += 1
        rows.due = round + self._config.knapspec.interval
        self.recorder = self._search = None
        return search.counts

    def _begin(self, view: RequestView[Any], references: References, drafting: Sequence[Variants]) -> Search:
        config = self._config
        offered = self._menus(view.context, drafting)
        # With a copy on the menu, `allowed` checks the skipped share of whole plans afterwards.
        most = 1.0 if self._low_bit else config.knapspec.max_skip
        capacity = int(most * sum(max(menu.values()) for menu in offered))
        table = Knapsack(
            references.states, offered, capacity=capacity, tau=config.knapspec.tau, beam=config.knapspec.beam
        )
        passes = view.candidates(references.positions)
        return Search(table, passes, references.states, self._profiled_seconds(view.context))

    def _menus(self, context: int, drafting: Sequence[Variants]) -> list[dict[int, int]]:
        """Build each sublayer's menu, for one more request beside those that draft with these plans."""
        costs, others = self._costs, union(drafting) if drafting else None
        unit = min(costs.sublayers(context)[:2]) / self._config.knapspec.resolution
        prices: dict[int, list[float]] = {
            variant: costs.sublayers(context, 1 + len(drafting), others, variant) for variant in self._variants(context)
        }
        if WINDOW in prices:  # only attention has windows
            prices[WINDOW][1::2] = [math.inf] * costs.spec.layers
        offered = menus(prices, unit) if unit > 0 else skipping((1,) * costs.spec.sublayers)
        for index in self._protected if self._skips else range(costs.spec.sublayers):
            del offered[index][SKIP]
        return offered

    def _advance(self, view: RequestView[Any], search: Search, started: float, *, alone: bool) -> None:
        """Work on a search until the time slice is over: a long slice for a lone request, a short one beside others."""
        plain = self._costs.verify_pass(1, [view.context])
        slice_ = max(_LONE_SLICE, 4 * plain) if alone else _SLICE * plain
        row_seconds = max(self.predicted_seconds(view.context) / len(search.table.menus), 1e-6)
        self.slices += 1
        while not search.done and (left := slice_ - (self._clock.now() - started)) > 0:
            if not search.table.done:
                search.passes.fill_rows(search.table, max(1, int(left / row_seconds)))
            elif search.final is None:
                search.begin_replay(self._candidates(view, search), self._costs.spec.whole)
            else:
                rows = max(_DRAWN_ROWS, _DRAWN_LOGITS // self._costs.spec.vocab)
                search.replay(max(1, rows // len(search.plans)))

    def _candidates(self, view: RequestView[Any], search: Search) -> dict[Variants, Tensor]:
        """Return the plans to replay with their final states [rows, hidden].

        They are the table's candidates with each head on the menu. Without a copy, early exits join them, whose final
        states are the full model's own.
        """
        spec = self._costs.spec
        heads = (TARGET, LOW_BIT) if self._low_bit else (TARGET,)
        states = {(*c.variants, head): c.state for c in search.table.candidates() for head in heads}
        if not self._low_bit:
            states = {exit_plan(spec, depth): search.states[2 * depth] for depth in range(1, spec.layers)} | states
        nothing = (SKIP,) * spec.sublayers
        allowed = [v for v in self.allowed(states, view.context) if v != spec.whole and v[:-1] != nothing]
        return {variants: states[variants] for variants in allowed}

    def allowed(self, plans: Iterable[Variants], context: int) -> list[Variants]:
        """Return the plans that run all protected layers and skip an allowed share of the time."""
        prices = self._costs.sublayers(context)
        whole, least, most = sum(prices), self._config.knapspec.min_skip, self._config.knapspec.max_skip

        def skipped(variants: Variants) -> float:
            return sum(price for price, run in zip(prices, variants, strict=False) if run == SKIP) / whole

        return [v for v in plans if all(v[i] for i in self._protected) and least <= skipped(v) <= most]


def _take(rows: RecordedRows, most: int) -> References:
    """Remove recorded rows and return the last `most` of them."""
    states = torch.cat([references.states for references in rows.parts], dim=1)[:, -most:]
    positions = tuple(position for references in rows.parts for position in references.positions)[-most:]
    rows.parts.clear()
    return References(states, positions)
