"""Measure the cells of a comparison: all policies on one workload at one temperature."""

import gc
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.contenders import Contender, contenders
from bench.measurements import RunStats
from bench.record import TEMPERATURES, Cell, Record, Temperature, machine_facts, open_record, settings_of
from bench.results import summarise
from bench.targets import PolicyTarget, answer_in_turns
from bench.workloads import Selection, Workload, make_workloads
from engine.config.engine import EngineConfig
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams

_WARM_UP = 32  # tokens of an answer that warms up, at most
_PREDICTED_TOKENS = 16  # fewest tokens of a request whose predictions are kept


def compare(
    model: LoadedModel,
    config: EngineConfig,
    policies: str,
    chosen: Selection,
    path: Path | None,
    temperatures: Sequence[Temperature] = TEMPERATURES,
    **more: str,
) -> Record:
    """Measure the cells that the record at `path` lacks.

    `policies`: all of the model if empty. `more`: further settings on which the cells depend.
    Raises ConfigError.
    """
    entries = contenders(policies or ",".join(model.core(config).info.policies), config)
    record = open_record(path, settings_of(model, config, entries, chosen) | more)
    record.machine = machine_facts(model, config)
    workloads = make_workloads(model, config, chosen)
    cells = [(workload, temperature) for temperature in temperatures for workload in workloads]
    measure_cells(record, model, entries, cells, chosen.repeat)
    return record


def measure_cells(
    record: Record,
    model: LoadedModel,
    entries: Sequence[Contender],
    cells: Sequence[tuple[Workload, Temperature]],
    repeat: int,
) -> None:
    """Measure and save the cells that the record lacks. Show the time left on stderr."""
    todo = [(workload, t) for workload, t in cells if record.find(workload.column, workload.name, t.name) is None]
    if len(todo) < len(cells):
        print(f"{len(cells) - len(todo)} of {len(cells)} cells are measured already", file=sys.stderr)
    if todo:
        model.warm_up()
        _warm_up(model, entries, todo[0][0])
    prompts = [len(workload.prompts) for workload, _ in todo]
    started = time.monotonic()
    for number, (workload, temperature) in enumerate(todo, 1):
        record.cells.append(measure_cell(model, entries, workload, temperature, repeat))
        record.save()
        minutes = (time.monotonic() - started) / sum(prompts[:number]) * sum(prompts[number:]) / 60
        name = f"{workload.column}, {workload.name}, {temperature.name}"
        print(f"[{number}/{len(todo)}] {name}; about {minutes:.1f} minutes left", file=sys.stderr)


def _warm_up(model: LoadedModel, entries: Sequence[Contender], workload: Workload) -> None:
    """Let every policy answer a prompt, so that libraries are loaded and buffers made."""
    if any(each.policy == "swift" for each in entries):
        importlib.import_module("papers.bayesian")  # swift loads this module late, in 0.7 s
    sampling = SamplingParams(max_tokens=min(workload.max_tokens, _WARM_UP))
    for each in entries:
        PolicyTarget(each.policy, model.core(each.config), sampling).run(workload.prompts[:1], 1)


def measure_cell(
    model: LoadedModel, entries: Sequence[Contender], workload: Workload, temperature: Temperature, repeat: int = 1
) -> Cell:
    """Answer a workload's prompts with all policies in turns, `repeat` times.

    Each policy begins each time without any knowledge. Which one has the first turn rotates. A row
    has the figures of `summarise`, the sums behind them (`totals`), and `predictions`: the means
    of `Prediction` for each request with enough drafted tokens.
    """
    stats = [RunStats() for _ in entries]
    differing = np.zeros(len(entries), int)
    for number in range(repeat):
        targets = _targets(model, entries, workload, temperature)
        for target, own in zip(targets, stats, strict=True):
            target.stats = own
        for found in answer_in_turns(targets, [[prompt] for prompt in workload.prompts], first=number):
            differing += found
    rows = [
        summarise(entry.name, own.total, stats[0].total)
        | {
            "differing_answers": int(answers),
            "totals": own.total.as_json(),
            "predictions": [each.means() for each in own.predictions.values() if each.emitted >= _PREDICTED_TOKENS],
        }
        for entry, own, answers in zip(entries, stats, differing, strict=True)
    ]
    return Cell(
        column=workload.column,
        workload=workload.name,
        temperature=temperature.name,
        value=workload.value,
        prompts=len(workload.prompts),
        rows=rows,
    )


def _targets(
    model: LoadedModel, entries: Sequence[Contender], workload: Workload, temperature: Temperature
) -> list[PolicyTarget]:
    """Make policies that know nothing, each on a core of its own."""
    gc.collect()  # frees the caches of the previous cores
    longest = len(workload.prefix) + max(len(prompt.tokens) for prompt in workload.prompts) + workload.max_tokens
    # Caches of all policies together may take as much as --kv-cache-memory. Beyond that they share
    # one, and take turns by prompt.
    own_cache = len(entries) * longest <= model.size.capacity * model.size.block_size
    sampling = SamplingParams(
        max_tokens=workload.max_tokens, temperature=temperature.temperature, top_p=temperature.top_p
    )
    return [
        PolicyTarget(each.policy, model.core(each.config, own_cache=own_cache), sampling, workload.prefix, each.name)
        for each in entries
    ]
