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

_SHARE = 0.4  # of free memory, for the K/V cache
_GPU_SHARE = 0.9  # the same on a GPU, less `pass_bytes`; vLLM's --gpu-memory-utilization has this default
_PROMPT_ROWS, _WIDTH = 2048, 16  # most rows of a pass, and of a request that drafts
_REPACKED = 8  # bytes a weight of the output head while a GPU makes the copy, 7.4 measured
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

    By default, the cache gets 0.4 of the free memory. On a GPU, where nobody else needs the rest, it gets 0.9 less what
    passes need, if that is more.
    A shorter context is returned if one of `length` tokens does not fit and `--max-model-len` is not given. Raises
    ConfigError if too little fits.
    """
    block_bytes = bytes_per_token(spec, backend.cache_dtype) * config.block_size
    blocks_per_slab = -(-length // config.block_size)
    budget = config.kv_cache_memory
    if not isinstance(budget, int):
        free = free_memory(device)
        budget = int((budget or _SHARE) * free)
        if config.kv_cache_memory is None and device.type == "cuda":
            budget = max(budget, int(_GPU_SHARE * free) - pass_bytes(config, spec, length, backend.cache_dtype))
    capacity = budget // block_bytes
    if capacity < blocks_per_slab and (config.max_model_len is not None or capacity < 2):
        raise ConfigError(
            f"--kv-cache-memory is {budget} bytes, but one context of {length} tokens takes "
            f"{blocks_per_slab * block_bytes}; raise it or lower --max-model-len"
        )
    if capacity < blocks_per_slab:
        blocks_per_slab = capacity
        length = blocks_per_slab * config.block_size
    capacity = min(capacity, _PAGES_PER_SEQUENCE * config.max_num_seqs * blocks_per_slab)
    return CacheSize(config.max_num_seqs, blocks_per_slab, config.block_size, capacity, length)


def pass_bytes(config: EngineConfig, spec: ModelSpec, length: int, dtype: torch.dtype) -> int:
    """Return the bytes of temporaries of the largest passes: 2.9 GB for Llama-3.1-8B in bfloat16 and 131,072 tokens."""
    rows = config.max_num_batched_tokens or _PROMPT_ROWS
    heads = (spec.heads + 2 * spec.kv_heads) * spec.head_dim
    # The residual stream, its norm, the sum and the head's input; q, k and v, before and after RoPE; gate, up, product.
    activations = rows * (4 * spec.hidden + 2 * heads + 3 * spec.intermediate) * dtype.itemsize
    # In the model's dtype, and three times in float32: converted, scaled, and with noise.
    logits = min(rows, _WIDTH * config.max_num_seqs) * spec.vocab * (dtype.itemsize + 3 * 4)
    gathered = 2 * length * bytes_per_token(spec, dtype) // spec.layers  # K and V of a layer, and a copy of them
    unpacked = spec.vocab * spec.hidden * dtype.itemsize  # the output head of packed weights
    return activations + logits + gathered + unpacked


def add_draft_copy(config: EngineConfig, spec: ModelSpec, weights: ModelWeights, packing: PackingFactory | None) -> int:
    """Add the copy that `--draft-bits` asks for to the weights, and return its bits; 0 without a copy.

    Raises ConfigError if `--draft-bits` names a number of bits and no such copy is possible.
    """
    if config.draft_bits == "none":
        return 0
    named = config.draft_bits != "auto"
    bits = int(config.draft_bits) if named else low_bit.USUAL_BITS
    need, limit = low_bit.copy_bytes(spec, bits), config.draft_memory
    device = weights.embedding.device
    if isinstance(limit, float):
        limit = int(limit * free_memory(device))
    if device.type == "cuda":
        limit = max(0, min(limit, free_memory(device) - _REPACKED * spec.vocab * spec.hidden))
    if need > limit:
        reason = f"a copy of the weights takes {need / 1e6:.0f} MB, memory and --draft-memory allow {limit / 1e6:.0f}"
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
