"""The experiments of the papers: what each measures, with which policies, and its table."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.measurements import Totals
from bench.record import Record
from bench.report import details, summary
from bench.results import Row, aligned
from engine.plans import SKIP

INTERVALS = (4, 8, 16, 32, 64, 128, 256)  # T: KnapSpec, figure 6
THRESHOLDS = (-1, 0.1, 0.3, 0.5, 0.7, 0.9)  # τ; −1 prunes nothing
MIXES = (0.0, 0.3, 0.7, 1.0)  # r: KNN-SSD, table 1


def skip_shares(rows: list[Row]) -> list[float]:
    """Return the share of draft passes that skip each sublayer, [2L]; [] without a draft pass."""
    plans = Totals.sum(Totals.from_json(row["totals"]) for row in rows).plans
    if not plans:
        return []
    skipped = np.array([[variant == SKIP for variant in plan[:-1]] for plan in plans])
    shares: list[float] = (np.array([*plans.values()]) @ skipped / plans.total()).tolist()
    return shares


def skip_map(record: Record) -> str:
    """Return the shares of draft passes that skip each sublayer, by layer (KnapSpec, figure 5)."""
    titles, columns = ["layer"], []
    for policy in record.policies[1:]:
        if shares := skip_shares(record.rows_of(policy)):
            titles += [f"{policy}, attention", f"{policy}, MLP"]
            columns += [shares[0::2], shares[1::2]]
    lines = [[str(layer), *map("{:.0%}".format, own)] for layer, own in enumerate(zip(*columns, strict=True), 1)]
    return aligned([titles, *lines])


def pearson(points: np.ndarray) -> float | None:
    """Return the Pearson correlation of the two columns of points [requests, 2].

    Its square is the R² of the least-squares line, as in KnapSpec's figure 2. None for fewer than
    three points, or if a column is constant.
    """
    if len(points) < 3 or not np.ptp(points, axis=0).all():
        return None
    return float(np.corrcoef(points, rowvar=False)[0, 1])


def correlations(record: Record) -> str:
    """Return r and R² of predicted TPT, and of acceptance, with measured TPT (KnapSpec, figure 2)."""
    lines = [["policy", "requests", "TPT: r", "R²", "acceptance: r", "R²"]]
    for policy in record.policies[1:]:
        points = np.array([each for row in record.rows_of(policy) for each in row["predictions"]]).reshape(-1, 4)
        line = [policy, str(len(points))]
        for columns in ([0, 1], [3, 1]):
            r = pearson(points[:, columns])
            line += ["", ""] if r is None else [f"{r:.3f}", f"{r * r:.3f}"]
        lines.append(line)
    return aligned(lines)


def _sweep(setting: str, values: tuple[float, ...]) -> str:
    return ",".join(f"knapsack:{setting}={value:g}" for value in values)


@dataclass(frozen=True)
class Experiment:
    """One experiment of the papers."""

    title: str
    column: str  # one of `bench.workloads.WORKLOADS`
    policies: str = ""  # default of --policies; "": all of the model
    table: Callable[[Record], str] = details
    note: str = ""
    max_tokens: int = 128  # tokens of an answer to the kit's prompts, at most


EXPERIMENTS: dict[str, Experiment] = {
    "speed": Experiment("speed-up and α by dataset (KnapSpec and SWIFT, table 2; DEL, table 1)", "domains"),
    "context": Experiment(
        "TPT and skipped sublayers by context length (KnapSpec, figure 3)",
        "context",
        "knapsack,swift,knapspec",
        note="decode/s is the measured TPT, tokens per second of decoding.",
    ),
    "interval": Experiment(
        "the interval T of knapsack (KnapSpec, figure 6)",
        "domains",
        _sweep("interval", INTERVALS),
        table=summary,
        note="search: share of decoding that goes into searches. Answers of fewer than T steps have one search.",
        max_tokens=512,
    ),
    "tau": Experiment(
        "the threshold τ of knapsack (KnapSpec, figure 4)",
        "domains",
        _sweep("tau", THRESHOLDS),
        table=summary,
        note="τ = −1 prunes nothing.",
    ),
    "coupled": Experiment(
        "items of the knapsack: sublayers, or whole layers (KnapSpec, section 2)",
        "domains",
        "knapsack,knapsack:items=layers",
    ),
    "map": Experiment(
        "how often each sublayer is skipped (KnapSpec, figure 5)",
        "domains",
        "knapsack",
        table=skip_map,
        note="Shares of draft passes, by the plan that drafted.",
    ),
    "correlation": Experiment(
        "predicted against measured TPT, beside acceptance (KnapSpec, figure 2)",
        "domains",
        "knapsack",
        table=correlations,
        note="Points are requests with at least 16 tokens from drafts with a prediction; R² is of the "
        "least-squares line. Empty: fewer than three requests, or all alike.",
    ),
    "mix": Experiment("streams of mix ratio r (KNN-SSD, table 1)", "mixed"),
    "ood": Experiment("domains that no layer set was tuned on (KNN-SSD, table 4)", "domains"),
}
