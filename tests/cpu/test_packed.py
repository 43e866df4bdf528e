"""Products of the native kernels with packed weights."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.backends.native.linear import NativeLinear, NativeLinears, packed_format, row_addresses
from engine.kernels.library import FLAGS, SOURCE, KernelLibrary, compiler, kernel_library
from engine.quantised.formats import GGUF_FORMATS
from engine.quantised.packed import PackedRows, dequantise, pack_codes
from tests.support.packed import random_rows, some_codes, some_fp8

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C++ compiler")

ROWS = 70  # more than read a group together


def shuffled(packed: PackedRows) -> PackedRows:
    """The same columns, assigned to shuffled inputs."""
    return replace(packed, order=torch.randperm(packed.inputs, generator=torch.Generator().manual_seed(5)))


MATRICES = {
    **{name: random_rows(format, 50, 512, seed=len(name)) for name, format in GGUF_FORMATS.items()},
    "chunks left over": random_rows(GGUF_FORMATS["Q5_1"], 33, 96, seed=1),
    "many inputs": random_rows(GGUF_FORMATS["Q4_0"], 70, 1312, seed=2),
    **{f"4 bits, groups of {group}": some_codes(40, 512, group, 4) for group in (16, 32, 64, 128, 256, 512)},
    **{f"8 bits, groups of {group}": some_codes(40, 512, group, 8) for group in (16, 32, 64, 128, 256, 512)},
    "5 bits, minima": some_codes(40, 256, 32, 5, minimum=True),
    "6 bits, minima": some_codes(40, 256, 64, 6, minimum=True),
    "awq": some_codes(40, 384, 128, 4, minimum=True),
    "wide scales": some_codes(20, 256, 32, 4, half=False, minimum=True),
    "a wide scale a row": some_codes(40, 1056, 1056, 8, half=False, minimum=True),
    "codes as 3 bits": replace(some_codes(20, 128, 32, 3), format=replace(some_codes(20, 128, 32, 3).format, bits=4)),
    "shuffled inputs": shuffled(some_codes(40, 512, 128, 4)),
    "shuffled inputs, wide scales": shuffled(some_codes(40, 64, 32, 8, half=False, minimum=True)),
    "fp8": some_fp8(48, 512, 128),
    "fp8, a scale a row": some_fp8(33, 96, 96),
}

CHECKED = ("Q4_0", "Q4_K", "Q5_K", "Q6_K", "Q8_0", "Q2_K", "chunks left over", "awq", "shuffled inputs", "fp8")
OFTEN = [pytest.param(name, marks=[] if name in CHECKED else pytest.mark.nightly) for name in MATRICES]


@cache
def made_by(precise: bool = False) -> NativeLinears:
    found = kernel_library()
    assert found is not None
    return NativeLinears(found, 2, precise)


def linear(*parts: PackedRows, precise: bool = False, bias: Tensor | None = None, gated: bool = False) -> NativeLinear:
    return made_by(precise).from_packed(parts, bias, gated=gated)


def inputs(count: int, rows: int = ROWS) -> Tensor:
    x = torch.randn(rows, count, generator=torch.Generator().manual_seed(count))
    x[:, ::37] *= 20
    x[3, :32] = 0  # a group without a scale
    return x.bfloat16().float()


def rounded(x: Tensor, packed: PackedRows) -> Tensor:
    """Inputs rounded as by the kernels: groups of 32 neighbours to eight bits."""
    if packed.format.name == "fp8":
        return x.double()
    order = torch.arange(packed.inputs) if packed.order is None else packed.order
    groups = x[:, order].unflatten(1, (-1, 32))
    most = groups.abs().amax(2, keepdim=True)
    codes = (groups.double() * torch.where(most > 0, 127 / most, 0)).round()
    return x.double().index_copy_(1, order, (codes * (most / 127)).flatten(1))


def error(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("name", MATRICES)
def test_products_equal_those_of_dequantised_weights(name: str) -> None:
    packed = MATRICES[name]
    x, weight = inputs(packed.inputs), dequantise(packed).double()
    found = linear(packed)(x)
    assert found.shape == (ROWS, packed.shape[0])
    assert error(found, rounded(x, packed) @ weight.T) < 1e-3
    finer = error(linear(packed, precise=True)(x), x.double() @ weight.T)
    assert finer < 3e-4
    if packed.format.name != "fp8":
        assert error(found, x.double() @ weight.T) > 10 * finer


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("name", OFTEN)
def test_a_row_is_bit_identical_alone_and_among_others(name: str, precise: bool) -> None:
    made, x = linear(MATRICES[name], precise=precise), inputs(MATRICES[name].inputs)
    together = made(x)
    for row in (0, 3, 31, 32, 63, 64, 69):
        assert torch.equal(made(x[row : row + 1])[0], together[row])
    for some in (2, 5, 33, 65):
        assert torch.equal(made(x[:some]), together[:some])


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize(
    "names",
    [
        ("Q4_K", "Q4_K", "Q6_K"),
        ("Q4_0", "Q3_K", "fp8"),
        ("fp8", "shuffled inputs", "Q4_K"),
        ("shuffled inputs", "4 bits, groups of 128", "shuffled inputs"),
        ("Q8_0", "Q8_0", "Q8_0"),
    ],
    ids="+".join,
)
def test_a_layer_of_several_parts_equals_the_parts_one_by_one(names: tuple[str, ...], precise: bool) -> None:
    sizes = (64, 32, 20)
    parts = [repeated(MATRICES[name], size) for name, size in zip(names, sizes, strict=True)]
    x, bias = inputs(512), torch.randn(sum(sizes), generator=torch.Generator().manual_seed(1))
    alone = torch.cat([linear(part, precise=precise)(x) for part in parts], 1)
    assert torch.equal(linear(*parts, precise=precise)(x), alone)
    assert torch.equal(linear(*parts, bias=bias, precise=precise)(x), alone + bias)


def repeated(packed: PackedRows, rows: int) -> PackedRows:
    return packed.select(torch.arange(rows) % packed.shape[0])


@pytest.mark.parametrize("name", ["Q4_K", "Q2_K", "fp8", "8 bits, groups of 512", "shuffled inputs"])
def test_a_gated_layer_interleaves_its_two_halves(name: str) -> None:
    packed = repeated(MATRICES[name], 96)
    gate, up = packed.select(slice(0, 48)), packed.select(slice(48, 96))
    bias, x = torch.randn(96, generator=torch.Generator().manual_seed(1)), inputs(512)
    apart = linear(packed, bias=bias)(x)
    found = linear(gate, up, bias=bias, gated=True)(x)
    assert torch.equal(found.unflatten(1, (-1, 2, 16)).transpose(1, 2).flatten(1), apart)


def test_inputs_are_normed_before_they_are_rounded() -> None:
    packed, x = MATRICES["Q4_0"], inputs(512) * 100
    norm = torch.rand(512, generator=torch.Generator().manual_seed(1)) + 0.5
    normed = torch.nn.functional.rms_norm(x, (512,), norm, 1e-5).bfloat16().float()
    made = linear(packed)
    assert error(made(x, norm, 1e-5), rounded(normed, packed) @ dequantise(packed).double().T) < 1e-3


@pytest.mark.parametrize("name", [name for name, packed in MATRICES.items() if packed.format.block_bytes])
def test_rows_looked_up_equal_dequantised_rows(name: str) -> None:
    """Embedding lookups select rows."""
    packed = MATRICES[name].select(torch.tensor([7, 0, 11, 3, 7]))
    out, addresses = torch.empty(packed.shape), row_addresses(packed)
    made_by().library.read_rows(packed_format(packed), addresses.ctypes.data, *packed.shape, out.data_ptr())
    torch.testing.assert_close(out, dequantise(packed), rtol=1e-6, atol=1e-7)  # a product and a sum may be one


def test_float16_scales_take_two_bytes() -> None:
    """A minimum that float16 cannot hold takes four bytes, and so does its scale."""
    half, wide = some_codes(32, 512, 32, 4, minimum=True), some_codes(32, 512, 32, 4, minimum=True)
    wide.rows[5, -4:] = torch.tensor([0.1]).view(torch.uint8)
    assert [linear(packed).weights[0].nbytes for packed in (half, wide)] == [32 * (256 + 64), 32 * (256 + 128)]


UNREADABLE: dict[str, Sequence[PackedRows]] = {
    "groups of 48": [some_codes(32, 144, 48, 4)],
    "groups of 96 in chunks of 256": [some_codes(32, 384, 96, 4)],
    "half a group of inputs": [some_codes(32, 48, 16, 4)],
    "shuffled fp8": [shuffled(MATRICES["fp8"])],
    "a panel of two formats": [repeated(MATRICES["Q4_0"], 48), repeated(MATRICES["Q8_0"], 32)],
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_format_that_the_kernels_cannot_read_makes_no_packed_layer(name: str) -> None:
    assert not made_by().packs(UNREADABLE[name])


def test_gated_halves_in_different_formats_make_no_packed_layer() -> None:
    parts = [repeated(MATRICES[name], 64) for name in ("Q4_0", "Q8_0")]
    assert made_by().packs(parts)
    assert not made_by().packs(parts, gated=True)


def test_rows_whose_codes_are_all_minima_are_read_exactly() -> None:
    """With a scale of zero only the minimum times the sum of the inputs remains."""
    zero = torch.zeros(32, 2)
    packed = pack_codes(torch.full((32, 64), 9, dtype=torch.uint8), zero, zero - 0.5, bits=4)
    x = inputs(64)
    assert error(linear(packed, precise=True)(x), x.double().sum(1, keepdim=True).expand(-1, 32) * -0.5) < 1e-3


# ---- other processors

SOME = ("Q4_0", "Q5_1", "Q6_K", "Q8_0", "Q2_K", "shuffled inputs, wide scales", "fp8")
x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="needs an x86-64 CPU")


def compiled(path: Path, target: str) -> None:
    line = [*(compiler() or []), *FLAGS, "-O1", f"-march={target}", str(SOURCE), "-o", str(path)]
    result = subprocess.run(line, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@x86
@pytest.mark.nightly
@pytest.mark.parametrize("target", ["x86-64-v4", "sapphirerapids", "alderlake"])
def test_the_kernels_compile_for_other_processors(target: str, tmp_path: Path) -> None:
    compiled(tmp_path / "kernels.so", target)
    assert os.path.getsize(tmp_path / "kernels.so") > 50_000


@x86
@pytest.mark.nightly
@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3"])
def test_code_for_older_processors_gives_the_same_products(target: str, tmp_path: Path) -> None:
    compiled(tmp_path / "kernels.so", target)
    older = KernelLibrary(tmp_path / "kernels.so")
    for name in SOME:
        packed = MATRICES[name]
        numbers = torch.randint(-254, 255, (ROWS, packed.inputs), generator=torch.Generator().manual_seed(1))
        exact = numbers.clamp(-127, 127).float()  # about half are the largest: eight bits hold all
        # Halves between two codes are rounded either way, by what the compiler makes of a product and a sum.
        for x, precise, most in ((exact, False, 1e-5), (inputs(packed.inputs), True, 1e-5), (exact / 3, False, 1e-3)):
            made = NativeLinears(older, 2, precise).from_packed([packed], None)
            assert error(made(x), linear(packed, precise=precise)(x)) < most, name
