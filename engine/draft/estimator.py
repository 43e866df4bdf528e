"""One estimator (docs/method.md): beliefs about every plan's agreement and price, and a choice drawn from them.

For each plan, tested draft tokens of all requests are counted by confidence bin and outcome; old counts fade with one
horizon in tokens. Prices are the profile's, times a log-normal factor whose mean and standard deviation are known
(`engine.draft.costs`).

The choice is Thompson's (1933): draw once from each belief, and take the plan with the highest objective in the world
so drawn. Plain decoding is one more plan, whose only unknown is its price. A plan is thus tried as often as its
uncertainty deserves. γ and θ are not drawn but optimal on average, for they teach nothing about a plan that others
would not.

Requests share all beliefs: a random effect of each request on the log-odds of agreement gained nothing, nor did a
choice for each request of a batch (docs/notes/drafting.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from engine.draft.costs import PLAIN, VERIFY, CostModel
from engine.draft.tpt import THRESHOLDS, Objective, Prices, objective
from engine.plans import RECENT, SINKS, SKIP, WINDOW, Variants
from engine.step import Plan

MAX_PLANS = 8
PRIOR = np.array([[0.4, 0.1]] + [[0.05, 0.05]] * (len(THRESHOLDS) - 2) + [[0.2, 0.8]])  # weak: two tokens in all
POOLED_TOKENS = 6.0  # prior tokens of each plan from the pool of all plans, against the luck of the best of many
_POOL_SHARE = 64.0  # tokens that one plan adds to the pool, at most

PlanCounts = dict[Variants, np.ndarray]  # tested tokens of plans: [bins, rejected | agreed]


class Estimator:
    """The pool of at most `MAX_PLANS` plans that all requests share, with everything known about them."""

    def __init__(self, costs: CostModel, gamma: int, horizon: float) -> None:
        """`gamma`: longest draft; `horizon`: emitted tokens over which counts fade."""
        self._costs, self._gamma, self.horizon = costs, gamma, horizon
        self.counts: PlanCounts = {}

    def add(self, variants: Variants, counts: np.ndarray, context: int | None = None) -> None:
        """Add tested tokens of a plan, new or known, up to the horizon.

        With a context, only the plans with the highest predicted gain there stay in the pool.
        """
        counts = counts + self.counts.get(variants, 0.0)
        self.counts[variants] = counts * min(1.0, self.horizon / max(float(counts.sum()), 1.0))
        for variants in list(self.predicted_gains(self.counts, context))[MAX_PLANS:] if context is not None else ():
            del self.counts[variants]

    def observe(self, emitted: int, variants: Variants | None, tested: np.ndarray | None) -> None:
        """Learn that a request emitted tokens, of which those `tested` [bins, 2] had been drafted with a plan."""
        fade = math.exp(-emitted / self.horizon)
        for each in self.counts.values():
            each *= fade
        if variants is not None and tested is not None and variants in self.counts:
            self.counts[variants] = self.counts[variants] + tested

    def evidence(self, plans: Sequence[Variants], counts: PlanCounts | None = None) -> np.ndarray:
        """Return counts and prior of these plans [plans, bins, 2]; `counts`: theirs, if not the known ones.

        Plans that skip have a prior of their own: the copies, which agree far more often, say nothing about them.
        """
        known = self.counts if counts is None else counts
        pools = {True: np.zeros_like(PRIOR), False: np.zeros_like(PRIOR)}  # counts by whether a plan skips
        for variants, each in (self.counts | known).items():
            pools[SKIP in variants] += each * (_POOL_SHARE / max(float(each.sum()), _POOL_SHARE))
        priors = {skips: PRIOR + POOLED_TOKENS * pool / max(float(pool.sum()), 1.0) for skips, pool in pools.items()}
        return np.stack([known[variants] + priors[SKIP in variants] for variants in plans])

    def predicted_gains(self, counts: PlanCounts, context: int) -> dict[Variants, float]:
        """Predict each plan's highest speed-up over plain decoding for a lone request, best first."""
        plans, plain = list(counts), self.plain([context]).predicted_tpt or 0.0
        if not plans:
            return {}
        tpt = objective(self.evidence(plans, counts), self._prices(plans, [context])).tpt.max(axis=(1, 2))
        return {plans[i]: float(tpt[i]) / plain for i in np.argsort(-tpt, kind="stable")}

    def plain(self, contexts: Sequence[int]) -> Plan:
        """Return the plan that drafts nothing, for these requests."""
        tpt = self._costs.plain_tpt(contexts)
        return Plan(self._costs.spec.whole, 0, predicted_tpt=tpt, plain_tpt=tpt)

    def choose(self, contexts: Sequence[int], drafting_plans: Sequence[Variants], seed: int) -> Plan:
        """Choose the plan of requests with these contexts.

        `drafting_plans` belong to requests of other policies. A plan is priced as if the whole batch used it: each
        sublayer runs once for all requests whose plan has it, and the verify pass holds the rows of all.
        """
        plain = self.plain(contexts)
        windows = max(contexts) > SINKS + RECENT  # otherwise a window is the whole cache
        plans, costs = [v for v in self.counts if windows or WINDOW not in v], self._costs
        if not plans or self._gamma == 0:
            return plain
        drafting = [union([variants, *drafting_plans]) for variants in plans] if drafting_plans else plans
        prices, known = self._prices(drafting, contexts), self.evidence(plans)
        random = np.random.default_rng(seed)
        z = random.standard_normal(2)
        each = random.standard_normal((2, len(plans)))
        drawn = objective(
            shifted(known, each[0] / np.sqrt(_information(known))),
            prices._replace(
                draft=prices.draft * np.exp(each[1] * [costs.doubt(variants) for variants in plans]),
                verify=prices.verify * math.exp(z[0] * costs.doubt(VERIFY)),
            ),
        )
        highest = drawn.tpt[:, :, 1:].max(axis=(1, 2))
        undrafted = (plain.predicted_tpt or 0.0) * math.exp(z[1] * costs.doubt(PLAIN))
        chosen = int(highest.argmax())
        if highest[chosen] <= undrafted:
            return plain
        return self._plan(plans[chosen], chosen, objective(known, prices), plain)

    def _plan(self, variants: Variants, index: int, found: Objective, plain: Plan) -> Plan:
        """Complete a plan with the θ and γ that are best on average, and its predictions."""
        threshold, gamma = found.best(index)
        drafted, accepted, tpt = (float(each[index, threshold, gamma]) for each in found)
        return Plan(
            variants,
            gamma,
            THRESHOLDS[threshold],
            predicted_tpt=tpt,
            predicted_acceptance=min(accepted / drafted, 1.0),
            plain_tpt=plain.predicted_tpt,
            expected=1.0 + accepted,
        )

    def _prices(self, drafting: Sequence[Variants], contexts: Sequence[int]) -> Prices:
        """Price the passes of a round. `drafting[i]`: what a draft pass runs if plan i is chosen."""
        requests, costs = len(contexts), self._costs
        rows, verify = costs.verify_curve(requests * (1 + self._gamma), contexts)
        draft = np.array([costs.draft_pass(variants, contexts) for variants in drafting])
        return Prices(requests, self._gamma, draft, rows, np.array(verify))


def shifted(counts: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Shift the log-odds of agreement of counts [plans, bins, 2] by `shift` [plans], within each bin's total."""
    odds = counts * np.stack([np.ones_like(shift), np.exp(shift)], axis=-1)[:, None]
    found: np.ndarray = odds * (counts.sum(axis=2) / odds.sum(axis=2))[:, :, None]
    return found


def _information(counts: np.ndarray) -> np.ndarray:
    """Return the Fisher information about each plan's log-odds: counts [plans, bins, 2] -> [plans]."""
    found: np.ndarray = (counts.prod(axis=2) / counts.sum(axis=2)).sum(axis=1)
    return found


def union(plans: Sequence[Variants]) -> Variants:
    """Return the sublayers that any of these plans run, each in its dearest variant: the target, then the copy."""
    return tuple(min(filter(None, column), default=SKIP) for column in zip(*plans, strict=True))
