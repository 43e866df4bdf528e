"""Predict the seconds of passes: the latency profile, corrected by the rounds that have run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from engine.architecture.spec import ModelSpec
from engine.plans import LOW_BIT, SKIP, TARGET, Variants, weights_of
from engine.step import StepOutput, StepPlan, Work
from profiles.schema import LatencyProfile

_HORIZON = 10.0  # seconds of rounds over which observations fade
_PRIOR_WEIGHT = 4.0  # observations that the prior of a correction counts for
_DEVIATION = 0.1  # prior standard deviation of log(seen / predicted): the spread between profiles and real rounds
_SPEED_WEIGHT = 0.15  # the weight of a new observation of the machine's speed, and of the time outside passes
_MAX_LOG_CORRECTION = math.log(2.5)  # bound of a correction
_MAX_LOG_DEVIATION = math.log(1.5)  # bound of one observation's deviation
_MAX_KINDS = 256  # corrections that are kept
_CONTEXT_STEP = 16  # tokens, or a sixty-fourth of the context: contexts are rounded to share cached prices
_MAX_PRICES = 4096  # cached
SETTLING = (4, 1)  # rounds after a change to plain decoding, and to drafting, that are slower than the following ones
PLAIN, VERIFY, DRAFT = "plain", "verify", "draft"
Kind = str | Variants  # a kind of pass: plain decoding, verifying, drafting in general, drafting with one plan
# The kinds whose correction stands in for a missing one; of other kinds, DRAFT, VERIFY and PLAIN.
_SIMILAR: dict[Kind, tuple[str, ...]] = {PLAIN: (VERIFY,), VERIFY: (PLAIN,)}


class CostModel:
    """Prices in seconds. `observe` is called once a round; corrections are bounded, and `reset` removes them."""

    def __init__(self, spec: ModelSpec, profile: LatencyProfile) -> None:
        self.spec = spec
        self.profile = profile
        self._all = spec.whole
        self.has_low_bit = profile.variants >= LOW_BIT
        self._found = lru_cache(_MAX_PRICES)(self._price_anew)
        self.reset()

    def reset(self) -> None:
        """Remove all corrections."""
        self._speed = 0.0  # log of the machine's present slowness, which all passes share and which does not last
        self._corrections: dict[Kind, Correction] = {}
        self._now = 0.0  # seconds of rounds so far
        self._outside = 0.0  # seconds of a round outside its passes, for each request
        self._drafted = False  # whether the last round drafted
        self._unsettled = 0  # rounds that will still be slower than usual after a change of kind
        self._searches = (1.0, 1.0)  # number, and sum of seen over predicted seconds; the profile counts as one

    def sublayers(
        self, context: int, rows: int = 1, union: Sequence[int] | None = None, variant: int = TARGET
    ) -> list[float]:
        """Price this variant of each sublayer for one more request, the last of `rows`.

        Where other requests already run the same weights (`union`), the price is marginal.
        """
        if variant == SKIP:
            return [0.0] * self.spec.sublayers
        profile, weights = self.profile, weights_of(variant)
        full, last, before = ((profile.projection(n, weights), profile.mlp(n, weights)) for n in (1, rows, rows - 1))
        shared = [max(a - b, 0.0) for a, b in zip(last, before, strict=True)]
        others = (union or (SKIP,) * self.spec.sublayers)[: self.spec.sublayers]
        prices = [(shared if weights_of(ran) == weights else full)[i % 2] for i, ran in enumerate(others)]
        for layer in range(self.spec.layers):
            seen = sum(self.spec.attention_window(layer, variant))
            prices[2 * layer] += profile.scan(min(context, seen or context), 1)
        return prices

    def draft_pass(self, variants: Variants, contexts: Sequence[int]) -> float:
        """Price one draft pass, a row for each context, through a sub-network."""
        return self.factor(variants) * self._draft_price(variants, contexts)

    def verify_pass(self, rows: float, contexts: Sequence[int]) -> float:
        """Price one pass of the whole model with `rows` rows in all, over requests with these contexts."""
        requests = len(contexts)
        return self.verify_factor(rows, requests) * self._price(self._all, rows, contexts, rows / requests)

    def verify_factor(self, rows: float, requests: int) -> float:
        """Return the correction of verify passes with so many rows: one for each request without drafts."""
        return self.factor(VERIFY if rows > requests else PLAIN)

    def plain_tpt(self, contexts: Sequence[int]) -> float:
        """Predict the tokens per second of each of these requests without drafts."""
        return 1.0 / (self.verify_pass(len(contexts), contexts) + len(contexts) * self._outside)

    def verify_curve(self, most: int, contexts: Sequence[int]) -> tuple[Sequence[int], list[float]]:
        """Return ascending row counts up to `most`, and the seconds of a round that verifies so many rows of drafts.

        Seconds include the time outside passes, and are linear between the row counts.
        """
        requests = len(contexts)
        knots = _knots(self.profile.rows, requests, most)
        factor, outside = self.factor(VERIFY), requests * self._outside
        return knots, [factor * self._price(self._all, n, contexts, n / requests) + outside for n in knots]

    @property
    def search_factor(self) -> float:
        """The mean of seen over predicted seconds of searches."""
        return self._searches[1] / self._searches[0]

    def correct_searches(self, ratio: float) -> None:
        """Learn from a search that took `ratio` times the predicted seconds."""
        self._searches = self._searches[0] + 1, self._searches[1] + ratio

    def _draft_price(self, variants: Variants, contexts: Sequence[int]) -> float:
        """Price a pass within a draft: a pass on its own, less a saving that does not depend on the rows."""
        saved = (1.0 - self.profile.drafting) * self._price(variants, 1, contexts[:1], 1)
        return self._price(variants, len(contexts), contexts, 1) - saved

    def _price(self, variants: Variants, rows: float, contexts: Sequence[int], width: float) -> float:
        return self._found(variants, rows, len(contexts), _rounded_mean(contexts), width)

    def _price_anew(self, variants: Variants, rows: float, requests: int, context: int, width: float) -> float:
        profile, (*sublayers, head) = self.profile, [weights_of(variant) for variant in variants]
        parts = (profile.projection, sublayers[0::2]), (profile.mlp, sublayers[1::2]), (profile.head, [head])
        weights = sum(
            count * price(rows, variant)
            for price, run in parts
            for variant in range(TARGET, profile.variants + 1)
            if (count := run.count(variant))
        )
        scan = requests * sum(
            count * profile.scan(tokens, width) for count, tokens in self.spec.spans(variants, context)
        )
        return profile.fixed + weights + scan

    def observe(self, plan: StepPlan, out: StepOutput, overhead: float) -> None:
        """Correct the prices by one round; `overhead`: its seconds outside passes.

        The first rounds after a change between drafting and plain decoding teach nothing: they find other weights in
        the processor's caches than the many rounds that follow.
        """
        work, drafted = plan.work, [output.drafted for output in out.outputs]
        if not work or not self._settled(any(drafted)):
            return
        seen: list[_Seen] = []
        if len(work) == sum(len(w.tokens) for w in work):  # reading prompts is work of its own
            seen.append(self._seen_verify(work, sum(drafted), out.verify_seconds))
            each = max(overhead / len(work), 0.0)
            bounded = min(each, 2.0 * self._outside or each)  # a stall counts as twice the usual
            self._outside += _SPEED_WEIGHT * (bounded - self._outside)
        drafting = [(w, count) for w, count in zip(work, drafted, strict=True) if count and w.drafting]
        plans = {w.drafting.variants for w, _ in drafting if w.drafting}
        if len(plans) == 1:  # a mixture is priced less surely: learn from the clear cases
            seen.append(self._seen_drafts(plans.pop(), drafting, out.draft_seconds))
        if seen:
            self._learn(seen)

    def _settled(self, drafts: bool) -> bool:
        """Count a round, and return whether enough rounds before it were of the same kind: drafting, or plain."""
        if drafts != self._drafted:
            self._drafted, self._unsettled = drafts, SETTLING[drafts]
        settled = self._unsettled == 0
        self._unsettled = max(self._unsettled - 1, 0)
        return settled

    def _seen_verify(self, work: Sequence[Work], drafted: int, seconds: float) -> _Seen:
        """Describe a verify pass of a row for each request and for each `drafted` token."""
        rows = len(work) + drafted
        predicted = self._price(self._all, rows, [w.start for w in work], rows / len(work))
        return _Seen((VERIFY if drafted else PLAIN,), seconds, predicted)

    def _seen_drafts(self, variants: Variants, drafting: Sequence[tuple[Work, int]], seconds: float) -> _Seen:
        """Describe the draft passes of a round: work that drafts with one plan, and the tokens that each drafted."""
        predicted = sum(
            passes * self._draft_price(variants, [w.start for w in live]) for live, passes in lock_step(drafting)
        )
        return _Seen((DRAFT, variants), seconds, predicted)

    def _learn(self, seen: Sequence[_Seen]) -> None:
        """Correct the machine's speed, and the kinds of these passes."""
        usual = sum(math.exp(self._mean(took.kinds[-1])) * took.predicted for took in seen)
        self._now += usual
        fast = math.log(max(sum(took.seconds for took in seen), 1e-9) / usual)
        self._speed += _SPEED_WEIGHT * (_within(fast, _MAX_LOG_DEVIATION + abs(self._speed)) - self._speed)
        for took in seen:
            for kind in took.kinds:
                self._correction(kind).add(math.log(max(took.seconds, 1e-9) / took.predicted), self._now)

    def _correction(self, kind: Kind) -> Correction:
        found = self._corrections.get(kind)
        if found is None:
            if len(self._corrections) == _MAX_KINDS:
                del self._corrections[next(iter(self._corrections))]
            found = self._corrections[kind] = Correction(self._mean(kind), self._now)
        return found

    def _mean(self, kind: Kind) -> float:
        """Return the mean log correction of a kind of pass, or of the most similar kind that has one."""
        kinds = (kind, *_SIMILAR.get(kind, (DRAFT, VERIFY, PLAIN)))
        return next((self._corrections[kind].mean for kind in kinds if kind in self._corrections), 0.0)

    def factor(self, kind: Kind) -> float:
        """Return the correction of a kind of pass."""
        return math.exp(_within(self._speed + self._mean(kind), _MAX_LOG_CORRECTION))

    def doubt(self, kind: Kind) -> float:
        """Return the standard deviation of the logarithm of a corrected price."""
        found = self._corrections.get(kind)
        return _DEVIATION / math.sqrt(_PRIOR_WEIGHT) if found is None else found.doubt(self._now)


def lock_step(drafting: Sequence[tuple[Work, int]]) -> Iterator[tuple[list[Work], int]]:
    """Yield the work that shared passes, and how many, from the tokens that each drafted."""
    passed = 0
    for length in sorted({drafted for _, drafted in drafting}):
        yield [w for w, drafted in drafting if drafted >= length], length - passed
        passed = length


def _rounded_mean(contexts: Sequence[int]) -> int:
    """Return the context to price all requests at: their mean, for attention's cost is nearly linear, rounded."""
    mean = int(sum(contexts) / len(contexts)) if len(contexts) > 1 else contexts[0]
    step = max(_CONTEXT_STEP, 1 << max(mean.bit_length() - 6, 0))
    return mean // step * step + step // 2


@cache
def _knots(profiled: tuple[int, ...], requests: int, most: int) -> list[int]:
    """Return ascending row counts up to `most`, between which prices are linear, of all rows or of each request's."""
    return sorted({rows for n in profiled for rows in (n, n * requests) if rows < most} | {most})


def _within(x: float, most: float) -> float:
    return min(max(x, -most), most)


class _Seen(NamedTuple):
    """What passes of a round took."""

    kinds: tuple[Kind, ...]  # kinds of pass to correct; the price is that of the last
    seconds: float
    predicted: float  # seconds predicted by the profile


class Correction:
    """A normal belief about log(seen / predicted seconds) whose mean and variance move.

    Early observations weigh more than later ones, but the prior is worth a few of them: the first passes of a kind are
    slow.
    """

    __slots__ = ("_at", "_variance", "_weight", "mean")

    def __init__(self, mean: float, now: float) -> None:
        self.mean, self._variance = mean, _DEVIATION**2
        self._weight, self._at = 0.0, now

    def add(self, ratio: float, now: float) -> None:
        self._fade(now)
        self._weight += 1.0
        share, off = 1.0 / (self._weight + _PRIOR_WEIGHT), _within(ratio - self.mean, _MAX_LOG_DEVIATION)
        self._variance += share * (off * off - self._variance)
        self.mean = _within(self.mean + share * off, _MAX_LOG_CORRECTION)

    def doubt(self, now: float) -> float:
        """Return the standard deviation of the mean, given the observations that have not faded."""
        self._fade(now)
        return math.sqrt(self._variance / (self._weight + _PRIOR_WEIGHT))

    def _fade(self, now: float) -> None:
        self._weight *= math.exp((self._at - now) / _HORIZON)
        self._at = now
