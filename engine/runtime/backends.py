"""Choose the fastest backend for a model on a device."""

from __future__ import annotations

import torch

from engine.architecture.spec import ModelSpec
from engine.backends.native.backend import native_backend
from engine.backends.native.decoder import fits
from engine.errors import ConfigError
from engine.kernels.library import KernelLibrary, kernel_library
from engine.kv.blocks import CacheSize
from engine.kv.cache import SlabCache
from engine.model.attention import SdpaAttention
from engine.model.backend import Backend
from engine.model.linear import PlainLinear
from engine.model.torch_decoder import TorchDecoder


def choose_kernels(setting: str, device: torch.device) -> KernelLibrary | None:
    """Return the native kernels on a CPU, unless `--kernels` is "torch"; None without a C++ compiler."""
    return kernel_library() if setting != "torch" and device.type == "cpu" else None


def choose_backend(
    spec: ModelSpec,
    device: torch.device,
    dtype: torch.dtype,
    threads: int,
    kernels: KernelLibrary | None,
    setting: str = "auto",
) -> Backend:
    """Return the fastest backend that can run the model.

    `kernels` come from `choose_kernels`; backends of torch use them to sample. `setting` is the value of `--kernels`.
    Raises ConfigError if it is "native" and the native kernels cannot run the model.
    """
    if kernels is not None and dtype == torch.bfloat16 and fits(spec):
        return native_backend(spec, threads, kernels)
    if setting == "native":
        raise ConfigError(
            "--kernels native needs a CPU, --dtype bfloat16, a C++ compiler, and a model whose heads and MLPs are "
            "multiples of 32 wide"
        )
    if device.type == "cuda":
        from engine.backends.cuda.backend import cuda_backend

        return cuda_backend(device, dtype)
    # With bf16, SDPA of one or two query rows takes many times as long as with float32.
    cache_dtype = torch.float32 if dtype.itemsize < 4 else dtype

    def attention(spec: ModelSpec, size: CacheSize) -> SdpaAttention:
        return SdpaAttention(spec, SlabCache(spec, size.slabs, size.length, cache_dtype, device))

    return Backend("plain-sdpa", PlainLinear, TorchDecoder, cache_dtype, attention, kernels)
