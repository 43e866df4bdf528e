"""Dashboards are explained, query exported metrics, and Service works with any vLLM server."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any

import pytest
from prometheus_client.metrics_core import Metric

from server.metrics.registry import Metrics
from tests.support.fake import FakeEngine
from tests.support.files import DASHBOARDS, documents, expressions, panels
from tests.support.promql import selectors

COLUMNS = 24
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
each_dashboard = pytest.mark.parametrize("dashboard", DASHBOARDS)


@pytest.fixture(scope="module")
def families() -> list[Metric]:
    """The metrics of a server whose engine is another process."""
    engine = FakeEngine()
    engine.pid = 1
    return list(Metrics(engine, "fake/model").registry.collect())


def test_there_are_two_dashboards() -> None:
    assert set(DASHBOARDS) == {"service", "speculation"}
    for name, dashboard in DASHBOARDS.items():
        assert dashboard["uid"] == f"knapserve-{name}", "the address in Grafana depends on it"
        assert "knapserve" in dashboard["tags"], "the other dashboard links by this tag"


@each_dashboard
def test_every_panel_says_how_to_read_it(dashboard: str) -> None:
    for panel in panels(dashboard):
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert "\n" not in panel["description"]
        assert panel["targets"]
        if len(panel["targets"]) > 1:
            assert all(target["legendFormat"] not in ("", "__auto") for target in panel["targets"]), panel["title"]


@each_dashboard
def test_panels_do_not_overlap(dashboard: str) -> None:
    cells: set[tuple[int, int]] = set()
    placed: list[dict[str, Any]] = DASHBOARDS[dashboard]["panels"]
    for panel in placed:
        box = panel["gridPos"]
        covered = {(x, y) for x in range(box["x"], box["x"] + box["w"]) for y in range(box["y"], box["y"] + box["h"])}
        assert not covered & cells, panel["title"]
        assert max(x for x, _ in covered) < COLUMNS
        cells |= covered
    assert len({panel["id"] for panel in placed}) == len(placed)


def test_the_service_dashboard_uses_vllms_metrics_only() -> None:
    assert "knapserve_" not in " ".join(expressions("service"))


@each_dashboard
def test_single_numbers_show_the_latest_value(dashboard: str) -> None:
    """A stat over a range would show its last value after traffic has ended."""
    stats = [panel for panel in panels(dashboard) if panel["type"] == "stat"]
    assert stats
    for panel in stats:
        (target,) = panel["targets"]
        assert target["instant"]
        assert not target["range"]
        assert panel["fieldConfig"]["defaults"]["noValue"]


@each_dashboard
def test_queries_use_exported_metrics_and_the_chosen_labels(dashboard: str, families: list[Metric]) -> None:
    """A renamed metric would leave a panel empty; a query without a chosen label would ignore the choice."""
    labels: defaultdict[str, set[str]] = defaultdict(set)
    for family in families:
        for suffix in SUFFIXES.get(family.type, ("",)):
            labels[family.name + suffix] = {"instance"}
        for sample in family.samples:
            labels[sample.name].update(sample.labels)
    for expression in expressions(dashboard):
        asked = selectors(expression)
        assert asked, expression
        for series in asked:
            metric = series.partition("{")[0]
            assert metric in labels, expression
            for choice in {"instance", "model_name"} & labels[metric]:
                assert f'{choice}=~"${choice}"' in series, expression
            assert "policy" not in labels[metric] or "policy=~" in series, expression


@each_dashboard
def test_queries_use_grafanas_interval_and_its_choice_of_a_source(dashboard: str) -> None:
    assert set(re.findall(r"}\[(.*?)\]", " ".join(expressions(dashboard)))) == {"$__rate_interval"}
    sources = [query["datasource"] for panel in panels(dashboard) for query in (panel, *panel["targets"])]
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)


def test_policies_can_be_chosen() -> None:
    variables = {one["name"]: one for one in DASHBOARDS["speculation"]["templating"]["list"]}
    variable = variables["policy"]
    assert variable["includeAll"]
    assert variable["multi"]
    assert variable["current"]["value"] == ["$__all"]
    for panel in panels("speculation"):
        if panel["type"] == "stat" and "knapserve_rounds_total" not in panel["targets"][0]["expr"]:
            assert 'policy=~"$policy"' in panel["targets"][0]["expr"], panel["title"]
    assert '"knapspec"' not in " ".join(expressions("speculation"))
    assert "$policy" not in json.dumps(DASHBOARDS["service"])


def test_every_metric_is_shown(families: list[Metric]) -> None:
    ours = {family.name for family in families if re.match("knapserve_(?!engine_process)", family.name)}
    assert len(ours) > 20
    shown = " ".join(expressions("service") + expressions("speculation"))
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
