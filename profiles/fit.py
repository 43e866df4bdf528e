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
    spans: tuple[tuple[int, int], ...]  # how many attention sublayers read how many tokens (sliding windows: fewer)
    attention: tuple[int, ...]  # sublayers of each variant
    mlp: tuple[int, ...]
    head: tuple[int, ...]  # none or one
    seconds: float


def fit(key: ProfileKey, observations: Sequence[Observation]) -> LatencyProfile:
    """The profile that explains the passes best. Every row count among the observations becomes a knot.

    So does every context length but the shortest, which only tells reading from projecting. Row counts seen at fewer
    contexts than others, those of prompts, have the cost of a row and token that they read in common: in passes of
    theirs over short contexts reading is a few per cent, too little to be told for each.
    """
    rows = tuple(sorted({o.rows for o in observations}))
    width = len(rows)
    knots = [_knots([o for o in observations if o.rows == count]) for count in rows]
    wide = [len(each) < max(map(len, knots)) for each in knots]
    kinds = 3 * len(observations[0].attention)  # of what has weights, each with a price for every row count
    offsets = np.cumsum([1 + kinds * width, *(0 if w else len(k) for k, w in zip(knots, wide, strict=True))])
    design = np.zeros((len(observations), int(offsets[-1]) + 1))  # the last: a row and token of wide passes
    seconds = np.array([o.seconds for o in observations])
    for i, o in enumerate(observations):
        r = rows.index(o.rows)
        design[i, 0] = 1.0
        design[i, 1 + r : 1 + kinds * width : width] = (*o.attention, *o.mlp, *o.head)
        for count, tokens in o.spans:
            if wide[r]:
                design[i, -1] += count * o.rows * tokens
            else:
                design[i, offsets[r] : offsets[r + 1]] += count * _steps(knots[r], tokens)
    theta = _non_negative(design / seconds[:, None], np.ones(len(observations)))
    errors = np.abs(design @ theta - seconds) / seconds
    parts = theta[1 : 1 + kinds * width].reshape(3, -1, width).tolist()
    contexts = tuple(sorted({knot for each in knots for knot in each}))
    scans = [
        [
            theta[-1] * rows[r] * n if wide[r] else _steps(knots[r], n) @ theta[offsets[r] : offsets[r + 1]]
            for r in range(width)
        ]
        for n in contexts
    ]
    return LatencyProfile(
        key=key,
        rows=rows,
        contexts=contexts,
        fixed=float(theta[0]),
        projection_at=tuple(map(tuple, parts[0])),
        mlp_at=tuple(map(tuple, parts[1])),
        head_at=tuple(map(tuple, parts[2])),
        scan_at=tuple(tuple(float(x) for x in values) for values in scans),
        drafting=1.0,
        residual=float(np.median(errors)),
        worst=float(errors.max()),
    )


def price(profile: LatencyProfile, o: Observation) -> float:
    """Seconds that the profile gives the pass."""
    scan = sum(count * profile.scan(tokens, o.rows) for count, tokens in o.spans)
    weights = sum(
        count * price(o.rows, variant)
        for price, counts in ((profile.projection, o.attention), (profile.mlp, o.mlp), (profile.head, o.head))
        for variant, count in enumerate(counts, 1)
        if count
    )
    return profile.fixed + scan + weights


def _knots(observations: Sequence[Observation]) -> tuple[int, ...]:
    """Context lengths between which reading is taken to be linear."""
    seen = sorted({tokens for o in observations for count, tokens in o.spans if count and tokens})
    return tuple(seen[1:] or seen or [1])


def _steps(knots: Sequence[int], tokens: float) -> np.ndarray:
    """How much of each step from one knot to the next reading `tokens` takes; the last goes on beyond its end."""
    edges = np.array([0, *knots], dtype=float)
    shares = (tokens - edges[:-1]) / np.diff(edges)
    return np.concatenate([np.clip(shares[:-1], 0.0, 1.0), np.maximum(shares[-1:], 0.0)])


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
