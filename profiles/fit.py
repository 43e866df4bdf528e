"""Fit a profile to timed whole passes by least squares on relative errors, coefficients not negative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiles.schema import LatencyProfile, ProfileKey


@dataclass(frozen=True, slots=True)
class Observation:
    """A timed pass of one request: `rows` rows at a context through some sublayers, with head and draw or not."""

    rows: int
    context: float  # cached tokens read, mean over the attention sublayers: sliding windows read less
    attention: int  # sublayers run
    mlp: int
    head: bool
    seconds: float


def fit(key: ProfileKey, observations: Sequence[Observation]) -> LatencyProfile:
    """The profile that explains the passes best. Every row count among the observations becomes a knot."""
    knots = tuple(sorted({o.rows for o in observations}))
    width = len(knots)
    design = np.zeros((len(observations), 1 + 4 * width))
    seconds = np.array([o.seconds for o in observations])
    for i, o in enumerate(observations):
        k = knots.index(o.rows)
        design[i, 0] = 1.0
        design[i, 1 + k] = o.attention
        design[i, 1 + width + k] = o.mlp
        design[i, 1 + 2 * width + k] = float(o.head)
        design[i, 1 + 3 * width + k] = o.attention * o.context
    weights = 1.0 / seconds
    theta = _non_negative(design * weights[:, None], np.ones(len(observations)))
    errors = np.abs(design @ theta - seconds) / seconds
    parts = [tuple(float(x) for x in theta[1 + j * width : 1 + (j + 1) * width]) for j in range(4)]
    return LatencyProfile(
        key=key,
        rows=knots,
        fixed=float(theta[0]),
        projection_at=parts[0],
        mlp_at=parts[1],
        head_at=parts[2],
        scan_at=parts[3],
        residual=float(np.median(errors)),
        worst=float(errors.max()),
    )


def _non_negative(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Least squares with negative coefficients pinned to zero one by one, the most negative first."""
    active = list(range(a.shape[1]))
    scale = np.linalg.norm(a, axis=0)
    scale[scale == 0] = 1.0
    while True:
        solution, *_ = np.linalg.lstsq(a[:, active] / scale[active], b, rcond=None)
        if not len(solution) or solution.min() >= 0:
            theta = np.zeros(a.shape[1])
            theta[active] = solution / scale[active]
            return theta
        del active[int(solution.argmin())]
