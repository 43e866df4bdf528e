"""Construct the native backend."""

from __future__ import annotations

import torch

from engine.architecture.spec import ModelSpec
from engine.backends.native.attention import NativeAttention, NativeCache
from engine.backends.native.decoder import NativeDecoder, fits
from engine.backends.native.linear import NativeLinears
from engine.kernels.library import KernelLibrary
from engine.model.backend import Backend

# Models with fewer weights multiply packed matrices with inputs of 15 bits instead of 8. With 8 bits, as in llama.cpp,
# SmolLM2-135M's residual stream is off by 2 to 5 %; with 15 bits by 0.2 to 1 %, as with bf16 inputs. Models from 0.5B
# on hardly notice the difference, and would pay more time for it (docs/results.md).
_SMALL = 256_000_000


def widens_bf16(spec: ModelSpec) -> bool:
    """Whether bf16 is the fastest dtype for the kernels on a CPU without bf16 products.

    The kernels convert bf16 weights to float32 as they read them, which takes half the memory traffic. Measured on
    AVX2 only.
    """
    return bool(torch.cpu._is_avx2_supported()) and fits(spec)


def native_backend(spec: ModelSpec, threads: int, kernels: KernelLibrary, *, precise: bool | None = None) -> Backend:
    """Construct the backend for `threads` threads and a model whose shape `fits`.

    `precise`: whether the inputs of packed matrices have fifteen bits instead of eight, by default those of small
    models.
    """
    linears = NativeLinears(kernels, threads, precise=spec.parameters < _SMALL if precise is None else precise)
    return Backend(
        name="native",
        linear=linears,
        decoder=NativeDecoder,
        cache_dtype=torch.bfloat16,
        attention=lambda spec, size: NativeAttention(spec, NativeCache(spec, size)),
        kernels=kernels,
        packing=linears,
        looks_up_packed=True,
    )
