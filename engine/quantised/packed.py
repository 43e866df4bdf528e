"""Packed weights: integers in groups that share a scale.

A weight is `scale · (code − offset) + minimum`; codes are unsigned integers of `bits` bits. A matrix [out, in] is
stored as bytes, one row per output, in a `PackedFormat`: one of GGUF's block formats, unchanged; `codes` for the
integers of other checkpoints; or `fp8`, with e4m3 numbers in place of codes.

Kernels repack weights from separate codes, scales and minima (`unpack_weights`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from engine.quantised.formats import PackedFormat


@dataclass(frozen=True, slots=True)
class PackedRows:
    """A matrix [out, inputs] with `rows` uint8 [out, bytes per row], perhaps in a mapped file."""

    format: PackedFormat
    rows: Tensor
    inputs: int
    order: Tensor | None = None  # int64 [inputs]: column j is input order[j] of the layer; None: input j

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.inputs

    def select(self, rows: Tensor | slice) -> PackedRows:
        """Select or reorder outputs by indices [n] or a slice."""
        return replace(self, rows=self.rows[rows])


def pack_codes(
    codes: Tensor, scale: Tensor, minimum: Tensor | None, *, bits: int, offset: int = 0, name: str = "codes"
) -> PackedRows:
    """Pack codes uint8 [out, in] below 2^bits with scale and minimum [out, groups].

    Groups have equal sizes, multiples of 16. A row has its codes, then its scales and minima in float32.
    """
    inputs = codes.shape[1]
    group = inputs // scale.shape[1]
    format = PackedFormat(name, bits, group, offset, minimum is not None, block=inputs)
    numbers = [part.float().contiguous().view(torch.uint8) for part in (scale, minimum) if part is not None]
    return PackedRows(format, torch.cat([codes, *numbers], 1), inputs)


def pack_fp8(numbers: Tensor, scale: Tensor) -> PackedRows:
    """Pack numbers float8_e4m3fn [out, in] with scale [out, groups].

    Groups have equal sizes, multiples of 32. A row has its numbers, then its scales in float32.
    """
    return pack_codes(numbers.view(torch.uint8), scale, None, bits=8, name="fp8")


class Factors(NamedTuple):
    """Scales or minima [out, groups]: `numbers`, or `shares` times numbers that adjacent groups have in common."""

    numbers: Tensor  # float32 [out, n]
    shares: Tensor | None = None  # int8 [out, groups]

    @property
    def products(self) -> Tensor:
        """The scales or minima, float32 [out, groups, 1]."""
        if self.shares is None:
            return self.numbers[..., None]
        shares = self.shares.view(*self.numbers.shape, -1)
        return (self.numbers[..., None] * shares).flatten(1)[..., None]


class _CodeBits(NamedTuple):
    """Some bits of a block's codes, in bytes `start` to `end`.

    The lowest bits of `run` bytes hold the first `run` codes, the next bits the next `run` codes, and so on.
    """

    start: int
    end: int
    bits: int
    run: int


# Positions of the low bits of GGUF's codes, and of the bits above.
_CODES = {
    "Q4_0": (_CodeBits(2, 18, 4, 16),),
    "Q4_1": (_CodeBits(4, 20, 4, 16),),
    "Q5_0": (_CodeBits(6, 22, 4, 16), _CodeBits(2, 6, 1, 1)),
    "Q5_1": (_CodeBits(8, 24, 4, 16), _CodeBits(4, 8, 1, 1)),
    "Q8_0": (_CodeBits(2, 34, 8, 32),),
    "Q2_K": (_CodeBits(16, 80, 2, 32),),
    "Q3_K": (_CodeBits(32, 96, 2, 32), _CodeBits(0, 32, 1, 32)),
    "Q4_K": (_CodeBits(16, 144, 4, 32),),
    "Q5_K": (_CodeBits(48, 176, 4, 32), _CodeBits(16, 48, 1, 32)),
    "Q6_K": (_CodeBits(0, 128, 4, 64), _CodeBits(128, 192, 2, 32)),
    "IQ4_NL": (_CodeBits(2, 18, 4, 16),),
    "MXFP4": (_CodeBits(1, 17, 4, 16),),
}
# Values of the four-bit codes of formats with tables.
_TABLES = {
    "IQ4_NL": (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113),
    "MXFP4": (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12),
}


def dequantise(packed: PackedRows) -> Tensor:
    """Return the weights, float32 [out, in], with the inputs in the layer's order."""
    codes, scale, minimum = unpack_weights(packed)
    if packed.format.name == "fp8":
        numbers = codes.contiguous().view(torch.float8_e4m3fn).float()
    else:
        numbers = codes.float() - packed.format.offset
    weights = numbers.reshape(len(numbers), -1, packed.format.group) * scale.products
    if minimum is not None:
        weights += minimum.products
    weights = weights.flatten(1)
    return weights if packed.order is None else torch.empty_like(weights).index_copy_(1, packed.order, weights)


def unpack_weights(packed: PackedRows) -> tuple[Tensor, Factors, Factors | None]:
    """Return codes uint8 [out, in], scales and minima (None if the format has none), in the order of the rows."""
    format, inputs = packed.format, packed.inputs
    if not format.block_bytes:
        groups = inputs // format.group
        codes, numbers = packed.rows[:, :inputs], packed.rows[:, inputs:].contiguous().view(torch.float32)
        return codes, Factors(numbers[:, :groups]), Factors(numbers[:, groups:]) if format.minimum else None
    blocks = packed.rows.reshape(len(packed.rows), -1, format.block_bytes)
    codes = _gguf_codes(format.name, blocks).flatten(1)
    if format.name in _TABLES:
        table = torch.tensor(_TABLES[format.name], device=codes.device) + format.offset
        codes = table.to(torch.uint8)[codes.int()]
    elif format.name == "Q8_0":  # signed bytes
        codes = codes ^ 128
    return codes, *_gguf_scales(format.name, blocks)


def _gguf_codes(name: str, blocks: Tensor) -> Tensor:
    """Return the codes of GGUF blocks, uint8 [out, blocks, codes]."""
    codes, shift = torch.zeros((), dtype=torch.uint8, device=blocks.device), 0
    for part in _CODES[name]:
        run = blocks[..., part.start : part.end].reshape(*blocks.shape[:2], -1, 1, part.run)
        shifts = torch.arange(0, 8, part.bits, dtype=torch.uint8, device=blocks.device)[:, None]
        codes = codes | (run >> shifts & (1 << part.bits) - 1).flatten(-3) << shift
        shift += part.bits
    return codes


def _gguf_scales(name: str, blocks: Tensor) -> tuple[Factors, Factors | None]:
    """Return the scales and minima of GGUF blocks, uint8 [out, blocks, bytes]."""
    if name == "MXFP4":  # half of 2^(e - 127); the two smallest are subnormal
        e = blocks[..., 0].int()
        return Factors(torch.where(e < 2, 0x200000 << e.clamp(max=1), (e - 1) << 23).view(torch.float32)), None
    if name == "Q2_K":
        both = blocks[..., :16]
        return _shared(_half(blocks, 80), both & 15), _shared(-_half(blocks, 82), both >> 4)
    if name == "Q3_K":
        low, high = blocks[..., 96:104], blocks[..., 104:108]
        low = torch.cat([low & 15, low >> 4], -1)
        high = torch.cat([high >> shift & 3 for shift in (0, 2, 4, 6)], -1)
        return _shared(_half(blocks, 108), (low | high << 4).to(torch.int8) - 32), None
    if name in ("Q4_K", "Q5_K"):
        a, b, both = blocks[..., 4:8], blocks[..., 8:12], blocks[..., 12:16]
        scale = torch.cat([a & 63, both & 15 | a >> 2 & 48], -1)
        minimum = torch.cat([b & 63, both >> 4 | b >> 2 & 48], -1)
        return _shared(_half(blocks, 0), scale), _shared(-_half(blocks, 2), minimum)
    if name == "Q6_K":
        return _shared(_half(blocks, 208), blocks[..., 192:208]), None
    return Factors(_half(blocks, 0)), Factors(_half(blocks, 2)) if name in ("Q4_1", "Q5_1") else None


def _shared(numbers: Tensor, shares: Tensor) -> Factors:
    """Make factors from numbers [out, blocks] and shares [out, blocks, groups of a block]."""
    return Factors(numbers, shares.contiguous().view(torch.int8).flatten(1))


def _half(blocks: Tensor, start: int) -> Tensor:
    """Read the float16 number at byte `start` of each block, as float32 [out, blocks]."""
    return blocks[..., start : start + 2].contiguous().view(torch.float16).float().flatten(1)
