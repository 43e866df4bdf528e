"""Measure the cells of a comparison: all policies on one workload at one temperature."""

import gc
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.contenders import Contender, contenders
from bench.memory import measure_all
from bench.prediction_error import prediction_errors
from bench.record import TEMPERATURES, Cell, Record, Temperature, machine_facts, open_record, settings_of
from bench.results import speeds, summarise
from bench.targets import BatchTotals, PolicyTarget, RunStats, answer_in_turns, sum_batches
from bench.workloads import Selection, Workload, make_workloads
from engine.config.engine import EngineConfig
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams

_WARM_UP = 32  # tokens of an answer that warms up, at most


def compare(
    model: LoadedModel,
    config: EngineConfig,
    policies: str,
    chosen: Selection,
    path: Path | None,
    *,
    temperatures: Sequence[Temperature] = TEMPERATURES,
    skip_long: bool = False,
    restart: bool = False,
    show: bool = True,
    **more: str,
) -> Record:
    """Measure all that the record at `path` lacks: cells, and memory if it is among the columns.

    `policies`: all of the model if empty. `more`: further settings on which the cells depend. Raises ConfigError.
    """
    entries = contenders(policies or ",".join(model.core(config).info.policies), config)
    record = open_record(path, settings_of(model, config, entries, chosen) | more, restart)
    record.machine = machine_facts(model, config)
    workloads = make_workloads(model, config, chosen, skip_long)
    if not workloads and "context" in chosen.columns:
        raise ConfigError("no context fits the model beside a prompt and its answer; give shorter --contexts")
    cells = [(workload, temperature) for temperature in temperatures for workload in workloads]
    measure_cells(record, model, entries, cells, chosen.repeat, show)
    if "memory" in chosen.columns:
        measure_all(record, entries, chosen.texts, chosen.max_tokens, show)
    return record


def measure_cells(
    record: Record,
    model: LoadedModel,
    entries: Sequence[Contender],
    cells: Sequence[tuple[Workload, Temperature]],
    repeat: int,
    show: bool,
) -> None:
    """Measure the cells that the record lacks, save each one, and `show` on stderr how long the others may take."""
    todo = [(workload, t) for workload, t in cells if record.find(workload.column, workload.name, t.name) is None]
    if show and len(todo) < len(cells):
        print(f"{len(cells) - len(todo)} of {len(cells)} cells are measured already", file=sys.stderr)
    if todo:
        model.warm_up()
        _warm_up(model, entries, todo[0][0])
    prompts = [len(workload.prompts) for workload, _ in todo]
    started = time.monotonic()
    for number, (workload, temperature) in enumerate(todo, 1):
        record.cells.append(measure_cell(model, entries, workload, temperature, repeat))
        record.save()
        if not show:
            continue
        left = (time.monotonic() - started) / sum(prompts[:number]) * sum(prompts[number:])
        print(
            f"[{number}/{len(todo)}] {workload.column}, {workload.name}, {temperature.name}; "
            f"about {left / 60:.1f} minutes left",
            file=sys.stderr,
        )


def _warm_up(model: LoadedModel, entries: Sequence[Contender], workload: Workload) -> None:
    """Let every policy answer one prompt on a core that nobody uses again: libraries load and buffers are made."""
    if any(each.policy == "swift" for each in entries):
        importlib.import_module("papers.bayesian")  # swift loads this module late, in 0.7 s
    sampling = SamplingParams(max_tokens=min(workload.max_tokens, _WARM_UP))
    for each in entries:
        PolicyTarget(each.policy, model.core(each.config), sampling).run(workload.prompts[:1], 1)


def measure_cell(
    model: LoadedModel, entries: Sequence[Contender], workload: Workload, temperature: Temperature, repeat: int = 1
) -> Cell:
    """Answer a workload's prompts with all policies in turns, `repeat` times.

    Each policy begins each time without any knowledge. Which one has the first turn rotates.
    """
    stats = [RunStats() for _ in entries]
    differing = np.zeros(len(entries), int)
    for number in range(repeat):
        targets = _targets(model, entries, workload, temperature)
        for target, own in zip(targets, stats, strict=True):
            target.stats = own
        for found in answer_in_turns(targets, [[prompt] for prompt in workload.prompts], first=number):
            differing += found
    count = len(workload.prompts)
    plain = _median_run(stats[0].batches, count)
    rows = [
        summarise(target, stats[0], model.spec.layers)
        | speeds(_median_run(target.stats.batches, count), plain)
        | _counts(target.stats)
        | {
            "total": _median_run(target.stats.batches, count),
            "repeats": [sum_batches(target.stats.batches[i : i + count]) for i in range(0, repeat * count, count)],
            "differing_answers": int(answers),
        }
        for target, answers in zip(targets, differing, strict=True)
    ]
    return Cell(workload.column, workload.name, temperature.name, workload.value, count, workload.switches, rows)


def _targets(
    model: LoadedModel, entries: Sequence[Contender], workload: Workload, temperature: Temperature
) -> list[PolicyTarget]:
    """Make policies that know nothing, each on a core of its own."""
    gc.collect()  # the caches of the cores before
    longest = len(workload.prefix) + max(len(prompt.tokens) for prompt in workload.prompts) + workload.max_tokens
    # Caches of all policies together may take as much as --kv-cache-memory. Beyond that they share one, and take turns
    # by prompt.
    own_cache = len(entries) * longest <= model.size.capacity * model.size.block_size
    sampling = SamplingParams(
        max_tokens=workload.max_tokens, temperature=temperature.temperature, top_p=temperature.top_p
    )
    return [
        PolicyTarget(each.policy, model.core(each.config, own_cache=own_cache), sampling, workload.prefix, each.name)
        for each in entries
    ]


def _median_run(batches: Sequence[BatchTotals], prompts: int) -> BatchTotals:
    """Return the sum over prompts of each one's median repeat by time per token, the faster of the middle two."""
    chosen: list[BatchTotals] = []
    for prompt in range(prompts):
        own = sorted(batches[prompt::prompts], key=lambda batch: -batch.speed)
        chosen.append(own[(len(own) - 1) // 2])
    return sum_batches(chosen)


def _counts(stats: RunStats) -> dict[str, Any]:
    """Return sums from which rows over several cells are made, and figures of requests, as JSON can hold them.

    `plans`: draft passes by plan, whose digits are variants. `requests`: of each with enough drafted tokens, predicted
    and measured TPT in tokens per second, predicted and measured acceptance.
    """
    errors = prediction_errors(stats.history)
    return {
        "rounds": stats.rounds,
        "accepted": stats.accepted,
        "tested": stats.tested,
        "search_seconds": stats.search_seconds,
        "plans": {"".join(map(str, plan)): passes for plan, passes in stats.plans.items()},
        "requests": np.concatenate([errors.tpt, errors.acceptance], axis=1).tolist(),
    }
