"""What targets reached in a run, side by side as text."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.targets import BenchTarget, Tally
from engine.kv.cache import bytes_per_token
from engine.runtime.build import LoadedModel


def expected_tokens(alpha: float, gamma: float) -> float:
    """E(α, γ): tokens per round when each of γ draft tokens is accepted with probability α."""
    return gamma + 1 if alpha >= 1 else float((1 - alpha ** (gamma + 1)) / (1 - alpha))


def summarise(target: BenchTarget, plain: Tally, layers: int) -> dict[str, Any]:
    """One row of the table; `plain` is policy none's tally in the same run."""
    tally = target.tally
    row: dict[str, Any] = {
        "policy": target.name,
        "tokens_per_second": tally.tokens / tally.seconds,
        "speedup": (tally.tokens / tally.seconds) / (plain.tokens / plain.seconds),
        "speedup_median": statistics.median(
            (own.tokens / own.seconds) / (other.tokens / other.seconds)
            for own, other in zip(tally.batches, plain.batches, strict=True)
        ),
    }
    if tally.decode_tokens:
        row["decode_tokens_per_second"] = tally.decode_tokens / tally.decode_seconds
    if not tally.rounds:
        return row
    seconds = tally.decode_seconds
    row |= {
        "acceptance_length": tally.decode_tokens / tally.rounds,
        "search_share": tally.search_seconds / seconds,
        "searches": tally.searches,
        "knapsack_share": tally.knapsack_seconds / tally.seconds,
        "other_us_per_token": 1e6 * tally.other_seconds / max(tally.tokens, 1),
    }
    if tally.drafted:
        pass_seconds = plain.verify_seconds / plain.rounds
        alpha = tally.accepted / tally.tested
        gamma = tally.draft_passes / tally.rounds
        f = tally.draft_seconds / max(tally.draft_passes, 1) / pass_seconds  # none where all was looked up
        v = tally.verify_seconds / tally.rounds / pass_seconds
        ceiling = expected_tokens(alpha, gamma) / (gamma * f + v)
        decode = (tally.decode_tokens / seconds) / (plain.decode_tokens / plain.decode_seconds)
        row |= {
            "decode_speedup": decode,
            "alpha": alpha,
            "draft_acceptance_rate": tally.accepted / tally.drafted,
            "drafted_per_round": gamma,
            "f": f,
            "v": v,
            "ceiling": ceiling,
            "share_of_ceiling": decode / ceiling,
            "skipped_attention": tally.skipped_attention / tally.drafted / layers,
            "skipped_mlp": tally.skipped_mlp / tally.drafted / layers,
        }
    return row


def beside_llama_cpp(rows: Sequence[dict[str, Any]]) -> None:
    """Note in each row how fast it decodes, by llama.cpp's rate; prompts are left out where both tell them apart."""
    theirs = next((row for row in rows if row["policy"] == "llama.cpp"), None)
    if theirs is not None:
        for row in rows:
            key = "decode_tokens_per_second"
            key = key if key in theirs and key in row else "tokens_per_second"
            row["over_llama_cpp"] = row[key] / theirs[key]


_COLUMNS = (
    ("policy", "policy", "{}"),
    ("tok/s", "tokens_per_second", "{:.1f}"),
    ("decode/s", "decode_tokens_per_second", "{:.1f}"),
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
    ("search", "search_share", "{:.1%}"),
    ("other µs/tok", "other_us_per_token", "{:.0f}"),
)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as aligned text; what a target has no figure for stays empty."""
    columns = [column for column in _COLUMNS if any(column[1] in row for row in rows)]
    cells = [[title for title, _, _ in columns]]
    for row in rows:
        cells.append([form.format(row[key]) if key in row else "" for _, key, form in columns])
    return aligned(cells)


def aligned(cells: Sequence[Sequence[str]]) -> str:
    """Lines of cells as text, in columns."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in cells)


def domain_lines(domains: Mapping[str, Mapping[str, float]]) -> Iterator[list[str]]:
    """Names of speed-ups, these by domain, then their mean and the lowest. What a domain lacks stays empty."""
    names = list(dict.fromkeys(name for speedups in domains.values() for name in speedups))
    columns = [[speedups[name] for speedups in domains.values() if name in speedups] for name in names]
    yield ["", *names]
    for domain, speedups in domains.items():
        yield [domain or "(none)", *(f"{speedups[name]:.2f}" if name in speedups else "" for name in names)]
    for title, of in (("mean", statistics.mean), ("lowest", min)):
        yield [title, *(f"{of(column):.2f}" for column in columns)]


def bytes_read(plain: Tally, model: LoadedModel, bandwidth: float) -> dict[str, float]:
    """Bytes per second that plain decoding had to read, and what share of `bandwidth` that is; empty if it was idle."""
    if not plain.rounds:
        return {}
    cached = plain.context * bytes_per_token(model.spec, model.backend.cache_dtype)
    read = (plain.rounds * model.decoder.weight_bytes + cached) / plain.decode_seconds
    return {"read": read, "bandwidth": bandwidth, "share": read / bandwidth}


def reading_line(reading: Mapping[str, float]) -> str:
    """What `bytes_read` found, as text."""
    return (
        f"plain decoding reads {reading['read'] / 1e9:.1f} GB/s (weights and live cache, once a round), "
        f"{reading['share']:.0%} of the {reading['bandwidth'] / 1e9:.1f} GB/s that memory gives; small models "
        "stay in the CPU's caches"
    )
