"""Random packed weights."""

from __future__ import annotations

import numpy as np
import torch

from engine.quantised.formats import PackedFormat
from engine.quantised.packed import PackedRows, pack_codes, pack_fp8

# Where blocks have float16 numbers: any bytes are valid blocks, but for infinities and what is not a number.
HALVES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,),
    "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "MXFP4": (),
}  # fmt: skip


def random_rows(format: PackedFormat, out: int, inputs: int, seed: int) -> PackedRows:
    random = np.random.default_rng(seed)
    blocks = random.integers(0, 256, (out, inputs // format.block, format.block_bytes), dtype=np.uint8)
    for start in HALVES[format.name]:
        blocks[..., start + 1] &= 0xBF  # the exponent's highest bit: no number is above 2
    if format.name == "MXFP4":
        blocks[..., 0] &= 0x7F
    return PackedRows(format, torch.from_numpy(blocks.reshape(out, -1)), inputs)


def some_codes(out: int, inputs: int, group: int, bits: int, *, half: bool = True, minimum: bool = False) -> PackedRows:
    g = torch.Generator().manual_seed(out + inputs + group + bits)
    codes = torch.randint(0, 1 << bits, (out, inputs), dtype=torch.uint8, generator=g)
    scale, least = (torch.rand(out, inputs // group, generator=g) / 2**bits for _ in range(2))
    if half:
        scale, least = scale.half().float(), least.half().float()
    return pack_codes(codes, scale, -least if minimum else None, bits=bits, offset=0 if minimum else 1 << (bits - 1))


def some_fp8(out: int, inputs: int, group: int) -> PackedRows:
    g = torch.Generator().manual_seed(out)
    numbers = torch.randn(out, inputs, generator=g)
    numbers[:, :5] = torch.tensor([448.0, -448.0, 2**-9, -0.0, 3 * 2**-9])  # the largest, the smallest
    return pack_fp8(numbers.to(torch.float8_e4m3fn), torch.rand(out, inputs // group, generator=g))
