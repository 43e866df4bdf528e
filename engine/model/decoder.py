"""Hold a model's weights, and define the passes over them. Backends run the sublayers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from torch import Tensor

from engine.architecture.spec import LOW_BIT, TARGET, WINDOW, ModelSpec, Variants
from engine.model.attention import AttentionOf, Segment
from engine.model.linear import Linear
from engine.model.passes import Drafted, DraftRequest, Draws, OnWait, Verified, draft_in_lock_step, verify_by_sublayers
from engine.quantised.packed import PackedRows
from engine.sampling.sample import Sampler
from engine.tensors import to_device

if TYPE_CHECKING:
    from engine.model.search import SearchTable

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
        self._layers = {TARGET: weights.layers}  # by variant
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
    def run(self, x: Tensor, batch: Batch, record: list[Tensor] | None = None) -> Tensor:
        """Run all sublayers. `record` receives the 2L+1 residual streams, X^(0) first, without copies."""

    @abstractmethod
    def run_plan(self, x: Tensor, batch: Batch, variants: Variants) -> Tensor:
        """Run the sublayers of a plan, the same for all rows."""

    @abstractmethod
    def run_plans(self, x: Tensor, batch: Batch, plans: Sequence[Variants]) -> Tensor:
        """Run row r through the sublayers of plans[r]."""

    def heads(self, x: Tensor, plans: Sequence[Variants]) -> Tensor:
        """Return the logits [rows, vocab], row r's by the head of plans[r]."""
        first = plans[0][-1]
        logits = self.head(x, first)
        for variant in {plan[-1] for plan in plans} - {first}:
            where = to_device([r for r, plan in enumerate(plans) if plan[-1] == variant], x.device)
            logits = logits.index_copy(0, where, self.head(x.index_select(0, where), variant))
        return logits

    def draft(
        self,
        attention: AttentionOf[Batch],
        requests: Sequence[DraftRequest],
        *,
        pipelined: bool = False,
        on_wait: OnWait | None = None,
    ) -> Drafted:
        """Run all draft passes of a round (`passes.draft_in_lock_step`). Backends may run them in one call."""
        return draft_in_lock_step(self, attention, requests, pipelined=pipelined, on_wait=on_wait)

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
        """Run a pass of the whole model, or of a sub-network, and its draws (`passes.verify_by_sublayers`).

        Backends may run it in one call. With `keep_logits`, `Verified.hidden` and `Verified.logits` are set.
        """
        return verify_by_sublayers(
            self, attention, segments, tokens, draws, record=record, variants=variants, on_wait=on_wait
        )

    def fill_rows(self, table: SearchTable, batch_of: Callable[[int], Batch], count: int) -> None:
        """Fill up to `count` rows of a search's table. `batch_of(n)` returns the batch of n candidate states."""

        def transition(index: int, states: Tensor, variant: int) -> Tensor:
            return self.sublayer(index, states.flatten(0, 1), batch_of(len(states)), variant).view_as(states)

        for _ in range(count):
            if table.done:
                return
            table.advance(transition)

    def head(self, x: Tensor, variant: int = TARGET) -> Tensor:
        """Apply final norm and output head: x [rows, hidden] -> logits [rows, vocab]."""
        return self._heads[variant](self.normalise(x))

    def normalise(self, x: Tensor) -> Tensor:
        """Apply the final norm."""
        return torch.rms_norm(x, self._shape, self._norm, self.spec.norm_eps)


Decoder = DecoderOf[Any]  # for code that passes the batches of its `Attention` on
