"""Loading takes little more memory than the weights, in every dtype, tied or not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from engine.model.spec import parse_spec
from engine.model.weights import expected_tensors

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 10,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "vocab_size": 32768,
    "max_position_embeddings": 64,
}
LOAD = """
import resource, sys
import torch
from pathlib import Path
from engine.model.linear import linear_backend
from engine.model.spec import load_spec
from engine.model.weights import load_decoder

def own():  # kB that are this process's own; pages of mapped files are the system's to take back
    return int(next(l for l in open('/proc/self/status') if l.startswith('RssAnon')).split()[1])

directory, dtype, cpu = Path(sys.argv[1]), getattr(torch, sys.argv[2]), torch.device('cpu')
spec = load_spec(directory)
_, linear = linear_backend(cpu, dtype)
linear(torch.ones(64, 64, dtype=dtype), None)(torch.ones(1, 64, dtype=dtype))
before, most = own(), []
decoder = load_decoder(directory, spec, dtype, cpu, linear, lambda share: most.append(own()))
print(max(most) - before, own() - before)
"""


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_memory_is_that_of_the_weights(tmp_path: Path, tied: bool, dtype: str) -> None:
    config = CONFIG | {"tie_word_embeddings": tied}
    spec = parse_spec(config)
    (tmp_path / "config.json").write_text(json.dumps(config))
    tensors = {name: torch.zeros(shape, dtype=torch.bfloat16) for name, shape in expected_tensors(spec).items()}
    save_file(tensors, tmp_path / "model.safetensors")
    done = subprocess.run([sys.executable, "-c", LOAD, tmp_path, dtype], capture_output=True, text=True, check=True)
    peak, after = (1024 * int(kilobytes) for kilobytes in done.stdout.split())
    weights = spec.parameters * getattr(torch, dtype).itemsize
    assert after <= 1.05 * weights + (1 << 24)
    assert peak <= 1.15 * weights + (1 << 24)
