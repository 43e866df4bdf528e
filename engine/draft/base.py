"""The interface of draft policies.

A policy decides what a request drafts with; it never touches cache, sampler or loop.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from engine.architecture.spec import ModelSpec
from engine.clock import Clock
from engine.config.engine import EngineConfig
from engine.plans import Variants
from engine.step import Plan, References

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from engine.draft.costs import CostModel

State = TypeVar("State")  # what a policy keeps of each request


@dataclass(slots=True)
class Outcome:
    """What became of one request's plan in a round."""

    variants: Variants | None  # what drafted; None if the model drafted nothing
    drafted: int
    accepted: int
    confidences: tuple[float, ...]  # top-1 probability of each drafted token
    emitted: int  # tokens of the answer: fewer than accepted + 1 where the request ended
    references: References | None = None  # recorded rows, if the policy wanted any
    # What the target drew after the last known token and after each of `Plan.tokens` that was verified, if the plan
    # asked for it. Off the accepted path a draw may break the grammar, and is 0 where nothing can follow.
    draws: tuple[int, ...] = ()


@dataclass(slots=True)
class RoundOutcome:
    """One round, as the policy of some or all of its requests sees it."""

    outcomes: Sequence[Outcome]  # one for each of this policy's requests, in the order of the views
    requests: int  # the number of requests of all policies
    seconds: float  # the time of the round's passes


class CandidatePass(Protocol):
    """Passes of the model over candidate states of one request's verified rows.

    A row sees the target's K/V before its position, and its own state at its position. The cache does not change.
    """

    def embed(self, tokens: Sequence[int]) -> Tensor:
        """Return X^(0) of the rows, given the token at each: [rows, hidden]."""

    def run(self, states: Tensor, plans: Sequence[Variants]) -> Tensor:
        """Run states [plans, rows, hidden] through the sublayers of these plans: -> the same shape."""

    def sublayer(self, index: int, states: Tensor, variant: int) -> Tensor:
        """Run states [plans, rows, hidden] through a variant of one sublayer: -> the same shape."""

    def draws(self, states: Tensor, plans: Sequence[Variants]) -> tuple[list[list[int]], list[list[float]]]:
        """Draw as drafts of these plans, and as the whole model, would draw; with top-1 probabilities.

        `states` [plans, rows, hidden]: final states of the rows after those of the last call. Returns tokens and
        probabilities, both [plans][rows].
        """


@dataclass(slots=True, eq=False)
class RequestView(Generic[State]):
    """One request as its policy sees it, for as long as the request lives."""

    request_id: str
    candidates: Callable[[Sequence[int]], CandidatePass]  # over verified rows at these positions
    state: State  # the policy's own
    tokens: Sequence[int] = ()  # prompt and answer so far; it grows
    prompt_tokens: int = 0  # how many of `tokens` are the prompt's
    context: int = 0  # verified positions
    other_requests: int = 0  # running or waiting, of all policies
    # Set by the policy: the outcome of a decision made in this round, and the rounds between two searches from here on.
    reselected: str | None = None
    search_interval: float | None = None


class BatchView(Generic[State]):
    """The decoding requests of a round: the policy's own, those of other policies, and those still reading prompts.

    The last kind counts as if it decoded already. What a draft adds to a round keeps their prompts waiting, so a
    drafted token must not take more time than one that is decoded when all are there. On two cores without bf16
    products, drafting for the few that decoded while others' prompts were read had 0.84 of the speed of plain decoding
    at 16 streams.
    """

    __slots__ = ("contexts", "drafting_plans", "size", "views")

    def __init__(
        self, views: Sequence[RequestView[State]], others: Sequence[tuple[int, Plan]], max_num_seqs: int
    ) -> None:
        """`others`: context and plan of each decoding request of another policy."""
        self.views = views
        self.contexts = [view.context for view in views] + [context for context, _ in others]
        decoding = len(self.contexts)
        prefilling = max(min(views[0].other_requests + 1, max_num_seqs) - decoding, 0)
        self.contexts += [sum(self.contexts) // decoding] * prefilling
        self.drafting_plans = [plan.variants for _, plan in others if plan.gamma]  # the other policies' plans
        self.size = len(self.contexts)


class DraftPolicy(ABC, Generic[State]):
    """Proposes plans once a round, for all of its requests together: requests that draft share each pass.

    A policy plans for each request, or overrides `propose`. It may `observe` rounds to learn from them, with a state of
    its own for each request, and record verified rows for a search. It is made from a `PolicyContext`, and raises
    PolicyUnavailableError then if it lacks something.
    """

    name: ClassVar[str]
    state_type: type[State]  # unless `new_state` is overridden
    looks_up = False  # whether its requests may draft by copying from their own text (`engine.draft.lookup`)
    always_copies: int | None = None  # most tokens copied at every match; None: copies where that is predicted to pay

    def propose(self, batch: BatchView[State]) -> Sequence[Plan]:
        """Return a plan for each of `batch.views`."""
        return [self.plan(view) for view in batch.views]

    def plan(self, view: RequestView[State]) -> Plan:
        """Return the plan of one request, if those of others do not matter."""
        raise NotImplementedError

    def can_reuse_plans(self) -> bool:
        """Whether the last plans may serve one more round of the same requests; `propose` is not called then."""
        return False

    def new_state(self) -> State:
        """Return the state of a new request."""
        return self.state_type()

    def observe(self, views: Sequence[RequestView[State]], round: RoundOutcome) -> None:
        """Learn from a round; requests whose prompts were read in it are among `views`."""
        for view, outcome in zip(views, round.outcomes, strict=True):
            self.learn(view, outcome)

    def learn(self, view: RequestView[State], outcome: Outcome) -> None:
        """Learn from one request's part of a round, if those of others do not matter."""

    def rows_to_record(self, view: RequestView[State]) -> int:
        """How many of the rows verified next to keep as references, at most."""
        return 0

    def suspend(self, view: RequestView[State]) -> None:
        """Forget references to the cache of a preempted request."""


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """What policies are made from."""

    spec: ModelSpec
    config: EngineConfig
    costs: CostModel
    clock: Clock
    plans: Mapping[Variants, np.ndarray] = field(default_factory=dict)  # to begin with, and their acceptance counts
    fingerprint: str = ""  # identifies the checkpoint
    tuned_path: Callable[[str], Path] = Path  # the file in which `knapserve tune` stores what a policy needs
