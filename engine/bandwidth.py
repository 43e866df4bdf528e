"""How fast this device reads memory, and what plain decoding has to read for a token."""

from __future__ import annotations

import statistics

import torch

from engine.clock import Clock
from engine.kv.cache import bytes_per_token
from engine.model.spec import ModelSpec
from engine.native.library import loaded
from engine.native.linear import huge

_BYTES = 512 << 20  # far beyond any cache
_QUEUED = 8  # reads, where a read takes little longer than to ask for it


class ReadBandwidth:
    """Times reads of a large block by all threads; `observe` now and then, for machines are busy at times."""

    def __init__(self, device: torch.device, clock: Clock, threads: int) -> None:
        self._clock, self._threads = clock, threads
        self._native = loaded() if device.type == "cpu" else None
        if self._native is None:
            self._block = torch.ones(_BYTES // 8, dtype=torch.int64, device=device)
        else:
            self._block = huge(_BYTES // 8, torch.int64).fill_(1)
        self._reads = 1 if device.type == "cpu" else _QUEUED
        self._seen: list[float] = []

    def observe(self) -> None:
        """One timed read."""
        started = self._clock.now()
        if self._native is not None:
            self._native.read(self._native.team(self._threads), self._block.data_ptr(), _BYTES)
        else:
            torch.stack([self._block.sum() for _ in range(self._reads)]).sum().item()
        self._seen.append(self._reads * _BYTES / (self._clock.now() - started))

    @property
    def median(self) -> float:
        """Bytes per second."""
        return statistics.median(self._seen)


def bytes_to_read(spec: ModelSpec, dtype: torch.dtype, cache_dtype: torch.dtype, context: int) -> int:
    """What one plain decoding step moves at the least: all weights but the embedding's rows, and the live K/V."""
    embedding = 0 if spec.tied else spec.vocab * spec.hidden
    return (spec.parameters - embedding) * dtype.itemsize + context * bytes_per_token(spec, cache_dtype)
