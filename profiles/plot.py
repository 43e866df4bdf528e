"""Draws a latency profile. matplotlib is an extra of the package (`plots`) and imported only here and by benchmarks."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from profiles.fit import Observation, price
from profiles.schema import LatencyProfile


def available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def figure(columns: int, *, width: float = 4.6, height: float = 3.6) -> tuple[Any, Sequence[Any]]:
    """An empty figure of `columns` panels, drawn without a display: (figure, axes)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width * columns, height), layout="constrained")
    FigureCanvasAgg(made)
    axes = made.subplots(1, columns, squeeze=False)[0]
    for panel in axes:
        panel.grid(alpha=0.3)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    return made, axes


def draw(profile: LatencyProfile, passes: Sequence[tuple[Observation, int]], path: Path) -> None:
    """Sublayers by context length, sublayers by rows, and measured passes against their price; PNG.

    passes  timed passes, each with its context length.
    """
    made, (by_context, by_rows, against) = figure(3)
    contexts = np.linspace(0, profile.contexts[-1], 200)
    by_context.plot(contexts, [1e6 * (profile.projection(1) + profile.scan(n, 1)) for n in contexts], label="attention")
    by_context.plot(contexts, [1e6 * profile.mlp(1)] * len(contexts), label="MLP")
    by_context.set(xlabel="context (tokens)", ylabel="µs, one row", title="a sublayer by context", ylim=(0, None))
    by_context.legend(frameon=False)

    rows = [r for r in profile.rows if r <= 16]
    for label, values in (("projection", profile.projection), ("MLP", profile.mlp), ("head", profile.head)):
        one = values(1) or 1.0
        by_rows.plot(rows, [values(r) / one for r in rows], marker="o", markersize=3, label=label)
    by_rows.set(xlabel="rows", ylabel="times one row", title="width of a pass", ylim=(0, None))
    by_rows.legend(frameon=False)

    seconds = np.array([o.seconds for o, _ in passes])
    priced = np.array([price(profile, o) for o, _ in passes])
    dots = against.scatter(1e3 * seconds, 1e3 * priced, c=[o.rows for o, _ in passes], s=12, norm="log", cmap="viridis")
    against.axline((0, 0), slope=1, color="grey", linewidth=0.8)
    against.set(xlabel="measured (ms)", ylabel="priced (ms)", xscale="log", yscale="log", title="passes")
    made.colorbar(dots, ax=against, label="rows")
    made.suptitle(f"{profile.key.machine}, {profile.key.dtype}", fontsize=9)
    made.savefig(path, dpi=150)
