"""Sampling defaults from a checkpoint's generation_config.json or from a GGUF file's metadata."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.architecture.spec import read_generation_config
from engine.errors import ModelError

# parameter: (key in generation_config.json, key in GGUF metadata, minimum, maximum, whether it is an integer)
_PARAMETERS: dict[str, tuple[str, str, float, float, bool]] = {
    "temperature": ("temperature", "general.sampling.temp", 0, 2, False),
    "top_p": ("top_p", "general.sampling.top_p", 0, 1, False),
    "top_k": ("top_k", "general.sampling.top_k", -1, 2**31, True),
    "min_p": ("min_p", "general.sampling.min_p", 0, 1, False),
    "repetition_penalty": ("repetition_penalty", "general.sampling.penalty_repeat", 1e-3, 1e3, False),
    "max_tokens": ("max_new_tokens", "", 1, 2**31, True),
}


def sampling_defaults(directory: Path) -> tuple[tuple[str, float], ...]:
    """Return (name in `SamplingParams`, value). Raises ModelError for invalid values.

    As in vLLM, `max_new_tokens` also is a limit, and `do_sample` is ignored: greedy decoding is temperature 0.
    """
    return check_defaults("generation_config.json", 0, read_generation_config(directory).get)


def check_defaults(file: str, column: int, value_of: Callable[[str], Any]) -> tuple[tuple[str, float], ...]:
    """Return (name in `SamplingParams`, value). `column`: 1 for keys of GGUF. Raises ModelError for invalid values."""
    return tuple(
        (name, _number(file, value, keys[column], low, high, is_int))
        for name, (*keys, low, high, is_int) in _PARAMETERS.items()
        if (value := value_of(keys[column])) is not None
    )


def _number(file: str, value: Any, key: str, low: float, high: float, is_int: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ModelError(f"{file}: {key} must be a number, not {value!r}")
    above = key.endswith("top_p")
    if not low <= value <= high or (is_int and value != int(value)) or (above and value == 0):
        kind, least = "whole number" if is_int else "number", "above 0" if above else f"at least {low:g}"
        raise ModelError(f"{file}: {key} is {value}; it must be a {kind}, {least} and at most {high:.10g}")
    return int(value) if is_int else float(value)
