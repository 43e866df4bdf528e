"""Multiply linear layers on a GPU: few rows by the Triton kernels of `products`, more rows by torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from engine.backends.cuda.graphs import FusedLinear
from engine.backends.cuda.launch import Launch
from engine.backends.cuda.packed import PackedRowsLinear
from engine.backends.cuda.products import ROWS, Prepared, normalise, prepared_norm, product
from engine.backends.cuda.torch_int4 import Int4Linears, device_seconds
from engine.model.linear import Linear, PlainLinear, Release
from engine.model.low_bit import GROUP, lowered
from engine.quantised.packed import PackedRows, unpack_weights

_LOWERED = 1 << 24  # weights quantised at a time, with 20 bytes of temporaries each


class RowsLinears:
    """Make `RowsLinear`s, packed layers, and copies in fewer bits."""

    shares = True

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._int4 = Int4Linears(launch, device_seconds if launch.device.type == "cuda" else None)

    def __call__(self, weight: Tensor, bias: Tensor | None, /, *, gated: bool = False) -> RowsLinear:
        return RowsLinear(weight, bias, self._launch, gated=gated)

    def packs(self, parts: Sequence[PackedRows], /, *, gated: bool = False) -> bool:
        return True

    def from_packed(
        self,
        parts: Sequence[PackedRows],
        bias: Tensor | None,
        /,
        *,
        gated: bool = False,
        release: Release | None = None,
    ) -> PackedRowsLinear:
        return PackedRowsLinear(parts, bias, gated=gated, launch=self._launch)

    def lowers(self, linear: Linear, /) -> bool:
        """Whether the weights are not packed and divide into groups."""
        return isinstance(linear, RowsLinear) and linear._weight.shape[1] % GROUP == 0

    def lower(self, linear: Linear, bits: int, /) -> FusedLinear:
        assert isinstance(linear, RowsLinear)
        parts = linear._weight.split(max(1, _LOWERED // linear._weight.shape[1]))  # type: ignore[no-untyped-call]
        rows = [lowered(part, bits) for part in parts]
        if bits != 4:
            return PackedRowsLinear(rows, linear._bias, gated=linear._gated, launch=self._launch)
        codes, scales, _ = zip(*map(unpack_weights, rows), strict=True)
        scale = torch.cat([factors.numbers for factors in scales])
        return self._int4(torch.cat(codes), scale, linear._bias, linear._weight.dtype, gated=linear._gated)


class RowsLinear(PlainLinear):
    """A `FusedLinear` in float16 or bfloat16: up to `most` rows by the Triton kernel, more by torch."""

    most = ROWS[1]

    def __init__(self, weight: Tensor, bias: Tensor | None, launch: Launch, *, gated: bool = False) -> None:
        super().__init__(weight, bias)
        self._launch, self._gated = launch, gated

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x) if len(x) > self.most else self._product(x)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        return super().add(x, residual) if len(x) > self.most else self._product(x, residual=residual)

    def add_before(self, x: Tensor, residual: Tensor, norm: Tensor) -> tuple[Tensor, Prepared | None]:
        before = prepared_norm(x, norm)
        return product(x, self._weight, self._launch, bias=self._bias, residual=residual, before=before)

    def normed(
        self, x: Tensor, prepared: Prepared | None, norm: Tensor, epsilon: float, out: Tensor | None = None
    ) -> Tensor:
        return self._product(prepared or normalise(x, norm, epsilon, self._launch), epsilon=epsilon, out=out)

    def gated(self, x: Tensor, prepared: Prepared | None, norm: Tensor, epsilon: float) -> Tensor:
        return self._product(prepared or normalise(x, norm, epsilon, self._launch), epsilon=epsilon, gated=True)

    def _product(self, x: Tensor | Prepared, **fused: Any) -> Tensor:
        """Multiply x [rows ≤ most, in]."""
        return product(x, self._weight, self._launch, bias=self._bias, **fused)[0]
