"""The whole CUDA backend in Triton's interpreter, in bfloat16: drafting gives the tokens of plain decoding.

Passes run on a CPU as they would be recorded on a GPU: the same layouts, kernels, stop flag and draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from engine.architecture.spec import ModelSpec
from engine.config.engine import EngineConfig
from engine.config.policies import FixedConfig, KnapSpecConfig
from engine.kv.cache import PagedCache
from engine.kv.pages import CacheSize
from engine.model.backend import Backend
from engine.plans import LOW_BIT
from engine.runtime.build import LoadedModel
from engine.types import RequestRound, SamplingParams
from tests.support import INTERPRETED
from tests.support.cores import answer, made_up_profile, tiny_model

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs triton, whose interpreter runs the kernels")

CPU = torch.device("cpu")
RECENT, SINKS = 48, 16  # of windows in these tests, so that contexts of a hundred tokens are longer
SHORT = SamplingParams(max_tokens=8, temperature=0.0, ignore_eos=True)
SAMPLED = replace(SHORT, temperature=0.8)
CUT = replace(SAMPLED, top_p=0.9)


def interpreted_backend() -> Backend:
    from engine.backends.cuda.attention import PagedAttention
    from engine.backends.cuda.graphs import GraphedDecoder
    from engine.backends.cuda.kernels import TritonKernels
    from engine.backends.cuda.launch import Launch
    from engine.backends.cuda.linear import RowsLinears

    launch = Launch(CPU)
    kernels, linears = TritonKernels(launch), RowsLinears(launch)

    def attention(spec: ModelSpec, size: CacheSize) -> PagedAttention:
        return PagedAttention(spec, PagedCache(spec, size, torch.bfloat16, CPU), kernels)

    decoder = partial(GraphedDecoder, kernels)
    return Backend("paged-triton-rows", linears, decoder, torch.bfloat16, attention, packing=linears)


@pytest.fixture(scope="module", autouse=True)
def few_programs() -> Iterator[None]:
    """Divide work among fewer programs, which the interpreter runs one after another, and shorten windows."""
    import tests.support.interpreter  # noqa: F401
    from engine.backends.cuda.products import Tiles

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.backends.cuda.products._NARROW", Tiles(256, 64, 4, 2))
        patch.setattr("engine.backends.cuda.products._GATED", Tiles(128, 64, 4, 2))
        patch.setattr("engine.backends.cuda.kernels._PROGRAMS", 4)
        patch.setattr("engine.backends.cuda.kernels._PARTS", 2)
        patch.setattr("engine.architecture.spec.RECENT", RECENT)
        patch.setattr("engine.architecture.spec.SINKS", SINKS)
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    directory = tmp_path_factory.mktemp("tiny")
    tiny_model(directory, num_hidden_layers=2, scale=0.6, drafts=True)
    return load(directory)


def load(directory: Path, **settings: object) -> LoadedModel:
    config = EngineConfig(model=str(directory), device="cpu", max_num_seqs=4, max_model_len=256, threads=1, **settings)
    profile = made_up_profile(low_bit=0.4)
    made = LoadedModel(config, dtype=torch.bfloat16, profile=profile, backend=interpreted_backend())
    assert LOW_BIT in made.decoder.weights.layers
    return made


def prompts(count: int, length: int) -> list[tuple[int, ...]]:
    return [tuple((i * 7 + j * 3) % 200 + 5 for j in range(length + i)) for i in range(count)]


def tokens(
    model: LoadedModel,
    ids: Sequence[tuple[int, ...]],
    sampling: SamplingParams,
    *policies: str,
    plan: str | None = None,
    confidence: float = 0.0,
    concurrency: int = 1,
) -> tuple[list[tuple[int, ...]], list[RequestRound]]:
    """Return the answers, and each request's rounds."""
    fixed = FixedConfig(plan=plan, gamma=3)
    knapspec = KnapSpecConfig(interval=4, budget=0.5)
    config = EngineConfig(device="cpu", fixed=fixed, knapspec=knapspec, draft_confidence=confidence)
    rounds: list[RequestRound] = []
    core = model.core(config, overlaps=True)
    return answer(core, ids, sampling, policies, concurrency=concurrency, rounds=rounds), rounds


@pytest.mark.parametrize("sampling", [SHORT, SAMPLED, CUT], ids=["greedy", "sampled", "cut"])
@pytest.mark.parametrize("plan", ["22222", "32322", "10121"], ids=["copy", "windows", "skips"])
def test_drafts_give_the_tokens_of_plain_decoding(model: LoadedModel, plan: str, sampling: SamplingParams) -> None:
    ids = prompts(1, 100)
    plain, _ = tokens(model, ids, sampling, "none")
    drafting, rounds = tokens(model, ids, sampling, "fixed", plan=plan)
    assert drafting == plain
    assert sum(r.drafted for r in rounds) > 0
