"""The latency profile: what a pass costs on one machine, as a sum over its sublayers and the requests in it.

pass = fixed + head(rows) + Σ attention [projection(rows) + Σ requests scan(n, rows of the request)] + Σ MLP mlp(rows)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

VERSION = 1  # of the cost model; part of the key


class ProfileError(Exception):
    """A profile file is damaged or of another version."""


@dataclass(frozen=True, slots=True)
class ProfileKey:
    """A profile fits exactly one of these."""

    hardware: str
    threads: int
    shape: str
    dtype: str
    backend: str  # linear and attention backends
    version: int = VERSION

    @property
    def slug(self) -> str:
        """A file name."""
        text = f"{self.hardware}-{self.threads}t-{self.shape}-{self.dtype}-{self.backend}-v{self.version}".lower()
        return "".join(c if c.isalnum() or c in "-." else "-" for c in text)


@dataclass(frozen=True, slots=True)
class LatencyProfile:
    """Seconds. Lists are values at the row counts `rows`; between them lines, beyond the last its slope goes on."""

    key: ProfileKey
    rows: tuple[int, ...]
    fixed: float
    projection_at: tuple[float, ...]
    mlp_at: tuple[float, ...]
    head_at: tuple[float, ...]
    scan_at: tuple[float, ...]  # per cached token
    residual: float  # median relative error of the fit over its observations
    worst: float  # largest relative error

    def projection(self, rows: float) -> float:
        """One attention sublayer without its cache scan."""
        return self._at(self.projection_at, rows)

    def mlp(self, rows: float) -> float:
        """One MLP sublayer."""
        return self._at(self.mlp_at, rows)

    def head(self, rows: float) -> float:
        """Final norm, output head and draw."""
        return self._at(self.head_at, rows)

    def scan(self, n: float, rows: float) -> float:
        """One attention sublayer reading n cached tokens for `rows` rows of one request."""
        return n * self._at(self.scan_at, rows)

    def _at(self, values: Sequence[float], rows: float) -> float:
        if rows <= 0:
            return 0.0
        knots = self.rows
        i = 1
        while i < len(knots) - 1 and rows > knots[i]:
            i += 1
        if len(knots) == 1:
            return values[0]
        share = (rows - knots[i - 1]) / (knots[i] - knots[i - 1])
        return max(values[i - 1] + share * (values[i] - values[i - 1]), 0.0)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> LatencyProfile:
        """Raises ProfileError for anything that is not a whole, valid profile."""
        try:
            raw: dict[str, Any] = json.loads(text)
            key = ProfileKey(**raw.pop("key"))
            lists: dict[str, Any] = {
                name: tuple(raw.pop(name)) for name in ("rows", "projection_at", "mlp_at", "head_at", "scan_at")
            }
            profile = cls(key=key, **lists, **raw)
            numbers = [profile.fixed, *profile.projection_at, *profile.mlp_at, *profile.head_at, *profile.scan_at]
            if not profile.rows or any(len(v) != len(profile.rows) for v in lists.values()):
                raise ProfileError("lists of unequal length")
            if not all(isinstance(x, int | float) and 0 <= x < 3600 for x in numbers):
                raise ProfileError("a value is not a time in seconds")
            if list(profile.rows) != sorted(set(profile.rows)) or profile.rows[0] < 1:
                raise ProfileError("row counts are not ascending")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ProfileError(f"not a latency profile: {error}") from None
        return profile
