"""`knapserve bench kernels`: time the kernels of a pass on a GPU, beside the predictions of `bench.gpu_model`."""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

import torch
from torch import Tensor

from bench.gpu_model import CONTEXTS, COPY, DEVICES, Device, product_shapes, step
from bench.prompts import numbers
from bench.results import Column, Row, table
from engine.architecture.spec import ModelSpec, load_spec
from engine.backends.cuda.backend import cuda_backend
from engine.checkpoints.hub import SYNTHETIC, resolve
from engine.checkpoints.shapes import parse
from engine.config.engine import EngineConfig
from engine.config.fields import COUNT
from engine.kv.pages import CacheSize
from engine.model.attention import Segment
from engine.model.decoder import Draws
from engine.model.low_bit import GROUP
from engine.plans import TARGET, WINDOW
from engine.runtime.loading.choices import choose_device
from engine.runtime.machine import hardware

MODEL = f"{SYNTHETIC}llama-3.1-8b"  # by default
_ROWS = (1, 6, 9, 16)
_BYTES = 400 << 20  # of weights between two uses of the same, far more than a cache holds
_PAGE = 16  # tokens
_PARTS = 128  # programs of the product before a norm


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flag of `bench kernels`."""
    default = ",".join(map(str, CONTEXTS))
    parser.add_argument("--context", default=default, metavar="N,N…", help="context lengths (default: %(default)s)")


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Time products and attention; print a table in µs, and JSON as the last line. Raises ConfigError."""
    contexts, spec = numbers("--context", args.context, int, COUNT), spec_of(config)
    device = choose_device("cuda" if config.device == "auto" else config.device)
    if device.type == "cpu":  # products run in the interpreter; times mean nothing
        os.environ.setdefault("TRITON_INTERPRET", "1")
    dtype = torch.float16 if device.type == "cpu" else torch.bfloat16  # which the interpreter cannot multiply
    like = torch.empty(0, dtype=dtype, device=device)
    with torch.inference_mode():
        rows = [row for name in product_shapes(spec) for row in _product(name, spec, like)]
        rows += _attention(spec, like, contexts)
        if device.type == "cuda":
            memory = torch.ones(1 << 29, dtype=torch.int64, device=device)
            rows.append({"kernel": "read", "GB/s": round(memory.nbytes / 1e3 / _micros([memory.sum], device))})
    if (known := known_device(device)) is not None:
        for row, key in product(rows, ("bf16", "copy", "window")):
            if key in row:
                row[f"{key}, model"] = _predicted(known, spec, row, key)
    print(table(rows, [Column(key, key, "{}") for key in dict.fromkeys(key for row in rows for key in row)]))
    print(json.dumps(rows))
    return 0


def spec_of(config: EngineConfig) -> ModelSpec:
    """Return the shape of --model, by default that of an 8B model. Raises ModelError."""
    model = config.model or MODEL
    return parse(model).spec if model.startswith(SYNTHETIC) else load_spec(resolve(model))


def known_device(device: torch.device) -> Device | None:
    """Return the data sheet of a GPU."""
    return DEVICES.get(hardware(device).removeprefix("NVIDIA "))


def _predicted(device: Device, spec: ModelSpec, row: Row, key: str) -> float:
    copy = COPY.value if key == "copy" else 0.0
    kernels = step(spec, row.get("context", 0), row["rows"], copy=copy, window=key == "window")
    return round(sum(each.micros(device) for each in kernels if each.name in row["kernel"].split(", ")), 1)


def _product(name: str, spec: ModelSpec, like: Tensor) -> Iterator[Row]:
    """Time a product with as many rows as drafting and verifying have."""
    from engine.backends.cuda.int4 import Int4Linear  # needs Triton
    from engine.backends.cuda.launch import Launch
    from engine.backends.cuda.linear import RowsLinears
    from engine.backends.cuda.products import Prepared

    device, (outputs, inputs) = like.device, product_shapes(spec)[name]
    launch = Launch(device)
    make = RowsLinears(launch)
    many = 1 if device.type == "cpu" else max(2, _BYTES // (2 * outputs * inputs))
    weights = [like.new_empty(outputs, inputs).normal_(0, 1 / 64) for _ in range(many)]
    whole = [make(weight, None, gated=name == "gate up") for weight in weights]
    codes = like.new_empty(outputs, inputs).random_(16).byte()
    scale = like.new_full((outputs, inputs // GROUP), 1 / 64)
    copies = [Int4Linear(codes, scale, None, launch, gated=name == "gate up") for _ in range(many)]
    norm, after, factors = (like.new_ones(*shape) for shape in ((inputs,), (outputs,), (inputs // GROUP, outputs, 2)))
    for rows in _ROWS:
        x, residual = like.new_empty(rows, inputs).normal_(), like.new_zeros(rows, outputs)
        prepared = Prepared(x, torch.ones(_PARTS, rows, device=device))
        row: Row = {"kernel": name, "rows": rows}
        for key, linears in (("bf16", whole), ("copy", copies)):
            if name in ("output", "down"):
                row[key] = _micros([partial(each.add_before, x, residual, after) for each in linears], device)
            else:
                calls = (each.gated if name == "gate up" else each.normed for each in linears)
                row[key] = _micros([partial(call, x, prepared, norm, spec.norm_eps) for call in calls], device)
        try:
            pairs = [weight.view(torch.uint8)[:, : inputs // 2].contiguous() for weight in weights]
            packed = [torch.ops.aten._convert_weight_to_int4pack(each, 8) for each in pairs]  # noqa: SLF001
            multiply = partial(torch.ops.aten._weight_int4pack_mm, x)  # noqa: SLF001
            row["torch int4"] = _micros([partial(multiply, each, GROUP, factors) for each in packed], device)
        except RuntimeError as error:  # not on every device
            row["torch int4"] = str(error)[:40]
        yield row


def _attention(spec: ModelSpec, like: Tensor, contexts: Sequence[int]) -> Iterator[Row]:
    """Time the attention of a layer, from qkv on."""
    pages = -(-(max(contexts) + _ROWS[-1]) // _PAGE)
    size = CacheSize(1, pages, _PAGE, pages, pages * _PAGE)
    attention = cuda_backend(like.device, like.dtype).attention(spec, size)
    attention.cache.fill(0, size.length)
    for context in contexts:
        for rows in (*_ROWS, 8):
            batch = attention.prepare([Segment(0, context, rows)])
            batch.load([0] * rows, Draws(), fresh=True)
            heads = spec.heads + 2 * spec.kv_heads
            qkv = like.new_empty(batch.layout.rows, heads * spec.head_dim).normal_()
            row: Row = {"kernel": "scan, merge", "context": context, "rows": rows}
            for key, variant in (("bf16", TARGET), ("window", WINDOW)):
                calls = [partial(batch.attend, layer, qkv, variant) for layer in range(spec.layers)]
                row[key] = _micros(calls, like.device)
            yield row


def _micros(calls: Sequence[Callable[[], object]], device: torch.device) -> float:
    """Return the median µs of a call: all of them in one CUDA graph, replayed."""
    started = time.perf_counter()
    for call in calls:
        call()
    if device.type == "cpu":
        return round(1e6 * (time.perf_counter() - started) / len(calls), 1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    times = []
    for _ in range(20):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(float(begin.elapsed_time(end)))
    return round(1e3 * statistics.median(times) / len(calls), 1)
