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

    @property
    def tpt_error(self) -> float:
        """Median relative error of the predicted TPT."""
        return float(np.median(np.abs(self.tpt[:, 0] / self.tpt[:, 1] - 1)))

    @property
    def acceptance_error(self) -> float:
        """Median absolute error of the predicted acceptance rate."""
        return float(np.median(np.abs(self.acceptance[:, 0] - self.acceptance[:, 1])))

    def as_dict(self) -> dict[str, float]:
        """Return the errors for JSON."""
        return {
            "tpt": self.tpt_error,
            "tpt_chance": self.tpt_chance,
            "acceptance": self.acceptance_error,
            "acceptance_chance": self.acceptance_chance,
        }

    def __str__(self) -> str:
        return (
            f"median error of TPT {self.tpt_error:.1%} (sampling noise: {self.tpt_chance:.1%}), "
            f"of acceptance {self.acceptance_error:.3f} (sampling noise: {self.acceptance_chance:.3f}), "
            f"{len(self.tpt)} requests"
        )


def prediction_errors(history: Sequence[RoundRecord]) -> PredictionErrors:
    """Compare the means of each request's drafting rounds, weighted by time (TPT) and by drafted tokens."""
    requests: dict[int, list[RoundRecord]] = defaultdict(list)
    for r in history:
        if r.drafted and r.predicted_tpt is not None and r.predicted_acceptance is not None:
            requests[r.request].append(r)
    tpt, acceptance, chance = [], [], []
    for rounds in requests.values():
        seconds, emitted = sum(r.seconds for r in rounds), sum(r.emitted for r in rounds)
        drafted, accepted = sum(r.drafted for r in rounds), sum(r.accepted for r in rounds)
        if emitted < _MIN_TOKENS:
            continue
        predicted = sum((r.predicted_tpt or 0.0) * r.seconds for r in rounds) / seconds
        expected = sum((r.predicted_acceptance or 0.0) * r.drafted for r in rounds) / drafted
        tpt.append((predicted, emitted / seconds))
        acceptance.append((expected, accepted / drafted))
        if len(rounds) > 1:
            of_tpt = _ratio_error([r.emitted for r in rounds], [r.seconds for r in rounds]) / (emitted / seconds)
            chance.append((of_tpt, _ratio_error([r.accepted for r in rounds], [r.drafted for r in rounds])))
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


def _ratio_error(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Return the standard error of Σ numerator / Σ denominator (Cochran, Sampling Techniques, ch. 6)."""
    a, b = np.array(numerators, dtype=float), np.array(denominators, dtype=float)
    residuals = a - a.sum() / b.sum() * b
    return float(np.sqrt((residuals**2).sum() * len(a) / (len(a) - 1)) / b.sum())
