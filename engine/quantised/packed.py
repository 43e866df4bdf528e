"""Packed weights: integers in groups that share a scale.

A weight is `scale · (code − offset) + minimum`; codes are unsigned integers of `bits` bits. A matrix [out, in] is
stored as bytes, one row per output, in a `PackedFormat`: one of GGUF's block formats, unchanged; `codes` for the
integers of other checkpoints; or `fp8`, with e4m3 numbers in place of codes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
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


def dequantise(packed: PackedRows) -> Tensor:
    """Return the weights, float32 [out, in], with the inputs in the layer's order."""
    weights = _columns(packed)
    return weights if packed.order is None else torch.empty_like(weights).index_copy_(1, packed.order, weights)


def _columns(packed: PackedRows) -> Tensor:
    """Return the weights, float32 [out, in], with the inputs in the order of the rows."""
    format, inputs = packed.format, packed.inputs
    if format.block_bytes:
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize

        return torch.from_numpy(
            dequantize(np.ascontiguousarray(packed.rows.numpy()), GGMLQuantizationType[format.name])
        )
    numbers, tail = packed.rows[:, :inputs].contiguous(), packed.rows[:, inputs:].contiguous().view(torch.float32)
    groups = inputs // format.group
    scale = tail[:, :groups, None]
    if format.name == "fp8":
        return (numbers.view(torch.float8_e4m3fn).float().view(len(numbers), groups, -1) * scale).flatten(1)
    weights = (numbers.float().view(len(numbers), groups, -1) - format.offset) * scale
    return (weights + tail[:, groups:, None] if format.minimum else weights).flatten(1)
