"""transformers' `generate` as a contender of benches: plain, and with its own ways to speculate."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import torch

from engine.build import DTYPES, LoadedModel
from engine.clock import SystemClock
from engine.config import EngineConfig
from engine.contenders import Prompt, Tally
from engine.draft.fixed import exit_depth
from engine.errors import ConfigError
from engine.model.source import Source, SyntheticSource
from engine.model.spec import ModelSpec
from engine.types import SamplingParams

# What `generate` is asked for: its plain loop, or one of its own ways to speculate without a second model.
_KINDS = ("plain", "early-exit", "prompt-lookup")
_LOOKUP_TOKENS = 10


def add_hugging_face_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hf", nargs="?", const="plain", default="", metavar="KINDS",
        help=f"also run transformers' generate, in the same run; comma-separated: {', '.join(_KINDS)} (plain)",
    )  # fmt: skip


def hugging_face(
    kinds: str, config: EngineConfig, model: LoadedModel, sampling: SamplingParams
) -> list[HuggingFaceContender]:
    """The contenders that `--hf` names. Raises ConfigError."""
    names = list(dict.fromkeys(kind for kind in kinds.split(",") if kind))
    if wrong := sorted(set(names) - set(_KINDS)):
        raise ConfigError(f"--hf knows {', '.join(_KINDS)}, not {', '.join(wrong)}")
    if not names:
        return []
    if isinstance(model.source, SyntheticSource) and names != ["plain"]:
        raise ConfigError("a synthetic model's acceptance says nothing about transformers': use --hf plain")
    theirs = _load(model.source, model.key.dtype, model.decoder.device, sampling)
    exit_layer = config.layerskip_exit or exit_depth(model.spec.layers)
    return [HuggingFaceContender(kind, theirs, sampling, exit_layer, model.key.threads) for kind in names]


class HuggingFaceContender:
    """transformers' `generate` with its default settings and cache, same dtype and threads; greedy, one at a time."""

    def __init__(self, kind: str, model: Any, sampling: SamplingParams, exit_layer: int, threads: int) -> None:
        """`kind` is one of _KINDS; `exit_layer`: where early-exit drafts stop."""
        self.name = "hf-generate" if kind == "plain" else f"hf-{kind}"
        self.tally = Tally()
        self._model = model
        self._threads = threads
        self._clock = SystemClock()
        self._options: dict[str, Any] = {"max_new_tokens": sampling.max_tokens, "do_sample": False}
        self._options["repetition_penalty"] = 1.0  # whatever the checkpoint asks for: nobody else applies it here
        if sampling.ignore_eos:
            self._options["eos_token_id"] = None
        if kind == "early-exit":
            self._options["assistant_early_exit"] = exit_layer
        if kind == "prompt-lookup":
            self._options["prompt_lookup_num_tokens"] = _LOOKUP_TOKENS

    @torch.inference_mode()
    def run(self, prompts: Sequence[Prompt], streams: int) -> list[tuple[int, ...]]:
        out: list[tuple[int, ...]] = []
        ours = torch.get_num_threads()  # one for small models, whose passes have threads of their own
        torch.set_num_threads(self._threads)
        started = self._clock.now()
        for prompt in prompts:
            ids = torch.tensor([prompt.tokens], device=self._model.device)
            tokens = self._model.generate(ids, attention_mask=torch.ones_like(ids), **self._options)
            out.append(tuple(tokens[0, len(prompt.tokens) :].tolist()))
        self.tally.answered(sum(len(tokens) for tokens in out), self._clock.now() - started)
        torch.set_num_threads(ours)
        return out


def _load(source: Source, dtype: str, device: torch.device, sampling: SamplingParams) -> Any:
    """The model as transformers runs it. Raises ConfigError where the comparison would not be fair.

    Of a synthetic model only the shape is the same: its text means nothing anyway, and costs what it costs.
    """
    from transformers import AutoModelForCausalLM

    if not sampling.greedy:
        raise ConfigError("--hf compares greedy decoding only: use --temperature 0")
    if getattr(source, "path", None) is not None:
        raise ConfigError("--hf runs checkpoints in safetensors, not GGUF files: compare with --llama-cpp")
    models: Any = AutoModelForCausalLM
    if isinstance(source, SyntheticSource):
        return models.from_config(_config(source.spec), dtype=DTYPES[dtype]).eval().to(device)
    return models.from_pretrained(source.directory, dtype=DTYPES[dtype]).to(device)


def _config(spec: ModelSpec) -> Any:
    """transformers' configuration of a synthetic shape."""
    from transformers import LlamaConfig, Qwen2Config, Qwen3Config

    family: Any = Qwen3Config if spec.qk_norm else Qwen2Config if spec.qkv_bias else LlamaConfig
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
