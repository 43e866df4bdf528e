"""Rotary position embedding: which angles, from a checkpoint's config in any of its spellings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

_HUGE = 1e30  # nothing in a config is meant to be larger
ROPE_TYPES = ("default", "linear", "llama3", "yarn")
_REFUSED = {
    "dynamic": "its frequencies change with the length, so that cached keys would be wrong",
    "longrope": "its frequencies change with the length, so that cached keys would be wrong",
}


@dataclass(frozen=True, slots=True)
class RopeSpec:
    """Parameters of one RoPE type; those that its type does not use keep their defaults. Imports torch when it is used.

    `magnitude` multiplies cosines and sines (YaRN's attention factor). `original` is the context before scaling.
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

    @property
    def reach(self) -> int:
        """Positions that the scaling is for; model cards ask for YaRN without raising the config's own limit."""
        return int(self.original * self.factor) if self.type == "yarn" else 0

    def inverse_frequencies(self, head_dim: int) -> Tensor:
        """Radians a position for each pair of dimensions, [head_dim / 2] in float32.

        In the order of operations that transformers uses: at position 30,000 a last bit is a visible angle.
        """
        import torch

        inverse = 1.0 / self.theta ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
        if self.type == "linear":
            return inverse / self.factor
        if self.type == "llama3":
            return self._llama3(inverse)
        if self.type == "yarn":
            return self._yarn(inverse, head_dim)
        return inverse

    def _llama3(self, inverse: Tensor) -> Tensor:
        """Long wavelengths are divided by `factor`, short ones kept, those between interpolated."""
        wavelength = 2 * math.pi / inverse
        smooth = (self.original / wavelength - self.low_freq) / (self.high_freq - self.low_freq)
        smooth = smooth.clamp(0.0, 1.0)
        return (1 - smooth) * inverse / self.factor + smooth * inverse

    def _yarn(self, inverse: Tensor, head_dim: int) -> Tensor:
        """arXiv:2309.00071: a ramp between interpolated and extrapolated frequencies over the pairs."""

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
        kept = 1 - ramp
        return 1.0 / (self.factor * (1.0 / inverse)) * (1 - kept) + inverse * kept


def parse_rope(config: dict[str, Any]) -> RopeSpec:
    """From `rope_parameters`, or the hub's older `rope_theta` and `rope_scaling` (`type` or `rope_type`).

    Raises ModelError for types that are not supported and for parameters that make no sense.
    """
    given = _flat(config.get("rope_scaling") or config.get("rope_parameters") or {})  # in transformers' order
    kind = str(given.get("rope_type", given.get("type", "default")))
    if kind not in ROPE_TYPES:
        why = f" ({_REFUSED[kind]})" if kind in _REFUSED else ""
        raise ModelError(f"RoPE of type '{kind}' is not supported{why}; supported: {', '.join(ROPE_TYPES)}")
    partial = given.get("partial_rotary_factor", config.get("partial_rotary_factor"))
    if partial not in (None, 1, 1.0):
        raise ModelError("partial_rotary_factor is not supported: RoPE must turn whole heads")
    theta = float(given.get("rope_theta") or config.get("rope_theta") or 10000.0)
    if not 1 < theta < _HUGE:
        raise ModelError(f"rope_theta {theta} makes no sense")
    if kind == "default":
        return RopeSpec(theta=theta)
    positions = int(config["max_position_embeddings"])
    original = int(given.get("original_max_position_embeddings") or positions)
    factor = float(given["factor"] if given.get("factor") is not None else positions / original)
    if not (1 <= factor < _HUGE and original >= 1):
        raise ModelError(f"RoPE scaling by {factor} from {original} positions makes no sense")
    if kind == "linear":
        return RopeSpec(kind, theta, factor)
    if kind == "llama3":
        low, high = float(given["low_freq_factor"]), float(given["high_freq_factor"])
        if not 0 < low < high < _HUGE:
            raise ModelError(f"RoPE's low_freq_factor {low} must be positive and below high_freq_factor {high}")
        return RopeSpec(kind, theta, factor, original, low, high)
    fast, slow = float(given.get("beta_fast") or 32), float(given.get("beta_slow") or 1)
    try:
        magnitude = _yarn_magnitude(given, factor)
    except (ZeroDivisionError, OverflowError):
        magnitude = 0.0
    if not all(0 < value < _HUGE for value in (fast, slow, magnitude)):
        raise ModelError("YaRN's beta_fast, beta_slow and attention factor must be positive and finite")
    return RopeSpec(
        kind,
        theta,
        factor,
        original,
        beta_fast=fast,
        beta_slow=slow,
        truncate=bool(given.get("truncate", True)),
        magnitude=magnitude,
    )


def _flat(given: Any) -> dict[str, Any]:
    """The parameters themselves; some configs nest them by layer type, which is fine if all types agree."""
    if not isinstance(given, dict):
        raise ModelError(f"RoPE parameters must be an object, not {given!r}")
    nested = [value for value in given.values() if isinstance(value, dict)]
    if not nested:
        return given
    if any(value != nested[0] for value in nested):
        raise ModelError("different RoPE parameters for different layers are not supported")
    return nested[0]


def _yarn_magnitude(given: dict[str, Any], factor: float) -> float:
    """The paper's 0.1·ln(factor) + 1, unless the config says otherwise."""

    def magnitude(scale: float) -> float:
        return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0

    if given.get("attention_factor") is not None:
        return float(given["attention_factor"])
    if given.get("mscale") and given.get("mscale_all_dim"):
        return magnitude(float(given["mscale"])) / magnitude(float(given["mscale_all_dim"]))
    return magnitude(1.0)
