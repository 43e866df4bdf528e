"""Random models of real shapes behave like trained ones where measurements need it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from engine.architecture.rope import RopeSpec
from engine.checkpoints import synthetic
from engine.checkpoints.hub import SYNTHETIC
from engine.checkpoints.source import SyntheticSource
from engine.config import EngineConfig, KnapSpecConfig
from engine.draft.costs import CostModel
from engine.errors import ConfigError, ModelError
from engine.model.attention import Segment
from engine.runtime.build import LoadedModel
from tests.support.cores import GREEDY, answer, load

SHORT = replace(GREEDY, max_tokens=24)
SMALL = "a small one"  # of a shape that nobody runs
NAME = f"synthetic:{SMALL},alpha=0.85"


@pytest.fixture(scope="module")
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(synthetic.SHAPES, SMALL, ("Llama", 6, 192, 512, (3, 1, 64), 4096, True, 8192, RopeSpec()))
        yield


@pytest.fixture(scope="module")
def model(small: None) -> LoadedModel:
    return load(torch.float32, model=NAME, max_model_len=512, max_num_seqs=2)


@pytest.mark.nightly
def test_text_does_not_loop_and_depends_only_on_the_seed(model: LoadedModel) -> None:
    prompts = [tuple(model.tokenizer.encode(text)) for text in ("Hello", "Ünïcode 你好", "a b")]
    texts = answer(model.core(EngineConfig()), prompts, SHORT, ["none"], concurrency=2)
    for text in texts:
        assert len({*pairwise(text)}) >= 0.95 * (len(text) - 1)
    assert len(set(texts)) == 3
    again = load(torch.float32, model=NAME, max_model_len=512, max_num_seqs=2)
    assert answer(again.core(EngineConfig()), prompts[:1], SHORT, ["none"]) == texts[:1]
    other = load(torch.float32, model=NAME + ",seed=1", max_model_len=512, max_num_seqs=2)
    assert answer(other.core(EngineConfig()), prompts[:1], SHORT, ["none"]) != texts[:1]


def test_every_policy_gives_the_same_tokens(model: LoadedModel) -> None:
    prompt = tuple(model.tokenizer.encode("What is measured here?"))
    core = model.core(EngineConfig(knapspec=KnapSpecConfig(min_skip=0.3, max_skip=0.6)))
    texts = [answer(core, [prompt], SHORT, [policy])[0] for policy in core.info.policies]
    assert len(set(texts)) == 1


@torch.inference_mode()
def test_half_of_the_model_drafts_as_well_as_its_name_says(model: LoadedModel) -> None:
    """Positions are new to the calibration, and another half drafts worse."""
    assert isinstance(model.source, SyntheticSource)
    made = model.source.model
    scales = made.scales()
    generator = torch.Generator().manual_seed(5)
    x = model.decoder.embed(torch.randint(0, made.spec.vocab, (300,), generator=generator).tolist())
    assert model.profile is not None
    prices = CostModel(made.spec, model.profile).sublayers(0, 1, None)
    least = made.calibration_plan(prices)
    most = (*(1 - v for v in least[:-1]), 1)
    skipped = sum(price for price, v in zip(prices, least[:-1], strict=True) if not v)
    assert 0.4 <= skipped / sum(prices) <= 0.5
    kept = [scale for scale, v in zip(scales, least[:-1], strict=True) if v]
    assert max(kept) == max(scales)
    decoder, attention, begin = model.decoder, model.attention, 32
    whole = decoder.run(x, attention.prepare([Segment(0, 0, len(x))]))[begin:]
    rows = attention.candidates(0, range(begin, len(x)), 1)
    good, bad = (
        float((decoder.head(whole).argmax(-1) == decoder.head(part).argmax(-1)).float().mean())
        for part in (decoder.run_plan(x[begin:], rows, plan) for plan in (least, most))
    )
    assert 0.75 <= good <= 0.93
    assert bad < good


def test_a_random_prefix_is_a_prefix_hit(model: LoadedModel) -> None:
    core = model.core(EngineConfig())
    tokens = tuple(range(256, 256 + 320))
    core.cache_random_prefix(tokens)
    assert core.scheduler.blocks.match((*tokens, 9)) == 320
    assert len(answer(core, [(*tokens, 9)], GREEDY, ["none"])[0]) == 64
    with pytest.raises(ConfigError, match="has no files"):
        _ = model.source.directory


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpt-5", "unknown synthetic model 'gpt-5'; available: smollm2-135m"),
        ("smollm2-135m,alpha=2", "not 'alpha=2'"),
        ("smollm2-135m,alpha=x", "not 'alpha=x'"),
        ("smollm2-135m,layers=99", "not 'layers=99'"),
        ("smollm2-135m,colour=red", "not 'colour=red'"),
    ],
)
def test_an_unknown_name_or_option_is_refused(name: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        synthetic.parse(SYNTHETIC + name)


def test_a_context_too_short_to_calibrate_is_refused() -> None:
    with pytest.raises(ConfigError, match="raise --max-model-len"):
        load(torch.float32, model="synthetic:smollm2-135m,layers=1", max_model_len=48)


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
        assert synthetic.shape(name).parameters / 1e9 == pytest.approx(billions, rel=0.01), name
