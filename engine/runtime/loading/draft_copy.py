"""Give a model a copy of its weights in fewer bits, for drafts, if the settings and memory allow one."""

from __future__ import annotations

import logging

from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.model import low_bit
from engine.model.decoder import Decoder
from engine.model.linear import PackingFactory
from engine.runtime.loading.progress import progress_bar
from engine.runtime.machine import free_memory

log = logging.getLogger("knapserve.engine")


def add_draft_copy(config: EngineConfig, decoder: Decoder, packing: PackingFactory | None) -> int:
    """Add the copy that `--draft-bits` asks for to the decoder, and return its bits; 0 without a copy.

    Raises ConfigError if `--draft-bits` names a number of bits and no such copy is possible.
    """
    if config.draft_bits == "none":
        return 0
    named = config.draft_bits != "auto"
    bits = int(config.draft_bits) if named else low_bit.USUAL_BITS
    need, limit = low_bit.copy_bytes(decoder.spec, bits), config.draft_memory
    if isinstance(limit, float):
        limit = int(limit * free_memory(decoder.device))
    if need > limit:
        reason = f"a copy of the weights takes {need / 1e6:.0f} MB, --draft-memory allows {limit / 1e6:.0f}"
    elif low_bit.add_copy(decoder, packing, bits, progress_bar("copying weights in fewer bits")):
        log.info("drafts run a copy of the weights in %d bits: %.0f MB more", bits, need / 1e6)
        return bits
    else:
        reason = "the weights have few bits already, or no kernel here reads fewer"
    if named:
        raise ConfigError(f"--draft-bits {bits}: {reason}")
    log.info("drafts run no copy in fewer bits: %s", reason)
    return 0
