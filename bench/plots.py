"""The pictures of comparisons, drawn with matplotlib, an optional library."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.record import TEMPERATURES, Cell, Record
from bench.workloads import WORKLOADS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS = "knapspec"
NO_PICTURES = "There are no pictures: they need matplotlib, which pip install 'knapserve[plots]' installs."
# Distinct for most colour-blind readers too: Okabe and Ito's colours, then Tol's (muted).
_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"]
_COLOURS += ["#56b4e9", "#882255", "#999933", "#332288", "#44aa99"]
_MARKERS = "osD^vPX<>*"
_DPI = 120


class Panel(NamedTuple):
    """One diagram: y over x for each policy, as curves or as points."""

    title: str
    x: str  # label
    series: Mapping[str, tuple[Sequence[Any], Sequence[float]]]  # x and y, by policy
    curves: bool = True
    log: bool = False
    base: float | None = None  # y of a dashed line


def available() -> bool:
    """Whether pictures can be drawn."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


def values_of(cells: Sequence[Cell], policy: str, key: str) -> list[float]:
    """Return a figure of a policy in each cell; NaN where it has none."""
    return [next(row for row in cell.rows if row["policy"] == policy).get(key, math.nan) for cell in cells]


def diagrams(record: Record, title: str, panels: Sequence[Panel], y: str = "") -> bytes:
    """Draw panels beside each other as a PNG; `y`: their common axis."""
    from matplotlib.figure import Figure

    policies = list(dict.fromkeys(policy for panel in panels for policy in panel.series))
    figure = Figure(figsize=(3 + 3.8 * len(panels), 3.8), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels), sharey=bool(y), squeeze=False)[0], panels, strict=True):
        for policy, (xs, ys) in panel.series.items():
            index = policies.index(policy)
            form: dict[str, Any] = {"markersize": 5} if panel.curves else {"linestyle": "", "alpha": 0.75}
            if policy == OURS:
                form |= {"linewidth": 3.0, "zorder": 3}
            colour, marker = _COLOURS[index % len(_COLOURS)], _MARKERS[index % len(_MARKERS)]
            axes.plot(xs, ys, label=policy, color=colour, marker=marker, **form)
        if panel.base is not None:
            axes.axhline(panel.base, color="#8a94a3", linewidth=1, linestyle="--", zorder=0)
        axes.set(xlabel=panel.x, title=panel.title)
        if panel.log:
            at = sorted({value for xs, _ in panel.series.values() for value in xs})
            axes.set_xscale("log", base=2)
            axes.minorticks_off()
            axes.set_xticks(at, [f"{value:,.10g}" for value in at])
        axes.tick_params(axis="x", rotation=30)
        axes.grid(color="#e3e7ed", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel(y)
    both = [axes.get_legend_handles_labels() for axes in figure.axes]
    entries = {label: handle for handles, labels in both for handle, label in zip(handles, labels, strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="outside right upper", frameon=False)
    return _as_png(figure, title, record)


def heat_map(record: Record, title: str, key: str) -> bytes | None:
    """Draw the speed-ups with their numbers, workloads down and policies across, as a PNG. None without any."""
    from matplotlib.figure import Figure

    policies = record.policies[1:]
    found = {t.name: [cell for column in WORKLOADS for cell in record.select(column, t.name)] for t in TEMPERATURES}
    panels = {temperature: cells for temperature, cells in found.items() if cells and policies}
    grids = [[[values_of([cell], policy, key)[0] for policy in policies] for cell in own] for own in panels.values()]
    known = [abs(math.log2(value)) for grid in grids for line in grid for value in line if value > 0]
    if not known:
        return None
    reach = max(0.25, *known)
    width, height = 2.2 + len(panels) * max(0.85 * len(policies), 2.0), 1.6 + 0.32 * max(map(len, grids))
    figure = Figure(figsize=(width, height), layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (temperature, cells), grid in zip(all_axes, panels.items(), grids, strict=True):
        logs = [[math.log2(value) for value in line] for line in grid]
        axes.imshow(logs, cmap="RdBu", vmin=-reach, vmax=reach, aspect="auto")
        for y, line in enumerate(grid):
            for x, value in enumerate(line):
                if value > 0:
                    dark = abs(math.log2(value)) > 0.6 * reach
                    axes.text(x, y, f"{value:.2f}", ha="center", va="center", color="white" if dark else "#1c2430")
            if y and cells[y].column != cells[y - 1].column:
                axes.axhline(y - 0.5, color="white", linewidth=5)
        axes.set_xticks(range(len(policies)), policies, rotation=30, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(cells)), [cell.workload if axes is all_axes[0] else "" for cell in cells])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title(temperature)
    return _as_png(figure, title, record)


def _as_png(figure: Figure, title: str, record: Record) -> bytes:
    """Return the picture as a PNG, headed by its title, the model and the machine."""
    facts = ", ".join(str(record.machine[name]) for name in ("model", "machine") if name in record.machine)
    figure.suptitle(f"{title}\n{facts}", fontsize="medium", wrap=True)
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=_DPI)
    return png.getvalue()
