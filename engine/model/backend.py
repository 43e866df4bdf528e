"""What runs a model on a device in a dtype: how linear layers, passes and the cache are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from engine.errors import ConfigError
from engine.kv.blocks import CacheSize
from engine.kv.cache import Cache, SlabCache
from engine.model.attention import AttentionBatch, SdpaAttention, Segment
from engine.model.decoder import Decoder
from engine.model.linear import LinearFactory, PlainLinear
from engine.model.spec import ModelSpec


class Attention(Protocol):
    """Prepares what the sublayers of a pass need to know of its rows; owns the cache's layout."""

    @property
    def cache(self) -> Cache: ...

    def prepare(self, segments: Sequence[Segment]) -> AttentionBatch:
        """The batch of a pass whose rows are the segments' positions in order; segments are sorted by slab."""

    def candidates(self, slab: int, positions: Sequence[int], states: int) -> AttentionBatch:
        """The batch of a search: `states` states of the same verified rows of one request (`CandidateBatch`)."""


@dataclass(frozen=True, slots=True)
class Backend:
    """`name` is part of profile keys."""

    name: str
    linear: LinearFactory
    decoder: Callable[..., Decoder]
    cache_dtype: torch.dtype
    attention: Callable[[ModelSpec, CacheSize], Attention]
    paged: bool = False  # whether blocks are pages
    packs: bool = False  # whether matrices may stay packed,
    looks_up_packed: bool = False  # and the embedding


def choose_backend(
    spec: ModelSpec, device: torch.device, dtype: torch.dtype, threads: int, kernels: str = "auto"
) -> Backend:
    """The fastest backend there is; `kernels` is "auto", "native" or "torch". Raises ConfigError."""
    if kernels != "torch" and device.type == "cpu" and dtype == torch.bfloat16:
        from engine.native.backend import native_backend

        found = native_backend(spec, threads)
        if found is not None:
            return found
    if kernels == "native":
        raise ConfigError(
            "--kernels native needs a CPU, --dtype bfloat16, a C++ compiler, and a model whose heads and MLPs are "
            "multiples of 32 wide"
        )
    if device.type == "cuda":
        from engine.cuda.backend import cuda_backend

        return cuda_backend(device, dtype)
    # SDPA with bf16 queries of a row or two is many times slower than with float32.
    cache_dtype = torch.float32 if dtype.itemsize < 4 else dtype

    def attention(spec: ModelSpec, size: CacheSize) -> SdpaAttention:
        return SdpaAttention(spec, SlabCache(spec, size.slabs, size.length, cache_dtype, device))

    return Backend("plain-sdpa", PlainLinear, Decoder, cache_dtype, attention)
