"""`bench paper`: each experiment on the prepared fixture, and its figures against values computed by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

from bench import cells
from bench import paper as command
from bench.experiments import EXPERIMENTS, correlations, pearson, skip_map, skip_shares
from bench.measurements import Totals
from bench.record import Cell, Record
from bench.report import details, sum_rows
from engine.draft.fixed import uniform_variants
from engine.runtime.build import LoadedModel
from papers import layer_sets
from papers.layer_sets import LayerSets
from server.cli import main
from tests.support import PREPARED, PROMPT_FILE
from tests.support.cores import load

Run = Callable[..., CompletedProcess[str]]


TOTALS = Totals(tokens=20, seconds=2.0, decode_tokens=16, decode_seconds=1.0, verify_seconds=1.0, rounds=16).as_json()


def row(policy: str, **figures: Any) -> dict[str, Any]:
    """Make a row as `measure_cell` does: 20 tokens in 2 s, 16 of them decoded in 1 s."""
    predictions = figures.pop("predictions", [])
    return {"policy": policy, "totals": TOTALS | figures, "differing_answers": 0, "predictions": predictions}


def record_of(*cells: list[dict[str, Any]], column: str = "domains") -> Record:
    made = [Cell(column, f"w{i}", "greedy", None, 1, rows) for i, rows in enumerate(cells)]
    return Record({"policies": [each["policy"] for each in cells[0]]}, cells=made)


def cells_of(text: str) -> list[list[str]]:
    """Split a table whose cells have two spaces or more between them."""
    return [[cell.strip() for cell in line.strip().split("  ") if cell.strip()] for line in text.splitlines()]


def test_skip_shares_are_shares_of_draft_passes() -> None:
    """Of two layers: 3 passes skip the first MLP and the second attention, 1 skips nothing, 4 skip the second MLP."""
    one = row("knapsack", plans={"10011": 3, "11111": 1})
    two = row("knapsack", plans={"11101": 4})
    assert skip_shares([one]) == [0, 0.75, 0.75, 0]
    assert skip_shares([one, two]) == [0, 3 / 8, 3 / 8, 4 / 8]
    record = record_of([row("none"), one, row("lookup")], [row("none"), two, row("lookup")])
    titles = ["layer", "knapsack, attention", "knapsack, MLP"]
    assert cells_of(skip_map(record)) == [titles, ["1", "0%", "38%"], ["2", "38%", "50%"]]
    found = sum_rows(record.cells)[1]
    assert found["skipped_attention"] == pytest.approx((0 + 3 / 8) / 2)
    assert found["skipped_mlp"] == pytest.approx((3 / 8 + 4 / 8) / 2)


def test_correlation_is_that_of_predicted_and_measured_tpt() -> None:
    """Sums of (1, 2, 3) and (1, 2, 4) about their means: 3 / √(2 · 14/3) = 0.98198; R² = 27/28."""
    first = row("knapsack", predictions=[[1, 1, 0.5, 0.9], [2, 2, 0.5, 0.8]])
    second = row("knapsack", predictions=[[3, 4, 0.5, 0.7]])
    record = record_of([row("none"), first, row("swift")], [row("none"), second, row("swift")])
    _, found, empty = cells_of(correlations(record))
    assert found == ["knapsack", "3", "0.982", "0.964", "-0.982", "0.964"]
    assert empty == ["swift", "0"]
    assert pearson(np.array([[1.0, 1], [2, 2]])) is None
    assert pearson(np.array([[1.0, 1], [2, 1], [3, 1]])) is None


def test_rows_over_all_cells_are_sums_not_means() -> None:
    quick = row("fixed", tokens=20, seconds=1.0, decode_tokens=16, decode_seconds=0.5, rounds=4)
    slow = row("fixed", tokens=10, seconds=3.0, decode_tokens=6, decode_seconds=2.0, rounds=6)
    quick["totals"] |= {"accepted": 9, "tested": 10, "search_seconds": 0.1}
    slow["totals"] |= {"tested": 10, "search_seconds": 0.4}
    record = record_of([row("none"), quick], [row("none"), slow])
    found = sum_rows(record.cells)[1]
    assert found["tokens_per_second"] == 30 / 4
    assert found["speedup"] == (30 / 4) / (40 / 4)
    assert found["decode_speedup"] == (22 / 2.5) / (32 / 2)
    assert (found["alpha"], found["acceptance_length"]) == (9 / 20, 22 / 10)
    assert found["search_share"] == 0.5 / 2.5
    assert [line[0] for line in cells_of(details(record))[1:]] == ["w0", "w0", "w1", "w1", *["all domains"] * 2]
    record = record_of([row("none"), quick], [row("none"), slow], column="context")
    assert len(cells_of(details(record))) == 5


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load()


@pytest.fixture
def paper(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: LoadedModel) -> Run:
    """Run the command on the prepared fixture, which is loaded once."""
    monkeypatch.setattr(command, "LoadedModel", lambda config: model)

    def run(*flags: str) -> CompletedProcess[str]:
        arguments = ("bench", "paper", *flags, "--model", str(PREPARED))
        try:
            code = main(arguments)
        except SystemExit as left:
            code = int(left.code or 0)
        return CompletedProcess(arguments, code, *capsys.readouterr())

    return run


@pytest.fixture
def datasets(tmp_path: Path) -> list[str]:
    """Flags that name two datasets of three lines."""
    lines = {
        "alpaca": [{"instruction": f"Name {i} colours.", "input": "", "output": ""} for i in range(3)],
        "math": [{"problem": f"What is {i} + 31?", "solution": ""} for i in range(3)],
    }
    flags: list[str] = []
    for name, own in lines.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in own), "utf-8")
        flags += ["--dataset", f"{name}={path}"]
    return flags


KIT = ("--dataset", f"humaneval={PROMPT_FILE}")
SMALL = ("--limit", "1", "--max-tokens", "12")
FLAGS = {
    "speed": ("--policies", "knapsack,swift,lookup"),
    "context": ("--contexts", "64,128", "--policies", "knapsack"),
    "mix": ("--policies", "knapsack"),
    "correlation": ("--max-tokens", "64"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("context", "map") else [pytest.mark.nightly])
        for name in EXPERIMENTS
        if name != "ood"
    ],
)
def test_each_experiment_writes_its_figures_and_measures_nothing_again(
    name: str, paper: Run, datasets: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "deep" / f"{name}.json"
    flags = (name, *datasets, *SMALL, *FLAGS.get(name, ()), "--out", str(out))
    first = paper(*flags)
    assert first.returncode == 0, first.stderr
    assert "knapsack" in first.stdout
    assert "alpaca=" in first.stdout
    found = json.loads(out.read_text("utf-8"))
    assert found["machine"].keys() >= {"model", "machine", "versions", "command"}
    assert found["settings"]["experiment"] == name
    assert found["settings"]["prompts"].startswith("alpaca=")
    assert not any(figures["differing_answers"] for cell in found["cells"] for figures in cell["rows"])
    for cell in found["cells"]:
        drafted = next(figures for figures in cell["rows"] if "knapsack" in figures["policy"])
        assert sum(drafted["totals"]["plans"].values()) > 0

    def fail(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(cells, "measure_cell", fail)
    second = paper(*flags)
    assert (second.returncode, second.stdout) == (0, first.stdout)
    other = paper(*flags, "--limit", "3")
    assert (other.returncode, other.stdout) == (2, "")
    assert f"{name}.json has results of other settings (" in other.stderr
    assert "limit was 1, now 3" in other.stderr
    assert len(other.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.nightly
def test_without_datasets_the_kit_stands_in_and_the_results_say_so(paper: Run, tmp_path: Path) -> None:
    out = tmp_path / "map.json"
    process = paper("map", "--limit", "1", "--max-tokens", "2", "--out", str(out))
    assert process.returncode == 0, process.stderr
    for said in (process.stdout, out.read_text("utf-8")):
        assert "the kit's own, which stand in" in said


@pytest.mark.parametrize(
    "name", ["map", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("interval", "correlation"))]
)
def test_answers_of_one_token_have_no_drafts_and_empty_figures(
    name: str, paper: Run, datasets: list[str], tmp_path: Path
) -> None:
    process = paper(name, *datasets[:2], "--limit", "1", "--max-tokens", "1", "--out", str(tmp_path / "out"))
    assert process.returncode == 0, process.stderr


def test_answers_are_as_long_as_the_paper_of_their_dataset_says(
    paper: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, datasets: list[str]
) -> None:
    story = tmp_path / "stories.jsonl"
    story.write_text('{"text": "Tom ran. He fell. He cried."}\n' * 2, "utf-8")
    seen = {}

    def measure(model: object, entries: object, workload: Any, temperature: Any, repeat: int) -> Cell:
        seen[workload.name] = workload.max_tokens
        rows = [row("none"), row("knapsack")]
        return Cell(workload.column, workload.name, temperature.name, None, 1, rows)

    monkeypatch.setattr(cells, "measure_cell", measure)
    out = str(tmp_path / "out")
    assert paper("map", *datasets, "--dataset", f"tinystories={story}", "--out", out).returncode == 0
    assert seen == {"alpaca": 512, "math": 512, "tinystories": 128}


def write_sets(model: LoadedModel, directory: Path, *domains: str) -> list[str]:
    """Write layer sets of both policies, and return the flags that name them."""
    half, axis = uniform_variants(model.spec.layers, 0.5), np.eye(1, model.spec.hidden)
    single = LayerSets("self-sd", model.source.fingerprint, {"": half})
    matched = LayerSets(
        "knn-ssd", model.source.fingerprint, dict.fromkeys(domains, half), dict.fromkeys(domains, axis)
    )  # fmt: skip
    flags = []
    for found in (single, matched):
        path = directory / found.policy
        path.write_text(layer_sets.to_json(found), "utf-8")
        flags += [f"--{found.policy}-sets", str(path)]
    return flags


@pytest.mark.slow
def test_ood_measures_domains_that_were_not_tuned_on(
    paper: Run, datasets: list[str], tmp_path: Path, model: LoadedModel
) -> None:
    out = tmp_path / "ood.json"
    flags = ("ood", *datasets, *SMALL)
    process = paper(*flags, "--out", str(out), *write_sets(model, tmp_path, "alpaca", "code"))
    assert process.returncode == 0, process.stderr
    assert "Layer sets of knn-ssd were tuned on alpaca, code." in process.stdout
    found = json.loads(out.read_text("utf-8"))
    assert [cell["workload"] for cell in found["cells"]] == ["math"]
    assert found["settings"]["policies"] == ["none", "knn-ssd", "self-sd"]
    process = paper(*flags, *write_sets(model, tmp_path, "alpaca", "math"))
    assert (process.returncode, process.stdout) == (2, "")
    assert "layer sets were tuned on all domains of these prompts (alpaca, math); give --dataset" in process.stderr
    process = paper(*flags, "--self-sd-sets", "none", "--knn-ssd-sets", "none")
    assert "ood needs layer sets: knn-ssd: --knn-ssd-sets is none; self-sd: --self-sd-sets is none" in process.stderr


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["thing"], "invalid choice: 'thing' (choose from"),
        (["speed", "--dataset", "squad=x"], "unknown dataset 'squad'; known: cnn-dm"),
        (["speed", "--dataset", "gsm8k"], "--dataset must be NAME=FILE, not gsm8k"),
        (["speed", "--dataset", "xsum=/nowhere/x"], "cannot read /nowhere/x: No such file"),
        (["speed", "--dataset", f"xsum={PROMPT_FILE}"], "line 1: no text in field document, which xsum needs"),
        (["speed", "--policies", "nothing"], "--policies: unknown: nothing"),
        (["mix", "--contexts", "64"], "--contexts is of experiment context, not of mix"),
        (["mix", *KIT], "mixed streams need prompts of at least two domains"),
        (["mix", *KIT, *KIT], "--dataset humaneval is given twice"),
        (["context", "--contexts", "999999", "--max-tokens", "4"], "no context fits the model"),
        (["map", "--max-tokens", "99999"], "domains, code: a prompt cannot be answered"),
    ],
)
def test_wrong_flags_get_one_line_and_write_nothing(paper: Run, flags: list[str], says: str, tmp_path: Path) -> None:
    process = paper(*flags, "--out", str(tmp_path / "out"))
    assert (process.returncode, process.stdout) == (2, "")
    assert says in process.stderr.splitlines()[-1]
    assert "Traceback" not in process.stderr
    assert not [*tmp_path.glob("out/*")]
