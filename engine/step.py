"""The seam between scheduler and runner: one round for all running requests, as plain values without a model.

Most are made every round and therefore not frozen, which would take three times as long. Nobody changes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.kv.pages import Placement
from engine.plans import Variants
from engine.types import SamplingParams, TokenLogprobs

if TYPE_CHECKING:
    from torch import Tensor

    from engine.sampling.logits import LogitsProcessor


# (confidence, width) by ascending confidence: a drafted token of at most this confidence is one of `width` tokens that
# are verified at its position. Above the last confidence it is the only one.
Siblings = tuple[tuple[float, int], ...]


def tree_width(siblings: Siblings, confidence: float) -> int:
    """Return how many tokens are verified at the position of a token drafted with this confidence."""
    return next((width for limit, width in siblings if confidence <= limit), 1)


def depths(parents: Sequence[int]) -> list[int]:
    """Return the length of the path to each token of a tree, both ends included; `parents` as in `Plan`."""
    found: list[int] = []
    for parent in parents:
        found.append(1 if parent < 0 else found[parent] + 1)
    return found


@dataclass(frozen=True, slots=True)
class Plan:
    """How a request drafts for a while: a cheaper version of the model, a length and a stop rule.

    `variants` names the variant of each sublayer, and then of the head. A draft ends after `gamma` tokens, or with a
    token whose top-1 probability is below `min_confidence` (that token is still verified: its row costs little).
    Requests that draft together share each pass.

    With `siblings`, a draft becomes a tree: beside each token, the draft's next best tokens are verified too, and any
    of them may be accepted.

    With `tokens`, the plan is the draft itself, of `gamma` tokens, and no pass makes it: a chain, or with `parents` a
    tree. A policy that sets `draws` learns what the target draws after each of them (`Outcome.draws`).
    """

    variants: Variants
    gamma: int
    min_confidence: float = 0.0
    predicted_tpt: float | None = None  # tokens per second
    predicted_acceptance: float | None = None
    plain_tpt: float | None = None  # predicted tokens per second of plain decoding
    expected: float = 1.0  # tokens of a round, predicted
    siblings: Siblings = ()
    tokens: tuple[int, ...] = ()
    # Of each token, the number of the one it follows, which comes earlier; -1: the last known token. (): a chain.
    # Tokens with the same parent differ.
    parents: tuple[int, ...] = ()
    draws: bool = False

    @property
    def pays(self) -> bool:
        """Whether the plan is predicted to be no slower than plain decoding."""
        return (self.predicted_tpt or 0.0) >= (self.plain_tpt or 0.0)

    @property
    def most_rows(self) -> int:
        """The most rows that the draft adds to the verify pass. All its tokens but the last are confident."""
        widest = max((width for _, width in self.siblings), default=1)
        return (self.gamma - 1) * tree_width(self.siblings, self.min_confidence) + widest if self.gamma else 0

    def capped(self, gamma: int) -> Plan:
        """Return the plan with at most `gamma` tokens: the first ones, if they are given."""
        if gamma >= self.gamma:
            return self
        gamma = max(gamma, 0)
        return replace(self, gamma=gamma, tokens=self.tokens[:gamma], parents=self.parents[:gamma])

    def within(self, room: int) -> Plan:
        """Return the plan up to the first token beyond `room` positions after the last known token."""
        if not self.parents:
            return self.capped(room)
        deep = (number for number, depth in enumerate(depths(self.parents)) if depth > room)
        return self.capped(next(deep, self.gamma))


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
    def given(self) -> bool:
        """Whether the plan is the draft itself, which no pass makes."""
        return self.plan is not None and bool(self.plan.tokens)

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
    drafted: int = 0  # without siblings: the longest path of a tree
    siblings: int = 0  # verified besides
    confidences: tuple[float, ...] = ()
    references: References | None = None
    draws: tuple[int, ...] = ()  # `Outcome.draws`
    logprobs: tuple[TokenLogprobs, ...] = ()  # the tokens' log-probabilities, if the request wants them
    prompt_logprobs: tuple[TokenLogprobs, ...] = ()  # the log-probabilities of `Work.scored`

    @property
    def accepted(self) -> int:
        return len(self.tokens) - 1 if self.tokens else 0

    @property
    def draft_rows(self) -> int:
        """The rows that the draft added to the verify pass."""
        return self.drafted + self.siblings


@dataclass(slots=True)
class StepOutput:
    """The outputs, in the order of the work, and the seconds of the passes."""

    outputs: tuple[WorkOutput, ...]
    draft_passes: int
    draft_seconds: float
    verify_seconds: float
