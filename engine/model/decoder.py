"""Hold a model's weights, and define the passes over them. Backends run the sublayers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.model.attention import AttentionOf, Segment
from engine.model.linear import Linear
from engine.model.passes import Drafted, DraftRequest, Draws, OnWait, Verified
from engine.plans import LOW_BIT, TARGET, WINDOW, Variants
from engine.quantised.packed import PackedRows
from engine.sampling.sample import Edit, Sampler, draft_noise
from engine.tensors import to_device

Batch = TypeVar("Batch")


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """The weights of one layer. q and k rows are interleaved for `attention.Rope`."""

    attention_norm: Tensor  # [hidden]
    qkv: Linear  # [(heads + 2·kv_heads)·head_dim, hidden]
    qk_norm: Tensor | None  # [heads + kv_heads, head_dim], each head's RMSNorm
    output: Linear  # [hidden, heads·head_dim]
    mlp_norm: Tensor  # [hidden]
    gate_up: Linear  # [2·intermediate, hidden]
    down: Linear  # [hidden, intermediate]


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """A model's weights in the form that its backend reads."""

    embedding: Tensor  # [vocab, hidden], perhaps in another dtype than the passes; the rows of a packed embedding
    layers: tuple[LayerWeights, ...]
    norm: Tensor  # [hidden], the final norm
    head: Linear
    packed_embedding: PackedRows | None = None


class DecoderOf(ABC, Generic[Batch]):
    """A model's weights and the passes over them. `x` is the residual stream, [rows, hidden] in `dtype`.

    A `Batch` comes from the backend's `Attention`; nobody else looks into it.
    """

    drafts_in_one_call = False  # whether `draft` takes less time than its passes would take one by one

    def __init__(self, spec: ModelSpec, dtype: torch.dtype, weights: ModelWeights, sampler: Sampler) -> None:
        self.spec, self.dtype, self.sampler = spec, dtype, sampler
        self._embedding, self._norm = weights.embedding, weights.norm
        self._layers = {TARGET: weights.layers}  # the layers of each variant
        self._heads = {TARGET: weights.head}
        self._shape = (spec.hidden,)

    @property
    def device(self) -> torch.device:
        return self._embedding.device

    @property
    def linears(self) -> list[Linear]:
        """The linear layers of the whole model, the head last."""
        layers = [linear for w in self._layers[TARGET] for linear in (w.qkv, w.output, w.gate_up, w.down)]
        return [*layers, self._heads[TARGET]]

    @property
    def weight_tensors(self) -> Sequence[Tensor]:
        """The weights in the backend's own form that a pass reads; empty if they are torch's."""
        return ()

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights that a pass of one row reads: all but an embedding that is not the head too."""
        unread = 0 if self.spec.tied else self.spec.vocab * self.spec.hidden
        return (self.spec.parameters - unread) * self.dtype.itemsize

    def embed(self, tokens: Sequence[int]) -> Tensor:
        """Look token ids up: -> [rows, hidden]."""
        return self.embed_ids(to_device(tokens, self.device))

    def embed_ids(self, tokens: Tensor) -> Tensor:
        """Look token ids [rows] on the device up: -> [rows, hidden]."""
        return self._embedding.index_select(0, tokens).to(self.dtype)

    @property
    def variants(self) -> tuple[int, ...]:
        """The variants of the head that plans may run: TARGET, and LOW_BIT if there is a copy."""
        return tuple(self._heads)

    def add_low_bit(self, layers: Sequence[LayerWeights], head: Linear) -> None:
        """Add a copy of all linear layers in fewer bits, for drafts."""
        self._layers[LOW_BIT] = self._layers[WINDOW] = tuple(layers)
        self._heads[LOW_BIT] = head

    def add_lowered(self, lower: Callable[[Linear], Linear], progress: Callable[[float], None]) -> None:
        """Add a copy of all linear layers, each made by `lower`; `progress` gets the share done."""
        layers = []
        for i, w in enumerate(self._layers[TARGET]):
            qkv, output, gate_up, down = (lower(linear) for linear in (w.qkv, w.output, w.gate_up, w.down))
            layers.append(replace(w, qkv=qkv, output=output, gate_up=gate_up, down=down))
            progress((i + 1) / (self.spec.layers + 1))
        self.add_low_bit(layers, lower(self._heads[TARGET]))
        progress(1.0)

    @abstractmethod
    def sublayer(self, index: int, x: Tensor, batch: Batch, variant: int = TARGET) -> Tensor:
        """Run sublayer `index` of 0 .. 2L-1: x [rows, hidden] -> [rows, hidden]."""

    @abstractmethod
    def run(
        self, x: Tensor, batch: Batch, record: list[Tensor] | None = None, *, variants: Variants | None = None
    ) -> Tensor:
        """Run the sublayers of the whole model, or of the sub-network `variants`: x [rows, hidden] -> [rows, hidden].

        `record` receives the 2L+1 residual streams [rows, hidden], X^(0) first, without copies.
        """

    @abstractmethod
    def run_plans(self, x: Tensor, batch: Batch, plans: Sequence[Variants]) -> Tensor:
        """Run row r of x [rows, hidden] through the sublayers of plans[r]: -> [rows, hidden]."""

    def heads(self, x: Tensor, plans: Sequence[Variants]) -> Tensor:
        """Return the logits [rows, vocab], row r's by the head of plans[r]."""
        first = plans[0][-1]
        logits = self.head(x, first)
        for variant in {plan[-1] for plan in plans} - {first}:
            where = to_device([r for r, plan in enumerate(plans) if plan[-1] == variant], x.device)
            logits = logits.index_copy(0, where, self.head(x.index_select(0, where), variant))
        return logits

    # twin: engine/kernels/executor.h, run_draft
    def draft(
        self,
        attention: AttentionOf[Batch],
        requests: Sequence[DraftRequest],
        *,
        pipelined: bool = False,
        on_wait: OnWait | None = None,
    ) -> Drafted:
        """Draft for all requests together, one token a pass, until each request's stop rule ends its draft.

        K/V is written only for the sublayers that run. With `pipelined`, the next pass starts before the current one's
        tokens are read; it is discarded if the stop rule ends the draft. The drafted tokens are the same. Backends may
        run all passes in one call.
        """
        drafts = [_Draft(request) for request in requests]
        pipelined = pipelined and not any(request.edit for request in requests)  # an edit needs the tokens before it
        passes = 0
        current: _DraftPass[Batch] | None = _DraftPass(self, attention, drafts)
        while current is not None:
            following = current.start_next() if pipelined else None
            if on_wait is not None:
                on_wait()
            alive = current.read()
            passes += 1
            if not alive:
                break
            current = following or _DraftPass(self, attention, alive)
        return Drafted([draft.tokens for draft in drafts], [draft.confidences for draft in drafts], passes)

    def verify(
        self,
        attention: AttentionOf[Batch],
        segments: Sequence[Segment],
        tokens: Sequence[int],
        draws: Draws,
        *,
        record: bool = False,
        keep_logits: bool = False,
        variants: Variants | None = None,
        on_wait: OnWait | None = None,
    ) -> Verified:
        """Run all rows through the model, or through the sub-network `variants`, and draw the target's tokens.

        `record` keeps the residual streams; with `keep_logits`, `Verified.hidden` and
        `Verified.logits` are set. Backends may run the pass in one call.
        """
        states: list[Tensor] | None = [] if record else None
        x, batch = self.embed(tokens), attention.prepare(segments)
        x = self.run(x, batch, states, variants=variants)
        if draws.rows:
            picked = x if len(draws.rows) == len(x) else x.index_select(0, to_device(draws.rows, x.device))
            logits = self.head(picked, (variants or self.spec.whole)[-1])
        else:
            logits = x.new_empty(0, self.spec.vocab)
        after = [position + 1 for segment in segments for position in segment.positions]
        positions = [after[row] for row in draws.rows]  # the positions of the drawn tokens

        def redraw(i: int, edit: Edit) -> int:
            at = slice(i, i + 1)
            return self.sampler.sample(logits[at], draws.sampling[at], positions[at], edits=[edit]).wait().tokens[0]

        drawn = self.sampler.sample(logits, draws.sampling, positions, edits=draws.edits) if draws.rows else None
        if on_wait is not None:
            on_wait()
        return Verified(drawn.wait().tokens if drawn else [], states, redraw, x, logits)

    def head(self, x: Tensor, variant: int = TARGET) -> Tensor:
        """Apply final norm and output head: x [rows, hidden] -> logits [rows, vocab]."""
        return self._heads[variant](torch.rms_norm(x, self._shape, self._norm, self.spec.norm_eps))


Decoder = DecoderOf[Any]  # the type for code that passes the batches of its `Attention` on


@dataclass(slots=True)
class _Draft:
    """The draft of one request as it grows."""

    request: DraftRequest
    tokens: list[int] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)

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
        self.tokens.append(max(token, 0))  # -1: not a number; verification notices
        self.confidences.append(confidence)


def _edit_row(edit: Callable[[Tensor, Sequence[int]], None], drafted: tuple[int, ...], logits: Tensor) -> None:
    """Edit the logits [vocab] of the token after the drafted ones."""
    edit(logits, drafted)


class _DraftPass(Generic[Batch]):
    """A pass in progress that drafts one more token for each of several drafts."""

    def __init__(
        self,
        decoder: DecoderOf[Batch],
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
        self._drawn = decoder.sampler.sample(
            decoder.heads(x, plans),
            [draft.request.sampling for draft in drafts],
            [end + 1 for end in ends],  # the positions of the drawn tokens
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
        for i, draft in enumerate(self._drafts):
            if draft.alive:
                draft.append(drawn.tokens[i], drawn.confidence[i])
        return [draft for draft in self._drafts if draft.alive]
