"""Prompt lookup copies wherever there is a match; other policies compare first."""

from __future__ import annotations

import pytest

from engine.checkpoints.shapes import shape
from engine.config.engine import EngineConfig
from engine.config.policies import PromptLookupConfig
from engine.draft.base import PolicyContext
from engine.draft.costs import CostModel
from engine.draft.fixed import FixedPlan, NoDraft, PromptLookup
from engine.draft.lookup import MAX_COPIED, AgreementCounts, Lookup, Match, plan_lookup
from engine.errors import ConfigError
from engine.step import Plan
from tests.support.cores import ManualClock, made_up_profile

SPEC = shape("smollm2-135m")
COSTS = CostModel(SPEC, made_up_profile(verify_slope=0.1))
PLAIN = Plan(SPEC.whole, 0)


def context(**settings: int) -> PolicyContext:
    return PolicyContext(SPEC, EngineConfig(prompt_lookup=PromptLookupConfig(**settings)), COSTS, ManualClock())


def plan_copy(policy: FixedPlan, lookup: Lookup, most: int) -> Plan | None:
    return plan_lookup(lookup, most, PLAIN, [100], COSTS, policy.always_copies)


def distrusted() -> Lookup:
    """A text whose last two tokens occurred before, in a pool where matches never agreed."""
    pool = AgreementCounts()
    for _ in range(100):
        pool.add(Match((), 2, "lookup").bin_after(0), False)
    lookup = Lookup(pool)
    lookup.extend([*range(100, 120), 100, 101])
    assert lookup.match is not None
    return lookup


def test_a_match_that_never_agrees_is_copied_all_the_same() -> None:
    assert plan_copy(NoDraft(context()), distrusted(), 99) is None, "the default is guarded"
    copying = plan_copy(PromptLookup(context()), distrusted(), 99)
    assert copying == Plan(SPEC.whole, 10, tokens=tuple(range(102, 112)), source="lookup")


@pytest.mark.parametrize(("gamma", "room", "copied"), [(10, 99, 10), (3, 99, 3), (15, 99, 15), (10, 4, 4)])
def test_a_copy_is_as_long_as_the_setting_and_the_room_allow(gamma: int, room: int, copied: int) -> None:
    plan = plan_copy(PromptLookup(context(gamma=gamma)), distrusted(), room)
    assert plan is not None
    assert plan.gamma == copied


def test_nothing_is_copied_without_a_match_or_room() -> None:
    unmatched = Lookup(AgreementCounts())
    unmatched.extend([1, 2, 3])
    made = PromptLookup(context())
    assert plan_copy(made, unmatched, 99) is None
    assert plan_copy(made, distrusted(), 0) is None
    assert plan_copy(PromptLookup(context(gamma=0)), distrusted(), 99) is None


def test_the_setting_allows_as_many_tokens_as_a_match_has() -> None:
    assert EngineConfig(prompt_lookup=PromptLookupConfig(gamma=MAX_COPIED)).prompt_lookup.gamma == MAX_COPIED
    with pytest.raises(ConfigError, match="--prompt-lookup-gamma"):
        EngineConfig(prompt_lookup=PromptLookupConfig(gamma=MAX_COPIED + 1))
