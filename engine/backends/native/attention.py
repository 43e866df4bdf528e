"""Lay out the K/V cache of the native kernels and describe each pass to them: slab and position of every row."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

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

    def fill(self, slab: int, tokens: int) -> None:
        first, *others = self._all[:, slab, :, : -(-tokens // BLOCK)].unbind(0)
        first.normal_(generator=torch.Generator().manual_seed(tokens))
        for layer in others:  # the same values: generating takes many times as long as copying
            layer.copy_(first)

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

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Copy the first `tokens` positions of one slab to another, in all layers, rounded up to whole blocks."""
        blocks = -(-tokens // BLOCK)
        self._all[:, target, :, :blocks] = self._all[:, source, :, :blocks]


class NativeBatch:
    """Slab and position of each row of a pass. `read_only` rows are candidates: see `attention.CandidateBatch`."""

    def __init__(
        self, attention: NativeAttention, slabs: Sequence[int], positions: Sequence[int], read_only: bool
    ) -> None:
        cache = attention.cache
        assert 0 <= min(slabs) <= max(slabs) < cache.slabs
        assert 0 <= min(positions) <= max(positions) < cache.length
        self.rows, self.read_only = len(slabs), read_only
        self.cache, self.rope = cache.struct, attention.rope
        ints = ctypes.c_int32 * self.rows
        self.slabs, self.positions = ints(*slabs), ints(*positions)


class NativeAttention:
    """Backend "native": prepares batches over a `NativeCache`."""

    def __init__(self, spec: ModelSpec, cache: NativeCache) -> None:
        self.spec, self.cache = spec, cache
        self._factors = torch.view_as_real(Rope(spec, cache.length, torch.float32, cache.device).table).contiguous()
        self.rope = self._factors.data_ptr()

    def prepare(self, segments: Sequence[Segment]) -> NativeBatch:
        """Return the batch of a pass over the segments' positions, in order; rows of one slab must be neighbours."""
        slabs = [s.slab for s in segments for _ in range(s.rows)]
        return NativeBatch(self, slabs, [p for s in segments for p in range(s.start, s.start + s.rows)], False)

    def candidates(self, slab: int, positions: Sequence[int], states: int) -> NativeBatch:
        return NativeBatch(self, [slab] * (states * len(positions)), list(positions) * states, True)
