"""Draft and verify: in one call where the backend has one for it, otherwise pass by pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic

from torch import Tensor

from engine.model.attention import AttentionOf, Segment
from engine.model.decoder import Batch, Decoder, DecoderOf, Draft, OneCallDecoder, Verified, VerifyPass
from engine.plans import Variants
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
    pipelined = pipelined and all(w.processor is None for w in work)  # an edit needs the tokens before it
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
    x, batch = decoder.embed(rows.tokens), attention.prepare(rows.segments)
    x = decoder.run(x, batch, states, variants=rows.variants)
    if rows.draw_rows:
        picked = x if len(rows.draw_rows) == len(x) else x.index_select(0, to_device(rows.draw_rows, x.device))
        logits = decoder.head(picked, (rows.variants or decoder.spec.whole)[-1])
    else:
        logits = x.new_empty(0, decoder.spec.vocab)
    after = [position + 1 for segment in rows.segments for position in segment.positions]
    positions = [after[row] for row in rows.draw_rows]  # the positions of the drawn tokens
    sample = decoder.sampler.sample

    def redraw(i: int, edit: Edit) -> int:
        at = slice(i, i + 1)
        return sample(logits[at], rows.sampling[at], positions[at], edits=[edit]).wait().tokens[0]

    drawn = sample(logits, rows.sampling, positions, edits=rows.edits) if rows.draw_rows else None
    if on_wait is not None:
        on_wait()
    return Verified(drawn.wait().tokens if drawn else [], states, redraw, x, logits)


def heads(decoder: Decoder, x: Tensor, plans: Sequence[Variants]) -> Tensor:
    """Return the logits [rows, vocab] of x [rows, hidden], row r's by the head of plans[r]."""
    first = plans[0][-1]
    logits = decoder.head(x, first)
    for variant in {plan[-1] for plan in plans} - {first}:
        where = to_device([r for r, plan in enumerate(plans) if plan[-1] == variant], x.device)
        logits = logits.index_copy(0, where, decoder.head(x.index_select(0, where), variant))
    return logits


@dataclass(slots=True)
class _Growing:
    """The draft of one request as it grows."""

    work: Work
    plan: Plan
    tokens: list[int] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        """Whether neither the length limit nor the confidence limit has ended the draft."""
        unsure = bool(self.confidences) and self.confidences[-1] < self.plan.min_confidence
        return len(self.tokens) < self.plan.gamma and not unsure

    @property
    def edit(self) -> Edit | None:
        """The edit of the next token's logits."""
        processor = self.work.processor
        return None if processor is None else partial(processor.edit, drafted=tuple(self.tokens))

    def append(self, token: int, confidence: float) -> None:
        self.tokens.append(max(token, 0))  # -1: not a number; verification notices
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
        unread = last is not None
        ends = [draft.work.start + len(draft.tokens) + unread for draft in drafts]
        batch = attention.prepare([Segment(d.work.slab, end, 1) for d, end in zip(drafts, ends, strict=True)])
        if last is None:
            x = decoder.embed([d.tokens[-1] if d.tokens else d.work.tokens[-1] for d in drafts])
        else:
            x = decoder.embed_ids(last)
        plans = [draft.plan.variants for draft in drafts]
        x = decoder.run_plans(x, batch, plans)
        self._drawn = decoder.sampler.sample(
            heads(decoder, x, plans),
            [draft.work.sampling for draft in drafts],
            [end + 1 for end in ends],  # the positions of the drawn tokens
            confidence=True,
            edits=() if unread else [draft.edit for draft in drafts],
            noise=[draft_noise(plan) for plan in plans],
        )

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
