"""Copy a model's linear layers in fewer bits, for drafts (docs/method.md).

Codes are symmetric, in groups of 32 inputs that share a float16 scale. For a group w, each candidate step gives codes
q = round(w / step), clamped to the range of codes. Their best scale is Σwq / Σq²; it leaves the squared error
Σw² − (Σwq)² / Σq². The candidate with the least error wins. `kernels/low_bit.h` does the same on a CPU.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.quantised.packed import PackedRows, pack_codes

GROUP = 32  # inputs that share a scale
# Candidate steps map a group's largest weight to this many codes beyond the last code. On Qwen2.5-Coder-0.5B at four
# bits, these five leave 1 % more error than forty candidates do, and the single candidate 0 leaves 20 % more.
BEYOND = (-1.0, -0.5, 0.0, 0.5, 1.0)
# Fastest for Qwen2.5-Coder 0.5B and 1.5B; 5 and 6 bits gain less on SmolLM2-135M (docs/notes/drafting.md).
USUAL_BITS = 4


def copy_bytes(spec: ModelSpec, bits: int) -> int:
    """Return the bytes of a copy, which has all parameters but those of a separate embedding."""
    copied = spec.parameters - (0 if spec.tied else spec.vocab * spec.hidden)
    return copied * bits // 8 + copied * torch.float16.itemsize // GROUP


# twin: engine/kernels/low_bit.h, quantise_group
def lowered(weight: Tensor, bits: int) -> PackedRows:
    """Quantise weight [out, in] to `bits` bits; `in` is a multiple of 32."""
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
