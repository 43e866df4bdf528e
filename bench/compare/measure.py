"""Measure one cell of `bench compare`: all policies on one workload at one temperature."""

import gc
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from bench import results
from bench.compare.contenders import Contender
from bench.compare.record import Cell, Temperature
from bench.compare.workloads import Sizes, Workload
from bench.targets import BatchTotals, PolicyTarget, RunStats, run_in_turns, sum_batches
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams


def warm_up(model: LoadedModel, entries: Sequence[Contender], workload: Workload, sizes: Sizes) -> None:
    """Let every policy answer one prompt on a core that nobody uses again: libraries load and buffers are made."""
    if any(each.policy == "swift" for each in entries):
        importlib.import_module("papers.bayesian")  # swift loads this module late, in 0.7 s
    sampling = SamplingParams(max_tokens=sizes.max_tokens)
    for each in entries:
        PolicyTarget(each.policy, model.core(each.config), sampling).run(workload.prompts[:1], 1)


def measure_cell(
    model: LoadedModel,
    entries: Sequence[Contender],
    workload: Workload,
    temperature: Temperature,
    sizes: Sizes,
    detail: Callable[[RunStats], dict[str, Any]] | None = None,
) -> Cell:
    """Answer a workload's prompts with all policies in turns, `sizes.repeat` times.

    Each policy begins each time without any knowledge. Which one has the first turn rotates. `detail` makes further
    figures of a row, of all repeats together.
    """
    names = [each.name for each in entries]
    stats = [RunStats() for _ in names]
    differing = dict.fromkeys(names, 0)
    for repeat in range(sizes.repeat):
        targets = _targets(model, entries, workload, temperature, sizes)
        for target, own in zip(targets, stats, strict=True):
            target.stats = own
        for number, prompt in enumerate(workload.prompts):
            plain, *rest = run_in_turns(targets, [prompt], first=(repeat + number) % len(targets))
            for name, answers in zip(names[1:], rest, strict=True):
                differing[name] += answers != plain
    count, plain_total = len(workload.prompts), _median_run(stats[0].batches, len(workload.prompts))
    rows = [
        results.summarise(target, stats[0], model.spec.layers)
        | {"search_ms": 1e3 * target.stats.search_seconds, "differing_answers": differing[target.name]}
        | speeds(_median_run(target.stats.batches, count), plain_total)
        | {"repeats": [sum_batches(target.stats.batches[i : i + count]) for i in range(0, sizes.repeat * count, count)]}
        for target in targets
    ]
    for row, own in zip(rows, stats, strict=True):
        _set_ceiling(row, own)
        if detail is not None:
            row |= detail(own)
    return Cell(workload.column, workload.name, temperature.name, workload.value, count, workload.switches, rows)


def _targets(
    model: LoadedModel,
    entries: Sequence[Contender],
    workload: Workload,
    temperature: Temperature,
    sizes: Sizes,
) -> list[PolicyTarget]:
    """Make policies that know nothing, each on a core of its own."""
    gc.collect()  # the caches of the cores before
    longest = len(workload.prefix) + max(len(prompt.tokens) for prompt in workload.prompts) + sizes.max_tokens
    # Caches of all policies together may take as much as --kv-cache-memory. Beyond that they share one, and take turns
    # by prompt.
    own_cache = len(entries) * longest <= model.size.capacity * model.size.block_size
    sampling = SamplingParams(max_tokens=sizes.max_tokens, temperature=temperature.temperature, top_p=temperature.top_p)
    return [
        PolicyTarget(each.policy, model.core(each.config, own_cache=own_cache), sampling, workload.prefix, each.name)
        for each in entries
    ]


def _set_ceiling(row: dict[str, Any], stats: RunStats) -> None:
    """Set the best speed-up with the measured α, γ, f and v, and the share of it that decoding reaches.

    Unlike that of `bench decode`, this ceiling includes copied tokens: they are drafted without a pass.
    """
    if "ceiling" in row:
        tokens = results.expected_tokens(row["alpha"], stats.drafted / stats.rounds)
        row["ceiling"] = tokens / (row["drafted_per_round"] * row["f"] + row["v"])
        row["share_of_ceiling"] = row["decode_speedup"] / row["ceiling"]


def _median_run(batches: Sequence[BatchTotals], prompts: int) -> BatchTotals:
    """Return the sum over prompts of each one's median repeat by time per token, the faster of the middle two."""
    chosen: list[BatchTotals] = []
    for prompt in range(prompts):
        own = sorted(batches[prompt::prompts], key=lambda batch: batch.seconds / batch.tokens)
        chosen.append(own[(len(own) - 1) // 2])
    return sum_batches(chosen)


def speeds(own: BatchTotals, plain: BatchTotals) -> dict[str, Any]:
    """Return the figures of speed of a row, of whole answers and of decoding."""
    speed = own.tokens / own.seconds
    found: dict[str, Any] = {
        "total": own,
        "tokens_per_second": speed,
        "ms_per_token": 1e3 / speed,
        "speedup": speed * plain.seconds / plain.tokens,
    }
    if own.decode_tokens:
        decode = own.decode_tokens / own.decode_seconds
        found |= {"decode_tokens_per_second": decode, "decode_ms_per_token": 1e3 / decode}
        if plain.decode_tokens:
            found["decode_speedup"] = decode * plain.decode_seconds / plain.decode_tokens
    return found
