"""Multiply linear layers on a GPU: few rows by the Triton kernels of `products`, more rows by torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.backends.cuda.graphs import FusedLinear
from engine.backends.cuda.packed import PackedRowsLinear
from engine.backends.cuda.products import ROWS, normalise, product
from engine.backends.cuda.torch_int4 import Int4Linears, device_seconds
from engine.model.linear import Linear, PlainLinear, Release
from engine.model.low_bit import GROUP, lowered
from engine.quantised.packed import PackedRows, unpack_weights

_LOWERED = 8192  # outputs quantised at a time
_MANY = 32768  # outputs: only output heads have so many


class RowsLinears:
    """Make `RowsLinear`s, and packed layers on `device`."""

    shares = True

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._int4 = Int4Linears(device_seconds)

    def __call__(self, weight: Tensor, bias: Tensor | None, /, *, gated: bool = False) -> RowsLinear:
        return RowsLinear(weight, bias, gated=gated)

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
        return PackedRowsLinear(parts, bias, gated=gated, device=self._device)

    def lowers(self, linear: Linear, /) -> bool:
        """Whether the weights are not packed and divide into groups."""
        return isinstance(linear, RowsLinear) and linear._weight.shape[1] % GROUP == 0

    def lower(self, linear: Linear, bits: int, /) -> FusedLinear:
        assert isinstance(linear, RowsLinear)
        rows = [lowered(part, bits) for part in linear._weight.split(_LOWERED)]  # type: ignore[no-untyped-call]
        if bits != 4:
            return PackedRowsLinear(rows, linear._bias, gated=linear._gated, device=self._device)
        codes, scales, _ = zip(*map(unpack_weights, rows), strict=True)
        scale = torch.cat([factors.numbers for factors in scales])
        return self._int4(torch.cat(codes), scale, linear._bias, linear._weight.dtype, gated=linear._gated)


class RowsLinear(PlainLinear):
    """A `FusedLinear` in float16 or bfloat16: up to `most` rows by the Triton kernel, more by torch."""

    most = ROWS[1]

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, gated: bool = False) -> None:
        super().__init__(weight, bias)
        self._gated = gated

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x) if len(x) > self.most else product(x, self._weight, bias=self._bias)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        if len(x) > self.most:
            return super().add(x, residual)
        return product(x, self._weight, bias=self._bias, residual=residual)

    def normed(self, x: Tensor, norm: Tensor, epsilon: float) -> Tensor:
        """Multiply the RMSNorm of x [rows ≤ most, in]; fused only for heads, as narrow tiles would repeat the norm."""
        if len(self._weight) >= _MANY and x.dtype == torch.bfloat16:
            return product(x, self._weight, norm=norm, epsilon=epsilon, bias=self._bias)
        return product(normalise(x, norm[None], epsilon, torch.empty_like(x)), self._weight, bias=self._bias)

    def gated(self, x: Tensor, norm: Tensor, epsilon: float) -> Tensor:
        """Do the same and return silu(first half) · second half.

        The fused norm divides after the product, where float16 could overflow: float16 norms first.
        """
        if x.dtype == torch.bfloat16:
            return product(x, self._weight, norm=norm, epsilon=epsilon, bias=self._bias, gated=True)
        normed = normalise(x, norm[None], epsilon, torch.empty_like(x))
        return product(normed, self._weight, bias=self._bias, gated=True)

    def normalise_heads(self, qkv: Tensor, weight: Tensor, epsilon: float) -> None:
        normalise(qkv, weight, epsilon, qkv)
