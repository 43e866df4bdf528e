"""Construct the CUDA backend."""

from __future__ import annotations

import torch

from engine.architecture.spec import ModelSpec
from engine.backends.cuda.attention import Kernels, PagedAttention, TorchKernels
from engine.backends.cuda.cache import PagedCache
from engine.backends.cuda.graphs import GraphedDecoder
from engine.kv.blocks import CacheSize
from engine.model.backend import Backend
from engine.model.linear import LinearFactory, PlainLinear

_MULTIPLIES_BF16 = (8, 0)  # least compute capability with bf16 products, which Triton requires


def cuda_backend(device: torch.device, dtype: torch.dtype) -> Backend:
    """Construct the backend, with Triton kernels where they are available. `device` is a CPU in tests."""
    name, linear, kernels = _kernels(device, dtype)

    def attention(spec: ModelSpec, size: CacheSize) -> PagedAttention:
        return PagedAttention(spec, PagedCache(spec, size, dtype, device), kernels)

    packs = name == "paged-triton-rows"
    return Backend(name, linear, GraphedDecoder, dtype, attention, paged=True, packs=packs)


def _kernels(device: torch.device, dtype: torch.dtype) -> tuple[str, LinearFactory, Kernels]:
    """Choose the backend's name, its linear layers and its attention kernels."""
    portable = "paged", PlainLinear, TorchKernels()
    if device.type != "cuda" or dtype == torch.float64:
        return portable
    if dtype == torch.bfloat16 and torch.cuda.get_device_capability(device) < _MULTIPLIES_BF16:
        return portable
    try:
        from engine.backends.cuda.kernels import TritonKernels
        from engine.backends.cuda.linear import RowsLinear
    except ImportError:  # torch for Windows has no Triton
        return portable
    if dtype.itemsize > 2:
        return "paged-triton", PlainLinear, TritonKernels()
    return "paged-triton-rows", RowsLinear, TritonKernels()
