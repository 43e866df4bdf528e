"""Matrices as quantised checkpoints store them, in several tensors each, and these as `PackedRows`.

A published weight is `scale · (code − zero)`. Codes, zeros and scales are kept as they are, so nothing is lost: a zero
that all weights share becomes the format's offset, others the minimum `−scale · zero`. In float32 both are exact where
scales are float16 or bfloat16, as published ones are; with zeros, float32 scales round like sums of `2^bits · scale`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd

import torch
from torch import Tensor

from engine.errors import ModelError
from engine.quantised.packed import PackedRows, coded, fp8

_SCALES = (torch.float16, torch.bfloat16, torch.float32)
_INDICES = (torch.int32, torch.int64)
_WORDS = (torch.int32,)
# AWQ writes column _AWQ_ORDER[i] of eight neighbours to bits 4·i of a word.
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


@dataclass(frozen=True, slots=True)
class Part:
    """A stored tensor."""

    shape: tuple[int, ...]
    dtypes: tuple[torch.dtype, ...] = ()  # (): any, it is not read
    required: bool = True


@dataclass(frozen=True, slots=True)
class Scheme:
    """How matrices are written."""

    layout: str  # gptq, awq, packed (int32 words of compressed-tensors), integers (int8) or fp8
    bits: int
    block: tuple[int, int]  # outputs and inputs that share a scale; 0: all of them
    symmetric: bool = True
    scale: str = "weight_scale"
    less_one: bool = False  # whether zeros are stored minus one

    def parts(self, shape: tuple[int, int]) -> dict[str, Part]:
        """What is stored of a matrix [out, in], by the name behind that of its module."""
        (out, inputs), (rows, columns) = shape, self.block
        grid = (-(-out // rows) if rows else 1, -(-inputs // columns) if columns else 1)
        if self.layout in ("gptq", "awq"):
            packed = (self._words(inputs), out) if self.layout == "gptq" else (inputs, self._words(out))
            parts = {
                "qweight": Part(packed, _WORDS),
                "qzeros": Part((grid[1], self._words(out)), _WORDS),
                "scales": Part((grid[1], out), _SCALES),
            }
            if self.layout == "gptq":  # AutoGPTQ also writes biases that the architecture does not have
                parts |= {"g_idx": Part((inputs,), _INDICES, False), "bias": Part((out,), (), False)}
            return parts
        activations = {f"input_{what}": Part((1,), (), False) for what in ("scale", "zero_point")}
        if self.layout == "fp8":
            scales = (*_SCALES, torch.float8_e8m0fnu)
            named = {self.scale: Part(grid, scales)}
            if not self.scale:  # per tensor; which of the two names it has differs
                named = {name: Part(grid, scales, False) for name in ("weight_scale", "weight_scale_inv")}
            zero = {"weight_zero_point": Part(grid, (), False)}
            return {"weight": Part(shape, (torch.float8_e4m3fn,))} | named | zero | activations
        zero_point = Part(grid, (torch.int8,), not self.symmetric)
        parts = {"weight": Part(shape, (torch.int8,))}
        if self.layout == "packed":
            parts = {
                "weight_packed": Part((out, self._words(inputs)), _WORDS),
                "weight_shape": Part((2,), _INDICES),
                "weight_g_idx": Part((inputs,), _INDICES, False),
            }
            if self.packs_zeros:
                zero_point = Part((self._words(out), grid[1]), _WORDS)
        return parts | {self.scale: Part(grid, _SCALES), "weight_zero_point": zero_point} | activations

    @property
    def packs_zeros(self) -> bool:
        return self.layout == "packed" and not self.symmetric and self.block[0] == 1

    def _words(self, codes: int) -> int:
        """int32 words that hold so many codes."""
        return -(-codes * self.bits // 32)


def fits(shape: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """Whether shapes agree but for dimensions of 1: a scale is [], [1] or [1, 1], scales of outputs [n] or [n, 1]."""
    return [n for n in shape if n != 1] == [n for n in expected if n != 1]


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored tensors of one weight."""

    method: str
    stem: str
    parts: dict[str, Part]
    read: Callable[[str], Tensor]
    has: Callable[[str], bool]

    def __contains__(self, key: str) -> bool:
        return key in self.parts and self.has(self.stem + key)

    def __getitem__(self, key: str) -> Tensor:
        part, name = self.parts[key], self.stem + key
        if not self.has(name):
            raise ModelError(f"the checkpoint lacks {name}, which its {self.method} weights need")
        tensor = self.read(name)
        if not fits(tuple(tensor.shape), part.shape) or (part.dtypes and tensor.dtype not in part.dtypes):
            kinds = " or ".join(str(dtype) for dtype in part.dtypes)
            raise ModelError(f"{name} is {tensor.dtype} {list(tensor.shape)}, not {kinds} {list(part.shape)}")
        return tensor.reshape(part.shape)

    def scales(self, key: str) -> Tensor:
        """In float32."""
        numbers = self[key].float()
        if not torch.isfinite(numbers).all():
            raise ModelError(f"{self.stem}{key} holds numbers that are not finite; is the download complete?")
        return numbers


def matrix(stored: Stored, scheme: Scheme, shape: tuple[int, int]) -> PackedRows:
    """The matrix [out, in] that tensors hold. Raises ModelError."""
    return _float8(stored, scheme, shape) if scheme.layout == "fp8" else _integers(stored, scheme, shape)


def _float8(stored: Stored, scheme: Scheme, shape: tuple[int, int]) -> PackedRows:
    key = scheme.scale or next((key for key in ("weight_scale", "weight_scale_inv") if key in stored), "weight_scale")
    numbers = stored["weight"]
    _no_zeros(stored)
    return fp8(numbers, _spread(stored, stored.scales(key), scheme.block, shape, 32))


def _integers(stored: Stored, scheme: Scheme, shape: tuple[int, int]) -> PackedRows:
    """Codes, scales [out, groups] and zeros likewise of whatever holds integers."""
    (out, inputs), bits, half = shape, scheme.bits, 1 << scheme.bits - 1
    zero: Tensor | None = None
    order: Tensor | None = None
    if scheme.layout in ("gptq", "awq"):
        words, zeros, scale = stored["qweight"], stored["qzeros"], stored.scales("scales").T
        if scheme.layout == "gptq":
            codes = _unpacked(words.T, bits)[:, :inputs]
            if scheme.less_one:  # for whole words, as GPTQModel subtracts it: a zero of 0 borrows from its neighbour
                zeros = zeros + (0x11111111 if bits == 4 else 0x01010101)
            zero = _unpacked(zeros, bits)[:, :out].T
        else:
            codes, zero = (_awq(packed).T[:out] for packed in (words, zeros))
        order = _order(stored, "g_idx", scale.shape[1], scheme.block[1])
    else:
        scale = stored.scales(scheme.scale)
        if scheme.layout == "packed":
            codes = _unpacked(stored["weight_packed"], bits)[:, :inputs]
            if (said := stored["weight_shape"].tolist()) != [out, inputs]:
                raise ModelError(f"{stored.stem}weight_shape says {said}, not {[out, inputs]}")
            order = _order(stored, "weight_g_idx", scale.shape[1], scheme.block[1])
        else:
            codes = _unsigned(stored, "weight", bits)
        if scheme.packs_zeros:
            zero = _unpacked(stored["weight_zero_point"].T, bits)[:, :out].T
        elif not scheme.symmetric:
            zero = _unsigned(stored, "weight_zero_point", bits)
        else:
            _no_zeros(stored)
    if order is not None:
        codes = codes[:, order]
    scale = _spread(stored, scale, scheme.block, shape, 16)
    if zero is None or (scheme.symmetric and bool((zero == half).all())):
        rows = coded(codes.contiguous(), scale, None, bits=bits, offset=half)
    else:
        minimum = -scale * _spread(stored, zero.float(), scheme.block, shape, 16)
        rows = coded(codes.contiguous(), scale, minimum, bits=bits)
    return replace(rows, order=order)


def _unpacked(words: Tensor, bits: int) -> Tensor:
    """Codes uint8 [rows, n] of words int32 [rows, n·bits/32], the lowest bits first."""
    codes = words.contiguous().view(torch.uint8)
    return codes if bits == 8 else torch.stack((codes & 15, codes >> 4), 2).flatten(1)


def _awq(words: Tensor) -> Tensor:
    """Codes of words that AWQ wrote."""
    places = [_AWQ_ORDER.index(column) for column in range(8)]
    return _unpacked(words, 4).view(len(words), -1, 8)[:, :, places].flatten(1)


def _unsigned(stored: Stored, key: str, bits: int) -> Tensor:
    """Codes of int8 numbers."""
    codes = stored[key].short() + (1 << bits - 1)
    if bits < 8 and codes.numel() and not 0 <= int(codes.min()) <= int(codes.max()) < 1 << bits:
        raise ModelError(f"{stored.stem}{key} holds numbers of more than {bits} bits")
    return codes.byte()


def _no_zeros(stored: Stored) -> None:
    """Refuse zero points other than 0 where the config says that there are none."""
    if "weight_zero_point" in stored and stored["weight_zero_point"].float().any():
        raise ModelError(f"{stored.stem}weight_zero_point is not zero, but config.json says that weights are symmetric")


def _order(stored: Stored, key: str, groups: int, size: int) -> Tensor | None:
    """Inputs int64 [in] by the group of so many that `key` gives them, None where groups are neighbours anyway."""
    if key not in stored:
        return None
    group = stored[key].long()
    # Numbers that nobody set are all 0 or all -1; a size of 0 is one group of all.
    if not size or not group.any() or (group == -1).all() or torch.equal(group, torch.arange(len(group)) // size):
        return None
    if int(group.min()) < 0 or not torch.equal(group.bincount(minlength=groups), torch.full((groups,), size)):
        raise ModelError(f"{stored.stem}{key} does not give each of {groups} groups {size} inputs; only that is read")
    return group.argsort(stable=True)


def _spread(stored: Stored, numbers: Tensor, block: tuple[int, int], shape: tuple[int, int], step: int) -> Tensor:
    """Numbers of blocks as numbers [out, groups]: where blocks leave a rest, groups are smaller, of equal size."""
    (out, inputs), (rows, columns) = shape, block
    numbers = numbers.repeat_interleave(rows, 0)[:out] if rows else numbers.expand(out, -1)
    columns = columns or inputs
    group = gcd(columns, inputs)
    if group % step:
        raise ModelError(
            f"{stored.stem}weight has groups of {columns} among {inputs} inputs; "
            f"{stored.method} weights are read in groups that {step} divides, which divide the inputs"
        )
    return numbers.repeat_interleave(columns // group, 1)[:, : inputs // group]
