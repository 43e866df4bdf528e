"""The CUDA backend as the rest of the engine asks for it."""

from __future__ import annotations

import torch

from engine.architecture.spec import ModelSpec
from engine.backends.cuda.attention import Kernels, PagedAttention, TorchKernels
from engine.backends.cuda.cache import PagedCache
from engine.backends.cuda.graphs import GraphedDecoder
from engine.kv.blocks import CacheSize
from engine.model.backend import Backend
from engine.model.linear import LinearFactory, PlainLinear

_MULTIPLIES_BF16 = (8, 0)  # compute capability from which on a device does, and Triton with it


def cuda_backend(device: torch.device, dtype: torch.dtype) -> Backend:
    """Pages, graphs and, where there is a Triton, its kernels. `device` is a CPU in tests."""
    if device.type == "cuda":
        _settle()
    name, linear, kernels = _kernels(device, dtype)

    def attention(spec: ModelSpec, size: CacheSize) -> PagedAttention:
        return PagedAttention(spec, PagedCache(spec, size, dtype, device), kernels)

    packs = name == "paged-triton-rows"
    return Backend(name, linear, GraphedDecoder, dtype, attention, paged=True, packs=packs)


def _settle() -> None:
    """Process-wide choices of torch's. cuDNN's attention plans anew for every length, which takes longer than any
    pass; products that add parts in half precision depend on how many rows there are more than they have to."""
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def _kernels(device: torch.device, dtype: torch.dtype) -> tuple[str, LinearFactory, Kernels]:
    """The backend's name, its products and its attention."""
    portable = "paged", PlainLinear, TorchKernels()
    if device.type != "cuda" or dtype == torch.float64:
        return portable
    if dtype == torch.bfloat16 and torch.cuda.get_device_capability(device) < _MULTIPLIES_BF16:
        return portable
    try:
        from engine.backends.cuda.kernels import TritonKernels
        from engine.backends.cuda.linear import RowsLinear
    except ImportError:  # torch for Windows comes without
        return portable
    if dtype.itemsize > 2:
        return "paged-triton", PlainLinear, TritonKernels()
    return "paged-triton-rows", RowsLinear, TritonKernels()
