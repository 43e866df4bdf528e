"""The only draft-verify-keep round. Plain decoding and prompt chunks are rounds that draft nothing.

The target speaks for itself: at every verified position it draws its own token with that position's noise; a draft
token is accepted iff it is that token. Losslessness needs no argument about the drafter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from engine.model.attention import Attention, Segment
from engine.model.decoder import Decoder, DraftRequest, Draws
from engine.sampling.sample import Edit, draft_noise, sample, sample_async
from engine.step import References, Work, WorkOutput
from engine.tensors import to_device
from engine.types import SamplingParams, TokenLogprobs

if TYPE_CHECKING:
    from engine.sampling.logits import LogitsProcessor

_SCORED_ROWS = 128  # of a prompt at once: a row of logits may take a megabyte


@dataclass(slots=True)
class Draft:
    """Tokens one request drafted, and how sure the sub-network was of each."""

    work: Work
    tokens: list[int] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)
    reach: float = 1.0  # chance, by the confidences, that the next token would count

    @property
    def alive(self) -> bool:
        plan = self.work.plan
        assert plan is not None
        return len(self.tokens) < plan.gamma and (not self.confidences or self.confidences[-1] >= plan.min_confidence)

    @property
    def edit(self) -> Edit | None:
        """What the request asks to be done to the logits of the next token."""
        processor = self.work.processor
        return None if processor is None else partial(processor.edit, drafted=tuple(self.tokens))

    def add(self, token: int, confidence: float) -> None:
        self.tokens.append(token)
        self.confidences.append(confidence)
        self.reach *= confidence


def propose(
    decoder: Decoder,
    attention: Attention,
    work: Sequence[Work],
    *,
    late: bool = False,
    meanwhile: Callable[[], None] | None = None,
) -> tuple[list[Draft], int]:
    """Lock-step draft passes, which rows leave as they stop. Returns the drafts and the number of passes.

    The first row is the pending token, which has no K/V yet; K/V is written only for the sublayers that run. `late`:
    what a pass drew is read while the device runs the next, which is thrown away where the rule says stop. The drafts
    are the same. `meanwhile` is called while passes run, perhaps several times.
    """
    copied = [Draft(w, list(w.copied), [1.0] * len(w.copied)) for w in work if w.copied]
    drafts = [Draft(w) for w in work if w.gamma > 0 and not w.copied]
    passes = _in_one_call(decoder, attention, drafts) if drafts else 0
    if passes is not None:
        return drafts + copied, passes
    late = late and not any(d.work.processor for d in drafts)  # which have to know every token
    passes = 0
    current = _DraftPass(decoder, attention, drafts) if drafts else None
    while current:
        ahead = current.next() if late else None
        if meanwhile is not None:
            meanwhile()
        live = current.read()
        passes += 1
        worth = max((d.work.plan.pass_worth for d in live if d.work.plan), default=0.0)
        if not live or sum(d.reach for d in live) < worth:
            break
        current = ahead or _DraftPass(decoder, attention, live)
    return drafts + copied, passes


def _accepted(guesses: Sequence[int], said: Sequence[int]) -> int:
    """How many drafted tokens are the target's own."""
    return next((i for i, guess in enumerate(guesses) if guess != said[i]), len(guesses))


def _request(work: Work) -> DraftRequest:
    plan = work.plan
    assert plan is not None
    return DraftRequest(
        *(work.slab, work.start, work.tokens[-1], plan.variants, plan.gamma),
        *(plan.min_confidence, plan.pass_worth, work.sampling),
        *_edits(work),
    )


def _in_one_call(decoder: Decoder, attention: Attention, drafts: Sequence[Draft]) -> int | None:
    """The same by `Decoder.draft`: the number of passes, or None where the backend has no such call."""
    drafted = decoder.draft(attention, [_request(d.work) for d in drafts])
    if drafted is None:
        return None
    for d, tokens, confidences in zip(drafts, drafted.tokens, drafted.confidences, strict=True):
        d.tokens, d.confidences = tokens, confidences
    return drafted.passes


def _edits(work: Work) -> tuple[Callable[..., None] | None, bool]:
    """How a request's logits are edited, and whether only where a draw needs it."""
    if work.processor is None:
        return None, False
    return work.processor.edit, work.processor.mask_after_draw and work.sampling.greedy


class _DraftPass:
    """One token more for each of some drafts, on its way."""

    def __init__(
        self, decoder: Decoder, attention: Attention, drafts: Sequence[Draft], last: Tensor | None = None
    ) -> None:
        """`last` [drafts]: their last tokens, on the device, where these have not been read yet."""
        self._decoder, self._attention, self._drafts = decoder, attention, drafts
        unread = last is not None
        ends = [d.work.start + len(d.tokens) + unread for d in drafts]
        batch = attention.prepare([Segment(d.work.slab, end, 1) for d, end in zip(drafts, ends, strict=True)])
        if last is None:
            x = decoder.embed([d.tokens[-1] if d.tokens else d.work.tokens[-1] for d in drafts])
        else:
            x = decoder.embed_ids(last)
        plans = [d.work.plan.variants for d in drafts if d.work.plan]
        x = decoder.run_plans(x, batch, plans)
        self._drawn = sample_async(
            *(decoder.heads(x, plans), [d.work.sampling for d in drafts], [e + 1 for e in ends]),
            confidence=True,
            edits=() if unread else [d.edit for d in drafts],
            noise=[draft_noise(plan) for plan in plans],
        )

    def next(self) -> _DraftPass | None:
        """The pass after this one, for all that may go on by their length; before this one is read."""
        picked = [i for i, d in enumerate(self._drafts) if d.alive and len(d.tokens) + 1 < d.work.gamma]
        if not picked:
            return None
        last = self._drawn.tokens
        if len(picked) < len(self._drafts):
            last = last.index_select(0, to_device(picked, last.device))
        return _DraftPass(self._decoder, self._attention, [self._drafts[i] for i in picked], last)

    def read(self) -> list[Draft]:
        """Gives each draft that has not stopped meanwhile its token; those that go on."""
        drawn = self._drawn.wait()
        for d, token, confidence in zip(self._drafts, drawn.tokens, drawn.confidence, strict=True):
            if d.alive:
                d.add(token, confidence)
        return [d for d in self._drafts if d.alive]


def verify(
    decoder: Decoder,
    attention: Attention,
    work: Sequence[Work],
    drafts: Sequence[Draft],
    *,
    meanwhile: Callable[[], None] | None = None,
) -> tuple[WorkOutput, ...]:
    """One full pass over every request's rows, drafts included; each keeps its accepted prefix and one token more.
    `meanwhile` is called while the pass runs, where it is not one call."""
    drafted = {d.work.request_id: d for d in drafts}
    rows = [(*w.tokens, *drafted[w.request_id].tokens) if w.request_id in drafted else w.tokens for w in work]
    passed = _pass(decoder, attention, work, rows, meanwhile)
    drawn = iter(passed.tokens)
    outputs: list[WorkOutput] = []
    first = sampled = 0
    for w, r in zip(work, rows, strict=True):
        guesses = r[len(w.tokens) :]
        confidences = tuple(drafted[w.request_id].confidences) if guesses else ()
        said = [next(drawn) for _ in range(len(guesses) + 1)] if w.samples else []
        if said and w.processor is not None and w.processor.mask_after_draw:
            _keep_to_grammar(w.processor, list(guesses), said, sampled, passed.redraw)
        accepted = _accepted(guesses, said)
        verified = len(w.tokens) + accepted
        kept = said[: accepted + 1]
        output = WorkOutput(tuple(kept), len(guesses), confidences)
        if w.record and passed.states:
            output.references = _references(passed.states, w, first, verified)
        if passed.logits is not None and w.samples and w.sampling.logprobs is not None:
            logits = passed.logits[sampled : sampled + len(kept)]
            output.logprobs = token_logprobs(logits, kept, w.sampling.logprobs)
        if w.scored and passed.x is not None:
            output.prompt_logprobs = _scores(decoder, passed.x[first : first + len(w.scored)], w)
        outputs.append(output)
        first += len(r)
        sampled += len(said)
    return tuple(outputs)


class PlainPass:
    """A row of each of some requests through the whole model and the draws behind them, on their way."""

    def __init__(
        self, decoder: Decoder, attention: Attention, work: Sequence[Work], start: int = 0, last: Tensor | None = None
    ) -> None:
        """`start`: how far behind those of the work the rows are. `last` [work]: their tokens, on the device, where
        these have not been read."""
        self._decoder, self._attention = decoder, attention
        starts = [w.start + start for w in work]
        batch = attention.prepare([Segment(w.slab, at, 1) for w, at in zip(work, starts, strict=True)])
        x = decoder.embed([w.tokens[0] for w in work]) if last is None else decoder.embed_ids(last)
        x = decoder.run(x, batch)
        self._drawn = sample_async(decoder.head(x), [w.sampling for w in work], [at + 1 for at in starts])
        self._rows = {w.request_id: i for i, w in enumerate(work)}
        self._sampling = [w.sampling for w in work]
        # Slabs, positions and tokens of the rows; where the tokens have not been read, those before them.
        self._inputs = [(w.slab, at, w.tokens[0]) for w, at in zip(work, starts, strict=True)]

    def has(self, work: Sequence[Work]) -> bool:
        """Whether all of this is computed here."""
        for w in work:
            i = self._rows.get(w.request_id)
            if i is None or self._inputs[i] != (w.slab, w.start, w.tokens[0]) or self._sampling[i] is not w.sampling:
                return False
        return True

    def next(self, work: Sequence[Work]) -> PlainPass | None:
        """The pass of the round after this one, for those that have room for it; before this one is read."""
        going = [w for w in work if w.more]
        if not going:
            return None
        rows, last = [self._rows[w.request_id] for w in going], self._drawn.tokens
        if rows != [*range(len(self._rows))]:
            last = last.index_select(0, to_device(rows, last.device))
        return PlainPass(self._decoder, self._attention, going, 1, last)

    def wait(self) -> None:
        """Until it has been computed."""
        self._drawn.wait()

    def read(self, work: Sequence[Work], following: PlainPass | None) -> list[int]:
        """What was drawn for each; `following` began with these."""
        drawn = self._drawn.wait().tokens
        if following is not None:
            began = zip(following._rows, following._inputs, strict=True)
            following._inputs = [(slab, at, drawn[self._rows[request]]) for request, (slab, at, _) in began]
        return [drawn[self._rows[w.request_id]] for w in work]


def decode(
    work: Sequence[Work], current: PlainPass, *, go_on: bool, meanwhile: Callable[[], None] | None = None
) -> tuple[tuple[WorkOutput, ...], PlainPass | None]:
    """A round of `plain` work, by its pass. With `go_on` the next round's begins before this one is read, and comes
    back too; where a request ends meanwhile, its row there is thrown away."""
    following = current.next(work) if go_on else None
    if meanwhile is not None:
        meanwhile()
    return tuple([WorkOutput((token,)) for token in current.read(work, following)]), following


def _keep_to_grammar(
    processor: LogitsProcessor, guesses: list[int], said: list[int], first: int, redraw: Callable[[int, Edit], int]
) -> None:
    """Draw again, as far as guesses are accepted, what breaks the grammar. `first`: the number of the first draw."""
    for i, token in enumerate(said):
        if not processor.allows(token, guesses[:i]):
            said[i] = redraw(first + i, partial(processor.edit, drafted=guesses[:i]))
        if i == len(guesses) or said[i] != guesses[i]:
            return


class _Passed(NamedTuple):
    """A verify pass: tokens [draws]; residual streams, if requested; `Verified.redraw`. A pass run part by part adds
    its last residual stream and logits."""

    tokens: list[int]
    states: list[Tensor] | None
    redraw: Callable[[int, Edit], int]
    x: Tensor | None = None  # [rows, hidden]
    logits: Tensor | None = None  # [draws, vocab]


def _pass(
    decoder: Decoder,
    attention: Attention,
    work: Sequence[Work],
    rows: Sequence[tuple[int, ...]],
    meanwhile: Callable[[], None] | None,
) -> _Passed:
    """All rows through the whole model, and the target's token after every row from the last known token on, for each
    request that samples."""
    tokens = [token for r in rows for token in r]
    segments = [Segment(w.slab, w.start, len(r)) for w, r in zip(work, rows, strict=True)]
    record = any(w.record for w in work)
    draws = _draws(work, rows)
    if not any(w.scored or w.sampling.logprobs is not None for w in work):
        verified = decoder.verify(attention, segments, tokens, draws, record=record)
        if verified is not None:
            return _Passed(*verified)
    states: list[Tensor] | None = [] if record else None
    x = decoder.run(decoder.embed(tokens), attention.prepare(segments), states)
    logits = _logits(decoder, x, draws.rows)
    positions = [w.start + i + 1 for w, r in zip(work, rows, strict=True) for i in _sampled(w, r)]

    def redraw(i: int, edit: Edit) -> int:
        return sample(logits[i : i + 1], draws.sampling[i : i + 1], positions[i : i + 1], edits=[edit]).tokens[0]

    drawn = sample_async(logits, draws.sampling, positions, edits=draws.edits) if draws.rows else None
    if meanwhile is not None:
        meanwhile()
    return _Passed(drawn.wait().tokens if drawn else [], states, redraw, x, logits)


def _logits(decoder: Decoder, x: Tensor, rows: Sequence[int]) -> Tensor:
    """[rows, vocab] behind these rows of x [.., hidden]."""
    if not rows:
        return x.new_empty(0, decoder.spec.vocab)
    return decoder.head(x if len(rows) == len(x) else x.index_select(0, to_device(rows, x.device)))


def _sampled(work: Work, rows: Sequence[int]) -> range:
    """The rows of a request after which the target draws."""
    return range(len(work.tokens) - 1, len(rows)) if work.samples else range(0)


def _draws(work: Sequence[Work], rows: Sequence[tuple[int, ...]]) -> Draws:
    picked: list[int] = []
    sampling: list[SamplingParams] = []
    first = 0
    for w, r in zip(work, rows, strict=True):
        if w.samples:
            begin, first = first + len(w.tokens) - 1, first + len(r)
            picked += range(begin, first)
            sampling += [w.sampling] * (first - begin)
        else:
            first += len(r)
    if not any(w.processor and not w.processor.mask_after_draw for w in work):
        return Draws(picked, sampling)
    edits = [
        None
        if w.processor is None or w.processor.mask_after_draw
        else partial(w.processor.edit, drafted=r[len(w.tokens) : i + 1])
        for w, r in zip(work, rows, strict=True)
        for i in _sampled(w, r)
    ]
    return Draws(picked, sampling, edits)


def token_logprobs(logits: Tensor, tokens: Sequence[int], top: int) -> tuple[TokenLogprobs, ...]:
    """Log-softmax of unprocessed logits [tokens, vocab] at these tokens, and the `top` likeliest of each row."""
    shares = torch.log_softmax(logits.float(), dim=-1)
    own = shares.gather(1, to_device(tokens, logits.device)[:, None])[:, 0].tolist()
    best = shares.topk(min(top, shares.shape[1]))
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    likeliest = [tuple(zip(ids, values, strict=True)) for ids, values in pairs]
    return tuple(TokenLogprobs(*facts) for facts in zip(tokens, own, likeliest, strict=True))


def _scores(decoder: Decoder, x: Tensor, work: Work) -> tuple[TokenLogprobs, ...]:
    """Log-probabilities of prompt tokens after the rows x [scored, hidden] that they follow."""
    top = work.sampling.logprobs or 0
    found: list[TokenLogprobs] = []
    for i in range(0, len(work.scored), _SCORED_ROWS):
        rows = decoder.head(x[i : i + _SCORED_ROWS])
        found += token_logprobs(rows, work.scored[i : i + _SCORED_ROWS], top)
    return tuple(found)


def _references(states: list[Tensor], work: Work, first: int, verified: int) -> References:
    """The last `record` verified rows of one request out of the pass's residual streams."""
    begin = max(verified - work.record, 0)
    picked = torch.stack([x[first + begin : first + verified] for x in states])
    return References(picked, tuple(range(work.start + begin, work.start + verified)))
