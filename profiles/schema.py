"""The latency profile: the cost of a pass on one machine, as a sum over its sublayers and requests.

pass = fixed + head(rows) + Σ attention [projection(rows) + Σ requests scan(n, rows of the request)] + Σ MLP mlp(rows)

Projection, mlp and head, which have weights, have a cost for each variant: the model's own weights, and a copy in fewer
bits.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

VERSION = 5  # the version of the cost model, a part of the key
_TABLES = ("projection_at", "mlp_at", "head_at")


class ProfileError(Exception):
    """A profile file is damaged."""


@dataclass(frozen=True, slots=True)
class ProfileKey:
    """The machine, shape, dtype, backends and copy of the weights that a profile is valid for."""

    hardware: str
    threads: int  # compute threads; 1 on a GPU
    shape: str
    dtype: str
    backend: str  # linear and attention backends
    draft_bits: int  # bits of the weights' copy for drafts; 0: there is none
    version: int = VERSION

    @property
    def machine(self) -> str:
        """The hardware and threads, for messages."""
        return self.hardware if self.threads == 1 else f"{self.hardware}, {self.threads} threads"

    @property
    def slug(self) -> str:
        """The key as part of a file name."""
        dtype = f"{self.dtype}-int{self.draft_bits}" if self.draft_bits else self.dtype
        return slug(f"{self.hardware}-{self.threads}t-{self.shape}-{dtype}-{self.backend}-v{self.version}")


def slug(text: str) -> str:
    """Return `text` in characters that every file name may have."""
    return "".join(c if c.isalnum() or c in "-." else "-" for c in text.lower())


@dataclass(frozen=True, slots=True)
class LatencyProfile:
    """Costs in seconds.

    Inner tuples hold the cost at the row counts `rows`, interpolated linearly, and extrapolated beyond the last. Parts
    with weights have one per variant, starting with variant 1 (`engine.plans`). `scan_at` has one per context
    length in `contexts`, interpolated likewise, starting from 0 at context 0.
    """

    key: ProfileKey
    rows: tuple[int, ...]
    contexts: tuple[int, ...]  # cached tokens
    fixed: float
    projection_at: tuple[tuple[float, ...], ...]  # [variants][rows]
    mlp_at: tuple[tuple[float, ...], ...]
    head_at: tuple[tuple[float, ...], ...]
    scan_at: tuple[tuple[float, ...], ...]  # [contexts][rows]
    drafting: float  # factor of a draft pass that follows another one of the same draft
    residual: float  # median relative error of the fit over its observations
    worst: float  # largest relative error

    @property
    def variants(self) -> int:
        """Number of variants with costs."""
        return len(self.projection_at)

    def projection(self, rows: float, variant: int = 1) -> float:
        """Return the cost of one attention sublayer without its cache scan."""
        return self._at(self.projection_at[variant - 1], rows)

    def mlp(self, rows: float, variant: int = 1) -> float:
        """Return the cost of one MLP sublayer."""
        return self._at(self.mlp_at[variant - 1], rows)

    def head(self, rows: float, variant: int = 1) -> float:
        """Return the cost of the final norm, the output head and sampling."""
        return self._at(self.head_at[variant - 1], rows)

    def scan(self, n: float, rows: float) -> float:
        """Return the cost of one attention sublayer reading `n` cached tokens for `rows` rows of one request."""
        knots = self.contexts
        i = min(bisect_left(knots, n), len(knots) - 1)
        low, before = (knots[i - 1], self._at(self.scan_at[i - 1], rows)) if i else (0, 0.0)
        return max(before + (n - low) / (knots[i] - low) * (self._at(self.scan_at[i], rows) - before), 0.0)

    def _at(self, values: Sequence[float], rows: float) -> float:
        return interpolate(self.rows, values, rows)

    def without_copy(self) -> LatencyProfile:
        """Return the profile of a start without a copy of the weights: the same but for the costs of the copy."""
        tables = {name: getattr(self, name)[:1] for name in _TABLES}
        return replace(self, key=replace(self.key, draft_bits=0), **tables)

    @classmethod
    def from_dict(cls, raw: object) -> LatencyProfile:
        """Make a profile from what `asdict` returns, through JSON or not. Raises ProfileError unless it is valid."""
        try:
            values: dict[str, Any] = dict(raw)  # type: ignore[call-overload]
            key = ProfileKey(**values.pop("key"))
            lists: dict[str, Any] = {name: tuple(values.pop(name)) for name in ("rows", "contexts")}
            lists |= {name: tuple(tuple(costs) for costs in values.pop(name)) for name in (*_TABLES, "scan_at")}
            profile = cls(key=key, **lists, **values)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ProfileError(f"not a latency profile: {error}") from None
        profile._validate()
        return profile

    def _validate(self) -> None:
        key = self.key
        if not all(isinstance(x, str) for x in (key.hardware, key.shape, key.dtype, key.backend)):
            raise ProfileError("hardware, shape, dtype and backend must be text")
        if not all(_is_int(x) for x in (key.threads, key.draft_bits, key.version, *self.rows, *self.contexts)):
            raise ProfileError("threads, draft bits, version, row counts and context lengths must be integers")
        for counts in (self.rows, self.contexts):
            if not counts or counts[0] < 1 or list(counts) != sorted(set(counts)):
                raise ProfileError("'rows' and 'contexts' must be positive and ascending")
        tables = [*(values for name in _TABLES for values in getattr(self, name)), *self.scan_at]
        if len(self.scan_at) != len(self.contexts) or any(len(values) != len(self.rows) for values in tables):
            raise ProfileError("lists of costs must be as long as 'rows' and 'contexts'")
        if not 1 <= self.variants == len(self.mlp_at) == len(self.head_at):
            raise ProfileError("attention, MLP and head must have costs for the same variants, at least one")
        seconds = [self.fixed, *(value for values in tables for value in values)]
        if not all(_is_number(x) and 0 <= x < 3600 for x in seconds):
            raise ProfileError("costs must be between 0 and 3600 seconds")
        if not _is_number(self.drafting) or not 0 < self.drafting < 100:
            raise ProfileError("'drafting' must be above 0 and below 100")
        if not all(_is_number(x) and x >= 0 for x in (self.residual, self.worst)):
            raise ProfileError("'residual' and 'worst' must not be negative")


def interpolate(knots: Sequence[int], values: Sequence[float], rows: float) -> float:
    """Return the cost at `rows` from those at row counts, as `LatencyProfile` describes; never negative."""
    if rows <= 0:
        return 0.0
    if len(knots) == 1:
        return values[0]
    i = min(max(bisect_left(knots, rows), 1), len(knots) - 1)
    share = (rows - knots[i - 1]) / (knots[i] - knots[i - 1])
    return max(values[i - 1] + share * (values[i] - values[i - 1]), 0.0)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
