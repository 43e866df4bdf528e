"""What a draft policy is. A policy decides what a request drafts with; it never touches cache, sampler or loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from engine.architecture.spec import ModelSpec, Variants
from engine.clock import Clock
from engine.config import EngineConfig
from engine.step import Plan, References
from engine.types import SamplingParams

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from engine.draft.costs import CostModel
    from engine.draft.knapsack import Knapsack


@dataclass(slots=True)
class Outcome:
    """What became of one request's plan in a round."""

    plan: Plan
    drafted: int
    accepted: int
    confidences: tuple[float, ...]  # top-1 probability of each drafted token
    emitted: int  # tokens that counted: fewer than accepted + 1 where the request ended
    references: References | None = None  # if the policy asked to record


@dataclass(slots=True)
class RoundOutcome:
    """One round as the policy of some or all of its requests sees it."""

    outcomes: Sequence[Outcome]  # of this policy's requests, in the order of the views
    requests: int  # of all policies
    seconds: float  # of its passes


class CandidatePass(Protocol):
    """Sublayers of the model over candidate states of one request's verified rows."""

    def reach(
        self, index: int, variants: Sequence[int], states: Tensor, direction: Tensor
    ) -> tuple[Tensor, list[list[float]]]:
        """`draft.knapsack.Reach`, for states [candidates, rows, hidden]."""

    def fill(self, table: Knapsack, most: int) -> bool:
        """Fill up to so many rows of a knapsack over its rows, at once. False where the backend cannot: then `reach`
        is for one row of it."""

    def draws(self, states: Tensor, plans: Sequence[Variants]) -> tuple[list[list[int]], list[list[float]]]:
        """Final states [plans, rows, hidden] of the rows that follow those of the last call -> tokens this request
        would draw there, as drafts of these plans do and the whole model, and top-1 probabilities."""


@dataclass(slots=True, eq=False)
class View:
    """One request for as long as it lives, with what its policy keeps and may call."""

    request_id: str
    sampling: SamplingParams
    candidates: Callable[[Sequence[int]], CandidatePass]  # over verified rows at these positions
    context: int = 0  # verified positions
    beside: int = 0  # requests that run or wait beside it, whatever they do
    state: Any = None  # the policy's own
    reselected: str | None = None  # set by the policy: outcome of a re-decision made in this round


class Company:
    """The requests of a round: those that ask, those of other policies, and those that will decode beside them once
    their prompts are read.

    The latter count as if they did so already. What a draft adds to a round keeps their prompts waiting, so a drafted
    token must not cost more time than one that is decoded when all are there: on two cores without bf16 products,
    drafting for the few that decoded while others' prompts were read brought 0.84 of plain decoding at 16 streams.
    """

    __slots__ = ("coming", "contexts", "running", "size", "views")

    def __init__(self, views: Sequence[View], others: Sequence[tuple[int, Plan]], most: int) -> None:
        """`most`: requests that run at once."""
        self.views = views
        self.contexts = [view.context for view in views] + [context for context, _ in others]
        here = len(self.contexts)
        self.coming = max(min(views[0].beside + 1, most) - here, 0)
        self.contexts += [sum(self.contexts) // here] * self.coming
        self.running = [plan.variants for _, plan in others if plan.gamma]
        self.size = len(self.contexts)


class DraftPolicy(Protocol):
    """Asked once a round, for all of its requests together: what drafts in one pass is decided in one place."""

    name: str
    looks_up: bool  # whether its requests may draft what followed in their text before, where that promises more

    def propose(self, views: Sequence[View], others: Sequence[tuple[int, Plan]]) -> Sequence[Plan]:
        """A plan for each of its requests that decode now; `others`: (context, plan) of those with other policies."""

    def stands(self) -> bool:
        """Whether what it proposed last is to be done for another round; `propose` is not called then. Asked where the
        same requests decode as in the round before, and no others."""

    def record(self, view: View, rows_ahead: int) -> int:
        """How many of the rows verified next to keep as references; `rows_ahead` is how many there are at least."""

    def observe(self, views: Sequence[View], round: RoundOutcome) -> None:
        """What became of a round; prompts that were read in it are among its requests."""

    def suspend(self, view: View) -> None:
        """The request lost its cache (preemption): forget what refers to it."""

    def recalibrate(self) -> None:
        """Prices were reset to what the profile says: decide anew by them."""


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """What policies are made from."""

    spec: ModelSpec
    config: EngineConfig
    costs: CostModel
    clock: Clock
    tested: Mapping[Variants, np.ndarray] = field(default_factory=dict)  # tokens of earlier plans, as in `tpt.count`
