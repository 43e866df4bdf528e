"""KnapSpec: choose the sub-network that drafts by a knapsack, again and again as the context grows.

Three things happen at different rates:
  - every round, drafted and accepted tokens are counted by plan;
  - every eight rounds, or fewer so that decisions stay cheap, one estimator chooses among the known plans, thresholds
    and γ, including γ = 0 (`engine.draft.estimator`);
  - every max(T, price ÷ budget) rounds of a request, a knapsack over the request's own references proposes a new plan
    (`engine.draft.search`).

All requests share a small pool of known plans, so a new request starts from what earlier ones taught. Requests of one
batch share one choice, for they share every pass. With a choice for each, four streams of short prompts and of 3,000
tokens ran at 1.184 instead of 1.192 of plain decoding (0.5B; docs/notes/drafting.md). Choices never affect the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.draft.base import BatchView, DraftPolicy, Outcome, PolicyContext, RequestView, RoundOutcome
from engine.draft.estimator import Estimator, PlanCounts
from engine.draft.search import Searcher, SearchState
from engine.draft.tpt import THRESHOLDS, count
from engine.errors import ConfigError
from engine.plans import LOW_BIT, WINDOW
from engine.step import Plan

# Prior counts of the copy in fewer bits, by confidence, rejected and agreed: the copy predicts 84 to 95 % of the
# model's tokens (docs/results.md), and is surest where it does.
_COPY_PRIOR = np.array([[1.0, 1.0]] + [[0.0, 0.0]] * (len(THRESHOLDS) - 2) + [[1.0, 13.0]])
_MEMORY = 2000.0  # emitted tokens over which observations of a plan fade
_DECISION_SHARE = 0.004  # the share of the time that decisions may take
_MIN_ROUNDS, _MAX_ROUNDS = 8, 128  # between two decisions
_TRIAL_ROUNDS = 3  # rounds of a plan predicted to lose: all but the first teach its price (`costs.SETTLING`)


class Decision(NamedTuple):
    """The plan in use, until a round, for one kind of batch."""

    plan: Plan
    until: int
    batch_key: object


class KnapSpec(DraftPolicy[SearchState]):
    """The main policy (docs/method.md)."""

    name = "knapspec"
    state_type = SearchState

    def __init__(self, context: PolicyContext) -> None:
        self._config, self._costs, self._clock = context.config.knapspec, context.costs, context.clock
        self.looks_up = context.config.lookup == "auto"
        low_bit = self._costs.has_low_bit and self._config.menu != "skip"
        if self._config.menu == "low-bit" and not low_bit:
            raise ConfigError("knapspec_menu is low-bit, but there is no copy of this model in fewer bits")
        self.searcher = Searcher(self._config, self._costs, self._clock, low_bit=low_bit)
        self.estimator = Estimator(self._costs, self._config.gamma, _MEMORY)
        for variants, counts in context.plans.items():
            self.estimator.add(variants, counts, 1)
        if low_bit:
            for copy in ((LOW_BIT,) * len(context.spec.whole), (WINDOW, LOW_BIT) * context.spec.layers + (LOW_BIT,)):
                if copy not in context.plans:
                    self.estimator.add(copy, _COPY_PRIOR)
        self._searches = self._config.gamma > 0 and self._config.budget > 0
        self._round = 0
        self._decision: Decision | None = None
        self._decision_seconds = 0.0  # a moving average of what one decision takes

    def propose(self, batch: BatchView[SearchState]) -> Sequence[Plan]:
        new_plans = self._search(batch)
        decision, key = self._decision, _batch_key(batch)
        if decision is None or new_plans or self._round >= decision.until or key != decision.batch_key:
            self._decision = decision = self._decide(batch, key)
        return [decision.plan] * len(batch.views)

    def can_reuse_plans(self) -> bool:
        return self._decision is not None and self.searcher.recorder is None and self._round + 1 < self._decision.until

    def rows_to_record(self, view: RequestView[SearchState]) -> int:
        """Rows are recorded just before a search, for the next request only: recording takes a tenth of a pass."""
        return self._config.rows if view is self.searcher.recorder else 0

    def observe(self, views: Sequence[RequestView[SearchState]], round: RoundOutcome) -> None:
        self._round += any(outcome.emitted for outcome in round.outcomes)
        self.searcher.earn(round.seconds * len(views) / round.requests)
        for view, outcome in zip(views, round.outcomes, strict=True):
            state, tested = view.state, _tested(outcome) if outcome.drafted else None
            if outcome.references is not None:
                state.record(outcome.references, self._config.rows)
            if outcome.emitted:
                state.rounds += 1
                state.seconds += round.seconds
            self.estimator.observe(outcome.emitted, outcome.variants, tested)

    def suspend(self, view: RequestView[SearchState]) -> None:
        """Forget rows, and a search, whose cache is lost."""
        view.state.rows.clear()
        if self.searcher.recorder is view:
            self.searcher.recorder = None

    def _decide(self, batch: BatchView[SearchState], key: object) -> Decision:
        started, before = self._clock.now(), self._decision
        plan = self.estimator.choose(batch.contexts, batch.drafting_plans, self._round)
        if before is not None and before.batch_key == key:
            outcome = _change(before.plan, plan)
            for view in batch.views:
                view.reselected = outcome
                view.search_interval = self.searcher.interval(view.context) if self._searches else None
        seconds = self._clock.now() - started
        self._decision_seconds += 0.2 * (seconds - self._decision_seconds)  # the first decision is slow: start from 0
        plain = self._costs.verify_pass(batch.size, batch.contexts)
        rounds = max(_MIN_ROUNDS, int(self._decision_seconds / _DECISION_SHARE / plain))
        if not plan.pays:
            rounds = _TRIAL_ROUNDS
        return Decision(plan, self._round + min(rounds, _MAX_ROUNDS), key)

    def _search(self, batch: BatchView[SearchState]) -> bool:
        """Continue a search, or choose who searches next. Returns whether the search added a plan."""
        if not self._searches:
            return False
        new_plan, view = False, self.searcher.recorder
        if view is not None and view in batch.views:
            drafting = batch.drafting_plans
            if len(batch.views) > 1 and self._decision is not None and self._decision.plan.gamma:
                drafting = [*drafting, self._decision.plan.variants]
            replayed = self.searcher.search(view, drafting)
            if replayed is not None:
                new_plan = self._adopt(replayed, view.context)
                self.searcher.found += new_plan
        self.searcher.choose_recorder(batch.views)
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


def _batch_key(batch: BatchView[SearchState]) -> object:
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
