"""How fast this device reads memory."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.backends.native.linear import huge
from engine.clock import Clock
from engine.kernels.library import kernel_library

_BYTES = 512 << 20  # far beyond any cache
_PIECE = 4 << 20  # bytes of the smallest weight that is read
_QUEUED = 8  # reads, where a read takes little longer than to ask for it


class ReadBandwidth:
    """Times reads of half a gigabyte by all threads; `observe` now and then, for machines are busy at times.

    Of the model's own weights, where they are so much: memory may lie in places of unlike speed.
    """

    def __init__(
        self,
        device: torch.device,
        clock: Clock,
        threads: int,
        weights: Sequence[Tensor] = (),
        *,
        size: int = _BYTES,
        piece: int = _PIECE,
    ) -> None:
        """Read `size` bytes: of those `weights` that have at least `piece` bytes, if they are so large together."""
        self._clock, self._threads = clock, threads
        self._native = kernel_library() if device.type == "cpu" else None
        large = [weight for weight in weights if weight.nbytes >= piece]
        if self._native is None:
            self.blocks = [torch.ones(size // 8, dtype=torch.int64, device=device)]
        elif sum(weight.nbytes for weight in large) >= size:
            every = max(1, sum(weight.nbytes for weight in large) // size)
            self.blocks = large[::every]
        else:
            self.blocks = [huge(size // 8, torch.int64).fill_(1)]
        self._bytes = sum(block.nbytes for block in self.blocks)
        self._reads = 1 if device.type == "cpu" else _QUEUED
        self._seen: list[float] = []

    def observe(self) -> None:
        """One timed read."""
        started = self._clock.now()
        if self._native is not None:
            executor = self._native.executor(self._threads)
            for block in self.blocks:
                self._native.read(executor, block.data_ptr(), block.nbytes)
        else:
            torch.stack([self.blocks[0].sum() for _ in range(self._reads)]).sum().item()
        self._seen.append(self._reads * self._bytes / (self._clock.now() - started))

    @property
    def median(self) -> float:
        """Bytes per second."""
        return statistics.median(self._seen)
