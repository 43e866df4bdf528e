"""Count the machine instructions of Triton's kernels, for GPUs that need not be there.

`python -m tests.support.machine_code` writes tests/gpu/machine_code.json anew. With `--print PATTERN` it prints those
lines of it whose names the regular expression matches, from the kernels as they are.

`launches` calls the functions that launch kernels, mostly with tensors that have no memory. Triton specialises and
compiles the kernels as it would on a GPU, and does not launch them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from engine.backends.cuda import int4, kernels, linear, packed, products
from engine.model.low_bit import GROUP
from engine.quantised.formats import GGUF_FORMATS
from tests.support import REPOSITORY
from tests.support.packed import random_rows

EARLY = 90  # least capability with programmatic dependent launch
_options: dict[str, Any] = {"alive": None, "EARLY": False}  # of the launches that are counted
TABLE = REPOSITORY / "tests" / "gpu" / "machine_code.json"
# Bytes of shared memory that a program may use, by compute capability (CUDA's programming guide).
TARGETS = {80: 163 << 10, 89: 99 << 10, 90: 227 << 10}
ROWS = (1, 16)
# llama-3.1-8b. qwen3-8b differs in numbers only that kernels do not specialise for, and in norms of heads.
HIDDEN, INNER, VOCABULARY, HEADS, KV_HEADS, DIM = 4096, 14336, 128256, 32, 8, 128
QKV = (HEADS + 2 * KV_HEADS) * DIM
# Weights that a warp multiplies in a turn of the main loop, from a kernel's constants and the number of its warps.
WEIGHTS: dict[str, Callable[[dict[str, int], int], int]] = {
    "products._product": lambda c, warps: c["BLOCK"] * c["DEPTH"] * (1 + c["GATED"]) // warps,
    "packed._product": lambda c, warps: c["BLOCK"] * c["DEPTH"] * c["STEPS"] // warps,
    "int4._product": lambda c, warps: c["BLOCK"] * 4 * c["GROUP"] * c["SPLITS"] // warps,
}


def launches(rows: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield names and calls of functions that launch kernels over some rows."""
    launch: Any = SimpleNamespace(options=dict(_options), device=torch.device("cpu"))
    draft: Any = SimpleNamespace(options=_options | {"alive": _empty(1, dtype=torch.int32)}, device=launch.device)
    x, inner, norm = _empty(rows, HIDDEN), _empty(rows, INNER), _empty(HIDDEN)
    prepared = products.Prepared(x, _empty(HIDDEN // 32, rows, dtype=torch.float32))
    shapes = {"qkv": (QKV, HIDDEN), "output": (HIDDEN, HIDDEN), "gate_up": (2 * INNER, HIDDEN)}
    shapes |= {"down": (HIDDEN, INNER), "head": (VOCABULARY, HIDDEN)}
    for name, shape in shapes.items():
        gated = name == "gate_up"
        scale = _empty(shape[0], shape[1] // GROUP, dtype=torch.float32)
        whole = linear.RowsLinear(_empty(*shape), None, launch, gated=gated)
        copied = int4.Int4Linear(_empty(*shape, dtype=torch.uint8), scale, None, draft, gated=gated)
        for kind, layer in (("plain", whole), ("4-bit", copied)):
            first: Any = layer.gated if gated else layer.normed
            call = partial(first, x, prepared, norm, 1e-5)
            if name in ("output", "down"):
                call = partial(layer.add_before, x if name == "output" else inner, x, norm)
            yield f"{kind} {name}", call
    many = torch.zeros(packed.PackedRowsLinear.most + 1, HIDDEN, dtype=torch.bfloat16)
    for name in ("Q4_K", "Q6_K", "Q8_0"):
        numbers = random_rows(GGUF_FORMATS[name], 64, HIDDEN, seed=0)  # few, because the constructor reads them
        repacked = packed.PackedRowsLinear([numbers], launch=launch)
        yield f"{name} product", partial(repacked, x)
        yield f"{name} unpacked", partial(repacked, many)
    yield "norm", lambda: products.normalise(x, norm, 1e-5, launch)
    qkv, cache = _empty(rows, HEADS + 2 * KV_HEADS, DIM), _empty(2048, 16, KV_HEADS, DIM)
    numbers64 = {name: _empty(rows, dtype=torch.int64) for name in ("tokens", "places", "keys", "fresh")}
    numbers64 |= {name: _empty(1, dtype=torch.int64) for name in ("slabs", "starts", "ends", "firsts")}
    reals = {name: _empty(rows, dtype=torch.float64) for name in ("temperatures", "noises", "least")}
    inputs: Any = SimpleNamespace(**numbers64, **reals, results=_empty(2, rows, dtype=torch.float64))
    batch: Any = SimpleNamespace(
        layout=(1, rows, rows), inputs=inputs,
        attention=SimpleNamespace(
            factors=_empty(131072, DIM // 2, 2, dtype=torch.float32),
            cache=SimpleNamespace(k=[cache], v=[cache], device_tables=_empty(8, 2048, dtype=torch.int32)),
        ),
    )  # fmt: skip
    own = kernels.TritonKernels(launch)
    yield "attention", lambda: own.attend(qkv, None, 1e-5, 0, batch, 0, 0)
    yield "attention, qk norm", lambda: own.attend(qkv, _empty(HEADS + KV_HEADS, DIM), 1e-6, 0, batch, 0, 0)
    yield "embed", lambda: own.embed(inputs, _empty(VOCABULARY, HIDDEN), torch.bfloat16, norm)
    yield "draw", lambda: own.draw(_empty(rows, VOCABULARY), inputs)


def _empty(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def counts(pattern: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield names of kernels that the regular expression matches, and their counts."""
    compiled: list[tuple[str, Any, dict[str, Any]]] = []

    def compile(function: Any, grid: object) -> Callable[..., None]:
        def run(*arguments: object, **options: Any) -> None:
            kernel = function.run(*arguments, grid=grid, warmup=True, **options)
            compiled.append((f"{function.fn.__module__.rpartition('.')[2]}.{function.__name__}", kernel, options))

        return run

    JITFunction.__getitem__ = compile
    for capability, shared_memory in TARGETS.items():
        target = GPUTarget("cuda", capability, 32)
        driver.set_active(
            SimpleNamespace(
                get_current_device=partial(int, capability),
                get_current_stream=lambda device: 0,
                get_current_target=partial(copy, target),
            )
        )
        _options["EARLY"] = capability >= EARLY
        for module in (int4, kernels, packed, products):
            vars(module)["shared_memory"] = partial(lambda most, device: most, shared_memory)
        for rows in ROWS:
            for name, call in launches(rows):
                prefix = f"sm_{capability}, {rows} rows, {name}"
                if not re.search(pattern, prefix):
                    continue
                compiled.clear()
                call()
                for function, kernel, options in compiled:
                    weights = WEIGHTS[function](options, kernel.metadata.num_warps) if function in WEIGHTS else None
                    yield f"{prefix}: {function}", _count(kernel, weights)


def _count(kernel: Any, weights: int | None) -> dict[str, int]:
    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()

        def run(*command: str) -> str:
            return subprocess.run([tools / command[0], *command[1:], file.name], capture_output=True, text=True).stdout

        code, usage = run("nvdisasm", "-c"), run("cuobjdump", "-res-usage")
    labels: dict[str, int] = {}
    instructions: list[str] = []
    loop = 0
    for line in code.splitlines():
        if label := re.match(r"\s*(\.L_\w+):", line):
            labels[label[1]] = len(instructions)
        elif instruction := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?);", line):
            instructions.append(instruction[1])
            jump = re.search(r"\bBRA\b.*?(\.L_\w+)", instruction[1])
            if jump and jump[1] in labels and labels[jump[1]] < len(instructions) - 1:  # the end jumps to itself
                loop = max(loop, len(instructions) - labels[jump[1]])
    found = {"instructions": len(instructions), "loop": loop}
    if weights:
        found["loop for 4096 weights"] = round(loop * 4096 / weights)
    registers = re.search(r"REG:(\d+)", usage)
    assert registers
    assert instructions
    found["registers"] = int(registers[1])
    found["spills"] = sum(bool(re.search(r"\b(LDL|STL)\b", instruction)) for instruction in instructions)
    found["shared memory"] = kernel.metadata.shared
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--print", metavar="PATTERN", help="print lines whose names match instead of writing the file")
    pattern = parser.parse_args().print
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in counts(pattern or "")]
    text = "{\n" + ",\n".join([f'"triton": "{triton.__version__}"', *lines]) + "\n}\n"
    if pattern is None:
        TABLE.write_text(text, "utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
