"""Loading a model takes little more memory than its weights; limits of containers are read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from engine.architecture.spec import parse_spec
from engine.model.weights import expected_tensors
from engine.runtime.machine import container_cores, container_memory

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
