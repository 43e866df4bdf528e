"""Measure how fast a device reads memory."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.backends.native.linear import huge
from engine.clock import Clock
from engine.kernels.library import KernelLibrary

_BYTES = 512 << 20  # far beyond any cache
_PIECE = 4 << 20  # bytes of the smallest weight that is read
_QUEUED_READS = 8  # on a GPU, where launching a read takes almost as long as the read


class ReadBandwidth:
    """Times reads of half a gigabyte by all threads. Several reads, spread over time, average out other load.

    On a CPU, the model's own weights are read if they are large enough: parts of memory may differ in speed.
    """

    def __init__(
        self,
        device: torch.device,
        clock: Clock,
        threads: int,
        kernels: KernelLibrary | None,
        weights: Sequence[Tensor] = (),
        *,
        size: int = _BYTES,
        piece: int = _PIECE,
    ) -> None:
        """Prepare reads of `size` bytes by `threads` threads, which a GPU does not need.

        On a CPU, `kernels` read those `weights` of at least `piece` bytes, if these are large enough together.
        """
        self._clock, self._threads = clock, threads
        self._native = kernels if device.type == "cpu" else None
        large = [weight for weight in weights if weight.nbytes >= piece]
        large_bytes = sum(weight.nbytes for weight in large)
        if self._native is None:
            self.blocks = [torch.ones(size // 8, dtype=torch.int64, device=device)]
        elif large_bytes >= size:
            self.blocks = large[:: max(1, large_bytes // size)]
        else:
            self.blocks = [huge(size // 8, torch.int64).fill_(1)]
        self._bytes = sum(block.nbytes for block in self.blocks)
        self._reads = 1 if device.type == "cpu" else _QUEUED_READS
        self._observed: list[float] = []  # bytes per second

    def observe(self) -> None:
        """Time one read."""
        started = self._clock.now()
        if self._native is not None:
            executor = self._native.executor(self._threads)
            for block in self.blocks:
                self._native.read(executor, block.data_ptr(), block.nbytes)
        else:
            torch.stack([self.blocks[0].sum() for _ in range(self._reads)]).sum().item()
        self._observed.append(self._reads * self._bytes / (self._clock.now() - started))

    @property
    def median(self) -> float:
        """The median of all reads, in bytes per second."""
        return statistics.median(self._observed)
