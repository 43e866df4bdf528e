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
from engine.step import References, Work, WorkOutput, depths
from engine.tensors import to_device
from engine.types import SamplingParams, TokenLogprobs

_SCORED_ROWS = 128  # prompt rows whose logits are held at once: a row may take a megabyte


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens drafted for one request, with the confidence in each: a chain, perhaps with siblings, or a given tree."""

    tokens: Sequence[int] = ()
    confidences: Sequence[float] = ()
    siblings: Sequence[Sequence[int]] = ()  # each token's siblings; empty: none at all
    parents: Sequence[int] = ()  # each token's parent, if the tree is given: `Plan.parents`

    @classmethod
    def given(cls, work: Work) -> Draft:
        """Return the draft that is the plan itself, or an empty one."""
        plan = work.plan
        return cls() if plan is None else cls(plan.tokens, [1.0] * len(plan.tokens), parents=plan.parents)

    @property
    def length(self) -> int:
        """Tokens of the longest path."""
        return max(depths(self.parents)) if self.parents else len(self.tokens)

    def tree(self) -> tuple[Sequence[int], Sequence[int]]:
        """Return all tokens and the number of each token's parent, which comes earlier; -1: the last known token."""
        if self.parents:
            return self.tokens, self.parents
        tokens, parents = [*self.tokens], [*range(-1, len(self.tokens) - 1)]
        for depth, others in enumerate(self.siblings):
            tokens += others
            parents += [depth - 1] * len(others)
        return tokens, parents


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
    siblings = drafted.siblings or [[]] * len(drafting)
    made = zip(drafting, drafted.tokens, drafted.confidences, siblings, strict=True)
    for i, tokens, confidences, others in made:
        drafts[i] = Draft(tokens, confidences, others)
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
        siblings=plan.siblings,
    )


def verify(
    decoder: Decoder,
    attention: Attention,
    work: Sequence[Work],
    drafts: Sequence[Draft],
    *,
    on_wait: OnWait | None = None,
) -> tuple[WorkOutput, ...]:
    """Run one full pass over all rows, drafts included; keep each accepted path and one token of the target."""
    rows = [_Rows.of(w, draft) for w, draft in zip(work, drafts, strict=True)]
    passed = decoder.verify(
        attention,
        [r.segment for r in rows],
        [token for r in rows for token in r.tokens],
        _draws(rows),
        record=any(w.rows_to_record for w in work),
        keep_logits=any(w.scored or w.sampling.logprobs is not None for w in work),
        on_wait=on_wait,
    )
    outputs: list[WorkOutput] = []
    first_row = first_draw = 0
    for w, r, draft in zip(work, rows, drafts, strict=True):
        known = len(w.tokens)
        kept, path = r.accept(passed, first_draw) if w.draws_token else ([], [])
        for slot, row in enumerate(path, w.start + known):
            if w.start + row != slot:
                attention.cache.move(w.slab, w.start + row, slot)
        output = WorkOutput(tuple(kept), draft.length, len(r.tokens) - known - draft.length)
        output.confidences = tuple(draft.confidences)
        verified = [*range(known), *path]
        if w.plan is not None and w.plan.draws:
            draws = [max(token, 0) for token in passed.tokens[first_draw : first_draw + len(r.tokens) - known + 1]]
            for row, token in zip(verified[known - 1 :], kept, strict=True):
                draws[row - known + 1] = max(token, 0)  # perhaps drawn again
            output.draws = tuple(draws)
        if w.rows_to_record and passed.states:
            output.references = _references(passed.states, w, first_row, verified)
        if passed.logits is not None and kept and kept[-1] >= 0 and w.sampling.logprobs is not None:
            picked = [first_draw + row - known + 1 for row in verified[known - 1 :]]
            output.logprobs = token_logprobs(passed.logits[picked], kept, w.sampling.logprobs)
        if w.scored and passed.hidden is not None:
            output.prompt_logprobs = _scores(decoder, passed.hidden[first_row : first_row + len(w.scored)], w)
        outputs.append(output)
        first_row += len(r.tokens)
        first_draw += len(r.tokens) - known + 1 if w.draws_token else 0
    return tuple(outputs)


@dataclass(frozen=True, slots=True)
class _Rows:
    """One request's rows of a verify pass: its tokens without K/V, then its draft."""

    work: Work
    tokens: Sequence[int]
    segment: Segment  # a tree if the draft is one

    @classmethod
    def of(cls, work: Work, draft: Draft) -> _Rows:
        if not draft.parents and not any(draft.siblings):
            tokens = (*work.tokens, *draft.tokens)
            return cls(work, tokens, Segment(work.slab, work.start, len(tokens)))
        drafted, parents = draft.tree()
        last = len(work.tokens) - 1
        every = (*range(-1, last), *(parent + last + 1 for parent in parents))
        tokens = (*work.tokens, *drafted)
        return cls(work, tokens, Segment(work.slab, work.start, len(tokens), every))

    def drafted_before(self) -> list[Sequence[int]]:
        """Return, for each row that the target draws after, the drafted tokens that lead there."""
        known = len(self.work.tokens)
        if not self.segment.parents:
            return [self.tokens[known:row] for row in range(known, len(self.tokens) + 1)]
        return [[self.tokens[row] for row in path[known:]] for path in self.segment.paths[known - 1 :]]

    def accept(self, passed: Verified, first_draw: int) -> tuple[list[int], list[int]]:
        """Follow the children that carry the target's tokens. Returns these tokens, and the rows on the path.

        `first_draw`: the number of the request's first draw in the pass. A token that breaks the grammar, where its
        mask was not applied yet, is drawn again. Returns -1 alone if logits are no numbers.
        """
        known, parents = len(self.work.tokens), self.segment.parents
        children = {
            (parents[row] if parents else row - 1, self.tokens[row]): row for row in range(known, len(self.tokens))
        }
        processor = self.work.processor
        redraws = processor is not None and processor.mask_after_draw
        kept: list[int] = []
        path: list[int] = []
        row: int | None = known - 1
        while row is not None:
            draw = first_draw + row - known + 1
            token = passed.tokens[draw]
            if token < 0:
                return [token], []
            if redraws and processor is not None and not processor.allows(token, kept):
                token = passed.redraw(draw, partial(processor.edit, drafted=kept))
            kept.append(token)
            row = children.get((row, token))
            if row is not None:
                path.append(row)
        return kept, path


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


def _references(states: list[Tensor], work: Work, first: int, verified: Sequence[int]) -> References:
    """Take the last verified rows of one request, as many as it records, from residual streams [rows, hidden].

    `verified`: the numbers of these rows, counted from the request's `first`, by ascending position.
    """
    begin = max(len(verified) - work.rows_to_record, 0)
    rows = to_device([first + row for row in verified[begin:]], states[0].device)
    picked = torch.stack([x.index_select(0, rows) for x in states])
    return References(picked, tuple(range(work.start + begin, work.start + len(verified))))
