"""The dashboards: as their module writes them, explained, and Service fit for any vLLM server."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from dashboards import DASHBOARDS, DIRECTORY, written
from panels import COLUMNS, Dashboard
from service import SERVICE
from speculation import SPECULATION

from tests.support import REPOSITORY as ROOT
from tests.support.files import documents

each_dashboard = pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.name)


def expressions(dashboard: Dashboard) -> list[str]:
    return [query.expression for row in dashboard.rows for panel in row.panels for query in panel.queries]


@each_dashboard
def test_files_are_what_the_module_writes(dashboard: Dashboard) -> None:
    assert (DIRECTORY / f"{dashboard.name}.json").read_text("utf-8") == written(dashboard)


@each_dashboard
def test_every_panel_says_how_to_read_it(dashboard: Dashboard) -> None:
    for row in dashboard.rows:
        for panel in row.panels:
            assert panel.unit
            assert panel.description.endswith(".")
            assert "\n" not in panel.description
            assert all(panel.queries[i].legend for i in range(len(panel.queries)) if len(panel.queries) > 1)


@each_dashboard
def test_panels_do_not_overlap(dashboard: Dashboard) -> None:
    cells: set[tuple[int, int]] = set()
    placed: list[dict[str, Any]] = json.loads(written(dashboard))["panels"]
    for panel in placed:
        box = panel["gridPos"]
        covered = {(x, y) for x in range(box["x"], box["x"] + box["w"]) for y in range(box["y"], box["y"] + box["h"])}
        assert not covered & cells, panel["title"]
        assert max(x for x, _ in covered) < COLUMNS
        cells |= covered
    ids = [panel["id"] for panel in placed]
    assert all(one < other for one, other in pairwise(ids))


def test_service_needs_vllms_metrics_only() -> None:
    assert not [expression for expression in expressions(SERVICE) if "knapserve" in expression]


@each_dashboard
def test_numbers_are_of_now(dashboard: Dashboard) -> None:
    """A stat over a range would go on showing its last value when traffic has ended."""
    stats = [panel for panel in json.loads(written(dashboard))["panels"] if panel["type"] == "stat"]
    assert len(stats) == 6
    for panel in stats:
        (target,) = panel["targets"]
        assert target["instant"]
        assert not target["range"]
        assert panel["fieldConfig"]["defaults"]["noValue"]


def test_one_can_choose_policies() -> None:
    (variable,) = (one for one in json.loads(written(SPECULATION))["templating"]["list"] if one["name"] == "policy")
    assert variable["includeAll"]
    assert variable["multi"]
    assert variable["current"]["value"] == ["$__all"]
    for row in SPECULATION.rows:
        for panel in row.panels:
            if panel.kind == "stat" and "knapserve_rounds_total" not in panel.queries[0].expression:
                assert 'policy=~"$policy"' in panel.queries[0].expression, panel.title
    assert not [expression for expression in expressions(SPECULATION) if '"knapspec"' in expression]
    assert not [expression for expression in expressions(SERVICE) if "$policy" in expression]


def test_every_metric_is_shown() -> None:
    text = "".join((ROOT / "server" / name).read_text("utf-8") for name in ("metrics.py", "policy_metrics.py"))
    ours = set(re.findall(r'"(knapserve_\w+)"', text))
    ours |= {f"knapserve_{name}" for name in re.findall(r'= (?:histogram|counter)\(\s*"(\w+)"', text)}
    assert len(ours) > 20
    shown = " ".join(expressions(SERVICE) + expressions(SPECULATION))
    assert not {name for name in ours if name not in shown}


def test_grafana_finds_prometheus_and_the_dashboards() -> None:
    (source,) = documents("deploy/grafana/provisioning/datasources/prometheus.yml")
    (provider,) = documents("deploy/grafana/provisioning/dashboards/knapserve.yml")
    (compose,) = documents("docker-compose.yml")
    (prometheus,) = documents("deploy/prometheus/prometheus.yml")
    mounts = dict(mount.split(":")[:2] for mount in compose["services"]["grafana"]["volumes"])
    assert mounts["./deploy/grafana/dashboards"] == provider["providers"][0]["options"]["path"]
    assert mounts["./deploy/grafana/provisioning"] == "/etc/grafana/provisioning"
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    # $__rate_interval is computed from it.
    assert source["datasources"][0]["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]
