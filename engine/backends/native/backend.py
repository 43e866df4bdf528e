"""The native backend as the rest of the engine asks for it."""

from __future__ import annotations

import torch

from engine.architecture.spec import ModelSpec
from engine.backends.native.attention import NativeAttention, NativeCache
from engine.backends.native.decoder import NativeDecoder, fits
from engine.backends.native.linear import NativeLinears
from engine.kernels.library import Library, library
from engine.kv.blocks import CacheSize
from engine.model.backend import Backend

# Weights of a model whose packed matrices get inputs of fifteen bits. With eight, as llama.cpp has them, SmolLM2-135M's
# residual stream is 2 to 5 % off, with these it is as with bf16 (0.2 to 1 %), and 0.5B and more hardly notice
# (docs/performance.md): few weights take little of the time that the second half costs.
_SMALL = 256_000_000


def widens_bf16(spec: ModelSpec) -> bool:
    """Whether bf16 weights are the fastest on a CPU without bf16 products: the kernels widen what they read, half the
    bytes of float32. Measured with AVX2 alone."""
    return bool(torch.cpu._is_avx2_supported()) and fits(spec) and library() is not None


def native_backend(
    spec: ModelSpec, threads: int, kernels: Library | None = None, *, precise: bool | None = None
) -> Backend | None:
    """Make the backend for `threads` threads; `kernels` are this machine's unless others are passed.

    `precise`: whether packed matrices get inputs of fifteen bits instead of eight; None: those of small models do.
    None if the library cannot be had or the model's shape does not suit it.
    """
    found = (kernels or library()) if fits(spec) else None
    if found is None:
        return None
    linears = NativeLinears(found, threads, precise=spec.parameters < _SMALL if precise is None else precise)
    return Backend(linears.name, linears, NativeDecoder, torch.bfloat16, _attention, packs=True, looks_up_packed=True)


def _attention(spec: ModelSpec, size: CacheSize) -> NativeAttention:
    return NativeAttention(spec, NativeCache(spec, size.slabs, size.length))
