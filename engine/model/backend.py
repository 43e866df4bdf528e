"""What runs a model on a device in a dtype: how linear layers, passes and the cache are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from engine.architecture.spec import ModelSpec
from engine.kv.blocks import CacheSize
from engine.model.attention import Attention
from engine.model.decoder import Decoder
from engine.model.linear import LinearFactory


@dataclass(frozen=True, slots=True)
class Backend:
    """`name` is part of profile keys."""

    name: str
    linear: LinearFactory
    decoder: Callable[..., Decoder]
    cache_dtype: torch.dtype
    attention: Callable[[ModelSpec, CacheSize], Attention]
    paged: bool = False  # whether blocks are pages
    packs: bool = False  # whether matrices may stay packed,
    looks_up_packed: bool = False  # and the embedding
