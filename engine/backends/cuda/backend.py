"""Construct the CUDA backend."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from engine.architecture.spec import ModelSpec
from engine.backends.cuda.attention import Kernels, PagedAttention, TorchKernels
from engine.backends.cuda.graphs import GraphedDecoder
from engine.kv.cache import PagedCache
from engine.kv.pages import CacheSize
from engine.model.backend import Backend
from engine.model.linear import LinearFactory, PackingFactory, PlainLinear

if TYPE_CHECKING:
    from engine.backends.cuda.launch import Launch

_FLASH = (8, 0)  # least compute capability with torch's flash attention
_MULTIPLIES_BF16 = (8, 0)  # least compute capability with bf16 products, which Triton requires


def cuda_backend(device: torch.device, dtype: torch.dtype) -> Backend:
    """Construct the backend, with Triton kernels where they are available. `device` is a CPU in tests.

    Raises ConfigError if Triton is there but cannot compile or launch.
    """
    name, kernels, launch = _kernels(device, dtype)
    linear: LinearFactory = PlainLinear
    packing: PackingFactory | None = None
    if launch is not None and name == "paged-triton-rows":
        from engine.backends.cuda.linear import RowsLinears

        linear = packing = RowsLinears(launch)
    flash = device.type == "cuda" and dtype.itemsize == 2 and torch.cuda.get_device_capability(device) >= _FLASH

    def attention(spec: ModelSpec, size: CacheSize) -> PagedAttention:
        return PagedAttention(spec, PagedCache(spec, size, dtype, device), kernels, flash=flash)

    decoder = partial(GraphedDecoder, kernels)
    return Backend(name, linear, decoder, dtype, attention, warms_up_shapes=True, packing=packing)


def backend_name(dtype: torch.dtype, capability: tuple[int, int], *, triton: bool) -> str:
    """Return the name of the fastest backend on a GPU of this compute capability, with Triton or without."""
    if not triton or dtype == torch.float64 or (dtype == torch.bfloat16 and capability < _MULTIPLIES_BF16):
        return "paged"
    return "paged-triton" if dtype.itemsize > 2 else "paged-triton-rows"


def _kernels(device: torch.device, dtype: torch.dtype) -> tuple[str, Kernels, Launch | None]:
    """Return the backend's name, its kernels, and what Triton's have in common."""
    if device.type != "cuda":
        return "paged", TorchKernels(), None
    capability = torch.cuda.get_device_capability(device)
    try:
        from engine.backends.cuda.kernels import TritonKernels
        from engine.backends.cuda.launch import Launch, check_launches
    except ImportError:  # torch for Windows has no Triton
        return backend_name(dtype, capability, triton=False), TorchKernels(), None
    name = backend_name(dtype, capability, triton=True)
    if name == "paged":
        return name, TorchKernels(), None
    check_launches(device)
    launch = Launch(device)
    return name, TritonKernels(launch), launch
