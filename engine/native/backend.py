"""The native backend as the rest of the engine asks for it."""

from __future__ import annotations

import torch

from engine.kv.blocks import CacheSize
from engine.model.backend import Backend
from engine.model.spec import ModelSpec
from engine.native.attention import NativeAttention, NativeCache
from engine.native.decoder import NativeDecoder, fits
from engine.native.library import library
from engine.native.linear import NativeLinears


def native_backend(spec: ModelSpec, threads: int) -> Backend | None:
    """For `threads` threads.

    None if the library cannot be had or the model's shape does not suit it.
    """
    found = library() if fits(spec) else None
    if found is None:
        return None
    linears = NativeLinears(found, threads)
    return Backend(linears.name, linears, NativeDecoder, torch.bfloat16, _attention)


def _attention(spec: ModelSpec, size: CacheSize) -> NativeAttention:
    return NativeAttention(spec, NativeCache(spec, size.slabs, size.length))
