"""A copy of a model's linear layers in fewer bits, made from its own weights at load, for drafts (docs/method.md).

Codes are symmetric, in groups of 32 inputs that share a float16 scale. Of a group w, each candidate step gives codes
q = round(w / step), kept within the code's range, and with them the scale Σwq / Σq², which leaves the squared error
Σw² − (Σwq)² / Σq²; the candidate with the least is taken. `kernels/low_bit.h` does the same for a CPU.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.model.decoder import Decoder
from engine.model.linear import Linear, LinearFactory
from engine.quantised.packed import PackedRows, pack_codes

GROUP = 32  # inputs that share a scale
# Where the largest weight of a group falls, in codes beyond the last one: on Qwen2.5-Coder-0.5B, four bits, these leave
# 1 % more error than forty of them, the single candidate 0 a fifth more.
BEYOND = (-1.0, -0.5, 0.0, 0.5, 1.0)
USUAL_BITS = 4  # of Qwen2.5-Coder 0.5B and 1.5B; SmolLM2-135M gains less with 5 or 6 (docs/notes/drafting.md)


def add_copy(decoder: Decoder, linear: LinearFactory, bits: int, progress: Callable[[float], None]) -> bool:
    """Give the decoder a copy in so many bits; False where its backend or its weights allow none."""

    def lower(layer: Linear) -> Linear:
        made = linear.lower(layer, bits)
        if made is None:
            raise _NoCopy
        return made

    try:
        decoder.lowered(lower, progress)
    except _NoCopy:
        return False
    return True


def copy_bytes(spec: ModelSpec, bits: int) -> int:
    """Memory of the copy: all parameters but a separate embedding's."""
    copied = spec.parameters - (0 if spec.tied else spec.vocab * spec.hidden)
    return copied * bits // 8 + copied * torch.float16.itemsize // GROUP


def lowered(weight: Tensor, bits: int) -> PackedRows:
    """weight [out, in], `in` a multiple of 32, in so many bits."""
    half = 1 << (bits - 1)
    groups = weight.float().view(len(weight), -1, GROUP)
    extreme = groups.gather(2, groups.abs().argmax(2, keepdim=True))
    usual = torch.where(extreme == 0, 1.0, extreme)
    best = torch.full_like(usual, -1.0)
    codes, scale = torch.zeros_like(groups), torch.zeros_like(usual)
    for beyond in BEYOND:
        found = (groups * (-(half + beyond) / usual)).round_().clamp_(-half, half - 1)
        along, square = (groups * found).sum(2, keepdim=True), found.square().sum(2, keepdim=True)
        gain = torch.where(square > 0, along.square() / square, 0.0)
        better = gain > best
        codes = torch.where(better, found, codes)
        scale = torch.where(better, torch.where(square > 0, along / square, 0.0), scale)
        best = torch.maximum(best, gain)
    return pack_codes(codes.add_(half).flatten(1).to(torch.uint8), scale[..., 0].half(), None, bits=bits, offset=half)


class _NoCopy(Exception):
    """A layer cannot be copied."""
