"""Rules are valid for promtool, and made-up series provoke each alert (alerts_test.yml)."""

from __future__ import annotations

from tests.support.files import PROMETHEUS, documents, program, rules, run
from tests.support.promql import selectors


def test_prometheus_accepts_the_configuration() -> None:
    checked = run(program("promtool"), "check", "config", str(PROMETHEUS / "prometheus.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "2 rule files found" in checked.stdout


def test_alerts_fire_when_provoked_and_only_then() -> None:
    tested = run(program("promtool"), "test", "rules", "tests/deploy/alerts_test.yml")
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_no_alert_is_untested() -> None:
    (content,) = documents("tests/deploy/alerts_test.yml")
    expected = {
        sample["labels"].partition('alertname="')[2].partition('"')[0]
        for group in content["tests"]
        for test in group["promql_expr_test"]
        for sample in test["exp_samples"]
    }
    assert {rule["alert"] for rule in rules("alerts")} == expected - {""}


def test_every_alert_says_what_to_do() -> None:
    for rule in rules("alerts"):
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert set(rule["annotations"]) == {"summary", "description"}
        assert len(rule["annotations"]["description"]) > 80


def test_the_operators_manifest_has_the_same_rules() -> None:
    (resource,) = documents("deploy/kubernetes/prometheusrule.yaml")
    files = [documents(f"deploy/prometheus/rules/{name}.yml")[0] for name in ("recording", "alerts")]
    assert resource["spec"]["groups"] == [group for content in files for group in content["groups"]]


def test_every_selector_of_an_expression_is_parsed() -> None:
    """test_prometheus_live.py relies on it."""
    expression = """sum by (job, reason) (rate(a:b_total{reason!~"x|y (z)"}[5m])) > 0.25e1 and on (job) absent(up)"""
    assert selectors(expression) == [
        'a:b_total{reason!~"x|y (z)", job!="", reason!=""}',
        'up{job!=""}',
    ]
    assert selectors("sum by (a) (x) or y", "b") == ['x{a!=""}', 'y{b!=""}']


def test_recorded_series_are_used() -> None:
    """Every recorded series is used by an alert, by another record, or in the manual."""
    text = " ".join(rule["expr"] for name in ("alerts", "recording") for rule in rules(name))
    manual = "".join((PROMETHEUS.parents[1] / "docs" / "operations.md").read_text("utf-8").split())
    assert not [rule["record"] for rule in rules("recording") if rule["record"] not in text + manual]
