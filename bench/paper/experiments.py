"""The experiments of the papers: what each measures, with which policies, and its table and figure."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.compare.record import Record
from bench.paper import figures
from bench.prediction_error import pearson
from bench.results import table_cells

Lines = list[list[str]]  # cells of a table; the first line has the titles

INTERVALS = (4, 8, 16, 32, 64, 128, 256)  # T: KnapSpec, figure 6
THRESHOLDS = (-1, 0.1, 0.3, 0.5, 0.7, 0.9)  # τ; −1 prunes nothing
MIXES = (0.0, 0.3, 0.7, 1.0)  # r: KNN-SSD, table 1
_NOT_SHOWN = {"speedup_median", "draft_acceptance_rate", "other_us_per_token", "share_of_ceiling", "ceiling"}
_NOT_SHOWN |= {"f", "v", "low_bit", "ms_per_token", "decode_ms_per_token"}
_SKIPS = (("skipped_attention", "attention skipped"), ("skipped_mlp", "MLP skipped"))
_GAINS = (("decode_speedup", "speed-up of decoding"), ("alpha", "α"))
_SWEEP = (("tokens_per_second", "tokens/s"), ("search_share", "share of time spent searching"))


def detailed(record: Record) -> Lines:
    """Return a line for each cell and policy, then for each policy over all cells, unless contexts differ."""
    rows = [{"workload": cell.workload, **row} for cell in record.cells for row in cell.rows]
    if len(record.cells) > 1 and record.cells[0].column != "context":
        rows += [{"workload": "all", **row} for row in figures.over_cells(record)]
    return table_cells(rows, _NOT_SHOWN)


def summary(record: Record) -> Lines:
    """Return a line for each policy over all cells."""
    return table_cells(figures.over_cells(record), _NOT_SHOWN)


def skip_map(record: Record) -> Lines:
    """Return the share of draft passes that skip each sublayer, a line for each layer (KnapSpec, figure 5)."""
    found = {policy: figures.skip_shares(figures.rows_of(record, policy)) for policy in record.policies[1:]}
    layers = max(len(shares) for shares in found.values()) // 2
    lines = [["layer", *(f"{policy}, {kind}" for policy in found for kind in ("attention", "MLP"))]]
    for layer in range(layers):
        own = [shares[2 * layer : 2 * layer + 2] for shares in found.values()]
        lines.append([str(layer + 1), *(text for pair in own for text in ([f"{s:.0%}" for s in pair] or ["", ""]))])
    return lines


def correlations(record: Record) -> Lines:
    """Return Pearson's r and R² of predicted TPT, and of acceptance, with measured TPT (KnapSpec, figure 2)."""
    lines = [["policy", "requests", "TPT: r", "R²", "acceptance: r", "R²"]]
    for policy in record.policies[1:]:
        points = figures.requests_of(record, policy)
        found = [pearson(points[:, columns]) for columns in ([0, 1], [3, 1])]
        shown = [text for r in found for text in (("", "") if r is None else (f"{r:.3f}", f"{r * r:.3f}"))]
        lines.append([policy, str(len(points)), *shown])
    return lines


@dataclass(frozen=True)
class Experiment:
    """One experiment. Without `panels`, its figure is a heat map of speed-ups."""

    title: str
    column: str  # one of `bench.compare.workloads.WORKLOADS`
    policies: str  # default of --policies, or settings of one policy, which is all it compares; "": all of the model
    table: Callable[[Record], Lines] = detailed
    panels: Callable[[Record], list[figures.Panel]] | None = None
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
        panels=lambda record: figures.by_cell(
            record, ("decode_tokens_per_second", "tokens/s of decoding"), *_SKIPS, x="context, tokens", log=True
        ),
        note="decode/s is the measured TPT, tokens per second of decoding.",
    ),
    "interval": Experiment(
        "the interval T of knapsack (KnapSpec, figure 6)",
        "domains",
        _sweep("interval", INTERVALS),
        table=summary,
        panels=lambda record: figures.by_setting(record, *_SWEEP, x="T, steps", log=True),
        note="search is the share of decoding that goes into searches. Answers of fewer than T steps have one search.",
        max_tokens=512,
    ),
    "tau": Experiment(
        "the threshold τ of knapsack (KnapSpec, figure 4)",
        "domains",
        _sweep("tau", THRESHOLDS),
        table=summary,
        panels=lambda record: figures.by_setting(record, *_SWEEP, ("memory_mb", "memory, MB"), x="τ"),
        note="τ = −1 prunes nothing. Memory: growth of a process that answers two prompts (of the host, on a GPU).",
        memory=True,
    ),
    "coupled": Experiment(
        "items of the knapsack: sublayers, or whole layers (KnapSpec, section 2)",
        "domains",
        "knapsack,knapsack:items=layers",
        panels=lambda record: figures.by_cell(record, *_GAINS, x="prompts"),
    ),
    "map": Experiment(
        "how often each sublayer is skipped (KnapSpec, figure 5)",
        "domains",
        "knapsack",
        table=skip_map,
        panels=figures.by_sublayer,
        note="Shares of draft passes, by the plan that drafted.",
    ),
    "correlation": Experiment(
        "predicted against measured TPT, beside acceptance (KnapSpec, figure 2)",
        "domains",
        "knapsack",
        table=correlations,
        panels=figures.by_request,
        note="Points are requests with at least 16 tokens from drafts with a prediction; R² is of the least-squares "
        "line. Empty: fewer than three requests, or all alike.",
    ),
    "mix": Experiment(
        "streams of mix ratio r (KNN-SSD, table 1)",
        "mixed",
        "",
        panels=lambda record: figures.by_cell(record, *_GAINS, x="mix ratio r"),
    ),
    "ood": Experiment("domains that no layer set was tuned on (KNN-SSD, table 4)", "domains", ""),
}
