"""Deployed files, and the programs that read them."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.support import REPOSITORY

PROMETHEUS = REPOSITORY / "deploy" / "prometheus"
DASHBOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted((REPOSITORY / "deploy" / "grafana" / "dashboards").glob("*.json"))
}


def documents(path: str) -> list[Any]:
    """The YAML documents of a file."""
    return list(yaml.safe_load_all((REPOSITORY / path).read_text("utf-8")))


def rules(name: str) -> list[dict[str, Any]]:
    """All rules of a file of them."""
    (content,) = documents(f"deploy/prometheus/rules/{name}.yml")
    return [rule for group in content["groups"] for rule in group["rules"]]


def panels(dashboard: str) -> list[dict[str, Any]]:
    """All panels of a dashboard that show data, including those in collapsed rows."""
    placed = DASHBOARDS[dashboard]["panels"]
    return [one for panel in placed for one in (panel, *panel.get("panels", ())) if one["type"] != "row"]


def expressions(dashboard: str) -> list[str]:
    return [target["expr"] for panel in panels(dashboard) for target in panel["targets"]]


def program(name: str, package: str = "prometheus") -> str:
    """A program's path; the test is skipped where it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (apt-get install {package})")
    return found


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
