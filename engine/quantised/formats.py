"""How checkpoints write packed weights. Free of torch: what reads a file's header need not wait for its import."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """How a row of weights is written."""

    name: str
    bits: int  # of a code; 8 for numbers of fp8
    group: int  # neighbouring weights of a row that share a scale (and a minimum)
    offset: int = 0
    minimum: bool = False  # whether groups have one
    block: int = 32  # weights that are written together,
    block_bytes: int = 0  # in so many bytes; 0: codes, as `coded` writes them


# GGUF's, by ggml's names. K-quants share two float16 numbers among 256 weights, and scale those for each group.
GGUF_FORMATS = {
    format.name: format
    for format in (
        Format("Q4_0", 4, 32, 8, block_bytes=18),
        Format("Q4_1", 4, 32, minimum=True, block_bytes=20),
        Format("Q5_0", 5, 32, 16, block_bytes=22),
        Format("Q5_1", 5, 32, minimum=True, block_bytes=24),
        Format("Q8_0", 8, 32, 128, block_bytes=34),
        Format("Q2_K", 4, 16, minimum=True, block=256, block_bytes=84),
        Format("Q3_K", 4, 16, 4, block=256, block_bytes=110),
        Format("Q4_K", 4, 32, minimum=True, block=256, block_bytes=144),
        Format("Q5_K", 5, 32, minimum=True, block=256, block_bytes=176),
        Format("Q6_K", 6, 16, 32, block=256, block_bytes=210),
        Format("IQ4_NL", 8, 32, 128, block_bytes=18),  # codes of a table, which is no grid: eight bits hold it
        Format("MXFP4", 5, 32, 12, block_bytes=17),  # twice e2m1 is a whole number from -12 to 12
    )
}
