"""Linear layers whose weights lie as the native kernels read them."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType
from numpy.typing import NDArray
from torch import Tensor

from engine.kernels import library as native
from engine.model.linear import Linear
from engine.quantised.packed import PackedRows

Addresses = NDArray[np.uint64]

PANEL = 32  # outputs that lie together
CHUNK = 256  # inputs whose scales lie together, where weights are packed
_OWN_TYPES = {"codes": -1, "fp8": -2}  # formats that are not ggml's
_HUGE = 2 << 20  # bytes of a huge page
_BLOCK = 64 << 20  # bytes that small weights are cut from
_LARGE = 8 << 20  # bytes of a weight that gets pages of its own
_AT_ONCE = 32 << 20  # bytes that are packed before what was read is let go
_LINE = 64  # bytes of a cache line
_GROUP = 32  # inputs of a copy in fewer bits that share a scale


class NativeLinears:
    """Makes `NativeLinear`s for a team of threads."""

    name = "native"
    shares = False

    def __init__(self, library: native.KernelLibrary, threads: int, precise: bool = False) -> None:
        """`precise`: inputs of packed weights are rounded to fifteen bits instead of eight."""
        self.library, self.team, self._precise = library, library.team(threads), precise
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
        """`gated`: only a whole MLP understands the order of the outputs then."""
        assert weight.dtype == torch.bfloat16
        weight = weight.contiguous()
        out, inputs = weight.shape
        panels = self.room(-(-out // PANEL) * PANEL * inputs)
        self.library.pack(weight.data_ptr(), out, inputs, panels.data_ptr(), gated)
        bias = _bias(bias, gated)
        return NativeLinear(self, native.Linear(panels.data_ptr(), _address(bias), out, inputs), [panels], bias)

    def packed(
        self,
        parts: Sequence[PackedRows],
        bias: Tensor | None,
        /,
        *,
        gated: bool = False,
        release: Callable[[], None] = lambda: None,
        **_: Any,
    ) -> NativeLinear | None:
        """The parts' outputs one below the other, their weights as they are; None where kernels cannot read them so."""
        merged = _merged(parts, gated)
        inputs = parts[0].inputs
        whole = all(len(rows) % PANEL == 0 for _, rows in merged[:-1])
        if not (merged and whole and all(_readable(part) for part, _ in merged)):
            return None
        structs = (native.Part * len(merged))()
        weights, orders = list[Tensor](), list[Tensor | None]()
        for struct, (part, rows) in zip(structs, merged, strict=True):
            how = written(part)
            panels, panel = -(-len(rows) // PANEL), self.library.panel_bytes(how, inputs)
            place = self.room(-(-panels * panel // 2)).view(torch.uint8)
            rows = np.concatenate([rows, np.zeros(panels * PANEL - len(rows), np.uint64)])
            most = max(1, _AT_ONCE // panel)
            for first in range(0, panels, most):
                here, to = rows[first * PANEL :], place.data_ptr() + first * panel
                self.library.pack_rows(self.team, how, here.ctypes.data, inputs, min(most, panels - first), to)
                release()
            weights.append(place[: panels * panel])
            orders.append(None if part.order is None else part.order.to(torch.int32))
            struct.w, struct.how, struct.panels = place.data_ptr(), how, panels
            struct.order = _address(orders[-1])
        bias = _bias(bias, gated)
        out = sum(part.shape[0] for part in parts)
        made = native.Linear(weights[0].data_ptr(), _address(bias), out, inputs, structs, len(structs), self._precise)
        return NativeLinear(self, made, weights, structs, orders, bias)

    def lower(self, linear: Linear, bits: int) -> NativeLinear | None:
        """A copy in codes of so many bits (`low_bit.h`); None of weights that have few already."""
        assert isinstance(linear, NativeLinear)
        of, panels = linear.struct, -(-linear.struct.out // PANEL)
        parts = [of.parts[i] for i in range(of.count)]
        if of.inputs % _GROUP or any(part.how.bits < 8 for part in parts):
            return None
        structs = (native.Part * max(len(parts), 1))()
        weights = list[Tensor]()
        how = native.Written(_OWN_TYPES["codes"], bits, _GROUP, 1 << (bits - 1), 0, native.HALVES)
        for struct, part in zip(structs, parts or [None], strict=True):
            count = part.panels if part else panels
            place = self.room(-(-count * self.library.panel_bytes(how, of.inputs) // 2)).view(torch.uint8)
            self.library.lower(self.team, of, part and ctypes.byref(part), bits, count, place.data_ptr())
            weights.append(place)
            struct.w, struct.how, struct.panels = place.data_ptr(), how, count
            struct.order = part.order if part else None
        made = native.Linear(None, of.bias, of.out, of.inputs, structs, len(structs), False)
        return NativeLinear(self, made, weights, structs, linear)


def written(packed: PackedRows) -> native.Written:
    """The format as the kernels know it."""
    format = packed.format
    scales = native.LEVELS if format.block == CHUNK and format.block_bytes else native.HALVES
    if format.name == "codes":
        tail = packed.rows[:, packed.inputs :].contiguous().view(torch.float32)
        scales = native.HALVES if bool((tail.half().float() == tail).all()) else native.FLOATS
    elif format.name in ("fp8", "MXFP4"):
        scales = native.FLOATS
    return native.Written(
        type=_OWN_TYPES[format.name] if format.name in _OWN_TYPES else GGMLQuantizationType[format.name].value,
        bits=format.bits,
        group=format.group,
        offset=format.offset,
        minimum=format.minimum,
        scales=scales,
        block=format.block,
        block_bytes=format.block_bytes,
    )


def _merged(parts: Sequence[PackedRows], gated: bool) -> list[tuple[PackedRows, Addresses]]:
    """One part, and the addresses of rows, for all neighbours in one format; none if gate and the other half differ.

    Gated, sixteen outputs of the gate come before the same of the other half.
    """
    merged: list[tuple[PackedRows, Addresses]] = []
    for part in parts:
        addresses = row_addresses(part)
        if merged and _alike(merged[-1][0], part):
            addresses = np.concatenate([merged.pop()[1], addresses])
        merged.append((part, addresses))
    if not gated:
        return merged
    if len(merged) > 1:
        return []
    part, addresses = merged[0]
    return [(part, addresses.reshape(2, -1, PANEL // 2).transpose(1, 0, 2).ravel())]


def _alike(one: PackedRows, other: PackedRows) -> bool:
    """Whether the kernels may read both as one."""
    if written(one).scales != written(other).scales:
        return False
    if one.order is None or other.order is None:
        return one.format == other.format and one.order is other.order
    return one.format == other.format and torch.equal(one.order, other.order)


def _readable(packed: PackedRows) -> bool:
    """Whether the kernels can read the rows: whole groups, scales at equal distances in chunks."""
    group, inputs = packed.format.group, packed.inputs
    fits = group == inputs or (CHUNK % group == 0 if group <= CHUNK else group % CHUNK == 0)
    fits = fits and not (packed.format.name == "fp8" and packed.order is not None)
    return inputs % 32 == 0 and inputs % group == 0 and fits


def row_addresses(packed: PackedRows) -> Addresses:
    """Where each row begins."""
    assert packed.rows.stride(1) == 1
    first, apart = np.uint64(packed.rows.data_ptr()), np.uint64(packed.rows.stride(0))
    return first + np.arange(len(packed.rows), dtype=np.uint64) * apart


def _bias(bias: Tensor | None, gated: bool) -> Tensor | None:
    if bias is None:
        return None
    bias = bias.float().contiguous()
    return bias.view(2, -1, PANEL // 2).transpose(0, 1).reshape(-1) if gated else bias


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


class NativeLinear:
    """A packed copy, float32 in and out; the original may be freed."""

    def __init__(self, made_by: NativeLinears, struct: native.Linear, weights: Sequence[Tensor], *kept: object) -> None:
        """`weights` are what a pass reads; `kept` is what the structure points to besides."""
        self.made_by, self.struct, self.weights, self._kept = made_by, struct, weights, kept

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
