"""Prompt lookup decoding (Saxena, 2023): copy what followed an earlier occurrence of the last tokens, always."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.draft.base import PolicyContext
from engine.draft.costs import CostModel
from engine.draft.fixed import FixedPlan
from engine.draft.lookup import Lookup
from engine.step import Plan


class PromptLookup(FixedPlan):
    """Copy up to γ tokens wherever there is a match, and decode plainly elsewhere. No speed is predicted.

    The match is the longest one of 2 to 16 tokens, and the newest of equal ones (`engine.draft.lookup`). The published
    code takes the oldest match of at most 3 tokens, and accepts single ones.
    """

    name = "lookup"
    looks_up = True

    def __init__(self, context: PolicyContext) -> None:
        super().__init__(Plan(context.spec.whole, gamma=0))
        self._most = context.config.prompt_lookup.gamma

    def plan_copy(
        self, lookup: Lookup, most: int, plan: Plan, contexts: Sequence[int], costs: CostModel
    ) -> Plan | None:
        copied = min(most, self._most, len(lookup.match.tokens)) if lookup.match else 0
        return replace(plan, gamma=copied) if copied > 0 else None
