"""Fit a latency profile to timed passes: least squares on relative errors with non-negative coefficients."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from profiles.schema import LatencyProfile, ProfileKey, interpolate


@dataclass(frozen=True, slots=True)
class Observation:
    """A timed pass of one request with `rows` rows through some sublayers, with or without the head."""

    rows: int
    spans: tuple[tuple[int, int], ...]  # (attention sublayers, cached tokens that each of them reads)
    attention: tuple[int, ...]  # number of sublayers by variant
    mlp: tuple[int, ...]
    head: tuple[int, ...]  # 0 or 1 by variant
    seconds: float


def fit(key: ProfileKey, observations: Sequence[Observation]) -> LatencyProfile:
    """Fit the profile to the observations. Each of their row counts becomes a knot.

    A variant's costs at row counts at which it was not observed, as of a copy at those of prompts, continue its others.
    So does each context length but the shortest, which only separates scans from projections. Row counts with fewer
    contexts than others, those of prompts, share one scan cost per row and token: over short contexts, scans take a few
    per cent of a pass, too little to fit a cost for each row count.
    """
    rows = tuple(sorted({o.rows for o in observations}))
    width = len(rows)
    knots = [_knots([o for o in observations if o.rows == count]) for count in rows]
    wide = [len(row_knots) < max(map(len, knots)) for row_knots in knots]
    kinds = 3 * len(observations[0].attention)  # parts with weights, each with a cost for every row count
    offsets = np.cumsum([1 + kinds * width, *(0 if w else len(k) for k, w in zip(knots, wide, strict=True))])
    # Last column: scan cost per row and token of wide passes.
    design = np.zeros((len(observations), int(offsets[-1]) + 1))
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
    costs = theta[1 : 1 + kinds * width].reshape(-1, width).tolist()
    seen = design[:, 1 : 1 + kinds * width].any(axis=0).reshape(-1, width)
    parts = [_continued(rows, values, observed) for values, observed in zip(costs, seen, strict=True)]
    variants = kinds // 3
    contexts = tuple(sorted({knot for row_knots in knots for knot in row_knots}))
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
        projection_at=tuple(parts[:variants]),
        mlp_at=tuple(parts[variants : 2 * variants]),
        head_at=tuple(parts[2 * variants :]),
        scan_at=tuple(tuple(float(x) for x in values) for values in scans),
        drafting=1.0,
        residual=float(np.median(errors)),
        worst=float(errors.max()),
    )


def add_copy(profile: LatencyProfile, quick: LatencyProfile, factor: float) -> LatencyProfile:
    """Add the costs of a copy in fewer bits, from a quick profile, to one without them, under the key of the former.

    `factor`: how many times longer passes take by the quick profile, if it was measured on a slower or busier machine.
    """

    def costs(name: str) -> tuple[tuple[float, ...], ...]:
        (own,), (_, copy) = getattr(profile, name), getattr(quick, name)
        return own, tuple(interpolate(quick.rows, copy, rows) / factor for rows in profile.rows)

    return replace(
        profile,
        key=quick.key,
        projection_at=costs("projection_at"),
        mlp_at=costs("mlp_at"),
        head_at=costs("head_at"),
        drafting=quick.drafting,
        residual=max(profile.residual, quick.residual),
        worst=max(profile.worst, quick.worst),
    )


def price(profile: LatencyProfile, o: Observation) -> float:
    """Return the seconds that the profile predicts for a pass."""
    scan = sum(count * profile.scan(tokens, o.rows) for count, tokens in o.spans)
    weights = sum(
        count * price(o.rows, variant)
        for price, counts in ((profile.projection, o.attention), (profile.mlp, o.mlp), (profile.head, o.head))
        for variant, count in enumerate(counts, 1)
        if count
    )
    return profile.fixed + scan + weights


def _continued(rows: Sequence[int], costs: Sequence[float], observed: np.ndarray) -> tuple[float, ...]:
    """Return costs at all row counts: those of the observed ones, and the lines between and beyond them."""
    known = np.flatnonzero(observed).tolist()
    if not known:
        return tuple(costs)
    return tuple(interpolate([rows[i] for i in known], [costs[i] for i in known], count) for count in rows)


def _knots(observations: Sequence[Observation]) -> tuple[int, ...]:
    """Return the context lengths between which the scan cost is linear."""
    seen = sorted({tokens for o in observations for count, tokens in o.spans if count and tokens})
    return tuple(seen[1:] or seen or [1])


def _steps(knots: Sequence[int], tokens: float) -> np.ndarray:
    """Return the share of each interval between knots that `tokens` covers; the last interval has no end."""
    edges = np.array([0, *knots], dtype=float)
    shares = (tokens - edges[:-1]) / np.diff(edges)
    return np.concatenate([np.clip(shares[:-1], 0.0, 1.0), np.maximum(shares[-1:], 0.0)])


def _non_negative(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve least squares, setting the most negative coefficient to zero until none is negative."""
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
