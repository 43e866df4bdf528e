"""The CUDA backend's pages, static passes and replays on a CPU, without graph capture.

Where triton is installed (`make check`), its interpreter runs the kernels too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import MistralConfig, Qwen3Config

from bench.targets import PolicyTarget, Prompt, run_in_turns
from engine.architecture.spec import ModelSpec, load_spec
from engine.backends.cuda.attention import Kernels, Layout, PagedAttention, PagedBatch, StaticInputs, TorchKernels
from engine.backends.cuda.backend import cuda_backend
from engine.backends.cuda.graphs import GraphedDecoder
from engine.config.engine import EngineConfig
from engine.config.policies import KnapSpecConfig
from engine.kv.cache import PagedCache
from engine.kv.pages import CacheSize, Placement
from engine.model.attention import AttentionBatch, Segment
from engine.model.decoder import Draws, Step
from engine.plans import LOW_BIT, TARGET, Variants
from engine.runtime.build import LoadedModel
from engine.runtime.loading.warmup import warm_up
from engine.types import GenerateRequest, SamplingParams, TokenEvent
from papers.settings import LayerSkipConfig
from tests.support import INTERPRETED
from tests.support.cores import GREEDY, SAMPLED, answer, chat_ids, load, logits_of, tiny_model
from tests.support.timed import Delegate, TickingClock

CPU = torch.device("cpu")
CONFIG = EngineConfig(max_num_seqs=8, knapspec=KnapSpecConfig(interval=12, budget=0.5))


PAGES = cuda_backend(CPU, torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampling", [GREEDY, pytest.param(SAMPLED, marks=pytest.mark.nightly)], ids=["greedy", "sampled"]
)
def test_every_policy_on_pages_gives_the_tokens_of_plain_decoding_on_slabs(
    tiny: Path, prompts: Sequence[str], sampling: SamplingParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[object] = []
    monkeypatch.setattr("engine.backends.cuda.graphs.repeat", lambda launch: recorded.append(launch) or launch)
    slabs = load(torch.float64, model=tiny, max_num_seqs=8, max_model_len=256).core(CONFIG)
    sampling = replace(sampling, max_tokens=32)
    ids = [chat_ids(slabs, text)[:200] for text in prompts[::15]]
    plain = answer(slabs, ids, sampling, ["none"])
    model = load(torch.float64, model=tiny, backend=PAGES, max_num_seqs=8, max_model_len=256)
    assert isinstance(model.decoder, GraphedDecoder)
    for policies, concurrency in ((["none"], 1), (["knapspec"], 1), (["swift"], 1), (slabs.info.policies, 8)):
        core = model.core(CONFIG)
        assert answer(core, ids, sampling, policies, concurrency=concurrency) == plain
        core.scheduler.blocks.check_integrity()
        assert core.scheduler.blocks.usage == 0
    assert recorded, "passes that recur are recorded"


@pytest.mark.slow
def test_targets_that_share_pages_answer_after_their_contexts_as_alone(tiny: Path) -> None:
    """Each overwrites the pages of the other's context."""
    model = load(torch.float64, model=tiny, backend=PAGES, max_num_seqs=8, max_model_len=256)
    sampling = replace(GREEDY, max_tokens=4)
    contexts = [tuple(range(start, start + 96)) for start in (5, 105)]
    prompts = [Prompt("", tokens) for tokens in ((9, 8), tuple(range(200, 240)), (7,))]
    alone = []
    for context in contexts:
        whole = [Prompt("", (*context, *prompt.tokens)) for prompt in prompts]
        alone.append(PolicyTarget("none", model.core(CONFIG), sampling).run(whole, 1))
    sharing = [PolicyTarget("none", model.core(CONFIG), sampling, context) for context in contexts]
    answers = [run_in_turns(sharing, [prompt], first=number % 2) for number, prompt in enumerate(prompts)]
    assert [[answer for (answer,) in each] for each in zip(*answers, strict=True)] == alone


@pytest.mark.parametrize(
    ("family", "changes"), [(Qwen3Config, {}), (MistralConfig, {"sliding_window": 12})], ids=["qk norm", "window"]
)
@torch.inference_mode()
def test_logits_on_pages_equal_those_on_slabs(family: type, changes: dict[str, object], tmp_path: Path) -> None:
    """Chunks, single rows, few rows, two requests with different plans, and pages out of order."""
    tiny_model(tmp_path, family, **changes)
    spec = load_spec(tmp_path)
    tokens = torch.randint(0, 300, (90,), generator=torch.Generator().manual_seed(0)).tolist()
    plans = [(*(int((i * 7 + r) % 3 != 0) for i in range(spec.sublayers)), 1) for r in range(2)]

    def logits(model: LoadedModel, prepare: bool) -> list[torch.Tensor]:
        if prepare:
            changed = Placement(0, 0, (9, 2, 7, 4, 5, 6)), Placement(1, 0, (3, 8, 1, 12, 11, 10))
            model.attention.cache.place(changed)

        def step(segments: list[Segment], *plans: Variants) -> torch.Tensor:
            ids = [t for s in segments for t in tokens[s.start : s.start + s.rows]]
            return logits_of(model, segments, ids, *plans)

        return [
            step([Segment(0, 0, 40)]),
            step([Segment(1, 0, 25)]),
            *(step([Segment(0, 40 + i, 1)]) for i in range(4)),
            step([Segment(0, 44, 5)]),
            step([Segment(0, 49, 3), Segment(1, 25, 16)]),
            step([Segment(0, 52, 1), Segment(1, 41, 1)]),
            *(step([Segment(0, 53 + i, 1), Segment(1, 42 + i, 1)], *plans) for i in range(4)),
        ]

    found = load(torch.float64, model=tmp_path, backend=PAGES, max_num_seqs=2)
    assert isinstance(found.decoder, GraphedDecoder)
    expected = load(torch.float64, model=tmp_path, max_num_seqs=2)
    for a, b in zip(logits(found, prepare=True), logits(expected, prepare=False), strict=True):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=0)


def _kernels() -> Kernels:
    from engine.backends.cuda.kernels import TritonKernels
    from engine.backends.cuda.launch import Launch

    return TritonKernels(Launch(CPU))


@pytest.mark.skipif(not INTERPRETED, reason="needs triton, whose interpreter runs the kernels")
@pytest.mark.parametrize(("window", "sinks"), [(0, 0), pytest.param(20, 0, marks=pytest.mark.nightly), (70, 33)])
@pytest.mark.parametrize(
    ("heads", "kv_heads", "dim"), [pytest.param(4, 2, 64, marks=pytest.mark.nightly), (6, 2, 32), (7, 1, 48)]
)
@pytest.mark.parametrize("layout", [Layout(1, 1, 1), Layout(4, 1, 4), Layout(2, 8, 16)])
@pytest.mark.parametrize("normed", [False, True])
@torch.inference_mode()
def test_the_triton_kernels_equal_torchs_operations(
    heads: int, kv_heads: int, dim: int, layout: Layout, window: int, sinks: int, normed: bool, tmp_path: Path
) -> None:
    sizes = {"num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": dim}
    tiny_model(tmp_path, hidden_size=heads * dim, num_hidden_layers=1, **sizes)
    size = CacheSize(slabs=4, blocks_per_slab=16, block_size=16, capacity=64, length=256)
    torch.manual_seed(0)
    ends = [layout.width, 200, 133, 70][: layout.sequences - 1 or 1]  # the last sequence of several is not there
    results = []
    for kernels in (TorchKernels(), _kernels()):
        cache = PagedCache(load_spec(tmp_path), size, torch.float32, CPU)
        attention = PagedAttention(load_spec(tmp_path), cache, kernels)
        changed = tuple(Placement(s, 0, tuple(range(1 + 16 * s, 17 + 16 * s))[::-1]) for s in range(4))
        cache.place(changed)
        for slab in range(4):
            cache.fill(slab, 256)
        segments = [Segment(s, end - layout.width, layout.width) for s, end in enumerate(ends)]
        batch = PagedBatch(attention, layout, tuple(segments))
        batch.load([0] * batch.count, Draws(), fresh=True)
        random = torch.Generator().manual_seed(1)
        qkv = torch.randn(layout.rows, heads + 2 * kv_heads, dim, generator=random)
        norm = torch.rand(heads + kv_heads, dim, generator=random) if normed else None
        out = kernels.attend(qkv, norm, 1e-5, 0, batch, window, sinks)
        results.append((cache.k[0][1:], cache.v[0][1:], out[: batch.count]))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampling", [pytest.param(GREEDY, marks=pytest.mark.nightly), SAMPLED], ids=["greedy", "sampled"]
)
def test_drafts_that_are_read_late_are_the_same(tiny: Path, prompts: Sequence[str], sampling: SamplingParams) -> None:
    """Tokens, drafts and passes do not depend on whether the host reads a pass while the device runs the next one."""
    model = load(torch.float64, model=tiny, backend=PAGES, max_num_seqs=8, max_model_len=256)
    config = replace(CONFIG, policies=(LayerSkipConfig(exit=2, gamma=5),), draft_confidence=0.3)
    ids = [chat_ids(model.core(config), text)[:200] for text in prompts[::15]]

    def history(late: bool) -> list[object]:
        core = model.core(config, overlaps=late)
        for i, prompt in enumerate(ids):
            policy = ("fixed", "layerskip")[i % 2]
            core.add(GenerateRequest(str(i), tuple(prompt), replace(sampling, max_tokens=24, seed=i), policy))
        seen: list[object] = []
        while (report := core.step()).running:
            seen += [(r.request_id, r.drafted, r.accepted, r.draft_passes) for r in report.rounds]
            seen += [event.token_ids for event in report.events if isinstance(event, TokenEvent)]
        return seen

    at_once, late = history(False), history(True)
    assert late == at_once
    drafted = [entry[1] for entry in at_once if isinstance(entry, tuple) and len(entry) == 4]
    assert len(set(drafted)) > 2, "drafts differ in length"


def test_warming_up_runs_every_shape_of_decoding(tiny: Path) -> None:
    shapes: set[tuple[int, int]] = set()

    class Recorded(PagedAttention):
        def prepare(self, segments: Sequence[Segment]) -> AttentionBatch:
            shapes.add((len(segments), segments[0].rows))
            return super().prepare(segments)

    def attention(spec: ModelSpec, size: CacheSize) -> PagedAttention:
        return Recorded(spec, PagedCache(spec, size, torch.float64, CPU), TorchKernels())

    backend = replace(PAGES, attention=attention)
    load(torch.float64, model=tiny, backend=backend, max_num_seqs=4, max_model_len=256).warm_up()
    assert shapes >= {(sequences, width) for sequences in (1, 2, 4) for width in (1, 2, 4, 8, 16)}


@torch.inference_mode()
def test_a_static_pass_does_not_end_with_a_draft_before_the_pass_that_it_continues(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass of too many requests is not static; the stop flag then is that of an earlier draft."""
    fresh: list[bool] = []
    monkeypatch.setattr("engine.backends.cuda.attention.MOST_SEQUENCES", 1)
    monkeypatch.setattr(StaticInputs, "load", lambda self, *inputs: fresh.append(inputs[-1]))
    model = load(torch.float64, model=tiny, backend=PAGES, max_num_seqs=2, max_model_len=64)

    def run(tokens: Sequence[int] | Tensor, requests: int) -> Tensor:
        draws = Draws(range(requests), [GREEDY] * requests, [1] * requests, confidence=True, least=[0.5] * requests)
        batch = model.attention.prepare([Segment(slab, 0, 1) for slab in range(requests)])
        return model.decoder.step(tokens, batch, (model.spec.whole,), draws).drawn.tokens

    run([5], 1)  # an earlier draft
    run(run([5, 6], 2)[:1], 1)  # two drafts, of which one goes on
    assert fresh == [True, True]


@pytest.mark.parametrize("hurried", [False, True])
def test_warming_up_runs_the_copy_as_drafts_do(hurried: bool) -> None:
    """Both of its plans, one row of each request, and a search; the search and the first passes are never left out."""
    model = load(torch.bfloat16, draft_bits="4", max_num_seqs=4, max_model_len=64)
    passes: Counter[tuple[str, int]] = Counter()
    searched: set[int] = set()

    class Watched(Delegate):
        def step(self, tokens: Sequence[int], batch: Any, plans: Sequence[Variants], draws: Draws) -> Step:
            passes["".join(map(str, plans[0])), len(tokens)] += 1
            assert bool(draws.least) == (LOW_BIT in plans[0]), "a draft's pass may stop"
            return self.inner.step(tokens, batch, plans, draws)  # type: ignore[no-any-return]

        def sublayer(self, index: int, x: torch.Tensor, batch: Any, variant: int) -> torch.Tensor:
            searched.add(variant)
            return self.inner.sublayer(index, x, batch, variant)  # type: ignore[no-any-return]

    decoder: Any = Watched(model.decoder)
    clock = TickingClock(30.0 if hurried else 0.0)
    warm_up(decoder, model.attention, model.size, model.length, clock, shapes=True)
    assert searched == {TARGET, LOW_BIT}
    whole = len(model.spec.whole)
    for plan in ("2" * whole, "32" * model.spec.layers + "2"):
        ran = {rows: times for (variants, rows), times in passes.items() if variants == plan}
        assert ran == ({} if hurried else {1: 3, 2: 3, 4: 3})
    assert passes["1" * whole, 1] == 3


@pytest.mark.parametrize("changes", [{}, {"sliding_window": 12}], ids=["whole", "window"])
@torch.inference_mode()
def test_prompts_by_flash_attention_equal_those_by_masks(
    changes: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of two requests after cached tokens, on pages in order and out of order, beside one that decodes."""
    calls: list[int] = []

    def varlen_attn(
        q: Tensor, k: Tensor, v: Tensor, rows: Tensor, keys: Tensor, most: int, longest: int, **options: Any
    ) -> Tensor:
        """What torch documents, by its scaled dot products: the last row of a sequence sees its last key."""
        calls.append(len(rows) - 1)
        assert options["enable_gqa"]
        assert (rows.diff().max(), keys.diff().max()) == (most, longest)
        (left, right), out = options["window_size"], []
        for i in range(len(rows) - 1):
            own, seen = slice(rows[i], rows[i + 1]), slice(keys[i], keys[i + 1])
            key = torch.arange(keys[i + 1] - keys[i])
            at = torch.arange(rows[i + 1] - rows[i])[:, None] + len(key) - int(rows[i + 1] - rows[i])
            mask = (key <= at + right) & ((left < 0) | (key >= at - left))
            heads = (x.transpose(0, 1) for x in (q[own], k[seen], v[seen]))
            out.append(F.scaled_dot_product_attention(*heads, attn_mask=mask, enable_gqa=True).transpose(0, 1))
        return torch.cat(out)

    monkeypatch.setattr("engine.backends.cuda.attention.varlen_attn", varlen_attn)
    tiny_model(tmp_path, MistralConfig, **changes)
    tokens = torch.randint(0, 300, (120,), generator=torch.Generator().manual_seed(0)).tolist()

    def logits(flash: bool) -> Tensor:
        def attention(spec: ModelSpec, size: CacheSize) -> PagedAttention:
            cache = PagedCache(spec, size, torch.float64, CPU)
            return PagedAttention(spec, cache, TorchKernels(), flash=flash)

        model = load(torch.float64, model=tmp_path, backend=replace(PAGES, attention=attention), max_num_seqs=3)
        places = (Placement(slab, 0, tuple(range(start, start + 16))) for slab, start in ((0, 1), (2, 40)))
        model.attention.cache.place((*places, Placement(1, 0, (33, 18, 26, 22, 21, 20))))
        first = logits_of(model, [Segment(0, 0, 20), Segment(1, 0, 30)], tokens[:50])
        second = logits_of(model, [Segment(0, 20, 40), Segment(1, 30, 25)], tokens[50:115])
        third = logits_of(model, [Segment(0, 60, 3), Segment(1, 55, 17), Segment(2, 0, 1)], tokens[:21])
        return torch.cat([first, second, third, logits_of(model, [Segment(1, 72, 1)], tokens[:1])])

    torch.testing.assert_close(logits(flash=True), logits(flash=False), atol=1e-9, rtol=0)
    assert calls == [2] * 8 + [1] * 4
