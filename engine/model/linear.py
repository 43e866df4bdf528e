"""Define the protocols of linear layers, and implement them with torch's matrix product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.quantised.packed import PackedRows

Release = Callable[[], None]  # drops the pages of a checkpoint's file that were read


class Linear(Protocol):
    """A weight matrix [out, in], with or without a bias [out], in the form that the backend reads fastest."""

    @property
    def weights(self) -> Sequence[Tensor]:
        """The memory of the matrix."""

    def __call__(self, x: Tensor) -> Tensor:
        """Multiply: x [rows, in] -> x·Wᵀ (+ bias) [rows, out]."""

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """Multiply x [rows, in] and add residual [rows, out]: residual + x·Wᵀ (+ bias), a new tensor."""


class LinearFactory(Protocol):
    """Makes the linear layers of a backend."""

    @property
    def shares(self) -> bool:
        """Whether layers refer to the weight itself instead of a copy in another form."""

    def __call__(self, weight: Tensor, bias: Tensor | None, /, *, gated: bool = False) -> Linear:
        """Make a layer from weight [out, in] and bias [out]; `gated`: the first half of the outputs gates the rest."""


class PackingFactory(Protocol):
    """Makes the layers of a backend that multiplies packed weights."""

    def packs(self, parts: Sequence[PackedRows], /, *, gated: bool = False) -> bool:
        """Whether `from_packed` can make a layer of these parts."""

    def from_packed(
        self,
        parts: Sequence[PackedRows],
        bias: Tensor | None,
        /,
        *,
        gated: bool = False,
        release: Release | None = None,
    ) -> Linear:
        """Make a layer from packed parts, one below the other, and bias [out], without unpacking them.

        The factory may call `release` to drop the pages of the parts' file that it has read: it does not read them
        again.
        """

    def lowers(self, linear: Linear, /) -> bool:
        """Whether `lower` can copy a layer in fewer bits than its weights have."""

    def lower(self, linear: Linear, bits: int, /) -> Linear:
        """Copy a layer in fewer bits, for drafts.

        Codes are symmetric, of 4, 5, 6 or 8 bits, in groups of 32 inputs that share a scale (`low_bit`).
        """


class PlainLinear:
    """A linear layer by torch's matrix product, for every device and dtype."""

    shares = True

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, gated: bool = False) -> None:
        self._weight, self._bias = weight, bias
        self.weights = [weight]

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self._weight, self._bias)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        out = torch.addmm(residual, x, self._weight.t())
        return out if self._bias is None else out.add_(self._bias)
