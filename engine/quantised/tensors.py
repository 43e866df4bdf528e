"""Convert the tensors of quantised matrices to `PackedRows`.

A published weight is `scale · (code − zero)`. The conversion keeps codes and scales. A zero that all weights share
becomes the format's offset; other zeros become the minimum `−scale · zero`. In float32 both are exact for scales in
float16 or bfloat16, which is what checkpoints publish. With float32 scales and zeros, rounding is that of sums of
`2^bits · scale`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd
from typing import Literal

import torch
from torch import Tensor

from engine.errors import ModelError
from engine.quantised.packed import PackedRows, pack_codes, pack_fp8

_SCALES = (torch.float16, torch.bfloat16, torch.float32)
_INDICES = (torch.int32, torch.int64)
_WORDS = (torch.int32,)
# AWQ writes column i of eight neighbours to bits 4·_AWQ_PLACES[i] of a word.
_AWQ_PLACES = (0, 4, 1, 5, 2, 6, 3, 7)
# packed and integers: int32 and int8 of compressed-tensors.
Layout = Literal["gptq", "awq", "packed", "integers", "fp8"]


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """The expected shape and types of a stored tensor."""

    shape: tuple[int, ...]
    dtypes: tuple[torch.dtype, ...] = ()  # (): any, as the tensor is not read
    required: bool = True


@dataclass(frozen=True, slots=True)
class QuantScheme:
    """The layout of quantised matrices."""

    layout: Layout
    bits: int
    block: tuple[int, int]  # outputs and inputs that share a scale; 0: all
    symmetric: bool = True
    scale: str = "weight_scale"
    less_one: bool = False  # zeros are stored minus one

    def parts(self, shape: tuple[int, int]) -> dict[str, StoredTensor]:
        """Return the stored tensors of a matrix [out, in] by the last part of their names."""
        (out, inputs), (rows, columns) = shape, self.block
        grid = (-(-out // rows) if rows else 1, -(-inputs // columns) if columns else 1)
        if self.layout in ("gptq", "awq"):
            packed = (self._words(inputs), out) if self.layout == "gptq" else (inputs, self._words(out))
            parts = {
                "qweight": StoredTensor(packed, _WORDS),
                "qzeros": StoredTensor((grid[1], self._words(out)), _WORDS),
                "scales": StoredTensor((grid[1], out), _SCALES),
            }
            if self.layout == "gptq":  # AutoGPTQ writes biases even if the architecture has none
                parts |= {"g_idx": StoredTensor((inputs,), _INDICES, False), "bias": StoredTensor((out,), (), False)}
            return parts
        activations = {f"input_{what}": StoredTensor((1,), (), False) for what in ("scale", "zero_point")}
        if self.layout == "fp8":
            scales = (*_SCALES, torch.float8_e8m0fnu)
            named = {self.scale: StoredTensor(grid, scales)}
            if not self.scale:  # per tensor, under one of two names
                named = {name: StoredTensor(grid, scales, False) for name in ("weight_scale", "weight_scale_inv")}
            zero = {"weight_zero_point": StoredTensor(grid, (), False)}
            return {"weight": StoredTensor(shape, (torch.float8_e4m3fn,))} | named | zero | activations
        zero_point = StoredTensor(grid, (torch.int8,), not self.symmetric)
        parts = {"weight": StoredTensor(shape, (torch.int8,))}
        if self.layout == "packed":
            parts = {
                "weight_packed": StoredTensor((out, self._words(inputs)), _WORDS),
                "weight_shape": StoredTensor((2,), _INDICES),
                "weight_g_idx": StoredTensor((inputs,), _INDICES, False),
            }
            if self.packs_zeros:
                zero_point = StoredTensor((self._words(out), grid[1]), _WORDS)
        return parts | {self.scale: StoredTensor(grid, _SCALES), "weight_zero_point": zero_point} | activations

    @property
    def packs_zeros(self) -> bool:
        return self.layout == "packed" and not self.symmetric and self.block[0] == 1

    def _words(self, codes: int) -> int:
        return -(-codes * self.bits // 32)


def shapes_match(shape: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """Return whether shapes agree except for dimensions of 1: [], [1] and [1, 1] match, as do [n] and [n, 1]."""
    return [n for n in shape if n != 1] == [n for n in expected if n != 1]


@dataclass(frozen=True, slots=True)
class StoredWeight:
    """The stored tensors of one quantised weight."""

    method: str
    stem: str
    parts: dict[str, StoredTensor]
    read: Callable[[str], Tensor]
    has: Callable[[str], bool]

    def __contains__(self, key: str) -> bool:
        return key in self.parts and self.has(self.stem + key)

    def __getitem__(self, key: str) -> Tensor:
        """Read a tensor [*part.shape]. Raises ModelError."""
        part, name = self.parts[key], self.stem + key
        if not self.has(name):
            raise ModelError(f"the checkpoint lacks {name}, which its {self.method} weights require")
        tensor = self.read(name)
        if not shapes_match(tuple(tensor.shape), part.shape) or (part.dtypes and tensor.dtype not in part.dtypes):
            kinds = " or ".join(str(dtype) for dtype in part.dtypes)
            raise ModelError(f"{name} is {tensor.dtype} {list(tensor.shape)}, not {kinds} {list(part.shape)}")
        return tensor.reshape(part.shape)

    def scales(self, key: str) -> Tensor:
        """Read scales [*part.shape] in float32. Raises ModelError."""
        numbers = self[key].float()
        if not torch.isfinite(numbers).all():
            raise ModelError(f"{self.stem}{key} contains numbers that are not finite; is the download complete?")
        return numbers


def read_matrix(stored: StoredWeight, scheme: QuantScheme, shape: tuple[int, int]) -> PackedRows:
    """Read a matrix [out, in]. Raises ModelError."""
    return _float8(stored, scheme, shape) if scheme.layout == "fp8" else _integers(stored, scheme, shape)


def _float8(stored: StoredWeight, scheme: QuantScheme, shape: tuple[int, int]) -> PackedRows:
    key = scheme.scale or next((key for key in ("weight_scale", "weight_scale_inv") if key in stored), "weight_scale")
    numbers = stored["weight"]
    _no_zeros(stored)
    return pack_fp8(numbers, _per_group(stored, stored.scales(key), scheme.block, shape, 32))


def _integers(stored: StoredWeight, scheme: QuantScheme, shape: tuple[int, int]) -> PackedRows:
    """Read a matrix of integer codes with scales and zeros [out, groups]."""
    (out, inputs), bits, half = shape, scheme.bits, 1 << scheme.bits - 1
    zero: Tensor | None = None
    order: Tensor | None = None
    if scheme.layout in ("gptq", "awq"):
        words, zeros, scale = stored["qweight"], stored["qzeros"], stored.scales("scales").T
        if scheme.layout == "gptq":
            codes = _unpacked(words.T, bits)[:, :inputs]
            # One is added to whole words, as GPTQModel subtracts it from them: the zero 0 borrows from its neighbour.
            if scheme.less_one:
                zeros = zeros + (0x11111111 if bits == 4 else 0x01010101)
            zero = _unpacked(zeros, bits)[:, :out].T
        else:
            codes, zero = (_awq(packed).T[:out] for packed in (words, zeros))
        order = _order(stored, "g_idx", scale.shape[1], scheme.block[1])
    else:
        scale = stored.scales(scheme.scale)
        if scheme.layout == "packed":
            codes = _unpacked(stored["weight_packed"], bits)[:, :inputs]
            if (shape_stored := stored["weight_shape"].tolist()) != [out, inputs]:
                raise ModelError(f"{stored.stem}weight_shape is {shape_stored}, not {[out, inputs]}")
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
    scale = _per_group(stored, scale, scheme.block, shape, 16)
    if zero is None or (scheme.symmetric and bool((zero == half).all())):
        rows = pack_codes(codes.contiguous(), scale, None, bits=bits, offset=half)
    else:
        minimum = -scale * _per_group(stored, zero.float(), scheme.block, shape, 16)
        rows = pack_codes(codes.contiguous(), scale, minimum, bits=bits)
    return replace(rows, order=order)


def _unpacked(words: Tensor, bits: int) -> Tensor:
    """Unpack words int32 [rows, n·bits/32] to codes uint8 [rows, n], lowest bits first."""
    codes = words.contiguous().view(torch.uint8)
    return codes if bits == 8 else torch.stack((codes & 15, codes >> 4), 2).flatten(1)


def _awq(words: Tensor) -> Tensor:
    """Unpack AWQ's words int32 [rows, n/8] to codes uint8 [rows, n]."""
    return _unpacked(words, 4).view(len(words), -1, 8)[:, :, list(_AWQ_PLACES)].flatten(1)


def _unsigned(stored: StoredWeight, key: str, bits: int) -> Tensor:
    """Convert int8 numbers [rows, n] to unsigned codes, uint8 [rows, n]. Raises ModelError."""
    codes = stored[key].short() + (1 << bits - 1)
    if bits < 8 and codes.numel() and not 0 <= int(codes.min()) <= int(codes.max()) < 1 << bits:
        raise ModelError(f"{stored.stem}{key} contains numbers of more than {bits} bits")
    return codes.byte()


def _no_zeros(stored: StoredWeight) -> None:
    """Raise ModelError if a symmetric checkpoint has zero points other than 0."""
    if "weight_zero_point" in stored and stored["weight_zero_point"].float().any():
        raise ModelError(f"{stored.stem}weight_zero_point is not zero, but config.json declares symmetric weights")


def _order(stored: StoredWeight, key: str, groups: int, size: int) -> Tensor | None:
    """Return the inputs int64 [in] sorted by group, or None if groups are adjacent inputs. Raises ModelError."""
    if key not in stored:
        return None
    group = stored[key].long()
    # Unset numbers are all 0 or all -1. A size of 0 means one group.
    if not size or not group.any() or (group == -1).all() or torch.equal(group, torch.arange(len(group)) // size):
        return None
    if int(group.min()) < 0 or not torch.equal(group.bincount(minlength=groups), torch.full((groups,), size)):
        raise ModelError(f"{stored.stem}{key} must assign {size} inputs to each of {groups} groups")
    return group.argsort(stable=True)


def _per_group(
    stored: StoredWeight, numbers: Tensor, block: tuple[int, int], shape: tuple[int, int], step: int
) -> Tensor:
    """Expand numbers per block to [out, groups]. Groups are smaller than blocks that do not divide the inputs."""
    (out, inputs), (rows, columns) = shape, block
    numbers = numbers.repeat_interleave(rows, 0)[:out] if rows else numbers.expand(out, -1)
    columns = columns or inputs
    group = gcd(columns, inputs)
    if group % step:
        raise ModelError(
            f"{stored.stem}weight has {inputs} inputs in groups of {columns}, which is not supported; "
            f"{stored.method} groups must be a multiple of {step} and divide the inputs"
        )
    return numbers.repeat_interleave(columns // group, 1)[:, : inputs // group]
