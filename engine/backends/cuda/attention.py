"""Attention over pages. Passes of few rows a request have static shapes, so that graphs can hold them.

Such a pass is laid out as `sequences` × `width` rows, both powers of two; rows that are not there write to a page that
nobody reads and attend to nothing. Everything else (prompt chunks, candidates) goes the portable way over gathered K/V.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from engine.architecture.spec import TARGET, ModelSpec
from engine.backends.cuda.cache import PagedCache
from engine.model.attention import AttentionBatch, SdpaAttention, SdpaBatch, Segment
from engine.upload import upload

_SEQUENCES, _WIDTH = 64, 16  # the largest static pass


class Layout(NamedTuple):
    """Rows of a static pass: `width` for each of `sequences`."""

    sequences: int
    width: int

    @property
    def rows(self) -> int:
        return self.sequences * self.width


class Kernels(Protocol):
    """What the device does best in one go."""

    def store(self, qkv: Tensor, factors: Tensor, positions: Tensor, slots: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Rotates q and k, writes k and v to flat slots: qkv [rows, heads, head_dim], factors [all positions,
        head_dim/2, 2], positions and slots [rows], k, v [pages, block_size, kv_heads, head_dim] -> q [rows, heads of q,
        head_dim].
        """

    def scan(self, q: Tensor, k: Tensor, v: Tensor, batch: StaticBatch, window: int, sinks: int) -> Tensor:
        """Attention of the batch's rows over the visible tokens of their pages (`ModelSpec.attention_window`); shapes
        as above."""


class StaticBatch:
    """The batch of every pass of one layout: `load` says what its rows are this time."""

    def __init__(self, attention: PagedAttention, layout: Layout) -> None:
        self.layout, self.attention = layout, attention
        s, rows = layout
        device = attention.cache.device
        self._numbers = torch.zeros(2 * layout.rows + 3 * s, dtype=torch.int64, device=device)
        sizes = [layout.rows, layout.rows, s, s, s]
        # starts: position of a sequence's first row; ends: one beyond its last, 0 where there is none
        self.slots, self.positions, self.slabs, self.starts, self.ends = torch.split(self._numbers, sizes)
        self.places: Tensor | None = None  # of the rows that are there, if not all are
        self.rows = rows
        self._segments: tuple[Segment, ...] = ()

    def load(self, segments: Sequence[Segment]) -> StaticBatch:
        """The segments' positions in order are the rows of the next pass."""
        width, cache = self.layout.width, self.attention.cache
        self._segments = tuple(segments)
        padding = [Segment(0, 0, 0)] * (self.layout.sequences - len(segments))
        slots: list[int] = []
        positions: list[int] = []
        places: list[int] = []
        for i, segment in enumerate(segments):
            empty = [0] * (width - segment.rows)
            slots += cache.slots([segment]) + empty
            positions += [*range(segment.start, segment.start + segment.rows), *empty]
            places += range(i * width, i * width + segment.rows)
        none = [0] * (len(padding) * width)
        every = [*segments, *padding]
        sequences = [[s.slab for s in every], [s.start for s in every], [s.start + s.rows for s in every]]
        numbers = [*slots, *none, *positions, *none, *(n for part in sequences for n in part)]
        self._numbers.copy_(upload(numbers, cache.device))
        self.rows = len(places)
        whole = self.rows == self.layout.rows
        self.places = None if whole else upload(places, cache.device)
        return self

    def spread(self, x: Tensor, target: Tensor) -> None:
        """x [rows that are there, …] to their places in target [rows, …]."""
        if self.places is None:
            target.copy_(x)
        else:
            target.index_copy_(0, self.places, x)

    def gather(self, x: Tensor) -> Tensor:
        """The rows that are there out of x [rows, …]."""
        return x if self.places is None else x.index_select(0, self.places)

    def attend(self, layer: int, qkv: Tensor, variant: int = TARGET) -> Tensor:
        """As `AttentionBatch.attend`, over all rows of the layout."""
        spec, cache, kernels = self.attention.spec, self.attention.cache, self.attention.kernels
        heads = qkv.view(qkv.shape[0], -1, spec.head_dim)
        factors = self.attention.factors
        q = kernels.store(heads, factors, self.positions, self.slots, cache.k[layer], cache.v[layer])
        return kernels.scan(q, cache.k[layer], cache.v[layer], self, *spec.attention_window(layer, variant)).flatten(1)

    def select(self, rows: tuple[int, ...]) -> AttentionBatch:
        raise AssertionError("static passes mask rows, they leave none out")

    def portable(self) -> SdpaBatch:
        """The same rows, without those that are not there, for a pass that leaves rows out."""
        return SdpaBatch(self.attention, self._segments)


class PagedAttention(SdpaAttention):
    """Backend "paged": static batches where they can be, else the portable ones, over a `PagedCache`."""

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
    """The least power of two that is not less."""
    return 1 << (n - 1).bit_length()


class TorchKernels:
    """The same in torch's operations: where there is no Triton, and to test the others against."""

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
        pages = batch.attention.cache.table[batch.slabs].long()  # whole tables: shapes must not depend on lengths
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
