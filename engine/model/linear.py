"""Linear layers behind one protocol, and torch's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.quantised.packed import PackedRows


class Linear(Protocol):
    """A weight matrix [out, in] and perhaps a bias [out], in whatever form the backend reads fastest."""

    def __call__(self, x: Tensor) -> Tensor:
        """x [rows, in] -> [rows, out]."""

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """x [rows, in], residual [rows, out] -> residual + x·Wᵀ (+ bias), a new tensor."""


class LinearFactory(Protocol):
    """Makes linear layers: a backend's class."""

    @property
    def shares(self) -> bool:
        """Whether they keep the weight itself rather than a form of their own."""

    def __call__(self, weight: Tensor, bias: Tensor | None, /, *, gated: bool = False) -> Linear:
        """weight [out, in], bias [out]; `gated`: the first half of the outputs gates the second."""

    def packed(
        self,
        parts: Sequence[PackedRows],
        bias: Tensor | None,
        /,
        *,
        gated: bool = False,
        dtype: torch.dtype,
        device: torch.device,
        release: Callable[[], None],
    ) -> Linear | None:
        """A matrix of parts, one below the other, whose weights stay as they are; None where that cannot be had.

        Inputs and outputs are in `dtype`. `release` may be called now and then: the parts' memory that was read so far
        is not read again, if it is a file's.
        """

    def lower(self, linear: Linear, bits: int, /) -> Linear | None:
        """A copy of a layer, for drafts: symmetric codes of 4, 5, 6 or 8 bits in groups of 32 inputs, the scale of each
        by squared error (docs/method.md); None where that cannot be had, or would be no smaller."""


class PlainLinear:
    """torch's own matrix product: every device and dtype."""

    shares = True

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, gated: bool = False) -> None:
        self._weight, self._bias = weight, bias

    @classmethod
    def packed(cls, *args: Any, **named: Any) -> None:
        """Nothing is read packed."""

    @classmethod
    def lower(cls, *args: Any) -> None:
        """Nothing is read in fewer bits."""

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self._weight, self._bias)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        out = torch.addmm(residual, x, self._weight.t())
        return out if self._bias is None else out.add_(self._bias)
