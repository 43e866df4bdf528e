"""Benchmark target: `generate` of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from bench.measurements import RunStats, Totals
from bench.targets import Prompt
from engine.architecture.spec import ModelSpec
from engine.checkpoints.source import Source, SyntheticSource
from engine.clock import SystemClock
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from engine.runtime.loading.choices import torch_dtype
from engine.types import SamplingParams


def hugging_face(enabled: bool, model: LoadedModel, sampling: SamplingParams) -> list[HuggingFaceTarget]:
    """Return the target for `--hf`. Raises ConfigError."""
    if not enabled:
        return []
    loaded = _load(model.source, str(model.decoder.dtype).removeprefix("torch."), model.decoder.device, sampling)
    return [HuggingFaceTarget(loaded, sampling, model.key.threads)]


class HuggingFaceTarget:
    """`generate` with default settings, the same dtype and threads; greedy, one prompt at a time."""

    name = "hf-generate"

    def __init__(self, model: Any, sampling: SamplingParams, threads: int) -> None:
        self.stats = RunStats()
        self._model = model
        self._threads = threads
        self._clock = SystemClock()
        self._options: dict[str, Any] = {"max_new_tokens": sampling.max_tokens, "do_sample": False}
        # No other target applies the checkpoint's own penalty.
        self._options["repetition_penalty"] = 1.0
        if sampling.ignore_eos:
            self._options["eos_token_id"] = None

    @torch.inference_mode()
    def run(self, prompts: Sequence[Prompt], streams: int) -> list[tuple[int, ...]]:
        out: list[tuple[int, ...]] = []
        threads = torch.get_num_threads()  # 1 for small models, whose kernels have threads
        torch.set_num_threads(self._threads)
        started = self._clock.now()
        for prompt in prompts:
            ids = torch.tensor([prompt.tokens], device=self._model.device)
            tokens = self._model.generate(ids, attention_mask=torch.ones_like(ids), **self._options)
            out.append(tuple(tokens[0, len(prompt.tokens) :].tolist()))
        seconds = self._clock.now() - started
        self.stats.batches.append(Totals(tokens=sum(map(len, out)), seconds=seconds))
        torch.set_num_threads(threads)
        return out


def _load(source: Source, dtype: str, device: torch.device, sampling: SamplingParams) -> Any:
    """Load the model in transformers. Raises ConfigError if the comparison would not be fair.

    Of a synthetic model, transformers gets the shape with other random weights of the same cost.
    """
    from transformers import AutoModelForCausalLM

    if not sampling.greedy:
        raise ConfigError("--hf supports greedy decoding only; use --temperature 0")
    if source.gguf_path is not None:
        raise ConfigError("--hf requires a safetensors checkpoint; use --llama-cpp for GGUF files")
    models: Any = AutoModelForCausalLM
    if isinstance(source, SyntheticSource):
        return models.from_config(_config(source.spec), dtype=torch_dtype(dtype)).eval().to(device)
    return models.from_pretrained(source.directory, dtype=torch_dtype(dtype)).to(device)


def _config(spec: ModelSpec) -> Any:
    from transformers import LlamaConfig, Qwen2Config, Qwen3Config

    family: Any = LlamaConfig
    if spec.qk_norm:
        family = Qwen3Config
    elif spec.qkv_bias:
        family = Qwen2Config
    return family(
        vocab_size=spec.vocab,
        hidden_size=spec.hidden,
        intermediate_size=spec.intermediate,
        num_hidden_layers=spec.layers,
        num_attention_heads=spec.heads,
        num_key_value_heads=spec.kv_heads,
        head_dim=spec.head_dim,
        max_position_embeddings=spec.max_positions,
        tie_word_embeddings=spec.tied,
        bos_token_id=None,
        eos_token_id=None,
    )
