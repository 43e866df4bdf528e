"""What a start without kernels costs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = "import os, engine; print(os.environ.get('GOMP_SPINCOUNT'))"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "4000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")],
)
def test_threads_of_torch_wait_busily_for_a_moment_only_unless_told_otherwise(
    given: dict[str, str], expected: str
) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.endswith(("SPINCOUNT", "WAIT_POLICY"))}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=inherited | given, capture_output=True, text=True)
    assert done.stdout.strip() == expected
