"""Linear layers whose weights lie as the native kernels read them."""

from __future__ import annotations

import contextlib
import ctypes
import mmap

import torch
from torch import Tensor

from engine.native import library as native

PANEL = 32  # outputs that lie together
_HUGE = 2 << 20  # bytes of a huge page
_BLOCK = 64 << 20  # bytes that small weights are cut from
_LARGE = 8 << 20  # bytes of a weight that gets pages of its own
_LINE = 64  # bytes of a cache line


class NativeLinears:
    """Makes `NativeLinear`s for a team of threads."""

    name = "native"
    shares = False

    def __init__(self, library: native.Library, threads: int) -> None:
        self.library, self.team = library, library.team(threads)
        self._block = torch.empty(0, dtype=torch.bfloat16)

    def room(self, elements: int) -> Tensor:
        """Uninitialised bf16 [elements]. Weights lie one behind the other: those of a small model are smaller than a
        huge page each, and a pass would wait for the addresses of thousands of small pages."""
        if elements * torch.bfloat16.itemsize >= _LARGE:
            return huge(elements, torch.bfloat16)
        size = -(-elements * torch.bfloat16.itemsize // _LINE) * _LINE // torch.bfloat16.itemsize
        if size > len(self._block):
            self._block = huge(_BLOCK // torch.bfloat16.itemsize, torch.bfloat16)
        taken, self._block = self._block[:elements], self._block[size:]
        return taken

    def __call__(self, weight: Tensor, bias: Tensor | None, /, *, gated: bool = False) -> NativeLinear:
        return NativeLinear(self, weight, bias, gated)


class NativeLinear:
    """A packed copy, float32 in and out; the original may be freed."""

    pads = False

    def __init__(self, made_by: NativeLinears, weight: Tensor, bias: Tensor | None, gated: bool) -> None:
        """`gated`: only a whole MLP understands the order of the outputs then."""
        assert weight.dtype == torch.bfloat16
        weight = weight.contiguous()
        self.made_by = made_by
        out, inputs = weight.shape
        self.packed = made_by.room(-(-out // PANEL) * PANEL * inputs)
        self._bias = None if bias is None else bias.float().contiguous()
        if gated and self._bias is not None:
            self._bias = self._bias.view(2, -1, PANEL // 2).transpose(0, 1).reshape(-1)
        made_by.library.pack(weight.data_ptr(), out, inputs, self.packed.data_ptr(), gated)
        self.struct = native.Linear(
            self.packed.data_ptr(), None if self._bias is None else self._bias.data_ptr(), out, inputs
        )

    def __call__(self, x: Tensor, norm: Tensor | None = None, epsilon: float = 0.0) -> Tensor:
        """x [rows, in] float32 -> [rows, out] float32; `norm` [in] float32: of RMSNorm(x)."""
        assert x.dtype == torch.float32
        x = x.contiguous()
        rows = x.shape[0]
        out = torch.empty(rows, self.struct.out, dtype=torch.float32)
        weight = None if norm is None else norm.data_ptr()
        product, struct = self.made_by.library.product, ctypes.byref(self.struct)
        product(self.made_by.team, struct, x.data_ptr(), rows, out.data_ptr(), weight, epsilon)
        return out

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        return residual + self(x)


def huge(elements: int, dtype: torch.dtype) -> Tensor:
    """Uninitialised memory, in huge pages where the system has them: passes read all of it."""
    size = elements * dtype.itemsize
    if size < _HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(elements, dtype=dtype)
    pages = mmap.mmap(-1, size + _HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel without them
        pages.madvise(mmap.MADV_HUGEPAGE)
    address = torch.frombuffer(pages, dtype=torch.uint8).data_ptr()
    return torch.frombuffer(pages, dtype=dtype, count=elements, offset=-address % _HUGE)
