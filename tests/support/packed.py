"""Packed weights by chance."""

from __future__ import annotations

import numpy as np
import torch

from engine.model.packed import Format, PackedRows

# Where blocks have float16 numbers: any bytes are valid blocks, but for infinities and what is not a number.
HALVES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,),
    "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "MXFP4": (),
}  # fmt: skip


def random_rows(format: Format, out: int, inputs: int, seed: int) -> PackedRows:
    random = np.random.default_rng(seed)
    blocks = random.integers(0, 256, (out, inputs // format.block, format.block_bytes), dtype=np.uint8)
    for start in HALVES[format.name]:
        blocks[..., start + 1] &= 0xBF  # the exponent's highest bit: no number is above 2
    if format.name == "MXFP4":
        blocks[..., 0] &= 0x7F
    return PackedRows(format, torch.from_numpy(blocks.reshape(out, -1)), inputs)
