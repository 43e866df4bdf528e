"""The draft policies by name."""

from collections.abc import Callable
from typing import Any

from engine.draft.base import DraftPolicy, PolicyContext
from engine.draft.baselines.swift import Swift
from engine.draft.fixed import EarlyExit, NoDraft, UniformSkip
from engine.draft.knapspec import KnapSpec

POLICIES: dict[str, Callable[[PolicyContext], DraftPolicy[Any]]] = {
    kind.name: kind for kind in (UniformSkip, KnapSpec, EarlyExit, Swift, NoDraft)
}
