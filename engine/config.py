"""Settings of the engine. Loaded from file < environment `KNAPSERVE_*` < flags by `server.settings`; no torch here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MENUS = ("auto", "skip", "low-bit")  # of `knapspec_menu`

# Limits of settings.
_COUNT = (1, math.inf)
_AMOUNT = (0, math.inf)
_SHARE = (0, 1)

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def parse_bytes(text: str) -> int:
    """Bytes from "4GiB", "512MB", "1000000". Raises ConfigError."""
    raw = text.strip().lower()
    digits = raw.rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        size = int(float(digits) * _UNITS[raw[len(digits) :].strip()])
    except (ValueError, KeyError, OverflowError):
        size = 0
    if size <= 0:
        raise ConfigError(f"'{text}' is not a size such as 16MiB, 512MB or 1000000")
    return size


def parse_memory(text: str) -> int | float:
    """Bytes ("4GiB", "512MB", "1000000") as int, or a share of the memory that is free ("0.4", "40%") as float."""
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
        raise ConfigError(f"a share of memory lies in (0, 1], not {text}")
    return share


def setting(
    default: Any,
    help: str,
    *,
    choices: tuple[str, ...] | None = None,
    limits: tuple[float, float] | None = None,
    parse: Callable[[str], Any] | None = None,
) -> Any:
    """Declare a field of a settings dataclass, for `check` and `server.settings`.

    `choices` are the allowed values, `limits` the lowest and the highest. `parse` turns text into the value.
    """
    return field(default=default, metadata={"help": help, "choices": choices, "limits": limits, "parse": parse})


def check(config: DataclassInstance, prefix: str = "") -> None:
    """Raise ConfigError if a field is outside its `choices` or `limits`. `prefix` precedes the names of settings."""
    for spec in fields(config):
        if not spec.metadata:  # a nested dataclass, which checks itself
            continue
        name, value = prefix + spec.name, getattr(config, spec.name)
        choices, limits = spec.metadata["choices"], spec.metadata["limits"]
        if choices and value not in choices:
            raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {value}")
        if limits and value is not None and not limits[0] <= value <= limits[1]:
            low, high = limits
            allowed = f"at least {low:g}" if high == math.inf else f"between {low:g} and {high:g}"
            raise ConfigError(f"{name} must be {allowed}, not {value}")


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


@dataclass(frozen=True)
class KnapSpecConfig:
    """Settings of the draft policy knapspec. Flags, variables and files call the field `x` `knapspec_x`."""

    menu: str = setting(
        "auto",
        "policy knapspec: what drafts may run of a sublayer besides itself: skip (nothing, as in the paper), low-bit "
        "(its copy in fewer bits, of attention also over the first and last tokens only); auto: both, as far as the "
        "model has them",
        choices=MENUS,
    )
    interval: int = setting(64, "policy knapspec: rounds between searches of one request (T)", limits=_COUNT)
    redecide: int = setting(8, "policy knapspec: least rounds between decisions among known plans", limits=_COUNT)
    rows: int = setting(8, "policy knapspec: rows of verified context a search looks at (r)", limits=_COUNT)
    memory: int = setting(
        2000, "policy knapspec: tokens of text over which what was seen of a plan fades", limits=_COUNT
    )
    gamma: int = setting(10, "policy knapspec: most tokens drafted per round (D)", limits=_AMOUNT)
    tau: float = setting(0.5, "policy knapspec: prune states whose mean cosine falls below this", limits=(-1, 1))
    max_skip: float = setting(
        0.8, "policy knapspec: most of the sublayers' time a plan may skip (paper: 0.5)", limits=_SHARE
    )
    min_skip: float = setting(
        0.0,
        "policy knapspec: least of the time that plans skip, and drafting is never given up (for comparisons)",
        limits=_SHARE,
    )
    resolution: int = setting(8, "policy knapspec: ticks that the cheaper kind of sublayer weighs", limits=_COUNT)
    beam: int = setting(6, "policy knapspec: most states kept per sublayer; 0: all", limits=_AMOUNT)
    protect: tuple[int, ...] = setting((), "policy knapspec: layers never skipped, e.g. 0,-1", parse=_integers)
    budget: float = setting(0.005, "policy knapspec: most of the time spent searching", limits=_SHARE)

    def __post_init__(self) -> None:
        check(self, prefix="knapspec_")
        if self.min_skip > self.max_skip:
            raise ConfigError("knapspec_min_skip must not be above knapspec_max_skip")


@dataclass(frozen=True)
class EngineConfig:
    """Everything `engine.runtime.build.build_engine` needs."""

    model: str | None = setting(
        None,
        "folder of a checkpoint, .gguf file, hub id (OWNER/NAME[@REVISION]) or synthetic:NAME; "
        "without it SmolLM2-135M-Instruct",
    )
    generation_config: str = setting(
        "auto",
        "sampling defaults of requests: auto takes the checkpoint's generation_config.json, none leaves them neutral",
        choices=("auto", "none"),
    )
    device: str = setting("auto", "where to run", choices=("auto", "cpu", "cuda"))
    dtype: str = setting(
        "auto",
        "weights and activations; auto is bfloat16, on a CPU without its products or AVX2 kernels float32",
        choices=("auto", "bfloat16", "float16", "float32"),
    )
    draft_bits: str = setting(
        "auto",
        "bits of the copy of the weights that drafts run; auto: 4, none where the weights have few bits already or "
        "memory is short",
        choices=("auto", "none", "4", "5", "6", "8"),
    )
    draft_memory: int | float = setting(
        0.5, "most memory for that copy: bytes (4GiB) or a share of what is free after loading", parse=parse_memory
    )
    kernels: str = setting(
        "auto",
        "what runs on a CPU: our own kernels (bfloat16 only, compiled at the first start) or torch's operations",
        choices=("auto", "native", "torch"),
    )
    threads: int = setting(0, "CPU threads for the model; 0: one per core, fewer for tiny models", limits=(0, 1024))
    max_model_len: int | None = setting(
        None, "longest context in tokens; default: the model's own", parse=int, limits=(2, math.inf)
    )
    max_num_seqs: int = setting(16, "most requests running at once", limits=_COUNT)
    max_num_batched_tokens: int | None = setting(
        None,
        "most rows of one verify pass, prompt chunks included; default: what takes about a second by the profile",
        parse=int,
    )
    prefill_stall: float = setting(
        0.1, "seconds that a round may take while prompts are read beside requests that decode"
    )
    kv_cache_memory: int | float = setting(
        0.4, "memory for the K/V cache: bytes (4GiB) or a share of what is free (0.4)", parse=parse_memory
    )
    block_size: int = setting(16, "tokens per cache block", limits=_COUNT)
    max_queued: int = setting(256, "requests that may wait beyond those that run; more get 429", limits=_AMOUNT)

    draft_policy: str = setting(
        "knapspec", "default draft policy: knapspec, fixed, layerskip or none; requests may name another"
    )
    fixed_skip_ratio: float = setting(0.5, "policy fixed: share of the sublayers skipped", limits=_SHARE)
    fixed_plan: str = setting(
        "",
        "policy fixed: what to draft with instead, for every sublayer (attention, MLP, …) and the head 0 to skip, "
        "1 to run it, 2 to run its copy in fewer bits, 3 that of an attention over the first and last tokens only; one "
        "digit is for all",
    )
    fixed_gamma: int = setting(4, "policy fixed: most tokens drafted per round", limits=_AMOUNT)
    layerskip_exit: int = setting(
        0, "policy layerskip: layers run before the exit; 0: a quarter of them", limits=_AMOUNT
    )
    layerskip_gamma: int = setting(4, "policy layerskip: tokens drafted per round", limits=_AMOUNT)
    draft_confidence: float = setting(
        0.7, "policies fixed and layerskip: stop drafting below this top-1 probability", limits=_SHARE
    )

    lookup: str = setting(
        "auto",
        "policy knapspec: auto drafts what followed the text's end where it stood before, in the prompt or the answer, "
        "whenever that promises more; none never does",
        choices=("auto", "none"),
    )
    knapspec: KnapSpecConfig = KnapSpecConfig()

    profile_dir: Path | None = setting(
        None,
        "latency profiles are taken from here alone, and kept here; default: the user's directory, then those shipped",
        parse=_path,
    )
    prior: str = setting(
        "auto",
        "policy knapspec: plans to begin with: a file of `knapserve tune`, auto (those of this model, if any) or none",
    )
    profile: Path | None = setting(None, "use this latency profile; it must match this machine and model", parse=_path)

    def __post_init__(self) -> None:
        check(self)
        if set(self.fixed_plan) - set("0123") or self.fixed_plan.endswith("0"):
            raise ConfigError(f"fixed_plan is made of 0, 1, 2 and 3, and runs the head, not {self.fixed_plan}")
        if self.max_num_batched_tokens is not None and self.max_num_batched_tokens < self.max_num_seqs:
            raise ConfigError("max_num_batched_tokens must be at least max_num_seqs: every running request needs a row")
        if not self.prefill_stall > 0:
            raise ConfigError(f"prefill_stall must be a time in seconds, not {self.prefill_stall}")
