"""Sample tokens from logits, with the same code for draft and target.

    token = argmax over token ids of (processed logits + noise(seed, position, token id))

This is Gumbel-max sampling with noise that depends on nothing but seed, position and token id. Draft and target use
the same noise, so they agree about as often as their distributions do. An answer depends on its seed alone, not on what
was drafted. Greedy sampling is zero noise.

A sub-network is less certain than the whole model, so the same noise overturns its first choice more often. Drafts are
therefore sampled with less noise (`draft_noise`), which makes more of them match the target. The target's own tokens,
and thus the text, do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from ctypes import Array, c_float, c_int64
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from engine.kernels.library import KernelLibrary
from engine.kernels.structures import Sampling
from engine.plans import SKIP, Variants
from engine.sampling.seeds import mix64
from engine.tensors import to_device
from engine.types import SamplingParams

# Drafts that skip at least _SKIPPED_AT_LEAST_NOISE of the sublayers use DRAFT_NOISE of the target's noise, drafts that
# skip nothing all of it, linear in between. Measured: docs/notes/drafting.md.
DRAFT_NOISE = 0.5
_SKIPPED_AT_LEAST_NOISE = 0.4

_MASK = (1 << 64) - 1


Edit = Callable[[Tensor], None]  # change one row of logits [vocab] in place


class Sample(NamedTuple):
    """Tokens [rows] and, if requested, the largest probability [rows] of each processed distribution."""

    tokens: list[int]
    confidence: list[float]


@lru_cache(256)
def draft_noise(variants: Variants) -> float:
    """Return the factor of the noise for drafts of a plan; 1 if it skips nothing."""
    skipped = variants[:-1].count(SKIP) / (len(variants) - 1)
    return 1.0 - (1.0 - DRAFT_NOISE) * min(1.0, skipped / _SKIPPED_AT_LEAST_NOISE)


class Sampler:
    """Draw tokens: on a CPU with the native kernels, if given, and otherwise with torch."""

    def __init__(self, kernels: KernelLibrary | None) -> None:
        self._kernels = kernels

    def sample(
        self,
        logits: Tensor,
        params: Sequence[SamplingParams],
        positions: Sequence[int],
        *,
        confidence: bool = False,
        edits: Sequence[Edit | None] = (),
        noise: Sequence[float] = (),
    ) -> PendingSample | ReadySample:
        """Start to sample one token per row of logits [rows, vocab], without waiting for the device.

        `params` and `positions`: each row's parameters and the token's position. `edits` apply first, one per row or
        none at all: penalties, bias, masks. `noise` holds a factor for each row, default 1. Exact ties go to the lowest
        id. The token is -1 if all logits are NaN or excluded. The confidence of a greedy row is the softmax at
        temperature 1.
        """
        logits = _edited(logits, edits)
        if self._kernels is not None and logits.device.type == "cpu" and logits.dtype != torch.float64:
            return _sample_natively(self._kernels, logits.float().contiguous(), params, positions, confidence, noise)
        scores = logits if logits.dtype == torch.float64 else logits.float()
        if all(p.temperature == 0.0 for p in params):
            return PendingSample(results_of(scores, scores if confidence else None))
        scores = process(scores, params)
        noisy = scores.clone()
        rows = [r for r, p in enumerate(params) if p.temperature > 0.0]
        where = to_device(rows, noisy.device)
        ids = torch.arange(noisy.shape[-1], device=noisy.device)
        drawn = gumbel([params[r].seed for r in rows], [positions[r] for r in rows], ids)
        if any(noise[r] != 1.0 for r in rows if noise):
            drawn *= to_device([noise[r] for r in rows], noisy.device, torch.float32)[:, None]
        noisy[where] += drawn.to(noisy.dtype)
        return PendingSample(results_of(noisy, scores if confidence else None))


def _edited(logits: Tensor, edits: Sequence[Edit | None]) -> Tensor:
    """Apply each row's edit to a copy of logits [rows, vocab], in float32 or wider."""
    if not any(edits):
        return logits
    scores = logits.clone() if logits.dtype == torch.float64 else logits.to(torch.float32, copy=True)
    for row, edit in zip(scores, edits, strict=True):
        if edit is not None:
            edit(row)
    return scores


def results_of(noisy: Tensor, scores: Tensor | None) -> Tensor:
    """Return the best token of noisy scores [rows, vocab], or -1, as float64 [1, rows].

    Given scores [rows, vocab], their top probabilities follow: [2, rows].
    """
    tokens = noisy.argmax(-1)
    best = noisy.gather(-1, tokens[:, None])[:, 0]
    known = torch.where(best > float("-inf"), tokens, -1)
    return torch.stack(
        [result.double() for result in ([known] if scores is None else [known, top_probability(scores)])]
    )


class PendingSample:
    """A sample that the device is computing. The next pass may use `tokens` [rows] on the device at once."""

    def __init__(self, results: Tensor) -> None:
        """Start to copy results [1 or 2, rows], as of `results_of`, to the host. The next pass may overwrite them."""
        self.results, self.tokens = results, results[0]
        self._copied: torch.cuda.Event | None = None
        self._copy = torch.empty(results.shape, dtype=results.dtype, pin_memory=results.device.type == "cuda")
        self._copy.copy_(results, non_blocking=True)
        if results.device.type == "cuda":
            self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._copied.record()

    def wait(self) -> Sample:
        """Wait for the device and return the sample."""
        if self._copied is not None:
            self._copied.synchronize()
        tokens, *shares = self._copy.tolist()
        return Sample([int(token) for token in tokens], shares[0] if shares else [])


@dataclass(frozen=True, slots=True)
class ReadySample:
    """A sample computed already, with the interface of `PendingSample`."""

    result: Sample

    @property
    def tokens(self) -> Tensor:
        """The tokens [rows]."""
        return torch.tensor(self.result.tokens)

    def wait(self) -> Sample:
        return self.result


def _sample_natively(
    kernels: KernelLibrary,
    scores: Tensor,
    params: Sequence[SamplingParams],
    positions: Sequence[int],
    confidence: bool,
    noise: Sequence[float],
) -> ReadySample:
    """Sample scores [rows, vocab] in one call of the kernels. No row's result depends on others, to the last bit."""
    rows, vocab = scores.shape
    tokens, shares = (c_int64 * rows)(), (c_float * rows)() if confidence else None
    sampling = sampling_array(params, noise)
    kernels.sample(scores.data_ptr(), rows, vocab, sampling, (c_int64 * rows)(*positions), tokens, shares)
    return ReadySample(Sample(tokens[:], shares[:] if shares else []))


def sampling_array(params: Sequence[SamplingParams], noise: Sequence[float] = ()) -> Array[Sampling]:
    """Convert parameters, and a noise factor for each row, to the kernels' structures."""
    amounts = noise or (1.0,) * len(params)
    rows = [
        _sampling_struct(p.temperature, p.top_p, p.min_p, amount, p.top_k, p.seed)
        for p, amount in zip(params, amounts, strict=True)
    ]
    return (Sampling * len(rows)).from_buffer_copy(b"".join(rows))


@lru_cache(1024)
def _sampling_struct(temperature: float, top_p: float, min_p: float, noise: float, top_k: int, seed: int) -> bytes:
    return bytes(Sampling(temperature, top_p, min_p, noise, top_k, mix64(seed)))


def top_probability(scores: Tensor) -> Tensor:
    """Return the largest softmax probability of each row: scores [rows, vocab] -> [rows]."""
    return (scores.amax(-1) - scores.logsumexp(-1)).exp_()


# twin: engine/kernels/sampling.h, sample
def process(scores: Tensor, params: Sequence[SamplingParams]) -> Tensor:
    """Apply temperature, then top-k, top-p and min-p: scores [rows, vocab] -> the same, excluded ids at -inf."""
    temperature = to_device([p.temperature or 1.0 for p in params], scores.device, scores.dtype)
    scores = scores / temperature[:, None]
    cut = [row for row, p in enumerate(params) if p.truncates]
    if cut:
        where = to_device(cut, scores.device)
        scores[where] = _truncate(scores[where], [params[row] for row in cut])
    return scores


# twin: engine/kernels/sampling.h, truncate
def _truncate(scores: Tensor, params: Sequence[SamplingParams]) -> Tensor:
    """Set excluded ids of scores [rows, vocab] to -inf, all rows at once and without waiting for the device.

    Keep the top_k highest; of these the fewest that hold top_p of the mass; of these all of at least min_p times the
    highest probability.
    """
    ordered, ids = scores.sort(dim=-1, descending=True, stable=True)
    rank = torch.arange(scores.shape[1], device=scores.device)
    top_k = to_device([p.top_k if p.top_k > 0 else scores.shape[1] for p in params], scores.device)
    # 2 where top-p is off: sums of rounded probabilities may reach 1 before the last id.
    top_p = to_device([p.top_p if p.top_p < 1.0 else 2.0 for p in params], scores.device, scores.dtype)
    ordered = ordered.masked_fill(rank >= top_k[:, None], float("-inf"))
    probabilities = ordered.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities
    ordered = ordered.masked_fill((before >= top_p[:, None]) & (rank > 0), float("-inf"))
    least = [math.log(p.min_p) if p.min_p > 0.0 else float("-inf") for p in params]
    ordered = ordered.masked_fill(
        ordered < ordered[:, :1] + to_device(least, scores.device, scores.dtype)[:, None], float("-inf")
    )
    return torch.empty_like(scores).scatter_(1, ids, ordered)


# twin: engine/kernels/sampling.h, negative_gumbel
def gumbel(seeds: Sequence[int], positions: Sequence[int], ids: Tensor) -> Tensor:
    """Compute Gumbel noise [rows, ids] float32, a pure function of seed, position and token id [ids].

    The generator is counter-based: splitmix64's finaliser over a key per row and the token id. 31 bits become u in
    (0, 1). -log(-log(1-u)) is precise where precision matters, in the upper tail (u near 0).
    """
    keys = [noise_key(seed, position) for seed, position in zip(seeds, positions, strict=True)]
    return gumbel_of(to_device(keys, ids.device), ids)


def gumbel_of(keys: Tensor, ids: Tensor) -> Tensor:
    """Compute the noise [rows, ids] of keys [rows], as of `noise_key`."""
    bits = _mix(keys[:, None] + ids[None, :] * _signed(0x9E3779B97F4A7C15))
    u = ((bits >> 33) & 0x7FFFFFFF).float().add_(0.5).mul_(2.0**-31).clamp_(max=1 - 2.0**-24)
    return torch.log1p(u.neg_()).neg_().log_().neg_()


def _mix(x: Tensor) -> Tensor:
    """Apply splitmix64's finaliser to int64 [..] (multiplication wraps; `>>` is arithmetic, hence the masks)."""
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * _signed(0xBF58476D1CE4E5B9)
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * _signed(0x94D049BB133111EB)
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


# twin: engine/kernels/sampling.h, noise_key
def noise_key(seed: int, position: int) -> int:
    """Return the key of a row's noise, a signed integer of 64 bits."""
    return _signed(mix64(mix64(seed) ^ (position * 0xD1342543DE82EF95 & _MASK)))


def _signed(x: int) -> int:
    return x - (1 << 64) if x >= 1 << 63 else x
