"""KnapSpec: the sub-network that drafts is a knapsack, solved again for each request as its context grows.

Three clocks run at different speeds:
  - every round, what was drafted and accepted is counted, per request and per plan;
  - every `redecide` rounds, TPT chooses again among the known plans × thresholds × γ, γ = 0 included (cheap);
  - every T rounds, if the search budget allows, the knapsack proposes new plans from the request's own references.

Known plans form a small library shared by all requests, so a new request starts from what earlier ones learnt.
Alone, a request chooses by what it has seen itself; requests in flight together choose alike, from what all have seen,
since they share every pass: a batch in which some draft and some do not pays for both (measured). All of it decides how
fast text comes, never which (METHODS section 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from engine.draft.base import Outcome, Plan, PolicyContext, View, register
from engine.draft.library import Choice, Library, Variants, size
from engine.draft.prior import Prior
from engine.draft.search import Rows, Search, Searcher
from engine.draft.tpt import AcceptanceCounts
from engine.errors import ConfigError

_ADOPTED = 3  # plans a search may add
_REPLAYED_PLANS = 128  # whose replays are remembered from search to search: early exits come again and again,
_REPLAYED_MEMORY = 64.0  # so many tested tokens of each
_GAIN_TO_START = 1.05  # drafting must promise this much over plain decoding to begin,
_GAIN_TO_STAY = 1.02  # and this much to go on
_OWN_ROWS = 12.0  # tested tokens from which on a request decides by itself
_OWN_MEMORY = 64.0  # tested tokens of its own that a request remembers
_FRESH_ROUNDS = 16  # for which a joint decision stands
_PLAIN_PATIENCE = 4  # times longer until the next decision while decoding plainly: its rounds are shorter and many
_TRY_EVERY = 12  # drafting rounds between those with a plan that may be better, for all that is known of it
_PLAIN_EVERY = 64  # drafting rounds between plain ones, which keep the price of plain decoding known
_TRIAL_ROUNDS = 6  # of drafting with the best plan, to see whether it pays after all
_JOINT_WEIGHT = 4.0  # of the tokens of a round of many requests beside one of a single one: it is one time, seen once
_JOINT_TRIAL_ROUNDS = 2  # the same with others in flight, who see as much in fewer rounds
_TRIAL_EVERY = (48, 1536)  # rounds of plain decoding between trials: at first, at most
_DECISION_SHARE = 0.02  # most of the time spent on decisions
_SLOW_DECISION = 1e-3  # seconds; the first one is slow, and says nothing of the others


@dataclass(slots=True)
class _State:
    """What one request has seen."""

    rows: Rows
    choice: Choice | None = None
    round: int = 0
    decide_at: int = 0
    era: int = 0  # of the last decision
    company: int = 0  # other requests in flight at the last decision
    trust: float = 1.0  # in the plan of this round
    try_at: int = _TRY_EVERY
    search_at: int = 0
    counts: dict[Variants, AcceptanceCounts] = field(default_factory=dict)
    search: Search | None = None


@dataclass(slots=True)
class _Joint:
    """A decision made for all requests in flight."""

    round: int
    seconds: float  # of rounds until then
    choice: Choice


@register("knapspec")
class KnapSpec:
    """The main method (METHODS sections 1 and 6)."""

    name = "knapspec"

    def __init__(self, context: PolicyContext) -> None:
        self._config, self._costs, self._clock = context.config, context.costs, context.clock
        layers = context.spec.layers
        if not all(-layers <= layer < layers for layer in self._config.knapspec_protect):
            raise ConfigError(f"knapspec_protect names a layer that is not there: the model has {layers}")
        self.searcher = Searcher(self._config, self._costs, self._clock, layers)
        marginal = self._config.knapspec_stop == "marginal"
        self.library = Library(self._costs, layers, self._config.knapspec_gamma, marginal=marginal)
        for variants, counts in (context.prior.plans if context.prior else {}).items():
            if self.searcher.allows(variants, 0):
                self.library.add(variants, AcceptanceCounts.of(counts))
        self._budget = self.searcher.budget
        self._round = self._decided_at = 0  # counted once for every request
        self._decision_seconds = 0.0  # that one takes
        self._joint: dict[int, _Joint] = {}  # by `size` of the company
        self._plain_rounds = self._drafting_rounds = 0
        self._replayed: dict[Variants, AcceptanceCounts] = {}  # of plans that are not in the library
        self._era = 0  # how often all had to decide anew: a trial begins or ends
        self._trial_end: int | None = None
        self._trial_every = _TRIAL_EVERY[0]

    def learnt(self, model: str) -> Prior | None:
        """What this policy knows by now, for later starts with the same model; None if it has drafted with nothing."""
        known = {v: counts.counts for v, counts in self.library.counts().items() if counts.total >= _OWN_ROWS}
        return Prior(model, known) if known else None

    # -- the rounds of a request -------------------------------------------------------------------------------------

    def propose(self, view: View) -> Plan:
        state = self._state(view)
        started = self._clock.now()
        if state.search is not None or self._search_due(state):
            self._search(view, state)
        if self._trial_end is not None and self._round >= self._trial_end:
            self._trial_end = None
            self._begin_era()
        if state.choice is None or self._decision_due(view, state):
            self._decide(view, state)
        if self._trial_due(state):
            self._begin_trial(view, state)
        assert state.choice is not None
        plan, state.trust = self._plan_of_round(state)
        state.round += 1
        self._round += 1
        if plan.gamma == 0:
            self._plain_rounds += 1
        elif self._plain_due():
            plan = plan.capped(0)
        view.search_seconds += self._clock.now() - started
        return plan

    def record(self, state: _State | None, rows_ahead: int) -> int:
        """Rows are kept from the end of the prompt, and from the rounds before a search is due."""
        wanted = self._config.knapspec_rows
        if not self._affordable():
            return 0
        if state is None:
            return wanted
        return wanted if state.search is None and state.round + wanted >= state.search_at else 0

    def observe(self, view: View, outcome: Outcome) -> None:
        state = self._state(view)
        self._budget.busy += outcome.seconds
        if outcome.references is not None:
            state.rows.add(outcome.references)
        self._compare(state, outcome)
        if not outcome.drafted:
            return
        tested = outcome.confidences[: outcome.tested]
        agreed = [i < outcome.accepted for i in range(len(tested))]
        variants = outcome.plan.variants
        state.counts.setdefault(variants, AcceptanceCounts(_OWN_MEMORY)).add(tested, agreed)
        self.library.tested(variants, tested, agreed)

    def suspend(self, state: _State | None) -> None:
        if state is not None:
            state.search = None
            state.rows = self.searcher.rows()

    def _state(self, view: View) -> _State:
        if view.state is None:
            view.state = _State(self.searcher.rows())
        state: _State = view.state
        return state

    def _compare(self, state: _State, outcome: Outcome) -> None:
        """What the plan promised against what came, in rounds of the kind that the promise was about."""
        promise, requests = outcome.plan.predicted_tpt, outcome.requests
        if outcome.round_seconds is None or promise is None or state.choice is None or requests != state.company + 1:
            return
        if (outcome.drafted > 0) != (state.choice.plan.gamma > 0):
            return
        promised = promise / state.trust * outcome.round_seconds
        drafted = outcome.drafted > 0
        weight = min(1.0, _JOINT_WEIGHT / requests)
        self.library.compare(
            outcome.plan.variants, drafted, requests, self._round, weight * promised, weight * outcome.emitted
        )

    @staticmethod
    def _plan_of_round(state: _State) -> tuple[Plan, float]:
        """The choice; now and then, alone, what may be better: how good a plan is, only drafting with it shows."""
        choice = state.choice
        assert choice is not None
        if choice.plan.gamma and choice.hopeful and state.company == 0 and state.round >= state.try_at:
            state.try_at = state.round + _TRY_EVERY
            choice = choice.hopeful
        return choice.plan, choice.trust

    # -- choosing among known plans ----------------------------------------------------------------------------------

    def _decision_due(self, view: View, state: _State) -> bool:
        """Whether to choose again; beside others, one request a round does, but for a new era."""
        if state.era != self._era:
            return True
        company = len(view.others)
        if self._round - self._decided_at <= company:
            return False
        return state.round >= state.decide_at or _differs(company, state.company)

    def _decide(self, view: View, state: _State) -> None:
        """argmax of TPT over the library × thresholds × γ (METHODS section 1, stage 2)."""
        company = len(view.others)
        before = state.choice.plan if state.choice else None
        state.company, state.era = company, self._era
        self._decided_at = self._round
        own = sum(counts.total for counts in state.counts.values())
        contexts = _contexts(view)
        alone = not view.others and own >= _OWN_ROWS
        choice = self._best(view, contexts, state) if alone else self._joint_choice(view, contexts)
        needed = _GAIN_TO_STAY if before is not None and before.gamma > 0 else _GAIN_TO_START
        if choice.gain < needed and self._trial_end is None and self._config.knapspec_min_skip == 0:
            plain = self.library.plain(contexts, self._round)
            choice = plain._replace(plan=replace(plain.plan, variants=choice.plan.variants))
        elif choice.gain >= needed:
            self._trial_every = _TRIAL_EVERY[0]
        state.choice, plan = choice, choice.plan
        patience = 1 if plan.gamma else _PLAIN_PATIENCE
        least = patience * self._decision_seconds / _DECISION_SHARE  # seconds until the next
        round_seconds = self._costs.verify_pass(len(contexts), contexts)
        state.decide_at = state.round + max(self._config.knapspec_redecide * patience, int(least / round_seconds))
        if before is not None:
            if plan.gamma == 0:
                view.reselected = "plain" if before.gamma else "kept"
            else:
                view.reselected = "kept" if before.gamma and before.variants == plan.variants else "changed"

    def _best(self, view: View, contexts: Sequence[int], state: _State | None) -> Choice:
        """The best plan by what all and (with `state`) this request have seen."""
        started = self._clock.now()
        running = [other.variants for _, other in view.others if other.gamma]
        choice = self.library.best(contexts, running, self._round, state.counts if state else None)
        self._decision_seconds += 0.2 * (min(self._clock.now() - started, _SLOW_DECISION) - self._decision_seconds)
        return choice

    def _joint_choice(self, view: View, contexts: Sequence[int]) -> Choice:
        """`_best` from what all requests have seen, kept for a while: for one that is new, or in company."""
        company = len(view.others)
        joint = self._joint.get(size(company + 1))
        busy = self._budget.busy
        if joint is None or (
            self._round - joint.round >= _FRESH_ROUNDS * (company + 1)
            and busy - joint.seconds >= self._decision_seconds / _DECISION_SHARE
        ):
            joint = self._joint[size(company + 1)] = _Joint(self._round, busy, self._best(view, contexts, None))
        return joint.choice

    def _begin_era(self) -> None:
        """All decide anew."""
        self._era += 1
        self._joint.clear()

    def _trial_due(self, state: _State) -> bool:
        """Whether to draft for a while all the same: whether it pays is only seen by drafting."""
        if self._plain_rounds < self._trial_every * (state.company + 1) or not len(self.library):
            return False
        self._plain_rounds = 0
        self._trial_every = min(2 * self._trial_every, _TRIAL_EVERY[1])
        return self._config.knapspec_gamma > 0

    def _begin_trial(self, view: View, state: _State) -> None:
        requests = len(view.others) + 1
        plan = self._best(view, _contexts(view), None).plan
        self.library.renew(plan.variants, requests)
        self._costs.renew_draft(plan.variants)
        self._trial_end = self._round + (_TRIAL_ROUNDS if requests == 1 else _JOINT_TRIAL_ROUNDS) * requests
        self._begin_era()
        self._decide(view, state)

    def _plain_due(self) -> bool:
        """Now and then a plain round while drafting: nothing else shows what one row costs now."""
        self._drafting_rounds += 1
        if self._drafting_rounds < _PLAIN_EVERY:
            return False
        self._drafting_rounds = 0
        return True

    # -- searching for plans -----------------------------------------------------------------------------------------

    def _affordable(self) -> bool:
        return self._budget.affords(ignorant=not len(self.library))

    def _search_due(self, state: _State) -> bool:
        return state.round >= state.search_at and self._affordable() and self.searcher.enough(state.rows)

    def _search(self, view: View, state: _State) -> None:
        """Begin or go on; at the end, let the best of what was found into the library."""
        started = self._clock.now()
        search = state.search = state.search or self.searcher.begin(view, state.rows)
        self.searcher.charge(search, self._clock.now() - started)
        if not self.searcher.advance(view, search):
            return
        started = self._clock.now()
        ignorant = not len(self.library)
        state.search = None
        state.search_at = state.round + self._config.knapspec_interval
        added = self._adopt(view, search)
        if added:
            self._joint.clear()
            self._decide(view, state)
        self.searcher.charge(search, self._clock.now() - started)
        chosen = state.choice.plan if state.choice else None
        useful = chosen is not None and chosen.variants in added and chosen.gamma > 0
        self._budget.done(search.seconds, ignorant=ignorant, useful=useful)

    def _adopt(self, view: View, search: Search) -> list[Variants]:
        """The best candidates join the library, and those that are there already are seen a little more of."""
        replayed = self.searcher.found(view, search)
        if not replayed:
            return []
        for variants, counts in replayed.items():
            known = self._replayed.pop(variants, None) or AcceptanceCounts(_REPLAYED_MEMORY)
            known.merge(counts)
            self._replayed[variants] = known  # the last to be forgotten
        for variants in list(self._replayed)[:-_REPLAYED_PLANS]:
            del self._replayed[variants]
        ranked = self.library.rank({variants: self._replayed[variants].counts for variants in replayed}, view.context)
        added = [variants for variants in ranked[:_ADOPTED] if variants not in self.library]
        for variants in added:
            self.library.add(variants, self._replayed.pop(variants))
        for variants in (v for v in self.library if v in replayed and v not in added):
            self.library.add(variants, replayed[variants])
        self.library.shrink(view.context)
        return added


def _contexts(view: View) -> list[int]:
    return [view.context, *(context for context, _ in view.others)]


def _differs(company: int, before: int) -> bool:
    """Whether so many more or fewer requests are in flight that a decision should be made again."""
    return not (before + 1) / 1.5 <= company + 1 <= (before + 1) * 1.5
