"""Multiply by 4-bit weights of a copy for drafts (`engine.model.low_bit`): few rows, at the speed of memory.

A program computes BLOCK outputs. Its warps share the inputs: a step takes a chunk of four groups for each warp, and the
sums of all warps are added at the end, in a fixed order. Thus narrow matrices occupy the whole device, and a row's
result depends neither on other rows nor on timing.

A word of 16 bits holds a code of each of a chunk's four groups. Tensor cores expect the numbers of two neighbouring
inputs in a register, which two neighbouring words fill. A shift and a logical operation therefore unpack two numbers,
BASE + code, by setting the last bits of a float: BASE is 128 in bfloat16 and 1024 in float16. Each group's sum starts
with the product of its inputs and −(BASE + 8), so that nothing is subtracted from single weights. Scales multiply sums.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from engine.backends.cuda.launch import Launch, begin, prefetch
from engine.backends.cuda.products import Prepared, normalise, prepare, prepared_norm, shared_memory
from engine.model.low_bit import GROUP

UNPACK = tl.constexpr("""{
    .reg .b32 a, b, c;
    shr.u32 a, $4, 4;
    shr.u32 b, $4, 8;
    shr.u32 c, $4, 12;
    lop3.b32 $0, $4, 0x000F000F, $5, 0xEA;
    lop3.b32 $1, a, 0x000F000F, $5, 0xEA;
    lop3.b32 $2, b, 0x000F000F, $5, 0xEA;
    lop3.b32 $3, c, 0x000F000F, $5, 0xEA;
}""")  # $0 to $3: (word >> 0, 4, 8, 12) & 15 | $5, of the two words in $4
WIDE = 16384  # outputs of which blocks of 128 still occupy a large GPU
_AHEAD = 512  # lines of 128 bytes of codes that a program asks for before it waits: about what its steps in flight hold
_BASES = {torch.float16: (0x6400, -1032.0), torch.bfloat16: (0x4300, -136.0)}  # bits of BASE, and −(BASE + 8)


@triton.jit
def unpack(words, ASM: tl.constexpr, ONES: tl.constexpr):
    """Unpack words [SPLITS, BLOCK, GROUP] to the bits of BASE + code of each group: four int16 tensors.

    ONES: the bits of BASE. ASM: use machine instructions, which Triton's interpreter lacks.
    """
    if ASM:
        bits = tl.full(words.shape, ONES, tl.int16)
        return tl.inline_asm_elementwise(
            UNPACK,
            "=&r,=&r,=&r,=&r,r,r", [words, bits], (tl.int16, tl.int16, tl.int16, tl.int16), True, 2,
        )  # fmt: skip
    return words & 15 | ONES, words >> 4 & 15 | ONES, words >> 8 & 15 | ONES, words >> 12 & 15 | ONES


@triton.jit(do_not_specialize=["rows", "parts"])
def _product(
    x, codes, scales, squares, bias, residual, norm, out, scaled, sums_out,
    outputs, inputs, rows, chunks, epsilon, parts, alive,
    ONES: tl.constexpr, OFFSET: tl.constexpr, ASM: tl.constexpr, GROUP: tl.constexpr,
    NORMED: tl.constexpr, PAIRED: tl.constexpr, GATED: tl.constexpr, BIASED: tl.constexpr, ADDED: tl.constexpr,
    PREPARES: tl.constexpr, WHOLE: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    PARTS: tl.constexpr, STAGES: tl.constexpr, AHEAD: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Compute BLOCK outputs of ROWS rows; NORMED and PREPARES as in `products`.

    x [rows, inputs]; codes int16 [outputs / BLOCK, chunks, BLOCK, GROUP]; scales int64, four bfloat16 each, [outputs /
    BLOCK, chunks, BLOCK]; out, residual [rows, outputs (half of them if GATED)]. WHOLE: each step reads SPLITS whole
    chunks. PAIRED: outputs of the first and of the second half alternate.
    """
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    # Tiles are loaded as lines of GROUP words or inputs, split by split: the compiler then arranges them in shared
    # memory so that no reads collide.
    k, line, entry = tl.arange(0, GROUP), tl.arange(0, SPLITS * BLOCK), tl.arange(0, SPLITS * ROWS)
    first = tl.program_id(1).to(tl.int64) * chunks * BLOCK
    words = codes + first * GROUP + line[:, None] * GROUP + k[None, :]
    split = tl.arange(0, SPLITS)
    scale = scales + first + split[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    input = entry[:, None] // ROWS * (4 * GROUP) + k[None, :]
    place = tl.program_id(0) * ROWS + entry[:, None] % ROWS
    source = x + place * inputs + input
    ahead = tl.minimum(tl.arange(0, AHEAD) * 64, chunks * (BLOCK * GROUP) - 1)
    prefetch(codes + first * GROUP + ahead, alive, EARLY)
    if not begin(alive, EARLY):
        return
    if NORMED:
        part = tl.arange(0, PARTS)[:, None]
        mask = (part < parts) & (row < rows)[None, :]
        found = tl.load(squares + part * rows + row[None, :], mask=mask, other=0.0)
    sums = tl.zeros([SPLITS, BLOCK, ROWS], tl.float32)
    minus = tl.full([SPLITS, BLOCK, GROUP], OFFSET, x.dtype.element_ty)
    for base in tl.range(0, chunks, SPLITS, num_stages=STAGES):
        if WHOLE:
            word, four = tl.load(words), tl.load(scale)
        else:
            word = tl.load(words, mask=(base + line // BLOCK < chunks)[:, None], other=0)
            four = tl.load(scale, mask=(base + split < chunks)[:, None], other=0)
        numbers = unpack(tl.reshape(word, [SPLITS, BLOCK, GROUP]), ASM, ONES)
        for group in tl.static_range(4):
            inside, at = place < rows, group * GROUP
            if not WHOLE:
                inside = inside & (base * (4 * GROUP) + input + at < inputs)
            y = tl.load(source + at, mask=inside, other=0.0)
            y = tl.permute(tl.reshape(y, [SPLITS, ROWS, GROUP]), [0, 2, 1])
            two = (four >> group // 2 * 32).to(tl.int32)
            factor = (two << 16 if group % 2 == 0 else two & -65536).to(tl.float32, bitcast=True)
            number = numbers[group].to(y.dtype, bitcast=True)
            sums += tl.dot(number, y, tl.dot(minus, y)) * factor[:, :, None]
        words += SPLITS * BLOCK * GROUP
        scale += SPLITS * BLOCK
        source += SPLITS * 4 * GROUP
    total = tl.sum(sums, 0)
    if NORMED:
        total *= tl.rsqrt(tl.sum(found.to(tl.float64), 0).to(tl.float32) / inputs + epsilon)[None, :]
    column, wanted, width = n, n < outputs, outputs
    if PAIRED:
        column = n % 2 * (outputs // 2) + n // 2
    if BIASED:
        total += tl.load(bias + column, mask=wanted, other=0.0).to(tl.float32)[:, None]
    if GATED:
        gate, up = tl.split(tl.permute(tl.reshape(total, [BLOCK // 2, 2, ROWS]), [0, 2, 1]))
        total, width = gate * tl.sigmoid(gate) * up, outputs // 2
        column = tl.program_id(1) * (BLOCK // 2) + tl.arange(0, BLOCK // 2)
        wanted = column < width
    place = row[None, :] * width + column[:, None]
    both = wanted[:, None] & (row < rows)[None, :]
    if ADDED:
        total += tl.load(residual + place, mask=both, other=0.0).to(tl.float32)
    value = total.to(out.dtype.element_ty)
    tl.store(out + place, value, mask=both)
    if PREPARES:
        weight = tl.load(norm + column, mask=wanted, other=0.0)[:, None]
        prepare(value, weight, scaled, sums_out, place, row, rows, tl.program_id(1), both, 0)


class Int4Linear:
    """A `FusedLinear` of 4-bit weights for float16 or bfloat16 inputs.

    Programs take 16 rows, or 8 where there are WIDE outputs. Each further tile of rows reads the weights again.
    """

    most = 64

    def __init__(
        self,
        codes: Tensor,
        scale: Tensor,
        bias: Tensor | None,
        launch: Launch,
        *,
        gated: bool = False,
        tiles: tuple[int, int] | None = None,
    ) -> None:
        """Repack weights (code − 8) · scale: codes uint8 [out, in], scale [out, in / GROUP]; keep bias [out].

        `tiles`: outputs and warps of a program, chosen by default.
        """
        self._outputs, self._inputs = codes.shape
        self._bias, self._launch, self._paired = bias, launch, gated
        self._block, self._splits = tiles or ((128, 4) if self._outputs >= WIDE else (32, 8))
        if gated:
            turns = torch.arange(self._outputs, device=codes.device).view(2, -1).t().reshape(-1)
            codes, scale = codes[turns], scale[turns]
        more, missing = -self._inputs % (4 * GROUP), -self._outputs % self._block
        chunks = (self._inputs + more) // (4 * GROUP)
        fours = F.pad(codes, (0, more, 0, missing)).view(-1, self._block, chunks, 4, GROUP)
        low, high = (fours[:, :, :, i] | fours[:, :, :, i + 1] << 4 for i in (0, 2))
        words = torch.stack([low, high], -1).view(torch.int16).squeeze(-1)
        scales = F.pad(scale.bfloat16(), (0, more // GROUP, 0, missing)).view(torch.int64)
        self._codes = words.transpose(1, 2).contiguous()
        self._scales = scales.view(-1, self._block, chunks).transpose(1, 2).contiguous()
        self.weights = [self._codes, self._scales]

    def __call__(self, x: Tensor) -> Tensor:
        return self._product(x)[0]

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        return self._product(x, residual=residual)[0]

    def add_before(self, x: Tensor, residual: Tensor, norm: Tensor) -> tuple[Tensor, Prepared | None]:
        return self._product(x, residual=residual, before=prepared_norm(x, norm))

    def normed(
        self, x: Tensor, prepared: Prepared | None, norm: Tensor, epsilon: float, out: Tensor | None = None
    ) -> Tensor:
        return self._product(prepared or normalise(x, norm, epsilon, self._launch), epsilon=epsilon, out=out)[0]

    def gated(self, x: Tensor, prepared: Prepared | None, norm: Tensor, epsilon: float) -> Tensor:
        return self._product(prepared or normalise(x, norm, epsilon, self._launch), epsilon=epsilon, gated=True)[0]

    def _product(
        self,
        x: Tensor | Prepared,
        *,
        epsilon: float = 0.0,
        residual: Tensor | None = None,
        before: Tensor | None = None,
        out: Tensor | None = None,
        gated: bool = False,
    ) -> tuple[Tensor, Prepared | None]:
        """Multiply x [rows, in] as `products.product` does: -> [rows, out], or [rows, out / 2] if `gated`."""
        values, squares = x if isinstance(x, Prepared) else (x, None)
        rows, block, splits = len(values), self._block, self._splits
        blocks, chunks = self._codes.shape[:2]
        tile = 8 if rows <= 8 or block > 32 else 16  # 16 rows of 128 outputs do not fit into registers
        step = splits * 4 * GROUP * (block // 2 + block // 16 + 2 * tile)  # bytes
        memory = shared_memory(values.device)
        # Up to three steps in flight, fewer where two programs would not share a multiprocessor.
        steps = min(max(2, memory // 2 // step), memory // step, 3)
        ones, offset = _BASES[values.dtype]
        out = values.new_empty(rows, self._outputs // (2 if gated else 1)) if out is None else out
        prepared = None if before is None else Prepared.of(out, blocks)
        parts = 1 if squares is None else len(squares)
        # Rows are the first axis: programs that read the same weights run at the same time.
        _product[(triton.cdiv(rows, tile), blocks)](
            values, self._codes, self._scales, squares, self._bias, residual, before, out, *(prepared or (None, None)),
            self._outputs, self._inputs, rows, chunks, epsilon, parts,
            ONES=ones, OFFSET=offset, ASM=not triton.knobs.runtime.interpret, GROUP=GROUP,
            NORMED=squares is not None, PAIRED=self._paired, GATED=gated,
            BIASED=self._bias is not None, ADDED=residual is not None, PREPARES=prepared is not None,
            WHOLE=chunks % splits == 0 and self._inputs == chunks * 4 * GROUP, PARTS=triton.next_power_of_2(parts),
            SPLITS=splits, BLOCK=block, ROWS=tile, STAGES=steps + 1, AHEAD=_AHEAD, num_warps=splits,
            **self._launch.options,
        )  # fmt: skip
        return out, prepared
