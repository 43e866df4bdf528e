"""A checkpoint's generation_config.json: what it wants sampled like, where a request does not say."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

from engine.architecture.spec import read_generation_config
from engine.errors import ModelError

log = logging.getLogger("knapserve.engine")

# parameter: (key in the file, least, most, whether it counts things)
_PARAMETERS: dict[str, tuple[str, float, float, bool]] = {
    "temperature": ("temperature", 0, 2, False),
    "top_p": ("top_p", 0, 1, False),
    "top_k": ("top_k", -1, 2**31, True),
    "min_p": ("min_p", 0, 1, False),
    "repetition_penalty": ("repetition_penalty", 1e-3, 1e3, False),
    "max_tokens": ("max_new_tokens", 1, 2**31, True),
}


def sampling_defaults(directory: Path) -> tuple[tuple[str, float], ...]:
    """(name, value) by the names of `SamplingParams`. As in vLLM, `max_new_tokens` is a limit too, and `do_sample` is
    not read: greedy is temperature 0. Raises ModelError for values that make no sense."""
    config = read_generation_config(directory)
    return tuple(
        (name, _number(config[key], key, least, most, whole))
        for name, (key, least, most, whole) in _PARAMETERS.items()
        if config.get(key) is not None
    )


def _number(value: Any, key: str, least: float, most: float, whole: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ModelError(f"generation_config.json: {key} is {value!r}, not a number")
    if not least <= value <= most or (whole and value != int(value)) or (key == "top_p" and value == 0):
        raise ModelError(f"generation_config.json: {key} is {value}, which makes no sense")
    return int(value) if whole else float(value)
