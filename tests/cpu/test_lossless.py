"""Text depends on prompt, parameters and seed alone: any policy equals plain decoding, alone or in a batch.

It is exact in float64, and in bf16 with the native kernels. In float32, and in bf16 through torch, passes of different
width round differently. A divergence is then legitimate only at a near-tie: the two candidates' scores differ by less
than twice the measured width noise (docs/method.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.config.engine import EngineConfig
from engine.config.policies import KnapSpecConfig
from engine.core import policies
from engine.kernels.library import kernel_library
from engine.model.attention import Segment
from engine.runtime.build import LoadedModel
from engine.sampling.sample import gumbel
from engine.types import SamplingParams
from papers.settings import ASDConfig
from tests.support import PREPARED
from tests.support.cores import GREEDY, SAMPLED, Learning, answer, chat_ids, load, with_layer_sets

POLICIES = ("none", *sorted({*policies.policy_kinds()} - {"none"}))
CONFIG = EngineConfig(
    knapspec=KnapSpecConfig(interval=12, budget=0.5),  # many searches
    policies=(ASDConfig(similarity=0.5, interval=12),),
)
WIDE_OPEN = SamplingParams(max_tokens=48, temperature=0.7)
MANY = pytest.param(True, marks=[pytest.mark.nightly, pytest.mark.timeout(1800)])  # minutes in float64


@pytest.fixture(scope="module", params=["tiny", pytest.param("prepared", marks=pytest.mark.nightly)])
def checkpoint(request: pytest.FixtureRequest, tiny: Path) -> Path:
    """The checkpoint for torch's arithmetic, which takes ten times as long as the native kernels."""
    return tiny if request.param == "tiny" else PREPARED


@pytest.fixture(scope="module")
def double(checkpoint: Path) -> LoadedModel:
    return load(torch.float64, model=checkpoint)


@pytest.fixture(scope="module")
def native() -> LoadedModel:
    if kernel_library() is None:
        pytest.skip("needs a C++ compiler")
    return load(torch.bfloat16, kernels="native")


def some(prompts: Sequence[str], many: bool) -> Sequence[str]:
    """Three prompts of different domains; with `many` every third prompt."""
    return prompts[::3] if many else prompts[::40]


def prompt_ids(model: LoadedModel, texts: Sequence[str]) -> list[tuple[int, ...]]:
    core = model.core(CONFIG)
    return [chat_ids(core, text) for text in texts]


@pytest.mark.parametrize("many", [False, MANY], ids=["three", "many"])
@pytest.mark.parametrize(
    "sampling", [GREEDY, pytest.param(SAMPLED, marks=pytest.mark.nightly)], ids=["greedy", "sampled"]
)
def test_every_policy_equals_plain_decoding_in_float64(
    double: LoadedModel, prompts: Sequence[str], sampling: SamplingParams, many: bool, tmp_path: Path
) -> None:
    config = with_layer_sets(double, CONFIG, tmp_path)
    ids = prompt_ids(double, some(prompts, many))
    plain = answer(double.core(config), ids, sampling, ["none"])
    assert len(set(plain)) >= 0.9 * len(plain), "the prompts have different answers"
    drafted = {}
    for policy in POLICIES[1:]:
        watched = Learning(policy)
        core = watched.core(double.core, config)
        assert answer(core, ids, sampling, [policy]) == plain, policy
        drafted[policy] = any(output.drafted for out in watched.ran for output in out.outputs)
    drafted.pop("knapspec")  # which declines where drafting does not pay, as on random weights
    assert all(drafted.values()), f"drafting must have happened: {drafted}"
    mixed = double.core(config)
    assert answer(mixed, ids, sampling, POLICIES, concurrency=8) == plain


@pytest.mark.nightly  # `make test` has tests/cpu/test_native.py instead, with fewer prompts
@pytest.mark.parametrize("many", [False, MANY], ids=["three", "many"])
@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_every_policy_equals_plain_decoding_with_our_own_kernels(
    native: LoadedModel, prompts: Sequence[str], sampling: SamplingParams, many: bool, tmp_path: Path
) -> None:
    """Passes of any width round alike, so bf16 is exact too."""
    config = with_layer_sets(native, CONFIG, tmp_path)
    ids = prompt_ids(native, some(prompts, many))
    plain = answer(native.core(config), ids, sampling, ["none"])
    for policy in POLICIES[1:]:
        assert answer(native.core(config), ids, sampling, [policy]) == plain, policy
    assert answer(native.core(config), ids, sampling, POLICIES, concurrency=8) == plain
    assert max(width_noise(native, p + a) for p, a in list(zip(ids, plain, strict=True))[: 5 if many else 2]) == 0


@pytest.mark.nightly
@pytest.mark.parametrize("many", [False, MANY], ids=["three", "many"])
@pytest.mark.parametrize(
    "sampling", [GREEDY, pytest.param(WIDE_OPEN, marks=pytest.mark.nightly)], ids=["greedy", "sampled"]
)
@pytest.mark.parametrize(
    "precision", [torch.float32, pytest.param(torch.bfloat16, marks=pytest.mark.nightly)], ids=["single", "half"]
)
def test_drafted_texts_diverge_only_at_near_ties(
    checkpoint: Path,
    prompts: Sequence[str],
    precision: torch.dtype,
    sampling: SamplingParams,
    many: bool,
    tmp_path: Path,
    record_property: pytest.RecordProperty,
) -> None:
    model = load(precision, model=checkpoint, kernels="torch")
    config = with_layer_sets(model, CONFIG, tmp_path)
    ids = prompt_ids(model, some(prompts, many))
    if not many:
        sampling = replace(sampling, max_tokens=24)
    plain = answer(model.core(config), ids, sampling, ["none"])
    runs = [answer(model.core(config), ids, sampling, [policy]) for policy in POLICIES[1:]]
    runs.append(answer(model.core(config), ids, sampling, POLICIES, concurrency=8))
    noise = max(width_noise(model, p + a) for p, a in list(zip(ids, plain, strict=True))[:10])
    diverging = 0
    for run in runs:
        for index, (want, got) in enumerate(zip(plain, run, strict=True)):
            if want == got:
                continue
            diverging += 1
            at = next(i for i, (a, b) in enumerate(zip(want, got, strict=False)) if a != b)
            gap = score_gap(model, ids[index] + want[:at], want[at], got[at], replace(sampling, seed=index))
            assert gap < 2 * noise / (sampling.temperature or 1.0), f"prompt {index}, token {at}: not a near-tie"
    rate = diverging / (len(runs) * len(ids))
    record_property("diverging", rate)
    print(f"\n{precision} {'greedy' if sampling.greedy else 'sampled'}: {diverging} of {len(runs) * len(ids)} answers "
          f"diverge ({rate:.1%}), all at near-ties; width noise {noise:.2g}")  # fmt: skip
    assert rate < 0.25


@torch.inference_mode()
def forced_logits(model: LoadedModel, tokens: Sequence[int], width: int, requests: int = 1) -> torch.Tensor:
    """Logits at every position, read `width` rows at a time beside requests with the same prompt."""
    out = []
    for start in range(0, len(tokens), width):
        rows = tokens[start : start + width]
        batch = model.attention.prepare([Segment(slab, start, len(rows)) for slab in range(requests)])
        logits = model.decoder.head(model.decoder.run(model.decoder.embed([*rows] * requests), batch))
        out.append(logits[: len(rows)].double())
    return torch.cat(out)


def width_noise(model: LoadedModel, tokens: Sequence[int]) -> float:
    """Largest difference of a logit between passes of one row and wider ones, alone and in a batch."""
    narrow = forced_logits(model, tokens, 1)
    passes = ((2, 1), (4, 1), (8, 1), (33, 1), (1, 8), (5, 3))
    return max(float((forced_logits(model, tokens, *rows) - narrow).abs().max()) for rows in passes)


def score_gap(model: LoadedModel, context: Sequence[int], a: int, b: int, sampling: SamplingParams) -> float:
    """Difference of the target's scores of two tokens after `context`."""
    scores = forced_logits(model, context, 1)[-1]
    if not sampling.greedy:
        noise = gumbel([sampling.seed], [len(context)], torch.arange(scores.shape[0]))[0]
        scores = scores / sampling.temperature + noise
    return abs(float(scores[a] - scores[b]))
