"""Define draft and verify passes, and run them on any decoder, pass by pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from torch import Tensor

from engine.architecture.spec import TARGET, ModelSpec, Variants
from engine.model.attention import AttentionOf, Segment
from engine.sampling.sample import Edit, Sampler, draft_noise
from engine.tensors import to_device

if TYPE_CHECKING:
    from engine.types import SamplingParams

Batch = TypeVar("Batch")  # a backend's batch of rows, which only its own passes look into
BatchIn = TypeVar("BatchIn", contravariant=True)
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
    pass_worth: float
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


class SublayerModel(Protocol[BatchIn]):
    """A model that runs part by part: `engine.model.decoder.Decoder`. `x` is the residual stream, [rows, hidden]."""

    spec: ModelSpec
    sampler: Sampler

    def embed(self, tokens: Sequence[int]) -> Tensor: ...

    def embed_ids(self, tokens: Tensor) -> Tensor: ...

    def run(self, x: Tensor, batch: BatchIn, record: list[Tensor] | None = None) -> Tensor: ...

    def run_plan(self, x: Tensor, batch: BatchIn, variants: Variants) -> Tensor: ...

    def run_plans(self, x: Tensor, batch: BatchIn, plans: Sequence[Variants]) -> Tensor: ...

    def head(self, x: Tensor, variant: int = TARGET) -> Tensor: ...

    def heads(self, x: Tensor, plans: Sequence[Variants]) -> Tensor: ...


@dataclass(slots=True)
class _Draft:
    """The draft of one request as it grows."""

    request: DraftRequest
    tokens: list[int] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)
    reach: float = 1.0  # probability, by the confidences, that the next token would be accepted

    @property
    def alive(self) -> bool:
        """Whether neither the length limit nor the confidence limit has ended the draft."""
        unsure = bool(self.confidences) and self.confidences[-1] < self.request.min_confidence
        return len(self.tokens) < self.request.gamma and not unsure

    @property
    def edit(self) -> Edit | None:
        """The edit of the next token's logits."""
        edit = self.request.edit
        return None if edit is None else partial(_edit_row, edit, tuple(self.tokens))

    def append(self, token: int, confidence: float) -> None:
        self.tokens.append(token)
        self.confidences.append(confidence)
        self.reach *= confidence


def _edit_row(edit: Callable[[Tensor, Sequence[int]], None], drafted: tuple[int, ...], logits: Tensor) -> None:
    edit(logits, drafted)


# twin: engine/kernels/executor.h, run_draft
def draft_in_lock_step(
    decoder: SublayerModel[Batch],
    attention: AttentionOf[Batch],
    requests: Sequence[DraftRequest],
    *,
    pipelined: bool = False,
    on_wait: OnWait | None = None,
) -> Drafted:
    """Draft for all requests together, one token a pass, until each request's stop rule ends its draft.

    K/V is written only for the sublayers that run. With `pipelined`, the next pass starts before the current one's
    tokens are read; it is discarded if the stop rule ends the draft. The drafted tokens are the same.
    """
    drafts = [_Draft(request) for request in requests]
    pipelined = pipelined and not any(request.edit for request in requests)  # an edit needs the tokens before it
    passes = 0
    current: _DraftPass[Batch] | None = _DraftPass(decoder, attention, drafts)
    while current is not None:
        following = current.start_next() if pipelined else None
        if on_wait is not None:
            on_wait()
        alive = current.read()
        passes += 1
        worth = max((draft.request.pass_worth for draft in alive), default=0.0)
        if not alive or sum(draft.reach for draft in alive) < worth:
            break
        current = following or _DraftPass(decoder, attention, alive)
    return Drafted([draft.tokens for draft in drafts], [draft.confidences for draft in drafts], passes)


class _DraftPass(Generic[Batch]):
    """A pass in progress that drafts one more token for each of several drafts."""

    def __init__(
        self,
        decoder: SublayerModel[Batch],
        attention: AttentionOf[Batch],
        drafts: Sequence[_Draft],
        last: Tensor | None = None,
    ) -> None:
        """Start the pass. `last` [drafts]: last tokens on the device, if the host has not read them yet."""
        self._decoder, self._attention, self._drafts = decoder, attention, drafts
        unread = last is not None
        ends = [draft.request.start + len(draft.tokens) + unread for draft in drafts]
        batch = attention.prepare([Segment(d.request.slab, end, 1) for d, end in zip(drafts, ends, strict=True)])
        if last is None:
            x = decoder.embed([d.tokens[-1] if d.tokens else d.request.token for d in drafts])
        else:
            x = decoder.embed_ids(last)
        plans = [draft.request.variants for draft in drafts]
        x = decoder.run_plans(x, batch, plans)
        self._drawn = decoder.sampler.sample_async(
            *(decoder.heads(x, plans), [draft.request.sampling for draft in drafts], [end + 1 for end in ends]),
            confidence=True,
            edits=() if unread else [draft.edit for draft in drafts],
            noise=[draft_noise(plan) for plan in plans],
        )

    def start_next(self) -> _DraftPass[Batch] | None:
        """Start the next pass before this one is read, for all drafts that have room for two more tokens."""
        picked = [i for i, d in enumerate(self._drafts) if d.alive and len(d.tokens) + 1 < d.request.gamma]
        if not picked:
            return None
        last = self._drawn.tokens
        if len(picked) < len(self._drafts):
            last = last.index_select(0, to_device(picked, last.device))
        return _DraftPass(self._decoder, self._attention, [self._drafts[i] for i in picked], last)

    def read(self) -> list[_Draft]:
        """Wait for the tokens, append them to their drafts, and return the drafts that continue."""
        drawn = self._drawn.wait()
        for draft, token, confidence in zip(self._drafts, drawn.tokens, drawn.confidence, strict=True):
            if draft.alive:
                draft.append(token, confidence)
        return [draft for draft in self._drafts if draft.alive]


def verify_by_sublayers(
    decoder: SublayerModel[Batch],
    attention: AttentionOf[Batch],
    segments: Sequence[Segment],
    tokens: Sequence[int],
    draws: Draws,
    *,
    record: bool = False,
    variants: Variants | None = None,
    on_wait: OnWait | None = None,
) -> Verified:
    """Run all rows through the model, or through the sub-network `variants`, and draw the target's tokens.

    `record` keeps the residual streams of a pass of the whole model.
    """
    states: list[Tensor] | None = [] if record else None
    x, batch = decoder.embed(tokens), attention.prepare(segments)
    x = decoder.run(x, batch, states) if variants is None else decoder.run_plan(x, batch, variants)
    head = (variants or decoder.spec.whole)[-1]
    if draws.rows:
        picked = x if len(draws.rows) == len(x) else x.index_select(0, to_device(draws.rows, x.device))
        logits = decoder.head(picked, head)
    else:
        logits = x.new_empty(0, decoder.spec.vocab)
    after = [segment.start + i + 1 for segment in segments for i in range(segment.rows)]
    positions = [after[row] for row in draws.rows]  # of the drawn tokens

    def redraw(i: int, edit: Edit) -> int:
        at = slice(i, i + 1)
        return decoder.sampler.sample(logits[at], draws.sampling[at], positions[at], edits=[edit]).tokens[0]

    drawn = decoder.sampler.sample_async(logits, draws.sampling, positions, edits=draws.edits) if draws.rows else None
    if on_wait is not None:
        on_wait()
    return Verified(drawn.wait().tokens if drawn else [], states, redraw, x, logits)
