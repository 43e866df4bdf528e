"""KnapSpec: the cheaper model that drafts is a knapsack, solved again for each request as its context grows.

Three clocks run at different speeds:
  - every round, what was drafted and accepted is counted, per request and per plan;
  - every `redecide` rounds, or more, so that decisions take little of the time, one estimator chooses among the known
    plans × thresholds × γ, γ = 0 included (`engine.draft.estimator`);
  - every T rounds of a request, if the search budget allows, the knapsack proposes new plans from its own references.

Known plans form a small library shared by all requests, so a new request starts from what earlier ones learnt. For
requests in flight together there is one choice, since they share every pass: a batch in which some draft and some do
not pays for both (measured). All of it decides how fast text comes, never which (METHODS section 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from engine.architecture.spec import LOW_BIT, WINDOW
from engine.draft.base import Company, Outcome, PolicyContext, RoundOutcome, View
from engine.draft.estimator import Counts, Ease, Estimator
from engine.draft.search import Searcher, Trail
from engine.draft.tpt import THRESHOLDS, count
from engine.errors import ConfigError
from engine.step import Plan

# Tokens of a copy in fewer bits before any were tested, by confidence, rejected and agreed: it finds 84 to 95 % of the
# model's (docs/results.md), and is surest where it does.
_OF_COPY = np.array([[1.0, 1.0]] + [[0.0, 0.0]] * (len(THRESHOLDS) - 2) + [[1.0, 13.0]])
_LEAST_KNOWN = 12.0  # tested tokens of a plan that is worth saving
_DECISION_SHARE = 0.004  # most of the time spent on decisions: with searches (0.5 %) less than one per cent,
_MOST_ROUNDS = 128  # but no more rounds between two of them
_TRIAL_ROUNDS = 3  # of drafting that is thought to lose: its price is told by all but the first (`costs.SETTLING`)


@dataclass(slots=True)
class State:
    """What is kept of one request."""

    trail: Trail
    ease: Ease = field(default_factory=Ease)


class Decision(NamedTuple):
    """What to draft with, until a round, or until the company is another."""

    plan: Plan
    until: int
    company: object


class KnapSpec:
    """The main method (METHODS sections 1, 6, 7 and 8)."""

    name = "knapspec"

    def __init__(self, context: PolicyContext) -> None:
        self._config, self._costs, self._clock = context.config, context.costs, context.clock
        self.looks_up = self._config.lookup == "auto"
        layers = context.spec.layers
        if not all(-layers <= layer < layers for layer in self._config.knapspec_protect):
            raise ConfigError(f"knapspec_protect names a layer that is not there: the model has {layers}")
        low_bit = self._costs.has_low_bit and self._config.knapspec_menu != "skip"
        if self._config.knapspec_menu == "low-bit" and not low_bit:
            raise ConfigError("knapspec_menu is low-bit, but there is no copy of this model in fewer bits")
        self.searcher = Searcher(self._config, self._costs, self._clock, low_bit=low_bit)
        self.estimator = Estimator(self._costs, self._config.knapspec_gamma, self._config.knapspec_memory)
        for variants in self.searcher.allowed(context.tested, 0):
            self.estimator.add(variants, context.tested[variants], 1)
        if low_bit:
            for copy in ((LOW_BIT,) * len(context.spec.whole), (WINDOW, LOW_BIT) * layers + (LOW_BIT,)):
                if copy not in context.tested:
                    self.estimator.add(copy, _OF_COPY)
        self._searches = self._config.knapspec_gamma > 0
        self._round = 0
        self._decision: Decision | None = None
        self._decision_seconds = 0.0  # that one takes

    def learnt(self) -> Counts:
        """What this policy knows by now, for later starts with the same model."""
        return {v: counts for v, counts in self.estimator.counts.items() if counts.sum() >= _LEAST_KNOWN}

    # -- the rounds --------------------------------------------------------------------------------------------------

    def propose(self, views: Sequence[View], others: Sequence[tuple[int, Plan]]) -> Sequence[Plan]:
        self._round += 1
        company = Company(views, others, self._config.max_num_seqs)
        new = self._search(company)
        decision, about = self._decision, self._about(company)
        if decision is None or new or self._round >= decision.until or about != decision.company:
            self._decision = decision = self._decide(company, about)
        return [decision.plan] * len(views)

    def stands(self) -> bool:
        if self._decision is None or self.searcher.recorder is not None or self._round + 1 >= self._decision.until:
            return False
        self._round += 1
        return True

    def record(self, view: View, rows_ahead: int) -> int:
        """Rows are kept just before a search, of the request that is next: keeping them takes a tenth of a pass."""
        return self._config.knapspec_rows if view is self.searcher.recorder else 0

    def observe(self, views: Sequence[View], round: RoundOutcome) -> None:
        self.searcher.earn(round.seconds * len(views) / round.requests)
        for view, outcome in zip(views, round.outcomes, strict=True):
            state = self._state(view)
            if outcome.references is not None:
                state.trail.keep(outcome.references, self._config.knapspec_rows)
            if outcome.drafted:
                self.estimator.observe(state.ease, outcome.emitted, outcome.plan.variants, _tested(outcome))
            elif outcome.emitted:
                self.estimator.observe(state.ease, outcome.emitted, None, None)

    def suspend(self, view: View) -> None:
        if view.state is not None:
            view.state.trail.forget()

    def recalibrate(self) -> None:
        self._decision, self._decision_seconds = None, 0.0

    def _state(self, view: View) -> State:
        if view.state is None:
            view.state = State(Trail(self._round))
        state: State = view.state
        return state

    # -- deciding ----------------------------------------------------------------------------------------------------

    def _about(self, company: Company) -> object:
        """What a decision holds for: one request, or numbers of them within a factor of two."""
        return company.views[0].request_id if company.size == 1 else (company.size - 1).bit_length()

    def _decide(self, company: Company, about: object) -> Decision:
        """A new draw among what is known."""
        started, before = self._clock.now(), self._decision
        requests = [self._state(view).ease for view in company.views]
        always = self._config.knapspec_min_skip > 0
        plan = self.estimator.choose(company.contexts, company.running, requests, self._round, always=always)
        if before is not None and before.company == about:
            outcome = _change(before.plan, plan)
            for view in company.views:
                view.reselected = outcome
        seconds = self._clock.now() - started
        self._decision_seconds += 0.2 * (seconds - self._decision_seconds)  # the first is slow, and says little
        plain = self._costs.verify_pass(company.size, company.contexts)
        rounds = max(self._config.knapspec_redecide, int(self._decision_seconds / _DECISION_SHARE / plain))
        if not plan.pays:
            rounds = _TRIAL_ROUNDS
        return Decision(plan, self._round + min(rounds, _MOST_ROUNDS), about)

    # -- searching ---------------------------------------------------------------------------------------------------

    def _search(self, company: Company) -> bool:
        """Go on with a search, or see who is next. Whether it brought new plans."""
        if not self._searches:
            return False
        trails, new = {view: self._state(view).trail for view in company.views}, False
        if self.searcher.recorder in trails:
            view, running = self.searcher.recorder, company.running
            if len(trails) > 1 and self._decision is not None and self._decision.plan.gamma:
                running = [*running, self._decision.plan.variants]
            alone = len(trails) + view.beside == 1
            replayed = self.searcher.search(view, trails[view], running, self._round, alone=alone)
            if replayed is not None:
                new = self._adopt(replayed, view.context)
                self.searcher.barren = 0 if new else self.searcher.barren + 1
        self.searcher.choose(trails, self._round)
        return new

    def _adopt(self, replayed: Counts, context: int) -> bool:
        """The best candidate joins the library if it promises to pay, and more than all that are there: more of them
        cost more to try than they bring. Of those that are there, what was replayed is remembered. Whether the best
        plan is a new one."""
        known = self.estimator.counts
        most = max([1.0, *self.estimator.promises(known, context).values()])
        best, gain = next(iter(self.estimator.promises(replayed, context).items()), ((), 0.0))
        new = gain > most and best not in known
        for variants, counts in replayed.items():
            if variants in known or (new and variants == best):
                self.estimator.add(variants, counts, context)
        return new and best == next(iter(self.estimator.promises(known, context)))


def _tested(outcome: Outcome) -> np.ndarray:
    """Draft tokens by confidence and whether they helped: one beyond the end of an answer did not."""
    kept = min(outcome.accepted, max(outcome.emitted - 1, 0))
    return count(outcome.confidences, [True] * kept + [False] * (kept < outcome.drafted))


def _change(before: Plan, after: Plan) -> str:
    """The outcome of a decision, as metrics call it."""
    if after.gamma == 0:
        return "plain" if before.gamma else "kept"
    return "kept" if before.gamma and before.variants == after.variants else "changed"
