"""Linear layers behind one protocol; `engine.model.linear_onednn` is the packed CPU backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


class Linear(Protocol):
    """A weight matrix [out, in], in whatever form its backend reads fastest."""

    pads: bool  # whether a new number of rows costs the backend time, so that passes should keep to few

    def __call__(self, x: Tensor) -> Tensor:
        """x [rows, in] -> [rows, out]."""
        ...

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """x [rows, in], residual [rows, out] -> residual + x·Wᵀ, a new tensor."""
        ...


LinearFactory = Callable[[Tensor], Linear]


def padded_rows(rows: int) -> int:
    """The row count to run instead: about 50 of them cover 1 to 512 rows, at a few per cent more work."""
    step = 1 if rows <= 8 else 2 if rows <= 32 else 4 if rows <= 64 else 8 if rows <= 128 else 32
    return -(-rows // step) * step


class PlainLinear:
    """torch's own matrix product: every device and dtype."""

    name = "plain"
    pads = False

    def __init__(self, weight: Tensor) -> None:
        self._weight = weight

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self._weight)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        return torch.addmm(residual, x, self._weight.t())


def linear_backend(device: torch.device, dtype: torch.dtype) -> tuple[str, LinearFactory]:
    """The fastest backend that exists for `device` and `dtype`, with its name (part of profile keys)."""
    if device.type == "cpu" and dtype == torch.bfloat16:
        from engine.model.linear_onednn import PackedLinear, onednn_available

        if onednn_available():
            return PackedLinear.name, PackedLinear
    return PlainLinear.name, PlainLinear
