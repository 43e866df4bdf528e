"""What a pass costs now: the latency profile, corrected by what rounds were seen to take."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from engine.architecture.spec import LOW_BIT, SKIP, TARGET, ModelSpec, Variants, weights_of
from engine.step import StepOutput, StepPlan, Work
from profiles.schema import LatencyProfile

_HORIZON = 10.0  # seconds of rounds over which what was seen fades
_WORTH = 4.0  # observations that the profile, or what is nearest to a new kind of pass, counts for,
_DEVIATION = 0.1  # with this standard deviation of the logarithm: the widths of a profile and rounds in real time
_SPEED_MEMORY = 0.15  # weight of a new observation of what all passes have in common, and of the time outside
_MOST = math.log(2.5)  # of a correction, and of one stall
_STALL = math.log(1.5)
_MOST_KINDS = 256  # of passes whose corrections are remembered
_NEAR = 16  # tokens of context, or a sixty-fourth, that are one to a price
_MOST_PRICES = 4096  # remembered
SETTLING = (4, 1)  # rounds until those of plain decoding after drafting, and the other way round, take what they will
_WIDTHS = (1, 4, 8, 16)  # passes are corrected apart, by rows: up to these, and beyond
_PLAIN, _BEHIND, _DRAFT = "plain", "behind drafts", "draft"
Kind = str | Variants  # of a pass: of the whole model, with drafts before it or none; of a draft, in general or by plan
_LIKE: dict[Kind, tuple[Kind, ...]] = {_PLAIN: (_PLAIN, _BEHIND), _BEHIND: (_BEHIND, _PLAIN)}


class CostModel:
    """Prices in seconds. `observe` is called once a round; corrections are bounded and `reset` forgets them."""

    def __init__(self, spec: ModelSpec, profile: LatencyProfile) -> None:
        self.spec = spec
        self.profile = profile
        self._all = spec.whole
        self.has_low_bit = profile.variants >= LOW_BIT
        self._found = lru_cache(_MOST_PRICES)(self._price_anew)
        self.reset()

    def reset(self) -> None:
        """Trust the profile again."""
        # What passes take of what they usually take: the machine, which others use too. It does not last.
        self._speed = 0.0
        self._seen: dict[tuple[Kind, int], Correction] = {}  # by width
        self._now = 0.0  # seconds of rounds
        self._outside = 0.0  # seconds of a round outside its passes, for each request
        self._drafts = False  # whether the last round did,
        self._unsettled = 0  # and how many more of its kind are slower than those that follow
        self.search_factor = 1.0  # seen over predicted time of the last search, as policies found it

    def sublayers(
        self, context: int, rows: int = 1, union: Sequence[int] | None = None, variant: int = TARGET
    ) -> list[float]:
        """Price of this variant of each sublayer for one more request of so many: in full, or, where others run its
        weights already, at the margin."""
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
        """One draft pass of a row for each context through the sub-network."""
        return self._factor(variants, len(contexts)) * self._draft_price(variants, contexts)

    def draft_doubt(self, variants: Variants, requests: int) -> float:
        """Standard deviation of the logarithm of what is believed of that price."""
        return self._doubt(variants, requests)

    def draft_factor(self, requests: int) -> float:
        """The correction of draft passes of so many requests, whatever they draft with."""
        return self._factor(_DRAFT, requests)

    def verify_pass(self, rows: float, contexts: Sequence[int]) -> float:
        """One full pass of `rows` rows in all over requests with these contexts."""
        requests = len(contexts)
        return self.verify_factor(rows, requests) * self._price(self._all, rows, contexts, rows / requests)

    def verify_factor(self, rows: float, requests: int) -> float:
        """The correction of verify passes of so many rows: one each where nothing was drafted."""
        return self._factor(_BEHIND if rows > requests else _PLAIN, rows)

    def verify_doubt(self, requests: int, *, drafts: bool) -> float:
        """As `draft_doubt`, of verify passes of so many requests; behind drafts, of four rows each."""
        return self._doubt(*((_BEHIND, 4 * requests) if drafts else (_PLAIN, requests)))

    def plain_tpt(self, contexts: Sequence[int]) -> float:
        """Tokens per second of each of these requests where nobody drafts."""
        return 1.0 / (self.verify_pass(len(contexts), contexts) + len(contexts) * self._outside)

    def rows_within(self, seconds: float, context: int) -> int:
        """Most rows (16, 32 … 2048) of a verify pass that is to take no longer than this."""
        rows = 16
        while rows < 2048 and self.verify_pass(2 * rows, [context]) <= seconds:
            rows *= 2
        return rows

    def verify_curve(self, most: int, contexts: Sequence[int]) -> tuple[Sequence[int], list[float]]:
        """Rows, ascending up to `most`, and `verify_pass` of so many behind a draft, which is linear between; with what
        a round takes outside its passes."""
        requests, knots = len(contexts), _knots(self.profile.rows, most)
        factors = [self._factor(_BEHIND, rows) for rows in (*_WIDTHS, math.inf)[: _width(most) + 1]]
        prices = [self._price(self._all, rows, contexts, rows / requests) for rows in knots]
        outside = requests * self._outside
        return knots, [factors[_width(n)] * price + outside for n, price in zip(knots, prices, strict=True)]

    def _draft_price(self, variants: Variants, contexts: Sequence[int]) -> float:
        """Less than a pass of its own by what passes within a draft save; that is the same for any number of rows."""
        saved = (1.0 - self.profile.drafting) * self._price(variants, 1, contexts[:1], 1)
        return self._price(variants, len(contexts), contexts, 1) - saved

    def _price(self, variants: Variants, rows: float, contexts: Sequence[int], width: float) -> float:
        return self._found(variants, rows, len(contexts), _about(contexts), width)

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

    # -- what rounds teach -------------------------------------------------------------------------------------------

    def observe(self, plan: StepPlan, out: StepOutput, overhead: float) -> None:
        """Correct the prices by one round; `overhead` is its time outside passes and searches, in seconds.

        Not by the first round that drafts, or the first ones that do not: they find other things in the processor's
        caches than those that follow them, of which a decision makes many.
        """
        work = plan.work
        if not work:
            return
        drafted = [o.drafted for o in out.outputs]
        before, drafts = self._drafts, any(drafted)
        self._drafts = drafts
        if drafts != before:
            self._unsettled = SETTLING[drafts]
        if self._unsettled:
            self._unsettled -= 1
            return
        requests, tokens = len(work), sum([len(w.tokens) for w in work])
        contexts = [w.start for w in work]
        seen: list[tuple[tuple[Kind, ...], int, float, float]] = []  # kinds, width, seconds, predicted
        if tokens == requests and not plan.copies:  # reading prompts is work of its own
            rows, each = tokens + sum(drafted), max(overhead / requests, 0.0)
            self._outside += _SPEED_MEMORY * (min(each, 2.0 * self._outside or each) - self._outside)  # against stalls
            predicted = self._price(self._all, rows, contexts, rows / requests)
            seen.append(((_BEHIND if drafts else _PLAIN,), _width(rows), out.verify_seconds, predicted))
        drafting = [(w, d) for w, d in zip(work, drafted, strict=True) if d and not w.copied] if drafts else []
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
        self._speed += _SPEED_MEMORY * (_within(fast, _STALL + abs(self._speed)) - self._speed)
        for kinds, width, seconds, predicted in seen:
            ratio = math.log(max(seconds, 1e-9) / predicted)
            for kind in kinds:
                self._correction(kind, width).add(ratio, self._now)

    def _correction(self, kind: Kind, width: int) -> Correction:
        found = self._seen.get((kind, width))
        if found is None:
            if len(self._seen) == _MOST_KINDS:
                del self._seen[next(iter(self._seen))]
            found = self._seen[kind, width] = Correction(self._mean(kind, width), self._now)
        return found

    def _mean(self, kind: Kind, width: int) -> float:
        """Of the logarithm of the correction: what was seen of such passes, or of those that are most like them."""
        if (kind, width) in self._seen:
            return self._seen[kind, width].mean
        like = _LIKE.get(kind, (_DRAFT, _BEHIND, _PLAIN))
        known = (self._seen[each, i] for each in like for i in _by_nearness(width) if (each, i) in self._seen)
        return next((correction.mean for correction in known), 0.0)

    def _factor(self, kind: Kind, rows: float) -> float:
        return math.exp(_within(self._speed + self._mean(kind, _width(rows)), _MOST))

    def _doubt(self, kind: Kind, rows: float) -> float:
        found = self._seen.get((kind, _width(rows)))
        return _DEVIATION / math.sqrt(_WORTH) if found is None else found.doubt(self._now)


def lock_step(drafting: Sequence[tuple[Work, int]]) -> Iterator[tuple[list[Work], int]]:
    """Who shared how many passes, by the tokens that each drafted."""
    passed = 0
    for length in sorted({drafted for _, drafted in drafting}):
        yield [w for w, drafted in drafting if drafted >= length], length - passed
        passed = length


def _width(rows: float) -> int:
    return bisect_left(_WIDTHS, rows)


def _about(contexts: Sequence[int]) -> int:
    """The context that all are priced at: what reading costs is all but linear. Rounded, so that prices are found
    again."""
    mean = int(sum(contexts) / len(contexts)) if len(contexts) > 1 else contexts[0]
    step = max(_NEAR, 1 << max(mean.bit_length() - 6, 0))
    return mean // step * step + step // 2


@cache
def _knots(profiled: tuple[int, ...], most: int) -> list[int]:
    """Rows, ascending up to `most`, between which prices and their corrections are linear."""
    return sorted({rows for rows in (*profiled, *_WIDTHS) if rows < most} | {most})


@cache
def _by_nearness(width: int) -> tuple[int, ...]:
    """All widths, the nearest first."""
    return tuple(sorted(range(len(_WIDTHS) + 1), key=lambda i: abs(i - width)))


def _within(x: float, most: float) -> float:
    return min(max(x, -most), most)


class Correction:
    """The logarithm of seen over predicted time, as a normal distribution whose mean and variance move.

    Early observations weigh more, though what is believed beforehand is worth a few of them: the first passes of a kind
    are slow.
    """

    __slots__ = ("_at", "_variance", "_weight", "mean")

    def __init__(self, mean: float, now: float) -> None:
        self.mean, self._variance = mean, _DEVIATION**2
        self._weight, self._at = 0.0, now

    def add(self, ratio: float, now: float) -> None:
        self._fade(now)
        self._weight += 1.0
        share, off = 1.0 / (self._weight + _WORTH), _within(ratio - self.mean, _STALL)
        self._variance += share * (off * off - self._variance)
        self.mean = _within(self.mean + share * off, _MOST)

    def doubt(self, now: float) -> float:
        """Standard deviation of the mean, by what is still remembered."""
        self._fade(now)
        return math.sqrt(self._variance / (self._weight + _WORTH))

    def _fade(self, now: float) -> None:
        self._weight *= math.exp((self._at - now) / _HORIZON)
        self._at = now
