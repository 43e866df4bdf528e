"""Pack linear layers into the panels that the native kernels read."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Sequence

import numpy as np
import torch
from gguf import GGMLQuantizationType
from numpy.typing import NDArray
from torch import Tensor

from engine.kernels import structures as native
from engine.kernels.library import KernelLibrary
from engine.model.linear import Linear, Release
from engine.model.low_bit import GROUP
from engine.quantised.packed import PackedRows

Addresses = NDArray[np.uint64]

PANEL = 32  # outputs stored together
CHUNK = 256  # inputs whose scales are stored together in packed panels
_OWN_TYPES = {"codes": -1, "fp8": -2}  # numbers of formats that ggml does not have
_HUGE_PAGE = 2 << 20  # bytes
_ARENA = 64 << 20  # bytes allocated at a time for small weights
_LARGE = 8 << 20  # bytes from which on a weight is allocated alone
_RELEASE_AFTER = 32 << 20  # bytes packed between two calls of `release`
_CACHE_LINE = 64  # bytes


class NativeLinears:
    """Make `NativeLinear`s that run on a pool of threads."""

    shares = False

    def __init__(self, library: KernelLibrary, threads: int, precise: bool = False) -> None:
        """Set up a pool of `threads` threads. `precise` rounds inputs of packed weights to 15 bits instead of 8."""
        self.library, self.executor, self._precise = library, library.executor(threads), precise
        self._arena = torch.empty(0, dtype=torch.bfloat16)

    def _allocate(self, elements: int) -> Tensor:
        """Allocate uninitialised bf16 [elements]. Small weights share huge pages.

        On small pages of their own, the weights of a small model would cost a pass thousands of TLB misses.
        """
        if elements * torch.bfloat16.itemsize >= _LARGE:
            return huge(elements, torch.bfloat16)
        size = -(-elements * torch.bfloat16.itemsize // _CACHE_LINE) * _CACHE_LINE // torch.bfloat16.itemsize
        if size > len(self._arena):
            self._arena = huge(_ARENA // torch.bfloat16.itemsize, torch.bfloat16)
        taken, self._arena = self._arena[:elements], self._arena[size:]
        return taken

    def __call__(self, weight: Tensor, bias: Tensor | None, /, *, gated: bool = False) -> NativeLinear:
        """Pack a bf16 weight [out, in]. `gated` interleaves the outputs of gate and up projection, as the MLP reads
        them."""
        assert weight.dtype == torch.bfloat16
        weight = weight.contiguous()
        out, inputs = weight.shape
        panels = self._allocate(-(-out // PANEL) * PANEL * inputs)
        self.library.pack(weight.data_ptr(), out, inputs, panels.data_ptr(), gated)
        bias = _bias(bias, gated)
        return NativeLinear(self, native.Linear(panels.data_ptr(), _address(bias), out, inputs), [panels], bias)

    def packs(self, parts: Sequence[PackedRows], /, *, gated: bool = False) -> bool:
        """Whether the kernels can read the parts, in panels that belong to one part each."""
        merged = _merged(parts, gated)
        whole = all(len(rows) % PANEL == 0 for _, rows in merged[:-1])
        return bool(merged) and whole and all(_readable(part) for part, _ in merged)

    def from_packed(
        self,
        parts: Sequence[PackedRows],
        bias: Tensor | None,
        /,
        *,
        gated: bool = False,
        release: Release | None = None,
    ) -> NativeLinear:
        """Pack the parts' outputs one after another, in their own formats.

        `release` is called now and then to drop the pages of the checkpoint read so far.
        """
        merged, inputs = _merged(parts, gated), parts[0].inputs
        structs = (native.PackedPart * len(merged))()
        weights, orders = list[Tensor](), list[Tensor | None]()
        for struct, (part, rows) in zip(structs, merged, strict=True):
            format = packed_format(part)
            panels, panel = -(-len(rows) // PANEL), self.library.panel_bytes(format, inputs)
            place = self._allocate(-(-panels * panel // 2)).view(torch.uint8)
            rows = np.concatenate([rows, np.zeros(panels * PANEL - len(rows), np.uint64)])
            most = max(1, _RELEASE_AFTER // panel)
            for first in range(0, panels, most):
                here, to = rows[first * PANEL :], place.data_ptr() + first * panel
                self.library.pack_rows(self.executor, format, here.ctypes.data, inputs, min(most, panels - first), to)
                if release is not None:
                    release()
            weights.append(place[: panels * panel])
            orders.append(None if part.order is None else part.order.to(torch.int32))
            struct.w, struct.format, struct.panels = place.data_ptr(), format, panels
            struct.order = _address(orders[-1])
        bias = _bias(bias, gated)
        out = sum(part.shape[0] for part in parts)
        made = native.Linear(weights[0].data_ptr(), _address(bias), out, inputs, structs, len(structs), self._precise)
        return NativeLinear(self, made, weights, structs, orders, bias)

    def lowers(self, linear: Linear, /) -> bool:
        """Whether the weights have eight bits or more, and inputs that divide into groups."""
        source = native_linear(linear).struct
        return source.inputs % GROUP == 0 and all(source.parts[i].format.bits >= 8 for i in range(source.count))

    def lower(self, linear: Linear, bits: int, /) -> NativeLinear:
        source = native_linear(linear).struct
        panels, parts = -(-source.out // PANEL), [source.parts[i] for i in range(source.count)]
        structs = (native.PackedPart * max(len(parts), 1))()
        weights = list[Tensor]()
        format = native.PackedFormat(_OWN_TYPES["codes"], bits, GROUP, 1 << (bits - 1), 0, native.HALVES)
        for struct, part in zip(structs, parts or [None], strict=True):
            count = part.panels if part else panels
            place = self._allocate(-(-count * self.library.panel_bytes(format, source.inputs) // 2)).view(torch.uint8)
            self.library.quantise(self.executor, source, part, bits, count, place.data_ptr())
            weights.append(place)
            struct.w, struct.format, struct.panels = place.data_ptr(), format, count
            struct.order = part.order if part else None
        made = native.Linear(None, source.bias, source.out, source.inputs, structs, len(structs), False)
        return NativeLinear(self, made, weights, structs, linear)


def packed_format(packed: PackedRows) -> native.PackedFormat:
    """Describe the format of packed rows to the kernels."""
    format = packed.format
    scales = native.LEVELS if format.block == CHUNK and format.block_bytes else native.HALVES
    if format.name == "codes":
        tail = packed.rows[:, packed.inputs :].contiguous().view(torch.float32)
        scales = native.HALVES if bool((tail.half().float() == tail).all()) else native.FLOATS
    elif format.name in ("fp8", "MXFP4"):
        scales = native.FLOATS
    return native.PackedFormat(
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
    """Merge neighbouring parts of one format: each merged part with the addresses of its rows.

    With `gated`, 16 rows of the gate alternate with the corresponding 16 of the up projection. Returns nothing if
    these two differ in format.
    """
    merged: list[tuple[PackedRows, Addresses]] = []
    for part in parts:
        addresses = row_addresses(part)
        if merged and _mergeable(merged[-1][0], part):
            addresses = np.concatenate([merged.pop()[1], addresses])
        merged.append((part, addresses))
    if not gated:
        return merged
    if len(merged) > 1:
        return []
    part, addresses = merged[0]
    return [(part, addresses.reshape(2, -1, PANEL // 2).transpose(1, 0, 2).ravel())]


def _mergeable(one: PackedRows, other: PackedRows) -> bool:
    """Whether the kernels can read two parts as one."""
    if one.format != other.format or packed_format(one).scales != packed_format(other).scales:
        return False
    if one.order is None or other.order is None:
        return one.order is other.order
    return torch.equal(one.order, other.order)


def _readable(packed: PackedRows) -> bool:
    """Whether the kernels can read the rows: groups must be whole and divide, or be divided by, chunks."""
    group, inputs = packed.format.group, packed.inputs
    fits = group == inputs or (CHUNK % group == 0 if group <= CHUNK else group % CHUNK == 0)
    fits = fits and not (packed.format.name == "fp8" and packed.order is not None)
    return inputs % 32 == 0 and inputs % group == 0 and fits


def row_addresses(packed: PackedRows) -> Addresses:
    """Return the address of each row."""
    assert packed.rows.stride(1) == 1
    first, apart = np.uint64(packed.rows.data_ptr()), np.uint64(packed.rows.stride(0))
    return first + np.arange(len(packed.rows), dtype=np.uint64) * apart


def _bias(bias: Tensor | None, gated: bool) -> Tensor | None:
    """Convert bias [out] to float32 [out], interleaved if gated."""
    if bias is None:
        return None
    bias = bias.float().contiguous()
    return bias.view(2, -1, PANEL // 2).transpose(0, 1).reshape(-1) if gated else bias


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


class NativeLinear:
    """A linear layer in packed panels, float32 in and out. It does not refer to the original weight."""

    def __init__(self, made_by: NativeLinears, struct: native.Linear, weights: Sequence[Tensor], *kept: object) -> None:
        """Keep `weights`, which a pass reads, and `kept`, to which `struct` also points, alive."""
        self.made_by, self.struct, self.weights, self._kept = made_by, struct, weights, kept

    def __call__(self, x: Tensor, norm: Tensor | None = None, epsilon: float = 0.0) -> Tensor:
        """Multiply x [rows, in] float32 -> [rows, out] float32; with `norm` [in] float32, multiply RMSNorm(x)."""
        assert x.dtype == torch.float32
        x = x.contiguous()
        rows = x.shape[0]
        out = torch.empty(rows, self.struct.out, dtype=torch.float32)
        weight = None if norm is None else norm.data_ptr()
        product, executor = self.made_by.library.product, self.made_by.executor
        product(executor, self.struct, x.data_ptr(), rows, out.data_ptr(), weight, epsilon)
        return out

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        return residual + self(x)


def native_linear(linear: Linear) -> NativeLinear:
    """Return a layer of the native backend as the type that it has."""
    assert isinstance(linear, NativeLinear)
    return linear


def huge(elements: int, dtype: torch.dtype) -> Tensor:
    """Allocate uninitialised memory [elements], in huge pages if the system has them: a pass reads all of it."""
    size = elements * dtype.itemsize
    if size < _HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(elements, dtype=dtype)
    pages = mmap.mmap(-1, size + _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a system without huge pages
        pages.madvise(mmap.MADV_HUGEPAGE)
    address = torch.frombuffer(pages, dtype=torch.uint8).data_ptr()
    return torch.frombuffer(pages, dtype=dtype, count=elements, offset=-address % _HUGE_PAGE)
