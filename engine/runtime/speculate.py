"""The draft–verify–keep round. Plain decoding and prompt chunks are rounds that draft nothing.

The target draws its own token at every verified position, with that position's noise. A draft token is accepted if and
only if it equals the target's token, so the text does not depend on the drafter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.model.attention import Attention, Segment
from engine.model.decoder import Decoder
from engine.model.passes import DraftRequest, Draws, OnWait
from engine.sampling.sample import Edit
from engine.step import References, Work, WorkOutput
from engine.tensors import to_device
from engine.types import SamplingParams, TokenLogprobs

if TYPE_CHECKING:
    from engine.sampling.logits import LogitsProcessor

_SCORED_ROWS = 128  # prompt rows whose logits are held at once: a row may take a megabyte


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens drafted for one request, and the confidence in each."""

    tokens: Sequence[int] = ()
    confidences: Sequence[float] = ()


def propose(
    decoder: Decoder, attention: Attention, work: Sequence[Work], *, ahead: bool = False, on_wait: OnWait | None = None
) -> tuple[list[Draft], int]:
    """Draft for every request of a round: by its sub-network, by copied tokens, or not at all.

    Returns a draft for each entry of `work`, and the number of draft passes. `ahead` and `on_wait` are those of
    `Decoder.draft`.
    """
    drafts = [Draft(w.copied, [1.0] * len(w.copied)) for w in work]
    drafting = [i for i, w in enumerate(work) if w.gamma > 0 and not w.copied]
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
        *(work.slab, work.start, work.tokens[-1], plan.variants, plan.gamma),
        *(plan.min_confidence, plan.pass_worth, work.sampling),
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
    """Run one full pass over all rows, drafts included; keep each accepted prefix and one token of the target."""
    rows = [(*w.tokens, *draft.tokens) for w, draft in zip(work, drafts, strict=True)]
    passed = decoder.verify(
        attention,
        [Segment(w.slab, w.start, len(r)) for w, r in zip(work, rows, strict=True)],
        [token for r in rows for token in r],
        _draws(work, rows),
        record=any(w.rows_to_record for w in work),
        keep_logits=any(w.scored or w.sampling.logprobs is not None for w in work),
        on_wait=on_wait,
    )
    outputs: list[WorkOutput] = []
    first_row = first_draw = 0
    for w, r, draft in zip(work, rows, drafts, strict=True):
        draws = len(draft.tokens) + 1 if w.draws_token else 0
        target = passed.tokens[first_draw : first_draw + draws]
        if target and w.processor is not None and w.processor.mask_after_draw:
            _enforce_grammar(w.processor, list(draft.tokens), target, passed.redraw, first_draw)
        kept = target[: _accepted(draft.tokens, target) + 1]
        output = WorkOutput(tuple(kept), len(draft.tokens), tuple(draft.confidences))
        if w.rows_to_record and passed.states:
            output.references = _references(passed.states, w, first_row, len(w.tokens) + output.accepted)
        if passed.logits is not None and kept and w.sampling.logprobs is not None:
            logits = passed.logits[first_draw : first_draw + len(kept)]
            output.logprobs = token_logprobs(logits, kept, w.sampling.logprobs)
        if w.scored and passed.hidden is not None:
            output.prompt_logprobs = _scores(decoder, passed.hidden[first_row : first_row + len(w.scored)], w)
        outputs.append(output)
        first_row += len(r)
        first_draw += draws
    return tuple(outputs)


def _accepted(draft: Sequence[int], target: Sequence[int]) -> int:
    """Count the draft tokens before the first that differs from the target's token."""
    return next((i for i, token in enumerate(draft) if token != target[i]), len(draft))


def _enforce_grammar(
    processor: LogitsProcessor, draft: list[int], target: list[int], redraw: Callable[[int, Edit], int], first: int
) -> None:
    """Draw target tokens that break the grammar again, under its mask, as far as draft tokens are accepted.

    `first`: the number of the request's first draw in the pass.
    """
    for i, token in enumerate(target):
        if not processor.allows(token, draft[:i]):
            target[i] = redraw(first + i, partial(processor.edit, drafted=draft[:i]))
        if i == len(draft) or target[i] != draft[i]:
            return


def _draws(work: Sequence[Work], rows: Sequence[tuple[int, ...]]) -> Draws:
    """Describe the target's draws: after the last known token of each request that samples, and after its drafts."""
    draw_rows: list[int] = []
    sampling: list[SamplingParams] = []
    edits: list[Edit | None] = []
    first = 0
    for w, r in zip(work, rows, strict=True):
        for i in range(len(w.tokens) - 1, len(r)) if w.draws_token else ():
            draw_rows.append(first + i)
            sampling.append(w.sampling)
            edit_first = w.processor is not None and not w.processor.mask_after_draw
            edits.append(
                partial(w.processor.edit, drafted=r[len(w.tokens) : i + 1]) if w.processor and edit_first else None
            )
        first += len(r)
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
    """Take the last verified rows of one request, as many as it records, from residual streams [rows, hidden]."""
    begin = max(verified - work.rows_to_record, 0)
    picked = torch.stack([x[first + begin : first + verified] for x in states])
    return References(picked, tuple(range(work.start + begin, work.start + verified)))
