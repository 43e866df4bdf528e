"""Predict the seconds of passes: the latency profile, corrected by the rounds that have run."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from engine.architecture.spec import LOW_BIT, SKIP, TARGET, ModelSpec, Variants, weights_of
from engine.step import StepOutput, StepPlan, Work
from profiles.schema import LatencyProfile

_HORIZON = 10.0  # seconds of rounds over which observations fade
_PRIOR_WEIGHT = 4.0  # observations that the prior of a correction counts for
_DEVIATION = 0.1  # prior standard deviation of log(seen / predicted): the spread between profiles and real rounds
_SPEED_WEIGHT = 0.15  # of a new observation of the machine's speed, and of the time outside passes
_MAX_LOG_CORRECTION = math.log(2.5)  # bound of a correction
_MAX_LOG_DEVIATION = math.log(1.5)  # bound of one observation's deviation
_MAX_KINDS = 256  # corrections that are kept
_CONTEXT_STEP = 16  # tokens, or a sixty-fourth of the context: contexts are rounded to share cached prices
_MAX_PRICES = 4096  # cached
SETTLING = (4, 1)  # rounds after a change to plain decoding, and to drafting, that are slower than the following ones
_WIDTHS = (1, 4, 8, 16)  # upper bounds of the pass widths (rows) that are corrected together
_PLAIN, _VERIFY, _DRAFT = "plain", "verify", "draft"
Kind = str | Variants  # of a pass: plain decoding, verification of drafts, drafts in general, drafts of one plan
_SIMILAR: dict[Kind, tuple[Kind, ...]] = {_PLAIN: (_PLAIN, _VERIFY), _VERIFY: (_VERIFY, _PLAIN)}


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
        self._corrections: dict[tuple[Kind, int], Correction] = {}  # by kind and width
        self._now = 0.0  # seconds of rounds so far
        self._outside = 0.0  # seconds of a round outside its passes, for each request
        self._drafted = False  # whether the last round drafted
        self._unsettled = 0  # rounds that will still be slower than usual after a change of kind
        self.search_factor = 1.0  # seen over predicted seconds of the last search

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
        return self._factor(variants, len(contexts)) * self._draft_price(variants, contexts)

    def draft_doubt(self, variants: Variants, requests: int) -> float:
        """Return the standard deviation of the logarithm of `draft_pass`."""
        return self._doubt(variants, requests)

    def draft_factor(self, requests: int) -> float:
        """Return the correction of draft passes of so many requests, whatever their plan."""
        return self._factor(_DRAFT, requests)

    def verify_pass(self, rows: float, contexts: Sequence[int]) -> float:
        """Price one pass of the whole model with `rows` rows in all, over requests with these contexts."""
        requests = len(contexts)
        return self.verify_factor(rows, requests) * self._price(self._all, rows, contexts, rows / requests)

    def verify_factor(self, rows: float, requests: int) -> float:
        """Return the correction of verify passes with so many rows: one for each request without drafts."""
        return self._factor(_VERIFY if rows > requests else _PLAIN, rows)

    def verify_doubt(self, requests: int, *, drafts: bool) -> float:
        """Return the standard deviation of the logarithm of verify passes; after drafts, of four rows a request."""
        return self._doubt(*((_VERIFY, 4 * requests) if drafts else (_PLAIN, requests)))

    def plain_tpt(self, contexts: Sequence[int]) -> float:
        """Predict the tokens per second of each of these requests without drafts."""
        return 1.0 / (self.verify_pass(len(contexts), contexts) + len(contexts) * self._outside)

    def rows_within(self, seconds: float, context: int) -> int:
        """Return the most rows (16, 32 … 2048) of a verify pass within so many seconds."""
        rows = 16
        while rows < 2048 and self.verify_pass(2 * rows, [context]) <= seconds:
            rows *= 2
        return rows

    def verify_curve(self, most: int, contexts: Sequence[int]) -> tuple[Sequence[int], list[float]]:
        """Return ascending row counts up to `most`, and the seconds of a round that verifies so many rows of drafts.

        Seconds include the time outside passes, and are linear between the row counts.
        """
        requests, knots = len(contexts), _knots(self.profile.rows, most)
        factors = [self._factor(_VERIFY, rows) for rows in (*_WIDTHS, math.inf)[: _width(most) + 1]]
        prices = [self._price(self._all, rows, contexts, rows / requests) for rows in knots]
        outside = requests * self._outside
        return knots, [factors[_width(n)] * price + outside for n, price in zip(knots, prices, strict=True)]

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
        work = plan.work
        if not work:
            return
        drafted = [o.drafted for o in out.outputs]
        drafts = any(drafted)
        if drafts != self._drafted:
            self._drafted, self._unsettled = drafts, SETTLING[drafts]
        if self._unsettled:
            self._unsettled -= 1
            return
        requests, tokens = len(work), sum([len(w.tokens) for w in work])
        contexts = [w.start for w in work]
        seen: list[tuple[tuple[Kind, ...], int, float, float]] = []  # kinds, width, seconds, predicted
        if tokens == requests and not plan.changes.copies:  # reading prompts is work of its own
            rows, each = tokens + sum([o.draft_rows for o in out.outputs]), max(overhead / requests, 0.0)
            bounded = min(each, 2.0 * self._outside or each)  # a stall counts as twice the usual
            self._outside += _SPEED_WEIGHT * (bounded - self._outside)
            predicted = self._price(self._all, rows, contexts, rows / requests)
            seen.append(((_VERIFY if drafts else _PLAIN,), _width(rows), out.verify_seconds, predicted))
        drafting = [(w, d) for w, d in zip(work, drafted, strict=True) if d and not w.given] if drafts else []
        plans = {w.plan.variants for w, _ in drafting if w.plan}
        if len(plans) == 1:  # a mixture is priced less surely: learn from the clear cases
            variants = plans.pop()
            predicted = sum(
                passes * self._draft_price(variants, [w.start for w in live]) for live, passes in lock_step(drafting)
            )
            seen.append(((_DRAFT, variants), _width(len(drafting)), out.draft_seconds, predicted))
        if not seen:
            return
        usual = sum([math.exp(self._mean(kinds[-1], width)) * predicted for kinds, width, _, predicted in seen])
        self._now += usual
        fast = math.log(max(sum([seconds for *_, seconds, _ in seen]), 1e-9) / usual)
        self._speed += _SPEED_WEIGHT * (_within(fast, _MAX_LOG_DEVIATION + abs(self._speed)) - self._speed)
        for kinds, width, seconds, predicted in seen:
            ratio = math.log(max(seconds, 1e-9) / predicted)
            for kind in kinds:
                self._correction(kind, width).add(ratio, self._now)

    def _correction(self, kind: Kind, width: int) -> Correction:
        found = self._corrections.get((kind, width))
        if found is None:
            if len(self._corrections) == _MAX_KINDS:
                del self._corrections[next(iter(self._corrections))]
            found = self._corrections[kind, width] = Correction(self._mean(kind, width), self._now)
        return found

    def _mean(self, kind: Kind, width: int) -> float:
        """Return the mean log correction of a kind of pass, or of the most similar kind that has one."""
        if (kind, width) in self._corrections:
            return self._corrections[kind, width].mean
        similar = _SIMILAR.get(kind, (_DRAFT, _VERIFY, _PLAIN))
        nearest = ((each, i) for each in similar for i in _by_nearness(width))
        return next((self._corrections[key].mean for key in nearest if key in self._corrections), 0.0)

    def _factor(self, kind: Kind, rows: float) -> float:
        return math.exp(_within(self._speed + self._mean(kind, _width(rows)), _MAX_LOG_CORRECTION))

    def _doubt(self, kind: Kind, rows: float) -> float:
        found = self._corrections.get((kind, _width(rows)))
        return _DEVIATION / math.sqrt(_PRIOR_WEIGHT) if found is None else found.doubt(self._now)


def lock_step(drafting: Sequence[tuple[Work, int]]) -> Iterator[tuple[list[Work], int]]:
    """Yield the work that shared passes, and how many, from the tokens that each drafted."""
    passed = 0
    for length in sorted({drafted for _, drafted in drafting}):
        yield [w for w, drafted in drafting if drafted >= length], length - passed
        passed = length


def _width(rows: float) -> int:
    return bisect_left(_WIDTHS, rows)


def _rounded_mean(contexts: Sequence[int]) -> int:
    """Return the context to price all requests at: their mean, for attention's cost is nearly linear, rounded."""
    mean = int(sum(contexts) / len(contexts)) if len(contexts) > 1 else contexts[0]
    step = max(_CONTEXT_STEP, 1 << max(mean.bit_length() - 6, 0))
    return mean // step * step + step // 2


@cache
def _knots(profiled: tuple[int, ...], most: int) -> list[int]:
    """Return ascending row counts up to `most`, between which prices and corrections are linear."""
    return sorted({rows for rows in (*profiled, *_WIDTHS) if rows < most} | {most})


@cache
def _by_nearness(width: int) -> tuple[int, ...]:
    return tuple(sorted(range(len(_WIDTHS) + 1), key=lambda i: abs(i - width)))


def _within(x: float, most: float) -> float:
    return min(max(x, -most), most)


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
