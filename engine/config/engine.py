"""Settings of the engine, loaded by `server.settings`. This module does not import torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from engine.config.fields import AMOUNT, COUNT, SHARE, PolicySettings, check, parse_file, parse_memory, setting
from engine.config.grammar import GrammarConfig
from engine.config.policies import (
    BASELINES,
    FixedConfig,
    KnapSpecConfig,
    PromptLookupConfig,
    added_policies,
    draft_policies,
)
from engine.errors import PAPERS, ConfigError

S = TypeVar("S", bound=PolicySettings)


@dataclass(frozen=True)
class EngineConfig:
    """All settings of the engine."""

    model: str | None = setting(
        None,
        "checkpoint directory, .gguf file, Hugging Face id (OWNER/NAME[@REVISION]) or synthetic:NAME; default: "
        "SmolLM2-135M-Instruct",
        group="model",
    )
    generation_config: str = setting(
        "auto",
        "sampling defaults of requests: from the checkpoint's generation_config.json (auto), or neutral (none)",
        choices=("auto", "none"),
    )
    device: str = setting("auto", "device of the model; auto: cuda if available", choices=("auto", "cpu", "cuda"))
    dtype: str = setting(
        "auto",
        "type of weights and activations; auto: bfloat16 where the kernels support it, otherwise float32",
        choices=("auto", "bfloat16", "float16", "float32"),
    )
    kernels: str = setting(
        "auto",
        "CPU kernels: native (bfloat16 only, compiled at the first start) or torch",
        choices=("auto", "native", "torch"),
    )
    threads: int = setting(0, "CPU threads of the model; 0: one per core, fewer for tiny models", limits=(0, 1024))
    profile_dir: Path | None = setting(
        None, "the only directory of latency profiles; default: the user's directory, then the shipped profiles"
    )
    profile: Path | None = setting(
        None, "file of latency profiles, one of which must match this machine and model", parse=parse_file
    )
    max_num_seqs: int = setting(16, "maximum number of running requests", limits=COUNT, group="requests and memory")
    max_model_len: int | None = setting(
        None, "maximum context length in tokens; default: the model's own", parse=int, limits=(2, math.inf)
    )
    max_queued: int = setting(
        256, "maximum number of waiting requests; further ones are rejected with status 429", limits=AMOUNT
    )
    max_num_batched_tokens: int | None = setting(
        None,
        "maximum tokens per pass, prompt chunks included; default: as many as take about one second",
        parse=int,
    )
    prefill_stall: float = setting(0.06, "maximum seconds of a round that processes prompts, if the model allows it")
    kv_cache_memory: int | float | None = setting(
        None,
        "memory of the K/V cache: a size (4GiB) or a share of free memory (0.4); default: 0.4, on a GPU 0.9 less what "
        "passes need",
        parse=parse_memory,
    )
    block_size: int = setting(16, "tokens per block of the K/V cache", limits=COUNT)
    grammar: GrammarConfig = GrammarConfig()
    draft_bits: str = setting(
        "auto",
        "bits of the copy of the weights for drafts; none: no copy; auto: 4, or none if the weights already have few "
        "bits or memory is short",
        choices=("auto", "none", "4", "5", "6", "8"),
        group="drafting",
    )
    draft_policy: str = setting(
        "knapspec",
        "draft policy of requests that name none: knapspec, fixed, lookup, none, or one of those for comparison",
    )
    draft_memory: int | float = setting(
        0.5,
        "maximum memory for the copy of the weights for drafts: a size (4GiB) or a share of free memory (0.5)",
        parse=parse_memory,
    )
    lookup: str = setting(
        "auto",
        "policy knapspec: draft by copying from an earlier occurrence of the last tokens, in the prompt or the answer, "
        "if that is expected to be faster (auto), or never (none)",
        choices=("auto", "none"),
    )
    prior: str = setting(
        "auto",
        "policy knapspec: initial plans: a file made by `knapserve tune`, auto (those of this model, if any) or none",
        parse=lambda text: text if text in ("auto", "none") else str(parse_file(text)),
    )
    knapspec: KnapSpecConfig = KnapSpecConfig()
    draft_confidence: float = setting(
        0.7,
        "policies fixed, layerskip and clasp: minimum top-1 probability to continue a draft",
        limits=SHARE,
        group=BASELINES,
    )
    fixed: FixedConfig = FixedConfig()
    prompt_lookup: PromptLookupConfig = PromptLookupConfig()
    policies: tuple[PolicySettings, ...] = setting(
        (), "", added=added_policies
    )  # settings of policies that packages add

    def __post_init__(self) -> None:
        if self.draft_policy not in (policies := draft_policies()):
            raise ConfigError(f"--draft-policy must be one of {', '.join(policies)}, not {self.draft_policy}; {PAPERS}")
        check(self)
        if self.max_num_batched_tokens is not None and self.max_num_batched_tokens < self.max_num_seqs:
            raise ConfigError(
                "--max-num-batched-tokens must be at least --max-num-seqs: a pass has a token of every running request"
            )
        if self.kernels == "native" and (self.device == "cuda" or self.dtype in ("float16", "float32")):
            raise ConfigError("--kernels native needs a CPU and --dtype bfloat16")
        if not self.prefill_stall > 0:
            raise ConfigError(f"--prefill-stall must be a positive number of seconds, not {self.prefill_stall}")

    def of(self, kind: type[S]) -> S:
        """Return the settings of a policy that a package adds, by their class; the defaults if none are given."""
        return next((each for each in self.policies if isinstance(each, kind)), kind())
