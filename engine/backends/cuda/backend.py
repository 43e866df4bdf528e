"""Construct the CUDA backend."""

from __future__ import annotations

import torch

from engine.architecture.spec import ModelSpec
from engine.backends.cuda.attention import Kernels, PagedAttention, TorchKernels
from engine.backends.cuda.cache import PagedCache
from engine.backends.cuda.graphs import GraphedDecoder
from engine.kv.blocks import CacheSize
from engine.model.backend import Backend
from engine.model.linear import LinearFactory, PackingFactory, PlainLinear

_MULTIPLIES_BF16 = (8, 0)  # least compute capability with bf16 products, which Triton requires


def cuda_backend(device: torch.device, dtype: torch.dtype) -> Backend:
    """Construct the backend, with Triton kernels where they are available. `device` is a CPU in tests."""
    name, kernels = _kernels(device, dtype)
    linear: LinearFactory = PlainLinear
    packing: PackingFactory | None = None
    if name == "paged-triton-rows":
        from engine.backends.cuda.linear import RowsLinears

        linear = packing = RowsLinears(device)

    def attention(spec: ModelSpec, size: CacheSize) -> PagedAttention:
        return PagedAttention(spec, PagedCache(spec, size, dtype, device), kernels)

    return Backend(name, linear, GraphedDecoder, dtype, attention, paged=True, packing=packing)


def _kernels(device: torch.device, dtype: torch.dtype) -> tuple[str, Kernels]:
    portable = "paged", TorchKernels()
    if device.type != "cuda" or dtype == torch.float64:
        return portable
    if dtype == torch.bfloat16 and torch.cuda.get_device_capability(device) < _MULTIPLIES_BF16:
        return portable
    try:
        from engine.backends.cuda.kernels import TritonKernels
    except ImportError:  # torch for Windows has no Triton
        return portable
    return "paged-triton" if dtype.itemsize > 2 else "paged-triton-rows", TritonKernels()
