"""One estimator (METHODS section 8): what is believed of every plan's drafts and prices, and a draw from it.

Of each plan, tested draft tokens of all requests are counted by confidence bin and outcome, old ones fading with a
single horizon in tokens. A request's drafts agree more or less often than that whatever drafts them: its text is easy
or hard. So what is believed of a request is a shift of the log-odds, normal around zero before anything was seen
(a random effect: the Rasch model, 1960), which every tested token of any plan corrects by a Newton step. Prices are the
profile's, times a log-normal factor of which the mean and its doubt are known (`engine.draft.costs`).

A choice is Thompson's (1933): one draw from each of these, and the plan whose objective is highest in the world so
drawn; decoding plainly is one more plan, of which only the price is in doubt. So a plan is tried as often as what is
not known of it deserves, and what is known to lose is left alone. γ and the threshold teach nothing that the plan does
not teach with others, and are those that are best on average. Nor is a request's shift drawn, but its mean taken: few
requests last long enough for what finding out costs.
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

MOST_PLANS = 8
# Variance of that shift between requests. The copy's agreement differs between the prompts of bench/prompts.jsonl by a
# standard deviation of 0.030 around 0.943 for Qwen2.5-Coder-0.5B, 0.080 around 0.826 for SmolLM2-135M: 0.56 both times.
BETWEEN = 0.3
PRIOR = np.array([[0.4, 0.1]] + [[0.05, 0.05]] * (len(THRESHOLDS) - 2) + [[0.2, 0.8]])  # two rows that say little
COMMON = 6.0  # tokens of what plans have in common that each is believed to have, against the luck of the best of many;
_COMMON_FROM = 64.0  # so many tokens of each, at most, tell what that is
_PASS_WORTH = 0.5  # of what a pass's time is worth: products of confidences understate how far drafts reach (measured)

Counts = dict[Variants, np.ndarray]  # tested tokens of plans: [bins, rejected | agreed]


@dataclass(slots=True)
class Ease:
    """How much more often drafts of a request agree than others': a shift of the log-odds, and what tells of it."""

    shift: float = 0.0
    information: float = 0.0  # Fisher's, of the tokens tested

    @property
    def variance(self) -> float:
        return 1.0 / (self.information + 1.0 / BETWEEN)


class Estimator:
    """What is known of at most `MOST_PLANS` plans, which all requests share."""

    def __init__(self, costs: CostModel, gamma: int, horizon: float) -> None:
        """`gamma`: most tokens that a plan may draft; `horizon`: emitted tokens over which counts fade."""
        self._costs, self._gamma, self._horizon = costs, gamma, horizon
        self.counts: Counts = {}  # of all requests
        self._odds: dict[Variants, np.ndarray] = {}  # by bin, of what agrees, as believed at the last choice

    # -- what is learnt ----------------------------------------------------------------------------------------------

    def add(self, variants: Variants, counts: np.ndarray, context: int | None = None) -> None:
        """Tested tokens of a plan that may be new; worth no more than are remembered. With a context, the plans that
        promise most there stay."""
        counts = counts + self.counts.get(variants, 0.0)
        self.counts[variants] = counts * min(1.0, self._horizon / max(float(counts.sum()), 1.0))
        for variants in list(self.promises(self.counts, context))[MOST_PLANS:] if context is not None else ():
            del self.counts[variants]

    def observe(self, request: Ease, emitted: int, variants: Variants | None, tested: np.ndarray | None) -> None:
        """A request emitted so many tokens; those `tested` had been drafted with a plan."""
        fade = math.exp(-emitted / self._horizon)
        request.information *= fade
        for each in self.counts.values():
            each *= fade
        if variants is None or tested is None or variants not in self.counts:
            return
        if variants not in self._odds:
            self._odds[variants] = _odds(self.evidence([variants]))[0]
        odds, rows = self._odds[variants] * math.exp(request.shift), tested.sum(axis=1)
        share = odds / (1.0 + odds)
        request.information += float(rows @ (share * (1.0 - share)))
        request.shift += float(tested[:, 1].sum() - rows @ share) * request.variance
        self.counts[variants] = self.counts[variants] + tested

    # -- what is believed --------------------------------------------------------------------------------------------

    def evidence(self, plans: Sequence[Variants], counts: Counts | None = None) -> np.ndarray:
        """Counts of these plans, of those known or of `counts`, with what is believed beforehand: [plans, bins, 2]."""
        known = self.counts if counts is None else counts
        some = np.zeros_like(PRIOR)
        for each in (self.counts | known).values():
            some += each * (_COMMON_FROM / max(float(each.sum()), _COMMON_FROM))
        beforehand = PRIOR + COMMON * some / max(float(some.sum()), 1.0)
        return np.stack([known[variants] + beforehand for variants in plans])

    def promises(self, counts: Counts, context: int) -> dict[Variants, float]:
        """The highest gain over plain decoding that the counts of each plan promise a request alone, best first."""
        plans, plain = list(counts), self.plain([context]).predicted_tpt or 0.0
        if not plans:
            return {}
        tpt = objective(self.evidence(plans, counts), self._prices(plans, [context])).tpt.max(axis=(1, 2))
        return {plans[i]: float(tpt[i]) / plain for i in np.argsort(-tpt, kind="stable")}

    # -- what is chosen ----------------------------------------------------------------------------------------------

    def plain(self, contexts: Sequence[int]) -> Plan:
        """Plain decoding of all these requests."""
        promise = self._costs.plain_tpt(contexts)
        return Plan(self._costs.spec.whole, 0, predicted_tpt=promise, plain_tpt=promise)

    def choose(
        self,
        contexts: Sequence[int],
        running: Sequence[Variants],
        requests: Sequence[Ease],
        seed: int,
        *,
        always: bool = False,
    ) -> Plan:
        """What requests with these contexts draft with. `always`: never nothing.

        With others in flight, who draft with the plans `running`, the price is that of a batch in which all draft like
        this, each sublayer run once for all whose plan has it, and the verify pass as wide as all of them.
        """
        plain = self.plain(contexts)
        cut = max(contexts) > SINKS + RECENT  # else a window of the cache is all of it
        plans, costs, count = [v for v in self.counts if cut or WINDOW not in v], self._costs, len(contexts)
        if not plans or self._gamma == 0:
            return plain
        drafting = [union([variants, *running]) for variants in plans] if running else plans
        prices, known = self._prices(drafting, contexts), self.evidence(plans)
        self._odds = dict(zip(plans, _odds(known), strict=True))
        random = np.random.default_rng(seed)
        z = random.standard_normal(2)
        each = random.standard_normal((2, len(plans)))
        shift = sum(request.shift for request in requests) / len(requests)
        drawn = objective(
            shifted(known, shift + each[0] / np.sqrt(_information(known))),
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
        usual = objective(shifted(known, np.full(len(plans), shift)), prices)
        return self._plan(plans[chosen], chosen, usual, prices, plain)

    def _plan(self, variants: Variants, index: int, found: Objective, prices: Prices, plain: Plan) -> Plan:
        """A plan, drafting as is best on average, with what it promises."""
        threshold, gamma = found.best(index)
        drafted, accepted, tpt = (float(each[index, threshold, gamma]) for each in found)
        worth, requests = 0.0, prices.requests
        if requests > 1:
            row = np.interp([requests, requests + 1], prices.rows, prices.verify)
            worth = _PASS_WORTH * requests * tpt * float(prices.draft[index] + max(row[1] - row[0], 0.0))
        promised = tpt, min(accepted / drafted, 1.0), plain.predicted_tpt, 1.0 + accepted
        return Plan(variants, gamma, THRESHOLDS[threshold], worth, *promised)

    def _prices(self, drafting: Sequence[Variants], contexts: Sequence[int]) -> Prices:
        """`drafting[i]` is what a draft pass runs when plan i is chosen."""
        requests, costs = len(contexts), self._costs
        rows, verify = costs.verify_curve(requests * (1 + self._gamma), contexts)
        draft = np.array([costs.draft_pass(variants, contexts) for variants in drafting])
        return Prices(requests, self._gamma, draft, rows, np.array(verify))


def shifted(counts: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Counts [plans, bins, 2] of which so much more agree, as log-odds of each plan; as many tokens of each bin."""
    odds = counts * np.stack([np.ones_like(shift), np.exp(shift)], axis=-1)[:, None]
    found: np.ndarray = odds * (counts.sum(axis=2) / odds.sum(axis=2))[:, :, None]
    return found


def _odds(counts: np.ndarray) -> np.ndarray:
    """Of agreement: [plans, bins, 2] -> [plans, bins]."""
    found: np.ndarray = counts[:, :, 1] / counts[:, :, 0]
    return found


def _information(counts: np.ndarray) -> np.ndarray:
    """What counts tell of each plan's log-odds, by Fisher: [plans, bins, 2] -> [plans]."""
    found: np.ndarray = (counts.prod(axis=2) / counts.sum(axis=2)).sum(axis=1)
    return found


def union(plans: Sequence[Variants]) -> Variants:
    """The sublayers that any of these run, each in its dearest variant: the target's own, then the copy."""
    return tuple(min(filter(None, column), default=SKIP) for column in zip(*plans, strict=True))
