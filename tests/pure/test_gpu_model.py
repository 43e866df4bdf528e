"""The model of a decode step: what bounds it, and how well it repeats what was measured on a GPU."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from bench.gpu_model import (
    BORDER,
    CONTEXTS,
    COPY,
    DEVICES,
    INSTRUCTIONS,
    MODELS,
    PDL,
    SCANS,
    Kernel,
    micros,
    predict,
    product_shapes,
    read_bytes,
    step,
    tables,
)
from engine.architecture.spec import ModelSpec
from engine.checkpoints.shapes import shape
from tests.support import REPOSITORY

LLAMA, QWEN = map(shape, MODELS)
H200 = DEVICES["H200"]
PAGE = (REPOSITORY / "docs" / "gpu.md").read_text("utf-8")


def test_the_products_of_a_pass_read_every_weight_but_the_embedding() -> None:
    for spec in (LLAMA, QWEN):
        weights = sum(k.times * k.read for k in step(spec, 1024) if k.name in product_shapes(spec)) / 2
        assert weights == spec.parameters - spec.vocab * spec.hidden


def test_a_layer_has_six_kernels() -> None:
    kernels = step(LLAMA, 1024)
    assert sum(kernel.times for kernel in kernels if kernel.name not in ("embed", "head", "draw")) == 6 * LLAMA.layers


@pytest.mark.parametrize("device", DEVICES)
def test_f_falls_with_the_instructions_until_bytes_bind(device: str) -> None:
    f = [predict(DEVICES[device], LLAMA, 1024, copy)["f"] for copy in (1e4, 3e3, 2e3, 1e3, 500, 200, 100, 10, 1)]
    assert f == sorted(f, reverse=True)
    assert f[0] > f[1] > f[2]
    assert f[-1] == f[-2] > 4.5 / 16


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("model", MODELS)
def test_no_pass_reads_faster_than_the_device(device: str, model: str) -> None:
    found = [predict(DEVICES[device], shape(model), context) for context in CONTEXTS]
    assert all(0.5 < each["share"] <= 1 for each in found)
    assert all(each["f_window"] <= each["f"] < 1 < each["v6"] < each["v9"] for each in found)
    assert [each["f_window"] for each in found] == sorted((each["f_window"] for each in found), reverse=True)


def test_without_borders_plain_decoding_is_bound_by_its_reads() -> None:
    """The scan, which reaches less than the whole bandwidth, is the rest."""
    kernels = step(LLAMA, 1024)
    times = {kernel.name: kernel.micros(H200) - PDL.value for kernel in kernels}
    own = sum(kernel.times * times[kernel.name] for kernel in kernels)
    assert own == pytest.approx(read_bytes(kernels) / 4464e3, rel=2e-3)
    assert micros(H200, kernels) == pytest.approx(own + PDL.value * sum(kernel.times for kernel in kernels))


def test_the_copy_is_worth_its_memory_on_an_h200() -> None:
    for spec in (LLAMA, QWEN):
        assert predict(H200, spec, 1024)["f"] <= 0.45


def test_instructions_are_those_of_the_table_of_machine_code() -> None:
    found = json.loads((REPOSITORY / "tests" / "gpu" / "machine_code.json").read_text("utf-8"))

    def loop(rows: int, kernel: str) -> dict[str, int]:
        return next(counts for name, counts in found.items() if name.startswith(f"sm_90, {rows} rows, {kernel}"))

    names = {name: name.replace(" ", "_") for name in INSTRUCTIONS}
    counts = {name: loop(1, f"plain {each}:")["loop for 4096 weights"] for name, each in names.items()}
    assert counts == INSTRUCTIONS
    assert max(loop(1, f"4-bit {name}:")["loop for 4096 weights"] for name in names.values()) == COPY.value
    one, many = (4 * loop(rows, "attention: kernels._scan")["loop"] for rows in (1, 16))  # warps
    assert [issued for _, issued in SCANS.values()] == [one, many, 2 * many]


class Check(NamedTuple):
    """A figure that was measured on an H200 on 2026-11-26, and the model's, with the kernels of that day."""

    what: str
    measured: float
    predicted: float
    tolerance: float = 0.05  # 0.13: a price of a fit, or with time of the host

    @property
    def off(self) -> float:
        return self.predicted / self.measured - 1


BEFORE = H200._replace(pdl=False)
EAGER, GAP = 100, 800  # µs of embedding and draw; µs of a round without a kernel


def before(spec: ModelSpec, context: int, rows: int = 1, *, attention: float = 1.0, mlp: float = 1.0) -> float:
    """The µs of a pass on that day, with shares of the sublayers: eight or nine kernels a layer."""
    small = Kernel("norm and store", spec.layers * (2 + spec.qk_norm))
    parts = {"embed": 0.0, "draw": 0.0, "head": 1.0, "gate up": mlp, "down": mlp}
    kernels = [(parts.get(each.name, attention), each) for each in (*step(spec, context, rows), small)]
    return EAGER + micros(BEFORE, (each._replace(times=part * each.times) for part, each in kernels))


def checks() -> Iterator[Check]:
    """What docs/notes/kernels.md and the shipped profile of the H200 have."""
    whole = {each.name: each for each in step(LLAMA, 1024)}
    products = {"qkv": 16.0, "output": 11.6, "gate up": 57.8, "down": 31.7, "head": 235.1}
    for name, measured in products.items():
        yield Check(f"{name}, µs", measured, whole[name].micros(BEFORE))
    scans = ((LLAMA, 16384, 1, 17.6), (LLAMA, 16384, 8, 21.0), (LLAMA, 16384, 16, 40.6), (QWEN, 40944, 1, 39.6))
    for spec, context, rows, measured in scans:
        scan = next(each for each in step(spec, context, rows) if each.name == "scan").micros(BEFORE) - BORDER.value
        yield Check(f"scan after {context:,} tokens, rows: {rows}, µs", measured, scan, 0.13)
    for context, measured in zip(CONTEXTS, (221, 201, 183), strict=True):
        yield Check(f"plain after {context:,} tokens, tokens/s", measured, 1e6 / before(LLAMA, context))
    yield Check("plain after 1,024 tokens, qwen3-8b, tokens/s", 211, 1e6 / before(QWEN, 1024))
    for rows, ratio in ((8, 1.07), (16, 1.25)):
        own = before(LLAMA, 32768, rows) / before(LLAMA, 32768)
        yield Check(f"pass of {rows} rows after 32,768 tokens ÷ one row", ratio, own)
    for context, ratio in zip(CONTEXTS, (1.20, 1.27, 1.34), strict=True):
        own = (before(LLAMA, context, 9) + GAP) / before(LLAMA, context)
        yield Check(f"pass of 9 rows and gap after {context:,} tokens ÷ plain", ratio, own)
    own = before(QWEN, 1024, attention=0.0, mlp=0.31) / before(QWEN, 1024)
    yield Check("draft without attention and 69 % of the MLPs, qwen3-8b ÷ plain", 0.29, own, 0.13)
    half = before(LLAMA, 64, attention=0.5, mlp=0.5) / before(LLAMA, 64)
    share = 0.5 + 0.5 * whole["head"].read / read_bytes(step(LLAMA, 64))
    yield Check("pass of half of the sublayers ÷ its share of the bytes", 1.15, half / share, 0.13)


def checks_table() -> str:
    rows = [f"| {each.what} | {each.measured:g} | {each.predicted:.3g} | {each.off:+.1%} |" for each in checks()]
    return "\n".join(["| H200, 2026-11-26 | measured | model | off |", "|---|--:|--:|--:|", *rows])


def test_the_model_repeats_what_was_measured_within_the_tolerances_of_the_page() -> None:
    assert [each.what for each in checks() if abs(each.off) > each.tolerance] == []
    assert {each.tolerance for each in checks()} == {0.05, 0.13}
    prose = " ".join(PAGE.split())
    assert "ratios of passes agree within 5 %." in prose
    assert "Scans and the last two rows agree within 13 %." in prose


def test_the_page_has_all_tables() -> None:
    assert [table for table in (*tables(), checks_table()) if table not in PAGE] == []
