"""Products of packed weights on CUDA, or in Triton's interpreter."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.quantised.formats import GGUF_FORMATS
from engine.quantised.packed import PackedRows, dequantise
from tests.support import INTERPRETED
from tests.support.packed import random_rows, some_codes, some_fp8

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
# The interpreter cannot multiply bfloat16.
DTYPES = [torch.float16, *([torch.bfloat16] if CUDA and torch.cuda.is_bf16_supported() else [])]

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not (CUDA or INTERPRETED), reason="needs a CUDA device, or triton"),
]
needs_cuda = pytest.mark.skipif(not CUDA, reason="needs a CUDA device")


def gguf(name: str, out: int, inputs: int) -> PackedRows:
    return random_rows(GGUF_FORMATS[name], out, inputs, seed=out)


MATRICES = {
    **{name: gguf(name, 50, 512) for name in GGUF_FORMATS},
    "chunks left over": gguf("Q5_1", 33, 96),
    "several tiles": gguf("Q4_0", 70, 576),
    "awq": some_codes(40, 384, 128, 4, minimum=True),
    "a scale a row": some_codes(40, 96, 96, 8, half=False),
    "wide scales": some_codes(20, 256, 32, 6, half=False, minimum=True),
    "groups of 48": some_codes(20, 144, 48, 3),
    "fp8": some_fp8(48, 256, 128),
    "fp8, a scale a row": some_fp8(24, 96, 96),
}


def layer(*parts: PackedRows, bias: Tensor | None = None, gated: bool = False) -> Any:
    from engine.backends.cuda.launch import Launch
    from engine.backends.cuda.linear import RowsLinears

    return RowsLinears(Launch(DEVICE)).from_packed(list(parts), bias, gated=gated)


def random(*shape: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) / 32
    return numbers.to(device=DEVICE, dtype=dtype)


def whole(*parts: PackedRows) -> Tensor:
    return torch.cat([dequantise(part) for part in parts]).double().to(DEVICE)


def close(found: Tensor, expected: Tensor, x: Tensor, weight: Tensor) -> None:
    """Compare up to the rounding of the output and the order of additions in float32."""
    slack = x.double().abs() @ weight.abs().t() * 1e-5
    error = (found.double() - expected).abs()
    assert (error <= torch.finfo(found.dtype).eps * expected.abs() + slack + torch.finfo(found.dtype).tiny).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MATRICES)
def test_products_equal_those_of_dequantised_weights(name: str, dtype: torch.dtype) -> None:
    packed = MATRICES[name]
    weight = whole(packed)
    x = random(3, packed.inputs, dtype=dtype)
    close(layer(packed)(x), x.double() @ weight.t(), x, weight)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MATRICES)
def test_weights_for_more_rows_are_rounded_once(name: str, dtype: torch.dtype) -> None:
    packed = MATRICES[name]
    made = layer(packed)
    found = made(torch.eye(packed.inputs, dtype=dtype, device=DEVICE)).t()
    assert packed.inputs > made.most
    assert torch.equal(found, dequantise(packed).to(DEVICE).to(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows", [2, 33, 70])
def test_parts_of_several_formats_with_bias_and_residual_equal_one_matrix(rows: int, dtype: torch.dtype) -> None:
    order = torch.randperm(256, generator=torch.Generator().manual_seed(1))
    act = some_codes(24, 256, 64, 4)
    parts = gguf("Q4_K", 40, 256), gguf("Q4_K", 8, 256), gguf("Q6_K", 17, 256)
    parts = *parts, PackedRows(act.format, act.rows, act.inputs, order)
    weight = whole(*parts)
    bias, residual, x = (random(*shape, dtype=dtype) for shape in ((89,), (rows, 89), (rows, 256)))
    made = layer(*parts, bias=bias)
    rounded = weight.to(dtype).double() if rows > made.most else weight
    product = x.double() @ rounded.t() + bias
    if rows <= made.most:
        close(made(x), product, x, weight)
        close(made.add(x, residual), product + residual, x, weight)
    else:  # torch rounds between additions
        slack = 4 * torch.finfo(dtype).eps * product.abs().max()
        assert ((made(x) - product).abs() <= slack).all()
        assert ((made.add(x, residual) - product - residual).abs() <= slack).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("bits", [4, 6])
@pytest.mark.parametrize("rows", [5, 70])
def test_norms_and_gates_equal_torchs(rows: int, bits: int, dtype: torch.dtype) -> None:
    parts = some_codes(40, 256, 32, 4, minimum=True), some_codes(40, 256, 32, bits, minimum=True)
    bias, norm, x = (random(*shape, dtype=dtype) for shape in ((80,), (256,), (rows, 256)))
    made = layer(*parts, bias=bias, gated=True)
    normed = F.rms_norm(x.double(), (256,), 32 * norm.double(), 1e-5)
    product = normed @ whole(*parts).t() + bias
    gate, up = product.chunk(2, 1)
    # Of numbers about 5 in size, of inputs that are rounded, and, for many rows, of weights that are.
    slack = (16 if rows <= made.most else 32) * torch.finfo(dtype).eps
    torch.testing.assert_close(made.normed(x, None, 32 * norm, 1e-5).double(), product, rtol=slack, atol=slack)
    torch.testing.assert_close(
        made.gated(x, None, 32 * norm, 1e-5).double(), F.silu(gate) * up, rtol=slack, atol=4 * slack
    )
    if rows <= made.most:
        close(made(x), x.double() @ whole(*parts).t() + bias, x, whole(*parts))


@pytest.mark.parametrize(("name", "bits"), [("Q4_K", 4.7), ("Q4_0", 4.6), ("Q5_K", 5.7), ("Q6_K", 6.7), ("Q8_0", 8.6)])
def test_packed_weights_take_the_bits_of_their_format(name: str, bits: float) -> None:
    assert 8 * sum(part.nbytes for part in layer(gguf(name, 64, 2048)).weights) <= bits * 64 * 2048


@needs_cuda
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MATRICES)
def test_a_row_is_bit_identical_among_others(name: str, dtype: torch.dtype) -> None:
    made = layer(MATRICES[name])
    x = random(made.most, MATRICES[name].inputs, dtype=dtype)
    most = made(x)
    for rows in (1, 2, 7, 16, 17, 32, 33):
        assert torch.equal(made(x[:rows]), most[:rows])


@needs_cuda
@pytest.mark.parametrize("rows", [3, 70])
def test_a_recorded_product_equals_a_direct_one(rows: int) -> None:
    made = layer(gguf("Q4_K", 64, 256), gguf("Q6_K", 64, 256))
    x, residual = random(rows, 256, dtype=torch.float16), random(rows, 128, dtype=torch.float16)
    made.add(x, residual)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = made.add(x, residual)
    x.copy_(random(rows, 256, dtype=torch.float16, seed=1))
    graph.replay()
    assert torch.equal(out, made.add(x, residual))
