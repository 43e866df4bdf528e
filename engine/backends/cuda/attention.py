"""Compute attention over pages. Passes of few rows per request have static shapes, so that CUDA graphs can hold them.

A static pass has up to `sequences` × `width` rows, both powers of two. Its products see only its rows, padded to few
counts; its attention gives each sequence `width` places. Padding rows read and write no page. Prompt chunks use
torch's flash attention over gathered K/V. Candidates, and devices without flash attention, use SDPA.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from inspect import signature
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention.varlen import varlen_attn

from engine.architecture.spec import ModelSpec
from engine.kv.cache import PagedCache
from engine.model.attention import AttentionBatch, SdpaAttention, SdpaBatch, Segment
from engine.model.decoder import Draws
from engine.plans import TARGET
from engine.sampling.sample import gumbel_of, noise_key, results_of
from engine.tensors import to_device

MOST_SEQUENCES, MOST_WIDTH = 64, 16  # of a static pass
# Before 2.13, torch groups query heads without being asked.
_GROUPED: dict[str, Any] = {"enable_gqa": True} if "enable_gqa" in signature(varlen_attn).parameters else {}
_NEVER = 2.0  # a confidence that no row has: it does not continue its draft


class Layout(NamedTuple):
    """The shape of a static pass: `rows` rows, padding included, and `width` places for each of `sequences`."""

    sequences: int
    width: int
    rows: int

    @classmethod
    def of(cls, segments: Sequence[Segment]) -> Layout:
        """Return the smallest layout for these segments."""
        sequences, width = _power(len(segments)), _power(max(s.rows for s in segments))
        rows = sum(s.rows for s in segments)
        padded = _power(rows)
        if rows > MOST_WIDTH:  # 24, 32, 48, 64 …: few recordings, and at most a third is padding
            padded = min(padded, 3 * _power(-(-rows // 3)))
        return cls(sequences, width, min(padded, sequences * width))


class Kernels(Protocol):
    """The operations of a recorded pass around its products: `TritonKernels`, or `TorchKernels`."""

    def of_draft(self, stops: bool) -> AbstractContextManager[None]:
        """Launch the kernels of a draft pass; if `stops`, they do nothing once the draft has ended."""

    def embed(self, inputs: StaticInputs, embedding: Tensor, dtype: torch.dtype, norm: Tensor) -> tuple[Tensor, Any]:
        """Look the tokens of the rows up in embedding [vocab, hidden]: -> [rows, hidden] in `dtype`.

        The second result is what `FusedLinear.normed` takes as prepared for an RMSNorm by `norm`, or None.
        """

    def attend(
        self, qkv: Tensor, norm: Tensor | None, epsilon: float, layer: int, batch: PagedBatch, window: int, sinks: int
    ) -> Tensor:
        """Rotate q and k, store k and v in the pages of the batch, and attend: [rows, heads, head_dim] of qkv, with
        those of K and V, -> [rows, query heads, head_dim].

        `norm` [heads of q and k, head_dim] is the weight of an RMSNorm before the rotation. `window` and `sinks` limit
        which positions a row sees (`ModelSpec.attention_window`).
        """

    def draw(self, logits: Tensor, inputs: StaticInputs) -> None:
        """Draw a token from each row of logits [rows, vocab] as `Sampler.sample` does; set `inputs.results`."""


class StaticInputs:
    """What all passes of one layout read besides weights and pages, and what they draw, in fixed memory.

    One copy from the host sets the inputs of a pass.
    """

    def __init__(self, layout: Layout, device: torch.device) -> None:
        rows, s = layout.rows, layout.sequences
        self._device = device
        self._sizes = [rows] * 6 + [s] * 4 + [1]
        self._numbers = torch.zeros(sum(self._sizes), dtype=torch.int64, device=device)
        parts = torch.split(self._numbers, self._sizes)
        self.tokens, self.places, self.keys = parts[:3]  # a row's token, place (-1: padding), and key of its noise
        self.temperatures, self.noises, self.least = (part.view(torch.float64) for part in parts[3:6])
        # starts: position of a sequence's first row; ends: position after its last row, 0 for a padding sequence;
        # firsts: number of its first row
        self.slabs, self.starts, self.ends, self.firsts = parts[6:10]
        self.fresh = parts[10]  # 0: a pass of a draft that goes on
        self.results = torch.zeros(2, rows, dtype=torch.float64, device=device)  # tokens, or -1, and confidences

    def load(
        self, width: int, segments: Sequence[Segment], tokens: Sequence[int] | Tensor, draws: Draws, fresh: bool
    ) -> None:
        """Set the inputs of the next pass: the segments' positions, in order, tokens [rows], and what is drawn."""
        host = torch.zeros(len(self._numbers), dtype=torch.int64, pin_memory=self._device.type == "cuda")
        parts = np.split(host.numpy(), np.cumsum(self._sizes[:-1]))
        ids, places, keys, slabs, starts, ends, firsts, begins = (*parts[:3], *parts[6:])
        temperatures, noises, least = (part.view(np.float64) for part in parts[3:6])
        places[:], noises[:], least[:] = -1, 1.0, _NEVER
        begins[0] = fresh
        row = 0
        for i, (slab, start, count) in enumerate(segments):
            slabs[i], starts[i], ends[i], firsts[i] = slab, start, start + count, row
            places[row : row + count] = range(i * width, i * width + count)
            row += count
        for i, at in enumerate(draws.rows):
            params = draws.sampling[i]
            temperatures[at] = params.temperature
            if params.temperature > 0.0:
                keys[at] = noise_key(params.seed, draws.positions[i])
        if draws.noise:
            noises[list(draws.rows)] = draws.noise
        if draws.least:
            least[list(draws.rows)] = draws.least
        if not isinstance(tokens, Tensor):
            ids[:row] = tokens
        self._numbers.copy_(host, non_blocking=True)
        if isinstance(tokens, Tensor):
            self.tokens[:row].copy_(tokens)


class PagedBatch:
    """`AttentionBatch` of a static pass."""

    def __init__(self, attention: PagedAttention, layout: Layout, segments: tuple[Segment, ...]) -> None:
        self.attention, self.layout, self.segments = attention, layout, segments
        self.inputs = attention.inputs(layout)
        self.count = sum(segment.rows for segment in segments)  # rows without padding

    def load(self, tokens: Sequence[int] | Tensor, draws: Draws, *, fresh: bool) -> None:
        """Set the inputs of this pass: tokens [rows]. `fresh`: whether it runs even if the draft has ended."""
        self.inputs.load(self.layout.width, self.segments, tokens, draws, fresh)

    def attend(
        self, layer: int, qkv: Tensor, variant: int = TARGET, norm: Tensor | None = None, epsilon: float = 0.0
    ) -> Tensor:
        """Attend as `AttentionBatch.attend` does, over all rows of the layout; first apply an RMSNorm by `norm`."""
        spec = self.attention.spec
        heads = qkv.view(len(qkv), -1, spec.head_dim)
        window, sinks = spec.attention_window(layer, variant)
        return self.attention.kernels.attend(heads, norm, epsilon, layer, self, window, sinks).flatten(1)

    def select(self, rows: tuple[int, ...]) -> AttentionBatch:
        return self.portable().select(rows)

    def portable(self) -> SdpaBatch:
        """Return a batch of the same rows for passes that are not recorded, or that leave rows out."""
        return SdpaBatch(self.attention, self.segments)


class PromptBatch(SdpaBatch):
    """`AttentionBatch` of prompt chunks: one call of torch's flash attention for all of them.

    That kernel does not divide a context among programs, so that a decoding request with a long one would hold up the
    pass. Requests of up to MOST_WIDTH rows therefore attend as in static passes.
    """

    def __init__(self, attention: PagedAttention, segments: tuple[Segment, ...]) -> None:
        super().__init__(attention, segments)
        cache = attention.cache
        few = [s for s in segments if s.rows <= MOST_WIDTH][:MOST_SEQUENCES]
        chunks = [s for s in segments if s not in few]
        rows, ends = [s.rows for s in chunks], [s.start + s.rows for s in chunks]
        self._kv = [cache.read([s.slab], 0, end) for s, end in zip(chunks, ends, strict=True)]
        before = [[*accumulate(counts, initial=0)] for counts in (rows, ends)]
        self._before = to_device(before, cache.device, torch.int32)  # [2, chunks + 1], rows and keys before each chunk
        self._most = max(rows), max(ends)
        self._few: PagedBatch | None = None
        if few:
            firsts = dict(zip(segments, accumulate((s.rows for s in segments), initial=0), strict=False))
            self._few = PagedBatch(attention, Layout.of(few), tuple(few))
            self._few.load([0] * self._few.count, Draws(), fresh=True)
            numbers = [[firsts[s] + i for s in part for i in range(s.rows)] for part in (chunks, few)]
            numbers[1] += [0] * (self._few.layout.rows - self._few.count)  # padding
            self._rows_of_chunks, self._rows_of_few = (to_device(part, cache.device) for part in numbers)

    def attend(self, layer: int, qkv: Tensor, variant: int = TARGET) -> Tensor:
        window, sinks = self._backend.spec.attention_window(layer, variant)
        if sinks:
            return super().attend(layer, qkv, variant)
        q = self._store(layer, qkv)
        q = q.contiguous() if self._few is None else q.index_select(0, self._rows_of_chunks)
        parts = [[x[0].transpose(0, 1) for x in kv[layer]] for kv in self._kv]  # K and V of each chunk
        k, v = parts[0] if len(parts) == 1 else (torch.cat(each) for each in zip(*parts, strict=True))
        (before, keys_before), (most, most_keys) = self._before, self._most
        seen = (window - 1 if window else -1, 0)
        found = varlen_attn(q, k, v, before, keys_before, most, most_keys, window_size=seen, **_GROUPED)
        assert isinstance(found, Tensor)
        out = found.flatten(1).to(qkv.dtype)
        if self._few is None:
            return out
        whole, count = out.new_empty(len(qkv), out.shape[1]), self._few.count
        attended = self._few.attend(layer, qkv.index_select(0, self._rows_of_few), variant).to(qkv.dtype)
        whole.index_copy_(0, self._rows_of_chunks, out)
        return whole.index_copy_(0, self._rows_of_few[:count], attended[:count])


class PagedAttention(SdpaAttention):
    """Prepare static batches where they fit, otherwise torch's, over a `PagedCache`."""

    def __init__(self, spec: ModelSpec, cache: PagedCache, kernels: Kernels, *, flash: bool = False) -> None:
        """`flash`: whether torch has flash attention for this device and dtype."""
        super().__init__(spec, cache)
        self.kernels, self._flash = kernels, flash and spec.head_dim <= 256 and spec.head_dim % 8 == 0
        self.factors = torch.view_as_real(self.rope.table)  # [positions, head_dim/2, 2]
        self._inputs: dict[Layout, StaticInputs] = {}

    def prepare(self, segments: Sequence[Segment]) -> AttentionBatch:
        if max(s.rows for s in segments) <= MOST_WIDTH and len(segments) <= MOST_SEQUENCES:
            return PagedBatch(self, Layout.of(segments), tuple(segments))
        return (PromptBatch if self._flash else SdpaBatch)(self, tuple(segments))

    def inputs(self, layout: Layout) -> StaticInputs:
        """Return the memory of a layout's inputs."""
        found = self._inputs.get(layout)
        if found is None:
            found = self._inputs[layout] = StaticInputs(layout, self.cache.device)
        return found


def _power(n: int) -> int:
    """Return the least power of two that is at least n."""
    return 1 << (n - 1).bit_length()


class TorchKernels:
    """`Kernels` in torch's operations: for devices without Triton, and as the reference in tests."""

    def of_draft(self, stops: bool) -> AbstractContextManager[None]:
        return nullcontext()

    def embed(self, inputs: StaticInputs, embedding: Tensor, dtype: torch.dtype, norm: Tensor) -> tuple[Tensor, Any]:
        return embedding.index_select(0, inputs.tokens.clamp(min=0)).to(dtype), None

    def attend(
        self, qkv: Tensor, norm: Tensor | None, epsilon: float, layer: int, batch: PagedBatch, window: int, sinks: int
    ) -> Tensor:
        (sequences, width, _), inputs, cache = batch.layout, batch.inputs, batch.attention.cache
        k, v = cache.k[layer], cache.v[layer]
        tables = cache.device_tables[inputs.slabs].long()  # whole tables: shapes are static
        real, kv_heads, size = inputs.places >= 0, k.shape[2], cache.block_size
        places = torch.where(real, inputs.places, sequences * width)  # padding rows share one place more
        sequence, turned = inputs.places.clamp(min=0) // width, qkv.shape[1] - kv_heads
        positions = torch.where(real, inputs.starts[sequence] + places % width, 0)
        qk, new_v = qkv[:, :turned], qkv[:, turned:]
        if norm is not None:
            qk = torch.rms_norm(qk, norm.shape[1:], None, epsilon) * norm
        factors = batch.attention.factors.index_select(0, positions)
        pairs = torch.view_as_complex(qk.to(factors.dtype).reshape(len(qk), turned, -1, 2))
        rotated = torch.view_as_real(pairs * torch.view_as_complex(factors)[:, None]).flatten(2).to(k.dtype)
        page = tables[sequence].gather(1, positions[:, None] // size)[:, 0]
        slots = torch.where(real, page * size + positions % size, 0)  # padding rows write to page 0
        k.flatten(0, 1).index_copy_(0, slots, rotated[:, turned - kv_heads :])
        v.flatten(0, 1).index_copy_(0, slots, new_v.to(v.dtype))

        q = rotated[:, : turned - kv_heads]
        spread = q.new_zeros(sequences * width + 1, *q.shape[1:]).index_copy_(0, places, q)
        queries = spread[:-1].view(sequences, width, kv_heads, -1, qkv.shape[2])
        keys, values = (x[tables].flatten(1, 2) for x in (k, v))  # [sequences, length, kv_heads, …]
        key = torch.arange(keys.shape[1], device=qkv.device)
        row = inputs.starts[:, None] + torch.arange(width, device=qkv.device)
        seen = (key <= row[:, :, None]) & (key < inputs.ends[:, None, None])  # [sequences, width, length]
        if window:
            seen &= (key > row[:, :, None] - window) | (key < sinks)
        scores = torch.einsum("swkgd,slkd->swkgl", queries, keys) * qkv.shape[2] ** -0.5
        scores = scores.masked_fill(~seen[:, :, None, None], float("-inf"))
        shares = scores.to(torch.promote_types(k.dtype, torch.float32)).softmax(-1).nan_to_num_(0.0)
        out = torch.einsum("swkgl,slkd->swkgd", shares.to(v.dtype), values).reshape(sequences * width, *q.shape[1:])
        return out.index_select(0, places.clamp(max=len(out) - 1))

    def draw(self, logits: Tensor, inputs: StaticInputs) -> None:
        scores = logits if logits.dtype == torch.float64 else logits.float()
        temperature = inputs.temperatures.to(scores.dtype)[:, None]
        scores = scores / torch.where(temperature > 0.0, temperature, 1.0)
        noise = gumbel_of(inputs.keys, torch.arange(scores.shape[1], device=scores.device))
        noise *= inputs.noises.float()[:, None]
        noisy = torch.where(temperature > 0.0, scores + noise.to(scores.dtype), scores)
        inputs.results.copy_(results_of(noisy, scores))
