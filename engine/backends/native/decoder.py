"""Decode with one call of the native library per pass. The residual stream is float32."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.backends.native.attention import NativeAttention, NativeBatch
from engine.backends.native.exchange import DraftBuffers, LogitEdits, edit_time
from engine.backends.native.linear import PANEL, native_linear, packed_format, row_addresses
from engine.kernels import structures as native
from engine.model.attention import AttentionOf
from engine.model.decoder import Draft, ModelWeights, OneCallDecoder, Verified, VerifyPass
from engine.plans import RECENT, SINKS, TARGET, Variants
from engine.sampling.sample import Edit, Sampler, sampling_array
from engine.step import Work


def fits(spec: ModelSpec) -> bool:
    """Whether the kernels can run this shape: they read whole vectors only."""
    return spec.intermediate % PANEL == 0 and spec.head_dim % PANEL == 0 and spec.hidden % 2 == 0


class NativeDecoder(OneCallDecoder[NativeBatch]):
    """A decoder over `NativeLinear`s and the batches of a `NativeAttention`."""

    def __init__(self, spec: ModelSpec, dtype: torch.dtype, weights: ModelWeights, sampler: Sampler) -> None:
        """Describe the weights to the kernels. A packed embedding stays in the file's own memory."""
        super().__init__(spec, dtype, weights, sampler)
        self._norm = weights.norm.float()
        made_by = native_linear(weights.heads[TARGET]).made_by
        self._library, self._executor = made_by.library, made_by.executor
        self._layer_norms: list[Tensor] = []  # keeps the tensors alive to which the layers' structures point
        self._layer_structs = (native.Layer * spec.layers)(*(self._layer(index) for index in range(spec.layers)))
        self._whole = bytes(spec.whole)
        sizes = (spec.layers, spec.hidden, spec.heads, spec.kv_heads, spec.head_dim, spec.intermediate, RECENT, SINKS)
        self._model = native.Model(*sizes, spec.norm_eps, self._layer_structs)
        self._ends = self._embed_and_head()
        self._edits = LogitEdits(spec.vocab)
        self._draft_buffers: dict[tuple[int, int], DraftBuffers] = {}  # keys: requests, longest draft in tokens

    def _layer(self, index: int) -> native.Layer:
        def pointer(tensor: Tensor) -> int:
            self._layer_norms.append(tensor.float().contiguous())
            return self._layer_norms[-1].data_ptr()

        weights = self._layers[TARGET][index]
        layer = native.Layer(
            attention_norm=pointer(weights.attention_norm),
            mlp_norm=pointer(weights.mlp_norm),
            qk_norm=None if weights.qk_norm is None else pointer(weights.qk_norm),
            window=self.spec.windows[index] if self.spec.windows else 0,
        )
        for variant in self._heads:
            for name in ("qkv", "output", "gate_up", "down"):
                linear = native_linear(getattr(self._layers[variant][index], name))
                getattr(layer, name)[variant - TARGET] = linear.struct
        return layer

    def embed_ids(self, tokens: Tensor) -> Tensor:
        if self.weights.packed_embedding is None:
            return self.weights.embedding.index_select(0, tokens).float()
        packed = self.weights.packed_embedding.select(tokens)
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

    def draft(self, attention: AttentionOf[NativeBatch], work: Sequence[Work]) -> list[Draft]:
        assert isinstance(attention, NativeAttention)
        size = len(work), max([w.gamma for w in work])
        buffers = self._draft_buffers.get(size)
        if buffers is None:
            buffers = self._draft_buffers[size] = DraftBuffers(*size, self._edits)
        buffers.load(work, attention.cache)

        def edit(i: int, drafted: int, row: Callable[[], Tensor]) -> bool:
            processor, so_far = work[i].processor, buffers.so_far(i, drafted)
            assert processor is not None
            if edit_time(work[i]) == native.EDIT_AFTER_DRAW:  # the last of these tokens is the one to draw again
                so_far = so_far[:-1]
            processor.edit(row(), so_far)
            return True

        self._edits.begin(edit)
        self._ends.rope = attention.rope
        self._library.draft(self._executor, self._model, attention.cache.struct, self._ends, buffers.batch)
        self._edits.finish()
        return buffers.drafts()

    def verify(self, attention: AttentionOf[NativeBatch], rows: VerifyPass) -> Verified:
        batch, count = attention.prepare(rows.segments), len(rows.draw_rows)
        records = torch.empty(self.spec.sublayers + 1, batch.rows, self.spec.hidden) if rows.record else None
        drawn = (ctypes.c_int32 * count)()

        def edit(i: int, _: int, row: Callable[[], Tensor]) -> bool:
            edit_logits = rows.edits[i]
            assert edit_logits is not None
            edit_logits(row())
            return True

        self._edits.begin(edit)
        verify = native.VerifyBatch(
            plan=self._whole if rows.variants is None else bytes(rows.variants),
            tokens=(ctypes.c_int32 * batch.rows)(*rows.tokens),
            slabs=batch.slabs,
            positions=batch.positions,
            draw_rows=(ctypes.c_int32 * count)(*rows.draw_rows),
            sampling=sampling_array(rows.sampling),
            edited=bytes([edit is not None for edit in rows.edits]) if rows.edits else bytes(count),
            edit=self._edits.callback,
            drawn=drawn,
            scores=ctypes.pointer(scores := ctypes.c_void_p()),
            records=None if records is None else records.data_ptr(),
            rows=batch.rows,
            draws=count,
        )
        self._ends.rope = batch.rope
        self._library.verify(self._executor, self._model, batch.cache, self._ends, verify)
        self._edits.finish()

        def redraw(i: int, edit: Edit) -> int:
            assert scores.value is not None
            row = self._edits.row(scores.value + 4 * i * self.spec.vocab)
            edit(row)
            sampling = rows.sampling[i]
            if not sampling.greedy:  # the kernels have divided these logits by the temperature
                sampling = replace(sampling, temperature=1.0)
            position = batch.positions[rows.draw_rows[i]] + 1
            return self.sampler.sample(row[None], [sampling], [position]).wait().tokens[0]

        return Verified(drawn[:], None if records is None else list(records.unbind(0)), redraw)

    def _embed_and_head(self) -> native.EmbedAndHead:
        """Describe embedding and heads to the kernels. The address of an attention's RoPE factors is set later."""
        embedding, packed = self.weights.embedding, self.weights.packed_embedding
        assert packed is not None or embedding.dtype in (torch.bfloat16, torch.float32)
        ends = native.EmbedAndHead(
            embedding=embedding.data_ptr(), norm=self._norm.data_ptr(), float32=embedding.dtype == torch.float32
        )
        for variant, head in self._heads.items():
            ends.head[variant - TARGET] = native_linear(head).struct
        if packed is not None:
            ends.row_bytes, ends.format = embedding.stride(0), packed_format(packed)
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
        passed = native.Pass(
            rope=batch.rope,
            x=x.data_ptr(),
            slabs=ctypes.addressof(batch.slabs),
            positions=ctypes.addressof(batch.positions),
            plans=ctypes.cast(ctypes.c_char_p(plans), ctypes.c_void_p),
            records=None if records is None else records.data_ptr(),
            plan_stride=stride,
            rows=batch.rows,
            first=first,
            last=self.spec.sublayers if last is None else last,
            read_only=batch.read_only,
        )
        self._library.run(self._executor, self._model, batch.cache, passed)
        return x
