"""Kernels of GPUs compile to no more machine instructions, registers and shared memory than the table says."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from importlib.metadata import version

import pytest

from tests.support import REPOSITORY

TABLE = json.loads((REPOSITORY / "tests" / "gpu" / "machine_code.json").read_text("utf-8"))
MODULE = "tests.support.machine_code"

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton"),
    pytest.mark.slow,
]


def counts(pattern: str) -> dict[str, dict[str, int]]:
    """Compile kernels as they are, in a process that does not interpret them."""
    if version("triton") != TABLE["triton"]:
        pytest.skip("the table counts the instructions of another version of triton")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(REPOSITORY / "build" / "triton")
    command = [sys.executable, "-m", MODULE, "--print", pattern]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
    return {name: found for name, found in json.loads(done.stdout).items() if name != "triton"}


def compare(pattern: str) -> None:
    found = counts(pattern)
    listed = {name: limits for name, limits in TABLE.items() if re.search(pattern, name)}
    assert found.keys() == listed.keys(), f"write the table anew: python -m {MODULE}"
    risen = [
        f"{name}: {count} {found[name].get(count)}, not {limit}"
        for name, limits in listed.items()
        for count, limit in limits.items()
        if found[name].get(count, 1 << 30) > limit
    ]
    assert not risen, "\n".join([*risen, f"If that has a good reason, write the table anew: python -m {MODULE}"])


def test_products_of_one_row_compile_to_no_more_than_the_table_says() -> None:
    compare("^sm_90, 1 rows, (4-bit|plain) output")


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("capability", [80, 89, 90])
def test_every_kernel_compiles_to_no_more_than_the_table_says(capability: int) -> None:
    compare(f"^sm_{capability},")


def test_no_kernel_of_the_table_spills_registers() -> None:
    spilling = {name for name, limits in TABLE.items() if name != "triton" and limits["spills"]}
    assert all("Q6_K product" in name for name in spilling)  # two or three of 1,704 instructions


def test_the_4_bit_copy_takes_few_instructions() -> None:
    """528 schedulers of an H200 issue 500 each while it reads the weights of 528 warps, 2.3 KB a warp."""
    taken = [limits["loop for 4096 weights"] for name, limits in TABLE.items() if re.match("sm_90.*4-bit", name)]
    assert 0 < max(taken) <= 500
