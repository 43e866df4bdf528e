"""KnapSpec: the sub-network that drafts is a knapsack, solved again for each request as its context grows.

Three clocks run at different speeds:
  - every round, what was drafted and accepted is counted, per request and per plan;
  - every `redecide` rounds, more rarely while nothing changes, TPT chooses again among the known plans × thresholds
    × γ, γ = 0 included (cheap);
  - every T rounds, if the search budget allows, the knapsack proposes new plans from the request's own references.

Known plans form a small library shared by all requests, so a new request starts from what earlier ones learnt.
Alone, a request chooses by what it has seen itself; for requests in flight together there is one choice, made from what
all have seen, since they share every pass: a batch in which some draft and some do not pays for both (measured). All of
it decides how fast text comes, never which (METHODS section 0).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.draft.base import Plan, PolicyContext, RoundOutcome, View
from engine.draft.company import Company, Promise, Standing, State, tally
from engine.draft.library import Choice, Library, size
from engine.draft.prior import Prior
from engine.draft.regime import TRIAL_EVERY, Decision, Regime, change
from engine.draft.scout import Scout, Trail
from engine.draft.search import Searcher
from engine.draft.tpt import THRESHOLDS, AcceptanceCounts, cells
from engine.errors import ConfigError
from engine.model.spec import LOW_BIT, Variants

# What drafting must promise over plain decoding: to begin, to go on, and where it was slower when it promised less.
# Of requests together there are many in each round, so that promises are surer.
_GAINS = {False: (1.05, 1.02, 1.1), True: (1.03, 1.0, 1.05)}
_OWN_ROWS = 12.0  # tested tokens from which on a request decides by itself
_OWN_MEMORY = 64.0  # tested tokens of its own that a request remembers
_FRESH_ROUNDS = 16  # for which a joint decision stands at least
_PLAIN_PATIENCE = 4  # times longer until the next decision while decoding plainly: its rounds are shorter and many
# Tokens of a copy in fewer bits before any were tested, by confidence, rejected and agreed: it finds 84 to 95 % of the
# model's (docs/performance.md), and is surest where it does.
_OF_COPY = np.array([[1.0, 1.0]] + [[0.0, 0.0]] * (len(THRESHOLDS) - 2) + [[1.0, 13.0]])
_USEFUL_GAIN = 1.03  # over the plan before, for a search to have been of use: less is as likely luck
_TRY_EVERY = 12  # drafting rounds between those with a plan that may be better, for all that is known of it
_TRIAL_ROUNDS = 6  # of drafting with the best plan, to see whether it pays after all
_JOINT_WEIGHT = 4.0  # requests that a round of many counts for beside one of a single one: it is one time, seen once
_ALIKE = 0.5  # least share of a round's requests that drafted, for it to tell what drafting brings
_LOOK_UP = (128, 32)  # rounds of plain decoding and of drafting of which one looks whether anything else is due
_WORTH_A_TRIAL = 0.85  # least promise over plain decoding
_MOST_ROUNDS = 64  # between two decisions of what to draft with
_DECISION_SHARE = 0.006  # most of the time spent on decisions
_LOST_DECISIONS = 12.0  # decisions' time that drafting may lose against plain decoding before all decide anew
_SLOW_DECISION = 1e-3  # seconds; the first one is slow, and says nothing of the others


class KnapSpec:
    """The main method (METHODS sections 1 and 6)."""

    name = "knapspec"

    def __init__(self, context: PolicyContext) -> None:
        self._config, self._costs, self._clock = context.config, context.costs, context.clock
        self.looks_up = self._config.lookup == "auto"
        layers = context.spec.layers
        if not all(-layers <= layer < layers for layer in self._config.knapspec_protect):
            raise ConfigError(f"knapspec_protect names a layer that is not there: the model has {layers}")
        self.searcher = Searcher(self._config, self._costs, self._clock, layers)
        self.library = Library(self._costs, self._config.knapspec_gamma, self._config.knapspec_memory)
        plans = context.prior.plans if context.prior else {}
        for variants in self.searcher.allowed(plans, 0):
            self.library.add(variants, AcceptanceCounts.of(plans[variants]))
            self.library.shrink(1)
        low_bit = self._costs.has_low_bit and self._config.knapspec_menu != "skip"
        if self._config.knapspec_menu == "low-bit" and not low_bit:
            raise ConfigError("knapspec_menu is low-bit, but there is no copy of this model in fewer bits")
        copy = (LOW_BIT,) * len(context.spec.whole)
        if low_bit and copy not in plans:
            self.library.add(copy, AcceptanceCounts.of(_OF_COPY))
        self._scout = Scout(context, self.searcher, self.library, lambda view: self._state(view).trail)
        self._round = 0
        self._decision_seconds = 0.0  # that one takes
        self._regimes: defaultdict[int, Regime] = defaultdict(Regime)  # by `size` of the company
        self._promise: Promise | None = None  # of this round
        self._stands: Standing | None = None
        self._era = 0  # how often new plans had all decide anew

    def learnt(self, model: str) -> Prior | None:
        """What this policy knows by now, for later starts with the same model; None if it has drafted with nothing."""
        known = {v: counts.counts for v, counts in self.library.counts().items() if counts.total >= _OWN_ROWS}
        return Prior(model, known) if known else None

    # -- the rounds --------------------------------------------------------------------------------------------------

    def propose(self, views: Sequence[View], others: Sequence[tuple[int, Plan]]) -> Sequence[Plan]:
        budget, started = self.searcher.budget, self._clock.now()
        searched = budget.spent
        plans = self._plans(views, others)
        budget.decided += self._clock.now() - started - (budget.spent - searched)
        return plans

    def _plans(self, views: Sequence[View], others: Sequence[tuple[int, Plan]]) -> Sequence[Plan]:
        self._round += 1
        company = Company(views, others, self._config.max_num_seqs)
        regime = self._regimes[size(company.size)]
        self._stands = standing = None if others or company.coming else self._standing(views, regime)
        if standing is not None:
            regime.passed(standing.plan)
            return [standing.plan] * len(views)
        if regime.trial_end is not None and self._round >= regime.trial_end:
            regime.end_trial()
        found = self._scout.search(views, company.running, self._round, self._promised)
        added = found.added if found is not None else []
        self._era += bool(added)
        choice = self._choice(company)
        if choice.plan.gamma == 0 and regime.trial_due() and self._config.knapspec_gamma > 0 and len(self.library):
            choice = self._begin_trial(company, regime) or choice
        promising, plan = choice, choice.plan
        self._scout.done(found, useful=plan.variants in added and self._better(choice))
        if plan.gamma == 0:
            regime.plain_rounds += 1
        elif regime.plain_due():
            promising = self.library.plain(company.contexts)
            plan = promising.plan
        self._scout.choose(views, self._round, self._promised)
        self._promise = Promise(
            plan, promising.trust, promising.credit, company.size, 0 if company.coming else len(views)
        )
        return [plan] * len(views)

    def _better(self, choice: Choice) -> bool:
        """Whether what a search found promises enough more than what was drafted with before to have been worth it."""
        before = self._promised.predicted_tpt if self._promised is not None else None
        return choice.plan.gamma > 0 and (choice.plan.predicted_tpt or 0.0) > _USEFUL_GAIN * (before or 0.0)

    @property
    def _promised(self) -> Plan | None:
        """The plan of the round before."""
        return self._promise.plan if self._promise is not None else None

    def stands(self) -> bool:
        standing = self._stands
        if standing is None or self._round + 1 >= standing.until:
            return False
        self._round += 1
        standing.regime.passed(standing.plan)
        return True

    def _standing(self, views: Sequence[View], regime: Regime) -> Standing | None:
        """What was decided and promised already, where nothing else is due, which is most of the time: a decision with
        all that belongs to it takes ten times as long as finding that it stands."""
        now, requests, promise = self._round, len(views), self._promise
        if promise is None or promise.requests != requests:
            return None
        look_up = _LOOK_UP[promise.plan.gamma > 0]
        if now % look_up == 0 or regime.trial_end is not None:
            return None
        if not self._scout.rests(views, now):
            return None
        state: State | None = views[0].state
        decision = regime.decision if requests > 1 or state is None else state.decision
        if decision is None or self._due(decision, regime):
            return None
        choice = decision.choice
        if choice.plan.gamma != promise.plan.gamma or (choice.plan.gamma and choice.plan is not promise.plan):
            return None
        until = now + regime.rounds_left(choice.plan)
        if choice.plan.gamma and requests == 1 and (state is None or choice.hopeful):
            until = min(until, (state and state.try_at) or 0)
        if now >= until:
            return None
        asked = now if self._scout.recorder else min(until, decision.until, now + look_up - now % look_up)
        return Standing(choice.plan, regime, asked)

    def record(self, view: View, rows_ahead: int) -> int:
        return self._scout.record(view)

    def observe(self, views: Sequence[View], round: RoundOutcome) -> None:
        self.searcher.budget.busy += round.seconds * len(views) / round.requests
        self._compare(views, round)
        for view, outcome in zip(views, round.outcomes, strict=True):
            self._scout.recorded(view, outcome)
            if outcome.drafted:
                variants, accepted = outcome.plan.variants, outcome.accepted
                found = cells(outcome.confidences, [True] * accepted + [False] * (outcome.tested - accepted))
                self.library.tested(variants, self._round, found)
                if round.requests == 1:
                    own = self._state(view).counts
                    if variants not in own:
                        own[variants] = AcceptanceCounts(_OWN_MEMORY)
                    own[variants].add_cells(found)

    def suspend(self, view: View) -> None:
        state: State | None = view.state
        if state is not None:
            self._scout.suspend(state.trail)

    def recalibrate(self) -> None:
        self._scout.recalibrate()
        self._decision_seconds = 0.0
        for regime in self._regimes.values():
            regime.recalibrate()
        self._era += 1
        self._stands = None

    def _state(self, view: View) -> State:
        if view.state is None:
            view.state = State(Trail(self.searcher.rows(), view.context))
        state: State = view.state
        return state

    def _compare(self, views: Sequence[View], round: RoundOutcome) -> None:
        """What the round promised against what came, where it drafted as promised."""
        promise, seconds = self._promise, round.decode_seconds
        if promise is None or seconds is None or promise.plan.gamma == 0:
            return
        decoding, drafting, kept, drafted, accepted = tally(round.outcomes)
        if drafting < _ALIKE * decoding or decoding != promise.asked:
            return
        plan, weight = promise.plan, min(1.0, _JOINT_WEIGHT / promise.requests)
        lost = seconds - kept / (decoding * (plan.plain_tpt or 1.0))
        regime = self._regimes[size(promise.requests)]
        if regime.lost(lost, _LOST_DECISIONS * self._decision_seconds):
            self._stands = None
        promised = decoding * (plan.predicted_tpt or 0.0) / promise.trust * seconds
        self.library.compare(plan.variants, promise.requests, self._round, weight * promised, weight * kept)
        expected = (plan.predicted_acceptance or 0.0) / promise.credit * drafted
        self.library.credit(promise.requests, self._round, weight * expected, weight * accepted)

    # -- choosing among known plans ----------------------------------------------------------------------------------

    def _choice(self, company: Company) -> Choice:
        """What stands, or a new decision where one is due."""
        if company.size > 1:
            return self._joint_choice(company, company.views)
        (view,) = company.views
        state, regime = self._state(view), self._regimes[size(company.size)]
        before = state.decision
        if before is None or self._due(before, regime):
            if _knows(state):
                state.decision = self._decide(company, before, state.counts)
            else:
                choice = self._joint_choice(company, ())
                until = self._round + self._config.knapspec_redecide
                if choice.plan.gamma == 0 and regime.decision is not None:
                    until = regime.decision.until  # what it decodes plainly tells nothing
                state.decision = Decision(choice, until, self._era + regime.era)
            if before is not None:
                view.reselected = change(before.choice.plan, state.decision.choice.plan)
            choice = state.decision.choice
        else:
            choice = before.choice
        # Now and then what may be better: how good a plan is, only drafting with it shows.
        if choice.plan.gamma and choice.hopeful and self._round >= (state.try_at or self._round + 1):
            choice = choice.hopeful
            state.try_at = None
        if state.try_at is None:
            state.try_at = self._round + _TRY_EVERY
        return choice

    def _joint_choice(self, company: Company, told: Sequence[View]) -> Choice:
        """One choice for all, from what all have seen. The views `told` hear of a new one."""
        regime = self._regimes[size(company.size)]
        before = regime.decision
        if before is not None and not self._due(before, regime):
            return before.choice
        decision = regime.decision = self._decide(company, before, None)
        if before is not None:
            for view in told:
                view.reselected = change(before.choice.plan, decision.choice.plan)
        return decision.choice

    def _due(self, decision: Decision, regime: Regime) -> bool:
        return self._round >= decision.until or self._era + regime.era != decision.era

    def _decide(
        self, company: Company, before: Decision | None, own: Mapping[Variants, AcceptanceCounts] | None
    ) -> Decision:
        """argmax of TPT over the library × thresholds × γ (METHODS section 1, stage 2), from what all have seen and,
        with `own`, one request alone; plain decoding if the gain is small."""
        choice, regime = self._best(company, own), self._regimes[size(company.size)]
        drafting = before is not None and before.choice.plan.gamma > 0 and not regime.losses.known
        to_start, to_stay, after_loss = _GAINS[company.size > 1]
        needed = after_loss if regime.losses.known else to_stay if drafting else to_start
        if choice.gain < needed and regime.trial_end is None and self._config.knapspec_min_skip == 0:
            plain = self.library.plain(company.contexts)
            choice = plain._replace(plan=replace(plain.plan, variants=choice.plan.variants))
        elif drafting and before is not None and not before.trial and regime.trial_end is None:
            regime.trial_every = TRIAL_EVERY[0]  # it has paid for longer than a trial, of which a few rounds are luck
        patience = 1 if choice.plan.gamma else _PLAIN_PATIENCE
        rounds = patience * (_FRESH_ROUNDS if own is None else self._config.knapspec_redecide)
        if own is not None and before is not None and self._kept(before, choice, regime):
            rounds = max(rounds, min(2 * before.rounds, _MOST_ROUNDS))
        least = patience * self._decision_seconds / _DECISION_SHARE  # seconds until the next
        seconds = self._costs.verify_pass(company.size, company.contexts)
        until = self._round + max(rounds, min(int(least / seconds), patience * _MOST_ROUNDS))
        return Decision(choice, until, self._era + regime.era, regime.trial_end is not None, rounds)

    def _kept(self, before: Decision, choice: Choice, regime: Regime) -> bool:
        """Whether a decision to draft is made again, unasked: the next may then come later."""
        same = choice.plan.gamma > 0 and before.choice.plan.variants == choice.plan.variants
        return same and not before.trial and before.era == self._era + regime.era

    def _best(self, company: Company, own: Mapping[Variants, AcceptanceCounts] | None = None) -> Choice:
        """The best plan by what all and (with `own`) one request have seen."""
        started = self._clock.now()
        choice = self.library.best(company.contexts, company.running, self._round, own)
        seconds = self._clock.now() - started
        self._decision_seconds += 0.2 * (min(seconds, _SLOW_DECISION) - self._decision_seconds)
        return choice

    def _begin_trial(self, company: Company, regime: Regime) -> Choice | None:
        """What to try; None where drafting promises far less than plain decoding, but for the rarest of trials."""
        state = self._state(company.views[0]) if company.size == 1 else None
        choice = self._best(company)  # what a request saw of its own was some time ago
        if choice.gain < _WORTH_A_TRIAL and regime.trial_every < TRIAL_EVERY[1]:
            return None
        self.library.renew(choice.plan.variants, company.size)
        self._costs.renew_draft(choice.plan.variants, company.size)
        until = self._round + _TRIAL_ROUNDS
        regime.begin_trial(until)
        decision = Decision(choice, until, self._era + regime.era, trial=True)
        if state is not None:
            state.decision = decision
        else:
            regime.decision = decision
        for view in company.views:
            view.reselected = "changed"
        return choice


def _knows(state: State) -> bool:
    """Whether a request has seen enough to decide by itself."""
    return sum(counts.total for counts in state.counts.values()) >= _OWN_ROWS
