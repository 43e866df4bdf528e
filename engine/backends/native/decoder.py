"""Decode with one call of the native library per pass. The residual stream is float32."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.backends.native.attention import NativeAttention, NativeBatch
from engine.backends.native.exchange import DraftBuffers, LogitEdits
from engine.backends.native.linear import PANEL, native_linear, packed_format, row_addresses
from engine.kernels import structures as native
from engine.model.attention import AttentionOf, Segment
from engine.model.decoder import DecoderOf, LayerWeights, ModelWeights
from engine.model.linear import Linear
from engine.model.passes import Drafted, DraftRequest, Draws, OnWait, Verified
from engine.plans import LOW_BIT, RECENT, SINKS, TARGET, Variants
from engine.sampling.sample import Edit, Sampler, sampling_array


def fits(spec: ModelSpec) -> bool:
    """Whether the kernels can run this shape: they read whole vectors only."""
    return spec.intermediate % PANEL == 0 and spec.head_dim % PANEL == 0 and spec.hidden % 2 == 0


class NativeDecoder(DecoderOf[NativeBatch]):
    """A decoder over `NativeLinear`s and the batches of a `NativeAttention`."""

    drafts_in_one_call = True

    def __init__(self, spec: ModelSpec, dtype: torch.dtype, weights: ModelWeights, sampler: Sampler) -> None:
        """Describe the weights to the kernels. A packed embedding stays in the file's own memory."""
        super().__init__(spec, dtype, replace(weights, norm=weights.norm.float()), sampler)
        self._packed_embedding = weights.packed_embedding
        made_by = native_linear(weights.head).made_by
        self._library, self._executor = made_by.library, made_by.executor
        self._layer_norms: list[Tensor] = []  # keeps the tensors alive to which the layers' structures point
        self._layer_structs = (native.Layer * spec.layers)(*(self._layer(i, w) for i, w in enumerate(weights.layers)))
        self._whole = bytes(spec.whole)
        sizes = (spec.layers, spec.hidden, spec.heads, spec.kv_heads, spec.head_dim, spec.intermediate, RECENT, SINKS)
        self._model = native.Model(*sizes, spec.norm_eps, self._layer_structs)
        self._edits = LogitEdits(spec.vocab)
        self._draft_buffers: dict[tuple[int, int], DraftBuffers] = {}  # keys: requests, longest draft in tokens
        self._embed_and_head_made: tuple[int, list[Linear], native.EmbedAndHead] | None = None

    def _layer(self, index: int, weights: LayerWeights) -> native.Layer:
        def pointer(tensor: Tensor) -> int:
            self._layer_norms.append(tensor.float().contiguous())
            return self._layer_norms[-1].data_ptr()

        layer = native.Layer(
            attention_norm=pointer(weights.attention_norm),
            mlp_norm=pointer(weights.mlp_norm),
            qk_norm=None if weights.qk_norm is None else pointer(weights.qk_norm),
            window=self.spec.windows[index] if self.spec.windows else 0,
        )
        _set_linears(layer, weights, TARGET)
        return layer

    def add_low_bit(self, layers: Sequence[LayerWeights], head: Linear) -> None:
        super().add_low_bit(layers, head)
        for weights, layer in zip(layers, self._layer_structs, strict=True):
            _set_linears(layer, weights, LOW_BIT)

    @property
    def weight_tensors(self) -> Sequence[Tensor]:
        return [weight for linear in self.linears for weight in native_linear(linear).weights]

    @property
    def weight_bytes(self) -> int:
        return sum(weight.nbytes for weight in self.weight_tensors)

    def embed_ids(self, tokens: Tensor) -> Tensor:
        if self._packed_embedding is None:
            return self._embedding.index_select(0, tokens).float()
        packed = self._packed_embedding.select(tokens)
        out, addresses = torch.empty(packed.shape), row_addresses(packed)
        self._library.read_rows(packed_format(packed), addresses.ctypes.data, *packed.shape, out.data_ptr())
        return out

    def run(
        self, x: Tensor, batch: NativeBatch, record: list[Tensor] | None = None, *, variants: Variants | None = None
    ) -> Tensor:
        records = None
        if record is not None:
            records = x.new_empty(self.spec.sublayers + 1, *x.shape)
            record += records.unbind(0)
        return self._pass(x, batch, bytes(variants) if variants else self._whole, records=records)

    def run_plans(self, x: Tensor, batch: NativeBatch, plans: Sequence[Variants]) -> Tensor:
        if all(plan == plans[0] for plan in plans):
            return self._pass(x, batch, bytes(plans[0]))
        return self._pass(x, batch, b"".join(map(bytes, plans)), stride=self.spec.sublayers + 1)

    def sublayer(self, index: int, x: Tensor, batch: NativeBatch, variant: int = TARGET) -> Tensor:
        return self._pass(x, batch, bytes([variant]) * len(self._whole), first=index, last=index + 1)

    def head(self, x: Tensor, variant: int = TARGET) -> Tensor:
        return native_linear(self._heads[variant])(x, self._norm, self.spec.norm_eps)

    def draft(
        self,
        attention: AttentionOf[NativeBatch],
        requests: Sequence[DraftRequest],
        *,
        pipelined: bool = False,
        on_wait: OnWait | None = None,
    ) -> Drafted:
        if not self._kernels_embed:
            return super().draft(attention, requests, pipelined=pipelined, on_wait=on_wait)
        assert isinstance(attention, NativeAttention)
        size = len(requests), max([r.gamma for r in requests])
        buffers = self._draft_buffers.get(size)
        if buffers is None:
            buffers = self._draft_buffers[size] = DraftBuffers(*size, self._edits)
        buffers.load(requests, attention.cache)

        def edit(i: int, drafted: int, row: Callable[[], Tensor]) -> bool:
            request, so_far = requests[i], buffers.so_far(i, drafted)
            assert request.edit is not None
            if request.mask_after_draw:  # the last of these tokens is the one to draw again
                so_far = so_far[:-1]
            request.edit(row(), so_far)
            return True

        self._edits.begin(edit)
        ends, cache = self._embed_and_head(attention.rope), attention.cache.struct
        passes = self._library.draft(self._executor, self._model, cache, ends, buffers.batch)
        self._edits.finish()
        return buffers.drafted(passes)

    def verify(
        self,
        attention: AttentionOf[NativeBatch],
        segments: Sequence[Segment],
        tokens: Sequence[int],
        draws: Draws,
        *,
        record: bool = False,
        keep_logits: bool = False,
        variants: Variants | None = None,
        on_wait: OnWait | None = None,
    ) -> Verified:
        if keep_logits or not self._kernels_embed:  # the kernels keep neither hidden states nor unedited logits
            return super().verify(attention, segments, tokens, draws, record=record, variants=variants, on_wait=on_wait)
        rows = attention.prepare(segments)
        count = len(draws.rows)
        records = torch.empty(self.spec.sublayers + 1, rows.rows, self.spec.hidden) if record else None
        drawn = (ctypes.c_int32 * count)()

        def edit(i: int, _: int, row: Callable[[], Tensor]) -> bool:
            edit_logits = draws.edits[i]
            assert edit_logits is not None
            edit_logits(row())
            return True

        self._edits.begin(edit)
        verify = native.VerifyBatch(
            plan=self._whole if variants is None else bytes(variants),
            tokens=(ctypes.c_int32 * rows.rows)(*tokens),
            slabs=rows.slabs,
            positions=rows.positions,
            draw_rows=(ctypes.c_int32 * count)(*draws.rows),
            sampling=sampling_array(draws.sampling),
            edited=bytes([edit is not None for edit in draws.edits]) if draws.edits else bytes(count),
            edit=self._edits.callback,
            drawn=drawn,
            scores=ctypes.pointer(scores := ctypes.c_void_p()),
            records=None if records is None else records.data_ptr(),
            rows=rows.rows,
            draws=count,
        )
        ends = self._embed_and_head(rows.rope)
        self._library.verify(self._executor, self._model, rows.cache, ends, verify)
        self._edits.finish()

        def redraw(i: int, edit: Edit) -> int:
            assert scores.value is not None
            row = self._edits.row(scores.value + 4 * i * self.spec.vocab)
            edit(row)
            sampling = draws.sampling[i]
            if not sampling.greedy:  # the kernels have divided these logits by the temperature
                sampling = replace(sampling, temperature=1.0)
            position = rows.positions[draws.rows[i]] + 1
            return self.sampler.sample(row[None], [sampling], [position]).wait().tokens[0]

        return Verified(drawn[:], None if records is None else list(records.unbind(0)), redraw)

    @property
    def _kernels_embed(self) -> bool:
        """Whether the kernels can look tokens up in the embedding."""
        return self._packed_embedding is not None or self._embedding.dtype in (torch.bfloat16, torch.float32)

    def _embed_and_head(self, rope: int) -> native.EmbedAndHead:
        """Describe embedding and heads to the kernels. `rope`: address of the attention's RoPE factors."""
        heads = [*self._heads.values()]
        if self._embed_and_head_made is not None and self._embed_and_head_made[:2] == (rope, heads):
            return self._embed_and_head_made[2]
        ends = native.EmbedAndHead(
            embedding=self._embedding.data_ptr(),
            norm=self._norm.data_ptr(),
            rope=rope,
            float32=self._embedding.dtype == torch.float32,
        )
        for variant, head in self._heads.items():
            ends.head[variant - TARGET] = native_linear(head).struct
        if self._packed_embedding is not None:
            ends.row_bytes, ends.format = self._embedding.stride(0), packed_format(self._packed_embedding)
        self._embed_and_head_made = rope, heads, ends
        return ends

    def _pass(
        self,
        x: Tensor,
        batch: NativeBatch,
        plans: bytes,
        *,
        stride: int = 0,
        first: int = 0,
        last: int | None = None,
        records: Tensor | None = None,
    ) -> Tensor:
        """Run the sublayers first … last-1 of the plans on a copy of x [rows, hidden].

        `stride`: bytes from one row's plan to the next; 0: one plan for all rows.
        """
        x = x.clone(memory_format=torch.contiguous_format)
        assert x.shape[0] == batch.rows
        last = self.spec.sublayers if last is None else last
        passed = _pass_struct(batch, x, plans, stride, first, last, records)
        self._library.run(self._executor, self._model, batch.cache, passed)
        return x


def _set_linears(layer: native.Layer, weights: LayerWeights, variant: int) -> None:
    for name in ("qkv", "output", "gate_up", "down"):
        getattr(layer, name)[variant - TARGET] = native_linear(getattr(weights, name)).struct


def _pass_struct(
    batch: NativeBatch, x: Tensor, plans: bytes, stride: int, first: int, last: int, records: Tensor | None = None
) -> native.Pass:
    """Describe a pass over x [rows, hidden] to the kernels; `records` is [2L+1, rows, hidden].

    The caller keeps x, plans and records alive until the pass ends.
    """
    return native.Pass(
        batch.rope,
        x.data_ptr(),
        ctypes.addressof(batch.slabs),
        ctypes.addressof(batch.positions),
        ctypes.cast(ctypes.c_char_p(plans), ctypes.c_void_p),
        None if records is None else records.data_ptr(),
        *(stride, batch.rows, first, last, batch.read_only),
    )
