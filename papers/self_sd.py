"""Self-SD (Zhang et al. 2024, Draft & Verify): one layer set, searched offline, drafts for every request.

`knapserve tune --policy self-sd` searches for the set. The paper steers the confidence at which drafts stop; here it is
fixed, so that the search measures what then serves.
"""

from __future__ import annotations

from engine.draft.base import PolicyContext
from engine.draft.fixed import FixedPlan
from engine.step import Plan
from papers.layer_sets import find
from papers.settings import SelfSDConfig


class SelfSD(FixedPlan):
    """Draft with the layer set of the file that `--self-sd-sets` names."""

    name = SelfSDConfig.name

    def __init__(self, context: PolicyContext) -> None:
        config = context.config.of(SelfSDConfig)
        self.layer_sets = find(context, self.name, config.sets)
        (variants,) = self.layer_sets.sets.values()
        super().__init__(Plan(variants, config.gamma, config.confidence))
