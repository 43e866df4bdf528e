"""The figures of `bench paper`, from the cells of a record: rows over all cells, and curves or points to draw.

Rows are those of `measure_cell` with the figures of `counts`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench.compare.measure import speeds
from bench.compare.plots import as_png, finish, heat_map, panels_of, style, values_of
from bench.compare.record import Record
from bench.prediction_error import prediction_errors
from bench.targets import RunStats, sum_batches
from engine.plans import SKIP

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]


class Panel(NamedTuple):
    """One diagram: y over x for each policy, as curves or as points."""

    y: str
    x: str
    series: Mapping[str, tuple[Sequence[Any], Sequence[float]]]
    curves: bool = True
    log: bool = False


def counts(stats: RunStats) -> Row:
    """Return what the experiments need beyond a row of `bench compare`, as JSON can hold it.

    `plans`: draft passes by plan, whose digits are variants. `requests`: of each with enough drafted tokens, predicted
    and measured TPT in tokens per second, predicted and measured acceptance.
    """
    errors = prediction_errors(stats.history)
    return {
        "rounds": stats.rounds,
        "accepted": stats.accepted,
        "tested": stats.tested,
        "search_seconds": stats.search_seconds,
        "plans": {"".join(map(str, plan)): passes for plan, passes in stats.plans.items() if passes},
        "requests": np.concatenate([errors.tpt, errors.acceptance], axis=1).tolist(),
    }


def rows_of(record: Record, policy: str) -> list[Row]:
    """Return a policy's row of each cell."""
    return [row for cell in record.cells for row in cell.rows if row["policy"] == policy]


def skip_shares(rows: Sequence[Row]) -> list[float]:
    """Return the share of draft passes that skip each sublayer, [2L]; [] without a pass of the model (figure 5)."""
    passes: Counter[str] = Counter()
    for row in rows:
        passes.update(row["plans"])
    if not passes:
        return []
    skipped = np.array([[digit == str(SKIP) for digit in plan[:-1]] for plan in passes])
    shares: list[float] = (np.array([*passes.values()]) @ skipped / passes.total()).tolist()
    return shares


def over_cells(record: Record) -> list[Row]:
    """Return a row for each policy over all cells: sums of tokens, seconds and counts, not means of ratios."""
    plain = sum_batches(row["total"] for row in rows_of(record, record.policies[0]))
    memory = {row["policy"]: row["growth"] / 1e6 for row in record.memory if "growth" in row}
    found: list[Row] = []
    for policy in record.policies:
        rows = rows_of(record, policy)
        total = sum_batches(row["total"] for row in rows)
        rounds, accepted, tested, search = (
            sum(row[key] for row in rows) for key in ("rounds", "accepted", "tested", "search_seconds")
        )
        merged: Row = {"policy": policy, "differing_answers": sum(row["differing_answers"] for row in rows)}
        merged |= speeds(total, plain)
        if rounds:
            merged |= {"acceptance_length": total.decode_tokens / rounds, "search_ms": 1e3 * search}
            merged["search_share"] = search / total.decode_seconds
        if tested:
            merged["alpha"] = accepted / tested
        if shares := skip_shares(rows):
            merged |= {"skipped_attention": float(np.mean(shares[::2])), "skipped_mlp": float(np.mean(shares[1::2]))}
        if policy in memory:
            merged["memory_mb"] = memory[policy]
        found.append(merged)
    return found


def by_cell(record: Record, *keys: tuple[str, str], x: str, log: bool = False) -> list[Panel]:
    """Return panels of figures (key, title) over the cells, at their values or, if they have none, their names."""
    cells = sorted(record.cells, key=lambda cell: cell.value or 0)
    at = [cell.workload if cell.value is None else cell.value for cell in cells]
    return [
        Panel(title, x, {policy: (at, values_of(cells, policy, key)) for policy in record.policies[1:]}, log=log)
        for key, title in keys
    ]


def by_setting(record: Record, *keys: tuple[str, str], x: str, log: bool = False) -> list[Panel]:
    """Return panels of figures (key, title) over the setting that tells the policies apart."""
    rows = over_cells(record)[1:]
    at = [float(re.sub(r".*=", "", row["policy"])) for row in rows]
    name = rows[0]["policy"].partition(":")[0]
    return [
        Panel(title, x, {name: (at, [row.get(key, np.nan) for row in rows])}, log=log)
        for key, title in keys
        if any(key in row for row in rows)
    ]


def by_sublayer(record: Record) -> list[Panel]:
    """Return the panel of skip shares over the sublayers, attention and MLP in turns (KnapSpec, figure 5)."""
    found = {policy: skip_shares(rows_of(record, policy)) for policy in record.policies[1:]}
    series = {policy: (range(1, len(shares) + 1), shares) for policy, shares in found.items()}
    return [Panel("share of draft passes that skip it", "sublayer; odd: attention, even: MLP", series)]


def requests_of(record: Record, policy: str) -> np.ndarray:
    """Return predicted TPT, measured TPT, predicted and measured acceptance of requests: [requests, 4]."""
    return np.array([each for row in rows_of(record, policy) for each in row["requests"]]).reshape(-1, 4)


def by_request(record: Record) -> list[Panel]:
    """Return measured TPT over predicted TPT, and over measured acceptance (KnapSpec, figure 2)."""
    points = {policy: requests_of(record, policy) for policy in record.policies[1:]}
    panels = []
    for column, x in ((0, "predicted TPT, tokens/s"), (3, "acceptance")):
        series = {policy: (own[:, column].tolist(), own[:, 1].tolist()) for policy, own in points.items()}
        panels.append(Panel("tokens/s of decoding", x, series, curves=False))
    return panels


def draw(record: Record, title: str, panels: Callable[[Record], list[Panel]] | None) -> bytes | None:
    """Return a PNG of the panels, or of speed-ups as a heat map without `panels`; None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    if panels is not None:
        return as_png(_diagrams(Figure, panels(record)), title, record)
    figure = heat_map(Figure, record, "decode_speedup")
    assert figure is not None, "there are cells and policies"
    return as_png(figure, "Speed-up of decoding over none", record)


def _diagrams(figure_of: type[Figure], panels: Sequence[Panel]) -> Figure:
    figure = figure_of(figsize=(3 + 3.8 * len(panels), 3.8), layout="constrained")
    for axes, panel in zip(panels_of(figure, len(panels), shared=False), panels, strict=True):
        for index, (policy, (x, y)) in enumerate(panel.series.items()):
            form = {"markersize": 5} if panel.curves else {"linestyle": "", "alpha": 0.75, "markersize": 6}
            axes.plot(x, y, label=policy, **form, **style(index, policy))
        axes.set(xlabel=panel.x, title=panel.y)
        if panel.log:
            at = sorted({value for x, _ in panel.series.values() for value in x})
            axes.set_xscale("log", base=2)
            axes.minorticks_off()
            axes.set_xticks(at, [f"{value:,.10g}" for value in at])
        axes.tick_params(axis="x", rotation=30)
    finish(figure, "")
    return figure
