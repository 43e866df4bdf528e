"""Fit weights, their copy for drafts, contexts and the K/V cache into memory."""

from __future__ import annotations

import logging

import torch

from engine.architecture.spec import ModelSpec
from engine.config.engine import EngineConfig
from engine.errors import ConfigError
from engine.kv.cache import bytes_per_token
from engine.kv.pages import CacheSize
from engine.logs import progress_bar
from engine.model import low_bit
from engine.model.backend import Backend
from engine.model.decoder import ModelWeights
from engine.model.linear import PackingFactory
from engine.runtime.machine import free_memory

log = logging.getLogger("knapserve.engine")

_PAGES_PER_SEQUENCE = 2  # capacity, in whole contexts of all sequences: the second half is for shared prefixes


def check_weights_fit(weight_bytes: int, device: torch.device) -> None:
    """Raise ConfigError if the weights do not fit: the system would kill the process halfway through reading them."""
    need, free = int(1.1 * weight_bytes), free_memory(device)
    if need > free:
        raise ConfigError(
            f"the weights take {need / 2**30:.1f} GiB, but {free / 2**30:.1f} GiB are free on {device}; "
            "free some, or choose a smaller --dtype or model"
        )


def context_length(config: EngineConfig, spec: ModelSpec) -> int:
    """Return the longest context in tokens. Raises ConfigError if `--max-model-len` exceeds the model's positions."""
    if config.max_model_len is not None and config.max_model_len > spec.max_positions:
        raise ConfigError(
            f"--max-model-len {config.max_model_len} is beyond the {spec.max_positions} positions of the model"
        )
    return config.max_model_len or spec.max_positions


def cache_size(config: EngineConfig, spec: ModelSpec, length: int, backend: Backend, device: torch.device) -> CacheSize:
    """Return the slabs and blocks that fit into `--kv-cache-memory`, for contexts of up to `length` tokens.

    A shorter context is returned if one of `length` tokens does not fit and `--max-model-len` is not given. Raises
    ConfigError if too little fits.
    """
    block_bytes = bytes_per_token(spec, backend.cache_dtype) * config.block_size
    blocks_per_slab = -(-length // config.block_size)
    budget = config.kv_cache_memory
    if isinstance(budget, float):
        budget = int(budget * free_memory(device))
    capacity = budget // block_bytes
    if capacity < blocks_per_slab and (config.max_model_len is not None or capacity < 2):
        raise ConfigError(
            f"--kv-cache-memory {config.kv_cache_memory} is {budget} bytes, but one context of {length} tokens takes "
            f"{blocks_per_slab * block_bytes}; raise it or lower --max-model-len"
        )
    if capacity < blocks_per_slab:
        blocks_per_slab = capacity
        length = blocks_per_slab * config.block_size
    capacity = min(capacity, _PAGES_PER_SEQUENCE * config.max_num_seqs * blocks_per_slab)
    return CacheSize(config.max_num_seqs, blocks_per_slab, config.block_size, capacity, length)


def add_draft_copy(config: EngineConfig, spec: ModelSpec, weights: ModelWeights, packing: PackingFactory | None) -> int:
    """Add the copy that `--draft-bits` asks for to the weights, and return its bits; 0 without a copy.

    Raises ConfigError if `--draft-bits` names a number of bits and no such copy is possible.
    """
    if config.draft_bits == "none":
        return 0
    named = config.draft_bits != "auto"
    bits = int(config.draft_bits) if named else low_bit.USUAL_BITS
    need, limit = low_bit.copy_bytes(spec, bits), config.draft_memory
    if isinstance(limit, float):
        limit = int(limit * free_memory(weights.embedding.device))
    if need > limit:
        reason = f"a copy of the weights takes {need / 1e6:.0f} MB, --draft-memory allows {limit / 1e6:.0f}"
    elif packing is None or not all(packing.lowers(linear) for linear in weights.linears):
        reason = "the weights have few bits already, or no kernel here reads fewer"
    else:
        weights.add_copy(lambda linear: packing.lower(linear, bits), progress_bar("copying weights in fewer bits"))
        log.info("drafts run a copy of the weights in %d bits: %.0f MB more", bits, need / 1e6)
        return bits
    if named:
        raise ConfigError(f"--draft-bits {bits}: {reason}")
    log.info("drafts run no copy in fewer bits: %s", reason)
    return 0
