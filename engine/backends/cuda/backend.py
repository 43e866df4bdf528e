"""Construct the CUDA backend."""

from __future__ import annotations

import torch

from engine.architecture.spec import ModelSpec
from engine.backends.cuda.attention import Kernels, PagedAttention, TorchKernels
from engine.backends.cuda.graphs import GraphedDecoder
from engine.kv.cache import PagedCache
from engine.kv.pages import CacheSize
from engine.model.backend import Backend
from engine.model.linear import LinearFactory, PackingFactory, PlainLinear

_MULTIPLIES_BF16 = (8, 0)  # least compute capability with bf16 products, which Triton requires


def cuda_backend(device: torch.device, dtype: torch.dtype) -> Backend:
    """Construct the backend, with Triton kernels where they are available. `device` is a CPU in tests.

    Raises ConfigError if Triton is there but cannot compile or launch.
    """
    name, kernels = _kernels(device, dtype)
    linear: LinearFactory = PlainLinear
    packing: PackingFactory | None = None
    if name == "paged-triton-rows":
        from engine.backends.cuda.linear import RowsLinears

        linear = packing = RowsLinears(device)

    def attention(spec: ModelSpec, size: CacheSize) -> PagedAttention:
        return PagedAttention(spec, PagedCache(spec, size, dtype, device), kernels)

    return Backend(name, linear, GraphedDecoder, dtype, attention, warms_up_shapes=True, packing=packing)


def backend_name(dtype: torch.dtype, capability: tuple[int, int], *, triton: bool) -> str:
    """Return the name of the fastest backend on a GPU of this compute capability, with Triton or without."""
    if not triton or dtype == torch.float64 or (dtype == torch.bfloat16 and capability < _MULTIPLIES_BF16):
        return "paged"
    return "paged-triton" if dtype.itemsize > 2 else "paged-triton-rows"


def _kernels(device: torch.device, dtype: torch.dtype) -> tuple[str, Kernels]:
    if device.type != "cuda":
        return "paged", TorchKernels()
    capability = torch.cuda.get_device_capability(device)
    try:
        from engine.backends.cuda.kernels import TritonKernels
        from engine.backends.cuda.launching import check_launches
    except ImportError:  # torch for Windows has no Triton
        return backend_name(dtype, capability, triton=False), TorchKernels()
    name = backend_name(dtype, capability, triton=True)
    if name == "paged":
        return name, TorchKernels()
    check_launches(device)
    return name, TritonKernels()
