from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "contract"), str(ROOT / "deploy" / "grafana")]  # for `serving` and `dashboards`
