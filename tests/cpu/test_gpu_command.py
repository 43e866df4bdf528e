"""`knapserve bench gpu` on a machine without a GPU: its stages, their limits, and what is kept of them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import bench.gpu
import bench.kernels
from bench.vllm import configuration
from engine.architecture.spec import parse_spec
from engine.checkpoints.shapes import SHAPES, shape
from server.cli import main

TINY = ("--device", "cpu", "--model", "synthetic:smollm2-135m,layers=1", "--context", "64")

VLLM = """
import argparse, json, os, pathlib, sys
parser = argparse.ArgumentParser()
for name in ("model", "input-len", "output-len", "output-json"):
    parser.add_argument(f"--{name}", required=True)
args, _ = parser.parse_known_args(sys.argv[3:])
config = json.loads((pathlib.Path(args.model) / "config.json").read_text())
assert sys.argv[1:3] == ["bench", "latency"] and os.environ["DO_NOT_TRACK"]
assert config["num_hidden_layers"] == 1 and config["max_position_embeddings"] >= 256 + int(args.output_len)
seconds = int(args.output_len) * int(args.input_len) / 1000
pathlib.Path(args.output_json).write_text(json.dumps({"percentiles": {"50": seconds}}))
"""  # answers a token in as many milliseconds as the prompt has tokens


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> None:
    found: bench.gpu.Stages = {
        "hangs": (1, python("import time; print('begun', flush=True); time.sleep(600)")),
        "fails": (60, python("print('{}'); print('wrong'); raise SystemExit(3)")),
        "works": (60, python("""import sys; print('{"a": 1}'); print("[W] a warning", file=sys.stderr)""")),
    }
    monkeypatch.setattr("bench.gpu._stages", lambda *args: found)


def test_without_a_device_the_command_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for name in ("gpu", "kernels"):
        assert main(["bench", name]) == 2
        assert "no CUDA device" in capsys.readouterr().err


def test_predictions_need_no_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gpu", "--predict"]) == 0
    assert "| H200 | 32,768 |" in capsys.readouterr().out


@pytest.mark.usefixtures("stages")
def test_a_stage_that_fails_or_hangs_does_not_stop_the_others(tmp_path: Path) -> None:
    assert main(["bench", "gpu", *TINY, "--out", str(tmp_path)]) == 1
    found = json.loads((tmp_path / "gpu.json").read_text("utf-8"))["stages"]
    assert {name: (stage["code"], stage["result"]) for name, stage in found.items()} == {
        "hangs": (124, "begun"),
        "fails": (3, {}),
        "works": (0, {"a": 1}),
    }
    assert found["hangs"]["seconds"] < 10
    assert (tmp_path / "fails.txt").read_text("utf-8") == "{}\nwrong\n"


@pytest.mark.usefixtures("stages")
def test_stages_after_the_limit_do_not_run(tmp_path: Path) -> None:
    assert main(["bench", "gpu", *TINY, "--out", str(tmp_path), "--limit", "1"]) == 1
    found = json.loads((tmp_path / "gpu.json").read_text("utf-8"))["stages"]
    assert {name: stage["code"] for name, stage in found.items()} == dict.fromkeys(("hangs", "fails", "works"), 124)


@pytest.mark.usefixtures("stages")
def test_chosen_stages_run_in_the_order_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gpu", *TINY, "--out", str(tmp_path), "--stages", "works"]) == 0
    assert [*json.loads((tmp_path / "gpu.json").read_text("utf-8"))["stages"]] == ["works"]
    assert main(["bench", "gpu", *TINY, "--out", str(tmp_path), "--stages", "works,sings"]) == 2
    assert "--stages: unknown: sings; known: hangs, fails, works" in capsys.readouterr().err


def test_settings_that_would_not_reach_the_stages_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gpu", *TINY, "--max-num-seqs", "4"]) == 2
    assert "set --max-num-seqs by variables" in capsys.readouterr().err


def test_vllm_where_it_is_installed_decodes_after_the_shortest_and_the_longest_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["bench", "gpu", *TINY, "--context", "128,64,256", "--out", str(tmp_path), "--stages", "vllm"]
    monkeypatch.setattr("bench.gpu.find_spec", lambda name: None)
    assert main(command) == 2
    assert "unknown: vllm" in capsys.readouterr().err
    monkeypatch.setattr("bench.gpu.find_spec", find_spec)
    file = tmp_path / "vllm" / "entrypoints" / "cli" / "main.py"
    file.parent.mkdir(parents=True)
    file.write_text(VLLM, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(command) == 0
    found = json.loads((tmp_path / "gpu.json").read_text("utf-8"))["stages"]["vllm"]["result"]
    assert [(row["context"], round(row["tokens_per_second"], 1)) for row in found] == [(64, 15.6), (256, 3.9)]


def test_vllm_runs_models_of_the_same_shape() -> None:
    other = replace(shape("mistral-7b"), windows=(4096,) * 32, head_dim=64)
    for spec in (*map(shape, SHAPES), other):
        assert parse_spec(configuration(spec, 4096)).shape_key == spec.shape_key


@pytest.mark.skipif(find_spec("triton") is None, reason="needs triton")
def test_every_kernel_can_be_timed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    small = replace(
        shape("llama-3.1-8b"),
        layers=2,
        hidden=64,
        intermediate=96,
        heads=4,
        kv_heads=2,
        head_dim=16,
        vocab=160,
        max_positions=256,
    )
    monkeypatch.setattr("bench.kernels.spec_of", lambda config: small)
    monkeypatch.setattr("bench.kernels.hardware", lambda device: "NVIDIA H200")
    assert main(["bench", "kernels", "--device", "cpu", "--context", "32"]) == 0
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])
    products = [row for row in rows if "context" not in row]
    assert [(row["kernel"], row["rows"]) for row in products] == [
        (name, rows) for name in ("qkv", "output", "gate up", "down", "head") for rows in (1, 6, 9, 16)
    ]
    assert all(row["bf16"] > 0 and row["copy"] > 0 for row in products)
    assert all(row["bf16, model"] >= row["copy, model"] > 1 for row in products if row["kernel"] == "head")
    assert [row["rows"] for row in rows if row.get("window", 0) > 0 < row["bf16"]] == [1, 6, 9, 16, 8]


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_the_stages_run_on_a_cpu(tmp_path: Path) -> None:
    stages = "profile,decode-64,prefill"
    assert main(["bench", "gpu", *TINY, "--out", str(tmp_path), "--stages", stages]) == 0
    found: dict[str, Any] = json.loads((tmp_path / "gpu.json").read_text("utf-8"))["stages"]
    assert found["profile"]["result"]["passes"] > 100
    assert len(found["decode-64"]["result"]["rows"]) == 5
    assert found["prefill"]["result"]["rows"][0]["tokens_per_second"] > 0
    assert list((tmp_path / "profiles").glob("*.json"))
