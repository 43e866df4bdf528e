"""Draft and verify: in one call where the backend has one for it, otherwise pass by pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic

from torch import Tensor

from engine.model.attention import AttentionOf, Segment
from engine.model.decoder import Batch, DecoderOf, Draft, Draws, OneCallDecoder, Verified, VerifyPass
from engine.sampling.sample import Edit, draft_noise
from engine.step import Plan, Work
from engine.tensors import to_device

OnWait = Callable[[], None]  # host work to do while the device computes; may be called several times


# twin: engine/kernels/executor.h, run_draft
def draft(
    decoder: DecoderOf[Batch],
    attention: AttentionOf[Batch],
    work: Sequence[Work],
    *,
    pipelined: bool = False,
    on_wait: OnWait | None = None,
) -> list[Draft]:
    """Draft by passes for all of this work together, one token a pass, until each plan's stop rule ends its draft.

    K/V is written only for the sublayers that run. With `pipelined`, the next pass starts before the current one's
    tokens are read; it is discarded if the stop rule ends the draft. The drafted tokens are the same.
    """
    if isinstance(decoder, OneCallDecoder):
        return decoder.draft(attention, work)
    drafts = [_Growing(w, w.drafting) for w in work if w.drafting is not None]
    pipelined = pipelined and all(draft.edit is None for draft in drafts)  # an edit needs the tokens before it
    current: _DraftPass[Batch] | None = _DraftPass(decoder, attention, drafts)
    while current is not None:
        following = current.start_next() if pipelined else None
        if on_wait is not None:
            on_wait()
        alive = current.read()
        if not alive:
            break
        current = following or _DraftPass(decoder, attention, alive)
    return [Draft(each.tokens, each.confidences) for each in drafts]


def verify(
    decoder: DecoderOf[Batch], attention: AttentionOf[Batch], rows: VerifyPass, on_wait: OnWait | None = None
) -> Verified:
    """Run a verify pass and draw the target's tokens, in one call where that keeps what is wanted."""
    if isinstance(decoder, OneCallDecoder) and not rows.keep_logits:
        return decoder.verify(attention, rows)
    states: list[Tensor] | None = [] if rows.record else None
    after = [position + 1 for segment in rows.segments for position in segment.positions]
    positions = [after[row] for row in rows.draw_rows]  # the positions of the drawn tokens
    draws = Draws(rows.draw_rows, rows.sampling, positions, rows.edits)
    plans = (rows.variants or decoder.spec.whole,)
    step = decoder.step(rows.tokens, attention.prepare(rows.segments), plans, draws, states)

    def redraw(i: int, edit: Edit) -> int:
        at = slice(i, i + 1)
        sample = decoder.sampler.sample
        return sample(step.logits[at], rows.sampling[at], positions[at], edits=[edit]).wait().tokens[0]

    if on_wait is not None:
        on_wait()
    return Verified(step.drawn.wait().tokens, states, redraw, step.hidden, step.logits)


@dataclass(slots=True)
class _Growing:
    """The draft of one request as it grows."""

    work: Work
    plan: Plan
    tokens: list[int] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)
    forbidden: bool = False  # whether the grammar forbids the token that was drawn next

    @property
    def alive(self) -> bool:
        """Whether neither the limits of length and confidence nor the grammar has ended the draft."""
        unsure = bool(self.confidences) and not self.confidences[-1] >= self.plan.min_confidence  # perhaps no number
        return len(self.tokens) < self.plan.gamma and not unsure and not self.forbidden

    @property
    def edit(self) -> Edit | None:
        """The edit of the next token's logits before it is drawn."""
        processor = self.work.processor
        if processor is None or processor.mask_after_draw:
            return None
        return partial(processor.edit, drafted=tuple(self.tokens))

    def append(self, token: int, confidence: float) -> None:
        token, processor = max(token, 0), self.work.processor  # -1: not a number; verification notices
        if processor is not None and processor.mask_after_draw and not processor.allows(token, self.tokens):
            self.forbidden = True
            return
        self.tokens.append(token)
        self.confidences.append(confidence)


class _DraftPass(Generic[Batch]):
    """A pass in progress that drafts one more token for each of several drafts."""

    def __init__(
        self,
        decoder: DecoderOf[Batch],
        attention: AttentionOf[Batch],
        drafts: Sequence[_Growing],
        last: Tensor | None = None,
    ) -> None:
        """Start the pass. `last` [drafts]: last tokens on the device, if the host has not read them yet."""
        self._decoder, self._attention, self._drafts = decoder, attention, drafts
        ends = [draft.work.start + len(draft.tokens) + (last is not None) for draft in drafts]
        batch = attention.prepare([Segment(d.work.slab, end, 1) for d, end in zip(drafts, ends, strict=True)])
        plans = [draft.plan.variants for draft in drafts]
        draws = Draws(
            range(len(drafts)),
            [draft.work.sampling for draft in drafts],
            [end + 1 for end in ends],
            edits=[draft.edit for draft in drafts],
            noise=[draft_noise(plan) for plan in plans],
            confidence=True,
            least=[draft.plan.min_confidence for draft in drafts],
        )
        tokens = [d.tokens[-1] if d.tokens else d.work.tokens[-1] for d in drafts] if last is None else last
        self._drawn = decoder.step(tokens, batch, plans, draws).drawn

    def start_next(self) -> _DraftPass[Batch] | None:
        """Start the next pass before this one is read, for all drafts that have room for two more tokens."""
        picked = [i for i, d in enumerate(self._drafts) if d.alive and len(d.tokens) + 1 < d.plan.gamma]
        if not picked:
            return None
        last = self._drawn.tokens
        if len(picked) < len(self._drafts):
            last = last.index_select(0, to_device(picked, last.device))
        return _DraftPass(self._decoder, self._attention, [self._drafts[i] for i in picked], last)

    def read(self) -> list[_Growing]:
        """Wait for the tokens, append them to their drafts, and return the drafts that continue."""
        drawn = self._drawn.wait()
        for i, draft in enumerate(self._drafts):
            if draft.alive:
                draft.append(drawn.tokens[i], drawn.confidence[i])
        return [draft for draft in self._drafts if draft.alive]
