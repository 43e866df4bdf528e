"""K/V tensors: one contiguous slab per request, position p of a request at slot p of its slab.

Slots are addressed by position, so a chain is accepted by counting (`Request.computed`): rejected slots lie beyond the
count and are overwritten by the next round. Prefix hits are copies between slabs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.spec import ModelSpec


class SlabCache:
    """Per layer one tensor [slabs, length, 2·kv_heads, head_dim]: the K heads, then the V heads."""

    def __init__(self, spec: ModelSpec, slabs: int, length: int, dtype: torch.dtype, device: torch.device) -> None:
        self.slabs = slabs
        self.length = length
        self._kv_heads = spec.kv_heads
        shape = (slabs, length, 2 * spec.kv_heads, spec.head_dim)
        # Zeros rather than uninitialised memory: masked slots are read, and NaN survives a mask. On a CPU the pages
        # stay untouched, and take no memory, until they are written.
        self._layers = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(spec.layers)]
        self._flat = [layer.view(slabs * length, 2 * spec.kv_heads, spec.head_dim) for layer in self._layers]
        self._views: dict[tuple[int, int, int], tuple[Tensor, Tensor]] = {}

    @property
    def dtype(self) -> torch.dtype:
        return self._layers[0].dtype

    @property
    def device(self) -> torch.device:
        return self._layers[0].device

    def slot(self, slab: int, position: int) -> int:
        """Flat index of a position, for `write`."""
        return slab * self.length + position

    def write(self, layer: int, slots: Tensor, kv: Tensor) -> None:
        """kv [rows, 2·kv_heads, head_dim] to flat slots [rows]."""
        self._flat[layer].index_copy_(0, slots, kv)

    def read(self, layer: int, first: int, last: int, length: int) -> tuple[Tensor, Tensor]:
        """K and V of slabs first..last and positions < length, each [slabs, kv_heads, length, head_dim], no copy."""
        views = self._views.get((layer, first, last))
        if views is None:  # kept, since making them takes as long as the attention of a short context
            kv = self._layers[layer][first : last + 1].transpose(1, 2)
            views = self._views[layer, first, last] = (kv[:, : self._kv_heads], kv[:, self._kv_heads :])
        k, v = views
        return k.narrow(2, 0, length), v.narrow(2, 0, length)

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Copy the first `tokens` positions of one slab to another, all layers."""
        for layer in self._layers:
            layer[target, :tokens] = layer[source, :tokens]


def bytes_per_token(spec: ModelSpec, dtype: torch.dtype) -> int:
    """K/V bytes of one position, all layers."""
    return spec.layers * 2 * spec.kv_heads * spec.head_dim * dtype.itemsize
