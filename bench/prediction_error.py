"""Errors of predicted speed and acceptance in a benchmark run, as in Figure 2 of the KnapSpec paper."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.targets import RoundRecord

_MIN_TOKENS = 16  # requests whose drafting rounds emit fewer tokens are left out
_NORMAL_MEDIAN = 0.6745  # median absolute value of a standard normal variable


@dataclass(frozen=True, slots=True)
class PredictionErrors:
    """Predicted and measured means per request. TPT in tokens per second, acceptance as a share."""

    tpt: np.ndarray  # [requests, 2]: predicted, measured
    acceptance: np.ndarray  # [requests, 2]: predicted, measured
    # Error expected from sampling noise alone: the median if each request's true mean had been predicted.
    tpt_chance: float = 0.0
    acceptance_chance: float = 0.0

    def as_dict(self) -> dict[str, float]:
        """Return median errors, relative ones of TPT and absolute ones of acceptance, and those of chance."""
        return {
            "tpt": float(np.median(np.abs(self.tpt[:, 0] / self.tpt[:, 1] - 1))),
            "tpt_chance": self.tpt_chance,
            "acceptance": float(np.median(np.abs(self.acceptance[:, 0] - self.acceptance[:, 1]))),
            "acceptance_chance": self.acceptance_chance,
        }

    def __str__(self) -> str:
        return (
            "median error of TPT {tpt:.1%} (sampling noise: {tpt_chance:.1%}), of acceptance {acceptance:.3f} "
            "(sampling noise: {acceptance_chance:.3f}), {requests} requests"
        ).format(requests=len(self.tpt), **self.as_dict())


def prediction_errors(history: Sequence[RoundRecord]) -> PredictionErrors:
    """Compare the means of each request's drafting rounds, weighted by time (TPT) and by drafted tokens."""
    requests: dict[int, list[tuple[float, ...]]] = defaultdict(list)
    for r in history:
        if r.drafted and r.predicted_tpt is not None and r.predicted_acceptance is not None:
            figures = (r.seconds, r.emitted, r.drafted, r.accepted, r.predicted_tpt, r.predicted_acceptance)
            requests[r.request].append(figures)
    tpt, acceptance, chance = [], [], []
    for rounds in requests.values():
        seconds, emitted, drafted, accepted, predicted_tpt, predicted_acceptance = np.array(rounds).T
        if emitted.sum() < _MIN_TOKENS:
            continue
        speed = emitted.sum() / seconds.sum()
        tpt.append((np.average(predicted_tpt, weights=seconds), speed))
        acceptance.append((np.average(predicted_acceptance, weights=drafted), accepted.sum() / drafted.sum()))
        if len(rounds) > 1:
            chance.append((_ratio_error(emitted, seconds) / speed, _ratio_error(accepted, drafted)))
    floors = np.median(_NORMAL_MEDIAN * np.array(chance), axis=0) if chance else (0.0, 0.0)
    return PredictionErrors(np.array(tpt).reshape(-1, 2), np.array(acceptance).reshape(-1, 2), *map(float, floors))


def pearson(points: np.ndarray) -> float | None:
    """Return the Pearson correlation of the two columns of points [requests, 2].

    Its square is the R² of the least-squares line, as in KnapSpec's figure 2. None for fewer than three points, or if a
    column is constant.
    """
    if len(points) < 3 or not np.ptp(points, axis=0).all():
        return None
    return float(np.corrcoef(points, rowvar=False)[0, 1])


def _ratio_error(a: np.ndarray, b: np.ndarray) -> float:
    """Return the standard error of Σ a / Σ b (Cochran, Sampling Techniques, ch. 6)."""
    residuals = a - a.sum() / b.sum() * b
    return float(np.sqrt((residuals**2).sum() * len(a) / (len(a) - 1)) / b.sum())
