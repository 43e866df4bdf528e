"""Numbers of Hypothesis examples: a quarter in `make test`, all under the profile `nightly`.

Examples are the same each time, and no verdict depends on the clock. `KNAPSERVE_EXPLORE=20 pytest tests/pure` draws 20
times as many, at random.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_EXPLORE = int(os.environ.get("KNAPSERVE_EXPLORE", "0"))
_LEAST = 10  # examples: fewer are hardly worth the drawing


def register_profiles() -> None:
    settings.register_profile("check", settings.get_profile("ci"), max_examples=25)
    settings.register_profile("nightly", settings.get_profile("ci"), max_examples=100)


def nightly() -> bool:
    """Whether all examples are drawn."""
    return settings.get_current_profile_name() == "nightly"


def examples(count: int, steps: int = 50) -> settings:
    """Settings for `count` examples, or a quarter of them; a state machine takes at most `steps` steps in each."""
    share = count if nightly() or _EXPLORE else max(_LEAST, count // 4)
    return settings(
        max_examples=share * max(_EXPLORE, 1),
        stateful_step_count=steps,
        derandomize=not _EXPLORE,
        database=None,
        deadline=None,
        suppress_health_check=(HealthCheck.too_slow,),
    )
