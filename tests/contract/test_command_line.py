"""The subcommands of the command line, run in this process, and the one-line errors of bad calls."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from profiles import store
from server.cli import main
from tests.support import CONFIG, PREPARED, PROMPT_FILE
from tests.support.serving import Process

PROMPTS = ("--prompts", str(PROMPT_FILE))
Run = Callable[..., CompletedProcess[str]]
UNCLOSED = pytest.mark.filterwarnings("ignore")  # transformers' warnings, and connections that end with the process


@pytest.fixture
def knapserve(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run a command, with the prepared fixture as the model unless a flag names another."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    for name in [name for name in os.environ if name.startswith("KNAPSERVE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("KNAPSERVE_MODEL", str(PREPARED))
    monkeypatch.setenv("KNAPSERVE_THREADS", "1")

    def run(*arguments: str, **environ: str) -> CompletedProcess[str]:
        with monkeypatch.context() as patch:
            for name, value in environ.items():
                patch.setenv(name, value)
            try:
                code = main(arguments)
            except SystemExit as left:
                code = int(left.code or 0)
        return CompletedProcess(arguments, code, *capsys.readouterr())

    yield run
    root.handlers[:], root.level = handlers, level


@pytest.fixture
def refusal(knapserve: Run) -> Callable[..., str]:
    """The error line of `serve` with these flags, after the log lines of its start."""

    def run(*flags: str) -> str:
        process = knapserve("serve", "--engine", "thread", "--port", "0", *flags)
        assert (process.returncode, process.stdout) == (2, ""), process.stderr
        *log, line = process.stderr.splitlines()
        assert all(" INFO knapserve." in logged for logged in log)
        assert line.startswith("knapserve: error: ")
        return line

    return run


def test_a_model_that_cannot_be_served_exits_2(refusal: Callable[..., str]) -> None:
    assert "/nonexistent" in refusal("--model", "/nonexistent")
    line = refusal("--max-model-len", "99999")
    assert "--max-model-len 99999" in line
    assert str(CONFIG["max_position_embeddings"]) in line


def test_a_damaged_checkpoint_exits_2(refusal: Callable[..., str], tmp_path: Path) -> None:
    shutil.copytree(PREPARED, tmp_path, dirs_exist_ok=True)
    weights = tmp_path / "model.safetensors"
    with weights.open("r+b") as file:
        file.truncate(weights.stat().st_size // 2)
    assert str(weights) in refusal("--model", str(tmp_path))


def test_profile_measures_saves_and_is_loaded_by_key(knapserve: Run, tmp_path: Path) -> None:
    """The measurement is short and rough: the test is that a later start loads the file."""
    flags = ("--repetitions", "1", "--profile-dir", str(tmp_path), "--max-model-len", "256")
    process = knapserve("profile", *flags)
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout.splitlines()[-1])
    (profile,) = store.load(Path(result["profile"]))
    assert Path(result["profile"]) == store.path_of(profile.key.hardware, tmp_path)
    assert profile.contexts == (240,)
    assert set(profile.rows) >= {1, 2, 3, 4, 6, 8, 12, 16}
    assert store.find(profile.key, tmp_path) == (profile, Path(result["profile"]))


@pytest.mark.nightly
def test_tune_saves_plans_that_a_bench_begins_with(knapserve: Run, tmp_path: Path) -> None:
    flags = (*PROMPTS, "--limit", "4", "--max-tokens", "24", "--max-model-len", "256", "--profile-dir", str(tmp_path))
    process = knapserve("tune", *flags)
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout.splitlines()[-1])
    if not result["plans"]:
        pytest.skip("nothing is worth drafting with on this machine now")
    rows = {row["policy"]: row["tokens_per_second"] for row in result["rows"]}
    assert {"none", "knapspec", "with new plans"} <= rows.keys()
    assert result["saved"] == (max(rows, key=rows.__getitem__) == "with new plans") == Path(result["path"]).exists()
    assert Path(result["path"]).parent == tmp_path
    path = Path(result["path"]) if result["saved"] else PREPARED / "prior.json"
    again = knapserve("tune", *flags, "--prior", str(path))
    assert again.returncode == 0, again.stderr
    later = json.loads(again.stdout.splitlines()[-1])
    assert not later["plans"] or "with current plans" in {row["policy"] for row in later["rows"]}
    bench = ("bench", "decode", "--policies", "knapspec", *flags)
    process = knapserve(*bench, "--prior", str(path))
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout.splitlines()[-1])["answers_that_differ_from_none"] == 0
    raw = json.loads(path.read_text())
    for name, text in {
        "of another model": json.dumps(raw | {"model": "0" * 64}),
        "too short": json.dumps(raw | {"plans": [raw["plans"][0] | {"plan": "10"}]}),
    }.items():
        wrong = tmp_path / f"{name}.json"
        wrong.write_text(text)
        process = knapserve(*bench, "--prior", str(wrong))
        assert (process.returncode, process.stdout) == (2, "")
        assert str(wrong) in process.stderr


def test_bench_compares_policies_after_contexts_and_by_domain(
    knapserve: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its results are also in a file, and a bar shows how far each context is."""
    flags = (*PROMPTS, "--limit", "2", "--max-tokens", "8", "--max-model-len", "256", "--context", "0,64")
    flags = (*flags, "--repeat", "2")
    shares: list[float] = []
    monkeypatch.setattr("bench.decode.progress_bar", lambda _: shares.append)
    out = tmp_path / "new" / "results.json"
    process = knapserve("bench", "decode", "--policies", "layerskip,fixed", "--out", str(out), *flags)
    assert process.returncode == 0, process.stderr
    assert shares == [0.25, 0.5, 0.75, 1.0] * 2
    result = json.loads(process.stdout.splitlines()[-1])
    assert json.loads(out.read_text("utf-8")) == result
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    names = ["none", "layerskip", "fixed"]
    assert [[row["policy"] for row in r["rows"]] for r in result["contexts"]] == [names, names]
    by_prompt = result["contexts"][0]["by_prompt"]
    assert {name: len(ratios) for name, ratios in by_prompt.items()} == {"layerskip": 2, "fixed": 2}
    assert f"layerskip {min(by_prompt['layerskip']):.3f}" in process.stdout
    domains = result["contexts"][0]["domains"]
    assert len(domains) == 2, "prompts of two kinds"
    columns = ["layerskip", "layerskip, decode", "fixed", "fixed, decode"]
    assert all(list(speedups) == columns and min(speedups.values()) > 0 for speedups in domains.values())
    assert all(domain in process.stdout for domain in domains)


def test_bench_compares_several_menus_in_one_run(knapserve: Run) -> None:
    flags = (*PROMPTS, "--limit", "1", "--max-tokens", "8", "--max-model-len", "256", "--draft-bits", "4")
    process = knapserve("bench", "decode", "--policies", "knapspec:menu=skip,knapspec:menu=low-bit", *flags)
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout.splitlines()[-1])
    assert [row["policy"] for row in result["rows"]] == ["none", "knapspec:menu=skip", "knapspec:menu=low-bit"]


@UNCLOSED
def test_bench_serve_asks_servers_the_engine_and_generate_in_one_run(knapserve: Run, server: Process) -> None:
    flags = ("--url", server.url, "--url", f"{server.url}/v1", "--engine", "--hf", "--policy", "none")
    process = knapserve(
        "bench", "serve", *flags, *PROMPTS, "--limit", "2", "--max-tokens", "4", "--ignore-eos", "--streams", "1,2"
    )
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout.splitlines()[-1])
    assert [row["name"] for row in result["servers"]] == [server.url, f"{server.url}/v1"]
    for row in result["servers"]:
        assert min(row["tokens_per_second"], row["first_token_ms"], row["share_of_engine"]) > 0
    assert result["engine"]["tokens_per_second"] > 0
    assert [row["name"] for row in result["others"]] == ["hf-generate"]
    assert result["bandwidth"]["read"] > 0
    assert "GB/s" in process.stdout
    one, two = result["by_streams"]
    assert (one["streams"], two["streams"], one["servers"]) == (1, 2, result["servers"])
    more = [row["tokens_per_second"] for row in (two["engine"], *two["servers"], *two["others"])]
    less = [row["tokens_per_second"] for row in (one["engine"], *one["servers"], *one["others"])]
    assert [row["over_first"] for row in (two["engine"], *two["servers"], *two["others"])] == [
        pytest.approx(a / b) for a, b in zip(more, less, strict=True)
    ]
    assert process.stdout.count("2 streams reach") == len(more)


@UNCLOSED
def test_bench_serve_accepts_answers_of_one_token(knapserve: Run, server: Process) -> None:
    process = knapserve("bench", "serve", "--url", server.url, *PROMPTS, "--limit", "1", "--max-tokens", "1")
    assert process.returncode == 0, process.stderr
    assert "between_chunks_ms" not in json.loads(process.stdout.splitlines()[-1])["servers"][0]


DECODE = {
    "--limit -1": "--limit",
    "--max-tokens -1": "--max-tokens",
    "--concurrency 0": "--concurrency",
    "--context 8192": "8192",
    "--context -5": "--context",
    "--policies guess": "guess",
    "--policies knapspec:menu=guess": "guess",
    "--out /": "--out",
    "--out /dev/null/results.json": "/dev/null",
    "--knapspec-menu guess": "--knapspec-menu",
    "--policies knapspec:menu=low-bit --draft-bits none": "low-bit",
}
SERVE = {
    "--limit -1": "--limit",
    "--concurrency 0": "--concurrency",
    "--max-tokens 0": "--max-tokens",
    "--url localhost:1": "--url",
    "--url http://127.0.0.1:1": "127.0.0.1:1",
}


@pytest.mark.parametrize(
    ("command", "flags", "says"),
    [
        ("profile", "--repetitions 0", "--repetitions"),
        *((f"bench decode {' '.join(PROMPTS)}", *case) for case in DECODE.items()),
        *((f"bench serve {' '.join(PROMPTS)}", *case) for case in SERVE.items()),
    ],
)
def test_bad_flags_and_addresses_are_refused_by_name(knapserve: Run, command: str, flags: str, says: str) -> None:
    process = knapserve(*command.split(), *flags.split())
    assert (process.returncode, process.stdout) == (2, "")
    assert says in process.stderr.splitlines()[-1]
