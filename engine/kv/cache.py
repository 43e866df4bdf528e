"""K/V tensors: one contiguous slab per request, position p of a request at slot p of its slab.

Slots are addressed by position, so a chain is accepted by counting (`Request.computed`): rejected slots lie beyond the
count and are overwritten by the next round. Prefix hits are copies between slabs.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from contextlib import suppress
from math import prod
from typing import Protocol

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.errors import ConfigError
from engine.kv.blocks import Placement

# Address space only: blocks are counted elsewhere, and the system must not refuse what will never be written.
_MAP_NORESERVE = 0x4000 if sys.platform == "linux" else 0


def reserved_zeros(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, what: str
) -> tuple[Tensor, mmap.mmap | None]:
    """Zeros for a cache of `what`, and the mapping they lie in, if any. Raises ConfigError.

    Zeros rather than uninitialised memory: masked slots are read, and NaN survives a mask. On a CPU they are untouched
    pages of a private mapping, which take no memory until they are written.
    """
    if device.type != "cpu" or not hasattr(mmap, "MADV_DONTNEED"):
        return torch.zeros(shape, dtype=dtype, device=device), None
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    try:
        pages = mmap.mmap(-1, prod(shape) * dtype.itemsize, flags=flags)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"the system gives no address space for a K/V cache of {what} ({error}); "
            "lower --max-model-len or --max-num-seqs"
        ) from None
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # a large page for each little that is written would be memory that nobody counts
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(pages, dtype=dtype).view(shape), pages


class Cache(Protocol):
    """K/V memory, addressed by slab and position."""

    length: int

    @property
    def device(self) -> torch.device: ...

    def place(self, placements: Sequence[Placement]) -> None: ...
    def fill(self, slab: int, tokens: int) -> None: ...
    def discard(self, slab: int, first: int, last: int) -> None: ...
    def copy(self, source: int, target: int, tokens: int) -> None: ...


class SlabCache:
    """One tensor [layers, slabs, length, 2, kv_heads, head_dim]; K is 0 and V is 1 of the fourth dimension."""

    contiguous = True

    def __init__(self, spec: ModelSpec, slabs: int, length: int, dtype: torch.dtype, device: torch.device) -> None:
        self.slabs = slabs
        self.length = length
        shape = (spec.layers, slabs, length, 2, spec.kv_heads, spec.head_dim)
        self._all, self._map = reserved_zeros(shape, dtype, device, f"{slabs} × {length} tokens")
        self._by_slot = self._all.view(spec.layers, slabs * length, 2 * spec.kv_heads, spec.head_dim).unbind(0)

    @property
    def dtype(self) -> torch.dtype:
        return self._all.dtype

    @property
    def device(self) -> torch.device:
        return self._all.device

    def slot(self, slab: int, position: int) -> int:
        """Flat index of a position, for `write`."""
        return slab * self.length + position

    def write(self, layer: int, slots: Tensor, kv: Tensor) -> None:
        """kv [rows, 2·kv_heads, head_dim], K heads first, to flat slots [rows]."""
        self._by_slot[layer].index_copy_(0, slots, kv)

    def rows(self, slab: int, start: int, rows: int) -> tuple[Tensor, ...]:
        """Per layer the slots of consecutive positions, [rows, 2·kv_heads, head_dim], to be written in place.

        Views for all layers are made in one call, since making them one by one takes as long as a short context's
        attention.
        """
        return self._all[:, slab, start : start + rows].flatten(2, 3).unbind(0)

    def read(self, first: int, last: int, begin: int, end: int) -> tuple[tuple[Tensor, Tensor], ...]:
        """Per layer K and V of slabs first..last, positions begin..end-1: [slabs, kv_heads, end-begin, head_dim]."""
        k, v = self._all[:, first : last + 1, begin:end].permute(3, 0, 1, 4, 2, 5).unbind(0)
        return tuple(zip(k.unbind(0), v.unbind(0), strict=True))

    def place(self, placements: Sequence[Placement]) -> None:
        """Slabs do not move."""
        assert not placements

    def fill(self, slab: int, tokens: int) -> None:
        """Put random values where the first `tokens` positions of a slab would be: a context without its prefill."""
        first, *others = self._all[:, slab, :tokens].unbind(0)
        first.normal_(generator=torch.Generator(self.device).manual_seed(tokens))
        for layer in others:  # the same: drawing takes many times as long as copying
            layer.copy_(first)

    def discard(self, slab: int, first: int, last: int) -> None:
        """Give the memory of positions first..last-1 back to the system, in whole pages; they read as zeros again."""
        if self._map is None:
            return
        page = mmap.PAGESIZE
        layer_bytes = self._all[0].nbytes
        token_bytes = layer_bytes // (self.slabs * self.length)
        for layer in range(self._all.shape[0]):
            base = layer * layer_bytes + slab * self.length * token_bytes
            start = -(-(base + first * token_bytes) // page) * page
            end = (base + last * token_bytes) // page * page
            if end > start:
                self._map.madvise(mmap.MADV_DONTNEED, start, end - start)

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Copy the first `tokens` positions of one slab to another, all layers."""
        self._all[:, target, :tokens] = self._all[:, source, :tokens]


def bytes_per_token(spec: ModelSpec, dtype: torch.dtype) -> int:
    """K/V bytes of one position, all layers."""
    return spec.layers * 2 * spec.kv_heads * spec.head_dim * dtype.itemsize
