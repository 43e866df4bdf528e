"""The native kernels are exact, and a row is bit-identical in any pass."""

from __future__ import annotations

import platform
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import LlamaConfig, MistralConfig, PreTrainedConfig, Qwen2Config, Qwen3Config

from engine.architecture.spec import load_spec
from engine.backends.native.backend import native_backend
from engine.config.engine import EngineConfig
from engine.config.policies import draft_policies
from engine.errors import ConfigError
from engine.kernels.library import KernelLibrary, compile_library, compiler, kernel_library, load_from_memory
from engine.kv.pages import Placement
from engine.model.attention import Segment
from engine.model.decoder import VerifyPass
from engine.model.passes import draft, verify
from engine.plans import LOW_BIT
from engine.runtime.build import LoadedModel
from engine.sampling.sample import PendingSample, Sampler
from engine.step import Plan, Work
from engine.types import SamplingParams
from papers.settings import ASDConfig, LookaheadConfig
from tests.support import PREPARED
from tests.support.cores import (
    GREEDY,
    SAMPLED,
    answer,
    chat_ids,
    copy_context,
    load,
    made_up_profile,
    tiny_model,
    with_layer_sets,
)

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C++ compiler")

WIDE = {"head_dim": 32, "hidden_size": 96, "intermediate_size": 160, "max_position_embeddings": 2560}
SHAPES: dict[str, tuple[type[PreTrainedConfig], dict[str, Any]]] = {
    "llama": (LlamaConfig, {}),
    "llama tied": (LlamaConfig, {"tie_word_embeddings": True, "head_dim": 64}),
    "llama one kv head": (LlamaConfig, {"num_attention_heads": 7, "num_key_value_heads": 1, "hidden_size": 224}),
    "llama biases": (LlamaConfig, {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 4}),
    "mistral window": (MistralConfig, {"sliding_window": 100}),
    "mistral blind": (MistralConfig, {"sliding_window": 1, "vocab_size": 1101}),
    "qwen2": (Qwen2Config, {"num_attention_heads": 6}),
    "qwen3": (Qwen3Config, {"head_dim": 128, "num_attention_heads": 10}),
    "llama wide heads": (LlamaConfig, {"head_dim": 96, "num_attention_heads": 6, "num_key_value_heads": 2}),
    "qwen3 windows": (
        Qwen3Config,
        {
            "use_sliding_window": True,
            "sliding_window": 1100,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
        },
    ),
}
LENGTH = 2300  # three parts of the context, the last one short
TOKENS = torch.randint(0, 1024, (LENGTH,), generator=torch.Generator().manual_seed(1)).tolist()


@pytest.fixture(scope="module", autouse=True)
def kernels() -> KernelLibrary:
    found = kernel_library()
    assert found is not None, "there is a compiler, but the kernels do not compile"
    return found


@pytest.fixture(scope="module", params=["-mno-amx-bf16", "-mno-avx512bf16", "-mno-avx512f", "-mno-avx2"])
def portable(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    """The kernels for CPUs without tiles, without bf16 instructions, without AVX-512, without AVX2."""
    options = [request.param] if platform.machine() == "x86_64" else []
    return load_from_memory(compile_library(compiler() or [], options), "kernels.so")


CHECKED = ("llama one kv head", "qwen3 windows")
OFTEN = [pytest.param(name, marks=[] if name in CHECKED else pytest.mark.nightly) for name in SHAPES]


@pytest.fixture(scope="module", params=OFTEN)
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("model")
    family, changes = SHAPES[request.param]
    tiny_model(found, family, seed=len(request.param), **(WIDE | changes))
    return found


def run(model: LoadedModel, segments: list[Segment], record: list[Tensor] | None = None) -> Tensor:
    """Logits of all rows."""
    tokens = [t for s in segments for t in TOKENS[s.start : s.start + s.rows]]
    x = model.decoder.run(model.decoder.embed(tokens), model.attention.prepare(segments), record)
    return model.decoder.head(x)


def chunks(slab: int, *sizes: int) -> list[Segment]:
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [Segment(slab, start, rows) for start, rows in zip(starts, sizes, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "directory",
    [pytest.param(name, marks=[] if name == "qwen3 windows" else pytest.mark.nightly) for name in SHAPES],
    indirect=True,
)
@torch.inference_mode()
def test_the_kernels_are_as_exact_as_torchs_own_bf16(directory: Path, tmp_path: Path) -> None:
    """Logits and every residual stream, against the same bf16 weights in float32."""
    shutil.copytree(directory, tmp_path, dirs_exist_ok=True)
    weights = {name: tensor.bfloat16().float() for name, tensor in load_file(directory / "model.safetensors").items()}
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    models = [load(torch.float32, model=tmp_path)]
    models += [load(torch.bfloat16, model=tmp_path, kernels=kernels) for kernels in ("native", "torch")]

    def error(got: Tensor, want: Tensor) -> float:
        return float((got - want).pow(2).mean().sqrt() / want.std())

    for segment in chunks(0, 500, 1500, 1, 3, LENGTH - 2004):
        states: list[list[Tensor]] = [[], [], []]
        want, native, torchs = (run(m, [segment], s) for m, s in zip(models, states, strict=True))
        assert error(native, want) < 0.1
        if segment.rows > 100:
            assert error(native, want) < 1.3 * error(torchs, want)
        for got, stream in zip(states[1], states[0], strict=True):
            assert error(got, stream) < 0.1


def with_kernels(directory: Path, threads: int, kernels: KernelLibrary) -> LoadedModel:
    """A model over these kernels."""
    backend = native_backend(load_spec(directory), threads, kernels)
    return load(torch.bfloat16, model=directory, kernels="native", threads=threads, backend=backend)


def check_that_rows_are_bit_identical(directory: Path, kernels: KernelLibrary) -> None:
    """Check that 40 rows are bit-identical alone, in chunks, beside others, and by one, two or five threads."""
    models = [with_kernels(directory, threads, kernels) for threads in (1, 2, 5)]
    first = LENGTH - 40
    seen = []
    for model in models:
        for segment in chunks(0, 1000, first - 1000):
            run(model, [segment])
        for slab in (1, 3):
            copy_context(model.attention.cache, 0, slab, first)
        alone = torch.cat([run(model, [Segment(0, first + i, 1)]) for i in range(40)])
        assert torch.equal(run(model, [Segment(1, first, 40)]), alone)
        for rows in (2, 3):
            assert torch.equal(run(model, [Segment(1, first, rows)]), alone[:rows])
        run(model, [Segment(2, 0, 9)])
        mixed = [run(model, [Segment(2, 9 + i, 5), Segment(3, first + i, 8)])[5:] for i in range(0, 40, 8)]
        assert torch.equal(torch.cat(mixed), alone)
        seen.append(alone)
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[0], seen[2])


@pytest.mark.slow
@torch.inference_mode()
def test_a_row_is_bit_identical_in_any_pass(directory: Path, kernels: KernelLibrary) -> None:
    check_that_rows_are_bit_identical(directory, kernels)


@pytest.mark.slow
@torch.inference_mode()
def test_two_threads_compute_the_same_rows_as_one(directory: Path) -> None:
    one, two = (load(torch.bfloat16, model=directory, kernels="native", threads=threads) for threads in (1, 2))
    plans = [kinds * one.spec.layers + (1,) for kinds in ((1, 1), (0, 1), (1, 0))]
    for model in (one, two):
        for slab in (0, 1):
            run(model, [Segment(slab, 0, 70)])
    for segments in ([Segment(0, 30, 3)], [Segment(0, 30, 6), Segment(1, 40, 5)], [Segment(2, 0, 40)]):
        rows = sum(s.rows for s in segments)
        mixed = [plans[i % 3] for i in range(rows)]
        for turn in range(3):
            x = torch.randn(rows, one.spec.hidden, generator=torch.Generator().manual_seed(turn))
            alone, shared = ((m.decoder, m.attention.prepare(segments)) for m in (one, two))
            assert torch.equal(shared[0].run(x, shared[1]), alone[0].run(x, alone[1]))
            if turn % 2:
                assert torch.equal(shared[0].run_plans(x, shared[1], mixed), alone[0].run_plans(x, alone[1], mixed))
                low = (LOW_BIT,) * len(one.spec.whole)
                assert torch.equal(shared[0].run(x, shared[1], variants=low), alone[0].run(x, alone[1], variants=low))


@pytest.mark.nightly
@pytest.mark.parametrize("shape", ["qwen3 windows", "llama one kv head", "llama wide heads"])
@torch.inference_mode()
def test_a_row_is_bit_identical_in_any_pass_on_older_instruction_sets(
    shape: str, tmp_path: Path, portable: KernelLibrary
) -> None:
    family, changes = SHAPES[shape]
    tiny_model(tmp_path, family, seed=3, **(WIDE | changes))
    usual = run(load(torch.bfloat16, model=tmp_path, kernels="native"), [Segment(0, 0, 100)])
    check_that_rows_are_bit_identical(tmp_path, portable)
    again = run(with_kernels(tmp_path, 1, portable), [Segment(0, 0, 100)])
    assert (again - usual).pow(2).mean().sqrt() < 0.02 * usual.std()


def test_bfloat16_is_chosen_on_a_cpu_without_it_where_the_kernels_can_widen_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    family, changes = SHAPES["llama"]
    tiny_model(tmp_path / "suits", family, **(WIDE | changes))
    tiny_model(tmp_path / "does not", family, **(WIDE | changes | {"intermediate_size": 168}))
    monkeypatch.setattr("engine.runtime.loading.choices.native_bf16", lambda: False)

    def chosen(name: str, **settings: Any) -> tuple[str, str]:
        config = EngineConfig(model=str(tmp_path / name), **settings, draft_bits="none")
        key = LoadedModel(config, profile=made_up_profile()).key
        return key.dtype, key.backend

    for avx2, dtype in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr("torch.cpu._is_avx2_supported", lambda avx2=avx2: avx2)
        assert chosen("suits")[0] == dtype
        assert chosen("suits", dtype="bfloat16") == ("bfloat16", "native")
        assert chosen("suits", kernels="torch")[0] == "float32"
        assert chosen("does not")[0] == "float32"


@torch.inference_mode()
def test_rows_with_different_plans_equal_each_row_alone(directory: Path) -> None:
    model = load(torch.bfloat16, model=directory, kernels="native")
    generator = torch.Generator().manual_seed(2)
    sublayers = model.spec.sublayers
    plans = [(*torch.randint(0, 3, (sublayers,), generator=generator).tolist(), 1) for _ in range(4)]
    plans[2] = (*(0,) * sublayers, 1)
    for slab in range(4):
        run(model, [Segment(slab, 0, 30)])
    x = model.decoder.embed(TOKENS[30:34])
    segments = [Segment(slab, 30, 1) for slab in range(4)]
    together = model.decoder.run_plans(x, model.attention.prepare(segments), plans)
    for i, plan in enumerate(plans):
        alone = model.decoder.run(x[i : i + 1], model.attention.prepare(segments[i : i + 1]), variants=plan)
        assert torch.equal(together[i : i + 1], alone)
        by_hand, batch = x[i : i + 1], model.attention.prepare(segments[i : i + 1])
        for index, variant in enumerate(plan[:-1]):
            by_hand = model.decoder.sublayer(index, by_hand, batch, variant) if variant else by_hand
        assert torch.equal(by_hand, alone)
    assert torch.equal(together[2], x[2])


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 0.9])
@torch.inference_mode()
def test_drafts_in_one_call_equal_single_passes(
    directory: Path, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request has its own plan, length and stop rule."""
    model = load(torch.bfloat16, model=directory, kernels="native")
    generator = torch.Generator().manual_seed(3)
    sublayers = model.spec.sublayers
    plans = [(*torch.randint(0, 3, (sublayers,), generator=generator).tolist(), 1 + i % 2) for i in range(4)]
    rules = [(6, 0.0), (3, 0.0), (6, 0.05), (1, 0.0)]
    for slab in range(4):
        run(model, [Segment(slab, 0, 1300)])

    asked = []
    for slab, (plan, (gamma, least)) in enumerate(zip(plans, rules, strict=True)):
        sampling = SamplingParams(temperature=temperature, seed=slab)
        asked.append(Work(str(slab), slab, 1300, (TOKENS[1300 + slab],), True, sampling, Plan(plan, gamma, least)))

    together = draft(model.decoder, model.attention, asked)
    monkeypatch.setattr("engine.model.passes.OneCallDecoder", ())
    one_by_one = draft(model.decoder, model.attention, asked)
    assert max(len(each.tokens) for each in together) == 6
    for found, wanted in zip(together, one_by_one, strict=True):
        assert found.tokens == wanted.tokens
        assert found.confidences == pytest.approx(wanted.confidences, rel=1e-4)
    assert len({tuple(each.tokens) for each in together}) > 1


@torch.inference_mode()
def test_more_threads_than_cores_give_the_same_logits(tmp_path: Path) -> None:
    """Several teams run at once, and none of them hangs."""
    tiny_model(tmp_path, LlamaConfig, **WIDE)
    wanted = run(load(torch.bfloat16, model=tmp_path, kernels="native", threads=1), chunks(0, 700))
    models = [load(torch.bfloat16, model=tmp_path, kernels="native", threads=n) for n in (3, 8, 17)]

    def logits(model: LoadedModel) -> list[Tensor]:
        with torch.inference_mode():
            return [run(model, chunks(0, 700)) for _ in range(3)]

    with ThreadPoolExecutor() as pool:
        for found in pool.map(logits, models):
            assert all(torch.equal(each, wanted) for each in found)


@torch.inference_mode()
def test_a_candidate_attends_to_the_cache_before_it_and_to_itself(directory: Path) -> None:
    """A candidate that equals the row's own input gives the row's output; the cache is not written."""
    model = load(torch.bfloat16, model=directory, kernels="native")
    for segment in chunks(0, 1500, 600):
        states: list[Tensor] = []
        run(model, [segment], states)
    positions = (1500, 1777, 2099)
    rows = torch.tensor([p - 1500 for p in positions])
    batch = model.attention.candidates(0, positions, 2)
    for index in range(model.spec.sublayers):
        want = states[index + 1][rows]
        got = model.decoder.sublayer(index, states[index][rows].repeat(2, 1), batch)
        assert torch.allclose(got[:3], want, atol=0.02 * float(want.std()), rtol=0.01)
        assert torch.equal(got[:3], got[3:])
    assert torch.equal(run(model, [Segment(0, 2099, 1)]), model.decoder.head(states[-1][599:]))


@pytest.mark.slow
def test_every_policy_gives_the_tokens_of_plain_decoding(tmp_path: Path) -> None:
    """Greedy and sampled, in a batch, each policy by itself and all together, in bf16."""
    tiny_model(tmp_path, LlamaConfig, **(WIDE | {"max_position_embeddings": 256}))
    model = load(torch.bfloat16, model=tmp_path, kernels="native")
    policies = ASDConfig(similarity=0.5, interval=12), LookaheadConfig(window=11, ngram=3)
    config = EngineConfig(max_num_batched_tokens=24, policies=policies)
    core = model.core(with_layer_sets(model, config, tmp_path))
    prompts = [chat_ids(core, f"prompt number {i} of several") for i in range(3)]
    for sampling in (GREEDY, SAMPLED):
        plain = answer(core, prompts, sampling, ["none"])
        assert len(set(plain)) > 1
        for names in (*([name] for name in draft_policies() if name != "none"), draft_policies()):
            assert answer(core, prompts, sampling, names, concurrency=3) == plain


@pytest.mark.parametrize("size", [16, 48])
def test_pages_of_any_order_and_size_give_the_same_bits(directory: Path, size: int) -> None:
    with torch.inference_mode():
        model = load(torch.bfloat16, model=directory, kernels="native", max_num_seqs=3)
        run(model, [Segment(0, 0, 200)])
        want = run(model, [Segment(0, 200, 3)])
        other = load(torch.bfloat16, model=directory, kernels="native", max_num_seqs=3, block_size=size)
        pages = -(-250 // size)
        order = random.Random(size).sample(range(1, 3 * pages), pages)
        other.attention.cache.place([Placement(0, 0, tuple(range(1, pages + 1))), Placement(2, 0, tuple(order))])
        run(other, [Segment(2, 0, 150)])
        run(other, [Segment(2, 150, 50)])
        assert torch.equal(run(other, [Segment(2, 200, 3)]), want)
        other.attention.cache.place([Placement(1, 0, tuple(order))])
        assert torch.equal(run(other, [Segment(1, 200, 3)]), want), "two requests may share pages"
        other.attention.cache.fill(2, 64)
        assert torch.isfinite(run(other, [Segment(2, 64, 1)])).all()


def test_pages_that_the_kernels_cannot_read_are_refused(directory: Path) -> None:
    with pytest.raises(ConfigError, match="--block-size 24: the kernels need a multiple of 16"):
        load(torch.bfloat16, model=directory, kernels="native", block_size=24)


@pytest.mark.parametrize(
    ("dtype", "head", "needed"), [(torch.float32, 64, "bfloat16"), (torch.bfloat16, 16, "multiples of 32")]
)
def test_a_model_that_the_kernels_cannot_run_is_refused_or_runs_without_them_and_says_so(
    dtype: torch.dtype, head: int, needed: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tiny_model(tmp_path, LlamaConfig, head_dim=head)
    with pytest.raises(ConfigError, match=needed):
        load(dtype, model=tmp_path, kernels="native")
    caplog.clear()
    assert load(dtype, model=tmp_path).key.backend != "native"
    (line,) = [message for message in caplog.messages if "native kernels need" in message]
    assert str(dtype) in line
    assert ("multiples of 32" in line) == (head == 16)
    assert load(torch.bfloat16, model=tmp_path, kernels="torch").key.backend != "native"


def test_kernels_torch_runs_nothing_of_the_native_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("the native library is loaded")

    monkeypatch.setattr("engine.runtime.loading.choices.kernel_library", refuse)
    model = load(kernels="torch", draft_bits="none")
    assert model.backend.kernels is None
    drawn = model.decoder.sampler.sample(torch.randn(2, 9), [GREEDY] * 2, range(2))
    assert isinstance(drawn, PendingSample), "torch draws"


@pytest.mark.parametrize("vocabulary", [1, 15, 1000, 1024 * 37 + 5])
def test_a_greedy_draw_takes_the_first_largest_logit_and_its_probability(
    vocabulary: int, kernels: KernelLibrary
) -> None:
    generator = torch.Generator().manual_seed(vocabulary)
    logits = 4 * torch.randn(5, vocabulary, generator=generator)
    logits[1] = 3.0  # all equal: the first
    logits[2, vocabulary // 2] = logits[2, -1] = logits[2].max() + 1
    logits[3] = float("-inf")
    logits[3, vocabulary // 3] = -1000.0
    sample = Sampler(kernels).sample
    tokens, shares = sample(logits, [GREEDY] * 5, range(5), confidence=True).wait()
    assert tokens == logits.argmax(-1).tolist()
    assert tokens[1] == 0
    assert tokens[2] == vocabulary // 2
    assert shares == pytest.approx(logits.softmax(-1).amax(-1).tolist(), rel=1e-5)
    assert sample(logits, [GREEDY] * 5, range(5)).wait() == (tokens, [])


RULES = [
    {},
    {"temperature": 0.6},
    {"temperature": 2.0, "top_k": 3},
    {"top_p": 0.5},
    {"top_p": 0.95, "top_k": 40},
    {"min_p": 0.05},
    {"temperature": 1.4, "top_p": 0.999, "min_p": 1e-5},
    {"top_k": 10_000, "top_p": 0.9},
    {"temperature": 0.0},
]


@pytest.mark.parametrize("spread", [0.0, 0.5, 4.0, 40.0])
@pytest.mark.parametrize("vocabulary", [7, 1001])
def test_native_draws_equal_torchs(vocabulary: int, spread: float, kernels: KernelLibrary) -> None:
    """Seeds, positions, truncation, masks and probabilities agree; a row's draw does not depend on others."""
    generator = torch.Generator().manual_seed(vocabulary)
    rows = 20 * len(RULES)
    logits = spread * torch.randn(rows, vocabulary, generator=generator)
    logits[::3, vocabulary // 2 :] = float("-inf")
    params = [SamplingParams(**({"temperature": 1.0} | RULES[i % len(RULES)]), seed=i * 2**58 + i) for i in range(rows)]
    positions = [i % 7 for i in range(rows)]
    noise = [(1.0, 0.5, 0.0)[i // len(RULES) % 3] for i in range(rows)]
    sample = Sampler(kernels).sample
    tokens, shares = sample(logits, params, positions, confidence=True, noise=noise).wait()
    for i in range(0, rows, 17):
        alone = slice(i, i + 1)
        assert sample(logits[alone], params[alone], positions[alone], noise=noise[alone]).wait().tokens == tokens[alone]
    want = Sampler(None).sample(logits, params, positions, confidence=True, noise=noise).wait()
    assert tokens == want.tokens
    assert shares == pytest.approx(want.confidence, rel=1e-4)
    if vocabulary > 7:
        assert len(set(tokens)) > rows // 4 * (spread < 4)


def test_a_tied_embedding_in_float16_is_read_by_the_kernels(tmp_path: Path) -> None:
    """Without it every pass of a float16 checkpoint would be many calls."""
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((PREPARED / name).read_bytes())
    halves = {name: tensor.half() for name, tensor in load_file(PREPARED / "model.safetensors").items()}
    save_file(halves, tmp_path / "model.safetensors")
    model = load(model=tmp_path, kernels="native", dtype=torch.bfloat16)
    assert (
        verify(
            model.decoder, model.attention, VerifyPass([Segment(0, 0, 1)], [5], [0], [SamplingParams(temperature=0.0)])
        )
        is not None
    )
