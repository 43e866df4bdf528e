"""The few plans that all requests share: what is known of each, and what each promises (METHODS 1, stage 2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from engine.draft.base import Plan
from engine.draft.costs import CostModel
from engine.draft.tpt import THRESHOLDS, AcceptanceCounts, Objective, expectations, lock_step_passes, stacked
from engine.draft.trust import Drift, Trust

Variants = tuple[int, ...]

MOST_PLANS = 8
_SHARED_ROWS = 16.0  # most weight of what other requests saw, in tested tokens
_PRIOR = np.array([[0.4, 0.1]] + [[0.05, 0.05]] * (len(THRESHOLDS) - 2) + [[0.2, 0.8]])  # two rows that say little
_USUAL = 2.0  # plans that kept what they promised, before any was tried
_POOLED_ROWS = 6.0  # of what plans have in common that each is believed to have, against the luck of the best of many
_HOPE = np.zeros_like(_PRIOR)  # what is believed of a plan while little is known, to see whether it should be tried
_HOPE[-1, 1] = 4.0
_PASS_WORTH = 0.5  # of what a pass's time is worth: products of confidences understate how far drafts reach (measured)


@dataclass(slots=True)
class Known:
    """What has been seen of one plan."""

    counts: AcceptanceCounts
    trust: dict[int, Trust] = field(default_factory=lambda: defaultdict(Trust))  # by `size` of the company


class Choice(NamedTuple):
    """A plan, its gain over plain decoding, and the factor by which its raw promise was corrected."""

    plan: Plan
    gain: float
    trust: float
    hopeful: Choice | None = None  # another plan that may be better still, for all that is known of it


class Library:
    """At most `MOST_PLANS` plans, by their variants, in the order in which they came."""

    def __init__(self, costs: CostModel, layers: int, gamma: int, *, marginal: bool = False) -> None:
        """`gamma`: most tokens that a plan may draft; `marginal`: they stop by what a pass is worth alone."""
        self._costs = costs
        self._gamma = gamma
        self._marginal = marginal
        self._whole = (1,) * (2 * layers)
        self._plans: dict[Variants, Known] = {}
        self._drift = Drift()

    def __len__(self) -> int:
        return len(self._plans)

    def __iter__(self) -> Iterator[Variants]:
        return iter(self._plans)

    def __contains__(self, variants: Variants) -> bool:
        return variants in self._plans

    def counts(self) -> dict[Variants, AcceptanceCounts]:
        """What has been seen of every plan's drafts."""
        return {variants: known.counts for variants, known in self._plans.items()}

    # -- what is learnt ----------------------------------------------------------------------------------------------

    def add(self, variants: Variants, counts: AcceptanceCounts) -> None:
        """A plan that may be new."""
        if variants in self._plans:
            self._plans[variants].counts.merge(counts)
        else:
            self._plans[variants] = Known(counts)

    def shrink(self, context: int) -> None:
        """The plans that promise most, by what is known of them, stay."""
        if len(self._plans) > MOST_PLANS:
            known = {variants: known.counts.counts for variants, known in self._plans.items()}
            for variants in self.rank(known, context)[MOST_PLANS:]:
                del self._plans[variants]

    def tested(self, variants: Variants, round: int, found: Sequence[int]) -> None:
        """Draft tokens that were verified, by their `cells`."""
        if variants in self._plans:
            counts = self._plans[variants].counts
            self._drift.add(round, len(found), counts.agreement * len(found), sum(cell % 2 for cell in found))
            counts.add_cells(found)

    def compare(self, variants: Variants, requests: int, round: int, promised: float, kept: float) -> None:
        """Tokens promised, before any correction, and kept in one round of `requests` that drafted with this plan."""
        if variants in self._plans:
            self._plans[variants].trust[size(requests)].add(round, promised, kept)

    def renew(self, variants: Variants, requests: int) -> None:
        """Let what is seen next decide whether drafting with this plan pays for so many requests."""
        if variants in self._plans:
            self._plans[variants].trust[size(requests)].renew()

    # -- what is promised --------------------------------------------------------------------------------------------

    def plain(self, contexts: Sequence[int]) -> Choice:
        """Plain decoding of all these requests. Its promise is a price, which what is seen corrects."""
        requests = len(contexts)
        promise = 1.0 / (self._costs.verify_pass(requests, contexts) + self._costs.overhead(requests))
        return Choice(Plan(self._whole, 0, predicted_tpt=promise, plain_tpt=promise), 1.0, 1.0)

    def best(
        self,
        contexts: Sequence[int],
        running: Sequence[Variants],
        round: int,
        own: Mapping[Variants, AcceptanceCounts] | None = None,
    ) -> Choice:
        """argmax of TPT over plans × thresholds × γ ≥ 1; plain decoding only if there is nothing else.

        With others in flight, who draft with the plans `running`, the price is that of a batch in which all draft like
        this, each sublayer run once for all whose plan has it, and the verify pass as wide as all of them. `own`: what
        the one request that asks has seen itself. Where one request alone drafts, `hopeful` is what it might try.
        """
        plain = self.plain(contexts)
        if not self._plans or self._gamma == 0:
            return plain
        plans, requests = list(self._plans), len(contexts)
        counts = self._evidence(own, self._drift.factor(round))
        unions = [union([variants, *running]) for variants in plans] if running else plans
        trust = self._trust(requests, round)
        if requests > 1:
            known = self._objective(counts, unions, contexts).corrected(trust)
            return self._choice(known, known.argmax(), plans, unions, contexts, plain)
        both = self._objective(np.concatenate([counts, counts + _HOPE]), 2 * unions, contexts, counts)
        known, hoped = both.part(0, len(plans)).corrected(trust), both.part(len(plans), 2 * len(plans)).corrected(trust)
        chosen = known.argmax()
        choice = self._choice(known, chosen, plans, unions, contexts, plain)
        if choice.gain <= 1.0:
            return choice
        best = hoped.best
        best[chosen[0]] = 0.0
        index = int(best.argmax())
        if best[index] <= (choice.plan.predicted_tpt or 0.0):
            return choice
        own_best = hoped.part(index, index + 1).argmax()
        return choice._replace(hopeful=self._choice(known, (index, *own_best[1:]), plans, unions, contexts, plain))

    def _choice(
        self,
        objective: Objective,
        at: tuple[int, int, int],
        plans: Sequence[Variants],
        unions: Sequence[Variants],
        contexts: Sequence[int],
        plain: Choice,
    ) -> Choice:
        """The plan, threshold and γ at this place of the objective, with what it promises there."""
        index, threshold, gamma = at
        promise, drafted, accepted = (float(a[at]) for a in (objective.tpt, objective.drafted, objective.accepted))
        confidence, worth = THRESHOLDS[threshold], 0.0
        if self._marginal:
            confidence, gamma = 0.0, self._gamma
        requests = len(contexts)
        if requests > 1 or self._marginal:
            row = self._costs.verify_pass(requests + 1, contexts) - self._costs.verify_pass(requests, contexts)
            seconds = self._costs.draft_pass(unions[index], contexts) + max(row, 0.0)
            worth = _PASS_WORTH * requests * promise * seconds
        undrafted = plain.plan.predicted_tpt
        assert undrafted is not None
        plan = Plan(plans[index], gamma, confidence, worth, promise, min(accepted / drafted, 1.0), undrafted)
        return Choice(plan, promise / undrafted, float(objective.factors[index]))

    def rank(self, known: Mapping[Variants, np.ndarray], context: int) -> list[Variants]:
        """Plans with their counts [bins, 2], by the TPT that these promise a request alone; best first."""
        plans = list(known)
        tpt = self._objective(np.stack(list(known.values())), plans, [context]).best
        return [plans[i] for i in np.argsort(-tpt, kind="stable")]

    def _trust(self, requests: int, round: int) -> np.ndarray:
        """Factors [plans]: of one that has promised nothing yet, what is usual among those that have."""
        trusts = [known.trust[size(requests)] for known in self._plans.values()]
        seen = [trust.factor(round) for trust in trusts if trust.promised]
        expected = (sum(seen) + _USUAL) / (len(seen) + _USUAL)
        return np.array([trust.factor(round, expected) for trust in trusts])

    def _evidence(self, own: Mapping[Variants, AcceptanceCounts] | None, drift: float) -> np.ndarray:
        """What is believed of each plan's drafts [plans, bins, 2]: what all have seen, and one request itself."""
        counts = stacked([known.counts for known in self._plans.values()], _SHARED_ROWS)
        counts[:, :, 0] += (1.0 - drift) * counts[:, :, 1]  # fewer agree now
        counts[:, :, 1] *= drift
        for i, variants in enumerate(self._plans if own else ()):
            if own and variants in own:
                counts[i] += own[variants].counts
        return counts

    def _objective(
        self,
        counts: np.ndarray,
        drafting: Sequence[Variants],
        contexts: Sequence[int],
        seen: np.ndarray | None = None,
    ) -> Objective:
        """TPT of every plan, threshold and γ for one of len(contexts) requests that all draft alike.

        `counts` [plans, bins, 2]; `drafting[i]` is what a draft pass runs when plan i is chosen. `seen`: counts like
        these, without what is only hoped for.
        """
        seen = counts if seen is None else seen
        pooled = seen.sum(axis=0) / max(seen.sum(), 1.0)
        drafted, accepted = expectations(counts, _PRIOR + _POOLED_ROWS * pooled, self._gamma)
        passes = lock_step_passes(drafted, len(contexts))
        priced = {variants: self._costs.draft_pass(variants, contexts) for variants in set(drafting)}
        prices = np.array([priced[variants] for variants in drafting])
        verify = self._costs.verify_passes(len(contexts) * (1.0 + drafted), contexts)
        overhead = self._costs.overhead(len(contexts), len(contexts) * accepted)
        overhead = overhead + self._costs.draft_setup(len(contexts))
        seconds = passes * prices[:, None, None] + verify + overhead
        return Objective(drafted, accepted, (1.0 + accepted) / seconds, np.ones(len(counts)))


def size(requests: int) -> int:
    """Numbers of requests within a factor of two are alike."""
    return (requests - 1).bit_length()


def union(plans: Sequence[Variants]) -> Variants:
    """The sublayers that any of these run."""
    return tuple(max(column) for column in zip(*plans, strict=True))
