"""Lay out the K/V cache of the native kernels and describe each pass to them: slab and position of every row."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.errors import ConfigError
from engine.kernels import structures as native
from engine.kv.cache import Cache, reserved_zeros
from engine.kv.pages import CacheSize
from engine.model.attention import Rope, Segment

BLOCK = 16  # positions stored together


class NativeCache(Cache):
    """K/V as bf16 [layers, kv_heads, blocks, 2·16·head_dim]; kernels.cpp describes a block. A page is some blocks."""

    dtype = torch.bfloat16
    device = torch.device("cpu")

    def __init__(self, spec: ModelSpec, size: CacheSize) -> None:
        """Raises ConfigError if the kernels cannot read pages of this size."""
        super().__init__(size)
        if size.block_size % BLOCK:
            raise ConfigError(f"--block-size {size.block_size}: the kernels need a multiple of {BLOCK}")
        per_page = size.block_size // BLOCK
        shape = (spec.layers, spec.kv_heads, size.capacity + 1, per_page, 2 * BLOCK * spec.head_dim)
        self._all = reserved_zeros(shape, self.dtype, self.device, size)
        layer, head, *_ = self._all.stride()
        blocks = self.tables.shape[1]
        self.struct = native.Cache(self._all.data_ptr(), self.tables.data_ptr(), layer, head, blocks, per_page)

    @property
    def layers(self) -> Sequence[Tensor]:
        """Each layer's blocks [pages, kv_heads, blocks of a page, 2·16·head_dim]."""
        return [layer.transpose(0, 1) for layer in self._all]

    def move(self, slab: int, source: int, target: int) -> None:
        keys, values = self._all.flatten(2, 3).chunk(2, dim=-1)  # [layers, kv_heads, blocks, 16·head_dim]
        keys = keys.view(*keys.shape[:3], -1, BLOCK, 2)  # pairs of neighbouring dimensions, by position
        values = values.view(*values.shape[:3], BLOCK // 2, -1, 2)  # pairs of neighbouring positions, by dimension
        (block, lane), (to_block, to_lane) = (self._place(slab, slot) for slot in (source, target))
        keys[:, :, to_block, :, to_lane] = keys[:, :, block, :, lane]
        values[:, :, to_block, to_lane // 2, :, to_lane % 2] = values[:, :, block, lane // 2, :, lane % 2]

    def _place(self, slab: int, slot: int) -> tuple[int, int]:
        """Return the block, among all blocks of a head, that holds a slot, and the slot's place in it."""
        index, place = divmod(slot, self.block_size)
        return divmod(int(self.tables[slab, index]) * self.block_size + place, BLOCK)


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
