"""What a draft policy is. A policy decides what a request drafts with; it never touches cache, sampler or loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from engine.clock import Clock
from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.model.spec import ModelSpec
from engine.types import SamplingParams

if TYPE_CHECKING:
    from torch import Tensor

    from engine.draft.costs import CostModel
    from engine.draft.prior import Prior


@dataclass(frozen=True, slots=True)
class Plan:
    """What one request drafts with for a while: a sub-network, a length and a stop rule.

    `variants[i]` of sublayer i: 0 = skip, 1 = run (room for more). A draft ends after `gamma` tokens, or with a token
    whose top-1 probability is below `min_confidence` (that token is still verified: its row costs next to nothing).
    Requests that draft together share each pass; the drafting of all ends once the tokens that a further pass may
    bring, by the confidences, are fewer than the `pass_worth` tokens that its time is worth (0: no such rule).
    """

    variants: tuple[int, ...]
    gamma: int
    min_confidence: float = 0.0
    pass_worth: float = 0.0
    predicted_tpt: float | None = None  # tokens per second
    predicted_acceptance: float | None = None
    plain_tpt: float | None = None  # what decoding plainly would bring instead

    @property
    def skipped_attention(self) -> int:
        return self.variants[0::2].count(0)

    @property
    def skipped_mlp(self) -> int:
        return self.variants[1::2].count(0)

    def capped(self, gamma: int) -> Plan:
        """The same with at most `gamma` tokens."""
        return self if gamma >= self.gamma else replace(self, gamma=max(gamma, 0))


@dataclass(frozen=True, slots=True)
class References:
    """What the full model computed at verified rows of one request: the search's yardstick."""

    states: Tensor  # X^(0) … X^(2L): [2L+1, rows, hidden], residual stream
    positions: tuple[int, ...]  # of the rows


@dataclass(frozen=True, slots=True)
class Outcome:
    """One round of one request, as its policy sees it."""

    plan: Plan
    drafted: int
    accepted: int
    confidences: tuple[float, ...]  # top-1 probability of each drafted token
    emitted: int  # tokens that counted: fewer than accepted + 1 where the request ended
    seconds: float  # this request's share of the round
    requests: int  # that shared the round
    round_seconds: float | None  # the whole round; None if it read prompts or if only some of its requests drafted
    references: References | None = None  # if the policy asked to record

    @property
    def tested(self) -> int:
        """Accepted plus the first rejection: the denominator of α."""
        return self.accepted + (self.accepted < self.drafted)


class CandidatePass(Protocol):
    """Sublayers of the model over candidate states of one request's verified rows."""

    def sublayer(self, index: int, states: Tensor) -> Tensor:
        """[candidates, rows, hidden] -> the same after sublayer `index`."""
        ...

    def draws(self, states: Tensor) -> tuple[list[list[int]], list[list[float]]]:
        """Final states [candidates, rows, hidden] -> tokens this request would draw there, and top-1 probabilities."""
        ...


@dataclass(slots=True)
class View:
    """One request at the beginning of a round, with what a policy may call."""

    request_id: str
    context: int  # verified positions
    sampling: SamplingParams
    state: Any  # the policy's own, kept on the request; None at first
    others: Sequence[tuple[int, Plan]]  # (context, plan) of the other requests that decode now
    candidates: Callable[[Sequence[int]], CandidatePass]  # over rows at these positions
    reselected: str | None = None  # set by the policy: outcome of a re-decision made now
    search_seconds: float = 0.0  # added to by the policy


class DraftPolicy(Protocol):
    """`propose` is called once a round for each request that decodes, `observe` after it."""

    name: str

    def propose(self, view: View) -> Plan: ...

    def record(self, state: Any, rows_ahead: int) -> int:
        """How many of the rows verified next to keep as references; `rows_ahead` is how many there are at least."""
        ...

    def observe(self, view: View, outcome: Outcome) -> None: ...

    def suspend(self, state: Any) -> None:
        """The request lost its cache (preemption): forget what refers to it."""
        ...


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """What policies are made from."""

    spec: ModelSpec
    config: EngineConfig
    costs: CostModel
    clock: Clock
    prior: Prior | None = None


class FixedPlan:
    """Base of the policies whose plan never changes."""

    name = ""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def propose(self, view: View) -> Plan:
        return self._plan

    def record(self, state: Any, rows_ahead: int) -> int:
        return 0

    def observe(self, view: View, outcome: Outcome) -> None:
        pass

    def suspend(self, state: Any) -> None:
        pass


_REGISTRY: dict[str, Callable[[PolicyContext], DraftPolicy]] = {}


def register(
    name: str,
) -> Callable[[Callable[[PolicyContext], DraftPolicy]], Callable[[PolicyContext], DraftPolicy]]:
    """Class or function decorator: make a policy known by name."""

    def add(factory: Callable[[PolicyContext], DraftPolicy]) -> Callable[[PolicyContext], DraftPolicy]:
        _REGISTRY[name] = factory
        return factory

    return add


def policy_names() -> tuple[str, ...]:
    """Names of all policies that exist."""
    import engine.draft.policies  # noqa: F401 - registers them

    return tuple(sorted(_REGISTRY))


def make_policy(name: str, context: PolicyContext) -> DraftPolicy:
    """A policy by name. Raises ConfigError for a name that does not exist."""
    if name not in policy_names():
        raise ConfigError(f"unknown draft policy '{name}'; known: {', '.join(policy_names())}")
    return _REGISTRY[name](context)
