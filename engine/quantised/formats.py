"""Formats of packed weights in checkpoints. Does not import torch, which is slow, for readers of file headers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PackedFormat:
    """The layout of a row of weights."""

    name: str
    bits: int  # per code; 8 for fp8
    group: int  # adjacent weights of a row that share a scale (and a minimum)
    offset: int = 0
    minimum: bool = False  # groups have a minimum
    block: int = 32  # weights per block
    block_bytes: int = 0  # bytes per block; 0: the layout of `pack_codes` and `pack_fp8`


# GGUF's formats by ggml's names. K-quants share two float16 numbers among 256 weights and scale them for each group.
GGUF_FORMATS = {
    format.name: format
    for format in (
        PackedFormat("Q4_0", 4, 32, 8, block_bytes=18),
        PackedFormat("Q4_1", 4, 32, minimum=True, block_bytes=20),
        PackedFormat("Q5_0", 5, 32, 16, block_bytes=22),
        PackedFormat("Q5_1", 5, 32, minimum=True, block_bytes=24),
        PackedFormat("Q8_0", 8, 32, 128, block_bytes=34),
        PackedFormat("Q2_K", 4, 16, minimum=True, block=256, block_bytes=84),
        PackedFormat("Q3_K", 4, 16, 4, block=256, block_bytes=110),
        PackedFormat("Q4_K", 4, 32, minimum=True, block=256, block_bytes=144),
        PackedFormat("Q5_K", 5, 32, minimum=True, block=256, block_bytes=176),
        PackedFormat("Q6_K", 6, 16, 32, block=256, block_bytes=210),
        PackedFormat("IQ4_NL", 8, 32, 128, block_bytes=18),  # codes index a table of integers that fit into 8 bits
        PackedFormat("MXFP4", 5, 32, 12, block_bytes=17),  # twice an e2m1 number is an integer from -12 to 12
    )
}
