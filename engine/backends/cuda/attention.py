"""Compute attention over pages. Passes of few rows per request have static shapes, so that CUDA graphs can hold them.

A static pass has `sequences` × `width` rows, both powers of two. Padding rows write to a page that nobody reads and
attend to nothing. All other passes (prompt chunks, candidates) use torch's attention over gathered K/V.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.kv.cache import PagedCache
from engine.model.attention import AttentionBatch, SdpaAttention, SdpaBatch, Segment
from engine.plans import TARGET
from engine.tensors import to_device

_SEQUENCES, _WIDTH = 64, 16  # the largest static pass


class Layout(NamedTuple):
    """The shape of a static pass: `width` rows for each of `sequences`."""

    sequences: int
    width: int

    @property
    def rows(self) -> int:
        return self.sequences * self.width


class Kernels(Protocol):
    """The fused operations of a static pass: `TritonKernels`, or `TorchKernels`."""

    def store(self, qkv: Tensor, factors: Tensor, positions: Tensor, slots: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Rotate q and k, write k and v to flat slots, and return q [rows, query heads, head_dim].

        qkv [rows, heads, head_dim]; factors [all positions, head_dim/2, 2]; positions, slots [rows];
        k, v [pages, block_size, kv_heads, head_dim].
        """

    def scan(self, q: Tensor, k: Tensor, v: Tensor, batch: StaticBatch, window: int, sinks: int) -> Tensor:
        """Attend with q to the pages of the batch: [rows, query heads, head_dim] -> the same shape.

        `window` and `sinks` limit which positions a row sees (`ModelSpec.attention_window`).
        """


class StaticBatch:
    """The batch of all passes of one layout, in fixed memory. `load` sets the rows of the next pass."""

    def __init__(self, attention: PagedAttention, layout: Layout) -> None:
        self.layout, self.attention = layout, attention
        s, rows = layout
        device = attention.cache.device
        self._numbers = torch.zeros(2 * layout.rows + 3 * s, dtype=torch.int64, device=device)
        sizes = [layout.rows, layout.rows, s, s, s]
        # starts: position of a sequence's first row; ends: position after its last row, 0 for a padding sequence
        self.slots, self.positions, self.slabs, self.starts, self.ends = torch.split(self._numbers, sizes)
        self.places: Tensor | None = None  # [real rows] in the layout; None if there is no padding
        self.rows = rows
        self._segments: tuple[Segment, ...] = ()

    def load(self, segments: Sequence[Segment]) -> StaticBatch:
        """Set the rows of the next pass to the segments' positions, in order."""
        width, cache = self.layout.width, self.attention.cache
        self._segments = tuple(segments)
        padding = [Segment(0, 0, 0)] * (self.layout.sequences - len(segments))
        slots: list[int] = []
        positions: list[int] = []
        places: list[int] = []
        for i, segment in enumerate(segments):
            empty = [0] * (width - segment.rows)
            slots += cache.slots(segment.slab, segment.start, segment.rows) + empty
            positions += [*range(segment.start, segment.start + segment.rows), *empty]
            places += range(i * width, i * width + segment.rows)
        none = [0] * (len(padding) * width)
        every = [*segments, *padding]
        sequences = [[s.slab for s in every], [s.start for s in every], [s.start + s.rows for s in every]]
        numbers = [*slots, *none, *positions, *none, *(n for part in sequences for n in part)]
        self._numbers.copy_(to_device(numbers, cache.device))
        self.rows = len(places)
        whole = self.rows == self.layout.rows
        self.places = None if whole else to_device(places, cache.device)
        return self

    def spread(self, x: Tensor, target: Tensor) -> None:
        """Copy x [real rows, …] to their places in target [rows, …]."""
        if self.places is None:
            target.copy_(x)
        else:
            target.index_copy_(0, self.places, x)

    def gather(self, x: Tensor) -> Tensor:
        """Select the real rows of x [rows, …]."""
        return x if self.places is None else x.index_select(0, self.places)

    def attend(self, layer: int, qkv: Tensor, variant: int = TARGET) -> Tensor:
        """Attend as `AttentionBatch.attend` does, over all rows of the layout."""
        spec, cache, kernels = self.attention.spec, self.attention.cache, self.attention.kernels
        heads = qkv.view(qkv.shape[0], -1, spec.head_dim)
        factors = self.attention.factors
        q = kernels.store(heads, factors, self.positions, self.slots, cache.k[layer], cache.v[layer])
        return kernels.scan(q, cache.k[layer], cache.v[layer], self, *spec.attention_window(layer, variant)).flatten(1)

    def select(self, rows: tuple[int, ...]) -> AttentionBatch:
        return self.portable().select(rows)

    def portable(self) -> SdpaBatch:
        """Return a batch of the real rows with dynamic shapes, for passes that select rows."""
        return SdpaBatch(self.attention, self._segments)


class PagedAttention(SdpaAttention):
    """Prepare static batches where they fit, otherwise torch's, over a `PagedCache`."""

    cache: PagedCache

    def __init__(self, spec: ModelSpec, cache: PagedCache, kernels: Kernels) -> None:
        super().__init__(spec, cache)
        self.kernels = kernels
        self.factors = torch.view_as_real(self.rope.table)  # [positions, head_dim/2, 2]
        self._static: dict[Layout, StaticBatch] = {}

    def prepare(self, segments: Sequence[Segment]) -> AttentionBatch:
        widest = max(s.rows for s in segments)
        if widest > _WIDTH or len(segments) > _SEQUENCES:
            return super().prepare(segments)
        layout = Layout(_power(len(segments)), _power(widest))
        batch = self._static.get(layout)
        if batch is None:
            batch = self._static[layout] = StaticBatch(self, layout)
        return batch.load(segments)


def _power(n: int) -> int:
    """Return the least power of two that is at least n."""
    return 1 << (n - 1).bit_length()


class TorchKernels:
    """`Kernels` in torch's operations: for devices without Triton, and as the reference in tests."""

    def store(self, qkv: Tensor, factors: Tensor, positions: Tensor, slots: Tensor, k: Tensor, v: Tensor) -> Tensor:
        factors = factors.index_select(0, positions)
        kv_heads = k.shape[2]
        turned = qkv.shape[1] - kv_heads
        pairs = torch.view_as_complex(qkv[:, :turned].to(factors.dtype).reshape(len(qkv), turned, -1, 2))
        rotated = torch.view_as_real(pairs * torch.view_as_complex(factors)[:, None]).flatten(2).to(k.dtype)
        k.flatten(0, 1).index_copy_(0, slots, rotated[:, turned - kv_heads :])
        v.flatten(0, 1).index_copy_(0, slots, qkv[:, turned:].to(v.dtype))
        return rotated[:, : turned - kv_heads]

    def scan(self, q: Tensor, k: Tensor, v: Tensor, batch: StaticBatch, window: int, sinks: int) -> Tensor:
        sequences, width = batch.layout
        pages = batch.attention.cache.device_tables[batch.slabs].long()  # whole tables: shapes are static
        keys, values = (x[pages].flatten(1, 2).transpose(1, 2) for x in (k, v))  # [sequences, kv_heads, length, …]
        key = torch.arange(keys.shape[2], device=q.device)
        row = batch.starts[:, None] + torch.arange(width, device=q.device)
        seen = (key <= row[:, :, None]) & (key < batch.ends[:, None, None])  # [sequences, width, length]
        if window:
            seen &= (key > row[:, :, None] - window) | (key < sinks)
        group = q.shape[1] // k.shape[2]
        queries = q.view(sequences, width, k.shape[2], group, -1)
        scores = torch.einsum("swkgd,skld->swkgl", queries, keys) * q.shape[2] ** -0.5
        scores = scores.masked_fill(~seen[:, :, None, None], float("-inf"))
        shares = scores.to(torch.promote_types(q.dtype, torch.float32)).softmax(-1).nan_to_num_(0.0)
        return torch.einsum("swkgl,skld->swkgd", shares.to(v.dtype), values).reshape(q.shape)
