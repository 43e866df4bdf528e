"""PromQL and Grafana's JSON in the few shapes that our dashboards need."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

WINDOW = "$__rate_interval"
OF_SERVER = tuple(f"knapserve_{name}" for name in ("round_seconds", "profile_", "heartbeat_", "engine_", "loading"))
COLUMNS = 24
# Units that Grafana does not know by name, and colours.
TOKENS_PER_SECOND = "suffix: tokens/s"
TOKENS = "suffix: tokens"
FACTOR = "suffix:×"
GREEN, YELLOW, RED = "green", "yellow", "red"
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
LINK = {  # from each dashboard to the others, with time and choice kept
    "type": "dashboards",
    "title": "KnapServe",
    "tags": ["knapserve"],
    "tooltip": "",
    "icon": "external link",
    "keepTime": True,
    "includeVars": True,
    "asDropdown": False,
    "targetBlank": False,
}


# -- what is asked ----------------------------------------------------------------------------------------------------


def selector(metric: str, **labels: str) -> str:
    """The metric of what is chosen above the dashboard, where these labels match. KnapServe's own have no model."""
    model = {"model_name": "$model_name"} if metric.startswith("vllm:") else {}
    policy = {"policy": "$policy"} if metric.startswith("knapserve_") and not metric.startswith(OF_SERVER) else {}
    chosen = model | {"instance": "$instance"} | policy | labels
    return f"{metric}{{{', '.join(f'{label}=~{json.dumps(value)}' for label, value in chosen.items())}}}"


def rate(metric: str, by: str = "", **labels: str) -> str:
    """Increase per second, of all servers together or by label."""
    return f"sum{f' by ({by}) ' if by else ''}(rate({selector(metric, **labels)}[{WINDOW}]))"


def total(metric: str) -> str:
    return f"sum({selector(metric)})"


def ratio(part: str, whole: str) -> str:
    """Nothing, rather than NaN, where the whole is nothing."""
    return f"{part} / ({whole} > 0)"


def mean(histogram: str, by: str = "", **labels: str) -> str:
    return ratio(rate(f"{histogram}_sum", by, **labels), rate(f"{histogram}_count", by, **labels))


def quantile(share: float, histogram: str) -> str:
    """Nothing, rather than NaN, where nothing was observed."""
    return f"histogram_quantile({share}, {rate(f'{histogram}_bucket', by='le')}) >= 0"


def or_zero(expression: str, label: str = "") -> str:
    """A line at zero where nothing has been counted yet."""
    zero = f'label_replace(vector(0), "{label}", "none", "", "")' if label else "vector(0)"
    return f"{expression} or on() {zero}"


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression, and how its lines are called. `right`: the unit of an axis of its own, if it has one."""

    expression: str
    legend: str = ""
    right: str = ""


def quantiles(histogram: str) -> list[Query]:
    return [Query(quantile(share, histogram), f"p{share * 100:g}") for share in (0.5, 0.95, 0.99)]


# -- how it is shown --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; `description` says how to read it."""

    title: str
    description: str
    unit: str
    queries: list[Query]
    kind: str = "timeseries"
    width: int = 8
    height: int = 8
    options: Json = field(default_factory=dict)
    custom: Json = field(default_factory=dict)  # how lines are drawn
    defaults: Json = field(default_factory=dict)  # of the fields: bounds, thresholds
    transformations: tuple[Json, ...] = ()
    instant: bool = False
    format: str = "time_series"

    def json(self) -> Json:
        overrides = [
            {
                "matcher": {"id": "byFrameRefID", "options": reference},
                "properties": [
                    {"id": "unit", "value": query.right},
                    {"id": "custom.axisPlacement", "value": "right"},
                    {"id": "custom.fillOpacity", "value": 0},
                    {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 6]}},
                ],
            }
            for reference, query in zip("ABCDEFGH", self.queries, strict=False)
            if query.right
        ]
        return {
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "fieldConfig": {
                "defaults": {"unit": self.unit, "custom": self.custom, **self.defaults},
                "overrides": overrides,
            },
            "options": self.options,
            "transformations": list(self.transformations),
            "targets": [
                {
                    "refId": reference,
                    "datasource": DATASOURCE,
                    "expr": query.expression,
                    "legendFormat": query.legend or "__auto",
                    "range": not self.instant,
                    "instant": self.instant,
                    "format": self.format,
                }
                for reference, query in zip("ABCDEFGH", self.queries, strict=False)
            ],
        }


def lines(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    stacked: str = "none",
    least: float | None = 0,
    most: float | None = None,
    width: int = 8,
) -> Panel:
    """Lines over time. `stacked`: none, normal (their sum) or percent (their shares)."""
    return Panel(
        title,
        description,
        unit,
        list(queries),
        width=width,
        options={
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "none"},
        },
        custom={
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 8 if stacked == "none" else 50,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": stacked, "group": "A"},
        },
        defaults={name: bound for name, bound in (("min", least), ("max", most)) if bound is not None},
    )


def stat(
    title: str,
    description: str,
    unit: str,
    expression: str,
    *steps: tuple[float, str],
    below: str = "blue",
    decimals: int | None = None,
) -> Panel:
    """One number, as it is now. `below` colours it below the first step, each step from its value on."""
    thresholds = [{"value": None, "color": below}, *({"value": value, "color": color} for value, color in steps)]
    return Panel(
        title,
        description,
        unit,
        [Query(expression)],
        kind="stat",
        width=4,
        height=4,
        options={
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "value",
            "graphMode": "none",
            "textMode": "value",
        },
        defaults={"thresholds": {"mode": "absolute", "steps": thresholds}, "noValue": "no traffic"}
        | ({} if decimals is None else {"decimals": decimals}),
        instant=True,  # the last value of a range may be long past
    )


def heatmap(title: str, description: str, unit: str, histogram: str) -> Panel:
    """A histogram over time: the darker, the more."""
    return Panel(
        title,
        description,
        unit,
        [Query(rate(f"{histogram}_bucket", by="le"), "{{le}}")],
        kind="heatmap",
        format="heatmap",
        options={
            "calculate": False,
            "cellGap": 1,
            "color": {
                "mode": "scheme",
                "scheme": "Oranges",
                "fill": "dark-orange",
                "reverse": False,
                "steps": 64,
                "scale": "exponential",
                "exponent": 0.5,
            },
            "filterValues": {"le": 1e-9},
            "legend": {"show": True},
            "tooltip": {"mode": "single", "yHistogram": True},
            "yAxis": {"axisPlacement": "left", "unit": unit},
        },
    )


def table(title: str, description: str, expression: str, *columns: str) -> Panel:
    """These labels of what an expression finds now."""
    return Panel(
        title,
        description,
        "none",
        [Query(expression)],
        kind="table",
        options={"showHeader": True, "cellHeight": "sm"},
        transformations=({"id": "filterFieldsByName", "options": {"include": {"names": list(columns)}}},),
        instant=True,
        format="table",
    )


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    panels: list[Panel]


@dataclass(frozen=True, slots=True)
class Dashboard:
    name: str
    title: str
    description: str
    rows: list[Row]
    policies: bool = False  # whether one can choose among them

    def json(self) -> Json:
        return {
            "uid": f"knapserve-{self.name}",
            "title": self.title,
            "description": self.description,
            "tags": ["knapserve"],
            "schemaVersion": 41,
            "editable": True,
            "graphTooltip": 1,  # one crosshair for all panels
            "refresh": "10s",
            "time": {"from": "now-30m", "to": "now"},
            "timezone": "browser",
            "links": [LINK],
            "templating": {"list": _variables(self.policies)},
            "panels": self._panels(),
        }

    def _panels(self) -> list[Json]:
        """Rows from top to bottom, panels from left to right, wrapped at the right edge."""
        placed: list[Json] = []

        def place(panel: Json, x: int, y: int, width: int, height: int) -> None:
            placed.append({"id": len(placed) + 1, "gridPos": {"x": x, "y": y, "w": width, "h": height}, **panel})

        y = 0
        for row in self.rows:
            place({"type": "row", "title": row.title, "collapsed": False, "panels": []}, 0, y, COLUMNS, 1)
            x, y, height = 0, y + 1, 0
            for panel in row.panels:
                if x + panel.width > COLUMNS:
                    x, y, height = 0, y + height, 0
                place(panel.json(), x, y, panel.width, panel.height)
                x, height = x + panel.width, max(height, panel.height)
            y += height
        return placed


def _variables(policies: bool) -> list[Json]:
    def of_label(name: str, label: str, source: str) -> Json:
        return {
            "name": name,
            "label": label,
            "type": "query",
            "datasource": DATASOURCE,
            "query": f"label_values({source}, {name})",
            "refresh": 2,  # whenever the time range changes
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "current": {"text": ["All"], "value": ["$__all"]},
        }

    by_policy = of_label("policy", "Policy", 'knapserve_rounds_total{instance=~"$instance"}') | {"allValue": ".+"}
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        of_label("model_name", "Model", "vllm:num_requests_running"),
        # All: also a server that is loading its first model, which says nothing else yet.
        of_label("instance", "Server", 'vllm:num_requests_running{model_name=~"$model_name"}') | {"allValue": ".+"},
        *([by_policy] if policies else []),
    ]
