"""Name the parts that a backend provides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from engine.architecture.spec import ModelSpec
from engine.kernels.library import KernelLibrary
from engine.kv.pages import CacheSize
from engine.model.attention import Attention
from engine.model.decoder import Decoder, ModelWeights
from engine.model.linear import LinearFactory, PackingFactory
from engine.sampling.sample import Sampler


@dataclass(frozen=True, slots=True)
class Backend:
    """Makes the linear layers, the decoder and the cache of a model on one device, in one dtype."""

    name: str  # part of profile keys
    linear: LinearFactory
    decoder: Callable[[ModelSpec, torch.dtype, ModelWeights, Sampler], Decoder]
    cache_dtype: torch.dtype
    attention: Callable[[ModelSpec, CacheSize], Attention]
    kernels: KernelLibrary | None = None  # native CPU kernels for sampling and grammar masks; None: torch
    warms_up_shapes: bool = False  # whether it compiles or records something for every shape of a pass
    packing: PackingFactory | None = None  # makes layers of packed weights; None: packed weights are unpacked
    looks_up_packed: bool = False  # whether a packed embedding stays packed
