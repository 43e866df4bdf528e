"""The Grafana dashboards: `python deploy/grafana/dashboards.py` writes them to dashboards/*.json."""

from __future__ import annotations

import json
from pathlib import Path

from panels import Dashboard
from service import SERVICE
from speculation import SPECULATION

DIRECTORY = Path(__file__).parent / "dashboards"
DASHBOARDS = (SERVICE, SPECULATION)


def written(dashboard: Dashboard) -> str:
    return json.dumps(dashboard.json(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for dashboard in DASHBOARDS:
        (DIRECTORY / f"{dashboard.name}.json").write_text(written(dashboard), "utf-8")
