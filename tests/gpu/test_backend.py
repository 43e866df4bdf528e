"""The whole CUDA backend in bfloat16: drafting gives the tokens of plain decoding.

Without a GPU, passes run on a CPU in Triton's interpreter, as they would be recorded: the same layouts, kernels, stop
flag and draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, PreTrainedConfig, Qwen3Config

from engine.architecture.spec import ModelSpec
from engine.config.engine import EngineConfig
from engine.config.policies import FixedConfig, KnapSpecConfig
from engine.core.engine import EngineCore
from engine.kv.cache import PagedCache
from engine.kv.pages import CacheSize
from engine.model.attention import Segment
from engine.model.backend import Backend
from engine.model.decoder import Draws
from engine.plans import LOW_BIT
from engine.runtime.build import LoadedModel
from engine.types import RequestRound, SamplingParams
from tests.support import INTERPRETED
from tests.support.cores import answer, logits_of, made_up_profile, tiny_model

CPU = torch.device("cpu")
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not (CUDA or INTERPRETED), reason="needs a CUDA device, or triton, which interprets kernels"),
]
interpreted = pytest.mark.skipif(not INTERPRETED, reason="runs in Triton's interpreter")

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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.architecture.spec.RECENT", RECENT)
        patch.setattr("engine.architecture.spec.SINKS", SINKS)
        if INTERPRETED:
            import tests.support.interpreter  # noqa: F401
            from engine.backends.cuda.products import Tiles

            patch.setattr("engine.backends.cuda.products._NARROW", Tiles(256, 64, 4, 2))
            patch.setattr("engine.backends.cuda.products._GATED", Tiles(128, 64, 4, 2))
            patch.setattr("engine.backends.cuda.kernels._PROGRAMS", 4)
            patch.setattr("engine.backends.cuda.kernels._PARTS", 2)
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    directory = tmp_path_factory.mktemp("tiny")
    tiny_model(directory, num_hidden_layers=2, scale=0.6, drafts=True)
    return load(directory)


def load(directory: Path, **settings: Any) -> LoadedModel:
    settings = {"max_num_seqs": 4, "max_model_len": 256} | settings
    config = EngineConfig(model=str(directory), device=DEVICE, threads=1, draft_bits="4", **settings)
    profile, backend = made_up_profile(low_bit=0.4), None if CUDA else interpreted_backend()
    made = LoadedModel(config, dtype=torch.bfloat16, profile=profile, backend=backend)
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
    overlaps: bool = True,
    cores: list[EngineCore] | None = None,
    **settings: Any,
) -> tuple[list[tuple[int, ...]], list[RequestRound]]:
    """Return the answers, and each request's rounds."""
    fixed = FixedConfig(plan=plan, gamma=3)
    knapspec = KnapSpecConfig(interval=4, budget=0.5)
    config = EngineConfig(device=DEVICE, fixed=fixed, knapspec=knapspec, draft_confidence=confidence, **settings)
    rounds: list[RequestRound] = []
    core = model.core(config, overlaps=overlaps)
    if cores is not None:
        cores.append(core)
    return answer(core, ids, sampling, policies, concurrency=concurrency, rounds=rounds), rounds


@pytest.mark.nightly
@pytest.mark.parametrize("sampling", [SHORT, SAMPLED, CUT], ids=["greedy", "sampled", "cut"])
@pytest.mark.parametrize("plan", ["22222", "32322", "10121"], ids=["copy", "windows", "skips"])
def test_drafts_give_the_tokens_of_plain_decoding(model: LoadedModel, plan: str, sampling: SamplingParams) -> None:
    """The context is longer than windows."""
    ids = prompts(1, 100)
    plain, _ = tokens(model, ids, sampling, "none")
    drafting, rounds = tokens(model, ids, sampling, "fixed", plan=plan)
    assert drafting == plain
    assert sum(r.drafted for r in rounds) > 0


def test_a_short_draft_of_the_copy_gives_the_tokens_of_plain_decoding(model: LoadedModel) -> None:
    short, ids = replace(SAMPLED, max_tokens=3), prompts(1, 20)
    plain, _ = tokens(model, ids, short, "none")
    drafting, rounds = tokens(model, ids, short, "fixed", plan="32222")
    assert drafting == plain
    assert sum(r.drafted for r in rounds) > 0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("policies", "plan"),
    [(("none", "fixed"), "22222"), (("layerskip", "fixed"), "10121"), (("fixed", "layerskip"), "32322")],
    ids=["one drafts", "masks", "divided"],
)
def test_requests_side_by_side_get_the_tokens_of_plain_decoding(
    model: LoadedModel, policies: tuple[str, ...], plan: str
) -> None:
    ids = prompts(4, 60)
    plain, _ = tokens(model, ids, SAMPLED, "none")
    together, rounds = tokens(model, ids, SAMPLED, *policies, plan=plan, concurrency=4)
    assert together == plain
    assert sum(r.drafted for r in rounds) > 0


@pytest.mark.nightly
def test_a_draft_that_the_device_ends_has_the_same_tokens_as_one_that_the_host_ends(model: LoadedModel) -> None:
    """The kernels of the pass that was started too early do nothing, and its draws are not used."""
    ids = prompts(2, 30)
    plain, _ = tokens(model, ids, SHORT, "none")
    for overlaps in (True, False):
        found, rounds = tokens(model, ids, SHORT, "fixed", plan="22222", confidence=0.6, overlaps=overlaps)
        lengths = [r.drafted for r in rounds]
        assert found == plain
        assert len({*lengths}) > 1, "some drafts end early"
        if overlaps:
            expected = lengths
    assert lengths == expected


@pytest.mark.nightly
def test_shared_prefixes_and_preempted_requests_get_the_tokens_of_plain_decoding(
    tmp_path: Path, model: LoadedModel
) -> None:
    """Prompts are read in static passes, whose rows are equal to the last bit."""
    ids = [(*prompts(1, 76)[0], *own) for own in ((5, 6), (7, 8), (9,))]
    plain = [tokens(model, [each], SHORT, "none", max_num_batched_tokens=16)[0][0] for each in ids]
    tiny_model(tmp_path, num_hidden_layers=2, scale=0.6, drafts=True)
    block = 2 * 2 * 2 * 16 * 16 * 2  # bytes of K/V in bf16: layers, K and V, heads, their width, tokens
    small = load(tmp_path, kv_cache_memory=7 * block, max_model_len=96)
    cores: list[EngineCore] = []
    for policies in (("none",), ("fixed", "none")):
        found, _ = tokens(
            small, ids * 2, SHORT, *policies, plan="22222", concurrency=4, cores=cores, max_num_batched_tokens=16
        )
        assert found == plain * 2
    assert all(core.scheduler.prefix_hits for core in cores)
    assert any(core.scheduler.preemptions for core in cores)


@interpreted
@pytest.mark.parametrize("family", [LlamaConfig, Qwen3Config])
def test_a_recorded_step_has_six_kernels_a_layer(
    family: type[PreTrainedConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside them, it looks up the tokens, multiplies by the head, and draws in two kernels."""
    counts: list[int] = []

    def recorded(function: Callable[[], None]) -> Callable[[], None]:
        with Launches() as launches:
            function()
        counts.append(launches.count)
        return function

    monkeypatch.setattr("engine.backends.cuda.graphs.repeat", recorded)
    for layers in (1, 2):
        tiny_model(tmp_path / str(layers), family, num_hidden_layers=layers)
        made = load(tmp_path / str(layers))
        for _ in range(3):
            logits_of(made, [Segment(0, 0, 1)], [5])
    assert counts == [10, 16]


class Launches(TorchDispatchMode):
    """Counts what a GPU would run as kernels: Triton's, and those of torch's operations that compute."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self._inside = False

    def __enter__(self) -> Launches:
        from triton.runtime.interpreter import GridExecutor

        launch = GridExecutor.__call__

        def launched(executor: Any, *args: Any, **options: Any) -> Any:
            self.count, self._inside = self.count + 1, True
            try:
                return launch(executor, *args, **options)
            finally:
                self._inside = False

        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(GridExecutor, "__call__", launched)
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._patch.undo()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self._inside and not function.is_view and "empty" not in function.name():
            self.count += 1
        return function(*args, **(kwargs or {}))


@interpreted
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy warns of what are no numbers
@pytest.mark.parametrize("vocab", [77, 3000])
def test_tokens_are_drawn_as_torch_draws_them(vocab: int) -> None:
    """The best of equal scores, rows that are not numbers, excluded tokens, noise, confidences and the stop flag."""
    from engine.backends.cuda.attention import Layout, StaticInputs, TorchKernels
    from engine.backends.cuda.kernels import TritonKernels
    from engine.backends.cuda.launch import Launch

    inputs, launch = StaticInputs(Layout(1, 8, 8), CPU), Launch(CPU)
    logits = (torch.randn(8, vocab, generator=torch.Generator().manual_seed(0)) * 3).bfloat16()
    logits[0] = 1.0
    logits[1, 5], logits[2] = float("nan"), float("-inf")
    logits[3, : vocab // 2] = float("-inf")
    sampling = [replace(SAMPLED, temperature=0.0 if row < 4 else 0.3 * row, seed=row) for row in range(8)]
    for least, alive in ((0.0, 1), (1.5, 0)):
        draws = Draws(range(7), sampling[:7], range(7), noise=[1.0] * 6 + [0.5], confidence=True, least=[least] * 7)
        inputs.load(8, [Segment(0, 0, 7)], [0] * 7, draws, fresh=True)
        TorchKernels().draw(logits, inputs)
        expected = inputs.results.clone()
        with launch.of_draft(stops=True):
            TritonKernels(launch).draw(logits, inputs)
        assert torch.equal(inputs.results[0, :7], expected[0, :7])
        assert inputs.results[0, :3].tolist() == [0, -1, -1]
        torch.testing.assert_close(inputs.results[1, 3:7], expected[1, 3:7], rtol=1e-5, atol=0)
        assert launch.alive.item() == alive
    inputs.results.fill_(7)
    with launch.of_draft(stops=True):
        TritonKernels(launch).draw(logits, inputs)
    assert (inputs.results == 7).all(), "a dead draft draws nothing"
