"""Triton kernels of static passes: rotate and store q, k, v; attend to pages, reading each page once.

`_scan` is flash decoding. A program takes a share of one sequence's blocks of keys, for all query rows and heads that
read the same K/V head, and leaves a partial softmax. `_merge` joins the shares. The number of shares is fixed; block b
belongs to share b modulo that number. Therefore one recording serves all context lengths, and a row's result does not
depend on the rows after it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.backends.cuda.attention import StaticBatch
from engine.backends.cuda.products import shared_memory

_BLOCKS = (128, 64)  # keys at a time, with and without _BLOCK_MEMORY
_BLOCK_MEMORY = 200_000  # bytes of a multiprocessor's shared memory
_TILE = 32  # most rows × query heads per K/V head of a program: larger tiles use instructions that round differently
_PROGRAMS = 264  # about two per multiprocessor of a large GPU
_SHARES = 64  # most shares of a sequence


@triton.jit
def _store(
    qkv, factors, positions, slots, k, v, q,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, HALF: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Rotate q and k in pairs of neighbouring dimensions and store q, k, v. One program per row and head."""
    row, head = tl.program_id(0), tl.program_id(1)
    pair = tl.arange(0, PADDED)
    there = pair < HALF
    source = qkv + (row * (HEADS + 2 * KV_HEADS) + head) * 2 * HALF + 2 * pair
    a = tl.load(source, mask=there, other=0.0).to(tl.float32)
    b = tl.load(source + 1, mask=there, other=0.0).to(tl.float32)
    if head < HEADS + KV_HEADS:
        turn = factors + (tl.load(positions + row) * HALF + pair) * 2
        cos = tl.load(turn, mask=there, other=0.0)
        sin = tl.load(turn + 1, mask=there, other=0.0)
        a, b = a * cos - b * sin, a * sin + b * cos
    slot = tl.load(slots + row)
    if head < HEADS:
        target = q + (row * HEADS + head) * 2 * HALF + 2 * pair
        tl.store(target, a.to(q.dtype.element_ty), mask=there)
        tl.store(target + 1, b.to(q.dtype.element_ty), mask=there)
    elif head < HEADS + KV_HEADS:
        target = k + (slot * KV_HEADS + head - HEADS) * 2 * HALF + 2 * pair
        tl.store(target, a.to(k.dtype.element_ty), mask=there)
        tl.store(target + 1, b.to(k.dtype.element_ty), mask=there)
    else:
        target = v + (slot * KV_HEADS + head - HEADS - KV_HEADS) * 2 * HALF + 2 * pair
        tl.store(target, a.to(v.dtype.element_ty), mask=there)
        tl.store(target + 1, b.to(v.dtype.element_ty), mask=there)


@triton.jit
def _scan(
    q, k, v, table, slabs, starts, ends, sums, stats, blocks, scale, window, sinks,
    GROUP: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, HEADS: tl.constexpr, KV_HEADS: tl.constexpr,
    DIM: tl.constexpr, PADDED: tl.constexpr, SHARES: tl.constexpr,
    PARTS: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Attend with WIDTH of the PARTS · WIDTH rows of a sequence to one share of its keys.

    Writes sums [sequences × PARTS, kv_heads, SHARES, TILE, DIM] and stats [… , TILE, 2]: largest score, sum of
    exponentials.
    """
    part, kv_head, share = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    sequence = part // PARTS
    start, end, slab = tl.load(starts + sequence), tl.load(ends + sequence), tl.load(slabs + sequence)
    start += part % PARTS * WIDTH
    end = tl.minimum(end, start + WIDTH)
    item, dim = tl.arange(0, TILE), tl.arange(0, PADDED)
    row = item // GROUP
    position = start + row
    real = (item < WIDTH * GROUP) & (position < end)
    source = q + ((part * WIDTH + row) * HEADS + kv_head * GROUP + item % GROUP) * DIM
    queries = tl.load(source[:, None] + dim[None, :], mask=real[:, None] & (dim < DIM)[None, :], other=0.0)

    begin = tl.where(window > 0, tl.maximum(start + 1 - window, 0), 0) // BLOCK
    first = (begin + (share + SHARES - begin % SHARES) % SHARES) * BLOCK
    step = SHARES * BLOCK
    before = tl.maximum(tl.minimum(tl.cdiv(sinks, BLOCK), begin) - share + SHARES - 1, 0) // SHARES  # blocks of sinks
    looks = before + tl.cdiv(tl.maximum(end - first, 0), step)
    largest = tl.full([TILE], float("-inf"), tl.float32)
    total = tl.zeros([TILE], tl.float32)
    said = tl.zeros([TILE, PADDED], tl.float32)
    for look in range(0, looks):
        key = tl.where(look < before, share * BLOCK + look * step, first + (look - before) * step) + tl.arange(0, BLOCK)
        there = key < end
        page = tl.load(table + slab * blocks + key // PAGE, mask=there, other=0).to(tl.int64)
        place = ((page * PAGE + key % PAGE) * KV_HEADS + kv_head) * DIM
        read = there[:, None] & (dim < DIM)[None, :]
        keys = tl.load(k + place[:, None] + dim[None, :], mask=read, other=0.0)
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale
        seen = there[None, :] & (key[None, :] <= position[:, None])
        seen = seen & ((window == 0) | (key[None, :] > position[:, None] - window) | (key < sinks)[None, :])
        scores = tl.where(seen, scores, float("-inf"))
        above = tl.maximum(largest, tl.max(scores, 1))
        anchor = tl.where(above == float("-inf"), 0.0, above)
        weights = tl.exp(scores - anchor[:, None])
        fade = tl.exp(largest - anchor)
        values = tl.load(v + place[:, None] + dim[None, :], mask=read, other=0.0)
        said = said * fade[:, None] + tl.dot(weights.to(values.dtype), values, input_precision="ieee")
        total = total * fade + tl.sum(weights, 1)
        largest = above
    place = ((part * KV_HEADS + kv_head) * SHARES + share) * TILE + item
    tl.store(stats + place * 2, largest)
    tl.store(stats + place * 2 + 1, total)
    if looks > 0:
        tl.store(sums + place[:, None] * DIM + dim[None, :], said, mask=(dim < DIM)[None, :])


@triton.jit
def _merge(
    sums, stats, out,
    GROUP: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, HEADS: tl.constexpr, KV_HEADS: tl.constexpr,
    DIM: tl.constexpr, PADDED: tl.constexpr, SHARES: tl.constexpr,
):  # fmt: skip
    """Join the shares. One program per row and query head; padding rows get zeros."""
    row, head = tl.program_id(0), tl.program_id(1)
    part, kv_head = row // WIDTH, head // GROUP
    item = (row % WIDTH) * GROUP + head % GROUP
    share, dim = tl.arange(0, SHARES), tl.arange(0, PADDED)
    place = ((part * KV_HEADS + kv_head) * SHARES + share) * TILE + item
    largest, total = tl.load(stats + place * 2), tl.load(stats + place * 2 + 1)
    above = tl.max(largest, 0)
    fade = tl.exp(largest - tl.where(above == float("-inf"), 0.0, above))
    read = (dim < DIM)[None, :] & (total > 0.0)[:, None]  # empty shares wrote no sums
    said = tl.load(sums + place[:, None] * DIM + dim[None, :], mask=read, other=0.0)
    whole = tl.sum(total * fade, 0)
    value = tl.sum(said * fade[:, None], 0) / tl.where(whole == 0.0, 1.0, whole)
    tl.store(out + (row * HEADS + head) * DIM + dim, value.to(out.dtype.element_ty), mask=dim < DIM)


class TritonKernels:
    """Implement `attention.Kernels` for float32, float16 and bfloat16."""

    def store(self, qkv: Tensor, factors: Tensor, positions: Tensor, slots: Tensor, k: Tensor, v: Tensor) -> Tensor:
        rows, heads, dim = qkv.shape
        kv_heads = k.shape[2]
        q = torch.empty(rows, heads - 2 * kv_heads, dim, dtype=k.dtype, device=k.device)
        half, padded = dim // 2, triton.next_power_of_2(dim // 2)
        _store[(rows, heads)](
            qkv.contiguous(), factors, positions, slots, k, v, q,
            HEADS=q.shape[1], KV_HEADS=kv_heads, HALF=half, PADDED=padded,
        )  # fmt: skip
        return q

    def scan(self, q: Tensor, k: Tensor, v: Tensor, batch: StaticBatch, window: int, sinks: int) -> Tensor:
        (sequences, width), table = batch.layout, batch.attention.cache.device_tables
        _, page, kv_heads, dim = k.shape
        heads = q.shape[1]
        group = heads // kv_heads
        rows = min(width, max(1, _power_below(_TILE // group)))
        parts = sequences * width // rows
        tile = max(16, triton.next_power_of_2(rows * group))
        shares = min(_SHARES, _power_below(_PROGRAMS // (sequences * kv_heads)))
        sums = torch.empty(parts, kv_heads, shares, tile, dim, dtype=torch.float32, device=q.device)
        stats = torch.empty(parts, kv_heads, shares, tile, 2, dtype=torch.float32, device=q.device)
        out = torch.empty_like(q)
        shape = {
            "GROUP": group, "WIDTH": rows, "TILE": tile, "HEADS": heads, "KV_HEADS": kv_heads,
            "DIM": dim, "PADDED": max(16, triton.next_power_of_2(dim)), "SHARES": shares,
        }  # fmt: skip
        roomy = k.dtype.itemsize * dim <= 256 and shared_memory(q.device) >= _BLOCK_MEMORY
        _scan[(parts, kv_heads, shares)](
            q, k, v, table, batch.slabs, batch.starts, batch.ends, sums, stats, table.shape[1], dim**-0.5,
            window, sinks,
            PARTS=width // rows, PAGE=page, BLOCK=_BLOCKS[not roomy], num_warps=4, num_stages=3, **shape,
        )  # fmt: skip
        _merge[(sequences * width, heads)](sums, stats, out, **shape)
        return out


def _power_below(n: int) -> int:
    """Return the greatest power of two that is at most n, and 1 for n < 1."""
    return 1 << max(0, n.bit_length() - 1)
