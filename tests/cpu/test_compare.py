"""`bench compare`: its streams, its record, its report, and the whole command on the prepared fixture."""

from __future__ import annotations

import base64
import json
import random
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from html import escape
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.cells import measure_cell, measure_cells
from bench.compare.report import as_html, as_text, draw
from bench.compare.standing import columns, headline, standing_lines
from bench.contenders import contenders
from bench.plots import NO_PICTURES
from bench.prompts import Text
from bench.record import GREEDY, SAMPLED, TEMPERATURES, Cell, Record, Temperature, open_record
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

PNG = b"\x89PNG\r\n\x1a\n"
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


def row(policy: str, speed: float, decode: float, repeats: Sequence[float] = ()) -> dict[str, Any]:
    """Make the figures of a policy that answers 100 tokens, as `measure_cell` does."""
    figures: dict[str, Any] = {
        "policy": policy,
        "total": [100, 100 / speed, 90, 90 / decode],
        "repeats": [[100, 100 / each, 90, 90 / decode] for each in repeats or [speed]],
        "tokens_per_second": speed,
        "decode_tokens_per_second": decode,
        "speedup": speed / 50,
        "decode_speedup": decode / 60,
        "differing_answers": 1 if policy == "swift" else 0,
    }
    if policy not in ("none", "lookup"):
        figures |= {"alpha": speed / 120, "skipped_attention": 0.5, "skipped_mlp": decode / 200}
    return figures


def made_up(policies: Sequence[str] = (*draft_policies(), "another")) -> Record:
    """A record of all columns, with a machine and memory."""
    chance = random.Random(5)
    shapes: list[tuple[str, str, float | None]] = [("domains", name, None) for name in ("code", "story <&>")]
    shapes += [("mixed", f"r = {r:g}", r) for r in (0.0, 0.3, 0.7, 1.0)]
    shapes += [("context", f"{length:,} tokens", length) for length in (256, 1024, 4096, 16384)]
    cells = [
        Cell(
            column,
            workload,
            temperature.name,
            value,
            3,
            0.5 if column == "mixed" else None,
            [row(name, chance.uniform(30, 100), chance.uniform(110, 150)) for name in policies],
        )
        for temperature in TEMPERATURES
        for column, workload, value in shapes
    ]
    memory: list[dict[str, Any]] = [{"policy": name, "growth": 10**7 + i} for i, name in enumerate(policies[:-1])]
    memory.append({"policy": policies[-1], "error": "MemoryError: <none>"})
    machine = {"model": "toy-1b", "machine": "x86_64 Some Processor 9000, 2 threads"}
    return Record({"policies": list(policies), "limit": 3}, machine, cells, memory)


def test_a_record_reads_as_it_was_written(tmp_path: Path) -> None:
    record = made_up()
    record.path = tmp_path / "results.json"
    record.save()
    again = open_record(record.path, dict(record.settings), restart=False)
    assert (again.cells, again.memory, again.machine) == (record.cells, record.memory, record.machine)
    assert as_text(again) == as_text(record)
    assert open_record(record.path, dict(record.settings), restart=True).cells == []
    with pytest.raises(ConfigError, match=r"limit was 3, now 4.*--restart"):
        open_record(record.path, record.settings | {"limit": 4}, restart=False)
    with pytest.raises(ConfigError, match=r"engine was None, now abc"):
        open_record(record.path, record.settings | {"engine": "abc"}, restart=False)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"settings": 1, "cells": [], "machine": {}, "memory": []}', "{"])
def test_a_foreign_or_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"results\.json is damaged"):
        open_record(path, {"policies": ["none"]}, restart=False)
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
        return Cell(workload.column, workload.name, temperature.name, None, 1, None, [row("none", 50, 60)])

    monkeypatch.setattr("bench.cells.measure_cell", measure)
    with pytest.raises(KeyboardInterrupt):
        measure_cells(open_record(path, settings, restart=False), model, [], cells, 1, show=True)
    again = open_record(path, settings, restart=False)
    assert len(again.cells) == 2
    measure_cells(again, model, [], cells, 1, show=True)
    assert measured == [(workload.name, t.name) for workload, t in (*cells[:3], *cells[2:])]
    assert len(open_record(path, settings, restart=False).cells) == len(cells)


def cell_of(column: str, workload: str, **speeds: float) -> Cell:
    return Cell(
        column, workload, GREEDY.name, 0, 1, None, [row(name, speed, 2 * speed) for name, speed in speeds.items()]
    )


def test_domains_are_one_column_whose_speed_is_tokens_over_seconds() -> None:
    cells = [cell_of("domains", "a", none=10, knapspec=20), cell_of("domains", "b", none=30, knapspec=60)]
    (column,) = columns(Record({"policies": ["none", "knapspec"]}, cells=cells))
    assert column.name == "2 domains"
    assert column.answers == pytest.approx({"none": 15, "knapspec": 30})  # 200 tokens in 100/10 + 100/30 s


@pytest.mark.parametrize(
    ("ours", "best", "says", "ratio"),
    [(100, 90, "in 1 of 1", "1.00"), (97, 100, "in 1 of 1", "0.97"), (96, 100, "in 0 of 1", "0.96")],
)
def test_the_headline_counts_columns_in_which_knapspec_is_first_or_near(
    ours: float, best: float, says: str, ratio: str
) -> None:
    record = Record({"policies": ["none", "knapspec", "swift"]})
    record.cells = [cell_of("context", "256 tokens", none=50, knapspec=ours, swift=best)]
    assert f"first or within 3% of the first {says}" in headline(columns(record))
    titles, line = standing_lines(columns(record))
    assert line[titles.index("÷ first")] == ratio
    assert line[titles.index("first")] == ("knapspec" if ours > best else "swift")
    assert line[titles.index("÷ best other")] == f"{ours / best:.2f}"
    assert line[titles.index("within 3%")] == ("no" if ratio == "0.96" else "yes")


def test_repeats_show_how_far_the_ratio_varies() -> None:
    record = Record({"policies": ["none", "knapspec"]})
    rows = [row("none", 50, 50, [50, 50]), row("knapspec", 60, 60, [55, 66])]
    record.cells = [Cell("mixed", "r = 0", GREEDY.name, 0, 1, 0.5, rows)]
    assert "varies by 20.0% within a column" in headline(columns(record))
    titles, line = standing_lines(columns(record))
    assert line[titles.index("in repeats")] == "1.10 to 1.32"
    rows = [row("none", 50, 60), row("knapspec", 50, 90)]  # 0.5 and 1 s of 2 s are not of decoding
    record.cells = [Cell("mixed", "r = 0", GREEDY.name, 0, 1, 0.5, rows)]
    assert "--repeat 3" in headline(columns(record))
    assert "differs between them by 100% (median of the columns; at most 100%)" in headline(columns(record))


def test_without_knapspec_the_report_says_who_is_first_and_nothing_of_knapspec() -> None:
    record = made_up(["none", "fixed"])
    assert headline(columns(record)) == ""
    assert "Who is first" in as_text(record)
    assert "knapspec" not in re.sub(r"“÷ first”.*", "", as_text(record))


def test_reports_have_every_policy_and_column() -> None:
    record = made_up()
    text, page = as_text(record), as_html(record, [])
    answers = 30 * len(draft_policies())
    assert f"10 of {answers} answers differ from those of none (greedy): swift 10." in text
    for report in (text, page):
        places = [report.index(said) for said in ("knapspec is first or", "Who is first", "Speed-up over none")]
        assert places == sorted(places)
        for wanted in (
            *draft_policies(),
            "mixed, r = 0.3",
            "context, 16,384 tokens",
            "2 domains",
            SAMPLED.name,
            "toy-1b",
        ):
            assert wanted in report
    assert escape(NO_PICTURES) in page


def test_the_page_is_well_formed_and_loads_nothing() -> None:
    record = made_up()
    page = as_html(record, draw(record))
    assert "story &lt;&amp;&gt;" in page
    root = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    sources = [element.get(name, "") for element in root.iter() for name in ("src", "href") if element.get(name)]
    assert bool(sources) == (find_spec("matplotlib") is not None)
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not re.search(r"https?://|url\(|@import|<script", page)


def test_pictures_are_drawn_for_all_policies_as_far_as_there_are_measurements() -> None:
    pytest.importorskip("matplotlib")
    record = made_up()
    pictures = draw(record)
    assert [picture.name for picture in pictures] == ["speedup", "decode", "context", "mixed", "acceptance"]
    assert all(picture.png.startswith(PNG) and picture.png[-8:-4] == b"IEND" for picture in pictures)
    record = made_up(["none", "lookup"])
    record.cells = record.select("domains", GREEDY.name)
    for cell in record.cells:
        for figures in cell.rows:
            del figures["decode_speedup"]  # answers of one token
    assert [picture.name for picture in draw(record)] == ["speedup"]
    record.cells.clear()
    assert draw(record) == []


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


SMALL = (
    "--quick",
    "--policies",
    "fixed,fixed:gamma=2,knapspec",
    "--contexts",
    "64",
    "--mixes",
    "1",
    "--max-tokens",
    "4",
)


@pytest.mark.nightly
@pytest.mark.timeout(600)  # all policies in every column
def test_the_command_writes_report_pictures_and_results_and_goes_on(compare: Run, tmp_path: Path) -> None:
    out, file = tmp_path / "deep" / "out", tmp_path / "all.json"
    first = compare(*SMALL, "--repeat", "2", "--out", str(out), "--json", str(file))
    assert first.returncode == 0, first.stderr
    assert "[24/24]" in first.stderr
    found = json.loads((out / "results.json").read_text("utf-8"))
    assert found == json.loads(file.read_text("utf-8"))
    kinds = {(cell["column"], cell["temperature"]) for cell in found["cells"]}
    assert kinds == {(column, t.name) for column in ("domains", "mixed", "context") for t in TEMPERATURES}
    for cell in found["cells"]:
        assert [figures["policy"] for figures in cell["rows"]] == ["none", "fixed", "fixed:gamma=2", "knapspec"]
        for figures in cell["rows"]:
            assert (len(figures["repeats"]), figures["differing_answers"]) == (2, 0)
            assert figures["tokens_per_second"] == pytest.approx(figures["total"][0] / figures["total"][1])
            assert figures["ms_per_token"] == pytest.approx(1e3 / figures["tokens_per_second"])
        assert cell["rows"][0]["speedup"] == pytest.approx(1)
    if find_spec("matplotlib"):
        picture = base64.b64encode((out / "mixed.png").read_bytes()).decode()
        assert picture in (out / "report.html").read_text("utf-8")
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
    (workload,) = make_workloads(model, config, chosen, skip_long=False)
    assert (workload.switches, len(workload.prompts)) == (1.0, 4)
    entries = contenders("swift", config)
    cells = [measure_cell(model, entries, workload, GREEDY, repeat) for repeat in (1, 1, 2)]
    counts = [(cell.rows[1]["alpha"], cell.rows[1]["acceptance_length"]) for cell in cells]
    assert counts == [counts[0]] * 3  # swift draws other sets of sublayers if it goes on
    assert [len(cell.rows[1]["repeats"]) for cell in cells] == [1, 1, 2]
    assert [cell.rows[1]["differing_answers"] for cell in cells] == [0, 0, 0]


def test_without_matplotlib_the_report_says_how_to_get_pictures(
    compare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    process = compare(*SMALL, "--columns", "mixed", "--out", str(tmp_path))
    assert process.returncode == 0, process.stderr
    assert "pip install 'knapserve[plots]'" in process.stdout
    assert escape(NO_PICTURES) in (tmp_path / "report.html").read_text("utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"results.json", "report.html"}


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
        (["--columns", "mixed,rows"], "--columns: unknown: rows; available: domains, mixed, context, memory"),
        (["--mixes", "0,2"], "--mixes must be numbers"),
        (["--mixes", "some"], "--mixes must be numbers"),
        (["--contexts", "0"], "--contexts must be numbers"),
        (["--contexts", "1.5"], "--contexts must be numbers"),
        (["--limit", "-1"], "--limit"),
        (["--max-tokens", "0"], "--max-tokens"),
        (["--repeat", "0"], "--repeat"),
        (["--contexts", "999999", "--columns", "context"], "context, 999,999 tokens: a prompt cannot be answered"),
        (["--context-text", "/nowhere/text"], "--context-text: cannot read /nowhere/text: No such file"),
        (["--context-text", "/dev/null"], "--context-text: /dev/null is empty"),
        (["--out", "/proc/knapserve"], "--out: cannot write to /proc/knapserve"),
        (["--out", str(PROMPT_FILE)], "--out: cannot write to"),
        (["--json", "/proc/results.json"], "--json: cannot write to /proc"),
        (["--json", "/dev/null/results.json"], "--json: cannot write to /dev/null"),
    ],
)
def test_wrong_flags_get_one_line(compare: Run, flags: list[str], says: str) -> None:
    process = compare("--quick", *flags)
    assert (process.returncode, process.stdout) == (2, "")
    assert says in process.stderr.splitlines()[-1]
    assert "Traceback" not in process.stderr


def test_mixed_streams_of_one_domain_are_refused(compare: Run, tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "Hello"}\n', "utf-8")
    process = compare("--quick", "--prompts", str(path))
    assert process.returncode == 2
    assert "prompts of at least two domains; leave mixed out of --columns" in process.stderr


@pytest.mark.nightly  # two processes load the model
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from Linux's /proc")
def test_memory_is_measured_in_a_process_for_each_policy(compare: Run, tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    flags = ("--columns", "memory", "--policies", "fixed", "--max-tokens", "4", "--json", str(file))
    process = compare("--quick", *flags)
    assert process.returncode == 0, process.stderr
    memory = json.loads(file.read_text("utf-8"))["memory"]
    assert [figures["policy"] for figures in memory] == ["none", "fixed"]
    assert all(0 < figures["growth"] < 1 << 30 for figures in memory), memory
    assert "over none, MB" in process.stdout


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
