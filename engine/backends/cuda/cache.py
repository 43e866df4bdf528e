"""Store K/V in pages: position p of a slab lies in the page that the slab's table lists for block p // block_size."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.kv.blocks import CacheChanges, CacheSize
from engine.kv.cache import reserved_zeros
from engine.model.attention import Segment
from engine.tensors import to_device


class PagedCache:
    """K and V, each [layers, pages, block_size, kv_heads, head_dim]. Padding rows write to page 0."""

    def __init__(self, spec: ModelSpec, size: CacheSize, dtype: torch.dtype, device: torch.device) -> None:
        self.length, self.block_size, self.device, self.dtype = size.length, size.block_size, device, dtype
        shape = (2, spec.layers, size.capacity + 1, size.block_size, spec.kv_heads, spec.head_dim)
        pages, self._map = reserved_zeros(shape, dtype, device, f"{size.capacity} blocks of {size.block_size} tokens")
        self.k, self.v = (part.unbind(0) for part in pages.unbind(0))  # per layer [pages, block_size, kv_heads, …]
        blocks = torch.arange(size.slabs * size.blocks_per_slab).view(size.slabs, -1)
        # Tables start with the pages in turn, so that passes measured before any placement read realistic memory.
        self._places = (blocks % size.capacity + 1).to(torch.int32)
        self.table = self._places.to(device, copy=True)  # [slabs, blocks] int32

    def apply(self, changes: CacheChanges) -> None:
        """Record new pages of slabs. Pages are shared, not copied, and stay allocated."""
        for slab, first, pages in changes.placements:
            part = slice(first, first + len(pages))
            self._places[slab, part] = torch.tensor(pages, dtype=torch.int32)
            self.table[slab, part].copy_(to_device(pages, self.device, torch.int32))

    def slots(self, segments: Sequence[Segment]) -> list[int]:
        """Return the flat index, page · block_size + place in the page, of each of the segments' slots."""
        size, slots = self.block_size, list[int]()
        for slab, start, rows, _ in segments:
            first = start // size
            pages = self._places[slab, first : (start + rows - 1) // size + 1].tolist()
            slots += [pages[p // size - first] * size + p % size for p in range(start, start + rows)]
        return slots

    def slot(self, slab: int, position: int) -> int:
        return self.slots([Segment(slab, position, 1)])[0]

    def write(self, layer: int, slots: Tensor, kv: Tensor) -> None:
        for cache, part in zip((self.k[layer], self.v[layer]), kv.chunk(2, dim=1), strict=True):
            cache.view(-1, *cache.shape[2:]).index_copy_(0, slots, part)

    def read(self, first: int, last: int, begin: int, end: int) -> Gathered:
        positions = torch.arange(begin, end)
        pages = self._places[first : last + 1, positions // self.block_size].long()
        return Gathered(self, (pages * self.block_size + positions % self.block_size).to(self.device))

    def move(self, slab: int, source: int, target: int) -> None:
        places = to_device(self.slots([Segment(slab, source, 1), Segment(slab, target, 1)]), self.device)
        for layer in (*self.k, *self.v):
            flat = layer.view(-1, *layer.shape[2:])
            flat.index_copy_(0, places[1:], flat.index_select(0, places[:1]))

    def fill(self, slab: int, tokens: int) -> None:
        pages = self._places[slab, : -(-tokens // self.block_size)].long().to(self.device)
        values = self.k[0][pages].normal_(generator=torch.Generator(self.device).manual_seed(tokens))
        for layer in (*self.k, *self.v):
            layer.index_copy_(0, pages, values)


class Gathered(Sequence[tuple[Tensor, Tensor]]):
    """K and V per layer, copied from the pages on access, so that only one layer's copy exists at a time."""

    def __init__(self, cache: PagedCache, slots: Tensor) -> None:
        self._cache, self._slots = cache, slots  # [slabs, length]

    def __len__(self) -> int:
        return len(self._cache.k)

    def __getitem__(self, layer: int) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Copy a layer's K and V [slabs, kv_heads, length, head_dim]."""
        k, v = (x[layer].flatten(0, 1)[self._slots].transpose(1, 2) for x in (self._cache.k, self._cache.v))
        return k, v
