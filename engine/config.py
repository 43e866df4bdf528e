"""Settings of the engine, loaded by `server.settings`. This module does not import torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MENUS = ("auto", "skip", "low-bit")  # values of `knapspec_menu`
DRAFT_POLICIES = ("knapspec", "fixed", "layerskip", "none")

T = TypeVar("T")

# Limits of settings.
_COUNT = (1, math.inf)
_AMOUNT = (0, math.inf)
_SHARE = (0, 1)

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def parse_bytes(text: str) -> int:
    """Parse a size such as "4GiB", "512MB" or "1000000" into bytes. Raises ConfigError."""
    raw = text.strip().lower()
    digits = raw.rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        size = int(float(digits) * _UNITS[raw[len(digits) :].strip()])
    except (ValueError, KeyError, OverflowError):
        size = 0
    if size <= 0:
        raise ConfigError(f"'{text}' is not a size; valid sizes: 16MiB, 512MB, 1000000")
    return size


def parse_memory(text: str) -> int | float:
    """Parse a size ("4GiB") into int bytes, or a share of free memory ("0.4", "40%") into float. Raises ConfigError."""
    raw = text.strip().lower()
    try:
        if raw.endswith("%"):
            share = float(raw[:-1]) / 100
        elif "." in raw and raw.replace(".", "", 1).isdigit():
            share = float(raw)
        else:
            return parse_bytes(text)
    except (ValueError, ConfigError):
        raise ConfigError(f"'{text}' is neither a size (4GiB, 512MB) nor a share of free memory (0.4, 40%)") from None
    if not 0 < share <= 1:
        raise ConfigError(f"a share of memory must be above 0 and at most 1, not {text}")
    return share


def setting(
    default: T,
    help: str,
    *,
    choices: tuple[str, ...] | None = None,
    limits: tuple[float, float] | None = None,
    parse: Callable[[str], T] | None = None,
) -> T:
    """Declare a field of a settings dataclass, for `check` and `server.settings`.

    `choices` are the allowed values, `limits` the lowest and the highest. `parse` turns text into the value.
    """
    return field(default=default, metadata={"help": help, "choices": choices, "limits": limits, "parse": parse})


def flag(name: str) -> str:
    """Return the command line's flag for a setting."""
    return "--" + name.replace("_", "-")


def check(config: DataclassInstance, prefix: str = "") -> None:
    """Raise ConfigError if a field is outside its `choices` or `limits`. `prefix` precedes the names of settings."""
    for spec in fields(config):
        if not spec.metadata:  # a nested dataclass, which checks itself
            continue
        name, value = flag(prefix + spec.name), getattr(config, spec.name)
        choices, limits = spec.metadata["choices"], spec.metadata["limits"]
        if choices and value not in choices:
            raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {value}")
        if limits and value is not None and not limits[0] <= value <= limits[1]:
            low, high = limits
            allowed = f"at least {low:g}" if high == math.inf else f"between {low:g} and {high:g}"
            raise ConfigError(f"{name} must be {allowed}, not {value}")


def _path(text: str) -> Path:
    return Path(text).expanduser()


@dataclass(frozen=True)
class KnapSpecConfig:
    """Settings of the draft policy knapspec. Flags, variables and files add the prefix `knapspec_` to the names."""

    menu: str = setting(
        "auto",
        "policy knapspec: cheaper variants of a sublayer for drafts. skip: leave it out, as in the paper. low-bit: run "
        "its copy in fewer bits, perhaps with attention to the first and last tokens only. auto: both, if possible",
        choices=MENUS,
    )
    interval: int = setting(64, "policy knapspec: minimum rounds between two searches of a request (T)", limits=_COUNT)
    redecide: int = setting(8, "policy knapspec: minimum rounds between two decisions among known plans", limits=_COUNT)
    rows: int = setting(8, "policy knapspec: last verified tokens that a search evaluates plans on (r)", limits=_COUNT)
    memory: int = setting(
        2000, "policy knapspec: horizon in tokens over which observations of a plan are forgotten", limits=_COUNT
    )
    gamma: int = setting(10, "policy knapspec: maximum tokens drafted per round (D)", limits=_AMOUNT)
    tau: float = setting(
        0.5,
        "policy knapspec: minimum mean cosine similarity of a search state; states below are pruned",
        limits=(-1, 1),
    )
    max_skip: float = setting(
        0.8, "policy knapspec: maximum share of the sublayers' time that a plan skips (paper: 0.5)", limits=_SHARE
    )
    min_skip: float = setting(
        0.0,
        "policy knapspec: minimum share of the sublayers' time that a plan skips; above 0, drafting never stops (for "
        "comparisons)",
        limits=_SHARE,
    )
    resolution: int = setting(
        8, "policy knapspec: weight of the cheaper kind of sublayer in the knapsack, in ticks", limits=_COUNT
    )
    beam: int = setting(6, "policy knapspec: maximum states per sublayer in a search; 0: unlimited", limits=_AMOUNT)
    protect: tuple[int, ...] = setting(
        (),
        "policy knapspec: layers that plans never skip, such as 0,-1",
        parse=lambda text: tuple(int(part) for part in text.split(",")),
    )
    budget: float = setting(0.005, "policy knapspec: maximum share of time spent on searches", limits=_SHARE)

    def __post_init__(self) -> None:
        check(self, prefix="knapspec_")
        if self.min_skip > self.max_skip:
            raise ConfigError("--knapspec-min-skip must not be above --knapspec-max-skip")


@dataclass(frozen=True)
class FixedConfig:
    """Settings of the draft policy fixed. Flags, variables and files add the prefix `fixed_` to the names."""

    skip_ratio: float = setting(0.5, "policy fixed: share of the sublayers to skip", limits=_SHARE)
    plan: str = setting(
        "",
        "policy fixed: plan to use instead of a share: one digit per sublayer (attention, MLP, …) and for the head, "
        "or one digit for all. 0: skip; 1: run; 2: run the copy in fewer bits; 3: run that copy, with attention to the "
        "first and last tokens only",
    )
    gamma: int = setting(4, "policy fixed: maximum tokens drafted per round", limits=_AMOUNT)

    def __post_init__(self) -> None:
        check(self, prefix="fixed_")
        plan = self.plan
        if set(plan) - set("0123"):
            raise ConfigError(f"--fixed-plan must consist of the digits 0 to 3, not {plan}")
        if plan.endswith("0"):
            raise ConfigError(f"--fixed-plan must not end with 0, as drafts need the head; it is {plan}")
        if plan.endswith("3") or "3" in plan[1::2]:
            raise ConfigError(f"--fixed-plan has a 3, a window of the cache, where there is no attention: {plan}")


@dataclass(frozen=True)
class LayerSkipConfig:
    """Settings of the draft policy layerskip. Flags, variables and files add the prefix `layerskip_` to the names."""

    exit: int = setting(0, "policy layerskip: number of layers that drafts run; 0: a quarter of them", limits=_AMOUNT)
    gamma: int = setting(4, "policy layerskip: maximum tokens drafted per round", limits=_AMOUNT)

    def __post_init__(self) -> None:
        check(self, prefix="layerskip_")


@dataclass(frozen=True)
class EngineConfig:
    """All settings of the engine."""

    model: str | None = setting(
        None,
        "checkpoint directory, .gguf file, Hugging Face id (OWNER/NAME[@REVISION]) or synthetic:NAME; default: "
        "SmolLM2-135M-Instruct",
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
    draft_bits: str = setting(
        "auto",
        "bits of the copy of the weights for drafts; none: no copy; auto: 4, or none if the weights already have few "
        "bits or memory is short",
        choices=("auto", "none", "4", "5", "6", "8"),
    )
    draft_memory: int | float = setting(
        0.5,
        "maximum memory for the copy of the weights for drafts: a size (4GiB) or a share of free memory (0.5)",
        parse=parse_memory,
    )
    kernels: str = setting(
        "auto",
        "CPU kernels: native (bfloat16 only, compiled at the first start) or torch",
        choices=("auto", "native", "torch"),
    )
    threads: int = setting(0, "CPU threads of the model; 0: one per core, fewer for tiny models", limits=(0, 1024))
    max_model_len: int | None = setting(
        None, "maximum context length in tokens; default: the model's own", parse=int, limits=(2, math.inf)
    )
    max_num_seqs: int = setting(16, "maximum number of running requests", limits=_COUNT)
    max_num_batched_tokens: int | None = setting(
        None,
        "maximum tokens per pass, prompt chunks included; default: as many as take about one second",
        parse=int,
    )
    prefill_stall: float = setting(0.1, "maximum seconds of a round that processes prompts while other requests decode")
    kv_cache_memory: int | float = setting(
        0.4, "memory of the K/V cache: a size (4GiB) or a share of free memory (0.4)", parse=parse_memory
    )
    block_size: int = setting(16, "tokens per block of the K/V cache", limits=_COUNT)
    max_queued: int = setting(
        256, "maximum number of waiting requests; further ones are rejected with status 429", limits=_AMOUNT
    )

    draft_policy: str = setting("knapspec", "draft policy of requests that name none", choices=DRAFT_POLICIES)
    fixed: FixedConfig = FixedConfig()
    layerskip: LayerSkipConfig = LayerSkipConfig()
    draft_confidence: float = setting(
        0.7, "policies fixed and layerskip: minimum top-1 probability to continue a draft", limits=_SHARE
    )

    lookup: str = setting(
        "auto",
        "policy knapspec: draft by copying from an earlier occurrence of the last tokens, in the prompt or the answer, "
        "if that is expected to be faster (auto), or never (none)",
        choices=("auto", "none"),
    )
    knapspec: KnapSpecConfig = KnapSpecConfig()

    profile_dir: Path | None = setting(
        None,
        "the only directory of latency profiles; default: the user's directory, then the shipped profiles",
        parse=_path,
    )
    prior: str = setting(
        "auto",
        "policy knapspec: initial plans: a file made by `knapserve tune`, auto (those of this model, if any) or none",
    )
    profile: Path | None = setting(None, "latency profile file; it must match this machine and model", parse=_path)

    def __post_init__(self) -> None:
        check(self)
        if self.max_num_batched_tokens is not None and self.max_num_batched_tokens < self.max_num_seqs:
            raise ConfigError(
                "--max-num-batched-tokens must be at least --max-num-seqs: a pass has a token of every running request"
            )
        if not self.prefill_stall > 0:
            raise ConfigError(f"--prefill-stall must be a positive number of seconds, not {self.prefill_stall}")
