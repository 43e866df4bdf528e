"""How the property tests here run: the same examples every time, and no verdict that depends on the clock.

To look further than a check run does: `KNAPSERVE_EXPLORE=20 pytest tests/pure` draws 20 times as many, at random;
for tests without these settings, `pytest --hypothesis-profile=default` draws at random.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_EXPLORE = int(os.environ.get("KNAPSERVE_EXPLORE", "0"))


def examples(count: int, steps: int = 50) -> settings:
    """Settings for `count` examples; a state machine takes at most `steps` steps in each."""
    return settings(
        max_examples=count * max(_EXPLORE, 1),
        stateful_step_count=steps,
        derandomize=not _EXPLORE,
        database=None,
        deadline=None,
        suppress_health_check=(HealthCheck.too_slow,),
    )
