"""Sampling defaults from a checkpoint's generation_config.json."""

import math
from pathlib import Path
from typing import Any

from engine.architecture.spec import read_generation_config
from engine.errors import ModelError

# parameter: (key in the file, minimum, maximum, whether it is an integer)
_PARAMETERS: dict[str, tuple[str, float, float, bool]] = {
    "temperature": ("temperature", 0, 2, False),
    "top_p": ("top_p", 0, 1, False),
    "top_k": ("top_k", -1, 2**31, True),
    "min_p": ("min_p", 0, 1, False),
    "repetition_penalty": ("repetition_penalty", 1e-3, 1e3, False),
    "max_tokens": ("max_new_tokens", 1, 2**31, True),
}


def sampling_defaults(directory: Path) -> tuple[tuple[str, float], ...]:
    """Return (name in `SamplingParams`, value). Raises ModelError for invalid values.

    As in vLLM, `max_new_tokens` also is a limit, and `do_sample` is ignored: greedy decoding is temperature 0.
    """
    config = read_generation_config(directory)
    return tuple(
        (name, _number(config[key], key, low, high, is_int))
        for name, (key, low, high, is_int) in _PARAMETERS.items()
        if config.get(key) is not None
    )


def _number(value: Any, key: str, low: float, high: float, is_int: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ModelError(f"generation_config.json: {key} must be a number, not {value!r}")
    if not low <= value <= high or (is_int and value != int(value)) or (key == "top_p" and value == 0):
        kind, least = "whole number" if is_int else "number", "above 0" if key == "top_p" else f"at least {low:g}"
        raise ModelError(
            f"generation_config.json: {key} is {value}; it must be a {kind}, {least} and at most {high:.10g}"
        )
    return int(value) if is_int else float(value)
