"""Time plain decoding by vLLM with made-up weights: the last stage of `knapserve bench gpu`."""

import json
import subprocess
import sys
from pathlib import Path

from bench.files import read, write
from bench.kernels import spec_of
from bench.results import Row
from engine.architecture.spec import ModelSpec
from engine.config.engine import EngineConfig

_TOKENS = 128  # of an answer
# All iterations have the same prompt. Once it is cached, they read its last block and decode the answer.
_FLAGS = (
    *("--load-format", "dummy", "--skip-tokenizer-init", "--dtype", "bfloat16", "--enable-prefix-caching"),
    *("--batch-size", "1", "--max-num-seqs", "1", "--num-iters-warmup", "2", "--num-iters", "5"),
)


def main(model: str, folder: Path, contexts: list[int]) -> None:
    """Run `vllm bench latency` after each context; print the rows so far as JSON. Raises CalledProcessError."""
    result, rows = folder / "latency.json", list[Row]()
    shape = configuration(spec_of(EngineConfig(model=model)), max(contexts) + _TOKENS)
    write(folder / "config.json", json.dumps(shape))
    vllm = (sys.executable, "-m", "vllm.entrypoints.cli.main", "bench", "latency", "--model", str(folder), *_FLAGS)
    for context in contexts:
        lengths = ("--input-len", str(context), "--output-len", str(_TOKENS))
        subprocess.run((*vllm, *lengths, "--output-json", str(result)), check=True)
        seconds = json.loads(read(result))["percentiles"]["50"]
        rows.append({"context": context, "tokens_per_second": _TOKENS / seconds})
        print(json.dumps(rows), flush=True)


def configuration(spec: ModelSpec, positions: int) -> Row:
    """Return a config.json of a shape for `positions` tokens, without biases and Qwen's windows, both rare."""
    return {
        "architectures": [spec.architecture],
        "model_type": spec.architecture.removesuffix("ForCausalLM").lower(),
        "num_hidden_layers": spec.layers,
        "hidden_size": spec.hidden,
        "intermediate_size": spec.intermediate,
        "num_attention_heads": spec.heads,
        "num_key_value_heads": spec.kv_heads,
        "head_dim": spec.head_dim,
        "vocab_size": spec.vocab,
        "max_position_embeddings": positions,
        "sliding_window": max(spec.windows, default=None),
    }


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), [int(context) for context in sys.argv[3:]])
