"""Products of the 4-bit copy on CUDA, or in Triton's interpreter."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.low_bit import GROUP, lowered
from engine.quantised.packed import dequantise, unpack_weights
from tests.support import INTERPRETED

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
DTYPES = [torch.float16, *([torch.bfloat16] if INTERPRETED or torch.cuda.is_bf16_supported() else [])]
if INTERPRETED:
    import tests.support.interpreter  # noqa: F401

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not (CUDA or INTERPRETED), reason="needs a CUDA device, or triton"),
]
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)

SHAPES = {
    "whole steps": (37, 1024),
    "chunks left over": (16, 1280),
    "groups left over": (130, 96),
}


@pytest.fixture(params=["narrow", "wide"])
def _tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with both tiles, whatever the number of outputs."""
    from engine.backends.cuda import int4

    monkeypatch.setattr(int4, "WIDE", 0 if request.param == "wide" else 1 << 30)


both_tiles = pytest.mark.usefixtures("_tiles")


def random(*shape: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) / 32
    return numbers.to(device=DEVICE, dtype=dtype)


def layer(weight: Tensor, bias: Tensor | None = None, *, gated: bool = False) -> Any:
    from engine.backends.cuda.int4 import Int4Linear
    from engine.backends.cuda.launch import Launch

    return Int4Linear(*numbers(weight), bias, Launch(DEVICE), gated=gated)


def numbers(weight: Tensor) -> tuple[Tensor, Tensor]:
    """The codes and scales of a copy."""
    codes, scale, _ = unpack_weights(lowered(weight, 4))
    return codes, scale.numbers


def copied(weight: Tensor) -> Tensor:
    """The weights of a copy, float64 [out, in]."""
    codes, scale = numbers(weight)
    groups = (codes.double() - 8).view(len(codes), -1, GROUP) * scale.bfloat16().double()[..., None]
    return groups.flatten(1).to(DEVICE)


def close(found: Tensor, expected: Tensor, x: Tensor, weight: Tensor) -> None:
    """Compare up to the rounding of the output and of sums of BASE + code in float32."""
    slack = x.double().abs() @ (weight.abs() + weight.abs().mean()).t() * 2e-4
    error = (found.double() - expected).abs()
    assert (error <= torch.finfo(found.dtype).eps * expected.abs() + slack).all()


@both_tiles
@each_dtype
@pytest.mark.parametrize("rows", [3, 17, *(pytest.param(rows, marks=pytest.mark.nightly) for rows in (1, 8, 16, 33))])
@pytest.mark.parametrize("name", SHAPES)
def test_products_equal_those_of_dequantised_weights(name: str, rows: int, dtype: torch.dtype) -> None:
    weight = random(*SHAPES[name], dtype=dtype)
    x = random(rows, weight.shape[1], dtype=dtype, seed=1)
    close(layer(weight)(x), x.double() @ copied(weight).t(), x, copied(weight))


@each_dtype
@pytest.mark.parametrize("rows", [2, 9])
def test_bias_and_residual_are_added(rows: int, dtype: torch.dtype) -> None:
    weight, bias, residual, x = (random(*shape, dtype=dtype) for shape in ((37, 96), (37,), (rows, 37), (rows, 96)))
    made = layer(weight, bias)
    product = x.double() @ copied(weight).t() + bias
    close(made(x), product, x, copied(weight))
    close(made.add(x, residual), product + residual, x, copied(weight))


@both_tiles
@each_dtype
@pytest.mark.parametrize("prepares", [False, True])
@pytest.mark.parametrize("rows", [3, pytest.param(11, marks=pytest.mark.nightly)])
def test_norms_and_gates_equal_torchs(rows: int, prepares: bool, dtype: torch.dtype) -> None:
    from engine.backends.cuda.products import Prepared

    weight, bias, x = (random(*shape, dtype=dtype) for shape in ((70, 160), (70,), (rows, 160)))
    norm = 1 + random(160, dtype=dtype, seed=1)
    made = layer(weight, bias, gated=True)
    prepared = None
    if prepares:
        prepared = Prepared(x * norm, x.float().square().view(rows, 5, 32).sum(2).t().contiguous())
    normed = F.rms_norm(x.double(), (160,), norm.double(), 1e-5)
    product = normed @ copied(weight).t() + bias
    gate, up = product.chunk(2, 1)
    slack = 8 * torch.finfo(dtype).eps  # the inputs are rounded too
    torch.testing.assert_close(made.normed(x, prepared, norm, 1e-5).double(), product, rtol=slack, atol=slack)
    torch.testing.assert_close(made.gated(x, prepared, norm, 1e-5).double(), F.silu(gate) * up, rtol=slack, atol=slack)
    close(made(x), x.double() @ copied(weight).t() + bias, x, copied(weight))


@both_tiles
@pytest.mark.skipif(torch.bfloat16 not in DTYPES, reason="float16 is not prepared")
@pytest.mark.parametrize("kind", ["4-bit", "plain"])
@pytest.mark.parametrize("rows", [3, pytest.param(11, marks=pytest.mark.nightly)])
def test_the_norm_that_follows_is_prepared(rows: int, kind: str) -> None:
    from engine.backends.cuda.launch import Launch
    from engine.backends.cuda.linear import RowsLinear

    shapes = (70, 160), (rows, 70), (rows, 160), (70,)
    weight, residual, x, norm = (random(*shape, dtype=torch.bfloat16) for shape in shapes)
    made = layer(weight) if kind == "4-bit" else RowsLinear(weight, None, Launch(DEVICE))
    out, prepared = made.add_before(x, residual, norm)
    assert torch.equal(out, made.add(x, residual))
    assert torch.equal(prepared.scaled, out * norm)
    torch.testing.assert_close(prepared.squares.sum(0), out.float().square().sum(1), rtol=1e-6, atol=0)


@each_dtype
@pytest.mark.parametrize("shape", [(37, 96), pytest.param((37, 1024), marks=pytest.mark.nightly)])
def test_a_row_does_not_depend_on_the_other_rows(shape: tuple[int, int], dtype: torch.dtype) -> None:
    weight = random(*shape, dtype=dtype)
    made, x = layer(weight), random(16, weight.shape[1], dtype=dtype, seed=1)
    norm = torch.ones(x.shape[1], dtype=dtype, device=DEVICE)
    for widths in [(1, 3, 8), (9, 16)] if INTERPRETED else [(1, 3, 8, 9, 16)]:  # numpy's sums depend on the tile
        most, normed = made(x[: widths[-1]]), made.normed(x[: widths[-1]], None, norm, 1e-5)
        for rows in widths:
            others = torch.full_like(x[: widths[-1]], float("nan"))
            others[:rows] = x[:rows]
            assert torch.equal(made(x[:rows]), most[:rows])
            assert torch.equal(made(others)[:rows], most[:rows])
            assert torch.equal(made.normed(others, None, norm, 1e-5)[:rows], normed[:rows])


def test_the_copy_takes_four_and_a_half_bits_a_weight() -> None:
    assert 8 * sum(part.nbytes for part in layer(random(64, 1024, dtype=torch.float16)).weights) == 4.5 * 64 * 1024


@pytest.mark.skipif(not INTERPRETED, reason="runs Triton's language on a CPU")
@pytest.mark.parametrize(("dtype", "ones"), [(torch.float16, 0x6400), (torch.bfloat16, 0x4300)], ids=str)
def test_the_instructions_unpack_what_tritons_language_unpacks(dtype: torch.dtype, ones: int) -> None:
    """A model of the instructions, because only a GPU can run them."""
    from engine.backends.cuda.int4 import UNPACK, unpack

    words = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16)
    registers = {"$4": words.view(torch.int32).long() & 0xFFFFFFFF, "$5": torch.tensor(ones << 16 | ones)}

    def read(name: str) -> Tensor:
        return registers[name] if name in registers else torch.tensor(int(name, 0))

    for line in re.findall(r"^ *((?:shr|lop3).*);$", UNPACK.value, re.MULTILINE):
        name, target, *sources = re.split(r"[ ,]+", line)
        if name == "shr.u32":
            registers[target] = read(sources[0]) >> read(sources[1])
        else:
            assert (name, sources[3]) == ("lop3.b32", "0xEA")  # (a & b) | c
            registers[target] = read(sources[0]) & read(sources[1]) | read(sources[2])
    for group in range(4):
        bits = registers[f"${group}"]
        found = torch.stack([bits & 0xFFFF, bits >> 16], 1).flatten().to(torch.int16)
        code = words.int() >> 4 * group & 15
        assert torch.equal(found.view(dtype).int() - code, torch.full_like(code, 1024 if ones == 0x6400 else 128))
        assert torch.equal(unpack.fn(words, False, ones)[group], found)


@pytest.mark.skipif(not CUDA, reason="needs a CUDA device")
@pytest.mark.parametrize(("outputs", "inputs"), [(64, 1024), (128, 96)])
def test_torchs_products_equal_those_of_dequantised_weights(outputs: int, inputs: int) -> None:
    from engine.backends.cuda.launch import Launch
    from engine.backends.cuda.torch_int4 import TorchInt4Linear

    weight, bias, x = (random(*shape, dtype=torch.bfloat16) for shape in ((outputs, inputs), (outputs,), (3, inputs)))
    made = TorchInt4Linear(*numbers(weight), bias, Launch(DEVICE), gated=True)
    product = x.double() @ copied(weight).t() + bias
    slack = 4 * torch.finfo(x.dtype).eps * product.abs().max()
    assert ((made(x) - product).abs() <= slack).all()
    own = layer(weight, bias, gated=True)
    norm = torch.ones(inputs, dtype=x.dtype, device=DEVICE)
    torch.testing.assert_close(made.gated(x, None, norm, 1e-5), own.gated(x, None, norm, 1e-5), rtol=0.05, atol=0.05)


@pytest.mark.parametrize(
    ("times", "fastest"),
    [({"ours": 1, "torch's": 2}, "ours"), ({"ours": 2, "torch's": 1}, "torch's"), ({"ours": 1}, "ours")],
)
@pytest.mark.parametrize("gated", [False, True])
def test_the_fastest_product_of_a_shape_is_chosen_once(
    times: dict[str, float], fastest: str, gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.backends.cuda import torch_int4
    from engine.backends.cuda.launch import Launch

    class Layer:
        """Stands in for a kind of layer: its products say which kind they are of."""

        def __init__(self, *parts: object, gated: bool, kind: str = "ours") -> None:
            self.kind = kind

        def add(self, x: Tensor, residual: Tensor) -> str:
            return self.kind

        def gated(self, *inputs: object) -> str:
            return self.kind

    asked = []

    def timer(function: Callable[[], object]) -> float:
        asked.append(kind := str(function()))
        if kind not in times:
            raise RuntimeError("not implemented")
        return times[kind]

    monkeypatch.setattr(torch_int4, "Int4Linear", Layer)
    monkeypatch.setattr(torch_int4, "TorchInt4Linear", partial(Layer, kind="torch's"))
    make: Any = torch_int4.Int4Linears(Launch(DEVICE), timer)
    codes, scale = numbers(random(64, 96, dtype=torch.bfloat16))
    made = [make(codes, scale, None, torch.bfloat16, gated=gated).kind for _ in range(2)]
    assert made == [fastest] * 2
    assert asked == ["ours", "torch's"]
    assert make(codes, scale, None, torch.float16, gated=gated).kind == "ours"  # torch's takes bfloat16 only


@pytest.mark.skipif(CUDA, reason="torch's kernel needs a CUDA device")
def test_a_copy_needs_no_kernel_of_torchs() -> None:
    from engine.backends.cuda.int4 import Int4Linear
    from engine.backends.cuda.launch import Launch
    from engine.backends.cuda.torch_int4 import Int4Linears

    make = Int4Linears(Launch(DEVICE), lambda function: 1.0)
    parts = numbers(random(64, 96, dtype=torch.bfloat16))
    assert type(make(*parts, None, torch.bfloat16, gated=True)) is Int4Linear


@each_dtype
@pytest.mark.parametrize("bits", [4, 5, 6, 8])
def test_copies_equal_their_dequantised_weights(bits: int, dtype: torch.dtype) -> None:
    from engine.backends.cuda.launch import Launch
    from engine.backends.cuda.linear import RowsLinears

    weight, x = random(40, 96, dtype=dtype), random(3, 96, dtype=dtype, seed=1)
    make = RowsLinears(Launch(DEVICE))
    made = make.lower(make(weight, None), bits)
    whole = copied(weight) if bits == 4 else dequantise(lowered(weight, bits)).double().to(DEVICE)
    close(made(x), x.double() @ whole.t(), x, whole)
