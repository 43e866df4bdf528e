"""The experiments of the papers: what each measures, with which policies, and its table and figure."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.plots import Panel, values_of
from bench.prediction_error import pearson
from bench.record import Record
from bench.results import Lines, Row, summarise, table_cells
from bench.targets import RunStats, sum_batches
from engine.plans import SKIP

INTERVALS = (4, 8, 16, 32, 64, 128, 256)  # T: KnapSpec, figure 6
THRESHOLDS = (-1, 0.1, 0.3, 0.5, 0.7, 0.9)  # τ; −1 prunes nothing
MIXES = (0.0, 0.3, 0.7, 1.0)  # r: KNN-SSD, table 1
_NOT_SHOWN = {"speedup_median", "draft_acceptance_rate", "other_us_per_token", "share_of_ceiling", "ceiling"}
_NOT_SHOWN |= {"f", "v", "low_bit", "ms_per_token", "decode_ms_per_token"}
_SKIPS = (("skipped_attention", "attention skipped"), ("skipped_mlp", "MLP skipped"))
_GAINS = (("decode_speedup", "speed-up of decoding"), ("alpha", "α"))
_SWEEP = (("tokens_per_second", "tokens/s"), ("search_share", "share of time spent searching"))


@dataclass
class _Total:
    """A policy over all cells."""

    name: str
    stats: RunStats


def _total(record: Record, policy: str) -> _Total:
    """Return sums over the cells of what their rows keep."""
    rows = record.rows_of(policy)
    tokens, seconds, decode_tokens, decode_seconds = sum_batches(row["total"] for row in rows)
    stats = RunStats(
        tokens=tokens,
        seconds=seconds,
        decode_tokens=decode_tokens,
        decode_seconds=decode_seconds,
        plans=_plans(rows),
        **{key: sum(row[key] for row in rows) for key in ("rounds", "accepted", "tested", "search_seconds")},
    )
    return _Total(policy, stats)


def _plans(rows: Sequence[Row]) -> Counter[tuple[int, ...]]:
    """Return draft passes by plan."""
    passes: Counter[tuple[int, ...]] = Counter()
    for row in rows:
        passes.update({tuple(map(int, plan)): count for plan, count in row["plans"].items()})
    return passes


def skip_shares(rows: Sequence[Row]) -> list[float]:
    """Return the share of draft passes that skip each sublayer, [2L]; [] without a pass of the model (figure 5)."""
    passes = _plans(rows)
    if not passes:
        return []
    skipped = np.array([[variant == SKIP for variant in plan[:-1]] for plan in passes])
    shares: list[float] = (np.array([*passes.values()]) @ skipped / passes.total()).tolist()
    return shares


def over_cells(record: Record) -> list[Row]:
    """Return a row for each policy over all cells: sums of tokens, seconds and counts, not means of ratios."""
    plain = _total(record, record.policies[0])
    memory = {row["policy"]: row["growth"] / 1e6 for row in record.memory if "growth" in row}
    found: list[Row] = []
    for policy in record.policies:
        total = _total(record, policy)
        layers = max((len(plan) // 2 for plan in total.stats.plans), default=0)
        row = summarise(total, plain.stats, layers)
        row["differing_answers"] = sum(own["differing_answers"] for own in record.rows_of(policy))
        found.append(row | ({"memory_mb": memory[policy]} if policy in memory else {}))
    return found


def detailed(record: Record) -> Lines:
    """Return a line for each cell and policy, then for each policy over all cells, unless contexts differ."""
    rows = [{"workload": cell.workload, **row} for cell in record.cells for row in cell.rows]
    if len(record.cells) > 1 and record.cells[0].column != "context":
        rows += [{"workload": "all", **row} for row in over_cells(record)]
    return table_cells(rows, _NOT_SHOWN)


def summary(record: Record) -> Lines:
    """Return a line for each policy over all cells."""
    return table_cells(over_cells(record), _NOT_SHOWN)


def skip_map(record: Record) -> Lines:
    """Return the share of draft passes that skip each sublayer, a line for each layer (KnapSpec, figure 5)."""
    found = {policy: skip_shares(record.rows_of(policy)) for policy in record.policies[1:]}
    lines = [["layer", *(f"{policy}, {kind}" for policy in found for kind in ("attention", "MLP"))]]
    for layer in range(max(map(len, found.values())) // 2):
        own = [shares[2 * layer : 2 * layer + 2] for shares in found.values()]
        lines.append([str(layer + 1), *(text for pair in own for text in ([f"{s:.0%}" for s in pair] or ["", ""]))])
    return lines


def correlations(record: Record) -> Lines:
    """Return Pearson's r and R² of predicted TPT, and of acceptance, with measured TPT (KnapSpec, figure 2)."""
    lines = [["policy", "requests", "TPT: r", "R²", "acceptance: r", "R²"]]
    for policy in record.policies[1:]:
        points = _requests(record, policy)
        found = [pearson(points[:, columns]) for columns in ([0, 1], [3, 1])]
        shown = [text for r in found for text in (("", "") if r is None else (f"{r:.3f}", f"{r * r:.3f}"))]
        lines.append([policy, str(len(points)), *shown])
    return lines


def _requests(record: Record, policy: str) -> np.ndarray:
    """Return predicted TPT, measured TPT, predicted and measured acceptance of requests: [requests, 4]."""
    return np.array([each for row in record.rows_of(policy) for each in row["requests"]]).reshape(-1, 4)


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
    found = {policy: skip_shares(record.rows_of(policy)) for policy in record.policies[1:]}
    series = {policy: (range(1, len(shares) + 1), shares) for policy, shares in found.items()}
    return [Panel("share of draft passes that skip it", "sublayer; odd: attention, even: MLP", series)]


def by_request(record: Record) -> list[Panel]:
    """Return measured TPT over predicted TPT, and over measured acceptance (KnapSpec, figure 2)."""
    points = {policy: _requests(record, policy) for policy in record.policies[1:]}
    panels = []
    for column, x in ((0, "predicted TPT, tokens/s"), (3, "acceptance")):
        series = {policy: (own[:, column].tolist(), own[:, 1].tolist()) for policy, own in points.items()}
        panels.append(Panel("tokens/s of decoding", x, series, curves=False))
    return panels


@dataclass(frozen=True)
class Experiment:
    """One experiment. Without `panels`, its figure is a heat map of speed-ups."""

    title: str
    column: str  # one of `bench.workloads.WORKLOADS`
    policies: str  # default of --policies, or settings of one policy, which is all it compares; "": all of the model
    table: Callable[[Record], Lines] = detailed
    panels: Callable[[Record], list[Panel]] | None = None
    note: str = ""
    max_tokens: int = 128  # tokens of an answer to the kit's prompts, at most
    memory: bool = False  # whether each policy's memory is measured too


def _sweep(setting: str, values: tuple[float, ...]) -> str:
    return ",".join(f"knapsack:{setting}={value:g}" for value in values)


EXPERIMENTS: dict[str, Experiment] = {
    "speed": Experiment("speed-up and α by dataset (KnapSpec and SWIFT, table 2; DEL, table 1)", "domains", ""),
    "context": Experiment(
        "TPT and skipped sublayers by context length (KnapSpec, figure 3)",
        "context",
        "knapsack,swift,knapspec",
        panels=lambda record: by_cell(
            record, ("decode_tokens_per_second", "tokens/s of decoding"), *_SKIPS, x="context, tokens", log=True
        ),
        note="decode/s is the measured TPT, tokens per second of decoding.",
    ),
    "interval": Experiment(
        "the interval T of knapsack (KnapSpec, figure 6)",
        "domains",
        _sweep("interval", INTERVALS),
        table=summary,
        panels=lambda record: by_setting(record, *_SWEEP, x="T, steps", log=True),
        note="search is the share of decoding that goes into searches. Answers of fewer than T steps have one search.",
        max_tokens=512,
    ),
    "tau": Experiment(
        "the threshold τ of knapsack (KnapSpec, figure 4)",
        "domains",
        _sweep("tau", THRESHOLDS),
        table=summary,
        panels=lambda record: by_setting(record, *_SWEEP, ("memory_mb", "memory, MB"), x="τ"),
        note="τ = −1 prunes nothing. Memory: growth of a process that answers two prompts (of the host, on a GPU).",
        memory=True,
    ),
    "coupled": Experiment(
        "items of the knapsack: sublayers, or whole layers (KnapSpec, section 2)",
        "domains",
        "knapsack,knapsack:items=layers",
        panels=lambda record: by_cell(record, *_GAINS, x="prompts"),
    ),
    "map": Experiment(
        "how often each sublayer is skipped (KnapSpec, figure 5)",
        "domains",
        "knapsack",
        table=skip_map,
        panels=by_sublayer,
        note="Shares of draft passes, by the plan that drafted.",
    ),
    "correlation": Experiment(
        "predicted against measured TPT, beside acceptance (KnapSpec, figure 2)",
        "domains",
        "knapsack",
        table=correlations,
        panels=by_request,
        note="Points are requests with at least 16 tokens from drafts with a prediction; R² is of the least-squares "
        "line. Empty: fewer than three requests, or all alike.",
    ),
    "mix": Experiment(
        "streams of mix ratio r (KNN-SSD, table 1)",
        "mixed",
        "",
        panels=lambda record: by_cell(record, *_GAINS, x="mix ratio r"),
    ),
    "ood": Experiment("domains that no layer set was tuned on (KNN-SSD, table 4)", "domains", ""),
}
