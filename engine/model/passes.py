"""What draft and verify passes take and return (`engine.model.decoder`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from engine.plans import Variants
from engine.sampling.sample import Edit

if TYPE_CHECKING:
    from engine.types import SamplingParams

OnWait = Callable[[], None]  # host work to do while the device computes; may be called several times


@dataclass(slots=True)  # not frozen: one is made per request and round, and a frozen one takes three times as long
class DraftRequest:
    """One request's draft: its sub-network, length and stop rule (`engine.step.Plan`)."""

    slab: int
    start: int  # position of `token`
    token: int  # the last known token, which has no K/V yet
    variants: Variants
    gamma: int
    min_confidence: float
    sampling: SamplingParams
    edit: Callable[[Tensor, Sequence[int]], None] | None = None  # edits logits [vocab] in place, given drafted tokens
    # A backend may edit only after a token of less confidence than `logits.MASK_BELOW_CONFIDENCE`, and then draw again.
    # A token of more confidence may break the grammar; verification then rejects it. Greedy requests only.
    mask_after_draw: bool = False


class Drafted(NamedTuple):
    """Drafted tokens and their confidences, [requests][tokens], and the number of draft passes."""

    tokens: list[list[int]]
    confidences: list[list[float]]
    passes: int


class Draws(NamedTuple):
    """Rows of a pass after which a token is drawn, ascending, and how to draw it."""

    rows: list[int]
    sampling: list[SamplingParams]
    edits: Sequence[Edit | None] = ()  # edits of logits [vocab] in place; empty, or one per draw


class Verified(NamedTuple):
    """The target's tokens [draws], and the states and logits that the caller asked for."""

    tokens: list[int]
    states: list[Tensor] | None  # residual streams X^(0) … X^(2L), each [rows, hidden]
    redraw: Callable[[int, Edit], int]  # (draw, edit) -> new token; valid until the next pass
    hidden: Tensor | None = None  # [rows, hidden], after the last sublayer
    logits: Tensor | None = None  # [draws, vocab], before any edit
