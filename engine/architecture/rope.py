"""Parameters of the rotary position embedding (RoPE), from the different spellings in config.json."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

_HUGE = 1e30  # larger values are invalid
ROPE_TYPES = ("default", "linear", "llama3", "yarn")


@dataclass(frozen=True, slots=True)
class RopeSpec:
    """Parameters of one RoPE type. Parameters of other types keep their defaults.

    `magnitude` multiplies cosines and sines (YaRN's attention factor). `original` is the context length before scaling.
    `divisors` of the frequencies before scaling, one for each pair, come from GGUF files; (): none.
    Methods import torch when they are called.
    """

    type: str = "default"
    theta: float = 10000.0
    factor: float = 1.0
    original: int = 0
    low_freq: float = 1.0
    high_freq: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    magnitude: float = 1.0
    divisors: tuple[float, ...] = ()

    @property
    def reach(self) -> int:
        """Context length of YaRN scaling, else 0. Model cards enable YaRN without raising max_position_embeddings."""
        return int(self.original * self.factor) if self.type == "yarn" else 0

    def inverse_frequencies(self, head_dim: int) -> Tensor:
        """Return the radians per position of each pair of dimensions, float32 [head_dim / 2].

        The order of operations is that of transformers: at position 30,000, the last bit changes the angle visibly.
        """
        import torch

        inverse = 1.0 / self.theta ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
        if self.divisors:
            inverse /= torch.tensor(self.divisors, dtype=torch.float32)
        if self.type == "linear":
            return inverse / self.factor
        if self.type == "llama3":
            return self._llama3(inverse)
        if self.type == "yarn":
            return self._yarn(inverse, head_dim)
        return inverse

    def _llama3(self, inverse: Tensor) -> Tensor:  # [head_dim / 2] -> [head_dim / 2]
        """Divide the frequencies of long wavelengths by `factor`, keep those of short ones, interpolate between."""
        wavelength = 2 * math.pi / inverse
        smooth = (self.original / wavelength - self.low_freq) / (self.high_freq - self.low_freq)
        smooth = smooth.clamp(0.0, 1.0)
        return (1 - smooth) * inverse / self.factor + smooth * inverse

    def _yarn(self, inverse: Tensor, head_dim: int) -> Tensor:  # [head_dim / 2] -> [head_dim / 2]
        """Blend interpolated and extrapolated frequencies along a ramp over the pairs (arXiv:2309.00071)."""
        import torch

        def pair_of(rotations: float) -> float:
            return head_dim * math.log(self.original / (rotations * 2 * math.pi)) / (2 * math.log(self.theta))

        low, high = pair_of(self.beta_fast), pair_of(self.beta_slow)
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, head_dim - 1)
        if low == high:
            high += 0.001
        ramp = ((torch.arange(head_dim // 2, dtype=torch.float32) - low) / (high - low)).clamp(0, 1)
        extrapolated = 1 - ramp
        return 1.0 / (self.factor * (1.0 / inverse)) * (1 - extrapolated) + inverse * extrapolated


def parse_rope(config: dict[str, Any]) -> RopeSpec:
    """Parse `rope_parameters`, or the older `rope_theta` and `rope_scaling` with `type` or `rope_type`.

    Raises ModelError for unsupported types and invalid parameters.
    """
    parameters = config.get("rope_scaling") or config.get("rope_parameters") or {}  # in transformers' order
    if not isinstance(parameters, dict) or any(isinstance(value, dict) for value in parameters.values()):
        raise ModelError(f"RoPE parameters must be one object for all layers, not {parameters!r}")
    kind = str(parameters.get("rope_type", parameters.get("type", "default")))
    if kind not in ROPE_TYPES:
        varies = kind in ("dynamic", "longrope")
        why = " (its frequencies depend on the length, which would invalidate cached keys)" if varies else ""
        raise ModelError(f"RoPE of type '{kind}' is not supported{why}; supported: {', '.join(ROPE_TYPES)}")
    partial = parameters.get("partial_rotary_factor", config.get("partial_rotary_factor"))
    if partial not in (None, 1, 1.0):
        raise ModelError("partial_rotary_factor is not supported: RoPE must rotate whole heads")
    theta = number(parameters, "rope_theta", config.get("rope_theta") or 10000.0)
    if not 1 < theta < _HUGE:
        raise ModelError(f"rope_theta is {theta}; it must be above 1")
    if kind == "default":
        return RopeSpec(theta=theta)
    positions = int(config["max_position_embeddings"])
    original = int(number(parameters, "original_max_position_embeddings", positions) or positions)
    factor = number(parameters, "factor", positions / max(original, 1))
    if not (1 <= factor < _HUGE and original >= 1):
        raise ModelError(
            f"RoPE scaling has the factor {factor} and {original} original positions; both must be at least 1"
        )
    if kind == "linear":
        return RopeSpec(kind, theta, factor)
    if kind == "llama3":
        low, high = number(parameters, "low_freq_factor"), number(parameters, "high_freq_factor")
        if not 0 < low < high < _HUGE:
            raise ModelError(f"RoPE's low_freq_factor is {low}; it must be above 0 and below high_freq_factor, {high}")
        return RopeSpec(kind, theta, factor, original, low, high)
    fast, slow = number(parameters, "beta_fast", 32), number(parameters, "beta_slow", 1)
    try:
        magnitude = _yarn_magnitude(parameters, factor)
    except (ZeroDivisionError, OverflowError):
        magnitude = 0.0
    if not all(0 < value < _HUGE for value in (fast, slow, magnitude)):
        raise ModelError("YaRN's beta_fast, beta_slow and attention factor must be positive and finite")
    truncate = bool(parameters.get("truncate", True))
    return RopeSpec(
        kind, theta, factor, original, beta_fast=fast, beta_slow=slow, truncate=truncate, magnitude=magnitude
    )


def number(fields: dict[str, Any], key: str, default: Any = None) -> float:
    """Return a number, perhaps infinite or none. Raises KeyError if there is none, and ModelError for anything else."""
    value = fields[key] if default is None or fields.get(key) is not None else default
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ModelError(f"{key} is {value!r}; it must be a number") from None


def _yarn_magnitude(parameters: dict[str, Any], factor: float) -> float:
    """Return YaRN's attention factor: 0.1·ln(factor) + 1, unless the configuration sets it."""

    def magnitude(scale: float) -> float:
        return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0

    if parameters.get("attention_factor") is not None:
        return number(parameters, "attention_factor")
    if parameters.get("mscale") and parameters.get("mscale_all_dim"):
        return magnitude(number(parameters, "mscale")) / magnitude(number(parameters, "mscale_all_dim"))
    return magnitude(1.0)
