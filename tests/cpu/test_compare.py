"""`bench compare`: its streams, its record, its tables, and the whole command on the prepared fixture."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.cells import measure_cell, measure_cells
from bench.contenders import contenders
from bench.measurements import Totals
from bench.prompts import Text
from bench.record import GREEDY, SAMPLED, TEMPERATURES, Cell, Record, Temperature, open_record
from bench.report import comparison, sum_rows
from bench.results import summarise
from bench.targets import Prompt
from bench.workloads import Selection, Workload, make_workloads, mixed_stream
from engine.config.engine import EngineConfig
from engine.config.policies import draft_policies
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from papers.settings import LayerSkipConfig
from server.cli import main
from tests.support import PREPARED, PROMPT_FILE
from tests.support.cores import load

Run = Callable[..., CompletedProcess[str]]


def tasks_of(chance: random.Random) -> list[list[tuple[int, int]]]:
    """Make up to six tasks with up to six samples each, (task, sample); some are empty."""
    return [[(task, i) for i in range(chance.randrange(7))] for task in range(chance.randrange(1, 7))]


def switches(stream: Sequence[tuple[int, int]]) -> int:
    return sum(one[0] != other[0] for one, other in pairwise(stream))


def test_mixed_streams_have_every_sample_once_and_switch_as_rarely_or_as_often_as_they_can() -> None:
    chance = random.Random(1)
    seen = set()
    for seed in range(600):
        tasks = tasks_of(chance)
        total, largest = sum(map(len, tasks)), max(map(len, tasks))
        stream = mixed_stream(tasks, chance.choice([0.0, 0.3, 0.7, 1.0]), seed)
        assert [[sample for sample in stream if sample[0] == task] for task in range(len(tasks))] == tasks
        assert switches(mixed_stream(tasks, 0.0, seed)) == max(sum(map(bool, tasks)) - 1, 0)
        possible = largest <= (total + 1) // 2
        seen.add(possible)
        if possible:
            assert switches(mixed_stream(tasks, 1.0, seed)) == max(total - 1, 0)
    assert seen == {True, False}


def test_a_mixed_stream_depends_on_its_seed_alone() -> None:
    tasks = [[(task, i) for i in range(20)] for task in range(5)]
    assert mixed_stream(tasks, 0.7, 4) == mixed_stream(tasks, 0.7, 4)
    assert len({tuple(mixed_stream(tasks, 0.7, seed)) for seed in range(8)}) == 8


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.7, 0.9])
def test_the_share_of_switches_in_a_long_stream_is_the_mix_ratio(ratio: float) -> None:
    tasks = [[(task, i) for i in range(2000)] for task in range(5)]
    first = mixed_stream(tasks, ratio)[:5000]  # before tasks run out
    assert switches(first) / (len(first) - 1) == pytest.approx(ratio, abs=0.03)
    following = [other[0] for one, other in pairwise(first) if one[0] == 0 != other[0]]
    for task in range(1, 5):
        assert following.count(task) / len(following) == pytest.approx(1 / 4, abs=0.06)


def row(policy: str, speed: float, decode: float) -> dict[str, Any]:
    """Make the figures of a policy that answers 100 tokens, as `measure_cell` does. `none` makes 50 and 60 a second."""
    plain = Totals(tokens=100, seconds=2.0, decode_tokens=90, decode_seconds=1.5)
    own = Totals(tokens=100, seconds=100 / speed, decode_tokens=90, decode_seconds=90 / decode)
    return summarise(policy, own, plain) | {"differing_answers": 0, "totals": own.as_json(), "predictions": []}


def made_up(policies: Sequence[str] = (*draft_policies(), "another")) -> Record:
    """A record of all columns, with a machine."""
    chance = random.Random(5)
    shapes: list[tuple[str, str, float | None]] = [("domains", name, None) for name in ("code", "story")]
    shapes += [("mixed", f"r = {r:g}", r) for r in (0.0, 0.3, 0.7, 1.0)]
    shapes += [("context", f"{length:,} tokens", length) for length in (256, 1024, 4096, 16384)]
    cells = [
        Cell(
            column,
            workload,
            temperature.name,
            value,
            3,
            [row(name, chance.uniform(30, 100), chance.uniform(110, 150)) for name in policies],
        )
        for temperature in TEMPERATURES
        for column, workload, value in shapes
    ]
    machine = {"model": "toy-1b", "machine": "x86_64 Some Processor 9000, 2 threads"}
    return Record({"policies": list(policies), "limit": 3}, machine, cells)


def test_a_record_reads_as_it_was_written(tmp_path: Path) -> None:
    record = made_up()
    record.path = tmp_path / "results.json"
    record.save()
    again = open_record(record.path, dict(record.settings))
    assert (again.cells, again.machine) == (record.cells, record.machine)
    assert comparison(again) == comparison(record)
    with pytest.raises(ConfigError, match=r"limit was 3, now 4.*delete it"):
        open_record(record.path, record.settings | {"limit": 4})
    with pytest.raises(ConfigError, match=r"engine was None, now abc"):
        open_record(record.path, record.settings | {"engine": "abc"})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"settings": 1, "cells": [], "machine": {}}', "{"])
def test_a_foreign_or_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"results\.json is damaged"):
        open_record(path, {"policies": ["none"]})
    assert path.read_text("utf-8") == text


def test_an_interrupted_comparison_measures_only_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, path = {"policies": ["none"]}, tmp_path / "results.json"
    cells = [
        (Workload(column, name, (Prompt("", (1,)),), 4), t)
        for t in TEMPERATURES
        for column, name in (("domains", "code"), ("domains", "story"), ("mixed", "r = 1"))
    ]
    measured: list[tuple[str, str]] = []
    model = cast(LoadedModel, SimpleNamespace(warm_up=lambda: None))

    def measure(_: object, entries: object, workload: Workload, temperature: Temperature, repeat: int) -> Cell:
        measured.append((workload.name, temperature.name))
        if len(measured) == 3:
            raise KeyboardInterrupt
        return Cell(workload.column, workload.name, temperature.name, None, 1, [row("none", 50, 60)])

    monkeypatch.setattr("bench.cells.measure_cell", measure)
    with pytest.raises(KeyboardInterrupt):
        measure_cells(open_record(path, settings), model, [], cells, 1)
    again = open_record(path, settings)
    assert len(again.cells) == 2
    measure_cells(again, model, [], cells, 1)
    assert measured == [(workload.name, t.name) for workload, t in (*cells[:3], *cells[2:])]
    assert len(open_record(path, settings).cells) == len(cells)


def cell_of(column: str, workload: str, **speeds: float) -> Cell:
    rows = [row(name, speed, 2 * speed) for name, speed in speeds.items()]
    return Cell(column, workload, GREEDY.name, 0, 1, rows)


def test_the_speed_over_several_workloads_is_tokens_over_seconds() -> None:
    cells = [cell_of("domains", "a", none=10, knapspec=20), cell_of("domains", "b", none=30, knapspec=60)]
    none, ours = sum_rows(cells)
    assert none["tokens_per_second"] == pytest.approx(15), "200 tokens in 100/10 + 100/30 s"
    assert (ours["tokens_per_second"], ours["speedup"]) == pytest.approx((30, 2))
    text = comparison(Record({"policies": ["none", "knapspec"]}, cells=cells))
    assert ["all", "domains", "2.00", "knapspec"] in [line.split() for line in text.splitlines()]


def test_tables_have_every_policy_and_column_and_name_the_first() -> None:
    text = comparison(made_up())
    wanted = (*draft_policies(), "r = 0.3", "16,384 tokens", "all domains", SAMPLED.name, "toy-1b")
    assert [each for each in wanted if each not in text] == []
    record = Record({"policies": ["none", "fixed", "swift"]})
    record.cells = [cell_of("context", "256 tokens", none=50, fixed=40, swift=60)]
    assert ["256", "tokens", "0.80", "1.20", "swift"] in [line.split() for line in comparison(record).splitlines()]


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command on the prepared fixture."""
    monkeypatch.setenv("KNAPSERVE_THREADS", "1")

    def run(*flags: str) -> CompletedProcess[str]:
        arguments = ("bench", "compare", "--model", str(PREPARED), "--prompts", str(PROMPT_FILE), *flags)
        try:
            code = main(arguments)
        except SystemExit as left:
            code = int(left.code or 0)
        return CompletedProcess(arguments, code, *capsys.readouterr())

    return run


SMALL = ("--policies=fixed,fixed:gamma=2,knapspec", "--limit=1", "--max-tokens=4", "--mixes=1", "--contexts=64")


@pytest.mark.nightly
@pytest.mark.timeout(600)  # all policies in every column
def test_the_command_writes_its_results_and_goes_on(compare: Run, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "results.json"
    first = compare(*SMALL, "--repeat", "2", "--out", str(out))
    assert first.returncode == 0, first.stderr
    assert "[24/24]" in first.stderr
    found = json.loads(out.read_text("utf-8"))
    kinds = {(cell["column"], cell["temperature"]) for cell in found["cells"]}
    assert kinds == {(column, t.name) for column in ("domains", "mixed", "context") for t in TEMPERATURES}
    for cell in found["cells"]:
        assert [figures["policy"] for figures in cell["rows"]] == ["none", "fixed", "fixed:gamma=2", "knapspec"]
        for figures in cell["rows"]:
            assert figures["differing_answers"] == 0
            totals = figures["totals"]
            assert figures["tokens_per_second"] == pytest.approx(totals["tokens"] / totals["seconds"])
        assert cell["rows"][0]["speedup"] == pytest.approx(1)
    second = compare(*SMALL, "--repeat", "2", "--out", str(out))
    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert "24 of 24 cells are measured already" in second.stderr
    other = compare(*SMALL, "--out", str(out))
    assert (other.returncode, other.stdout) == (2, "")
    assert "repeat was 2, now 1" in other.stderr


def test_every_repeat_and_every_cell_begins_without_knowledge() -> None:
    model, config = load(), EngineConfig()
    texts = [Text(f"What is {i} + 31?", f"domain {i % 2}") for i in range(4)]
    chosen = Selection(("mixed",), texts, limit=2, max_tokens=12, mixes=(1.0,))
    (workload,) = make_workloads(model, config, chosen)
    assert len(workload.prompts) == 4
    entries = contenders("swift", config)
    cells = [measure_cell(model, entries, workload, GREEDY, repeat) for repeat in (1, 1, 2)]
    counts = [(cell.rows[1]["alpha"], cell.rows[1]["acceptance_length"]) for cell in cells]
    assert counts == [counts[0]] * 3  # swift draws other sets of sublayers if it goes on
    drafted = [cell.rows[1]["totals"]["drafted"] for cell in cells]
    assert drafted == [drafted[0], drafted[0], 2 * drafted[0]]
    assert [cell.rows[1]["differing_answers"] for cell in cells] == [0, 0, 0]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--policies", "fixed,fastest"], "--policies: unknown: fastest"),
        (
            ["--policies", "fixed:gama=3"],
            "--policies fixed:gama=3: no setting 'gama'; fixed has skip_ratio, plan, gamma",
        ),
        (["--policies", "fixed:gamma=x"], "'x' is not a number"),
        (["--policies", "none:gamma=3"], "none has none"),
        (["--policies", "layerskip:length=short"], "--layerskip-length must be one of"),
        (["--columns", "mixed,rows"], "--columns: unknown: rows; available: domains, mixed, context"),
        (["--mixes", "0,2"], "--mixes must be numbers"),
        (["--mixes", "some"], "--mixes must be numbers"),
        (["--contexts", "0"], "--contexts must be numbers"),
        (["--contexts", "1.5"], "--contexts must be numbers"),
        (["--limit", "-1"], "--limit"),
        (["--max-tokens", "0"], "--max-tokens"),
        (["--repeat", "0"], "--repeat"),
        (["--contexts", "999999", "--columns", "context"], "no context fits the model"),
        (["--out", "/proc/results.json"], "--out: cannot write to /proc"),
        (["--out", "/dev/null/results.json"], "--out: cannot write to /dev/null"),
        (["--out", "/"], "--out: / is a folder; expected a file"),
    ],
)
def test_wrong_flags_get_one_line(compare: Run, flags: list[str], says: str) -> None:
    process = compare(*flags)
    assert (process.returncode, process.stdout) == (2, "")
    assert says in process.stderr.splitlines()[-1]
    assert "Traceback" not in process.stderr


def test_mixed_streams_of_one_domain_are_refused(compare: Run, tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "Hello"}\n', "utf-8")
    process = compare("--prompts", str(path))
    assert process.returncode == 2
    assert "mixed streams need prompts of at least two domains" in process.stderr


def test_a_contender_has_settings_of_its_own() -> None:
    found = contenders("lookup:gamma=3,layerskip,layerskip:length=adaptive:exit=2,none", EngineConfig())
    assert [each.name for each in found] == [
        "none", "lookup:gamma=3", "layerskip", "layerskip:length=adaptive:exit=2"
    ]  # fmt: skip
    assert [each.policy for each in found] == ["none", "lookup", "layerskip", "layerskip"]
    assert found[1].config.prompt_lookup.gamma == 3
    assert found[2].config == EngineConfig()
    settings = found[3].config.of(LayerSkipConfig)
    assert (settings.length, settings.exit) == ("adaptive", 2)
