"""Store K/V in pages: slot p of a slab lies in the page that the slab's table lists for block p // block_size.

The K/V of a request's position p belongs into slot p. Accepting drafted tokens therefore only takes raising a count
(`Request.computed`). Slots of rejected tokens lie beyond the count, and the next round overwrites them.
"""

from __future__ import annotations

import mmap
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from math import prod

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.errors import ConfigError
from engine.kv.pages import CacheSize, Placement
from engine.tensors import to_device

# Reserve address space only: most of it is never written, so the system must not refuse it for lack of memory.
_MAP_NORESERVE = 0x4000 if sys.platform == "linux" else 0


def reserved_zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, size: CacheSize) -> Tensor:
    """Return zeros [*shape] for a cache of this size.

    Masked slots are read, and NaN survives a mask, so the memory must be initialised. On a CPU the zeros are untouched
    pages of a private mapping, which take no memory until they are written. Raises ConfigError if there is no address
    space left.
    """
    if device.type != "cpu" or not hasattr(mmap, "MAP_ANONYMOUS"):
        return torch.zeros(shape, dtype=dtype, device=device)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    try:
        pages = mmap.mmap(-1, prod(shape) * dtype.itemsize, flags=flags)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"no address space for a K/V cache of {size.capacity} blocks of {size.block_size} tokens ({error}); "
            "lower --kv-cache-memory"
        ) from None
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # a huge page for every small write would fill memory before the cache is full
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(pages, dtype=dtype).view(shape)


class Cache(ABC):
    """Pages of K/V, and the tables that say which page holds which block of a slab."""

    dtype: torch.dtype
    device: torch.device

    def __init__(self, size: CacheSize) -> None:
        self.slabs, self.length, self.block_size = size.slabs, size.length, size.block_size
        blocks = torch.arange(size.slabs * size.blocks_per_slab).view(size.slabs, -1)
        # Tables start with the pages in turn, so that passes measured before any placement read realistic memory.
        self.tables = (blocks % size.capacity + 1).to(torch.int32)  # [slabs, blocks]

    def place(self, placements: Iterable[Placement]) -> None:
        """Record new pages of slabs. Pages are shared, not copied, and stay allocated."""
        for slab, first, pages in placements:
            self.tables[slab, first : first + len(pages)] = torch.tensor(pages, dtype=torch.int32)

    def fill(self, slab: int, tokens: int) -> None:
        """Fill the pages of a slab's first `tokens` slots with random values, to time passes after a context."""
        pages = self.tables[slab, : -(-tokens // self.block_size)].long().to(self.device)
        first, *others = self.layers
        values = first[pages].normal_(generator=torch.Generator(self.device).manual_seed(tokens))
        for layer in (first, *others):  # the same values: generating takes many times as long as copying
            layer.index_copy_(0, pages, values)

    @property
    @abstractmethod
    def layers(self) -> Sequence[Tensor]:
        """The memory of every layer, each [pages, …]."""


class PagedCache(Cache):
    """K and V, each [layers, pages, block_size, kv_heads, head_dim]. Padding rows write to page 0."""

    def __init__(self, spec: ModelSpec, size: CacheSize, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__(size)
        self.device, self.dtype = device, dtype
        shape = (2, spec.layers, size.capacity + 1, size.block_size, spec.kv_heads, spec.head_dim)
        pages = reserved_zeros(shape, dtype, device, size)
        self.k, self.v = (part.unbind(0) for part in pages.unbind(0))  # per layer [pages, block_size, kv_heads, …]
        self.device_tables = self.tables.to(device, copy=True)

    def place(self, placements: Iterable[Placement]) -> None:
        placements = tuple(placements)
        super().place(placements)
        for slab, first, pages in placements:
            part = self.device_tables[slab, first : first + len(pages)]
            part.copy_(to_device(pages, self.device, torch.int32))

    def slots(self, slab: int, start: int, rows: int) -> list[int]:
        """Return the flat index, page · block_size + place in the page, of consecutive slots."""
        size, first = self.block_size, start // self.block_size
        pages = self.tables[slab, first : (start + rows - 1) // size + 1].tolist()
        return [pages[p // size - first] * size + p % size for p in range(start, start + rows)]

    def write(self, layer: int, slots: Tensor, kv: Tensor) -> None:
        """Write kv [rows, 2·kv_heads, head_dim], K heads first, to flat slots [rows]."""
        for cache, part in zip((self.k[layer], self.v[layer]), kv.chunk(2, dim=1), strict=True):
            cache.view(-1, *cache.shape[2:]).index_copy_(0, slots, part)

    def read(self, slabs: Sequence[int], begin: int, end: int) -> Slots:
        """Return K and V of slots begin..end-1 per layer: [slabs, kv_heads, end-begin, head_dim].

        They are views if they belong to one slab whose pages follow one another.
        """
        positions = torch.arange(begin, end)
        slots = self.tables[slabs][:, positions // self.block_size].long() * self.block_size
        slots += positions % self.block_size
        if len(slabs) == 1 and bool((slots.diff() == 1).all()):
            first = int(slots[0, 0])
            return Slots(self, slice(first, first + end - begin))
        if self.device.type == "cuda":  # without waiting for work queued there
            return Slots(self, slots.pin_memory().to(self.device, non_blocking=True))
        return Slots(self, slots)

    @property
    def layers(self) -> Sequence[Tensor]:
        """K, then V, of every layer: each [pages, block_size, kv_heads, head_dim]."""
        return (*self.k, *self.v)


class Slots:
    """K and V of some slots per layer, read from the pages on access: only one layer's copy exists at a time."""

    def __init__(self, cache: PagedCache, slots: Tensor | slice) -> None:
        """`slots`: flat indices [slabs, length], or those of one slab."""
        self._cache, self._slots = cache, slots

    def __getitem__(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return a layer's K and V [slabs, kv_heads, length, head_dim]."""
        k, v = (x[layer].flatten(0, 1)[self._slots] for x in (self._cache.k, self._cache.v))
        if isinstance(self._slots, slice):
            k, v = k[None], v[None]
        return k.transpose(1, 2), v.transpose(1, 2)


def bytes_per_token(spec: ModelSpec, dtype: torch.dtype) -> int:
    """Return the K/V bytes of one position, over all layers."""
    return spec.layers * 2 * spec.kv_heads * spec.head_dim * dtype.itemsize
