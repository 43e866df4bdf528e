"""Lay out the K/V cache of the native kernels and describe each pass to them: slab and position of every row."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import NamedTuple

import torch

from engine.architecture.spec import ModelSpec
from engine.kernels import structures as native
from engine.kv.cache import SlabMemory, reserved_zeros
from engine.model.attention import Rope, Segment

BLOCK = 16  # positions stored together
TILE = 64  # positions that the kernels read together


class NativeCache(SlabMemory):
    """K/V as bf16 [layers, slabs, kv_heads, blocks, 2·16·head_dim]; kernels.cpp describes a block."""

    dtype = torch.bfloat16
    device = torch.device("cpu")

    def __init__(self, spec: ModelSpec, slabs: int, length: int) -> None:
        self.slabs, self.length = slabs, length
        blocks = -(-length // TILE) * TILE // BLOCK
        shape = (spec.layers, slabs, spec.kv_heads, blocks, 2 * BLOCK * spec.head_dim)
        self._all, self._map = reserved_zeros(shape, self.dtype, self.device, f"{slabs} × {length} tokens")
        layer, slab, head, _, _ = self._all.stride()
        self.struct = native.Cache(self._all.data_ptr(), layer, slab, head)

    def discard(self, slab: int, first: int, last: int) -> None:
        if self._map is None:
            return
        begin, end = -(-first // BLOCK), last // BLOCK
        page, (layer, stride, head, block, _) = mmap.PAGESIZE, self._all.stride()
        for i in range(self._all.shape[0]):
            for h in range(self._all.shape[2]):
                base = i * layer + slab * stride + h * head
                low = -(-2 * (base + begin * block) // page) * page
                high = 2 * (base + end * block) // page * page
                if high > low:
                    self._map.madvise(mmap.MADV_DONTNEED, low, high - low)

    def _first(self, slab: int, tokens: int) -> torch.Tensor:
        return self._all[:, slab, :, : -(-tokens // BLOCK)]

    def move(self, slab: int, source: int, target: int) -> None:
        keys, values = self._all[:, slab].chunk(2, dim=-1)  # [layers, kv_heads, blocks, 16·head_dim]
        keys = keys.view(*keys.shape[:3], -1, BLOCK, 2)  # pairs of neighbouring dimensions, by position
        values = values.view(*values.shape[:3], BLOCK // 2, -1, 2)  # pairs of neighbouring positions, by dimension
        (block, lane), (to_block, to_lane) = divmod(source, BLOCK), divmod(target, BLOCK)
        keys[:, :, to_block, :, to_lane] = keys[:, :, block, :, lane]
        values[:, :, to_block, to_lane // 2, :, to_lane % 2] = values[:, :, block, lane // 2, :, lane % 2]


class TreeRow(NamedTuple):
    """Where a row stores its K/V, and which K/V it sees besides its own.

    Rows on a tree's first path are stored at their positions, as those of a chain. The others see the part of the path
    that they share, in the cache, and then one another, in the pass.
    """

    slot: int
    end: int  # the row sees the cache before this slot; its own slot is among them if it is its position
    parent: int  # the row of the pass that it sees besides, and that row's parent, and so on; -1: none


class NativeBatch:
    """Slab and position of each row of a pass. `read_only` rows are candidates: see `attention.CandidateBatch`."""

    def __init__(
        self,
        attention: NativeAttention,
        slabs: Sequence[int],
        positions: Sequence[int],
        read_only: bool = False,
        tree: Sequence[TreeRow] = (),
    ) -> None:
        """`tree`: where each row stores its K/V and what it sees, if some rows branch off."""
        cache = attention.cache
        assert 0 <= min(slabs) <= max(slabs) < cache.slabs
        assert 0 <= min(positions) <= max(positions) < cache.length
        self.rows, self.read_only = len(slabs), read_only
        self.cache, self.rope = cache.struct, attention.rope
        ints = ctypes.c_int32 * self.rows
        self.slabs, self.positions = ints(*slabs), ints(*positions)
        self.tree = None
        if tree:
            assert max(row.slot for row in tree) < cache.length
            columns = [ints(*column) for column in zip(*tree, strict=True)]
            self.tree = ctypes.pointer(native.TreeRows(*columns))


class NativeAttention:
    """Backend "native": prepares batches over a `NativeCache`."""

    def __init__(self, spec: ModelSpec, cache: NativeCache) -> None:
        self.spec, self.cache = spec, cache
        self._factors = torch.view_as_real(Rope(spec, cache.length, torch.float32, cache.device).table).contiguous()
        self.rope = self._factors.data_ptr()

    def prepare(self, segments: Sequence[Segment]) -> NativeBatch:
        """Return the batch of a pass over the segments' rows, in order; rows of one slab must be neighbours."""
        slabs = [s.slab for s in segments for _ in range(s.rows)]
        positions = [p for s in segments for p in s.positions]
        tree = _tree_rows(segments) if any(s.parents for s in segments) else ()
        return NativeBatch(self, slabs, positions, tree=tree)

    def candidates(self, slab: int, positions: Sequence[int], states: int) -> NativeBatch:
        return NativeBatch(self, [slab] * (states * len(positions)), list(positions) * states, read_only=True)


def _tree_rows(segments: Sequence[Segment]) -> list[TreeRow]:
    """Return what each row of a pass sees, where some segments are trees."""
    rows: list[TreeRow] = []
    for segment in segments:
        first = len(rows)
        for i, (slot, position) in enumerate(zip(segment.slots, segment.positions, strict=True)):
            if slot == position:
                rows.append(TreeRow(slot, position + 1, -1))
                continue
            parent = segment.parents[i]
            above = rows[first + parent]
            on_path = above.end > above.slot  # the parent, and all before it, are at their positions
            rows.append(TreeRow(slot, above.end, -1 if on_path else first + parent))
    return rows
