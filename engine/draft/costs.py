"""What a pass costs now: the latency profile, corrected by what rounds were seen to take."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache

from engine.model.spec import LOW_BIT, TARGET, ModelSpec, Variants
from engine.step import StepOutput, StepPlan, Work
from profiles.schema import LatencyProfile

_MEMORY = (0.003, 0.05)  # weight of a new observation: by the time that rounds take, between these,
_MEMORY_SECONDS = 0.3  # so that a moment in which the machine is slow shows in the speed alone
_SETUP_MEMORY = 0.05  # the same for what drafts take beside their passes, which all of them tell of a little,
_SPEED_MEMORY = 0.15  # and for what all passes have in common
_PROFILE_WORTH = 4  # observations
_BOUNDS = (0.4, 2.5)  # of a correction factor
_SMALL = 1e-5  # seconds
_MOST_PLANS = 64  # whose drafts are corrected apart
_NEAR = 16  # tokens of context, or a sixty-fourth, that are one to a price
_MOST_PRICES = 4096  # remembered
SETTLING = (4, 1)  # rounds until those of plain decoding after drafting, and the other way round, take what they will
_WIDTHS = (1, 4, 8, 16)  # passes are corrected apart, by rows: up to these, and beyond


class CostModel:
    """Prices in seconds. `observe` is called once a round; corrections are bounded and `reset` forgets them."""

    def __init__(self, spec: ModelSpec, profile: LatencyProfile) -> None:
        self.spec = spec
        self.profile = profile
        self._all = spec.whole
        self.has_low_bit = profile.variants >= LOW_BIT
        self._prices: dict[tuple[Variants, float, int, int, float], float] = {}
        self._curves: dict[tuple[int, int, int], list[tuple[int, float]]] = {}
        self._rows: dict[int, Sequence[int]] = {}
        self.reset()

    def reset(self) -> None:
        """Trust the profile again."""
        # What passes take of what they usually take: the machine, which others use too. It does not last.
        self._speed = Correction()
        self.draft = [Correction() for _ in range(len(_WIDTHS) + 1)]
        self._draft_by_plan: dict[tuple[Variants, int], Correction] = {}  # and by width
        # Apart where nothing was drafted: a pass behind drafts finds other things in the processor's caches.
        self.verify = tuple([Correction() for _ in range(len(_WIDTHS) + 1)] for _ in range(2))
        # Seconds outside the passes, in rounds that do not draft and in those that do; and for each token more.
        self._per_request: tuple[list[float | None], ...] = ([None] * (len(_WIDTHS) + 1), [None] * (len(_WIDTHS) + 1))
        self._rounds = ([0] * (len(_WIDTHS) + 1), [0] * (len(_WIDTHS) + 1))  # that showed it
        self._per_accepted = 0.0
        # Seconds of a draft beside its passes, by the number of requests: its first pass finds caches cold.
        self._setup: list[float | None] = [None] * (len(_WIDTHS) + 1)
        self._drafts = False  # whether the last round did,
        self._unsettled = 0  # and how many more of its kind are slower than those that follow
        self._round_seconds = 0.0  # that passes of a round take, about
        self.search_factor = 1.0  # seen over predicted time of the last search, as policies found it

    def sublayers(self, context: int, rows: int, union: Sequence[int] | None) -> list[float]:
        """Price of each sublayer for one more request: in full, or, where others run it already, at the margin."""
        profile = self.profile
        full = (profile.projection(1), profile.mlp(1))
        shared = (
            max(profile.projection(rows) - profile.projection(rows - 1), 0.0),
            max(profile.mlp(rows) - profile.mlp(rows - 1), 0.0),
        )
        prices = [
            (shared if ran else full)[i % 2]
            for i, ran in enumerate((union or (0,) * self.spec.sublayers)[: self.spec.sublayers])
        ]
        for layer, window in enumerate(self.spec.windows or (0,) * self.spec.layers):
            prices[2 * layer] += profile.scan(min(context, window or context), 1)
        return prices

    def draft_pass(self, variants: Variants, contexts: Sequence[int]) -> float:
        """One draft pass of a row for each context through the sub-network."""
        width = _width(len(contexts))
        known = self._draft_by_plan.get((variants, width))
        factor = self._nearest_draft(width) if known is None else known.factor
        return self._corrected(factor) * self._draft_price(variants, contexts)

    def draft_setup(self, requests: int) -> float:
        """Seconds that a draft of so many requests takes beside its passes."""
        seen = (each for i in _by_nearness(_width(requests)) if (each := self._setup[i]) is not None)
        return next(seen, 0.0)

    def draft_factor(self, requests: int) -> float:
        """The correction of draft passes of so many requests, whatever they draft with."""
        return self._corrected(self._nearest_draft(_width(requests)))

    def renew_draft(self, variants: Variants, requests: int) -> None:
        """Let what is seen next of drafts of so many requests with this plan weigh more."""
        width = _width(requests)
        for correction in (self.draft[width], self._draft_by_plan.get((variants, width))):
            if correction and correction.seen:
                correction.seen = 1

    def verify_pass(self, rows: float, contexts: Sequence[int]) -> float:
        """One full pass of `rows` rows in all over requests with these contexts."""
        requests = max(len(contexts), 1)
        return self.verify_factor(rows, requests) * self._price(self._all, rows, contexts, rows / requests)

    def verify_factor(self, rows: float, requests: int) -> float:
        """The correction of verify passes of so many rows: one each where nothing was drafted."""
        return self._corrected(self._nearest_verify(_width(rows), rows > requests))

    def _verify_factors(self, widest: int) -> list[float]:
        """`verify_factor` behind a draft for each width."""
        speed, seen, (least, most) = self._speed.factor, self.verify[True], _BOUNDS
        factors = [
            seen[width].factor if seen[width].seen else self._nearest_verify(width, True) for width in range(widest + 1)
        ]
        return [min(max(speed * factor, least), most) for factor in factors]

    def _nearest_verify(self, width: int, drafted: bool) -> float:
        found = _nearest(self.verify[drafted], width) or _nearest(self.verify[not drafted], width)
        return found.factor if found else 1.0

    @property
    def _memory(self) -> float:
        """The weight of a new observation."""
        return min(max(self._round_seconds / _MEMORY_SECONDS, _MEMORY[0]), _MEMORY[1])

    def _nearest_draft(self, width: int) -> float:
        found = _nearest(self.draft, width)
        return found.factor if found else self._nearest_verify(width, True)

    def _corrected(self, factor: float) -> float:
        return min(max(self._speed.factor * factor, _BOUNDS[0]), _BOUNDS[1])

    @property
    def per_accepted(self) -> float:
        """Of `overhead`, what each accepted token adds."""
        return self._per_accepted

    def overhead(self, requests: int, accepted: int | None = None) -> float:
        """Seconds of a round outside the passes; `accepted`: draft tokens of all requests, if it drafts."""
        kind = 0 if accepted is None else 1
        nearest = _by_nearness(_width(requests))
        seen = (each for k in (kind, 1 - kind) for i in nearest if (each := self._per_request[k][i]) is not None)
        return requests * next(seen, 0.0) + (0.0 if accepted is None else accepted * self._per_accepted)

    def rows_within(self, seconds: float, context: int) -> int:
        """Most rows (16, 32 … 2048) of a verify pass that is to take no longer than this."""
        rows = 16
        while rows < 2048 and self.verify_pass(2 * rows, [context]) <= seconds:
            rows *= 2
        return rows

    def verify_curve(self, most: int, contexts: Sequence[int]) -> tuple[Sequence[int], list[float]]:
        """Rows, ascending up to `most`, and `verify_pass` of so many behind a draft, which is linear between."""
        knots = self._knots(most)
        factors = self._verify_factors(_width(most))
        context, requests = _about(contexts), len(contexts)
        key = most, requests, context
        found = self._curves.get(key)
        if found is None:
            if len(self._curves) == _MOST_PRICES:
                self._curves.clear()
            found = self._curves[key] = [
                (_width(knot), self._price_anew(self._all, knot, requests, context, knot / requests)) for knot in knots
            ]
        return knots, [factors[width] * price for width, price in found]

    def _knots(self, most: int) -> Sequence[int]:
        if most not in self._rows:
            self._rows[most] = sorted({*(rows for rows in (*self.profile.rows, *_WIDTHS) if rows < most), most})
        return self._rows[most]

    def _draft_price(self, variants: Variants, contexts: Sequence[int]) -> float:
        """Less than a pass of its own by what passes within a draft save; that is the same for any number of rows."""
        alone = self._price(variants, 1, contexts[:1], 1)
        whole = alone if len(contexts) == 1 else self._price(variants, len(contexts), contexts, 1)
        return whole - (1.0 - self.profile.drafting) * alone

    def _price(self, variants: Variants, rows: float, contexts: Sequence[int], width: float) -> float:
        context = _about(contexts)
        key = variants, rows, len(contexts), context, width
        found = self._prices.get(key)
        if found is None:
            if len(self._prices) == _MOST_PRICES:
                self._prices.clear()
            found = self._prices[key] = self._price_anew(variants, rows, len(contexts), context, width)
        return found

    def _price_anew(self, variants: Variants, rows: float, requests: int, context: int, width: float) -> float:
        profile, (*sublayers, head) = self.profile, variants
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
        self._round_seconds += 0.1 * (out.draft_seconds + out.verify_seconds - self._round_seconds)
        memory, requests, tokens = self._memory, len(work), sum([len(w.tokens) for w in work])
        contexts = [w.start for w in work]
        seen: list[tuple[tuple[Correction, ...], float, float]] = []
        if tokens == requests:  # reading prompts is work of its own
            accepted = sum([o.accepted for o in out.outputs]) if drafts else None
            self._observe_overhead(requests, accepted, overhead, memory)
            if not plan.copies:
                rows = tokens + sum(drafted)
                correction = self._verify_correction(rows, drafted=drafts)
                seen.append(
                    ((correction,), out.verify_seconds, self._price(self._all, rows, contexts, rows / requests))
                )
        drafting = [(w, d) for w, d in zip(work, drafted, strict=True) if d and not w.copied] if drafts else []
        plans = {w.plan.variants for w, _ in drafting if w.plan}
        if len(plans) == 1:  # a mixture is priced less surely: learn from the clear cases
            variants = plans.pop()
            predicted, longest = self._drafts_price(variants, drafting)
            general, own = self._draft_corrections(variants, len(drafting))
            expected = self._corrected(own.factor) * predicted
            setup = self._observe_setup(len(drafting), longest, out.draft_seconds, expected)
            seen.append(((general, own), max(out.draft_seconds - setup, 0.0), predicted))
        if not seen:
            return
        usual = sum([corrections[-1].factor * predicted for corrections, _, predicted in seen])
        self._speed.add(sum([seconds for _, seconds, _ in seen]), usual, _SPEED_MEMORY)
        for corrections, seconds, predicted in seen:
            for correction in corrections:
                correction.add(seconds, predicted, memory)

    def _verify_correction(self, rows: int, *, drafted: bool) -> Correction:
        width = _width(rows)
        correction = self.verify[drafted][width]
        if not correction.seen:
            correction.factor = self._nearest_verify(width, drafted)
        return correction

    def _drafts_price(self, variants: Variants, drafting: Sequence[tuple[Work, int]]) -> tuple[float, int]:
        """Of the passes in which these drafted so many tokens, before any correction; and how many there were."""
        if len(drafting) == 1:
            ((work, passes),) = drafting
            return passes * self._draft_price(variants, (work.start,)), passes
        predicted = 0.0
        for live, passes in lock_step(drafting):
            predicted += passes * self._draft_price(variants, [w.start for w in live])
        return predicted, max(drafted for _, drafted in drafting)

    def _draft_corrections(self, variants: Variants, requests: int) -> tuple[Correction, Correction]:
        """For plans in general, and for this one: small ones stay in the processor's cache from pass to pass."""
        width = _width(requests)
        if not self.draft[width].seen:
            self.draft[width].factor = self._nearest_draft(width)
        key = variants, width
        if key not in self._draft_by_plan:
            if len(self._draft_by_plan) == _MOST_PLANS:
                del self._draft_by_plan[next(iter(self._draft_by_plan))]
            self._draft_by_plan[key] = Correction(self.draft[width].factor)
        return self.draft[width], self._draft_by_plan[key]

    def _observe_setup(self, requests: int, passes: int, seconds: float, predicted: float) -> float:
        """What a draft took beside its passes, by all that was seen. Drafts of many passes say little of it."""
        width = _width(requests)
        before = self.draft_setup(requests)
        missing = min(seconds, 2 * (before + predicted)) - before - predicted
        self._setup[width] = min(max(before + _SETUP_MEMORY * missing / passes**2, 0.0), predicted)
        return before

    def _observe_overhead(self, requests: int, accepted: int | None, seconds: float, memory: float) -> None:
        """`accepted`: None where nothing was drafted. A stall, or the end of a request, counts as twice as long as
        usual, at most."""
        width, drafted = _width(requests), accepted is not None
        known, rounds = self._per_request[drafted], self._rounds[drafted]
        rounds[width] += 1
        memory = max(memory, 2 / (rounds[width] + 2))
        before = known[width]
        if before is None:
            known[width] = max(seconds - (accepted or 0) * self._per_accepted, 0.0) / requests
            return
        usual = requests * before + (accepted or 0) * self._per_accepted
        # What is missing is shared out by how much each of the two has to do with it (normalised least mean squares).
        missing = memory * (min(seconds, 2 * usual + _SMALL) - usual) / (requests**2 + (accepted or 0) ** 2)
        known[width] = max(before + missing * requests, 0.0)
        self._per_accepted = max(self._per_accepted + missing * (accepted or 0), 0.0)


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
def _by_nearness(width: int) -> tuple[int, ...]:
    """All widths, the nearest first."""
    return tuple(sorted(range(len(_WIDTHS) + 1), key=lambda i: abs(i - width)))


def _nearest(corrections: Sequence[Correction], width: int) -> Correction | None:
    """The one for passes of a width, or of the nearest that have been seen."""
    if corrections[width].seen:
        return corrections[width]
    return next((corrections[i] for i in _by_nearness(width) if corrections[i].seen), None)


class Correction:
    """A bounded running factor seen/predicted.

    Early observations weigh more, though the profile is worth a few of them: the first passes of a kind are slow. A
    stall counts as half as slow again.
    """

    __slots__ = ("factor", "seen")

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor
        self.seen = 0

    def add(self, seconds: float, predicted: float, memory: float) -> None:
        """`memory`: the weight of an observation once many were seen."""
        ratio = min(max(seconds / predicted, 0.5 * self.factor), 1.5 * self.factor)
        self.seen += 1
        # At first a mean in which what came first, with cold caches, counts least.
        moved = self.factor + max(memory, 2 / (self.seen + 2 * _PROFILE_WORTH)) * (ratio - self.factor)
        self.factor = min(max(moved, _BOUNDS[0]), _BOUNDS[1])
