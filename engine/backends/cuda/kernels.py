"""Triton kernels of recorded passes: look tokens up, attend to pages and store what is new, draw tokens.

`_scan` is flash decoding. A program takes a share of one sequence's blocks of keys, for all query rows and heads that
read the same K/V head, and leaves a partial softmax. `_merge` joins the shares. The number of shares depends on that of
sequences, never on contexts; block b belongs to share b modulo that number. Therefore one recording serves all context
lengths, and a row's result does not depend on the rows after it. Programs that read the block of a new position store
its K and V first.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.backends.cuda.attention import MOST_WIDTH, PagedBatch, StaticInputs
from engine.backends.cuda.launch import Launch, begin
from engine.backends.cuda.products import Prepared, prepare, shared_memory

_BLOCKS = (128, 64)  # keys at a time, with and without _BLOCK_MEMORY
_BLOCK_MEMORY = 200_000  # bytes of a multiprocessor's shared memory
_TILE = 32  # most rows × query heads per K/V head of a program: larger tiles use instructions that round differently
_PROGRAMS = 264  # about two per multiprocessor of a large GPU
_SHARES = 64  # most shares of a sequence
_VALUES = 1024  # values of a row that a program holds at once
_PARTS = 64  # programs among which the logits of a row are divided
_FACTS = 5  # what each of them finds
_JOINED = 16  # rows whose parts are joined at once


@triton.jit(do_not_specialize=["rows"])
def _embed(
    tokens, fresh, embedding, norm, out, scaled, squares, rows, hidden, alive,
    PREPARES: tl.constexpr, VALUES: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Copy the embedding [vocab, hidden] of each token to out [rows, hidden]. A fresh draft becomes alive."""
    row, part = tl.program_id(0), tl.program_id(1)
    column = part * VALUES + tl.arange(0, VALUES)
    begin(None, EARLY)
    if alive is not None and tl.load(fresh) != 0:
        tl.store(alive, 1)
    token = tl.maximum(tl.load(tokens + row), 0)  # -1: not a number; verification notices
    value = tl.load(embedding + token * hidden + column, mask=column < hidden, other=0.0).to(out.dtype.element_ty)
    place = row * hidden + column
    tl.store(out + place, value, mask=column < hidden)
    if PREPARES:
        weight = tl.load(norm + column, mask=column < hidden, other=0.0)
        prepare(value, weight, scaled, squares, place, row, rows, part, column < hidden, 0)


@triton.jit
def _rotated(heads, norms, turns, dim, wanted, epsilon, NORMED: tl.constexpr, DIM: tl.constexpr):
    """Load heads, normalise them, and rotate pairs of neighbouring dimensions: -> float32 [n, PADDED].

    heads, norms, turns: addresses [n] of each head, its weights and its rotation. The result does not depend on n:
    squares are added in float64, where their order hardly matters, and additions are fused as written.
    """
    twin = dim ^ 1
    own = tl.load(heads[:, None] + dim[None, :], mask=wanted, other=0.0)
    other = tl.load(heads[:, None] + twin[None, :], mask=wanted, other=0.0)
    if NORMED:
        wide = own.to(tl.float32)
        factor = tl.rsqrt(tl.sum((wide * wide).to(tl.float64), 1).to(tl.float32) / DIM + epsilon)[:, None]
        weight = tl.load(norms[:, None] + dim[None, :], mask=wanted, other=0.0).to(tl.float32)
        other_weight = tl.load(norms[:, None] + twin[None, :], mask=wanted, other=0.0).to(tl.float32)
        other = (other.to(tl.float32) * factor * other_weight).to(own.dtype)
        own = (wide * factor * weight).to(own.dtype)
    turn = turns[:, None] + (dim // 2 * 2)[None, :]
    cos = tl.load(turn, mask=wanted, other=0.0)
    sin = tl.load(turn + 1, mask=wanted, other=0.0)
    sin = tl.where((dim % 2 == 0)[None, :], -sin, sin)
    return tl.fma(own.to(tl.float32), cos, other.to(tl.float32) * sin)


@triton.jit
def _store(
    rows, norm, factors, k, v, table, begun, end, kv_head, share, epsilon, dim,
    NORMED: tl.constexpr, NEW: tl.constexpr, HEADS: tl.constexpr, KV_HEADS: tl.constexpr, DIM: tl.constexpr,
    SHARES: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Store k and v of the new positions before `end` in the blocks of this share."""
    age = tl.arange(0, NEW)
    new = begun + age
    mine = (new < end) & (new // BLOCK % SHARES == share)
    wanted = mine[:, None] & (dim < DIM)[None, :]
    page = tl.load(table + new // PAGE, mask=mine, other=0).to(tl.int64)
    place = (((page * PAGE + new % PAGE) * KV_HEADS + kv_head) * DIM)[:, None] + dim[None, :]
    heads = rows + (age * (HEADS + 2 * KV_HEADS) + HEADS + kv_head) * DIM
    norms = norm + (HEADS + kv_head) * DIM + age * 0
    key = _rotated(heads, norms, factors + new * DIM, dim, wanted, epsilon, NORMED, DIM)
    tl.store(k + place, key.to(k.dtype.element_ty), mask=wanted)
    value = tl.load(heads[:, None] + KV_HEADS * DIM + dim[None, :], mask=wanted, other=0.0)
    tl.store(v + place, value.to(v.dtype.element_ty), mask=wanted)


@triton.jit
def _scan(
    qkv, norm, factors, k, v, table, slabs, starts, ends, firsts, sums, stats, blocks, scale, epsilon, window, sinks,
    alive,
    NORMED: tl.constexpr, GROUP: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, NEW: tl.constexpr,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, DIM: tl.constexpr, PADDED: tl.constexpr, SHARES: tl.constexpr,
    PARTS: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Attend with WIDTH of the PARTS · WIDTH rows of a sequence to one share of its keys.

    qkv [rows, HEADS + 2 · KV_HEADS, DIM] as the product leaves it; norm [HEADS + KV_HEADS, DIM]. Writes sums
    [sequences × PARTS, kv_heads, SHARES, TILE, DIM] and stats [… , TILE, 2]: largest score, sum of exponentials.
    """
    part, kv_head, share = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if not begin(alive, EARLY):
        return
    sequence = part // PARTS
    begun, end, slab = tl.load(starts + sequence), tl.load(ends + sequence), tl.load(slabs + sequence)
    rows = qkv + tl.load(firsts + sequence) * (HEADS + 2 * KV_HEADS) * DIM
    start = begun + part % PARTS * WIDTH
    end = tl.minimum(end, start + WIDTH)
    item, dim = tl.arange(0, TILE), tl.arange(0, PADDED)

    _store(
        rows, norm, factors, k, v, table + slab * blocks, begun, end, kv_head, share, epsilon, dim,
        NORMED, NEW, HEADS, KV_HEADS, DIM, SHARES, PAGE, BLOCK,
    )  # fmt: skip
    tl.debug_barrier()  # before any thread reads them

    row = item // GROUP
    position = start + row
    real = (item < WIDTH * GROUP) & (position < end)
    wanted = real[:, None] & (dim < DIM)[None, :]
    head = kv_head * GROUP + item % GROUP
    heads = rows + ((part % PARTS * WIDTH + row) * (HEADS + 2 * KV_HEADS) + head) * DIM
    queries = _rotated(heads, norm + head * DIM, factors + position * DIM, dim, wanted, epsilon, NORMED, DIM)
    queries = queries.to(k.dtype.element_ty)

    oldest = tl.where(window > 0, tl.maximum(start + 1 - window, 0), 0) // BLOCK
    first = (oldest + (share + SHARES - oldest % SHARES) % SHARES) * BLOCK
    step = SHARES * BLOCK
    before = tl.maximum(tl.minimum(tl.cdiv(sinks, BLOCK), oldest) - share + SHARES - 1, 0) // SHARES  # blocks of sinks
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
    sums, stats, places, out, alive,
    GROUP: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, HEADS: tl.constexpr, KV_HEADS: tl.constexpr,
    DIM: tl.constexpr, PADDED: tl.constexpr, SHARES: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Join the shares. One program per row and query head; padding rows, whose place is -1, get zeros."""
    row, head = tl.program_id(0), tl.program_id(1)
    if not begin(alive, EARLY):
        return
    found = tl.load(places + row)
    there = tl.maximum(found, 0)
    part, kv_head = there // WIDTH, head // GROUP
    item = (there % WIDTH) * GROUP + head % GROUP
    share, dim = tl.arange(0, SHARES), tl.arange(0, PADDED)
    place = ((part * KV_HEADS + kv_head) * SHARES + share) * TILE + item
    largest, total = tl.load(stats + place * 2), tl.where(found < 0, 0.0, tl.load(stats + place * 2 + 1))
    above = tl.max(largest, 0)
    fade = tl.exp(largest - tl.where(above == float("-inf"), 0.0, above))
    read = (dim < DIM)[None, :] & (total > 0.0)[:, None]  # empty shares wrote no sums
    said = tl.load(sums + place[:, None] * DIM + dim[None, :], mask=read, other=0.0)
    whole = tl.sum(total * fade, 0)
    value = tl.sum(said * fade[:, None], 0) / tl.where(whole == 0.0, 1.0, whole)
    tl.store(out + (row * HEADS + head) * DIM + dim, value.to(out.dtype.element_ty), mask=dim < DIM)


@triton.jit
def _gumbel(key, i):
    """Return `sample.gumbel`'s noise of token ids i, float32."""
    bits = key + i.to(tl.int64) * -7046029254386353131
    bits = (bits ^ ((bits >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
    bits = (bits ^ ((bits >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    bits = bits ^ ((bits >> 31) & 0x1FFFFFFFF)
    u = tl.minimum((((bits >> 33) & 0x7FFFFFFF).to(tl.float32) + 0.5) * 4.656612873077393e-10, 1 - 2.0**-24)
    # -log(1 - u); for small u, where 1 - u would be rounded, by the first terms of its series
    series = u * (1.0 + u * (1.0 / 2 + u * (1.0 / 3 + u * (1.0 / 4))))
    return -tl.log(tl.where(u < 2.0**-6, series, -tl.log(1.0 - u)))


@triton.jit
def _draw(
    logits, keys, temperatures, noises, facts, vocab, alive,
    PARTS: tl.constexpr, FACTS: tl.constexpr, VALUES: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Find a part's best token of a row, and the parts of its softmax: facts [rows, PARTS, FACTS], float32.

    The facts are the best noisy score, its token, the largest score, the sum of exponentials, and a number above 0 if
    any score is not a number. Temperature 0 is greedy.
    """
    row, part = tl.program_id(0), tl.program_id(1)
    if not begin(alive, EARLY):
        return
    key, noise = tl.load(keys + row), tl.load(noises + row).to(tl.float32)
    temperature = tl.load(temperatures + row).to(tl.float32)
    first = part * tl.cdiv(vocab, PARTS)
    last = tl.minimum(first + tl.cdiv(vocab, PARTS), vocab)
    best, token, top, total, bad = float("-inf"), first, float("-inf"), 0.0, 0.0
    for base in range(first, last, VALUES):
        i = base + tl.arange(0, VALUES)
        place = logits + row.to(tl.int64) * vocab + i
        scores = tl.load(place, mask=i < last, other=float("-inf")).to(tl.float32)
        noisy = scores
        if temperature > 0.0:
            scores = scores / temperature
            noisy = scores + noise * _gumbel(key, i)
        bad += tl.sum((scores != scores).to(tl.float32), 0)
        most = tl.max(noisy, 0)
        lowest = tl.min(tl.where(noisy == most, i, last), 0)
        token = tl.where(most > best, lowest, token)
        best = tl.maximum(most, best)
        above = tl.maximum(tl.max(scores, 0), top)
        anchor = tl.where(above == float("-inf"), 0.0, above)
        total = total * tl.exp(top - anchor) + tl.sum(tl.exp(scores - anchor), 0)
        top = above
    place = facts + (row * PARTS + part) * FACTS  # tokens below 2^24 are exact
    tl.store(place, best)
    tl.store(place + 1, token.to(tl.float32))
    tl.store(place + 2, top)
    tl.store(place + 3, total)
    tl.store(place + 4, bad)


@triton.jit(do_not_specialize=["rows"])
def _join(
    facts, least, results, rows, alive,
    PARTS: tl.constexpr, FACTS: tl.constexpr, ROWS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Write the token of each row, or -1, and its confidence to results [2, rows], float64; and whether any goes on."""
    if not begin(alive, EARLY):
        return
    going = 0
    for base in range(0, rows, ROWS):
        row = base + tl.arange(0, ROWS)
        there = row < rows
        place = facts + (row[:, None] * PARTS + tl.arange(0, PARTS)[None, :]) * FACTS
        best = tl.load(place, mask=there[:, None], other=0.0)
        token = tl.load(place + 1, mask=there[:, None], other=0.0)
        top = tl.load(place + 2, mask=there[:, None], other=0.0)
        total = tl.load(place + 3, mask=there[:, None], other=1.0)
        bad = tl.max(tl.load(place + 4, mask=there[:, None], other=0.0), 1) > 0.0
        most, above = tl.max(best, 1), tl.max(top, 1)
        token = tl.min(tl.where(best == most[:, None], token, float("inf")), 1)
        token = tl.where(bad | (most == float("-inf")), -1.0, token)
        confidence = 1.0 / tl.sum(total * tl.exp(top - above[:, None]), 1)
        tl.store(results + row, token.to(tl.float64), mask=there)
        tl.store(results + rows + row, confidence.to(tl.float64), mask=there)
        if alive is not None:
            enough = confidence >= tl.load(least + row, mask=there, other=2.0)
            going += tl.sum((enough & there).to(tl.int32), 0)
    if alive is not None:
        tl.store(alive, (going > 0).to(tl.int32))


class TritonKernels:
    """Implement `attention.Kernels` for float32, float16 and bfloat16."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch

    def of_draft(self, stops: bool) -> AbstractContextManager[None]:
        return self._launch.of_draft(stops)

    def embed(
        self, inputs: StaticInputs, embedding: Tensor, dtype: torch.dtype, norm: Tensor
    ) -> tuple[Tensor, Prepared | None]:
        rows, hidden = len(inputs.tokens), embedding.shape[1]
        out, programs = torch.empty(rows, hidden, dtype=dtype, device=embedding.device), triton.cdiv(hidden, _VALUES)
        prepared = Prepared.of(out, programs) if dtype == torch.bfloat16 else None
        _embed[(rows, programs)](
            inputs.tokens, inputs.fresh, embedding, norm, out, *(prepared or (None, None)), rows, hidden,
            PREPARES=prepared is not None, VALUES=_VALUES, **self._launch.options,
        )  # fmt: skip
        return out, prepared

    def attend(
        self, qkv: Tensor, norm: Tensor | None, epsilon: float, layer: int, batch: PagedBatch, window: int, sinks: int
    ) -> Tensor:
        (sequences, width, total), inputs, cache = batch.layout, batch.inputs, batch.attention.cache
        k, v, table = cache.k[layer], cache.v[layer], cache.device_tables
        _, page, kv_heads, dim = k.shape
        heads = qkv.shape[1] - 2 * kv_heads
        group = heads // kv_heads
        rows = min(width, max(1, _power_below(_TILE // group)))
        parts = sequences * width // rows
        tile = max(16, triton.next_power_of_2(rows * group))
        shares = min(_SHARES, _power_below(_PROGRAMS // (sequences * kv_heads)))
        sums = torch.empty(parts, kv_heads, shares, tile, dim, dtype=torch.float32, device=k.device)
        stats = torch.empty(parts, kv_heads, shares, tile, 2, dtype=torch.float32, device=k.device)
        out = torch.empty(total, heads, dim, dtype=k.dtype, device=k.device)
        shape = {
            "GROUP": group, "WIDTH": rows, "TILE": tile, "HEADS": heads, "KV_HEADS": kv_heads,
            "DIM": dim, "PADDED": max(16, triton.next_power_of_2(dim)), "SHARES": shares, **self._launch.options,
        }  # fmt: skip
        roomy = k.dtype.itemsize * dim <= 256 and shared_memory(k.device) >= _BLOCK_MEMORY
        _scan[(parts, kv_heads, shares)](
            qkv, qkv if norm is None else norm, batch.attention.factors, k, v, table,
            inputs.slabs, inputs.starts, inputs.ends, inputs.firsts, sums, stats, table.shape[1], dim**-0.5,
            epsilon, window, sinks,
            NORMED=norm is not None, NEW=MOST_WIDTH, PARTS=width // rows, PAGE=page, BLOCK=_BLOCKS[not roomy],
            num_warps=4, num_stages=3, **shape,
        )  # fmt: skip
        _merge[(total, heads)](sums, stats, inputs.places, out, **shape)
        return out

    def draw(self, logits: Tensor, inputs: StaticInputs) -> None:
        rows, vocab = logits.shape
        facts = torch.empty(rows, _PARTS, _FACTS, dtype=torch.float32, device=logits.device)
        shape = {"PARTS": _PARTS, "FACTS": _FACTS, **self._launch.options}
        _draw[(rows, _PARTS)](
            logits, inputs.keys, inputs.temperatures, inputs.noises, facts, vocab, VALUES=_VALUES, **shape
        )
        _join[(1,)](facts, inputs.least, inputs.results, rows, ROWS=_JOINED, **shape)


def _power_below(n: int) -> int:
    """Return the greatest power of two that is at most n, and 1 for n < 1."""
    return 1 << max(0, n.bit_length() - 1)
