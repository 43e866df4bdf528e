"""Figures of benchmarks, as rows and as text tables."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, NamedTuple

from bench.measurements import Totals
from engine.plans import LOW_BIT, skipped

Row = dict[str, Any]  # figures by name


class Column(NamedTuple):
    """A column of a table: its title, the key of its figures in rows, and their format."""

    title: str
    key: str
    form: str = "{:.2f}"


COLUMNS = (
    Column("workload", "workload", "{}"),
    Column("policy", "policy", "{}"),
    Column("tok/s", "tokens_per_second", "{:.1f}"),
    Column("decode/s", "decode_tokens_per_second", "{:.1f}"),
    Column("speed-up", "speedup"),
    Column("of llama.cpp", "over_llama_cpp"),
    Column("median", "speedup_median"),
    Column("decode", "decode_speedup"),
    Column("ceiling", "ceiling"),
    Column("of ceiling", "share_of_ceiling", "{:.0%}"),
    Column("α", "alpha", "{:.3f}"),
    Column("accepted", "draft_acceptance_rate", "{:.3f}"),
    Column("γ", "drafted_per_round"),
    Column("length", "acceptance_length"),
    Column("f", "f"),
    Column("v", "v"),
    Column("skip attn", "skipped_attention", "{:.0%}"),
    Column("skip mlp", "skipped_mlp", "{:.0%}"),
    Column("low-bit", "low_bit", "{:.0%}"),
    Column("search", "search_share", "{:.1%}"),
    Column("differ", "differing_answers", "{}"),
)


def expected_tokens(alpha: float, gamma: float) -> float:
    """Return E(α, γ), the tokens per round if each of γ draft tokens is right with probability α."""
    return gamma + 1 if alpha >= 1 else float((1 - alpha ** (gamma + 1)) / (1 - alpha))


def speeds(own: Totals, plain: Totals) -> Row:
    """Return speeds of whole answers and of decoding. `plain`: the totals of policy none."""
    found: Row = {"tokens_per_second": own.speed, "speedup": own.speed / plain.speed}
    if own.decode_tokens:
        found["decode_tokens_per_second"] = own.decode_speed
        if plain.decode_tokens:
            found["decode_speedup"] = own.decode_speed / plain.decode_speed
    return found


def summarise(name: str, own: Totals, plain: Totals) -> Row:
    """Return one row of the table. `plain` has the totals of policy none for the same prompts."""
    row: Row = {"policy": name} | speeds(own, plain)
    if not own.rounds:
        return row
    row["acceptance_length"] = own.decode_tokens / own.rounds
    row["search_share"] = own.search_seconds / own.decode_seconds
    if own.tested:
        row["alpha"] = own.accepted / own.tested
    if own.drafted:
        row |= _ceiling(row, own, plain.verify_seconds / plain.rounds)
    if own.plans:
        row |= _skipped(own)
    return row


def _ceiling(row: Row, own: Totals, pass_seconds: float) -> Row:
    """Return γ, f, v, the ceiling E(α, d) / (γf + v), and the share of it that decoding reaches.

    d is the drafted tokens of a request's round; copied ones are among them, though they cost no
    draft pass.
    """
    gamma = own.draft_passes / own.rounds
    f = own.draft_seconds / max(own.draft_passes, 1) / pass_seconds  # 0 if all drafts were copied
    v = own.verify_seconds / own.rounds / pass_seconds
    ceiling = expected_tokens(row["alpha"], own.drafted / own.request_rounds) / (gamma * f + v)
    return {
        "draft_acceptance_rate": own.accepted / own.drafted,
        "drafted_per_round": gamma,
        "f": f,
        "v": v,
        "ceiling": ceiling,
        "share_of_ceiling": row["decode_speedup"] / ceiling,
    }


def _skipped(own: Totals) -> Row:
    """Return the mean shares of sublayers that draft passes skip, or run in fewer bits."""
    attention = mlp = low_bit = 0.0
    for plan, passes in own.plans.items():
        layers, (skipped_attention, skipped_mlp) = len(plan) // 2, skipped(plan)
        attention += passes * skipped_attention / layers
        mlp += passes * skipped_mlp / layers
        low_bit += passes * sum(variant >= LOW_BIT for variant in plan[:-1]) / (2 * layers)
    passes = own.plans.total()
    return {"skipped_attention": attention / passes, "skipped_mlp": mlp / passes, "low_bit": low_bit / passes}


def add_llama_cpp_ratios(rows: Sequence[Row]) -> None:
    """Add the speed relative to llama.cpp: of decoding if both rows have it, else of answers."""
    reference = next((row for row in rows if row["policy"] == "llama.cpp"), None)
    if reference is not None:
        for row in rows:
            key = "decode_tokens_per_second"
            key = key if key in reference and key in row else "tokens_per_second"
            row["over_llama_cpp"] = row[key] / reference[key]


def table(rows: Sequence[Row], columns: Sequence[Column] = COLUMNS) -> str:
    """Format rows as an aligned table. Missing figures are empty, and so are columns left out."""
    shown = [column for column in columns if any(column.key in row for row in rows)]
    lines = [[column.title for column in shown]]
    for row in rows:
        lines.append([column.form.format(row[column.key]) if column.key in row else "" for column in shown])
    return aligned(lines)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Format lines of cells in aligned columns."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([text.rjust(width) for text, width in zip(line, widths, strict=True)] for line in lines)
    return "\n".join(map("  ".join, padded))


def domain_table(domains: Mapping[str, Mapping[str, float]]) -> str:
    """Format the speed-ups of targets by domain, with means and minima. Missing ones are empty."""
    rows: list[Row] = [{"domain": domain or "(none)", **speedups} for domain, speedups in domains.items()]
    names = dict.fromkeys(name for speedups in domains.values() for name in speedups)
    for title, of in (("mean", mean), ("lowest", min)):
        own = {name: of([row[name] for row in rows[: len(domains)] if name in row]) for name in names}
        rows.append({"domain": title} | own)
    return table(rows, [Column("", "domain", "{}"), *(Column(name, name) for name in names)])
