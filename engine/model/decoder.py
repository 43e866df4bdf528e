"""Run a model's attention and MLP sublayers one by one, so that any sub-network can run.

`attend(i, x)` and `mlp(i, x)` include their input norm and the residual add: a layer is `mlp(i, attend(i, x))`, and
skipping a sublayer is the identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.architecture.spec import LOW_BIT, SKIP, TARGET, WINDOW, ModelSpec, Variants
from engine.model.attention import AttentionBatch, Segment
from engine.model.linear import Linear
from engine.model.passes import (
    Drafted,
    DraftRequest,
    Draws,
    OnWait,
    Verified,
    draft_in_lock_step,
    verify_by_sublayers,
)
from engine.sampling.sample import Sampler
from engine.tensors import to_device

if TYPE_CHECKING:
    from engine.model.attention import Attention
    from engine.model.search import SearchTable


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


class Decoder:
    """A model's weights and the passes over them. `x` is the residual stream, [rows, hidden] in `dtype`."""

    drafts_in_one_call = False  # whether `draft` takes less time than its passes would take one by one

    def __init__(
        self,
        spec: ModelSpec,
        dtype: torch.dtype,
        embedding: Tensor,
        layers: Sequence[LayerWeights],
        norm: Tensor,
        head: Linear,
        sampler: Sampler,
    ) -> None:
        """`norm` [hidden] is the final norm. `embedding` [vocab, hidden] may have another dtype than `dtype`."""
        self.spec = spec
        self.dtype = dtype
        self.sampler = sampler
        self._embedding = embedding
        self._layers = {TARGET: tuple(layers)}  # by variant
        self._norm = norm
        self._heads = {TARGET: head}
        self._shape = (spec.hidden,)

    @property
    def device(self) -> torch.device:
        return self._embedding.device

    @property
    def packed(self) -> Sequence[Tensor]:
        """The packed weights that a pass reads; empty if the backend does not pack weights."""
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

    def replace_head(self, head: Linear) -> None:
        """Replace the head: that of a synthetic model is calibrated once its layers are there."""
        self._heads[TARGET] = head

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

    def attend(self, layer: int, x: Tensor, batch: AttentionBatch, variant: int = TARGET) -> Tensor:
        """Run attention sublayer 2·layer."""
        weights = self._layers[variant][layer]
        h = torch.rms_norm(x, self._shape, weights.attention_norm, self.spec.norm_eps)
        qkv = weights.qkv(h)
        if weights.qk_norm is not None:
            self._normalise_heads(qkv, weights.qk_norm)
        return weights.output.add(batch.attend(layer, qkv, variant), x)

    def _normalise_heads(self, qkv: Tensor, weight: Tensor) -> None:
        """Apply RMSNorm to each q and k head, in place."""
        heads, width = weight.shape
        qk = qkv[:, : heads * width].view(-1, heads, width)
        qk.copy_(torch.rms_norm(qk, (width,), None, self.spec.norm_eps).mul_(weight))

    def mlp(self, layer: int, x: Tensor, variant: int = TARGET) -> Tensor:
        """Run MLP sublayer 2·layer + 1."""
        weights = self._layers[variant][layer]
        h = torch.rms_norm(x, self._shape, weights.mlp_norm, self.spec.norm_eps)
        gate, up = weights.gate_up(h).chunk(2, dim=-1)
        return weights.down.add(F.silu(gate).mul_(up), x)

    def sublayer(self, index: int, x: Tensor, batch: AttentionBatch, variant: int = TARGET) -> Tensor:
        """Run sublayer `index` of 0 .. 2L-1."""
        layer, is_mlp = divmod(index, 2)
        return self.mlp(layer, x, variant) if is_mlp else self.attend(layer, x, batch, variant)

    def run(self, x: Tensor, batch: AttentionBatch, record: list[Tensor] | None = None) -> Tensor:
        """Run all sublayers. `record` receives the 2L+1 residual streams, X^(0) first, without copies."""
        if record is not None:
            record.append(x)
        for index in range(self.spec.sublayers):
            x = self.sublayer(index, x, batch)
            if record is not None:
                record.append(x)
        return x

    def run_plan(self, x: Tensor, batch: AttentionBatch, variants: Variants) -> Tensor:
        """Run the sublayers of a plan, the same for all rows."""
        for index in range(self.spec.sublayers):
            if variants[index] != SKIP:
                x = self.sublayer(index, x, batch, variants[index])
        return x

    def run_plans(self, x: Tensor, batch: AttentionBatch, plans: Sequence[Variants]) -> Tensor:
        """Run row r through the sublayers of plans[r]. Rows with the same variant of a sublayer run together."""
        if all(plan == plans[0] for plan in plans):
            return self.run_plan(x, batch, plans[0])
        for index in range(self.spec.sublayers):
            for variant in sorted({plan[index] for plan in plans} - {SKIP}):
                rows = tuple(r for r, plan in enumerate(plans) if plan[index] == variant)
                if len(rows) == len(plans):
                    x = self.sublayer(index, x, batch, variant)
                elif rows:
                    where = to_device(rows, x.device)
                    part = self.sublayer(index, x.index_select(0, where), batch.select(rows), variant)
                    x = x.index_copy(0, where, part)
        return x

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
        attention: Attention,
        requests: Sequence[DraftRequest],
        *,
        ahead: bool = False,
        on_wait: OnWait | None = None,
    ) -> Drafted:
        """Run all draft passes of a round (`passes.draft_in_lock_step`). Backends may run them in one call."""
        return draft_in_lock_step(self, attention, requests, ahead=ahead, on_wait=on_wait)

    def verify(
        self,
        attention: Attention,
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

    def fill_rows(self, table: SearchTable, batch_of: Callable[[int], AttentionBatch], count: int) -> None:
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
