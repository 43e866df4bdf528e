"""Attend over the live cache with torch's SDPA, the portable backend for every device.

A pass prepares one `AttentionBatch` from its segments (positions, RoPE factors, masks); every attention sublayer of the
pass then calls `attend(layer, qkv)`. Requests of similar length share one SDPA call; the others get one each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.kv.cache import Cache, PagedCache, Slots
from engine.plans import TARGET
from engine.tensors import to_device

_BYTES_PER_CALL = 400_000  # K/V bytes that take as long to read as an SDPA call takes to start (measured: about 15 µs)
_SCORES = 1 << 24  # in memory at once, 64 MB; all heads of 128 candidate rows at 64k tokens have 16 times as many
_PROMPT_ROWS = 16  # a segment of more rows is a prompt chunk, which gets a call of its own


Batch = TypeVar("Batch", covariant=True)


class Segment(NamedTuple):
    """Rows of one request in a pass, at consecutive positions from `start` on."""

    slab: int
    start: int
    rows: int

    @property
    def positions(self) -> range:
        """The position of each row."""
        return range(self.start, self.start + self.rows)


class AttentionBatch(Protocol):
    """The state that all attention sublayers of one pass of a `TorchDecoder` share."""

    def attend(self, layer: int, qkv: Tensor, variant: int = TARGET) -> Tensor:
        """Attend: qkv [rows, (heads + 2·kv_heads)·head_dim] -> [rows, heads·head_dim], in qkv's dtype.

        `variant` only decides which positions of the cache are visible.
        """

    def select(self, rows: tuple[int, ...]) -> AttentionBatch:
        """Return the batch of a subset of the rows; row indices ascend."""


class AttentionOf(Protocol[Batch]):
    """Makes the batches of passes over a cache, whose layout it knows. The backend's decoder reads them."""

    @property
    def cache(self) -> Cache: ...

    def prepare(self, segments: Sequence[Segment]) -> Batch:
        """Return the batch of a pass over the segments' rows, in order; segments are sorted by slab."""

    def candidates(self, slab: int, positions: Sequence[int], states: int) -> Batch:
        """Return the batch of `states` candidate states for verified positions of a request (`CandidateBatch`)."""


Attention = AttentionOf[Any]  # the type for code that passes the batches on to its `Decoder`


class Rope:
    """Rotary factors e^{i·p·θ} [positions, head_dim/2].

    q and k weights are stored interleaved, so that neighbouring outputs are the real and imaginary part of one pair.
    """

    def __init__(self, spec: ModelSpec, positions: int, dtype: torch.dtype, device: torch.device) -> None:
        inverse = spec.rope.inverse_frequencies(spec.head_dim)
        angles = torch.arange(positions, dtype=torch.float32)[:, None] * inverse[None, :]
        factors = torch.polar(torch.full_like(angles, spec.rope.magnitude), angles)
        self.table = factors.to(device=device, dtype=torch.complex128 if dtype == torch.float64 else torch.complex64)

    def factors(self, positions: Tensor) -> Tensor:
        """Return one factor per row and pair, the same for all heads: [rows, 1, head_dim/2]."""
        return self.table.index_select(0, positions).unsqueeze(1)


class Workspace:
    """Buffers for q, k and v of a pass of `rows` rows, with the views of them that a layer needs.

    All layers and passes share them: at one row, making the views anew costs as much as the attention itself.
    """

    def __init__(self, spec: ModelSpec, rows: int, cache_dtype: torch.dtype, device: torch.device) -> None:
        wide = torch.float64 if cache_dtype == torch.float64 else torch.float32
        heads, rotated = spec.heads + 2 * spec.kv_heads, spec.heads + spec.kv_heads
        self._flat = torch.empty(rows, heads * spec.head_dim, dtype=wide, device=device)
        self._pairs = torch.view_as_complex(self._flat.view(rows, heads, spec.head_dim // 2, 2)[:, :rotated])
        by_head = self._flat.view(rows, heads, spec.head_dim)
        self._narrow = None if wide == cache_dtype else torch.empty_like(by_head, dtype=cache_dtype)
        out = by_head if self._narrow is None else self._narrow
        self.q = out[:, : spec.heads]  # [rows, heads, head_dim]
        self.kv = out[:, spec.heads :]  # [rows, 2·kv_heads, head_dim]

    def load(self, qkv: Tensor, factors: Tensor) -> None:
        """Copy qkv [rows, …] into the buffers, apply RoPE to q and k, and convert all to the cache's dtype."""
        self._flat.copy_(qkv)
        self._pairs.mul_(factors)
        if self._narrow is not None:
            self._narrow.copy_(self._flat.view_as(self._narrow))


@dataclass(slots=True)
class _Call:
    """One SDPA call: rows `first:last` of the pass, or a padded gather of them, over some slabs."""

    kv: Slots  # per layer K and V of the slabs, [slabs, kv_heads, length, head_dim]
    sink_kv: Slots | None  # the same for the first tokens, which a window also sees
    slabs: int
    width: int  # query rows per slab
    first: int
    last: int
    mask: Tensor | None  # additive, [slabs, 1, width·group or width, length]
    folded: bool  # query heads of a group become rows, so that K/V is read once a group
    gather: Tensor | None = None  # [slabs·width] rows of the pass, padded
    scatter: Tensor | None = None  # [rows] of the padded output


class SdpaAttention:
    """Backend "sdpa": makes batches over a `PagedCache`."""

    def __init__(self, spec: ModelSpec, cache: PagedCache) -> None:
        self.spec = spec
        self.cache = cache
        self.rope = Rope(spec, cache.length, cache.dtype, cache.device)
        self._workspaces: dict[int, Workspace] = {}
        self._token_bytes = 2 * spec.kv_heads * spec.head_dim * cache.dtype.itemsize

    def prepare(self, segments: Sequence[Segment]) -> AttentionBatch:
        return SdpaBatch(self, tuple(segments))

    def candidates(self, slab: int, positions: Sequence[int], states: int) -> CandidateBatch:
        return CandidateBatch(self, slab, tuple(positions) * states)

    def workspace(self, rows: int) -> Workspace:
        """Return buffers for a pass of this many rows. Those of small passes are reused."""
        space = self._workspaces.get(rows)
        if space is None:
            space = Workspace(self.spec, rows, self.cache.dtype, self.cache.device)
            if rows <= 4 * _PROMPT_ROWS:
                self._workspaces[rows] = space
        return space

    def plan_calls(self, segments: tuple[Segment, ...], visible: tuple[int, int]) -> list[_Call]:
        """Partition segments into SDPA calls: neighbours share one while that wastes little reading.

        `visible`: the window and the sinks that each row sees, `ModelSpec.attention_window`.
        """
        calls: list[_Call] = []
        group: list[Segment] = []
        first = row = 0
        for segment in segments:
            if group and not self._joins(group, segment):
                calls.append(self._call(group, first, *visible))
                group, first = [], row
            group.append(segment)
            row += segment.rows
        calls.append(self._call(group, first, *visible))
        return calls

    def _joins(self, group: list[Segment], segment: Segment) -> bool:
        """Whether a segment joins a group's call: copying its K/V must cost less than a call of its own."""
        if segment.rows > _PROMPT_ROWS or group[-1].rows > _PROMPT_ROWS:
            return False
        lengths = [s.start + s.rows for s in (*group, segment)]
        return 2 * max(lengths) * self._token_bytes <= _BYTES_PER_CALL  # a shared call copies all K/V

    def _call(self, group: list[Segment], first: int, window: int, sinks: int) -> _Call:
        width = max(s.rows for s in group)
        # The first position that a row sees; window 0 is the whole context.
        begin = max(0, min(s.start for s in group) + 1 - window) if window else 0
        length = max(s.start + s.rows for s in group)
        rows = sum(s.rows for s in group)
        device = self.cache.device
        slabs, separate_sinks = [s.slab for s in group], min(sinks, begin)
        kv = self.cache.read(slabs, begin, length)
        sink_kv = self.cache.read(slabs, 0, separate_sinks) if separate_sinks else None
        call = _Call(kv, sink_kv, len(group), width, first, first + rows, None, width <= _PROMPT_ROWS)
        if rows < width * len(group):
            gather: list[int] = []
            scatter: list[int] = []
            row = first
            for index, segment in enumerate(group):
                gather += [row + min(i, segment.rows - 1) for i in range(width)]
                scatter += range(index * width, index * width + segment.rows)
                row += segment.rows
            call.gather = to_device(gather, device)
            call.scatter = to_device(scatter, device)
        if width > 1 or any(s.start + s.rows != length for s in group):
            call.mask = self._mask(group, width, begin, length, call.folded, window, sinks)
        return call

    def _mask(
        self, group: list[Segment], width: int, begin: int, length: int, folded: bool, window: int, sinks: int
    ) -> Tensor:
        """Return the additive causal mask [slabs, 1, rows, sinks + length - begin]; padding repeats the last row."""
        device = self.cache.device
        seen = to_device([[s.start + min(i, s.rows - 1) for i in range(width)] for s in group], device)
        if folded:
            seen = seen.repeat_interleave(self.spec.heads // self.spec.kv_heads, dim=1)
        first = torch.arange(min(sinks, begin), device=device)
        keys = torch.cat([first, torch.arange(begin, length, device=device)])
        hidden = keys > seen[:, :, None]
        if window:
            hidden |= (keys <= seen[:, :, None] - window) & (keys >= sinks)
        mask = torch.zeros(hidden.shape, dtype=self.cache.dtype, device=device)
        return mask.masked_fill_(hidden, float("-inf"))[:, None]


class SdpaBatch:
    """`AttentionBatch` of the SDPA backend."""

    def __init__(self, backend: SdpaAttention, segments: tuple[Segment, ...]) -> None:
        self._backend = backend
        self._segments = segments
        cache = backend.cache
        positions = [p for segment in segments for p in segment.positions]
        self._rope = backend.rope.factors(to_device(positions, cache.device))
        self._rows = len(positions)
        self._space: Workspace | None = None
        self._calls: dict[tuple[int, int], list[_Call]] = {}  # calls by visible window
        slots = [slot for s in segments for slot in cache.slots(s.slab, s.start, s.rows)]
        self._slots = to_device(slots, cache.device)
        self._subsets: dict[tuple[int, ...], SdpaBatch] = {}

    def select(self, rows: tuple[int, ...]) -> SdpaBatch:
        """Return the batch of these rows. Segments must have one row each, as those of draft passes do."""
        subset = self._subsets.get(rows)
        if subset is None:
            assert all(s.rows == 1 for s in self._segments), "only draft passes leave rows out"
            subset = self._subsets[rows] = SdpaBatch(self._backend, tuple(self._segments[r] for r in rows))
        return subset

    def _calls_of(self, layer: int, variant: int) -> list[_Call]:
        visible = self._backend.spec.attention_window(layer, variant)
        if visible not in self._calls:
            self._calls[visible] = self._backend.plan_calls(self._segments, visible)
        return self._calls[visible]

    def attend(self, layer: int, qkv: Tensor, variant: int = TARGET) -> Tensor:
        q = self._store(layer, qkv)
        outs = [self._run(call, layer, q) for call in self._calls_of(layer, variant)]
        out = outs[0] if len(outs) == 1 else torch.cat(outs)
        return out.to(qkv.dtype)

    def _store(self, layer: int, qkv: Tensor) -> Tensor:
        """Rotate q and k, write k and v to the cache, and return q [rows, heads, head_dim]."""
        space = self._space
        if space is None:
            space = self._space = self._backend.workspace(self._rows)
        space.load(qkv, self._rope)
        self._backend.cache.write(layer, self._slots, space.kv)
        return space.q

    def _run(self, call: _Call, layer: int, q: Tensor) -> Tensor:
        """Run one SDPA call and return [rows, heads·head_dim]."""
        spec = self._backend.spec
        k, v = call.kv[layer]
        if call.sink_kv is not None:
            k, v = (torch.cat(both, dim=2) for both in zip(call.sink_kv[layer], (k, v), strict=True))
        rows = q[call.first : call.last] if call.gather is None else q.index_select(0, call.gather)
        slabs, width, group = call.slabs, call.width, spec.heads // spec.kv_heads
        if call.folded:
            rows = rows.reshape(slabs, width, spec.kv_heads, group, spec.head_dim).transpose(1, 2)
            rows = rows.reshape(slabs, spec.kv_heads, width * group, spec.head_dim)
            out = F.scaled_dot_product_attention(rows, k, v, attn_mask=call.mask)
            out = out.view(slabs, spec.kv_heads, width, group, spec.head_dim).transpose(1, 2)
        else:
            rows = rows.reshape(slabs, width, spec.heads, spec.head_dim).transpose(1, 2)
            step = _rows_at_once(k.device, width, slabs * spec.heads * k.shape[2])
            parts = (slice(first, first + step) for first in range(0, width, step))
            masks = ((part, None if call.mask is None else call.mask[:, :, part]) for part in parts)
            outs = [
                F.scaled_dot_product_attention(rows[:, :, part], k, v, attn_mask=mask, enable_gqa=group > 1)
                for part, mask in masks
            ]
            out = (outs[0] if len(outs) == 1 else torch.cat(outs, dim=2)).transpose(1, 2)
        out = out.reshape(slabs * width, spec.heads * spec.head_dim)
        return out if call.scatter is None else out.index_select(0, call.scatter)


def _rows_at_once(device: torch.device, rows: int, scores: int) -> int:
    """Return how many of `rows` query rows, of `scores` scores each, one SDPA call computes.

    On CUDA, masks and grouped heads may rule out all kernels but the one that holds all scores in memory.
    """
    return rows if device.type == "cpu" else max(1, _SCORES // scores)


class CandidateBatch:
    """Attention for a search's candidate states of verified rows of one request.

    A row at position p sees the target's K/V before p, and its own at p: the target's K/V at p would leak the full
    model's state into the candidate (docs/method.md). Nothing is written to the cache.
    """

    def __init__(self, backend: SdpaAttention, slab: int, rows: tuple[int, ...]) -> None:
        """`rows`: the position of each row."""
        cache = backend.cache
        self._backend, self._slab, self._rows = backend, slab, rows
        self._length = max(*rows, 1)
        self._kv = cache.read([slab], 0, self._length)
        self._positions = to_device(rows, cache.device)
        self._rope = backend.rope.factors(self._positions)
        self._masks: dict[tuple[int, int], Tensor] = {}  # masks by visible window

    def _mask(self, window: int, sinks: int) -> Tensor:
        """Return the additive mask [rows·group, length]."""
        found = self._masks.get((window, sinks))
        if found is None:
            spec, positions = self._backend.spec, self._positions[:, None]
            keys = torch.arange(self._length, device=positions.device)
            hidden = keys >= positions
            if window:
                hidden |= (keys <= positions - window) & (keys >= sinks)
            mask = torch.zeros(hidden.shape, dtype=self._backend.cache.dtype, device=positions.device)
            mask = mask.masked_fill_(hidden, float("-inf")).repeat_interleave(spec.heads // spec.kv_heads, dim=0)
            found = self._masks[window, sinks] = mask
        return found

    def select(self, rows: tuple[int, ...]) -> CandidateBatch:
        return CandidateBatch(self._backend, self._slab, tuple(self._rows[r] for r in rows))

    def attend(self, layer: int, qkv: Tensor, variant: int = TARGET) -> Tensor:
        spec = self._backend.spec
        space = self._backend.workspace(qkv.shape[0])
        space.load(qkv, self._rope)
        total, group = qkv.shape[0], spec.heads // spec.kv_heads
        q = space.q.reshape(total, spec.kv_heads, group, spec.head_dim)
        own_k, own_v = space.kv[:, : spec.kv_heads], space.kv[:, spec.kv_heads :]  # [rows, kv_heads, head_dim]
        k, v = (x[0] for x in self._kv[layer])  # [kv_heads, length, head_dim]
        folded = q.transpose(0, 1).reshape(spec.kv_heads, total * group, spec.head_dim)
        scale = spec.head_dim**-0.5
        own = (q * own_k[:, :, None]).sum(-1).transpose(0, 1).reshape(spec.kv_heads, total * group, 1) * scale
        own_v = own_v.transpose(0, 1).repeat_interleave(group, dim=1)  # [kv_heads, rows · group, head_dim]
        out = torch.empty_like(folded)
        step = max(1, _SCORES // (total * group * self._length))
        mask = self._mask(*spec.attention_window(layer, variant))
        for heads in (slice(first, first + step) for first in range(0, spec.kv_heads, step)):
            scores = torch.baddbmm(mask, folded[heads], k[heads].transpose(1, 2), alpha=scale)
            weights = torch.cat([scores, own[heads]], dim=-1).softmax(-1)
            out[heads] = torch.bmm(weights[..., :-1], v[heads]) + weights[..., -1:] * own_v[heads]
        out = out.view(spec.kv_heads, total, group, spec.head_dim)
        return out.transpose(0, 1).reshape(total, spec.heads * spec.head_dim).to(qkv.dtype)
