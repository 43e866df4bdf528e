"""Search a layer set by Bayesian optimisation (Zhang et al. 2024, Draft & Verify, section 3.2)."""

import warnings
from collections import deque
from collections.abc import Callable, Iterable

from engine.architecture.spec import SKIP, TARGET, Variants

# Of the authors' code (`searching.py`): the noise of a measurement, relative to the variance of all, and the share
# above which a variable means to skip its sublayer.
_NOISE = 1e-2
_SKIP_ABOVE = 0.5


class LayerSearch:
    """Maximise tokens per second over which sublayers a draft skips: 2L binary variables, relaxed to [0, 1].

    As in the authors' code, every layer may be skipped, the first and the last included, and each candidate is measured
    once.
    """

    def __init__(
        self, layers: int, measure: Callable[[Variants], float], first: Iterable[Variants] = (), seed: int = 1
    ) -> None:
        """`measure` returns the tokens per second of a plan. The plans `first` are measured before others."""
        from bayes_opt import BayesianOptimization  # takes a second to import

        self.best: Variants = ()
        self.speed = 0.0  # tokens per second of the best
        self._measure = measure
        self._first = deque(first)
        self._names = [f"x{sublayer}" for sublayer in range(2 * layers)]
        self._optimiser = BayesianOptimization(
            None, dict.fromkeys(self._names, (0.0, 1.0)), random_state=seed, verbose=0, allow_duplicate_points=True
        )
        self._optimiser.set_gp_params(alpha=_NOISE)

    def step(self) -> bool:
        """Measure one more candidate. Returns whether it is the best so far."""
        point = self._suggest()
        plan = (*(SKIP if point[name] > _SKIP_ABOVE else TARGET for name in self._names), TARGET)
        speed = self._measure(plan)
        self._optimiser.register(point, speed)
        improved = speed > self.speed
        if improved:
            self.best, self.speed = plan, speed
        return improved

    def _suggest(self) -> dict[str, float]:
        if self._first:
            return {name: float(v == SKIP) for name, v in zip(self._names, self._first.popleft(), strict=False)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a Gaussian process that is fitted to few points warns
            suggested = self._optimiser.suggest()
        return {name: float(suggested[name]) for name in self._names}
