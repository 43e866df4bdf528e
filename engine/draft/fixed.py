"""Policies whose plan never changes: none, fixed (SWIFT, section 3.2.1: uniform skips), and lookup.

Lookup is prompt lookup decoding (Saxena, 2023): copy what followed an earlier occurrence of the last tokens, always.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.draft.base import BatchView, DraftPolicy, PolicyContext
from engine.errors import ConfigError
from engine.plans import LOW_BIT, SKIP, TARGET, Variants
from engine.step import Plan


class FixedPlan(DraftPolicy[None]):
    """Base of the policies whose plan never changes. They keep no state of requests."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def new_state(self) -> None:
        return None

    def propose(self, batch: BatchView[None]) -> Sequence[Plan]:
        return [self._plan] * len(batch.views)

    def can_reuse_plans(self) -> bool:
        return True


class NoDraft(FixedPlan):
    """Plain decoding: γ = 0."""

    name = "none"

    def __init__(self, context: PolicyContext) -> None:
        super().__init__(Plan(context.spec.whole, gamma=0))


class PromptLookup(NoDraft):
    """Copy up to γ tokens wherever there is a match, and decode plainly elsewhere. No speed is predicted.

    The match is the longest one of 2 to 16 tokens, and the newest of equal ones (`engine.draft.lookup`). The published
    code takes the oldest match of at most 3 tokens, and accepts single ones.
    """

    name = "lookup"
    looks_up = True

    def __init__(self, context: PolicyContext) -> None:
        super().__init__(context)
        self.always_copies = context.config.prompt_lookup.gamma


class UniformSkip(FixedPlan):
    """Skip a share of the layers, spread evenly over depth, or run any plan given as `--fixed-plan`.

    Nothing depends on time, so a run can be repeated pass by pass.
    """

    name = "fixed"

    def __init__(self, context: PolicyContext) -> None:
        config, width = context.config.fixed, context.spec.sublayers + 1
        variants = uniform_variants(context.spec.layers, config.skip_ratio)
        if config.plan:
            variants = tuple(map(int, config.plan)) * (width if len(config.plan) == 1 else 1)
            if len(variants) != width:
                raise ConfigError(f"--fixed-plan has {len(variants)} digits, but this model needs one or {width}")
            if max(variants) >= LOW_BIT and not context.costs.has_low_bit:
                raise ConfigError(
                    f"--fixed-plan has a {max(variants)}, but there is no copy of this model in fewer bits"
                )
        super().__init__(Plan(variants, config.gamma, context.config.draft_confidence))


def uniform_variants(layers: int, ratio: float) -> Variants:
    """Skip round(ratio·layers) layers at even distances, counted from the end; the first layer is skipped last."""
    skip = round(ratio * layers)
    skipped = {layers - 1 - (index * layers) // skip for index in range(skip)} if skip else set()
    return (*(SKIP if i // 2 in skipped else TARGET for i in range(2 * layers)), TARGET)
