"""The draft policies by name. Some are available only if the context has what they need."""

from collections.abc import Callable
from typing import Any

from engine.config.policies import TUNED_POLICIES
from engine.draft.base import DraftPolicy, PolicyContext
from engine.draft.baselines.asd import AdaptiveDrop
from engine.draft.baselines.clasp import InContextSkip
from engine.draft.baselines.dynamic_exit import DynamicExit
from engine.draft.baselines.fixed import NoDraft, UniformSkip
from engine.draft.baselines.jacobi import Jacobi
from engine.draft.baselines.knapsack import PublishedKnapSpec
from engine.draft.baselines.knn_ssd import KnnSSD
from engine.draft.baselines.layerskip import EarlyExit
from engine.draft.baselines.lookahead import Lookahead
from engine.draft.baselines.prompt_lookup import PromptLookup
from engine.draft.baselines.self_sd import SelfSD
from engine.draft.baselines.swift import Swift
from engine.draft.knapspec import KnapSpec

POLICIES: dict[str, Callable[[PolicyContext], DraftPolicy[Any]]] = {
    kind.name: kind
    for kind in (
        KnapSpec,
        PublishedKnapSpec,
        UniformSkip,
        EarlyExit,
        Swift,
        DynamicExit,
        InContextSkip,
        AdaptiveDrop,
        KnnSSD,
        SelfSD,
        PromptLookup,
        Lookahead,
        Jacobi,
        NoDraft,
    )
}


def available(context: PolicyContext) -> tuple[str, ...]:
    """Return the names of the policies that can be made from a context."""
    return tuple(name for name in POLICIES if name not in TUNED_POLICIES or name in context.tuned)
