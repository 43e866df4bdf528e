from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# for `serving`, `dashboards` and `prometheusrule`
sys.path[:0] = [str(ROOT / name) for name in ("tests/contract", "deploy/grafana", "deploy/kubernetes")]
