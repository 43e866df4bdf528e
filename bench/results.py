"""Results of a benchmark run as rows and text tables."""

import statistics
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from bench.bandwidth import ReadBandwidth
from bench.targets import BenchTarget, RunStats
from engine.kv.cache import bytes_per_token
from engine.runtime.build import LoadedModel


def expected_tokens(alpha: float, gamma: float) -> float:
    """Return E(α, γ), the tokens per round if each of γ draft tokens is accepted with probability α."""
    return gamma + 1 if alpha >= 1 else float((1 - alpha ** (gamma + 1)) / (1 - alpha))


def summarise(target: BenchTarget, plain: RunStats, layers: int) -> dict[str, Any]:
    """Return one row of the table. `plain` has the measurements of policy none in the same run."""
    stats = target.stats
    row: dict[str, Any] = {
        "policy": target.name,
        "tokens_per_second": stats.tokens / stats.seconds,
        "speedup": (stats.tokens / stats.seconds) / (plain.tokens / plain.seconds),
        "speedup_median": statistics.median(
            (own.tokens / own.seconds) / (other.tokens / other.seconds)
            for own, other in zip(stats.batches, plain.batches, strict=True)
        ),
    }
    if stats.decode_tokens:
        row["decode_tokens_per_second"] = stats.decode_tokens / stats.decode_seconds
    if not stats.rounds:
        return row
    seconds = stats.decode_seconds
    row |= {
        "acceptance_length": stats.decode_tokens / stats.rounds,
        "search_share": stats.search_seconds / seconds,
        "searches": stats.searches,
        "knapsack_share": stats.knapsack_seconds / stats.seconds,
        "other_us_per_token": 1e6 * stats.other_seconds / max(stats.tokens, 1),
    }
    if plain.decode_tokens:
        row["decode_speedup"] = (stats.decode_tokens / seconds) / (plain.decode_tokens / plain.decode_seconds)
    if stats.drafted:
        pass_seconds = plain.verify_seconds / plain.rounds
        alpha = stats.accepted / stats.tested
        gamma = stats.draft_passes / stats.rounds
        f = stats.draft_seconds / max(stats.draft_passes, 1) / pass_seconds  # 0 if all drafts were looked up
        v = stats.verify_seconds / stats.rounds / pass_seconds
        ceiling = expected_tokens(alpha, gamma) / (gamma * f + v)
        row |= {
            "alpha": alpha,
            "draft_acceptance_rate": stats.accepted / stats.drafted,
            "drafted_per_round": gamma,
            "f": f,
            "v": v,
            "ceiling": ceiling,
            "share_of_ceiling": row["decode_speedup"] / ceiling,
        }
    if stats.model_drafts:
        row |= {
            "skipped_attention": stats.skipped_attention / stats.model_drafts / layers,
            "skipped_mlp": stats.skipped_mlp / stats.model_drafts / layers,
            "low_bit": stats.low_bit / stats.model_drafts / (2 * layers),
        }
    return row


def add_llama_cpp_ratios(rows: Sequence[dict[str, Any]]) -> None:
    """Add the speed relative to llama.cpp to each row: that of decoding if both know it, else of whole answers."""
    reference = next((row for row in rows if row["policy"] == "llama.cpp"), None)
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


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Format rows as an aligned table. Missing values are empty."""
    return aligned(table_cells(rows))


def table_cells(rows: Sequence[dict[str, Any]], leave_out: Container[str] = ()) -> list[list[str]]:
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


def bandwidth_meter(model: LoadedModel) -> ReadBandwidth:
    decoder = model.decoder
    return ReadBandwidth(decoder.device, model.clock, model.key.threads, model.backend.kernels, decoder.weight_tensors)


def read_bandwidth(plain: RunStats, model: LoadedModel, bandwidth: float) -> dict[str, float]:
    """Return the bytes per second that plain decoding reads, and their share of `bandwidth`; {} without rounds."""
    if not plain.rounds:
        return {}
    cached = plain.context * bytes_per_token(model.spec, model.backend.cache_dtype)
    read = (plain.rounds * model.decoder.weight_bytes + cached) / plain.decode_seconds
    return {"read": read, "bandwidth": bandwidth, "share": read / bandwidth}


def bandwidth_line(reading: Mapping[str, float]) -> str:
    """Format the result of `read_bandwidth`."""
    return (
        f"plain decoding reads {reading['read'] / 1e9:.1f} GB/s (weights and cache, once per round), "
        f"{reading['share']:.0%} of the memory bandwidth of {reading['bandwidth'] / 1e9:.1f} GB/s; small models "
        "stay in the CPU's caches"
    )
