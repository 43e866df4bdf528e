"""What a pass costs now: the latency profile, corrected by what rounds were seen to take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.model.spec import ModelSpec
from engine.step import StepOutput, StepPlan
from profiles.schema import LatencyProfile

_MEMORY = 0.05  # weight of a new observation
_PROFILE_WORTH = 4  # observations
_BOUNDS = (0.4, 2.5)  # of a correction factor
_MOST_PLANS = 64  # whose drafts are corrected apart
_WIDTHS = (1, 4, 8, 16)  # verify passes are corrected apart, by rows: up to these, and beyond


class CostModel:
    """Prices in seconds. `observe` is called once a round; corrections are bounded and `reset` forgets them."""

    def __init__(self, spec: ModelSpec, profile: LatencyProfile) -> None:
        self.spec = spec
        self.profile = profile
        self._all = (1,) * spec.sublayers
        self.reset()

    def reset(self) -> None:
        """Trust the profile again."""
        self.draft = Correction()
        self._draft_by_plan: dict[tuple[int, ...], Correction] = {}
        self.verify = [Correction() for _ in range(len(_WIDTHS) + 1)]
        self.overhead = 0.0  # seconds per round outside the passes

    def sublayers(self, context: int, rows: int, union: Sequence[int] | None) -> list[float]:
        """Price of each sublayer for one more request: in full, or, where others run it already, at the margin."""
        profile = self.profile
        full = (profile.projection(1), profile.mlp(1))
        shared = (
            max(profile.projection(rows) - profile.projection(rows - 1), 0.0),
            max(profile.mlp(rows) - profile.mlp(rows - 1), 0.0),
        )
        prices = [(shared if ran else full)[i % 2] for i, ran in enumerate(union or (0,) * self.spec.sublayers)]
        for layer, window in enumerate(self.spec.windows or (0,) * self.spec.layers):
            prices[2 * layer] += profile.scan(min(context, window or context), 1)
        return prices

    def draft_pass(self, variants: Sequence[int], contexts: Sequence[int]) -> float:
        """One draft pass of a row for each context through the sub-network."""
        correction = self._draft_by_plan.get(tuple(variants), self.draft)
        return correction.factor * self._draft_price(variants, contexts)

    def renew_draft(self, variants: Sequence[int]) -> None:
        """Let what is seen next of drafts with this plan weigh more."""
        for correction in (self.draft, self._draft_by_plan.get(tuple(variants))):
            if correction:
                correction.seen = 0

    def verify_pass(self, rows: float, contexts: Sequence[int]) -> float:
        """One full pass of `rows` rows in all over requests with these contexts."""
        width = rows / max(len(contexts), 1)
        return self.verify_factor(rows) * self._price(self._all, rows, contexts, width)

    def verify_factor(self, rows: float) -> float:
        """The correction of verify passes of so many rows."""
        return self.verify[_width(rows)].factor

    def rows_within(self, seconds: float, context: int) -> int:
        """Most rows (16, 32 … 2048) of a verify pass that is to take no longer than this."""
        rows = 16
        while rows < 2048 and self.verify_pass(2 * rows, [context]) <= seconds:
            rows *= 2
        return rows

    def verify_passes(self, rows: np.ndarray, contexts: Sequence[int]) -> np.ndarray:
        """`verify_pass` for an array of row counts (expected values, so not whole numbers)."""
        knots = sorted({*self.profile.rows, *_WIDTHS, int(np.ceil(rows.max()))})
        priced: np.ndarray = np.interp(rows, knots, [self.verify_pass(knot, contexts) for knot in knots])
        return priced

    def _draft_price(self, variants: Sequence[int], contexts: Sequence[int]) -> float:
        return self.profile.drafting * self._price(variants, len(contexts), contexts, 1)

    def _price(self, variants: Sequence[int], rows: float, contexts: Sequence[int], width: float) -> float:
        profile = self.profile
        attention, mlp = sum(variants[0::2]), sum(variants[1::2])
        mean = sum(contexts) // len(contexts)  # what reading costs is all but linear
        scan = len(contexts) * sum(
            count * profile.scan(tokens, width) for count, tokens in self.spec.spans(variants, mean)
        )
        return (
            profile.fixed + profile.head(rows) + attention * profile.projection(rows) + mlp * profile.mlp(rows) + scan
        )

    def observe(self, plan: StepPlan, out: StepOutput, overhead: float) -> None:
        """Correct the prices by one round; `overhead` is its time outside passes and search."""
        self.overhead += _MEMORY * (min(overhead, 10 * self.overhead + 1e-3) - self.overhead)
        contexts = [w.start for w in plan.work]
        rows = sum(len(w.tokens) + o.drafted for w, o in zip(plan.work, out.outputs, strict=True))
        if rows and not plan.copies:
            predicted = self._price(self._all, rows, contexts, rows / len(contexts))
            self.verify[_width(rows)].add(out.verify_seconds, predicted)
        drafting = [(w, o.drafted) for w, o in zip(plan.work, out.outputs, strict=True) if o.drafted and not w.copied]
        plans = {w.plan.variants for w, _ in drafting if w.plan}
        if len(plans) == 1:  # a mixture is priced less surely: learn from the clear cases
            variants = next(iter(plans))
            predicted = sum(
                self._draft_price(variants, live)
                for k in range(out.draft_passes)
                if (live := [w.start + k for w, drafted in drafting if drafted > k])
            )
            self._correct_draft(variants, out.draft_seconds, predicted)

    def _correct_draft(self, variants: tuple[int, ...], seconds: float, predicted: float) -> None:
        """For plans in general, and for this one: small ones stay in the processor's cache from pass to pass."""
        if variants not in self._draft_by_plan:
            if len(self._draft_by_plan) == _MOST_PLANS:
                del self._draft_by_plan[next(iter(self._draft_by_plan))]
            self._draft_by_plan[variants] = Correction(self.draft.factor)
        for correction in (self.draft, self._draft_by_plan[variants]):
            correction.add(seconds, predicted)


def _width(rows: float) -> int:
    return next((i for i, most in enumerate(_WIDTHS) if rows <= most), len(_WIDTHS))


class Correction:
    """A bounded running factor seen/predicted.

    Early observations weigh more, though the profile is worth a few of them: the first passes of a kind are slow. A
    stall counts as half as slow again.
    """

    __slots__ = ("factor", "seen")

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor
        self.seen = 0

    def add(self, seconds: float, predicted: float) -> None:
        ratio = min(max(seconds / predicted, 0.5 * self.factor), 1.5 * self.factor)
        self.seen += 1
        moved = self.factor + max(_MEMORY, 1 / (self.seen + _PROFILE_WORTH)) * (ratio - self.factor)
        self.factor = min(max(moved, _BOUNDS[0]), _BOUNDS[1])
