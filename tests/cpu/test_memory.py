"""Loading a model takes little more memory than its weights; what is free is shared out."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from engine.architecture.spec import parse_spec
from engine.backends.cuda.backend import cuda_backend
from engine.checkpoints.shapes import shape
from engine.config.engine import EngineConfig
from engine.kv.cache import bytes_per_token
from engine.model.low_bit import copy_bytes
from engine.model.weights import expected_tensors
from engine.runtime.loading.memory import add_draft_copy, cache_size, pass_bytes
from engine.runtime.machine import container_cores, container_memory, free_memory

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 5,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "vocab_size": 16384,
    "max_position_embeddings": 64,
}
LOAD = """
import sys, threading
import torch
from pathlib import Path
from engine.runtime.loading.choices import choose_backend, choose_kernels
from engine.checkpoints.safetensors_weights import SafetensorsWeights
from engine.architecture.spec import load_spec
from engine.model.weights import expected_tensors, load_weights

def own():  # kB that are this process's own; pages of mapped files are the system's to take back
    return int(next(l for l in open('/proc/self/status') if l.startswith('RssAnon')).split()[1])

torch.set_num_threads(1)
directory, dtype, cpu = Path(sys.argv[1]), getattr(torch, sys.argv[2]), torch.device('cpu')
spec = load_spec(directory)
backend = choose_backend(spec, cpu, dtype, 1, choose_kernels(sys.argv[3], cpu), sys.argv[3])
backend.linear(torch.ones(64, 64, dtype=dtype), None)
before, most, done = own(), [0], threading.Event()

def watch():
    while not done.wait(0.0005):  # seconds between samples
        most.append(own())

watcher = threading.Thread(target=watch, daemon=True)
watcher.start()
decoder = load_weights(SafetensorsWeights(directory, expected_tensors(spec), None), spec, dtype, cpu, backend)
after = own()
done.set()
watcher.join()
print(max(most) - before, after - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("tied", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("stored", "dtype", "kernels"),
    [
        ("float32", "bfloat16", "auto"),
        pytest.param("bfloat16", "bfloat16", "auto", marks=pytest.mark.nightly),
        pytest.param("bfloat16", "bfloat16", "torch", marks=pytest.mark.nightly),
        pytest.param("bfloat16", "float32", "auto", marks=pytest.mark.nightly),
        pytest.param("float16", "float16", "auto", marks=pytest.mark.nightly),
    ],
)
def test_loading_takes_little_more_memory_than_the_weights(
    tmp_path: Path, stored: str, dtype: str, kernels: str, tied: bool
) -> None:
    """A head that is cast takes its own size for a moment, where the backend keeps another form."""
    config = CONFIG | {"tie_word_embeddings": tied}
    spec = parse_spec(config)
    (tmp_path / "config.json").write_text(json.dumps(config))
    tensors = {name: torch.zeros(shape, dtype=getattr(torch, stored)) for name, shape in expected_tensors(spec).items()}
    save_file(tensors, tmp_path / "model.safetensors")
    done = subprocess.run(
        [sys.executable, "-c", LOAD, tmp_path, dtype, kernels], capture_output=True, text=True, check=True, timeout=60
    )
    peak, after = (1024 * int(kilobytes) for kilobytes in done.stdout.split())
    weights = spec.parameters * getattr(torch, dtype).itemsize
    assert after <= 1.05 * weights + (1 << 24)
    cast = 2 * spec.vocab * spec.hidden if (stored, dtype) == ("float32", "bfloat16") else 0
    assert peak <= 1.15 * weights + cast + (1 << 24)


def write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, []),
        ({"cpu.max": "max 100000\n"}, []),
        ({"cpu.max": "250000 100000\n"}, [2]),
        ({"cpu.max": "50000 100000\n"}, [0]),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, []),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, [4]),
    ],
)
def test_the_cpu_limit_of_a_container_is_read(tmp_path: Path, files: dict[str, str], cores: list[int]) -> None:
    write(tmp_path, files)
    assert list(container_cores(tmp_path)) == cores


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({"memory.max": "max\n", "memory.current": "100\n"}, []),
        ({"memory.max": "1000\n", "memory.current": "900\n"}, [100]),
        (
            {"memory.max": "1000\n", "memory.current": "900\n", "memory.stat": "active_file 100\ninactive_file 500\n"},
            [700],
        ),
        ({"memory.max": "1000\n", "memory.current": "900\n", "memory.stat": "active_file 950\n"}, [1000]),
        (
            {
                "memory/memory.limit_in_bytes": "1000\n",
                "memory/memory.usage_in_bytes": "800\n",
                "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 300\n",
            },
            [500],
        ),
    ],
)
def test_the_file_cache_of_a_container_counts_as_free(tmp_path: Path, files: dict[str, str], free: list[int]) -> None:
    write(tmp_path, files)
    assert list(container_memory(tmp_path)) == free


GPU, CPU = torch.device("cuda"), torch.device("cpu")
PAGES = replace(cuda_backend(CPU, torch.float64), cache_dtype=torch.bfloat16)


@pytest.mark.parametrize("free", [1 << 30, 3 << 30, 24 << 30, 100 << 30])
def test_the_cache_of_a_gpu_leaves_what_passes_need_but_is_no_smaller_than_elsewhere(
    free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share that is given is the same on both."""
    monkeypatch.setattr("engine.runtime.loading.memory.free_memory", lambda device: free)
    spec, length = shape("llama-3.1-8b"), 131072
    block = 16 * bytes_per_token(spec, torch.bfloat16)
    needed = pass_bytes(EngineConfig(), spec, length, torch.bfloat16)
    sizes = {
        (device, share): block * cache_size(EngineConfig(kv_cache_memory=share), spec, length, PAGES, device).capacity
        for device in (CPU, GPU)
        for share in (None, 0.4, 0.7)
    }
    assert free - sizes[GPU, None] >= min(needed, 0.6 * free)
    assert sizes[GPU, None] >= sizes[CPU, None] == sizes[CPU, 0.4] == sizes[GPU, 0.4]
    assert sizes[GPU, 0.7] == sizes[CPU, 0.7] > 0.7 * free - block
    if free == 100 << 30:
        assert sizes[GPU, None] > 0.85 * free


def test_memory_that_torch_has_freed_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    free = [10]
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: free.append(30))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free[-1], 100))
    assert free_memory(GPU) == 30


def test_a_copy_leaves_room_to_make_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU, where the output head's codes are repacked: 8 bytes a weight."""
    spec = shape("llama-3.1-8b")
    lowered: list[int] = []
    packing: Any = SimpleNamespace(lowers=lambda linear: True, lower=lambda linear, bits: bits)

    def bits(device: torch.device, free: float) -> int:
        monkeypatch.setattr("engine.runtime.loading.memory.free_memory", lambda device: int(free))
        weights: Any = SimpleNamespace(
            embedding=SimpleNamespace(device=device), linears=[], add_copy=lambda *_: lowered.append(1)
        )
        return add_draft_copy(EngineConfig(draft_memory=0.9), spec, weights, packing)

    need, repacked = copy_bytes(spec, 4), 8 * spec.vocab * spec.hidden
    assert [bits(GPU, need + repacked + more) for more in (-1e6, 1e6)] == [0, 4]
    assert bits(CPU, 1.2 * need) == 4
    assert len(lowered) == 2
