"""Results of a benchmark run as rows and text tables."""

import statistics
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from bench.targets import BatchTotals, Measured, RunStats
from engine.plans import LOW_BIT, skipped

Row = dict[str, Any]
Lines = list[list[str]]  # cells of a table; the first line has the titles

_LLAMA_CPP = "llama.cpp"


def expected_tokens(alpha: float, gamma: float) -> float:
    """Return E(α, γ), the tokens per round if each of γ draft tokens is accepted with probability α."""
    return gamma + 1 if alpha >= 1 else float((1 - alpha ** (gamma + 1)) / (1 - alpha))


def speeds(own: BatchTotals, plain: BatchTotals) -> Row:
    """Return the figures of speed, of whole answers and of decoding. `plain`: the totals of policy none."""
    found: Row = {
        "tokens_per_second": own.speed,
        "ms_per_token": 1e3 / own.speed,
        "speedup": own.speed / plain.speed,
    }
    if own.decode_tokens:
        found |= {"decode_tokens_per_second": own.decode_speed, "decode_ms_per_token": 1e3 / own.decode_speed}
        if plain.decode_tokens:
            found["decode_speedup"] = own.decode_speed / plain.decode_speed
    return found


def summarise(target: Measured, plain: RunStats, layers: int) -> Row:
    """Return one row of the table. `plain` has the measurements of policy none in the same run."""
    stats = target.stats
    row: Row = {"policy": target.name} | speeds(stats.total, plain.total)
    if stats.batches:
        pairs = zip(stats.batches, plain.batches, strict=True)
        row["speedup_median"] = statistics.median(speeds(own, other)["speedup"] for own, other in pairs)
    if not stats.rounds:
        return row
    row |= {
        "acceptance_length": stats.decode_tokens / stats.rounds,
        "search_share": stats.search_seconds / stats.decode_seconds,
        "search_ms": 1e3 * stats.search_seconds,
        "searches": stats.searches,
        "knapsack_share": stats.knapsack_seconds / stats.seconds,
        "other_us_per_token": 1e6 * stats.other_seconds / max(stats.tokens, 1),
    }
    if stats.tested:
        row["alpha"] = stats.accepted / stats.tested
    if stats.drafted:
        row |= _ceiling(row, stats, plain.verify_seconds / plain.rounds)
    if passes := stats.plans.total():
        attention, mlp = (sum(skipped(plan)[kind] * n for plan, n in stats.plans.items()) for kind in (0, 1))
        low_bit = sum(sum(variant >= LOW_BIT for variant in plan[:-1]) * n for plan, n in stats.plans.items())
        row |= {
            "skipped_attention": attention / passes / layers,
            "skipped_mlp": mlp / passes / layers,
            "low_bit": low_bit / passes / (2 * layers),
        }
    return row


def _ceiling(row: Row, stats: RunStats, pass_seconds: float) -> Row:
    """Return γ, f, v and the best speed-up E(α, d) / (γf + v), with the share of it that decoding reaches.

    d is the drafted tokens of a request's round; copied ones are among them, though they cost no draft pass.
    """
    gamma = stats.draft_passes / stats.rounds
    f = stats.draft_seconds / max(stats.draft_passes, 1) / pass_seconds  # 0 if all drafts were looked up
    v = stats.verify_seconds / stats.rounds / pass_seconds
    ceiling = expected_tokens(row["alpha"], stats.drafted / len(stats.history)) / (gamma * f + v)
    return {
        "draft_acceptance_rate": stats.accepted / stats.drafted,
        "drafted_per_round": gamma,
        "f": f,
        "v": v,
        "ceiling": ceiling,
        "share_of_ceiling": row["decode_speedup"] / ceiling,
    }


def add_llama_cpp_ratios(rows: Sequence[Row]) -> None:
    """Add the speed relative to llama.cpp to each row: that of decoding if both know it, else of whole answers."""
    reference = next((row for row in rows if row["policy"] == _LLAMA_CPP), None)
    if reference is not None:
        for row in rows:
            key = "decode_tokens_per_second"
            key = key if key in reference and key in row else "tokens_per_second"
            row["over_llama_cpp"] = row[key] / reference[key]


_COLUMNS = (
    ("workload", "workload", "{}"),
    ("policy", "policy", "{}"),
    ("tok/s", "tokens_per_second", "{:.1f}"),
    ("decode/s", "decode_tokens_per_second", "{:.1f}"),
    ("ms/tok", "ms_per_token", "{:.2f}"),
    ("decode ms/tok", "decode_ms_per_token", "{:.2f}"),
    ("speed-up", "speedup", "{:.2f}"),
    ("of llama.cpp", "over_llama_cpp", "{:.2f}"),
    ("median", "speedup_median", "{:.2f}"),
    ("decode", "decode_speedup", "{:.2f}"),
    ("ceiling", "ceiling", "{:.2f}"),
    ("of ceiling", "share_of_ceiling", "{:.0%}"),
    ("α", "alpha", "{:.3f}"),
    ("accepted", "draft_acceptance_rate", "{:.3f}"),
    ("γ", "drafted_per_round", "{:.2f}"),
    ("length", "acceptance_length", "{:.2f}"),
    ("f", "f", "{:.2f}"),
    ("v", "v", "{:.2f}"),
    ("skip attn", "skipped_attention", "{:.0%}"),
    ("skip mlp", "skipped_mlp", "{:.0%}"),
    ("low-bit", "low_bit", "{:.0%}"),
    ("search", "search_share", "{:.1%}"),
    ("search ms", "search_ms", "{:.1f}"),
    ("memory MB", "memory_mb", "{:.1f}"),
    ("other µs/tok", "other_us_per_token", "{:.0f}"),
    ("differ", "differing_answers", "{}"),
)
_DETAILS = ("ms_per_token", "decode_ms_per_token", "search_ms")  # columns that `table` leaves out


def table(rows: Sequence[Row]) -> str:
    """Format rows as an aligned table. Missing values are empty."""
    return aligned(table_cells(rows, _DETAILS))


def table_cells(rows: Sequence[Row], leave_out: Container[str] = ()) -> Lines:
    """Format rows as lines of cells, titles first, without the columns of the keys in `leave_out`."""
    columns = [column for column in _COLUMNS if column[1] not in leave_out and any(column[1] in row for row in rows)]
    cells = [[title for title, _, _ in columns]]
    for row in rows:
        cells.append([form.format(row[key]) if key in row else "" for _, key, form in columns])
    return cells


def aligned(cells: Sequence[Sequence[str]]) -> str:
    """Format lines of cells in aligned columns."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in cells)


def facts_text(facts: Mapping[str, object]) -> str:
    """Format names and values, a line each."""
    return "\n".join(f"{name}: {value}" for name, value in facts.items())


def domain_lines(domains: Mapping[str, Mapping[str, float]], names: Sequence[str] = ()) -> Iterator[list[str]]:
    """Yield table lines of the speed-ups: names, one line per domain, mean and minimum. Missing values are empty.

    `names`: the columns, if not those that the domains have.
    """
    names = names or list(dict.fromkeys(name for speedups in domains.values() for name in speedups))
    columns = [[speedups[name] for speedups in domains.values() if name in speedups] for name in names]
    yield ["", *names]
    for domain, speedups in domains.items():
        yield [domain or "(none)", *(f"{speedups[name]:.2f}" if name in speedups else "" for name in names)]
    for title, of in (("mean", statistics.mean), ("lowest", min)):
        yield [title, *(f"{of(column):.2f}" if column else "" for column in columns)]
