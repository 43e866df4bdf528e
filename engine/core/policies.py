"""The draft policies by name."""

from collections.abc import Callable
from typing import Any

from engine.draft.base import DraftPolicy, PolicyContext
from engine.draft.baselines.clasp import InContextSkip
from engine.draft.baselines.dynamic_exit import DynamicExit
from engine.draft.baselines.layerskip import EarlyExit
from engine.draft.baselines.prompt_lookup import PromptLookup
from engine.draft.baselines.swift import Swift
from engine.draft.fixed import NoDraft, UniformSkip
from engine.draft.knapspec import KnapSpec

POLICIES: dict[str, Callable[[PolicyContext], DraftPolicy[Any]]] = {
    kind.name: kind
    for kind in (UniformSkip, KnapSpec, EarlyExit, Swift, DynamicExit, InContextSkip, PromptLookup, NoDraft)
}
