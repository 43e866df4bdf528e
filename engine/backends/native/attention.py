"""Lay out the K/V cache of the native kernels and describe each pass to them: slab and position of every row."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

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


class NativeBatch:
    """Slab and position of each row of a pass. `read_only` rows are candidates: see `attention.CandidateBatch`."""

    def __init__(
        self,
        attention: NativeAttention,
        slabs: Sequence[int],
        positions: Sequence[int],
        read_only: bool = False,
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
        """Return the batch of a pass over the segments' rows, in order; rows of one slab must be neighbours."""
        slabs = [s.slab for s in segments for _ in range(s.rows)]
        positions = [p for s in segments for p in s.positions]
        return NativeBatch(self, slabs, positions)

    def candidates(self, slab: int, positions: Sequence[int], states: int) -> NativeBatch:
        return NativeBatch(self, [slab] * (states * len(positions)), list(positions) * states, read_only=True)
