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

from engine.model import passes
from engine.model.attention import Attention, Segment
from engine.model.decoder import Decoder, Draft, Verified, VerifyPass
from engine.sampling.sample import Edit
from engine.step import References, Work, WorkOutput
from engine.tensors import to_device
from engine.types import TokenLogprobs

_SCORED_ROWS = 128  # prompt rows whose logits are held at once: a row may take a megabyte


def propose(
    decoder: Decoder,
    attention: Attention,
    work: Sequence[Work],
    *,
    ahead: bool = False,
    on_wait: passes.OnWait | None = None,
) -> list[Draft]:
    """Draft for every request of a round: by its sub-network, by the tokens of its plan, or not at all.

    Returns a draft for each entry of `work`. `ahead` and `on_wait` are `pipelined` and `on_wait` of `passes.draft`.
    """
    given = [w.plan.tokens if w.plan is not None else () for w in work]
    drafts = [Draft(tokens, [1.0] * len(tokens)) for tokens in given]
    drafting = [i for i, w in enumerate(work) if w.drafting is not None]
    if drafting:
        drafted = passes.draft(decoder, attention, [work[i] for i in drafting], pipelined=ahead, on_wait=on_wait)
        for i, draft in zip(drafting, drafted, strict=True):
            drafts[i] = draft
    return drafts


def verify(
    decoder: Decoder,
    attention: Attention,
    work: Sequence[Work],
    drafts: Sequence[Draft],
    *,
    on_wait: passes.OnWait | None = None,
) -> tuple[WorkOutput, ...]:
    """Run every request's pending tokens and draft through the target in one pass, and keep what agrees."""
    parts = _parts(work, drafts)
    edits = [edit for part in parts for edit in part.edits()]
    rows = VerifyPass(
        segments=[Segment(part.work.slab, part.work.start, len(part.tokens)) for part in parts],
        tokens=[token for part in parts for token in part.tokens],
        draw_rows=[row for part in parts for row in part.draw_rows],
        sampling=[part.work.sampling for part in parts for _ in range(part.draws)],
        edits=edits if any(edits) else (),
        record=any(w.rows_to_record for w in work),
        keep_logits=any(w.scored or w.sampling.logprobs is not None for w in work),
    )
    passed = passes.verify(decoder, attention, rows, on_wait)
    return tuple([part.output(decoder, passed) for part in parts])


@dataclass(frozen=True, slots=True)
class _Part:
    """One request's part of a verify pass: rows of its tokens without K/V and of its draft, and draws after them."""

    work: Work
    draft: Draft
    first_row: int  # the number of its first row in the pass
    first_draw: int  # the number of its first draw in the pass

    @property
    def tokens(self) -> Sequence[int]:
        """The token of each row."""
        return (*self.work.tokens, *self.draft.tokens)

    @property
    def draws(self) -> int:
        """The number of draws: after the last token without K/V, and after each drafted one."""
        return len(self.draft.tokens) + 1 if self.work.draws_token else 0

    @property
    def draw_rows(self) -> range:
        """The row before each draw."""
        first = self.first_row + len(self.work.tokens) - 1
        return range(first, first + self.draws)

    def edits(self) -> list[Edit | None]:
        """Return the edit of the logits of each draw, if they are edited before it."""
        processor, drafted = self.work.processor, self.draft.tokens
        if processor is None or processor.mask_after_draw:
            return [None] * self.draws
        return [partial(processor.edit, drafted=drafted[:count]) for count in range(self.draws)]

    def output(self, decoder: Decoder, passed: Verified) -> WorkOutput:
        """Return what the request gets of the pass."""
        work, row, draw = self.work, self.first_row, self.first_draw
        kept = self.accept(passed) if work.draws_token else []
        output = WorkOutput(tuple(kept), len(self.draft.tokens), tuple(self.draft.confidences))
        if work.plan is not None and work.plan.draws:
            # Accepted tokens were perhaps drawn again.
            drawn = [*kept, *passed.tokens[draw + len(kept) : draw + self.draws]]
            output.draws = tuple([max(token, 0) for token in drawn])
        if work.rows_to_record and passed.states:
            output.references = _references(passed.states, work, row, len(work.tokens) + output.accepted)
        if passed.logits is not None and kept and kept[-1] >= 0 and work.sampling.logprobs is not None:
            output.logprobs = token_logprobs(passed.logits[draw : draw + len(kept)], kept, work.sampling.logprobs)
        if work.scored and passed.hidden is not None:
            output.prompt_logprobs = _scores(decoder, passed.hidden[row : row + len(work.scored)], work)
        return output

    def accept(self, passed: Verified) -> list[int]:
        """Return the target's tokens up to the first that differs from the draft, that one included.

        A token that breaks the grammar, where its mask was not applied yet, is drawn again. Returns -1 alone if logits
        are no numbers.
        """
        processor = self.work.processor
        redraws = processor is not None and processor.mask_after_draw
        kept: list[int] = []
        for draw, drafted in enumerate((*self.draft.tokens, -1), self.first_draw):
            token = passed.tokens[draw]
            if token < 0:
                return [token]
            if redraws and processor is not None and not processor.allows(token, kept):
                token = passed.redraw(draw, partial(processor.edit, drafted=kept))
            kept.append(token)
            if token != drafted:
                break
        return kept


def _parts(work: Sequence[Work], drafts: Sequence[Draft]) -> list[_Part]:
    """Assign rows and draws of a verify pass to the requests, in order."""
    parts: list[_Part] = []
    row = draw = 0
    for w, draft in zip(work, drafts, strict=True):
        parts.append(part := _Part(w, draft, row, draw))
        row, draw = row + len(part.tokens), draw + part.draws
    return parts


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
