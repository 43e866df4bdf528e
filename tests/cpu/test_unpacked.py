"""Unpacking gives the packed weights bit by bit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

from engine.quantised.formats import GGUF_FORMATS
from engine.quantised.packed import PackedRows, dequantise, pack_codes, pack_fp8, unpack_weights
from tests.support.packed import random_rows


class Unpacked(NamedTuple):
    """Codes, scales [out, groups] and minima [out, groups] of packed weights."""

    codes: torch.Tensor
    scale: torch.Tensor
    minimum: torch.Tensor | None
    offset: int
    group: int
    bits: int


def unpack(packed: PackedRows) -> Unpacked:
    codes, scale, least = unpack_weights(packed)
    format = packed.format
    minimum = None if least is None else least.products[..., 0]
    return Unpacked(codes, scale.products[..., 0], minimum, format.offset, format.group, format.bits)


def weights(parts: Unpacked) -> torch.Tensor:
    numbers = (parts.codes.float() - parts.offset).unflatten(1, (-1, parts.group)) * parts.scale[:, :, None]
    return (numbers if parts.minimum is None else numbers + parts.minimum[:, :, None]).flatten(1)


@pytest.mark.parametrize("name", GGUF_FORMATS)
def test_gguf_formats_are_dequantised_as_the_gguf_library_does(name: str) -> None:
    format = GGUF_FORMATS[name]
    packed = random_rows(format, 37, 768, seed=len(name))
    parts = unpack(packed)
    expected = dequantize(packed.rows.numpy(), GGMLQuantizationType[name])
    assert np.isfinite(expected).all()
    assert len(np.unique(expected)) > 200
    assert torch.equal(weights(parts), torch.from_numpy(expected))
    assert torch.equal(torch.from_numpy(expected), dequantise(packed))
    assert int(parts.codes.max()) < 1 << parts.bits
    assert (parts.minimum is not None) == format.minimum
    assert parts.scale.shape == (37, 768 // format.group)


@pytest.mark.parametrize("name", GGUF_FORMATS)
def test_selected_rows_equal_rows_of_the_whole(name: str) -> None:
    packed = random_rows(GGUF_FORMATS[name], 12, 512, seed=1)
    rows = torch.tensor([7, 0, 11, 3])
    assert torch.equal(weights(unpack(packed.select(rows))), dequantise(packed)[rows])


def test_the_smallest_scales_of_mxfp4_are_exact() -> None:
    blocks = torch.randint(0, 256, (128, 17), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    blocks[:, 0] = torch.arange(128, dtype=torch.uint8)
    packed = PackedRows(GGUF_FORMATS["MXFP4"], blocks, 32)
    assert torch.equal(weights(unpack(packed)), dequantise(packed))


@pytest.mark.parametrize(
    ("bits", "group", "offset", "minimum"), [(4, 128, 8, False), (8, 64, 128, False), (4, 32, 0, True)]
)
def test_codes_with_scales_are_unpacked_exactly(bits: int, group: int, offset: int, minimum: bool) -> None:
    g = torch.Generator().manual_seed(bits)
    codes = torch.randint(0, 1 << bits, (9, 256), dtype=torch.uint8, generator=g)
    scale, low = (torch.randn(9, 256 // group, generator=g) for _ in range(2))
    packed = pack_codes(codes, scale, low if minimum else None, bits=bits, offset=offset)
    parts = unpack(packed)
    assert torch.equal(parts.codes, codes)
    assert torch.equal(parts.scale, scale)
    assert torch.equal(weights(parts), dequantise(packed))


def test_fp8_keeps_its_bytes() -> None:
    g = torch.Generator().manual_seed(3)
    numbers = torch.randn(5, 128, generator=g).to(torch.float8_e4m3fn)
    scale = torch.rand(5, 4, generator=g)
    parts = unpack(pack_fp8(numbers, scale))
    assert torch.equal(parts.codes, numbers.view(torch.uint8))
    assert torch.equal(parts.scale, scale)
