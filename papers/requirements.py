"""The extra `papers`: what a search by Bayesian optimisation or K-means needs beyond the server's own packages."""

from __future__ import annotations

from importlib.util import find_spec

from engine.errors import PolicyUnavailableError


def require_extra(what: str) -> None:
    """Raise PolicyUnavailableError unless `what` finds the extra installed. Imports nothing of it."""
    if any(find_spec(name) is None for name in ("bayes_opt", "sklearn", "threadpoolctl")):
        raise PolicyUnavailableError(
            f"{what} needs bayesian-optimization and scikit-learn: pip install 'knapserve[papers]'"
        )
