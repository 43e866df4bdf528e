"""Multiply weights that stay packed in device memory (`engine.quantised.packed`).

The kernel unpacks a tile of codes in registers, multiplies group by group, and scales each group's sum in float32. A
code minus its offset is exact in half precision, so nothing but inputs and outputs is rounded.

Weights are stored in chunks of up to 64 inputs that share a scale, [chunks, outputs, inputs of a chunk], so that a tile
is contiguous. Codes of up to 4 bits take 4 bits each. Codes of 5 and 6 bits take as many as they have, in a plane of
low and a plane of high bits. Wider codes and fp8 take 8. A byte holds the same input of several neighbouring chunks.

As in `products`, a row's result does not depend on the number of rows, as long as the kernel takes them all. More rows
are multiplied by torch, with weights unpacked temporarily.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import gcd

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from engine.backends.cuda.launch import Launch, begin
from engine.backends.cuda.products import Prepared, normalise, shared_memory
from engine.quantised.packed import Factors, PackedRows, unpack_weights

_ROWS = (16, 32)  # least and most rows of a tile, padding included
_MOST = 64  # rows of the kernel: unpacking for two tiles costs less than writing and reading an unpacked matrix
_REACH = 256  # least inputs of a step
_MANY = 32768  # outputs: only output heads have so many
_STAGES = 4  # most steps in flight


@triton.jit
def _numbers(
    low, high, i: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, OFFSET: tl.constexpr, FP8: tl.constexpr
):
    """Unpack the numbers, float32, that scales multiply: those of the i-th chunk in these bytes."""
    if FP8:  # float16 has the same fields with one more exponent bit
        wide = low.to(tl.uint16)
        return (((wide & 128) << 8) | ((wide & 127) << 7)).to(tl.float16, bitcast=True).to(tl.float32) * 256.0
    code = low.to(tl.uint16)
    if LOW < 8:
        code = (code >> (i % (8 // LOW) * LOW)) & ((1 << LOW) - 1)
    if HIGH > 0:
        code = code | (((high.to(tl.uint16) >> (i % (8 // HIGH) * HIGH)) & ((1 << HIGH) - 1)) << LOW)
    # 1024 + code, by setting the last bits of a float16: several times faster than converting integers.
    return ((code | 0x6400).to(tl.float16, bitcast=True) - (1024.0 + OFFSET)).to(tl.float32)


@triton.jit
def _factor(number, shares, group, HALVES: tl.constexpr, TOGETHER: tl.constexpr):
    """Extract a group's scales or minima, float32 [BLOCK], from the words that hold them."""
    if HALVES:
        number = (number >> (group // TOGETHER % 2 * 16)) & 0xFFFF
        value = number.to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)
    else:
        value = number.to(tl.float32, bitcast=True)
    if TOGETHER > 1:
        value *= (shares << (24 - group % 4 * 8) >> 24).to(tl.float32)
    return value


@triton.jit
def _finish(
    sums, bias, residual, out, n, row, outputs, rows, width,
    PAIRED: tl.constexpr, GATED: tl.constexpr, BIASED: tl.constexpr, ADDED: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Add bias and residual to sums [BLOCK, ROWS], gate them if GATED, and store them.

    PAIRED: outputs of the first and of the second half alternate. out and residual [rows, width] begin at this matrix'
    columns.
    """
    column, wanted = n, n < outputs
    if PAIRED:
        column = n % 2 * (outputs // 2) + n // 2
    if BIASED:
        sums += tl.load(bias + column, mask=wanted, other=0.0).to(tl.float32)[:, None]
    if GATED:
        gate, up = tl.split(tl.permute(tl.reshape(sums, [BLOCK // 2, 2, ROWS]), [0, 2, 1]))
        sums = gate * tl.sigmoid(gate) * up
        column = (tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK // 2)).to(tl.int64)
        wanted = column < outputs // 2
    place = row[None, :] * width + column[:, None]
    both = wanted[:, None] & (row < rows)[None, :]
    if ADDED:
        sums += tl.load(residual + place, mask=both, other=0.0).to(tl.float32)
    tl.store(out + place, sums.to(out.dtype.element_ty), mask=both)


@triton.jit(do_not_specialize=["rows"])
def _product(
    x, low, high, scale, scale_shares, least, least_shares, bias, residual, out,
    outputs, inputs, rows, width, chunks, alive,
    LOW: tl.constexpr, HIGH: tl.constexpr, OFFSET: tl.constexpr, FP8: tl.constexpr, MINIMUM: tl.constexpr,
    HALVES: tl.constexpr, CHUNKS: tl.constexpr, TOGETHER: tl.constexpr, SPAN: tl.constexpr, SHARED: tl.constexpr,
    PAIRED: tl.constexpr, GATED: tl.constexpr, BIASED: tl.constexpr, ADDED: tl.constexpr, WHOLE: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, DEPTH: tl.constexpr, STEPS: tl.constexpr, STAGES: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    """Compute BLOCK outputs of ROWS rows.

    CHUNKS: chunks of a group. TOGETHER: groups that share a number. SPAN, SHARED: chunks that read the same word of
    numbers, and of shares. WHOLE: `chunks` is a multiple of STEPS.
    """
    n = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    row, k = tl.program_id(1) * ROWS + tl.arange(0, ROWS), tl.arange(0, DEPTH)
    wanted, there = n < outputs, row < rows
    if not begin(alive, EARLY):
        return
    source = x + row[None, :] * inputs + k[:, None]
    cells = n[:, None] * DEPTH + k[None, :]
    lows, highs = low + cells, high + cells
    sums = tl.zeros([BLOCK, ROWS], tl.float32)
    for base in tl.range(
        0, chunks, STEPS, num_stages=STAGES
    ):  # num_stages prefetches scales too, which tl.dot does not read
        for i in tl.static_range(STEPS):
            read, seen = wanted, there
            if not WHOLE:
                read, seen = wanted & (base + i < chunks), there & (base + i < chunks)
            if i % (8 // LOW) == 0:
                a = tl.load(lows + i // (8 // LOW) * outputs * DEPTH, mask=read[:, None], other=0)
            if i % (8 // HIGH if HIGH else STEPS) == 0:
                b = tl.load(highs + i // (8 // HIGH if HIGH else STEPS) * outputs * DEPTH, mask=read[:, None], other=0)
            y = tl.load(source + (base + i) * DEPTH, mask=seen[None, :], other=0.0)
            w = _numbers(a, b, i, LOW, HIGH, OFFSET, FP8).to(y.dtype)
            group = (base + i) // CHUNKS
            if i % SPAN == 0:
                at = group // (TOGETHER * 2 if HALVES else TOGETHER) * outputs + n
                number = tl.load(scale + at, mask=read, other=0)
                floor = number
                if MINIMUM:
                    floor = tl.load(least + at, mask=read, other=0)
            if i % SHARED == 0:
                shares, floors = number, number
                if TOGETHER > 1:
                    shares = tl.load(scale_shares + group // 4 * outputs + n, mask=read, other=0)
                    if MINIMUM:
                        floors = tl.load(least_shares + group // 4 * outputs + n, mask=read, other=0)
            sums += tl.dot(w, y) * _factor(number, shares, group, HALVES, TOGETHER)[:, None]
            if MINIMUM:
                # Minimum · sum of the inputs, as a product with ones, which adds in the same order. The ones derive
                # from loaded bytes, so that both products need the same layout of inputs: otherwise the compiler does
                # not prefetch them.
                ones = (a.to(tl.int32) >= 0).to(tl.float32).to(y.dtype)
                sums += tl.dot(ones, y) * _factor(floor, floors, group, HALVES, TOGETHER)[:, None]
        lows += STEPS // (8 // LOW) * outputs * DEPTH
        if HIGH > 0:
            highs += STEPS // (8 // HIGH) * outputs * DEPTH
    _finish(sums, bias, residual, out, n, row, outputs, rows, width, PAIRED, GATED, BIASED, ADDED, ROWS, BLOCK)


@triton.jit
def _expand(
    low, high, scale, scale_shares, least, least_shares, out, outputs, inputs, chunks,
    LOW: tl.constexpr, HIGH: tl.constexpr, OFFSET: tl.constexpr, FP8: tl.constexpr, MINIMUM: tl.constexpr,
    HALVES: tl.constexpr, CHUNKS: tl.constexpr, TOGETHER: tl.constexpr, SPAN: tl.constexpr, SHARED: tl.constexpr,
    PAIRED: tl.constexpr, BLOCK: tl.constexpr, DEPTH: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """Unpack BLOCK outputs and STEPS chunks of the weights into out [outputs, inputs]."""
    n = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    base, k = tl.program_id(1) * STEPS, tl.arange(0, DEPTH)
    column = n
    if PAIRED:
        column = n % 2 * (outputs // 2) + n // 2
    # 64 bits, because a plane may exceed 2 GiB.
    begin = base.to(tl.int64) * outputs * DEPTH
    cells = n[:, None] * DEPTH + k[None, :]
    lows, highs = low + begin // (8 // LOW) + cells, high + cells
    if HIGH > 0:
        highs += begin // (8 // HIGH)
    for i in tl.static_range(STEPS):
        read = (n < outputs) & (base + i < chunks)
        if i % (8 // LOW) == 0:
            a = tl.load(lows + i // (8 // LOW) * outputs * DEPTH, mask=read[:, None], other=0)
        if i % (8 // HIGH if HIGH else STEPS) == 0:
            b = tl.load(highs + i // (8 // HIGH if HIGH else STEPS) * outputs * DEPTH, mask=read[:, None], other=0)
        group = (base + i) // CHUNKS
        if i % SPAN == 0:
            at = group // (TOGETHER * 2 if HALVES else TOGETHER) * outputs + n
            number = tl.load(scale + at, mask=read, other=0)
            floor = number
            if MINIMUM:
                floor = tl.load(least + at, mask=read, other=0)
        if i % SHARED == 0:
            shares, floors = number, number
            if TOGETHER > 1:
                shares = tl.load(scale_shares + group // 4 * outputs + n, mask=read, other=0)
                if MINIMUM:
                    floors = tl.load(least_shares + group // 4 * outputs + n, mask=read, other=0)
        w = _numbers(a, b, i, LOW, HIGH, OFFSET, FP8)
        w *= _factor(number, shares, group, HALVES, TOGETHER)[:, None]
        if MINIMUM:
            w += _factor(floor, floors, group, HALVES, TOGETHER)[:, None]
        place = column[:, None] * inputs + (base + i) * DEPTH + k[None, :]
        tl.store(out + place, w.to(out.dtype.element_ty), mask=read[:, None])


@dataclass(frozen=True, slots=True)
class _Matrix:
    """Weights of one format, repacked. `shape` holds the kernels' constants, `tensors` their inputs."""

    outputs: int
    inputs: int
    chunks: int
    order: Tensor | None  # input of each column
    shape: dict[str, int]
    tensors: tuple[Tensor, ...]

    def add(
        self, x: Tensor, bias: Tensor | None, residual: Tensor | None, out: Tensor, launch: Launch, *, gated: bool
    ) -> None:
        """Multiply x [rows, inputs] into `out` and add `residual` [rows, …]; both begin at this matrix' columns."""
        rows, block = len(x), 64 if self.outputs >= _MANY else 32
        padded = max(_ROWS[0], min(_ROWS[1], triton.next_power_of_2(rows)))
        step = (block + 2 * padded) * self.shape["DEPTH"] * self.shape["STEPS"]  # bytes
        _product[(triton.cdiv(self.outputs, block), triton.cdiv(rows, padded))](
            x, *self.tensors, bias, residual, out,
            self.outputs, self.inputs, rows, out.stride(0), self.chunks,
            GATED=gated, BIASED=bias is not None, ADDED=residual is not None,
            WHOLE=self.chunks % self.shape["STEPS"] == 0, ROWS=padded, BLOCK=block, **self.shape,
            STAGES=max(2, min(_STAGES, shared_memory(x.device) // step)), num_warps=block // 16, **launch.options,
        )  # fmt: skip

    def expand(self, like: Tensor) -> Tensor:
        """Unpack the weights [outputs, inputs] to the dtype of `like`."""
        out, block = like.new_empty(self.outputs, self.inputs), 32
        _expand[(triton.cdiv(self.outputs, block), triton.cdiv(self.chunks, self.shape["STEPS"]))](
            *self.tensors, out, self.outputs, self.inputs, self.chunks, BLOCK=block, **self.shape
        )
        return out

    def arranged(self, x: Tensor) -> Tensor:
        """Reorder the columns of x [rows, inputs] as the weights' columns."""
        return x if self.order is None else x.index_select(1, self.order)


class PackedRowsLinear:
    """A packed `FusedLinear` for float16 or bfloat16 inputs: up to `most` rows by the kernel, more by torch."""

    most = _MOST

    def __init__(
        self, parts: Sequence[PackedRows], bias: Tensor | None = None, *, gated: bool = False, launch: Launch
    ) -> None:
        """Repack the parts, one below the other, and keep bias [out]."""
        self._launch, device = launch, launch.device
        merged = list(_merged(parts, device))
        self._paired = gated and len(merged) == 1
        if self._paired:
            turns = torch.arange(len(merged[0].rows), device=device).view(2, -1).t().reshape(-1)
            merged[0] = merged[0].select(turns)
        self._matrices = [_repacked(part, paired=self._paired) for part in merged]
        self._outputs, self._bias = sum(matrix.outputs for matrix in self._matrices), bias
        stored = {tensor.data_ptr(): tensor for matrix in self._matrices for tensor in matrix.tensors}
        self.weights = [*stored.values()]

    def __call__(self, x: Tensor) -> Tensor:
        return self._product(x)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        return self._product(x, residual)

    def add_before(self, x: Tensor, residual: Tensor, norm: Tensor) -> tuple[Tensor, Prepared | None]:
        return self._product(x, residual), None

    def normed(
        self, x: Tensor, prepared: Prepared | None, norm: Tensor, epsilon: float, out: Tensor | None = None
    ) -> Tensor:
        found = self._product(normalise(x, norm, epsilon, self._launch))
        return found if out is None else out.copy_(found)

    def gated(self, x: Tensor, prepared: Prepared | None, norm: Tensor, epsilon: float) -> Tensor:
        x = normalise(x, norm, epsilon, self._launch)
        if self._paired:
            return self._product(x, gated=True)
        gate, up = self._product(x).chunk(2, 1)
        return F.silu(gate).mul_(up)

    def _product(self, x: Tensor, residual: Tensor | None = None, *, gated: bool = False) -> Tensor:
        """Multiply x [rows, in] and add residual [rows, out]: -> [rows, out], or [rows, out / 2] if gated."""
        if len(x) > _MOST:
            parts = [F.linear(matrix.arranged(x), matrix.expand(x)) for matrix in self._matrices]
            out = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
            for more in (self._bias, residual):
                out = out if more is None else out.add_(more)
            if gated:
                gate, up = out.chunk(2, 1)
                return F.silu(gate).mul_(up)
            return out
        out, first = x.new_empty(len(x), self._outputs // (2 if gated else 1)), 0
        for matrix in self._matrices:
            end = first + matrix.outputs
            bias = None if self._bias is None else self._bias[first:end]
            rest = None if residual is None else residual[:, first:end]
            matrix.add(matrix.arranged(x), bias, rest, out[:, first:end], self._launch, gated=gated)
            first = end
        return out


def _merged(parts: Sequence[PackedRows], device: torch.device) -> Iterator[PackedRows]:
    """Merge neighbouring parts of the same format and move them to the device."""

    def alike(part: PackedRows) -> tuple[object, ...]:
        return part.format, None if part.order is None else tuple(part.order.tolist())

    for _, found in groupby(parts, alike):
        group = list(found)
        order = None if group[0].order is None else group[0].order.to(device)
        yield replace(group[0], rows=torch.cat([part.rows.to(device) for part in group]), order=order)


def _repacked(packed: PackedRows, *, paired: bool) -> _Matrix:
    codes, scale, least = unpack_weights(packed)
    format, (outputs, inputs) = packed.format, packed.shape
    depth, fp8 = gcd(format.group, 64), format.name == "fp8"
    low = 4 if format.bits <= 6 and not fp8 else 8
    high = max(0, format.bits - low)
    chunks = codes.view(outputs, -1, depth).transpose(0, 1).contiguous()
    lows = _plane(chunks & (1 << low) - 1, low)
    halves = all(torch.equal(each.numbers.half().float(), each.numbers) for each in (scale, least or scale))
    factors = _factors(scale, halves)
    highs = _plane(chunks >> low, high) if high else lows
    tensors = (lows, highs, *factors, *(_factors(least, halves) if least else factors))
    steps = max(8 // high if high else 1, _REACH // depth)
    together, group = inputs // format.group // scale.numbers.shape[1], format.group // depth
    shape = {
        "LOW": low, "HIGH": high, "OFFSET": format.offset, "FP8": fp8, "MINIMUM": least is not None, "HALVES": halves,
        "CHUNKS": group, "TOGETHER": together, "SPAN": gcd(steps, group * together * (1 + halves)),
        "SHARED": gcd(steps, group * 4), "PAIRED": paired, "DEPTH": depth, "STEPS": steps,
    }  # fmt: skip
    return _Matrix(outputs, inputs, len(chunks), packed.order, shape, tensors)


def _plane(chunks: Tensor, bits: int) -> Tensor:
    """Pack codes [chunks, outputs, inputs of a chunk] of `bits` bits, neighbouring chunks into one byte."""
    together = 8 // bits
    if together == 1:
        return chunks
    plane = chunks[::together].clone()
    for i in range(1, together):
        more = chunks[i::together]
        plane[: len(more)] |= more << i * bits
    return plane


def _factors(factors: Factors, halves: bool) -> tuple[Tensor, Tensor]:
    """Pack numbers and shares into int32 [words, outputs] each; without shares, return the numbers twice."""
    numbers = _words(factors.numbers.half() if halves else factors.numbers)
    return numbers, numbers if factors.shares is None else _words(factors.shares)


def _words(numbers: Tensor) -> Tensor:
    """Pack numbers [outputs, n] into int32 [words, outputs]: the compiler prefetches nothing smaller than a word."""
    together = 4 // numbers.itemsize
    padded = F.pad(numbers, (0, -numbers.shape[1] % together)).contiguous()
    return padded.view(torch.int32).t().contiguous()
