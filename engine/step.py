"""Seam 2: one round for all running requests, from scheduler to runner and back. Plain values, no model.

They are made every round and not frozen, which would take three times as long; nobody changes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.architecture.spec import Variants
from engine.kv.blocks import Placement
from engine.types import SamplingParams, TokenLogprobs

if TYPE_CHECKING:
    from torch import Tensor

    from engine.sampling.logits import LogitsProcessor


@dataclass(frozen=True, slots=True)
class Plan:
    """What one request drafts with for a while: a cheaper version of the model, a length and a stop rule.

    `variants` has what runs of each sublayer, then of the head. A draft ends after `gamma` tokens, or with a token
    whose top-1 probability is below `min_confidence` (that token is still verified: its row costs next to nothing).
    Requests that draft together share each pass; the drafting of all ends once the tokens that a further pass may
    bring, by the confidences, are fewer than the `pass_worth` tokens that its time is worth (0: no such rule).
    """

    variants: Variants
    gamma: int
    min_confidence: float = 0.0
    pass_worth: float = 0.0
    predicted_tpt: float | None = None  # tokens per second
    predicted_acceptance: float | None = None
    plain_tpt: float | None = None  # what decoding plainly would bring instead
    expected: float = 1.0  # tokens of a round

    @property
    def pays(self) -> bool:
        """Whether it promises no less than plain decoding."""
        return (self.predicted_tpt or 0.0) >= (self.plain_tpt or 0.0)

    def capped(self, gamma: int) -> Plan:
        """The same with at most `gamma` tokens."""
        return self if gamma >= self.gamma else replace(self, gamma=max(gamma, 0))


@dataclass(frozen=True, slots=True)
class References:
    """What the full model computed at verified rows of one request: the search's yardstick."""

    states: Tensor  # X^(0) … X^(2L): [2L+1, rows, hidden], residual stream
    positions: tuple[int, ...]  # of the rows


@dataclass(slots=True)
class Work:
    """One request's share of a round: positions start, start+1, … get verified K/V."""

    request_id: str
    slab: int
    start: int
    tokens: tuple[int, ...]  # without verified K/V; the last may be followed by a draft
    samples: bool  # whether the request catches up here, so that the target draws
    sampling: SamplingParams
    plan: Plan | None = None  # with gamma > 0: draft before verification
    record: int = 0  # verified rows to keep as references, at most
    copied: tuple[int, ...] = ()  # the draft itself, where it is not the sub-network's
    processor: LogitsProcessor | None = None  # of the request's logits; knows the tokens before these
    scored: tuple[int, ...] = ()  # what follows the first rows, where its log-probabilities are asked for
    more: bool = False  # whether the position after these has room already, and the request may go on there

    @property
    def gamma(self) -> int:
        return self.plan.gamma if self.plan else 0

    @property
    def plain(self) -> bool:
        """One row and the draw behind it, and nothing else is asked for."""
        return self.gamma == 0 and self._bare

    @property
    def _bare(self) -> bool:
        bare = self.processor is None and self.sampling.logprobs is None and not self.record and not self.scored
        return bare and self.samples and len(self.tokens) == 1


@dataclass(frozen=True, slots=True)
class Copy:
    """Bring the first `tokens` positions of one slab to another before anything runs."""

    source: int
    target: int
    tokens: int


@dataclass(slots=True)
class StepPlan:
    """A round: placements, copies, discards, lock-step draft passes, one verify pass. `work` is ordered by slab."""

    work: tuple[Work, ...]
    copies: tuple[Copy, ...] = ()
    discards: tuple[tuple[int, int, int], ...] = ()  # (slab, first, last + 1): positions whose memory is free
    placements: tuple[Placement, ...] = ()  # of a paged cache


@dataclass(slots=True)
class WorkOutput:
    """What the target said: `tokens` = accepted drafts and one of its own; empty for a chunk that does not sample."""

    tokens: tuple[int, ...]
    drafted: int = 0
    confidences: tuple[float, ...] = ()
    references: References | None = None
    logprobs: tuple[TokenLogprobs, ...] = ()  # of the tokens, where asked for
    prompt_logprobs: tuple[TokenLogprobs, ...] = ()  # of what was to be scored

    @property
    def accepted(self) -> int:
        return len(self.tokens) - 1 if self.tokens else 0


@dataclass(slots=True)
class StepOutput:
    """Outputs in the order of the work; seconds by the runner's clock."""

    outputs: tuple[WorkOutput, ...]
    draft_passes: int
    draft_seconds: float
    verify_seconds: float
