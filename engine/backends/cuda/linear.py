"""Linear layers of a GPU: few rows by the Triton kernels of `products`, more by torch; packed weights by `packed`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.backends.cuda.packed import PackedRowsLinear
from engine.backends.cuda.products import ROWS, normalise, product
from engine.model.linear import Linear
from engine.model.low_bit import GROUP, lowered
from engine.quantised.packed import PackedRows

_LOWERED = 8192  # outputs that are copied in fewer bits at a time
_MANY = 32768  # outputs, as heads have


class RowsLinear:
    """A linear layer for float16 and bfloat16: few rows by the kernel above, more by torch's product."""

    shares = True
    most = ROWS[1]  # rows of the kernel

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, gated: bool = False) -> None:
        self._weight, self._bias, self._gated = weight, bias, gated

    @classmethod
    def packed(
        cls,
        parts: Sequence[PackedRows],
        bias: Tensor | None,
        /,
        *,
        gated: bool = False,
        dtype: torch.dtype,
        device: torch.device,
        release: Callable[[], None],
    ) -> Linear:
        """The parts' outputs one below the other, their weights as they are."""
        return PackedRowsLinear(parts, bias, gated=gated, device=device)

    @classmethod
    def lower(cls, linear: Linear, bits: int, /) -> Linear | None:
        """A copy in so many bits."""
        if not isinstance(linear, RowsLinear) or linear._weight.shape[1] % GROUP:
            return None
        weight, gated = linear._weight, linear._gated
        rows = [lowered(part, bits) for part in weight.split(_LOWERED)]
        return PackedRowsLinear(rows, linear._bias, gated=gated, device=weight.device)

    def __call__(self, x: Tensor) -> Tensor:
        if len(x) > ROWS[1]:
            return F.linear(x, self._weight, self._bias)
        return product(x, self._weight, bias=self._bias)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        if len(x) > ROWS[1]:
            out = torch.addmm(residual, x, self._weight.t())
            return out if self._bias is None else out.add_(self._bias)
        return product(x, self._weight, bias=self._bias, residual=residual)

    def normed(self, x: Tensor, norm: Tensor, epsilon: float) -> Tensor:
        """Of the RMSNorm of x [rows ≤ most, in]. Narrow tiles would norm their input too often."""
        if len(self._weight) >= _MANY and x.dtype == torch.bfloat16:
            return product(x, self._weight, norm=norm, epsilon=epsilon, bias=self._bias)
        return product(normalise(x, norm[None], epsilon, torch.empty_like(x)), self._weight, bias=self._bias)

    def gated(self, x: Tensor, norm: Tensor, epsilon: float) -> Tensor:
        """The same, silu of the first half of it times the second. What is normed by the way is multiplied before it is
        divided, which float16 has no room for."""
        if x.dtype == torch.bfloat16:
            return product(x, self._weight, norm=norm, epsilon=epsilon, bias=self._bias, gated=True)
        normed = normalise(x, norm[None], epsilon, torch.empty_like(x))
        return product(normed, self._weight, bias=self._bias, gated=True)

    def normalise_heads(self, qkv: Tensor, weight: Tensor, epsilon: float) -> None:
        """RMSNorm of each of the first heads of qkv [rows, …] by weight [heads, head_dim], in place."""
        normalise(qkv, weight, epsilon, qkv)
