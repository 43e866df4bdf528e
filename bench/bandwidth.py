"""Measure how fast a device reads memory, and the share of it that plain decoding uses."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from bench.measurements import Totals
from engine.backends.native.linear import huge
from engine.kv.cache import bytes_per_token
from engine.runtime.build import LoadedModel

_BYTES = 512 << 20  # far beyond any cache
_PIECE = 2 << 20  # bytes of one read
_GPU_BYTES, _QUEUED_READS = 1 << 30, 9  # of a read that a GPU queues, a quarter of a millisecond; launches take less


class ReadBandwidth:
    """Times reads of half a gigabyte by all threads. Several reads average out other load.

    On a CPU, the model's own weights are read if they are large enough: parts of memory may differ
    in speed. A GPU's own clock times its reads.
    """

    def __init__(self, model: LoadedModel, *, size: int = _BYTES) -> None:
        """Prepare reads of about `size` bytes, on a CPU."""
        self._model, device = model, model.decoder.device
        self._observed: list[float] = []  # bytes per second
        if device.type != "cpu":
            self.pieces = [torch.ones(_GPU_BYTES // 8, dtype=torch.int64, device=device)] * _QUEUED_READS
            return
        weights = [piece for weight in model.decoder.weights.matrices for piece in _pieces(weight)]
        read = sum(piece.nbytes for piece in weights)
        own = huge(size // 8, torch.int64).fill_(1) if read < size else None
        self.pieces = weights[:: max(1, read // size)] if own is None else _pieces(own)
        # NumPy sums without Python's lock, each sum in one thread.
        self._pool = ThreadPoolExecutor(model.key.threads)

    def observe(self) -> None:
        """Time one read. On a GPU, the first of the queue is not timed: the others are launched meanwhile."""
        if self._model.decoder.device.type != "cpu":
            first, *timed = self.pieces
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            first.sum()
            begin.record()
            for piece in timed:
                piece.sum()
            end.record()
            end.synchronize()
            seconds = begin.elapsed_time(end) / 1e3
        else:
            started, timed = self._model.clock.now(), self.pieces
            for _ in self._pool.map(_read, timed):
                pass
            seconds = self._model.clock.now() - started
        self._observed.append(sum(piece.nbytes for piece in timed) / seconds)

    def share(self, plain: Totals) -> dict[str, float]:
        """Return the bytes per second that plain decoding reads, and their share of the bandwidth.

        The bandwidth is the median of all reads. Returns {} if there were no rounds.
        """
        if not plain.rounds:
            return {}
        cached = plain.positions_read * bytes_per_token(self._model.spec, self._model.backend.cache_dtype)
        read = (plain.rounds * self._model.decoder.weights.nbytes + cached) / plain.decode_seconds
        bandwidth = statistics.median(self._observed)
        return {"read": read, "bandwidth": bandwidth, "share": read / bandwidth}


def _pieces(weight: Tensor) -> list[Tensor]:
    """Return the memory of a weight as pieces of eight-byte integers, without an incomplete one."""
    memory = weight.flatten().view(torch.uint8)
    return [*memory[: memory.nbytes // _PIECE * _PIECE].view(torch.int64).view(-1, _PIECE // 8)]


def _read(piece: Tensor) -> None:
    """Read memory at four places at once: one stream does not keep all memory channels busy."""
    piece.view(4, -1).numpy().sum(axis=0)


def bandwidth_line(reading: Mapping[str, float]) -> str:
    """Format the result of `ReadBandwidth.share`."""
    return (
        f"plain decoding reads {reading['read'] / 1e9:.1f} GB/s (weights and cache, once per round), "
        f"{reading['share']:.0%} of the memory bandwidth of {reading['bandwidth'] / 1e9:.1f} GB/s; small models "
        "stay in the CPU's caches"
    )
