"""The decoder whose passes are single calls of the native library. The residual stream is float32."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from engine.model.attention import AttentionBatch
from engine.model.decoder import Decoder, LayerWeights
from engine.model.linear import Linear
from engine.model.spec import ModelSpec
from engine.native import library as native
from engine.native.attention import NativeBatch
from engine.native.linear import PANEL, NativeLinear


def fits(spec: ModelSpec) -> bool:
    """Whether the kernels can run this shape: they take whole vectors."""
    return spec.intermediate % PANEL == 0 and spec.head_dim % PANEL == 0 and spec.hidden % 2 == 0


class NativeDecoder(Decoder):
    """A `Decoder` over `NativeLinear`s and the batches of a `NativeAttention`."""

    def __init__(
        self,
        spec: ModelSpec,
        dtype: torch.dtype,
        embedding: Tensor,
        layers: Sequence[LayerWeights],
        norm: Tensor,
        head: Linear,
    ) -> None:
        super().__init__(spec, dtype, embedding, layers, norm.float(), head)
        made_by = cast(NativeLinear, head).made_by
        self._run, self._team = made_by.library.run, made_by.team
        self._kept: list[Tensor] = []  # what the structures point to
        self._structs = (native.Layer * spec.layers)(*(self._layer(i, w) for i, w in enumerate(layers)))
        self._all = bytes([1]) * spec.sublayers
        sizes = (spec.layers, spec.hidden, spec.heads, spec.kv_heads, spec.head_dim, spec.intermediate)
        self._model = ctypes.byref(native.Model(*sizes, spec.norm_eps, self._structs))

    def _layer(self, index: int, weights: LayerWeights) -> native.Layer:
        def pointer(tensor: Tensor) -> int:
            self._kept.append(tensor.float().contiguous())
            return self._kept[-1].data_ptr()

        def struct(linear: Linear) -> native.Linear:
            return cast(NativeLinear, linear).struct

        return native.Layer(
            pointer(weights.attention_norm),
            pointer(weights.mlp_norm),
            None if weights.qk_norm is None else pointer(weights.qk_norm),
            struct(weights.qkv),
            struct(weights.output),
            struct(weights.gate_up),
            struct(weights.down),
            self.spec.windows[index] if self.spec.windows else 0,
        )

    def embed_ids(self, tokens: Tensor) -> Tensor:
        return self._embedding.index_select(0, tokens).float()

    def run(self, x: Tensor, batch: AttentionBatch, record: list[Tensor] | None = None) -> Tensor:
        records = None
        if record is not None:
            records = x.new_empty(self.spec.sublayers + 1, *x.shape)
            record += records.unbind(0)
        return self._pass(x, batch, self._all, records=records)

    def run_plan(self, x: Tensor, batch: AttentionBatch, variants: tuple[int, ...]) -> Tensor:
        return self._pass(x, batch, bytes(variants))

    def run_plans(self, x: Tensor, batch: AttentionBatch, plans: Sequence[tuple[int, ...]]) -> Tensor:
        if all(plan == plans[0] for plan in plans):
            return self._pass(x, batch, bytes(plans[0]))
        return self._pass(x, batch, b"".join(map(bytes, plans)), stride=self.spec.sublayers)

    def sublayer(self, index: int, x: Tensor, batch: AttentionBatch) -> Tensor:
        return self._pass(x, batch, self._all, first=index, last=index + 1)

    def head(self, x: Tensor) -> Tensor:
        return cast(NativeLinear, self._head)(x, self._norm, self.spec.norm_eps)

    def _pass(
        self,
        x: Tensor,
        batch: AttentionBatch,
        plans: bytes,
        *,
        stride: int = 0,
        first: int = 0,
        last: int | None = None,
        records: Tensor | None = None,
    ) -> Tensor:
        """Sublayers first … last-1 that the plans name, on a copy of x [rows, hidden]."""
        b = cast(NativeBatch, batch)
        x = x.clone(memory_format=torch.contiguous_format)
        assert x.shape[0] == b.rows
        self._run(
            self._team,
            self._model,
            b.cache,
            native.Pass(
                b.rope,
                x.data_ptr(),
                ctypes.addressof(b.slabs),
                ctypes.addressof(b.positions),
                ctypes.cast(ctypes.c_char_p(plans), ctypes.c_void_p),
                None if records is None else records.data_ptr(),
                *(stride, b.rows, first, self.spec.sublayers if last is None else last, b.own),
            ),
        )
        return x
