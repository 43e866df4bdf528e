"""The decoder against transformers, for every family: Llama, Mistral, Qwen2, Qwen3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, MistralConfig, PreTrainedConfig, Qwen2Config, Qwen3Config

from engine.config.engine import EngineConfig
from engine.config.policies import KnapSpecConfig
from engine.model import attention
from engine.model.attention import Segment
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams
from tests.support.cores import answer, load, tiny_model

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
SHAPES: dict[str, tuple[type[PreTrainedConfig], dict[str, Any]]] = {
    "llama": (LlamaConfig, {}),
    "llama tied": (LlamaConfig, {"tie_word_embeddings": True}),
    "llama without groups": (LlamaConfig, {"num_key_value_heads": 4}),
    "llama wide heads": (LlamaConfig, {"num_key_value_heads": 1, "head_dim": 32}),
    "llama one layer": (
        LlamaConfig,
        {"num_hidden_layers": 1, "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}},
    ),
    "llama biases": (LlamaConfig, {"attention_bias": True, "mlp_bias": True}),
    "llama 3 rope": (LlamaConfig, {"rope_parameters": LLAMA3 | {"original_max_position_embeddings": 32}}),
    "llama linear rope": (LlamaConfig, {"rope_parameters": {"rope_type": "linear", "factor": 4.0}}),
    "mistral": (MistralConfig, {"sliding_window": None}),
    "mistral window": (MistralConfig, {"sliding_window": 16}),
    "qwen2": (Qwen2Config, {"tie_word_embeddings": True}),
    "qwen2 windows": (Qwen2Config, {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2}),
    "qwen2 yarn": (Qwen2Config, {"rope_parameters": YARN}),
    "qwen3": (Qwen3Config, {"head_dim": 32}),
    "qwen3 windows": (
        Qwen3Config,
        {
            "use_sliding_window": True,
            "sliding_window": 24,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "rope_parameters": YARN | {"attention_factor": 1.3, "truncate": False},
        },
    ),
}
TOKENS = torch.randint(0, 1024, (70,), generator=torch.Generator().manual_seed(1)).tolist()


PLAINER = {"llama without groups", "llama one layer", "llama tied"}  # than others in the list
PAIRS = [pytest.param(name, marks=[pytest.mark.nightly] if name in PLAINER else []) for name in SHAPES]


@pytest.fixture(scope="module", params=PAIRS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, LoadedModel]:
    tmp_path = tmp_path_factory.mktemp("pair")
    family, changes = SHAPES[request.param]
    reference = tiny_model(tmp_path, family, seed=len(request.param), **changes)
    return reference, load(torch.float32, model=tmp_path)


@torch.inference_mode()
def logits(model: LoadedModel, chunks: list[int], slab: int = 0) -> torch.Tensor:
    """Logits of all positions, read in chunks of these sizes."""
    out, start = [], 0
    for rows in chunks:
        batch = model.attention.prepare([Segment(slab, start, rows)])
        x = model.decoder.run(model.decoder.embed(TOKENS[start : start + rows]), batch)
        out.append(model.decoder.head(x))
        start += rows
    return torch.cat(out)


@torch.inference_mode()
def test_logits_equal_transformers(pair: tuple[Any, LoadedModel]) -> None:
    reference, model = pair
    want = reference(torch.tensor([TOKENS])).logits[0]
    assert want.abs().max() > 0.5, "the comparison must not be about zeros"
    assert (logits(model, [70]) - want).abs().max() <= 1e-4


@pytest.mark.slow
@torch.inference_mode()
def test_a_prompt_in_chunks_gives_the_logits_of_one_pass(pair: tuple[Any, LoadedModel]) -> None:
    _, model = pair
    whole = logits(model, [70])
    for slab, chunks in ((1, [1] * 70), (2, [33, 1, 2, 16, 17, 1]), (3, [16, 54])):
        assert (logits(model, chunks, slab) - whole).abs().max() <= 1e-4


@torch.inference_mode()
def test_attention_over_some_rows_at_a_time_gives_the_same_logits(
    pair: tuple[Any, LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On CUDA a long prompt would need too many scores at once."""
    _, model = pair
    whole = logits(model, [20, 50])
    asked: list[int] = []
    monkeypatch.setattr(attention, "_rows_at_once", lambda device, rows, scores: asked.append(scores) or 7)
    assert (logits(model, [20, 50], 1) - whole).abs().max() <= 1e-5
    assert bool(asked) == (type(model.attention) is attention.SdpaAttention)


CHECKED = ("mistral window",)
OFTEN = [pytest.param(name, marks=[] if name in CHECKED else pytest.mark.nightly) for name in SHAPES]


@pytest.mark.slow
@pytest.mark.parametrize("name", OFTEN)
def test_generation_equals_transformers_alone_and_together(tmp_path: Path, name: str) -> None:
    """Each policy gives transformers' 64 greedy tokens in float64, alone and in a batch.

    The texts are longer than the original RoPE length and the windows.
    """
    config = EngineConfig(knapspec=KnapSpecConfig(interval=16, budget=0.5), max_num_seqs=8)
    family, changes = SHAPES[name]
    reference = tiny_model(tmp_path, family, seed=len(name), **changes).double()
    core = load(torch.float64, model=tmp_path).core(config)
    policies = core.info.policies
    prompts = [tuple(TOKENS[3 * i : 3 * i + 5 + 7 * i]) for i in range(len(policies))]
    sampling = SamplingParams(64, temperature=0.0, ignore_eos=True)
    want = [
        reference.generate(torch.tensor([p]), max_new_tokens=64, do_sample=False, eos_token_id=None)[0, len(p) :]
        for p in prompts
    ]
    expected = [tuple(tokens.tolist()) for tokens in want]
    assert len({*expected}) > len(prompts) // 2
    assert min(len(set(tokens)) for tokens in expected) > 8, "text must vary"
    for streams in (1, len(prompts)):
        assert answer(core, prompts, sampling, policies, concurrency=streams) == expected, streams


@torch.inference_mode()
def test_attend_then_mlp_is_the_layer(pair: tuple[Any, LoadedModel]) -> None:
    reference, model = pair
    outputs = reference(torch.tensor([TOKENS]), output_hidden_states=True).hidden_states
    x = model.decoder.embed(TOKENS)
    batch = model.attention.prepare([Segment(0, 0, len(TOKENS))])
    for layer in range(model.spec.layers - 1):  # transformers applies the final norm to the last
        x = model.decoder.mlp(layer, model.decoder.attend(layer, x, batch))
        assert (x - outputs[layer + 1][0]).abs().max() <= 1e-4


@torch.inference_mode()
def test_a_batch_of_requests_equals_each_alone(pair: tuple[Any, LoadedModel]) -> None:
    """Segments differ in length and width, and some are prompt chunks."""
    _, model = pair
    whole = logits(model, [70])
    for slab in range(8):
        logits(model, [70], slab)
    for segments in (
        [Segment(0, 10, 1), Segment(1, 60, 1), Segment(2, 11, 1)],
        [Segment(0, 20, 4), Segment(1, 50, 1), Segment(2, 30, 3), Segment(5, 3, 2)],
        [Segment(0, 20, 5), Segment(3, 0, 40), Segment(4, 69, 1), Segment(7, 5, 5)],
    ):
        rows = [TOKENS[s.start : s.start + s.rows] for s in segments]
        x = model.decoder.embed([t for r in rows for t in r])
        got = model.decoder.head(model.decoder.run(x, model.attention.prepare(segments)))
        want = torch.cat([whole[s.start : s.start + s.rows] for s in segments])
        assert (got - want).abs().max() <= 1e-4


@torch.inference_mode()
def test_rows_with_different_plans_equal_each_alone(pair: tuple[Any, LoadedModel]) -> None:
    _, model = pair
    layers = model.spec.layers
    plans = [
        (*sublayers, 1)
        for sublayers in ((1, 1) * layers, (1, 0) * layers, (0, 1) * layers, (0, 0) * (layers - 1) + (1, 1))
    ]
    alone = []
    for slab, plan in enumerate(plans):
        logits(model, [30], slab)
        batch = model.attention.prepare([Segment(slab, 30, 1)])
        alone.append(model.decoder.run(model.decoder.embed([TOKENS[30 + slab]]), batch, variants=plan))
    for slab in range(4):
        logits(model, [30], slab)
    batch = model.attention.prepare([Segment(slab, 30, 1) for slab in range(4)])
    together = model.decoder.run_plans(model.decoder.embed(TOKENS[30:34]), batch, plans)
    assert (together - torch.cat(alone)).abs().max() <= 1e-4
    assert (alone[0] - alone[1]).abs().max() > 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["llama biases", "mistral window", "qwen2", "qwen3"])
@torch.inference_mode()
def test_narrow_dtypes_stay_close_to_float32(tmp_path: Path, name: str, dtype: torch.dtype) -> None:
    family, changes = SHAPES[name]
    tiny_model(tmp_path, family, scale=0.7, **changes)
    model = load(dtype, model=tmp_path, kernels="torch")
    assert model.decoder.dtype == dtype
    narrow = logits(model, [60, 1, 4, 5])
    assert narrow.dtype == dtype
    wide = logits(load(torch.float32, model=tmp_path), [70])
    assert torch.cosine_similarity(narrow.float(), wide, dim=-1).min() > 0.99
