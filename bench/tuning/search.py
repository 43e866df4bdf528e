"""Search a layer set by Bayesian optimisation (Zhang et al. 2024, Draft & Verify, section 3.2)."""

from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from engine.plans import SKIP, TARGET, Variants

# Of the authors' code (`searching.py`): the share above which a variable means to skip its sublayer. The weight of the
# uncertainty is the one that the library had then, which the authors do not change.
_SKIP_ABOVE = 0.5
_KAPPA = 2.576


class LayerSearch:
    """Maximise tokens per second over which sublayers a draft skips: 2L binary variables, relaxed to [0, 1].

    As in the authors' code, every layer may be skipped, the first and the last included, and each candidate is measured
    once.
    """

    def __init__(
        self, layers: int, measure: Callable[[Variants], float], first: Iterable[Variants] = (), seed: int = 1
    ) -> None:
        """`measure` returns the tokens per second of a plan. The plans `first` are measured before others."""
        self.best: Variants = ()
        self.speed = 0.0  # tokens per second of the best
        self._dimensions, self._measure, self._seed = 2 * layers, measure, seed
        self._first = deque(first)
        self._scored: list[tuple[np.ndarray, float]] = []

    def step(self) -> bool:
        """Measure one more candidate. Returns whether it is the best so far."""
        point = self._suggest()
        plan = (*(SKIP if x > _SKIP_ABOVE else TARGET for x in point), TARGET)
        speed = self._measure(plan)
        self._scored.append((point, speed))
        improved = speed > self.speed
        if improved:
            self.best, self.speed = plan, speed
        return improved

    def _suggest(self) -> np.ndarray:
        if self._first:
            return np.array([float(variant == SKIP) for variant in self._first.popleft()[:-1]])
        from engine.draft.baselines.bayesian import suggest

        return suggest(self._scored, self._dimensions, self._seed + len(self._scored), _KAPPA)
