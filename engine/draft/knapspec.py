"""KnapSpec: the sub-network that drafts is a knapsack, solved again for each request as its context grows.

Three clocks run at different speeds:
  - every round, what was drafted and accepted is counted, per request and per plan;
  - every `redecide` rounds, TPT chooses again among the known plans × thresholds × γ, γ = 0 included (cheap);
  - every T rounds, if the search budget allows, the knapsack proposes new plans from the request's own references.

Known plans form a small library shared by all requests (≤ 8), so a new request starts from what earlier ones learnt.
Alone, a request chooses by what it has seen itself; requests in flight together choose alike, from what all have seen,
since they share every pass: a batch in which some draft and some do not pays for both (measured). All of it decides how
fast text comes, never which (METHODS section 0).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from engine.draft.base import CandidatePass, Outcome, Plan, PolicyContext, References, View, register
from engine.draft.fixed import exit_variants
from engine.draft.knapsack import Knapsack, ticks
from engine.draft.prior import Prior
from engine.draft.tpt import THRESHOLDS, AcceptanceCounts, Objective, expectations, lock_step_passes
from engine.draft.trust import Trust
from engine.errors import ConfigError

_LIBRARY = 8  # plans kept
_ADOPTED = 3  # plans a search may add
_SHARED_ROWS = 16.0  # most weight of what other requests saw, in tested tokens
_REPLAY_WEIGHT = 0.5  # of a replayed row against a token really tested: rows replay with the target's own K/V
_PRIOR = np.array([[0.4, 0.1]] + [[0.05, 0.05]] * (len(THRESHOLDS) - 2) + [[0.2, 0.8]])  # two rows that say little
_GAIN_TO_START = 1.05  # drafting must promise this much over plain decoding to begin,
_GAIN_TO_STAY = 1.02  # and this much to go on
_OWN_ROWS = 12.0  # tested tokens from which on a request decides by itself
_FRESH_ROUNDS = 16  # for which a joint decision stands
_PASS_WORTH = 0.5  # of what a pass's time is worth: products of confidences understate how far drafts reach (measured)
_PLAIN_PATIENCE = 4  # times longer until the next decision while decoding plainly: its rounds are shorter and many
_PLAIN_EVERY = 64  # drafting rounds between plain ones, which keep the price of plain decoding known
_PROBE = (32, 1024)  # rounds of plain decoding between probes of the best plan: at first, at most


@dataclass(slots=True)
class _State:
    """What one request has seen."""

    plan: Plan | None = None
    round: int = 0
    decide_at: int = 0
    company: int = 0  # other requests in flight at the last decision
    search_at: int = 0
    counts: dict[tuple[int, ...], AcceptanceCounts] = field(default_factory=dict)
    references: deque[References] = field(default_factory=deque)
    search: _Search | None = None


@dataclass(slots=True)
class _Search:
    """A knapsack being filled."""

    table: Knapsack
    passes: CandidatePass
    references: References
    seconds: float = 0.0


@register("knapspec")
class KnapSpec:
    """The main method (METHODS sections 1 and 6)."""

    name = "knapspec"

    def __init__(self, context: PolicyContext) -> None:
        self._config = context.config
        self._costs = context.costs
        self._clock = context.clock
        self._layers = context.spec.layers
        self._library: dict[tuple[int, ...], AcceptanceCounts] = {}
        self._busy = 0.0  # seconds of rounds so far, this policy's requests' share
        self._searched = 0.0  # seconds spent on searches
        states = context.config.knapspec_beam or 2 * context.spec.layers
        rows = states * context.config.knapspec_rows
        self._search_cost = self._costs.verify_pass(rows, [rows])  # of the last one, or what the first may take
        self._first_search = 0.0  # which is not charged to the budget
        self._searches = self._slices = 0
        self._barren = 0  # searches in a row that found nothing worth drafting with: each halves the budget
        self._trust: dict[tuple[bool, int], Trust] = defaultdict(Trust)  # by drafting or plain, and size of company
        self._rounds = self._decided_at = 0  # counted once for every request
        self._joint: dict[int, tuple[int, Plan, float]] = {}  # by company: round made, plan, gain
        self._plain_rounds = self._drafting_rounds = 0
        self._probe_every = _PROBE[0]
        if not all(-self._layers <= layer < self._layers for layer in self._config.knapspec_protect):
            raise ConfigError(f"knapspec_protect names a layer that is not there: the model has {self._layers}")
        protected = {layer % self._layers for layer in self._config.knapspec_protect}
        self._protected = frozenset(i for layer in protected for i in (2 * layer, 2 * layer + 1))
        for variants, counts in (context.prior.plans if context.prior else {}).items():
            if all(variants[i] for i in self._protected) and self._skips_enough(variants, 0):
                self._library[variants] = AcceptanceCounts.of(counts)

    def learnt(self, model: str) -> Prior | None:
        """What this policy knows by now, for later starts with the same model; None if it has drafted with nothing."""
        known = {v: counts.counts for v, counts in self._library.items() if counts.total >= _OWN_ROWS}
        return Prior(model, known) if known else None

    # -- the rounds of a request -------------------------------------------------------------------------------------

    def propose(self, view: View) -> Plan:
        if view.state is None:
            view.state = _State()
        state: _State = view.state
        started = self._clock.now()
        if state.search is not None or self._search_due(state):
            self._search(view, state)
        if state.plan is None or self._decision_due(view, state):
            self._decide(view, state)
        plan = state.plan
        assert plan is not None
        plan = self._probe(plan) if plan.gamma == 0 else self._probe_plain(plan)
        state.round += 1
        self._rounds += 1
        view.search_seconds += self._clock.now() - started
        return plan

    def _decision_due(self, view: View, state: _State) -> bool:
        """Whether to choose again; beside others, one request a round does."""
        company = len(view.others)
        if self._rounds - self._decided_at <= company:
            return False
        return state.round >= state.decide_at or _differs(company, state.company)

    def record(self, state: _State | None, rows_ahead: int) -> int:
        """Rows are kept from the end of the prompt, and from the rounds before a search is due."""
        wanted = self._config.knapspec_rows
        if not self._affordable():
            return 0
        if state is None:
            return wanted
        return wanted if state.search is None and state.round + wanted >= state.search_at else 0

    def observe(self, view: View, outcome: Outcome) -> None:
        if view.state is None:
            view.state = _State()
        state: _State = view.state
        self._busy += outcome.seconds
        if outcome.references is not None:
            self._keep(state, outcome.references)
        self._compare(state, outcome)
        if not outcome.drafted:
            return
        tested = outcome.confidences[: outcome.tested]
        agreed = [i < outcome.accepted for i in range(len(tested))]
        variants = outcome.plan.variants
        for counts in (state.counts.setdefault(variants, AcceptanceCounts(64.0)), self._library.get(variants)):
            if counts is not None:
                counts.add(tested, agreed)

    def _compare(self, state: _State, outcome: Outcome) -> None:
        """What the plan promised against what came, in rounds of the kind that the promise was about."""
        promise = outcome.plan.predicted_tpt
        if outcome.round_seconds is None or promise is None or outcome.requests != state.company + 1:
            return
        size, share = _size(state.company), 1.0 / outcome.requests
        self._trust[outcome.drafted > 0, size].add(share * promise * outcome.round_seconds, share * outcome.emitted)
        self._trust[outcome.drafted == 0, size].forget()

    def suspend(self, state: _State | None) -> None:
        if state is not None:
            state.search = None
            state.references.clear()

    # -- choosing among known plans ----------------------------------------------------------------------------------

    def _decide(self, view: View, state: _State) -> None:
        """argmax of TPT over the library × thresholds × γ (METHODS section 1, stage 2)."""
        state.company = len(view.others)
        self._decided_at = self._rounds
        before = state.plan
        own = sum(counts.total for counts in state.counts.values())
        alone = not view.others and own >= _OWN_ROWS
        plan, gain = self._best(view, state) if alone else self._joint_choice(view)
        size = _size(state.company)
        gain *= self._trust[True, size].factor / self._trust[False, size].factor
        needed = _GAIN_TO_STAY if before is not None and before.gamma > 0 else _GAIN_TO_START
        if gain < needed and plan.gamma > 0 and self._config.knapspec_min_skip == 0:
            plan = Plan(plan.variants, 0, predicted_tpt=self._plain_tpt(self._contexts(view)))
        else:
            self._probe_every = _PROBE[0]
        state.plan = plan
        rounds = self._config.knapspec_redecide
        state.decide_at = state.round + (rounds if plan.gamma else _PLAIN_PATIENCE * rounds)
        if before is not None:
            same = (before.variants, before.gamma > 0) == (plan.variants, plan.gamma > 0)
            view.reselected = "plain" if plan.gamma == 0 else "kept" if same else "changed"

    def _best(self, view: View, state: _State | None) -> tuple[Plan, float]:
        """The plan of highest TPT, by what all and (with `state`) this request have seen, and its gain over plain.

        With others in flight the round is shared: the price is that of a batch in which all draft like this, each
        sublayer run once for all whose plan has it, and the verify pass as wide as all of them.
        """
        full = (1,) * (2 * self._layers)
        plans = list(self._library)
        contexts = self._contexts(view)
        requests = len(contexts)
        plain = self._plain_tpt(contexts)
        if not plans or self._config.knapspec_gamma == 0:
            return Plan(full, 0, predicted_tpt=plain), 1.0
        running = [other.variants for _, other in view.others if other.gamma]
        counts = np.stack([self._counts(state, variants) for variants in plans])
        unions = [_union([variants, *running]) for variants in plans]
        objective = self._tpt(plans, counts, unions, contexts)
        choice = index, threshold, gamma = objective.argmax()
        best = float(objective.tpt[choice])
        acceptance = float(objective.accepted[choice] / objective.drafted[choice])
        worth = _PASS_WORTH * requests * best * self._costs.draft_pass(unions[index], contexts)
        return Plan(plans[index], gamma, THRESHOLDS[threshold], worth, best, min(acceptance, 1.0)), best / plain

    def _joint_choice(self, view: View) -> tuple[Plan, float]:
        """`_best` from what all requests have seen, kept for a while: for one that is new, or in company."""
        company = len(view.others)
        decision = self._joint.get(company)
        if decision is None or self._rounds - decision[0] >= _FRESH_ROUNDS * (company + 1):
            decision = self._joint[company] = (self._rounds, *self._best(view, None))
        return decision[1:]

    @staticmethod
    def _contexts(view: View) -> list[int]:
        return [view.context, *(context for context, _ in view.others)]

    def _plain_tpt(self, contexts: Sequence[int]) -> float:
        """Tokens per second of each of these requests if all decode plainly."""
        return 1.0 / (self._costs.verify_pass(len(contexts), contexts) + self._costs.overhead)

    def _counts(self, state: _State | None, variants: tuple[int, ...]) -> np.ndarray:
        shared = self._library[variants].weighted(_SHARED_ROWS)
        own = state.counts.get(variants) if state else None
        return shared if own is None else shared + own.counts

    def _probe(self, plan: Plan) -> Plan:
        """Plain decoding, but for a short draft of the best plan now and then: acceptance is only seen by drafting."""
        self._plain_rounds += 1
        if self._plain_rounds < self._probe_every or plan.variants not in self._library:
            return plan
        self._plain_rounds = 0
        self._probe_every = min(2 * self._probe_every, _PROBE[1])
        return Plan(plan.variants, 2, THRESHOLDS[-2], predicted_tpt=plan.predicted_tpt)

    def _probe_plain(self, plan: Plan) -> Plan:
        """Now and then a plain round while drafting: nothing else shows what one row costs now."""
        self._drafting_rounds += 1
        if self._drafting_rounds < _PLAIN_EVERY:
            return plan
        self._drafting_rounds = 0
        return plan.capped(0)

    # -- searching for plans -----------------------------------------------------------------------------------------

    def _affordable(self) -> bool:
        """Whether the next search fits into the budget; the first is free, since nothing is known without it."""
        if self._config.knapspec_budget == 0:
            return False
        charged = self._searched - self._first_search + self._search_cost
        return not self._library or charged <= self._config.knapspec_budget * self._busy / 2**self._barren

    def _search_due(self, state: _State) -> bool:
        if state.round < state.search_at or not self._affordable():
            return False
        return sum(len(r.positions) for r in state.references) >= min(self._config.knapspec_rows, 8)

    def _keep(self, state: _State, references: References) -> None:
        """Append verified rows, forget the oldest beyond r."""
        state.references.append(references)
        rows = sum(len(r.positions) for r in state.references)
        while rows - len(state.references[0].positions) >= self._config.knapspec_rows:
            rows -= len(state.references.popleft().positions)

    def _search(self, view: View, state: _State) -> None:
        """Begin or go on. Alone, a request searches in one go; beside others, a sublayer or a few a round."""
        started = self._clock.now()
        search = state.search or self._begin(view, state)
        state.search = search
        slice_ = 0.25 * self._costs.verify_pass(1, [view.context]) if view.others else float("inf")
        while not search.table.done and self._clock.now() - started < slice_:
            search.table.advance(search.passes.sublayer)
        done = search.table.done
        if done:
            state.search = None
            self._adopt(view, state, search)
        spent = self._clock.now() - started
        search.seconds += spent
        self._searched += spent
        self._slices += 1
        if done:
            self._searches += 1
            self._search_cost = search.seconds
            self._first_search = self._first_search or search.seconds

    def _begin(self, view: View, state: _State) -> _Search:
        kept = state.references
        references = References(
            torch.cat([r.states for r in kept], dim=1)[:, -self._config.knapspec_rows :],
            tuple(p for r in kept for p in r.positions)[-self._config.knapspec_rows :],
        )
        state.references = deque()
        running = [other.variants for _, other in view.others if other.gamma]
        union = _union(running) if running else None
        prices = self._costs.sublayers(view.context, 1 + len(running), union)
        unit = min(self._costs.sublayers(view.context, 1, None)[:2]) / self._config.knapspec_resolution
        weights = ticks(prices, unit) if unit > 0 else (1,) * len(prices)
        table = Knapsack(
            references.states,
            weights,
            capacity=int(self._config.knapspec_max_skip * sum(weights)),
            tau=self._config.knapspec_tau,
            protected=self._protected,
            beam=self._config.knapspec_beam,
        )
        return _Search(table, view.candidates(references.positions), references)

    def _adopt(self, view: View, state: _State, search: _Search) -> None:
        """Replay the rows through every candidate, and let the best into the library.

        Candidates are the table's and the early exits, whose final states the full model's own references are.
        """
        references = search.references.states
        found = {c.variants: c.state for c in search.table.candidates() if 0 < sum(c.variants) < len(c.variants)}
        for depth in range(1, self._layers):
            exit_ = exit_variants(self._layers, depth)
            if not any(exit_[i] == 0 for i in self._protected):
                found.setdefault(exit_, references[2 * depth])
        found = {variants: state for variants, state in found.items() if self._skips_enough(variants, view.context)}
        if not found:
            state.search_at = state.round + self._config.knapspec_interval
            return
        known = [variants for variants in self._library if variants in found]
        states = torch.stack([*found.values(), references[-1]])
        tokens, confidences = search.passes.draws(states)
        replayed: dict[tuple[int, ...], AcceptanceCounts] = {}
        for i, variants in enumerate(found):
            replayed[variants] = AcceptanceCounts()
            agreed = [a == b for a, b in zip(tokens[i], tokens[-1], strict=True)]
            replayed[variants].add(confidences[i], agreed, weight=_REPLAY_WEIGHT)
        ranked = self._rank({variants: counts.counts for variants, counts in replayed.items()}, view.context)
        added = [variants for variants in ranked[:_ADOPTED] if variants not in self._library]
        for variants in added:
            self._library[variants] = replayed[variants]
        for variants in known:
            self._library[variants].merge(replayed[variants])
        self._shrink(view.context)
        self._joint.clear()
        self._decide(view, state)
        useful = state.plan is not None and state.plan.variants in added and state.plan.gamma > 0
        self._barren = 0 if useful else min(self._barren + 1, 5)
        state.search_at = state.round + self._config.knapspec_interval

    def _skips_enough(self, variants: tuple[int, ...], context: int) -> bool:
        """Whether a plan leaves out the share of the sublayers' time that comparisons ask for."""
        least = self._config.knapspec_min_skip
        if least == 0:
            return True
        prices = np.array(self._costs.sublayers(context, 1, None))
        skipped = 1.0 - float(prices @ np.array(variants)) / float(prices.sum())
        return least <= skipped <= self._config.knapspec_max_skip

    def _shrink(self, context: int) -> None:
        """Keep the library small: the plans that promise most, by what is known of them, stay."""
        if len(self._library) > _LIBRARY:
            known = {variants: counts.weighted(_SHARED_ROWS) for variants, counts in self._library.items()}
            for variants in self._rank(known, context)[_LIBRARY:]:
                del self._library[variants]

    def _rank(self, known: dict[tuple[int, ...], np.ndarray], context: int) -> list[tuple[int, ...]]:
        """Plans by the TPT that their counts promise a request alone, best first."""
        plans = list(known)
        tpt = self._tpt(plans, np.stack(list(known.values())), plans, [context]).best
        return [plans[i] for i in np.argsort(-tpt, kind="stable")]

    # -- the objective -----------------------------------------------------------------------------------------------

    def _tpt(
        self,
        plans: Sequence[tuple[int, ...]],
        counts: np.ndarray,
        drafting: Sequence[tuple[int, ...]],
        contexts: Sequence[int],
    ) -> Objective:
        """TPT of every plan, threshold and γ for one of len(contexts) requests that all draft alike.

        `counts` [plans, bins, 2]; `drafting[i]` is what a draft pass runs when plans[i] is chosen.
        """
        drafted, accepted = expectations(counts, _PRIOR, self._config.knapspec_gamma)
        passes = lock_step_passes(drafted, len(contexts))
        prices = np.array([self._costs.draft_pass(variants, contexts) for variants in drafting])
        verify = self._costs.verify_passes(len(contexts) * (1.0 + drafted), contexts)
        seconds = passes * prices[:, None, None] + verify + self._costs.overhead
        return Objective(drafted, accepted, (1.0 + accepted) / seconds)


def _size(company: int) -> int:
    """Companies within a factor of two are alike."""
    return company.bit_length()


def _differs(company: int, before: int) -> bool:
    """Whether so many more or fewer requests are in flight that a decision should be made again."""
    return not (before + 1) / 1.5 <= company + 1 <= (before + 1) * 1.5


def _union(plans: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(max(column) for column in zip(*plans, strict=True))
