"""The seam between scheduler and runner: one round for all running requests, as plain values without a model.

Most are made every round and therefore not frozen, which would take three times as long. Who makes one may fill it
in, before it is passed on; nobody changes it later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from engine.kv.pages import Placement
from engine.plans import Variants
from engine.types import SamplingParams, TokenLogprobs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from engine.sampling.logits import LogitsProcessor


@dataclass(frozen=True, slots=True)
class Plan:
    """How a request drafts for a while: a cheaper version of the model, a length and a stop rule.

    `variants` names the variant of each sublayer, and then of the head. A draft ends after `gamma` tokens, or with a
    token whose top-1 probability is below `min_confidence` (that token is still verified: its row costs little).
    Requests that draft together share each pass.

    With `tokens`, the plan is the draft itself, of `gamma` tokens, and no pass makes it; `source` says where they come
    from. A policy that sets `draws` learns what the target draws after each of them (`Outcome.draws`).
    """

    variants: Variants
    gamma: int
    min_confidence: float = 0.0
    predicted_tpt: float | None = None  # tokens per second
    predicted_acceptance: float | None = None
    plain_tpt: float | None = None  # predicted tokens per second of plain decoding
    expected: float = 1.0  # tokens of a round, predicted
    tokens: tuple[int, ...] = ()
    source: str = "model"  # or the source of a match (`engine.draft.lookup.Match`)
    draws: bool = False

    @property
    def pays(self) -> bool:
        """Whether the plan is predicted to be no slower than plain decoding."""
        return (self.predicted_tpt or 0.0) >= (self.plain_tpt or 0.0)

    def capped(self, gamma: int) -> Plan:
        """Return the plan with at most `gamma` tokens: the first ones, if they are given."""
        if gamma >= self.gamma:
            return self
        gamma = max(gamma, 0)
        return replace(self, gamma=gamma, tokens=self.tokens[:gamma])


@dataclass(frozen=True, slots=True)
class References:
    """The full model's residual streams at verified rows of one request: the reference of a search."""

    states: Tensor  # X^(0) … X^(2L): [2L+1, rows, hidden], residual stream
    positions: tuple[int, ...]  # the position of each row


@dataclass(slots=True)
class Work:
    """One request's share of a round: K/V for the positions start, start+1, …, and perhaps a draft."""

    request_id: str
    slab: int
    start: int
    tokens: tuple[int, ...]  # without verified K/V; the last may be followed by a draft
    draws_token: bool  # whether all pending tokens are in this round, so that the target draws
    sampling: SamplingParams
    plan: Plan | None = None  # the draft's plan, with gamma > 0
    rows_to_record: int = 0  # verified rows to keep as references, at most
    processor: LogitsProcessor | None = None  # edits the request's logits; knows all tokens before them
    scored: tuple[int, ...] = ()  # prompt tokens after the first rows, whose log-probabilities the request wants
    reads_prompt: bool = False  # whether the tokens are a part of the prompt
    next_row_reserved: bool = False  # whether the next round may start before this one is read

    @property
    def gamma(self) -> int:
        return self.plan.gamma if self.plan else 0

    @property
    def drafting(self) -> Plan | None:
        """The plan, if passes of the model make its draft."""
        return None if self.plan is None or self.plan.tokens else self.plan

    @property
    def plain(self) -> bool:
        """Whether the work is one row and the draw after it, without edits, log-probabilities or recorded rows."""
        extras = self.processor is not None or self.sampling.logprobs is not None or self.rows_to_record or self.scored
        return not extras and self.gamma == 0 and self.draws_token and len(self.tokens) == 1


@dataclass(slots=True)
class StepPlan:
    """A round: new pages of the cache, draft passes, one verify pass. `work` is ordered by slab."""

    work: tuple[Work, ...]
    placements: tuple[Placement, ...] = ()  # new pages of the cache


@dataclass(slots=True)
class WorkOutput:
    """Accepted draft tokens and one token of the target; no tokens for a chunk that does not sample.

    The one token -1: the model's logits are no numbers.
    """

    tokens: tuple[int, ...]
    drafted: int = 0
    confidences: tuple[float, ...] = ()
    references: References | None = None
    draws: tuple[int, ...] = ()  # `Outcome.draws`
    logprobs: tuple[TokenLogprobs, ...] = ()  # the tokens' log-probabilities, if the request wants them
    prompt_logprobs: tuple[TokenLogprobs, ...] = ()  # the log-probabilities of `Work.scored`

    @property
    def accepted(self) -> int:
        return len(self.tokens) - 1 if self.tokens else 0


@dataclass(slots=True)
class StepOutput:
    """The outputs, in the order of the work, and the seconds of the passes."""

    outputs: tuple[WorkOutput, ...]
    draft_seconds: float
    verify_seconds: float
    following: StartedPass | None = None  # the pass of the next round, if it has started


class StartedPass(Protocol):
    """A pass that the device computes while the host does something else."""

    def computes(self, work: Sequence[Work]) -> bool:
        """Whether this pass computes all of this work."""

    def wait(self) -> None:
        """Wait until the device has computed the pass."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """How a round overlaps with its neighbours, on a device that computes while the host does something else."""

    on_wait: Callable[[], None]  # called while the device computes, perhaps several times
    started: StartedPass | None = None  # this round's pass, if it has started before the last round was read
    start_next: bool = False  # the pass of a following plain round may start before this round is read
