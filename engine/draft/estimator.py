"""One estimator (docs/method.md): beliefs about every plan's agreement and price, and a choice drawn from them.

For each plan, tested draft tokens of all requests are counted by confidence bin and outcome; old counts fade with one
horizon in tokens. A request's text is easy or hard to draft, whatever drafts it. So a request shifts the log-odds of
agreement by an amount that is normal around zero at first (a random effect: the Rasch model, 1960) and is corrected by
a Newton step with every tested token. Prices are the profile's, times a log-normal factor whose mean and standard
deviation are known (`engine.draft.costs`).

The choice is Thompson's (1933): draw once from each belief, and take the plan with the highest objective in the world
so drawn. Plain decoding is one more plan, whose only unknown is its price. A plan is thus tried as often as its
uncertainty deserves. γ and θ are not drawn but optimal on average, for they teach nothing about a plan that others
would not. Nor is a request's shift drawn: few requests last long enough to repay exploring it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.architecture.spec import RECENT, SINKS, SKIP, WINDOW, Variants
from engine.draft.costs import CostModel
from engine.draft.tpt import THRESHOLDS, Objective, Prices, objective
from engine.step import Plan

MAX_PLANS = 8
# Variance of the shift between requests. The copy's agreement differs between the prompts of bench/prompts.jsonl by a
# standard deviation of 0.030 around 0.943 for Qwen2.5-Coder-0.5B, 0.080 around 0.826 for SmolLM2-135M: 0.56 both times.
SHIFT_VARIANCE = 0.3
PRIOR = np.array([[0.4, 0.1]] + [[0.05, 0.05]] * (len(THRESHOLDS) - 2) + [[0.2, 0.8]])  # weak: two tokens in all
POOLED_TOKENS = 6.0  # prior tokens of each plan from the pool of all plans, against the luck of the best of many
_POOL_SHARE = 64.0  # tokens that one plan adds to the pool, at most
_PASS_WORTH = 0.5  # factor on a pass's worth: products of confidences understate how far drafts reach (measured)

PlanCounts = dict[Variants, np.ndarray]  # tested tokens of plans: [bins, rejected | agreed]


@dataclass(slots=True)
class AgreementShift:
    """How much more often drafts of one request agree than others' do: a shift of the log-odds, and its evidence."""

    log_odds: float = 0.0
    information: float = 0.0  # Fisher information of the tested tokens

    @property
    def variance(self) -> float:
        return 1.0 / (self.information + 1.0 / SHIFT_VARIANCE)


class Estimator:
    """The pool of at most `MAX_PLANS` plans that all requests share, with everything known about them."""

    def __init__(self, costs: CostModel, gamma: int, horizon: float) -> None:
        """`gamma`: longest draft; `horizon`: emitted tokens over which counts fade."""
        self._costs, self._gamma, self._horizon = costs, gamma, horizon
        self.counts: PlanCounts = {}
        self._odds: dict[Variants, np.ndarray] = {}  # of agreement, by bin, at the last choice

    def add(self, variants: Variants, counts: np.ndarray, context: int | None = None) -> None:
        """Add tested tokens of a plan, new or known, up to the horizon.

        With a context, only the plans with the highest predicted gain there stay in the pool.
        """
        counts = counts + self.counts.get(variants, 0.0)
        self.counts[variants] = counts * min(1.0, self._horizon / max(float(counts.sum()), 1.0))
        for variants in list(self.predicted_gains(self.counts, context))[MAX_PLANS:] if context is not None else ():
            del self.counts[variants]

    def observe(
        self, shift: AgreementShift, emitted: int, variants: Variants | None, tested: np.ndarray | None
    ) -> None:
        """Learn that a request emitted tokens, of which those `tested` [bins, 2] had been drafted with a plan."""
        fade = math.exp(-emitted / self._horizon)
        shift.information *= fade
        for each in self.counts.values():
            each *= fade
        if variants is None or tested is None or variants not in self.counts:
            return
        if variants not in self._odds:
            self._odds[variants] = _odds(self.evidence([variants]))[0]
        odds, rows = self._odds[variants] * math.exp(shift.log_odds), tested.sum(axis=1)
        share = odds / (1.0 + odds)
        shift.information += float(rows @ (share * (1.0 - share)))
        shift.log_odds += float(tested[:, 1].sum() - rows @ share) * shift.variance
        self.counts[variants] = self.counts[variants] + tested

    def evidence(self, plans: Sequence[Variants], counts: PlanCounts | None = None) -> np.ndarray:
        """Return counts and prior of these plans [plans, bins, 2]; `counts`: theirs, if not the known ones."""
        known = self.counts if counts is None else counts
        pool = np.zeros_like(PRIOR)
        for each in (self.counts | known).values():
            pool += each * (_POOL_SHARE / max(float(each.sum()), _POOL_SHARE))
        prior = PRIOR + POOLED_TOKENS * pool / max(float(pool.sum()), 1.0)
        return np.stack([known[variants] + prior for variants in plans])

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

    def choose(
        self,
        contexts: Sequence[int],
        drafting_plans: Sequence[Variants],
        shifts: Sequence[AgreementShift],
        seed: int,
        *,
        always: bool = False,
    ) -> Plan:
        """Choose the plan of requests with these contexts. `always`: a plan that drafts, whatever it costs.

        `drafting_plans` belong to requests of other policies. A plan is priced as if the whole batch used it: each
        sublayer runs once for all requests whose plan has it, and the verify pass holds the rows of all.
        """
        plain = self.plain(contexts)
        windows = max(contexts) > SINKS + RECENT  # otherwise a window is the whole cache
        plans, costs, count = [v for v in self.counts if windows or WINDOW not in v], self._costs, len(contexts)
        if not plans or self._gamma == 0:
            return plain
        drafting = [union([variants, *drafting_plans]) for variants in plans] if drafting_plans else plans
        prices, known = self._prices(drafting, contexts), self.evidence(plans)
        self._odds = dict(zip(plans, _odds(known), strict=True))
        random = np.random.default_rng(seed)
        z = random.standard_normal(2)
        each = random.standard_normal((2, len(plans)))
        log_odds = sum(shift.log_odds for shift in shifts) / len(shifts)
        drawn = objective(
            shifted(known, log_odds + each[0] / np.sqrt(_information(known))),
            prices._replace(
                draft=prices.draft * np.exp(each[1] * [costs.draft_doubt(variants, count) for variants in plans]),
                verify=prices.verify * math.exp(z[0] * costs.verify_doubt(count, drafts=True)),
            ),
        )
        highest = drawn.tpt[:, :, 1:].max(axis=(1, 2))
        undrafted = (plain.predicted_tpt or 0.0) * math.exp(z[1] * costs.verify_doubt(count, drafts=False))
        chosen = int(highest.argmax())
        if not always and highest[chosen] <= undrafted:
            return plain
        usual = objective(shifted(known, np.full(len(plans), log_odds)), prices)
        return self._plan(plans[chosen], chosen, usual, prices, plain)

    def _plan(self, variants: Variants, index: int, found: Objective, prices: Prices, plain: Plan) -> Plan:
        """Complete a plan with the θ and γ that are best on average, and its predictions."""
        threshold, gamma = found.best(index)
        drafted, accepted, tpt = (float(each[index, threshold, gamma]) for each in found)
        worth, requests = 0.0, prices.requests
        if requests > 1:
            row = np.interp([requests, requests + 1], prices.rows, prices.verify)
            worth = _PASS_WORTH * requests * tpt * float(prices.draft[index] + max(row[1] - row[0], 0.0))
        predictions = tpt, min(accepted / drafted, 1.0), plain.predicted_tpt, 1.0 + accepted
        return Plan(variants, gamma, THRESHOLDS[threshold], worth, *predictions)

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


def _odds(counts: np.ndarray) -> np.ndarray:
    """Return the odds of agreement: counts [plans, bins, 2] -> [plans, bins]."""
    found: np.ndarray = counts[:, :, 1] / counts[:, :, 0]
    return found


def _information(counts: np.ndarray) -> np.ndarray:
    """Return the Fisher information about each plan's log-odds: counts [plans, bins, 2] -> [plans]."""
    found: np.ndarray = (counts.prod(axis=2) / counts.sum(axis=2)).sum(axis=1)
    return found


def union(plans: Sequence[Variants]) -> Variants:
    """Return the sublayers that any of these plans run, each in its dearest variant: the target, then the copy."""
    return tuple(min(filter(None, column), default=SKIP) for column in zip(*plans, strict=True))
