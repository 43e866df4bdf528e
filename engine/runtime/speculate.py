"""The draft–verify–keep round. Plain decoding and prompt chunks are rounds that draft nothing.

The target draws its own token at every verified position, with that position's noise. A draft token is accepted if and
only if it equals the target's token, so the text does not depend on the drafter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from engine.model.attention import Attention, Segment
from engine.model.decoder import Decoder
from engine.model.passes import DraftRequest, Draws, OnWait, Verified
from engine.sampling.sample import Edit
from engine.step import References, Work, WorkOutput
from engine.tensors import to_device
from engine.types import SamplingParams, TokenLogprobs

_SCORED_ROWS = 128  # prompt rows whose logits are held at once: a row may take a megabyte


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens drafted for one request, with the confidence in each."""

    tokens: Sequence[int] = ()
    confidences: Sequence[float] = ()

    @classmethod
    def given(cls, work: Work) -> Draft:
        """Return the draft that is the plan itself, or an empty one."""
        plan = work.plan
        return cls() if plan is None else cls(plan.tokens, [1.0] * len(plan.tokens))


def propose(
    decoder: Decoder, attention: Attention, work: Sequence[Work], *, ahead: bool = False, on_wait: OnWait | None = None
) -> tuple[list[Draft], int]:
    """Draft for every request of a round: by its sub-network, by the tokens of its plan, or not at all.

    Returns a draft for each entry of `work`, and the number of draft passes. `ahead` and `on_wait` are those of
    `Decoder.draft`.
    """
    drafts = [Draft.given(w) for w in work]
    drafting = [i for i, w in enumerate(work) if w.gamma > 0 and not w.given]
    if not drafting:
        return drafts, 0
    drafted = decoder.draft(attention, [_draft_request(work[i]) for i in drafting], pipelined=ahead, on_wait=on_wait)
    for i, tokens, confidences in zip(drafting, drafted.tokens, drafted.confidences, strict=True):
        drafts[i] = Draft(tokens, confidences)
    return drafts, drafted.passes


def _draft_request(work: Work) -> DraftRequest:
    plan, processor = work.plan, work.processor
    assert plan is not None
    return DraftRequest(
        slab=work.slab,
        start=work.start,
        token=work.tokens[-1],
        variants=plan.variants,
        gamma=plan.gamma,
        min_confidence=plan.min_confidence,
        sampling=work.sampling,
        edit=None if processor is None else processor.edit,
        mask_after_draw=processor is not None and processor.mask_after_draw and work.sampling.greedy,
    )


def verify(
    decoder: Decoder,
    attention: Attention,
    work: Sequence[Work],
    drafts: Sequence[Draft],
    *,
    on_wait: OnWait | None = None,
) -> tuple[WorkOutput, ...]:
    """Run one full pass over all rows, drafts included; keep the accepted tokens and one token of the target."""
    rows = [_Rows(w, (*w.tokens, *draft.tokens)) for w, draft in zip(work, drafts, strict=True)]
    passed = decoder.verify(
        attention,
        [Segment(r.work.slab, r.work.start, len(r.tokens)) for r in rows],
        [token for r in rows for token in r.tokens],
        _draws(rows),
        record=any(w.rows_to_record for w in work),
        keep_logits=any(w.scored or w.sampling.logprobs is not None for w in work),
        on_wait=on_wait,
    )
    outputs: list[WorkOutput] = []
    first_row = first_draw = 0
    for w, r, draft in zip(work, rows, drafts, strict=True):
        kept = r.accept(passed, first_draw) if w.draws_token else []
        output = WorkOutput(tuple(kept), len(draft.tokens), tuple(draft.confidences))
        draws = len(draft.tokens) + 1 if w.draws_token else 0
        if w.plan is not None and w.plan.draws:
            # Accepted tokens were perhaps drawn again.
            drawn = [*kept, *passed.tokens[first_draw + len(kept) : first_draw + draws]]
            output.draws = tuple([max(token, 0) for token in drawn])
        if w.rows_to_record and passed.states:
            output.references = _references(passed.states, w, first_row, len(w.tokens) + output.accepted)
        if passed.logits is not None and kept and kept[-1] >= 0 and w.sampling.logprobs is not None:
            logits = passed.logits[first_draw : first_draw + len(kept)]
            output.logprobs = token_logprobs(logits, kept, w.sampling.logprobs)
        if w.scored and passed.hidden is not None:
            output.prompt_logprobs = _scores(decoder, passed.hidden[first_row : first_row + len(w.scored)], w)
        outputs.append(output)
        first_row += len(r.tokens)
        first_draw += draws
    return tuple(outputs)


@dataclass(frozen=True, slots=True)
class _Rows:
    """One request's rows of a verify pass: its tokens without K/V, then its draft."""

    work: Work
    tokens: Sequence[int]

    def drafted_before(self) -> list[Sequence[int]]:
        """Return, for each row that the target draws after, the drafted tokens that lead there."""
        known = len(self.work.tokens)
        return [self.tokens[known:row] for row in range(known, len(self.tokens) + 1)]

    def accept(self, passed: Verified, first_draw: int) -> list[int]:
        """Return the target's tokens up to the first that differs from the draft, that one included.

        `first_draw`: the number of the request's first draw in the pass. A token that breaks the grammar, where its
        mask was not applied yet, is drawn again. Returns -1 alone if logits are no numbers.
        """
        processor = self.work.processor
        redraws = processor is not None and processor.mask_after_draw
        kept: list[int] = []
        for draw, drafted in enumerate((*self.tokens[len(self.work.tokens) :], -1), first_draw):
            token = passed.tokens[draw]
            if token < 0:
                return [token]
            if redraws and processor is not None and not processor.allows(token, kept):
                token = passed.redraw(draw, partial(processor.edit, drafted=kept))
            kept.append(token)
            if token != drafted:
                break
        return kept


def _draws(rows: Sequence[_Rows]) -> Draws:
    """Describe the target's draws: after the last known token of each request that samples, and after its drafts."""
    draw_rows: list[int] = []
    sampling: list[SamplingParams] = []
    edits: list[Edit | None] = []
    first = 0
    for r in rows:
        w, known = r.work, len(r.work.tokens)
        if w.draws_token:
            count = len(r.tokens) - known + 1
            draw_rows += range(first + known - 1, first + len(r.tokens))
            sampling += [w.sampling] * count
            if w.processor is not None and not w.processor.mask_after_draw:
                edits += [partial(w.processor.edit, drafted=drafted) for drafted in r.drafted_before()]
            else:
                edits += [None] * count
        first += len(r.tokens)
    return Draws(draw_rows, sampling, edits if any(edits) else ())


def token_logprobs(logits: Tensor, tokens: Sequence[int], top: int) -> tuple[TokenLogprobs, ...]:
    """Return the log-softmax of unprocessed logits [tokens, vocab] at these tokens, with the `top` likeliest ids."""
    shares = torch.log_softmax(logits.float(), dim=-1)
    own = shares.gather(1, to_device(tokens, logits.device)[:, None])[:, 0].tolist()
    best = shares.topk(min(top, shares.shape[1]))
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    likeliest = [tuple(zip(ids, values, strict=True)) for ids, values in pairs]
    return tuple(TokenLogprobs(*facts) for facts in zip(tokens, own, likeliest, strict=True))


def _scores(decoder: Decoder, hidden: Tensor, work: Work) -> tuple[TokenLogprobs, ...]:
    """Return the log-probabilities of prompt tokens, from the rows before them: hidden [scored, hidden]."""
    top = work.sampling.logprobs or 0
    found: list[TokenLogprobs] = []
    for i in range(0, len(work.scored), _SCORED_ROWS):
        logits = decoder.head(hidden[i : i + _SCORED_ROWS])
        found += token_logprobs(logits, work.scored[i : i + _SCORED_ROWS], top)
    return tuple(found)


def _references(states: list[Tensor], work: Work, first: int, verified: int) -> References:
    """Take the last of the `verified` rows of one request, as many as it records, from streams [rows, hidden].

    `first`: the number of the request's first row in the pass.
    """
    begin = max(verified - work.rows_to_record, 0)
    picked = torch.stack([x[first + begin : first + verified] for x in states])
    return References(picked, tuple(range(work.start + begin, work.start + verified)))
