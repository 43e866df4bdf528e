"""Triton kernel for products of few rows with a weight matrix, which take as long as reading the weights takes.

The kernel fuses operations for which torch launches two to four: RMSNorm before the product; gating, bias and residual
after it. A row's result does not depend on the number of rows, to the last bit, as long as the kernel takes them all.
Verification therefore computes exactly what plain decoding computes. Tiles were the fastest on an H200
(docs/notes/kernels.md) and never depend on the number of rows.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.backends.cuda.launch import Launch, begin, prefetch

ROWS = (16, 32)  # least and most rows of a tile, padding included


@triton.jit
def prepare(value, norm, scaled, squares, place, row, rows, part, wanted, AXIS: tl.constexpr):
    """Prepare the RMSNorm of values that were just stored: store value · norm, and the part's sum of squares.

    value [.., ..] in the dtype of the output, whose axis AXIS is that of features; norm has its shape or broadcasts.
    Squares are added in float64, where their order hardly matters.
    """
    wide = value.to(tl.float32)
    tl.store(scaled + place, (wide * norm.to(tl.float32)).to(scaled.dtype.element_ty), mask=wanted)
    total = tl.sum(tl.where(wanted, wide * wide, 0.0).to(tl.float64), AXIS)
    tl.store(squares + part * rows + row, total.to(tl.float32), mask=row < rows)


@triton.jit(do_not_specialize=["rows", "parts"])
def _product(
    x, weight, squares, bias, residual, norm, out, scaled, sums_out, outputs, inputs, rows, epsilon, parts, alive,
    NORMED: tl.constexpr, GATED: tl.constexpr, BIASED: tl.constexpr, ADDED: tl.constexpr, PREPARES: tl.constexpr,
    WHOLE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, DEPTH: tl.constexpr, PARTS: tl.constexpr,
    AHEAD: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Compute BLOCK outputs of all rows.

    weight [outputs (twice that if GATED), inputs]; out, residual [rows, outputs]. WHOLE: `inputs` is a multiple of
    DEPTH. AHEAD: lines of 128 bytes of each output that are asked for before the kernel waits. NORMED: x was prepared,
    squares [parts, rows]. PREPARES: `prepare` for norm [outputs].
    """
    n = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    row, k = tl.arange(0, ROWS), tl.arange(0, DEPTH)
    wanted, there = n < outputs, row < rows
    weights = weight + n[:, None] * inputs + k[None, :]
    lines = n[:, None] * inputs + tl.arange(0, AHEAD)[None, :] * 64
    prefetch(weight + tl.minimum(lines, outputs.to(tl.int64) * inputs - 1), alive, EARLY)
    if not begin(alive, EARLY):
        return
    if NORMED:
        part = tl.arange(0, PARTS)[:, None]
        found = tl.load(squares + part * rows + row[None, :], mask=(part < parts) & there[None, :], other=0.0)
    source = x + row[None, :] * inputs + k[:, None]
    sums = tl.zeros([BLOCK, ROWS], tl.float32)
    others = tl.zeros([BLOCK, ROWS], tl.float32)
    for base in range(0, inputs, DEPTH):
        if WHOLE:
            read, seen = wanted[:, None], there[None, :]
        else:
            read = wanted[:, None] & (base + k < inputs)[None, :]
            seen = there[None, :] & (base + k < inputs)[:, None]
        w = tl.load(weights + base, mask=read, other=0.0)
        y = tl.load(source + base, mask=seen, other=0.0)
        sums = tl.dot(w, y, sums)
        if GATED:
            u = tl.load(weights + outputs.to(tl.int64) * inputs + base, mask=read, other=0.0)
            others = tl.dot(u, y, others)
    if NORMED:
        factor = tl.rsqrt(tl.sum(found.to(tl.float64), 0).to(tl.float32) / inputs + epsilon)
        sums *= factor[None, :]
        others *= factor[None, :]
    if BIASED:
        sums += tl.load(bias + n, mask=wanted, other=0.0).to(tl.float32)[:, None]
        if GATED:
            others += tl.load(bias + outputs + n, mask=wanted, other=0.0).to(tl.float32)[:, None]
    if GATED:
        sums = sums * tl.sigmoid(sums) * others
    place = row[None, :] * outputs + n[:, None]
    both = wanted[:, None] & there[None, :]
    if ADDED:
        sums += tl.load(residual + place, mask=both, other=0.0).to(tl.float32)
    value = sums.to(out.dtype.element_ty)
    tl.store(out + place, value, mask=both)
    if PREPARES:
        weight_after = tl.load(norm + n, mask=wanted, other=0.0)[:, None]
        prepare(value, weight_after, scaled, sums_out, place, row, rows, tl.program_id(0), both, 0)


class Prepared(NamedTuple):
    """What the kernel that computed x [rows, width] leaves for the RMSNorm after it.

    A product of x · weight of the norm, divided by the root of the mean square, is the product of the RMSNorm.
    """

    scaled: Tensor  # [rows, width]
    squares: Tensor  # sums of squares [parts, rows], float32

    @classmethod
    def of(cls, x: Tensor, parts: int) -> Prepared:
        """Return room for what `parts` programs leave of x [rows, width]."""
        return cls(torch.empty_like(x), torch.empty(parts, len(x), dtype=torch.float32, device=x.device))


def prepared_norm(x: Tensor, norm: Tensor) -> Tensor | None:
    """Return the norm [outputs] if a product of values like x [rows, inputs] should prepare it.

    A prepared norm divides after the product that follows, before which float16 could overflow.
    """
    return None if x.dtype == torch.float16 else norm


class Tiles(NamedTuple):
    """The tiling of a product: outputs per program, inputs per step, warps, and steps in flight."""

    block: int
    depth: int
    warps: int
    stages: int


_WIDE, _GATED, _NARROW = Tiles(128, 128, 8, 3), Tiles(64, 128, 8, 3), Tiles(32, 256, 4, 5)
_MANY = 32768  # outputs: only output heads have so many
_AHEAD = 16  # lines of each output: 1,024 inputs, about as much as the steps in flight will hold


def tiles(outputs: int, gated: bool, device: torch.device) -> Tiles:
    """Choose the tiling of a product, with as many steps in flight as fit into the device's shared memory."""
    cut = _GATED if gated else _WIDE if outputs >= _MANY else _NARROW
    step = ((1 + gated) * cut.block + ROWS[1]) * cut.depth * 2  # bytes
    return cut._replace(stages=max(2, min(cut.stages, shared_memory(device) // step)))


@cache
def shared_memory(device: torch.device) -> int:
    """Return the bytes of shared memory that a program may use."""
    if device.type != "cuda":
        return 1 << 20
    properties = triton.runtime.driver.active.utils.get_device_properties
    return int(properties(torch.cuda.current_device())["max_shared_mem"])


def product(
    x: Tensor | Prepared,
    weight: Tensor,
    launch: Launch,
    *,
    epsilon: float = 0.0,
    gated: bool = False,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    before: Tensor | None = None,
    out: Tensor | None = None,
    cut: Tiles | None = None,
) -> tuple[Tensor, Prepared | None]:
    """Compute x · weightᵀ + bias: x [rows ≤ 32, inputs], weight [outputs, inputs] -> [rows, outputs].

    x is prepared: multiply its RMSNorm, with `epsilon`. `gated`: return silu(first half of the outputs) · second half.
    `residual` [rows, outputs]: add it last. `before` [outputs]: prepare the RMSNorm by this weight, which comes next.
    `out`: where to write the result. `cut`: the tiling, chosen by default.
    """
    values, squares = x if isinstance(x, Prepared) else (x, None)
    rows, inputs = values.shape
    outputs = weight.shape[0] // (2 if gated else 1)
    cut = cut or tiles(outputs, gated, values.device)
    out = values.new_empty(rows, outputs) if out is None else out
    programs, parts = triton.cdiv(outputs, cut.block), 1 if squares is None else len(squares)
    prepared = None if before is None else Prepared.of(out, programs)
    _product[(programs,)](
        values, weight, squares, bias, residual, before, out, *(prepared or (None, None)),
        outputs, inputs, rows, epsilon, parts,
        NORMED=squares is not None, GATED=gated, BIASED=bias is not None, ADDED=residual is not None,
        PREPARES=prepared is not None, WHOLE=inputs % cut.depth == 0, ROWS=max(ROWS[0], triton.next_power_of_2(rows)),
        BLOCK=cut.block, DEPTH=cut.depth, PARTS=triton.next_power_of_2(parts), AHEAD=_AHEAD,
        num_warps=cut.warps, num_stages=cut.stages, **launch.options,
    )  # fmt: skip
    return out, prepared


@triton.jit
def _normalise(x, weight, out, epsilon, alive, WIDTH: tl.constexpr, PADDED: tl.constexpr, EARLY: tl.constexpr):
    """Apply RMSNorm to one row of x [rows, WIDTH]."""
    i = tl.arange(0, PADDED)
    place = tl.program_id(0) * WIDTH + i
    if not begin(alive, EARLY):
        return
    value = tl.load(x + place, mask=i < WIDTH, other=0.0).to(tl.float32)
    scale = tl.load(weight + i, mask=i < WIDTH, other=0.0).to(tl.float32)
    factor = tl.rsqrt(tl.sum(value * value, 0) / WIDTH + epsilon)
    tl.store(out + place, (value * factor * scale).to(out.dtype.element_ty), mask=i < WIDTH)


def normalise(x: Tensor, weight: Tensor, epsilon: float, launch: Launch) -> Tensor:
    """Apply RMSNorm by weight [width] to each row of x [rows, width], which is contiguous."""
    width, out = len(weight), torch.empty_like(x)
    padded = triton.next_power_of_2(width)
    _normalise[(len(x),)](
        x, weight, out, epsilon,
        WIDTH=width, PADDED=padded, num_warps=max(1, min(16, padded // 256)), **launch.options,
    )  # fmt: skip
    return out
