"""Linear layers whose weights lie as the native kernels read them."""

from __future__ import annotations

import ctypes
import mmap

import torch
from torch import Tensor

from engine.native import library as native

PANEL = 32  # outputs that lie together
_HUGE = 2 << 20  # bytes of a huge page


class NativeLinear:
    """Backend "native": a packed copy, float32 in and out; the original may be freed."""

    name = "native"
    shares = False
    pads = False

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, gated: bool = False) -> None:
        """`gated`: only a whole MLP understands the order of the outputs then."""
        found = native.library()
        assert found is not None
        self._library = found
        weight = weight.contiguous()
        out, inputs = weight.shape
        self._packed = _huge(-(-out // PANEL) * PANEL * inputs)
        self._bias = None if bias is None else bias.float().contiguous()
        if gated and self._bias is not None:
            self._bias = self._bias.view(2, -1, PANEL // 2).transpose(0, 1).reshape(-1)
        found.pack(weight.data_ptr(), out, inputs, self._packed.data_ptr(), gated)
        self.struct = native.Linear(
            self._packed.data_ptr(), None if self._bias is None else self._bias.data_ptr(), out, inputs
        )

    def __call__(self, x: Tensor, norm: Tensor | None = None, epsilon: float = 0.0) -> Tensor:
        """x [rows, in] float32 -> [rows, out] float32; `norm` [in] float32: of RMSNorm(x)."""
        x = x.contiguous()
        out = torch.empty(x.shape[0], self.struct.out, dtype=torch.float32)
        weight = None if norm is None else norm.data_ptr()
        self._library.product(ctypes.byref(self.struct), x.data_ptr(), x.shape[0], out.data_ptr(), weight, epsilon)
        return out

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        return residual + self(x)


def _huge(elements: int) -> Tensor:
    """Uninitialised bf16, in huge pages where the system has them: a pass reads all of it."""
    if 2 * elements < _HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(elements, dtype=torch.bfloat16)
    pages = mmap.mmap(-1, 2 * elements, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(pages, dtype=torch.bfloat16)
