"""Figures of a benchmark run, after the KnapSpec paper's: what was promised against what came, and what was skipped."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.contenders import DraftRound
from engine.errors import ConfigError

_FEWEST_TOKENS = 16  # of a request's drafting rounds, to count as one
_MEDIAN_OF_NORMAL = 0.6745  # of the size of a normal variable, by its deviation


@dataclass(frozen=True, slots=True)
class Predictions:
    """Per request, or kind of requests, what its drafting rounds promised and what came: TPT in tokens per second,
    acceptance as a share."""

    tpt: np.ndarray  # [requests, promised | came]
    acceptance: np.ndarray  # [requests, promised | came]
    # What chance has to do with the errors: the median that promises of every request's own long-run mean would show,
    # by how much its rounds differ.
    tpt_chance: float = 0.0
    acceptance_chance: float = 0.0

    @property
    def tpt_error(self) -> float:
        """Median relative error of the promised TPT."""
        return float(np.median(np.abs(self.tpt[:, 0] / self.tpt[:, 1] - 1)))

    @property
    def acceptance_error(self) -> float:
        """Median absolute error of the promised acceptance."""
        return float(np.median(np.abs(self.acceptance[:, 0] - self.acceptance[:, 1])))

    def figures(self) -> dict[str, float | None]:
        """For JSON: no correlation where there are too few requests."""
        found = {
            "tpt": self.tpt_error,
            "tpt_chance": self.tpt_chance,
            "acceptance": self.acceptance_error,
            "acceptance_chance": self.acceptance_chance,
        }
        for name, pairs in (("tpt", self.tpt), ("acceptance", self.acceptance)):
            found[f"{name}_r"], found[f"{name}_r2"] = correlation(pairs)
        return {name: value if np.isfinite(value) else None for name, value in found.items()}

    def __str__(self) -> str:
        r, r2 = zip(correlation(self.tpt), correlation(self.acceptance), strict=True)
        return (
            f"TPT with a median error of {self.tpt_error:.1%} (chance alone: {self.tpt_chance:.1%}), "
            f"acceptance of {self.acceptance_error:.3f} (chance alone: {self.acceptance_chance:.3f}), "
            f"over {len(self.tpt)}; r {r[0]:.2f} and {r[1]:.2f}, R² {r2[0]:.2f} and {r2[1]:.2f}"
        )


def predictions(
    history: Sequence[DraftRound], group: Callable[[int], Hashable] = lambda request: request
) -> Predictions:
    """Means over each request's drafting rounds, or over those of requests that `group` makes one of; promises weighted
    by time and by drafted tokens."""
    groups: dict[Hashable, list[DraftRound]] = defaultdict(list)
    for r in history:
        if r.drafted and r.predicted_tpt is not None and r.predicted_acceptance is not None:
            groups[group(r.request)].append(r)
    tpt, acceptance, chance = [], [], []
    for rounds in groups.values():
        seconds, emitted = sum(r.seconds for r in rounds), sum(r.emitted for r in rounds)
        drafted, accepted = sum(r.drafted for r in rounds), sum(r.accepted for r in rounds)
        if emitted < _FEWEST_TOKENS:
            continue
        promised = sum((r.predicted_tpt or 0.0) * r.seconds for r in rounds) / seconds
        expected = sum((r.predicted_acceptance or 0.0) * r.drafted for r in rounds) / drafted
        tpt.append((promised, emitted / seconds))
        acceptance.append((expected, accepted / drafted))
        if len(rounds) > 1:
            of_tpt = _ratio_error([r.emitted for r in rounds], [r.seconds for r in rounds]) / (emitted / seconds)
            chance.append((of_tpt, _ratio_error([r.accepted for r in rounds], [r.drafted for r in rounds])))
    floors = np.median(_MEDIAN_OF_NORMAL * np.array(chance), axis=0) if chance else (0.0, 0.0)
    return Predictions(np.array(tpt).reshape(-1, 2), np.array(acceptance).reshape(-1, 2), *map(float, floors))


def _ratio_error(of: Sequence[float], to: Sequence[float]) -> float:
    """Standard error of Σ of ÷ Σ to, over pairs that are alike (Cochran, Sampling Techniques, ch. 6)."""
    a, b = np.array(of, dtype=float), np.array(to, dtype=float)
    residuals = a - a.sum() / b.sum() * b
    return float(np.sqrt((residuals**2).sum() * len(a) / (len(a) - 1)) / b.sum())


def correlation(pairs: np.ndarray) -> tuple[float, float]:
    """Pearson's r of pairs [n, 2], and R² of the first as a prediction of the second; nan for fewer than three."""
    if len(pairs) < 3 or min(np.ptp(pairs, axis=0)) == 0:
        return float("nan"), float("nan")
    promised, came = pairs[:, 0], pairs[:, 1]
    r = float(np.corrcoef(promised, came)[0, 1])
    return r, float(1 - ((came - promised) ** 2).sum() / ((came - came.mean()) ** 2).sum())


def skip_shares(history: Sequence[DraftRound]) -> tuple[np.ndarray, np.ndarray]:
    """Share of the drafted tokens that skipped each attention sublayer and each MLP: two arrays [layers]."""
    rounds = [r for r in history if r.drafted and r.variants]
    if not rounds:
        return np.zeros(0), np.zeros(0)
    weights = np.array([r.drafted for r in rounds], dtype=float)
    skipped = weights @ (np.array([r.variants for r in rounds]) == 0) / weights.sum()
    return skipped[0::2], skipped[1::2]


def require_plots() -> None:
    """Raises ConfigError if nothing can be drawn: better before the measurement than after it."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("--plot needs matplotlib: pip install -e '.[plots]' in KnapServe's directory")


def _figure(columns: int, *, width: float = 4.6) -> tuple[Any, Sequence[Any]]:
    """An empty figure of `columns` panels, drawn without a display: (figure, axes)."""
    from matplotlib.figure import Figure  # an extra of the package (`plots`)

    made = Figure(figsize=(width * columns, 3.6), layout="constrained")
    axes = made.subplots(1, columns, squeeze=False)[0]
    for panel in axes:
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    return made, axes


def draw_predictions(found: Predictions, path: Path) -> None:
    """The paper's Figure 2: TPT and acceptance, promised against what came; a point a request."""
    made, panels = _figure(2)
    for panel, pairs, title in zip(panels, (found.tpt, found.acceptance), ("tokens/s", "acceptance"), strict=True):
        r, r2 = correlation(pairs)
        if len(pairs):
            panel.scatter(pairs[:, 0], pairs[:, 1], s=10, alpha=0.6)
            low, high = float(pairs.min()), float(pairs.max())
            panel.plot([low, high], [low, high], color="grey", linewidth=0.8)
        panel.set(xlabel="promised", ylabel="came", title=f"{title}: r = {r:.2f}, R² = {r2:.2f}")
    made.savefig(path, dpi=150)


def draw_skips(history: Sequence[DraftRound], path: Path) -> None:
    """The paper's Figure 5: how often each sublayer was skipped while drafting."""
    made, (panel,) = _figure(1, width=7)
    attention, mlp = skip_shares(history)
    layers = np.arange(len(attention))
    panel.bar(layers - 0.2, attention, 0.4, label="attention")
    panel.bar(layers + 0.2, mlp, 0.4, label="MLP")
    panel.set(xlabel="layer", ylabel="share of drafts that skip it", ylim=(0, 1), title="what drafts leave out")
    panel.legend(frameon=False)
    made.savefig(path, dpi=150)


def draw_curves(
    rows: Sequence[dict[str, Any]], x: str, curves: Sequence[tuple[str, str]], path: Path, *, log: bool = False
) -> None:
    """One panel a curve (key, title) over `x` of each row: Figures 3 (contexts), 4 (τ) and 6 (T)."""
    made, panels = _figure(len(curves))
    for panel, (key, title) in zip(panels, curves, strict=True):
        points = [(row[x], row[key]) for row in rows if key in row]
        panel.plot([a for a, _ in points], [b for _, b in points], marker="o", markersize=4)
        panel.set(xlabel=x, title=title, ylim=(0, None))
        if log:
            panel.set_xscale("log", base=2)
    made.savefig(path, dpi=150)
