"""What a benchmark run was promised against what came, after the KnapSpec paper's Figure 2."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.targets import DraftRound

_FEWEST_TOKENS = 16  # of a request's drafting rounds, to count as one
_MEDIAN_OF_NORMAL = 0.6745  # of the size of a normal variable, by its deviation


@dataclass(frozen=True, slots=True)
class Predictions:
    """Per request what its drafting rounds promised and what came: TPT in tokens per second, acceptance as a share."""

    tpt: np.ndarray  # [requests, promised | came]
    acceptance: np.ndarray  # [requests, promised | came]
    # What chance has to do with the errors: the median that promises of every request's own long-run mean would show,
    # by how much its rounds differ.
    tpt_chance: float = 0.0
    acceptance_chance: float = 0.0

    @property
    def tpt_error(self) -> float:
        """Median relative error of the promised TPT."""
        return float(np.median(np.abs(self.tpt[:, 0] / self.tpt[:, 1] - 1)))

    @property
    def acceptance_error(self) -> float:
        """Median absolute error of the promised acceptance."""
        return float(np.median(np.abs(self.acceptance[:, 0] - self.acceptance[:, 1])))

    def figures(self) -> dict[str, float]:
        """For JSON."""
        return {
            "tpt": self.tpt_error,
            "tpt_chance": self.tpt_chance,
            "acceptance": self.acceptance_error,
            "acceptance_chance": self.acceptance_chance,
        }

    def __str__(self) -> str:
        return (
            f"TPT with a median error of {self.tpt_error:.1%} (chance alone: {self.tpt_chance:.1%}), "
            f"acceptance of {self.acceptance_error:.3f} (chance alone: {self.acceptance_chance:.3f}), "
            f"over {len(self.tpt)}"
        )


def predictions(history: Sequence[DraftRound]) -> Predictions:
    """Means over each request's drafting rounds; promises weighted by time and by drafted tokens."""
    requests: dict[int, list[DraftRound]] = defaultdict(list)
    for r in history:
        if r.drafted and r.predicted_tpt is not None and r.predicted_acceptance is not None:
            requests[r.request].append(r)
    tpt, acceptance, chance = [], [], []
    for rounds in requests.values():
        seconds, emitted = sum(r.seconds for r in rounds), sum(r.emitted for r in rounds)
        drafted, accepted = sum(r.drafted for r in rounds), sum(r.accepted for r in rounds)
        if emitted < _FEWEST_TOKENS:
            continue
        promised = sum((r.predicted_tpt or 0.0) * r.seconds for r in rounds) / seconds
        expected = sum((r.predicted_acceptance or 0.0) * r.drafted for r in rounds) / drafted
        tpt.append((promised, emitted / seconds))
        acceptance.append((expected, accepted / drafted))
        if len(rounds) > 1:
            of_tpt = _ratio_error([r.emitted for r in rounds], [r.seconds for r in rounds]) / (emitted / seconds)
            chance.append((of_tpt, _ratio_error([r.accepted for r in rounds], [r.drafted for r in rounds])))
    floors = np.median(_MEDIAN_OF_NORMAL * np.array(chance), axis=0) if chance else (0.0, 0.0)
    return Predictions(np.array(tpt).reshape(-1, 2), np.array(acceptance).reshape(-1, 2), *map(float, floors))


def _ratio_error(of: Sequence[float], to: Sequence[float]) -> float:
    """Standard error of Σ of ÷ Σ to, over pairs that are alike (Cochran, Sampling Techniques, ch. 6)."""
    a, b = np.array(of, dtype=float), np.array(to, dtype=float)
    residuals = a - a.sum() / b.sum() * b
    return float(np.sqrt((residuals**2).sum() * len(a) / (len(a) - 1)) / b.sum())
