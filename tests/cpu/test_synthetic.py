"""Random models of real shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from engine.architecture.rope import RopeSpec
from engine.checkpoints import shapes
from engine.checkpoints.hub import SYNTHETIC
from engine.config.engine import EngineConfig
from engine.errors import ConfigError, ModelError
from engine.runtime.build import LoadedModel
from tests.support.cores import GREEDY, answer, load

SHORT = replace(GREEDY, max_tokens=24)
SMALL = "a small one"  # of a shape that nobody runs
NAME = f"synthetic:{SMALL}"


@pytest.fixture(scope="module")
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(shapes.SHAPES, SMALL, ("Llama", 6, 192, 512, (3, 1, 64), 4096, True, 8192, RopeSpec()))
        yield


@pytest.fixture(scope="module")
def model(small: None) -> LoadedModel:
    return load(torch.float32, model=NAME, max_model_len=512, max_num_seqs=2)


def test_text_depends_on_the_prompt_and_the_seed(model: LoadedModel) -> None:
    prompts = [tuple(model.tokenizer.encode(text)) for text in ("Hello", "Ünïcode 你好", "a b")]
    texts = answer(model.core(EngineConfig()), prompts, SHORT, ["none"], concurrency=2)
    assert len(set(texts)) == 3
    for options, equal in (("", True), (",seed=1", False)):
        other = load(torch.float32, model=NAME + options, max_model_len=512, max_num_seqs=2)
        assert (answer(other.core(EngineConfig()), prompts[:1], SHORT, ["none"]) == texts[:1]) == equal


def test_a_synthetic_model_has_no_directory(model: LoadedModel) -> None:
    with pytest.raises(ConfigError, match="has no files"):
        _ = model.source.directory


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpt-5", "unknown synthetic model 'gpt-5'; available: smollm2-135m"),
        ("smollm2-135m,alpha=0.9", "not 'alpha=0.9'"),
        ("smollm2-135m,seed=x", "not 'seed=x'"),
        ("smollm2-135m,layers=99", "not 'layers=99'"),
        ("smollm2-135m,colour=red", "not 'colour=red'"),
    ],
)
def test_an_unknown_name_or_option_is_refused(name: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        shapes.parse(SYNTHETIC + name)


def test_shapes_have_the_sizes_they_are_named_for() -> None:
    for name, billions in (
        ("smollm2-135m", 0.135),
        ("tinyllama-1.1b", 1.10),
        ("llama-3.2-1b", 1.24),
        ("llama-3.2-3b", 3.21),
        ("llama-3.1-8b", 8.03),
        ("mistral-7b", 7.25),
        ("qwen2.5-0.5b", 0.494),
        ("qwen2.5-1.5b", 1.54),
        ("qwen2.5-7b", 7.62),
        ("qwen3-0.6b", 0.596),
        ("qwen3-1.7b", 1.72),
        ("qwen3-4b", 4.02),
        ("qwen3-8b", 8.19),
    ):
        assert shapes.shape(name).parameters / 1e9 == pytest.approx(billions, rel=0.01), name
