"""Linear layers behind one protocol; `engine.model.linear_onednn` is the packed CPU backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


class Linear(Protocol):
    """A weight matrix [out, in], in whatever form its backend reads fastest."""

    def __call__(self, x: Tensor) -> Tensor:
        """x [rows, in] -> [rows, out]."""
        ...

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """x [rows, in], residual [rows, out] -> residual + x·Wᵀ, a new tensor."""
        ...


LinearFactory = Callable[[Tensor], Linear]


class PlainLinear:
    """torch's own matrix product: every device and dtype."""

    name = "plain"

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
