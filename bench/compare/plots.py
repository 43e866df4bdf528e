"""The pictures of `bench compare`, drawn with matplotlib, an optional library."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from bench.compare.record import TEMPERATURES, Cell, Record
from bench.compare.report import Picture
from bench.compare.standing import OURS
from bench.compare.workloads import WORKLOADS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WHOLE, _DECODE = "speedup", "decode_speedup"  # keys of speed-ups over none
# Distinct for most colour-blind readers too: Okabe and Ito's colours, then Tol's (muted).
_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"]
_COLOURS += ["#56b4e9", "#882255", "#999933", "#332288", "#44aa99"]
_MARKERS = "osD^vPX<>*"
_DPI = 120


def draw(record: Record) -> list[Picture]:
    """Draw the pictures for which there are measurements; none without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return []
    context = "Speed-up of decoding by context length"
    found: list[Picture] = []
    for name, title, figure in (
        ("speedup", "Speed-up of whole answers over none", heat_map(Figure, record, _WHOLE)),
        ("decode", "Speed-up of decoding over none", heat_map(Figure, record, _DECODE)),
        ("context", context, _lines(Figure, record, "context")),
        ("mixed", "Speed-up of decoding by mix ratio r", _lines(Figure, record, "mixed")),
        ("acceptance", "Acceptance by share of skipped sublayers", _scatter(Figure, record)),
    ):
        if figure is not None:
            found.append(Picture(name, title, as_png(figure, title, record)))
    return found


def as_png(figure: Figure, title: str, record: Record) -> bytes:
    """Return the picture as a PNG, headed by its title, the model and the machine."""
    facts = ", ".join(str(record.machine[name]) for name in ("model", "machine") if name in record.machine)
    figure.suptitle(f"{title}\n{facts}", fontsize="medium", wrap=True)
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=_DPI)
    return png.getvalue()


def _cells(record: Record, column: str, temperature: str) -> list[Cell]:
    return [cell for cell in record.cells if (cell.column, cell.temperature) == (column, temperature)]


def values_of(cells: list[Cell], policy: str, key: str) -> list[float]:
    """Return a figure of a policy in each cell; NaN where it has none."""
    rows = [next(row for row in cell.rows if row["policy"] == policy) for cell in cells]
    return [row.get(key, math.nan) for row in rows]


def style(index: int, policy: str) -> dict[str, Any]:
    """Return the colour and the marker of a line, by its number, and a broad line for our policy."""
    ours = {"linewidth": 3.0, "zorder": 3} if policy == OURS else {}
    return {"color": _COLOURS[index % len(_COLOURS)], "marker": _MARKERS[index % len(_MARKERS)], **ours}


def _temperatures(record: Record, *columns: str) -> list[str]:
    """Return the temperatures at which these columns were measured."""
    return [t.name for t in TEMPERATURES if any(_cells(record, column, t.name) for column in columns)]


def heat_map(figure_of: type[Figure], record: Record, key: str) -> Figure | None:
    """Draw the speed-ups with their numbers: workloads down, policies across."""
    panels, policies = _temperatures(record, *WORKLOADS), record.policies[1:]
    if not panels or not policies:
        return None
    columns = [[cell for column in WORKLOADS for cell in _cells(record, column, panel)] for panel in panels]
    grids = [[values_of([cell], policy, key)[0] for cell in cells for policy in policies] for cells in columns]
    known = [abs(math.log2(value)) for grid in grids for value in grid if value > 0]
    reach = max([0.25, *known])
    rows, width = max(map(len, columns)), len(policies)
    size = (2.2 + len(panels) * max(0.85 * width, 2.0), 1.6 + 0.32 * rows)
    figure = figure_of(figsize=size, layout="constrained")
    for axes, cells, grid, panel in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], columns, grids, panels, strict=True
    ):
        logs = [[math.log2(v) for v in grid[i * width : (i + 1) * width]] for i in range(len(cells))]
        axes.imshow(logs, cmap="RdBu", vmin=-reach, vmax=reach, aspect="auto")
        for index, value in enumerate(grid):
            if value > 0:
                dark = abs(math.log2(value)) > 0.6 * reach
                place = (index % width, index // width)
                axes.text(*place, f"{value:.2f}", ha="center", va="center", color="white" if dark else "#1c2430")
        axes.set_xticks(range(width), policies, rotation=30, ha="right", rotation_mode="anchor")
        first = axes is figure.axes[0]
        axes.set_yticks(range(len(cells)), [cell.workload for cell in cells] if first else [""] * len(cells))
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        for row in range(1, len(cells)):
            if cells[row].column != cells[row - 1].column:
                axes.axhline(row - 0.5, color="white", linewidth=5)
        axes.set_title(panel)
    return figure


def _lines(figure_of: type[Figure], record: Record, column: str) -> Figure | None:
    """Draw the speed-ups over the value of a column's workloads: context length or mix ratio."""
    panels = _temperatures(record, column)
    if not panels or not record.policies[1:]:
        return None
    figure = figure_of(figsize=(3 + 3.8 * len(panels), 3.8), layout="constrained")
    for axes, panel in zip(panels_of(figure, len(panels)), panels, strict=True):
        cells = sorted(_cells(record, column, panel), key=lambda cell: cell.value or 0)
        at = [cell.value or 0 for cell in cells]
        for index, policy in enumerate(record.policies[1:]):
            axes.plot(at, values_of(cells, policy, _DECODE), label=policy, markersize=5, **style(index, policy))
        axes.axhline(1, color="#8a94a3", linewidth=1, linestyle="--", zorder=0)
        if column == "context":
            axes.set_xscale("log", base=2)
            axes.minorticks_off()
        axes.set_xticks(at, [f"{value:,.10g}" for value in at])
        axes.set(title=panel, xlabel="context, tokens" if column == "context" else "mix ratio r")
    finish(figure, "speed-up of decoding over none")
    return figure


def _scatter(figure_of: type[Figure], record: Record) -> Figure | None:
    """Draw α against the share of sublayers that drafts skip, a point for each workload."""
    panels = _temperatures(record, *WORKLOADS)
    figure = figure_of(figsize=(3 + 3.8 * len(panels), 3.8), layout="constrained")
    drawn = False
    for axes, panel in zip(panels_of(figure, len(panels)), panels, strict=True):
        cells = [cell for column in WORKLOADS for cell in _cells(record, column, panel)]
        for index, policy in enumerate(record.policies[1:]):
            both = zip(
                values_of(cells, policy, "skipped_attention"), values_of(cells, policy, "skipped_mlp"), strict=True
            )
            skipped, alpha = [sum(pair) / 2 for pair in both], values_of(cells, policy, "alpha")
            if all(math.isnan(x + y) for x, y in zip(skipped, alpha, strict=True)):
                continue  # it skips nothing, such as lookup
            drawn = True
            axes.plot(skipped, alpha, label=policy, linestyle="", alpha=0.75, markersize=6, **style(index, policy))
        axes.set(title=panel, xlabel="share of sublayers that drafts skip", xlim=(-0.04, 1.0), ylim=(-0.04, 1.04))
    finish(figure, "α, accepted ÷ tested")
    return figure if drawn else None


def panels_of(figure: Figure, count: int, shared: bool = True) -> list[Axes]:
    """Return `count` axes beside each other, perhaps with a `shared` y axis."""
    return list(figure.subplots(1, count, sharey=shared, squeeze=False)[0]) if count else []


def finish(figure: Figure, label: str) -> None:
    """Label the first panel, and add grids and one legend for all panels."""
    for axes in figure.axes:
        axes.grid(color="#e3e7ed", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    if figure.axes:
        figure.axes[0].set_ylabel(label)
        both = [axes.get_legend_handles_labels() for axes in figure.axes]
        entries = {label: handle for handles, labels in both for handle, label in zip(handles, labels, strict=True)}
        figure.legend(entries.values(), entries.keys(), loc="outside right upper", frameon=False)
