"""Store K/V: one contiguous slab per request, with position p of a request at slot p of its slab.

Because slots are addressed by position, accepting drafted tokens only takes raising a count (`Request.computed`). Slots
of rejected tokens lie beyond the count, and the next round overwrites them. A tree's rows take slots in their order;
those of an accepted path move to the slots of their positions. Cached prefixes are copied between slabs.
"""

from __future__ import annotations

import mmap
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from math import prod
from typing import Protocol

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.errors import ConfigError
from engine.kv.blocks import CacheChanges

# Reserve address space only: most of it is never written, so the system must not refuse it for lack of memory.
# `engine.kv.blocks` counts the memory that is in use.
_MAP_NORESERVE = 0x4000 if sys.platform == "linux" else 0


def reserved_zeros(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, what: str
) -> tuple[Tensor, mmap.mmap | None]:
    """Return zeros [*shape] for a cache of `what`, and the mapping that holds them, if any.

    Masked slots are read, and NaN survives a mask, so the memory must be initialised. On a CPU the zeros are untouched
    pages of a private mapping, which take no memory until they are written. Raises ConfigError if there is no address
    space left.
    """
    if device.type != "cpu" or not hasattr(mmap, "MADV_DONTNEED"):
        return torch.zeros(shape, dtype=dtype, device=device), None
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    try:
        pages = mmap.mmap(-1, prod(shape) * dtype.itemsize, flags=flags)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"not enough address space for a K/V cache of {what} ({error}); lower --max-model-len or --max-num-seqs"
        ) from None
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # a huge page for every small write would use memory that nobody counts
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(pages, dtype=dtype).view(shape), pages


class Cache(Protocol):
    """K/V memory, addressed by slab and position. `SlabMemory` documents the methods."""

    length: int

    @property
    def device(self) -> torch.device: ...

    def apply(self, changes: CacheChanges) -> None: ...
    def move(self, slab: int, source: int, target: int) -> None: ...
    def fill(self, slab: int, tokens: int) -> None: ...


class SlabMemory(ABC):
    """A cache in which each slab has memory of its own."""

    def apply(self, changes: CacheChanges) -> None:
        """Copy prefixes, then give freed memory back."""
        for copy in changes.copies:
            self.copy(*copy)
        for freed in changes.freed:
            self.discard(*freed)

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Copy the first `tokens` positions of one slab to another, in all layers."""
        self._first(target, tokens).copy_(self._first(source, tokens))

    def fill(self, slab: int, tokens: int) -> None:
        """Fill the first `tokens` positions of a slab with random values, to time passes after a context."""
        first, *others = self._first(slab, tokens).unbind(0)
        first.normal_(generator=torch.Generator(first.device).manual_seed(tokens))
        for layer in others:  # the same values: generating takes many times as long as copying
            layer.copy_(first)

    @abstractmethod
    def _first(self, slab: int, tokens: int) -> Tensor:
        """Return a view of the K/V of a slab's first `tokens` positions [layers, …], or of the blocks with them."""

    @abstractmethod
    def move(self, slab: int, source: int, target: int) -> None:
        """Copy the K/V of one slot of a slab to another slot, in all layers."""

    @abstractmethod
    def discard(self, slab: int, first: int, last: int) -> None:
        """Give the memory of positions first..last-1 back to the system. They read as zeros again."""


class SlabCache(SlabMemory):
    """K/V as one tensor [layers, slabs, length, 2, kv_heads, head_dim], K at index 0 and V at 1 of the fourth axis."""

    def __init__(self, spec: ModelSpec, slabs: int, length: int, dtype: torch.dtype, device: torch.device) -> None:
        self.slabs, self.length, self.dtype, self.device = slabs, length, dtype, device
        shape = (spec.layers, slabs, length, 2, spec.kv_heads, spec.head_dim)
        self._all, self._map = reserved_zeros(shape, dtype, device, f"{slabs} × {length} tokens")
        self._by_slot = self._all.view(spec.layers, slabs * length, 2 * spec.kv_heads, spec.head_dim).unbind(0)

    def slot(self, slab: int, position: int) -> int:
        """Return the flat index of a position, for `write`."""
        return slab * self.length + position

    def write(self, layer: int, slots: Tensor, kv: Tensor) -> None:
        self._by_slot[layer].index_copy_(0, slots, kv)

    def rows(self, slab: int, start: int, rows: int) -> tuple[Tensor, ...]:
        """Return, per layer, views [rows, 2·kv_heads, head_dim] of consecutive positions, to be written in place.

        One call makes the views of all layers: one by one they would take as long as a short context's attention.
        """
        return self._all[:, slab, start : start + rows].flatten(2, 3).unbind(0)

    def read(self, first: int, last: int, begin: int, end: int) -> tuple[tuple[Tensor, Tensor], ...]:
        k, v = self._all[:, first : last + 1, begin:end].permute(3, 0, 1, 4, 2, 5).unbind(0)
        return tuple(zip(k.unbind(0), v.unbind(0), strict=True))

    def discard(self, slab: int, first: int, last: int) -> None:
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

    def _first(self, slab: int, tokens: int) -> Tensor:
        return self._all[:, slab, :tokens]

    def move(self, slab: int, source: int, target: int) -> None:
        self._all[:, slab, target] = self._all[:, slab, source]


def bytes_per_token(spec: ModelSpec, dtype: torch.dtype) -> int:
    """Return the K/V bytes of one position, over all layers."""
    return spec.layers * 2 * spec.kv_heads * spec.head_dim * dtype.itemsize
