"""KnapSpec: choose the sub-network that drafts by a knapsack, again and again as the context grows.

Three things happen at different rates:
  - every round, drafted and accepted tokens are counted, by request and by plan;
  - every `redecide` rounds, or fewer so that decisions stay cheap, one estimator chooses among the known plans,
    thresholds and γ, including γ = 0 (`engine.draft.estimator`);
  - every T rounds of a request, within the search budget, a knapsack over the request's own references proposes new
    plans (`engine.draft.search`).

All requests share a small pool of known plans, so a new request starts from what earlier ones taught. Requests of one
batch share one choice, for they share every pass: a batch in which only some draft pays for both kinds (measured). The
choices affect speed, never text (docs/method.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from engine.architecture.spec import LOW_BIT, WINDOW
from engine.draft.base import BatchView, DraftPolicy, Outcome, PolicyContext, RecordedRows, RequestView, RoundOutcome
from engine.draft.estimator import AgreementShift, Estimator, PlanCounts
from engine.draft.tpt import THRESHOLDS, count
from engine.errors import ConfigError
from engine.step import Plan

# Prior counts of the copy in fewer bits, by confidence, rejected and agreed: the copy predicts 84 to 95 % of the
# model's tokens (docs/results.md), and is surest where it does.
_COPY_PRIOR = np.array([[1.0, 1.0]] + [[0.0, 0.0]] * (len(THRESHOLDS) - 2) + [[1.0, 13.0]])
_SAVED_TOKENS = 12.0  # tested tokens from which a plan is worth saving for later starts
_DECISION_SHARE = 0.004  # of the time for decisions; with searches (0.5 %) that is less than one per cent
_MAX_ROUNDS = 128  # between two decisions
_TRIAL_ROUNDS = 3  # of a plan predicted to lose: all but the first teach its price (`costs.SETTLING`)


@dataclass(slots=True)
class RequestState:
    """What the policy keeps of one request."""

    rows: RecordedRows
    shift: AgreementShift = field(default_factory=AgreementShift)


class Decision(NamedTuple):
    """The plan in use, until a round, for one kind of batch."""

    plan: Plan
    until: int
    batch_key: object


class KnapSpec(DraftPolicy[RequestState]):
    """The main policy (docs/method.md)."""

    name = "knapspec"

    def __init__(self, context: PolicyContext) -> None:
        from engine.draft.search import Searcher  # the one part of a policy that needs torch

        self._config, self._costs, self._clock = context.config, context.costs, context.clock
        self.looks_up = self._config.lookup == "auto"
        layers = context.spec.layers
        if not all(-layers <= layer < layers for layer in self._config.knapspec.protect):
            raise ConfigError(f"knapspec_protect names a layer that is not there: the model has {layers}")
        low_bit = self._costs.has_low_bit and self._config.knapspec.menu != "skip"
        if self._config.knapspec.menu == "low-bit" and not low_bit:
            raise ConfigError("knapspec_menu is low-bit, but there is no copy of this model in fewer bits")
        self.searcher = Searcher(self._config, self._costs, self._clock, low_bit=low_bit)
        self.estimator = Estimator(self._costs, self._config.knapspec.gamma, self._config.knapspec.memory)
        for variants in self.searcher.allowed(context.tested, 0):
            self.estimator.add(variants, context.tested[variants], 1)
        if low_bit:
            for copy in ((LOW_BIT,) * len(context.spec.whole), (WINDOW, LOW_BIT) * layers + (LOW_BIT,)):
                if copy not in context.tested:
                    self.estimator.add(copy, _COPY_PRIOR)
        self._searches = self._config.knapspec.gamma > 0
        self._round = 0
        self._decision: Decision | None = None
        self._decision_seconds = 0.0  # of one decision, on average

    def tested_plans(self) -> PlanCounts:
        """Return the plans that later starts with the same model may begin from."""
        return {v: counts for v, counts in self.estimator.counts.items() if counts.sum() >= _SAVED_TOKENS}

    def new_state(self) -> RequestState:
        return RequestState(RecordedRows(self._round))

    def propose(self, batch: BatchView[RequestState]) -> Sequence[Plan]:
        new_plans = self._search(batch)
        decision, key = self._decision, _batch_key(batch)
        if decision is None or new_plans or self._round >= decision.until or key != decision.batch_key:
            self._decision = decision = self._decide(batch, key)
        return [decision.plan] * len(batch.views)

    def can_reuse_plans(self) -> bool:
        return self._decision is not None and self.searcher.recorder is None and self._round + 1 < self._decision.until

    def rows_to_record(self, view: RequestView[RequestState]) -> int:
        """Rows are recorded just before a search, for the next request only: recording takes a tenth of a pass."""
        return self._config.knapspec.rows if view is self.searcher.recorder else 0

    def observe(self, views: Sequence[RequestView[RequestState]], round: RoundOutcome) -> None:
        self._round += any(outcome.emitted for outcome in round.outcomes)
        self.searcher.earn(round.seconds * len(views) / round.requests)
        for view, outcome in zip(views, round.outcomes, strict=True):
            state = view.state
            if outcome.references is not None:
                state.rows.append(outcome.references, self._config.knapspec.rows)
            if outcome.drafted:
                self.estimator.observe(state.shift, outcome.emitted, outcome.variants, _tested(outcome))
            elif outcome.emitted:
                self.estimator.observe(state.shift, outcome.emitted, None, None)

    def suspend(self, view: RequestView[RequestState]) -> None:
        view.state.rows.parts.clear()
        self.searcher.forget(view)

    def recalibrate(self) -> None:
        self._decision, self._decision_seconds = None, 0.0

    def _decide(self, batch: BatchView[RequestState], key: object) -> Decision:
        started, before = self._clock.now(), self._decision
        shifts = [view.state.shift for view in batch.views]
        always = self._config.knapspec.min_skip > 0
        plan = self.estimator.choose(batch.contexts, batch.drafting_plans, shifts, self._round, always=always)
        if before is not None and before.batch_key == key:
            outcome = _change(before.plan, plan)
            for view in batch.views:
                view.reselected = outcome
        seconds = self._clock.now() - started
        self._decision_seconds += 0.2 * (seconds - self._decision_seconds)  # the first decision is slow: start from 0
        plain = self._costs.verify_pass(batch.size, batch.contexts)
        rounds = max(self._config.knapspec.redecide, int(self._decision_seconds / _DECISION_SHARE / plain))
        if not plan.pays:
            rounds = _TRIAL_ROUNDS
        return Decision(plan, self._round + min(rounds, _MAX_ROUNDS), key)

    def _search(self, batch: BatchView[RequestState]) -> bool:
        """Continue a search, or choose who searches next. Returns whether the search added a plan."""
        if not self._searches:
            return False
        rows = {view: view.state.rows for view in batch.views}
        new_plan, view = False, self.searcher.recorder
        if view is not None and view in rows:
            drafting = batch.drafting_plans
            if len(rows) > 1 and self._decision is not None and self._decision.plan.gamma:
                drafting = [*drafting, self._decision.plan.variants]
            alone = len(rows) + view.other_requests == 1
            replayed = self.searcher.search(view, rows[view], drafting, self._round, alone=alone)
            if replayed is not None:
                new_plan = self._adopt(replayed, view.context)
                self.searcher.fruitless = 0 if new_plan else self.searcher.fruitless + 1
        self.searcher.choose_recorder(rows, self._round)
        return new_plan

    def _adopt(self, replayed: PlanCounts, context: int) -> bool:
        """Add the best candidate to the pool if its predicted gain beats plain decoding and every known plan.

        More plans would cost more to try than they gain. Replayed tokens of known plans are counted too. Returns
        whether the best plan is a new one.
        """
        known = self.estimator.counts
        most = max([1.0, *self.estimator.predicted_gains(known, context).values()])
        best, gain = next(iter(self.estimator.predicted_gains(replayed, context).items()), ((), 0.0))
        new = gain > most and best not in known
        for variants, counts in replayed.items():
            if variants in known or (new and variants == best):
                self.estimator.add(variants, counts, context)
        return new and best == next(iter(self.estimator.predicted_gains(known, context)))


def _batch_key(batch: BatchView[RequestState]) -> object:
    """What a decision holds for: one request, or batches whose sizes are within a factor of two."""
    return batch.views[0].request_id if batch.size == 1 else (batch.size - 1).bit_length()


def _tested(outcome: Outcome) -> np.ndarray:
    """Count draft tokens by confidence and whether they helped: tokens after the end of an answer did not."""
    kept = min(outcome.accepted, max(outcome.emitted - 1, 0))
    return count(outcome.confidences, [True] * kept + [False] * (kept < outcome.drafted))


def _change(before: Plan, after: Plan) -> str:
    if after.gamma == 0:
        return "plain" if before.gamma else "kept"
    return "kept" if before.gamma and before.variants == after.variants else "changed"
