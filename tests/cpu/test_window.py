"""The attention variant that sees only the first and the last tokens of the cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig, MistralConfig

from engine.architecture.spec import load_spec
from engine.backends.cuda.backend import cuda_backend
from engine.draft.costs import CostModel
from engine.kernels.library import compiler
from engine.kv.pages import Placement
from engine.model.attention import Segment
from engine.model.decoder import Decoder, Draws, ModelWeights
from engine.plans import LOW_BIT, RECENT, SINKS, SKIP, TARGET, WINDOW
from engine.runtime.build import LoadedModel
from tests.support.cores import load, made_up_profile, tiny_model

SHAPE: dict[str, Any] = {
    "head_dim": 32,
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 1,
    "max_position_embeddings": 2560,
}
LENGTH = 2200  # three parts of what native kernels scan at a time, the last one short
BACKENDS = ["portable", "paged", pytest.param("native", marks=pytest.mark.skipif(compiler() is None, reason="no C++"))]


def build(directory: Path, backend: str) -> LoadedModel:
    """A model whose low-bit copy is itself."""
    dtype, kernels = (torch.bfloat16, "native") if backend == "native" else (torch.float32, "torch")
    usual = cuda_backend(torch.device("cpu"), dtype) if backend == "paged" else None
    made = load(dtype, model=directory, backend=usual, kernels=kernels, draft_bits="none").backend

    def decoder(spec: Any, dtype: Any, weights: ModelWeights, sampler: Any) -> Decoder:
        weights.add_copy(lambda linear: linear)
        return made.decoder(spec, dtype, weights, sampler)

    copied = replace(made, decoder=decoder)
    model = load(dtype, model=directory, backend=copied, kernels=kernels, draft_bits="none", max_num_seqs=3)
    if backend == "paged":
        pages = LENGTH // 16 + 1
        tables = tuple(Placement(s, 0, tuple(range(1 + s * pages, 1 + (s + 1) * pages))) for s in range(3))
        model.attention.cache.place(tables)
    return model


def attended(model: LoadedModel, slab: int, tokens: Tensor, rows: int, variant: int) -> Tensor:
    """Output of the only attention for the last `rows` tokens, with all others in the cache."""
    length = len(tokens)

    def attend(start: int, count: int, variant: int) -> Tensor:
        batch = model.attention.prepare([Segment(slab, start, count)])
        ids = tokens[start : start + count].tolist()
        return model.decoder.step(ids, batch, [(variant, SKIP, TARGET)], Draws()).hidden.clone()

    for start in range(0, length - rows, 500):
        attend(start, min(500, length - rows - start), TARGET)
    return attend(length - rows, rows, variant)


@pytest.mark.slow
@pytest.mark.parametrize("kv_heads", [1, 4], ids=["shared out in parts", "part by part"])
@pytest.mark.parametrize("backend", BACKENDS)
@torch.inference_mode()
def test_a_window_attends_to_the_first_and_the_last_tokens_only(backend: str, kv_heads: int, tmp_path: Path) -> None:
    tiny_model(tmp_path, LlamaConfig, **SHAPE, num_attention_heads=4, num_key_value_heads=kv_heads)
    model = build(tmp_path, backend)
    tokens = torch.randint(0, 1000, (LENGTH,), generator=torch.Generator().manual_seed(3))
    begin = LENGTH - RECENT  # the first of the last tokens that the last row sees
    for rows in (1, 2):
        seen = attended(model, 0, tokens, rows, WINDOW)
        assert not torch.equal(seen, attended(model, 0, tokens, rows, LOW_BIT))
        hidden = {
            0: False,
            SINKS - 1: False,
            SINKS: True,
            1000: True,
            begin - rows: True,
            begin: False,
            LENGTH - 4: False,
        }
        for position, unseen in hidden.items():
            other = tokens.clone()
            other[position] += 1
            assert torch.equal(attended(model, 1, other, rows, WINDOW), seen) == unseen, position
        if rows == 2:
            alone = attended(model, 0, tokens, 1, WINDOW)
            torch.testing.assert_close(seen[-1:], alone, atol=1e-5, rtol=1e-5)
    for length, atol in ((RECENT, 0.0), (SINKS + RECENT, 5e-3)):  # it sees all there is, summed up in other parts
        some, whole = (attended(model, 0, tokens[:length], 1, variant) for variant in (WINDOW, LOW_BIT))
        torch.testing.assert_close(some, whole, atol=atol, rtol=0)


@pytest.mark.parametrize("backend", BACKENDS)
@torch.inference_mode()
def test_candidates_of_a_search_have_the_same_window(backend: str, tmp_path: Path) -> None:
    tiny_model(tmp_path, LlamaConfig, **SHAPE)
    model = build(tmp_path, backend)
    tokens = torch.randint(0, 1000, (LENGTH,), generator=torch.Generator().manual_seed(3))
    drafted = attended(model, 0, tokens, 1, WINDOW)
    batch = model.attention.candidates(0, (LENGTH - 1,), 2)
    found = model.decoder.sublayer(0, model.decoder.embed(tokens[-1:].tolist()).repeat(2, 1), batch, WINDOW)
    torch.testing.assert_close(found, drafted.expand(2, -1), atol=2e-3, rtol=2e-3)


@pytest.mark.skipif(compiler() is None, reason="no C++")
@torch.inference_mode()
def test_windows_of_the_native_kernels_agree_with_float32(tmp_path: Path) -> None:
    tiny_model(tmp_path, LlamaConfig, **SHAPE)
    tokens = torch.randint(0, 1000, (LENGTH,), generator=torch.Generator().manual_seed(3))
    native, exact = (attended(build(tmp_path, b), 0, tokens, 2, WINDOW) for b in ("native", "portable"))
    assert float((native - exact).norm() / exact.norm()) < 0.02


def test_a_narrower_window_of_the_model_is_kept(tmp_path: Path) -> None:
    tiny_model(tmp_path, MistralConfig, **SHAPE, sliding_window=100)
    spec = load_spec(tmp_path)
    assert spec.attention_window(0, WINDOW) == spec.attention_window(0, TARGET) == (100, 0)


def test_the_price_of_a_window_stops_growing_with_the_context(tmp_path: Path) -> None:
    tiny_model(tmp_path, LlamaConfig, **SHAPE)
    costs = CostModel(load_spec(tmp_path), made_up_profile(low_bit=0.3))
    short, long, longer = (
        [costs.draft_pass((v, LOW_BIT, LOW_BIT), [n]) for v in (LOW_BIT, WINDOW)] for n in (900, 4000, 8000)
    )
    assert short[0] == short[1]
    assert long[0] > long[1] == longer[1]
    assert longer[0] > long[0]
