"""Choose device, kernels, backend, dtype and threads from the settings, the model and the machine."""

from __future__ import annotations

import logging

import torch

from engine.architecture.spec import ModelSpec
from engine.backends.native.backend import native_backend, widens_bf16
from engine.backends.native.decoder import fits
from engine.config.engine import EngineConfig
from engine.errors import ConfigError
from engine.kernels.library import KernelLibrary, kernel_library
from engine.kv.cache import PagedCache
from engine.kv.pages import CacheSize
from engine.model.attention import SdpaAttention
from engine.model.backend import Backend
from engine.model.linear import PlainLinear
from engine.model.torch_decoder import TorchDecoder
from engine.runtime.machine import native_bf16
from profiles.schema import ProfileKey

log = logging.getLogger("knapserve.engine")

_BYTES_PER_THREAD = 128 << 10  # a thread is worth starting for this many bytes of a layer
_TINY_LAYER_BYTES = 8 << 20


def choose_device(name: str) -> torch.device:
    """Return the device that `--device` names. Raises ConfigError if CUDA is named but missing."""
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda: this machine or this build of torch has no CUDA device")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def choose_kernels(setting: str, device: torch.device) -> KernelLibrary | None:
    """Return the native kernels on a CPU, unless `--kernels` is "torch"; None without a C++ compiler."""
    return kernel_library() if setting != "torch" and device.type == "cpu" else None


def fast_bf16(spec: ModelSpec, device: torch.device, kernels: KernelLibrary | None) -> bool:
    """Whether bf16 is the fastest dtype of this machine. `kernels` are the native kernels that will run, if any."""
    return device.type == "cuda" or native_bf16() or (kernels is not None and widens_bf16(spec))


def choose_dtype(setting: str, *, bf16: bool) -> torch.dtype:
    """Return the dtype that `--dtype` names; for "auto", bfloat16 where it is fast (`bf16`), else float32."""
    return torch_dtype(setting if setting != "auto" else "bfloat16" if bf16 else "float32")


def torch_dtype(name: str) -> torch.dtype:
    """Return torch's dtype of a name in `architecture.spec.DTYPES`."""
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def choose_threads(setting: int, spec: ModelSpec, dtype: torch.dtype, device: torch.device, cores: int) -> int:
    """Return the number of threads that compute on the host, from `--threads` and the usable cores.

    On a CPU, they are at most as many as one layer keeps busy.
    """
    if device.type != "cpu":
        return 1  # the thread that launches passes
    return setting or max(1, min(cores, _layer_bytes(spec, dtype) // _BYTES_PER_THREAD))


def cpu_backend_name(spec: ModelSpec, dtype: torch.dtype, *, kernels: bool) -> str:
    """Return the name of the fastest backend on a CPU, with the native kernels or without."""
    return "native" if kernels and dtype == torch.bfloat16 and fits(spec) else "plain-sdpa"


def profile_key(
    spec: ModelSpec, *, hardware: str, threads: int, dtype: torch.dtype, packing: str, backend: str, draft_bits: int
) -> ProfileKey:
    """Return the key of the latency profile of a start. `packing`: formats of packed weights, "" for none."""
    formats = "-".join(filter(None, (str(dtype).removeprefix("torch."), packing)))
    return ProfileKey(hardware, threads, spec.shape_key, formats, backend, draft_bits)


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
    name = cpu_backend_name(spec, dtype, kernels=kernels is not None)
    if kernels is not None and name == "native":
        return native_backend(spec, threads, kernels)
    if setting == "native":
        raise ConfigError(
            "--kernels native needs a CPU, --dtype bfloat16, a C++ compiler, and a model whose heads and MLPs are "
            "multiples of 32 wide"
        )
    if device.type == "cuda":
        from engine.backends.cuda.backend import cuda_backend

        return cuda_backend(device, dtype)
    if kernels is not None:
        reason = "" if fits(spec) else " and heads and MLPs that are multiples of 32 wide"
        log.warning("PyTorch runs the model in %s, slower: the native kernels need bfloat16%s", dtype, reason)
    # With bf16, SDPA of one or two query rows takes many times as long as with float32.
    cache_dtype = torch.float32 if dtype.itemsize < 4 else dtype

    def attention(spec: ModelSpec, size: CacheSize) -> SdpaAttention:
        return SdpaAttention(spec, PagedCache(spec, size, cache_dtype, device))

    return Backend(name, PlainLinear, TorchDecoder, cache_dtype, attention, kernels)


def configure_torch(
    config: EngineConfig, spec: ModelSpec, dtype: torch.dtype, device: torch.device, threads: int
) -> None:
    """Set torch's options of the whole process.

    On a CPU, tiny models get one thread unless `--threads` is given: torch's threads wait for each other at every
    operation, which takes longer than the operation if another process has their cores.

    On a GPU, cuDNN's attention is off because it plans anew for every length, which takes longer than a pass.
    Reductions in half precision are off because they make a row's result depend more on the number of rows.
    """
    if device.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    elif device.type == "cpu":
        tiny = not config.threads and _layer_bytes(spec, dtype) < _TINY_LAYER_BYTES
        torch.set_num_threads(1 if tiny else threads)


def _layer_bytes(spec: ModelSpec, dtype: torch.dtype) -> int:
    return spec.layer_parameters * dtype.itemsize
