"""The copy of a model's weights in fewer bits: its codes, its menu, and drafts that change no text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.backends.native.linear import NativeLinear, NativeLinears
from engine.config.engine import EngineConfig
from engine.config.policies import FixedConfig, KnapSpecConfig
from engine.draft.estimator import PlanCounts
from engine.draft.knapspec import KnapSpec
from engine.draft.tpt import count
from engine.errors import ConfigError, TunedFileError
from engine.kernels.library import kernel_library
from engine.model import low_bit
from engine.plans import LOW_BIT, SKIP, TARGET
from engine.quantised.packed import dequantise, pack_codes
from engine.runtime.prior import Prior
from engine.types import RequestRound, SamplingParams
from profiles.store import write_atomically
from tests.support.cores import answer, chat_ids, load, made_up_profile

pytestmark = pytest.mark.skipif(kernel_library() is None, reason="needs the native kernels")
BITS = (4, 5, 6, 8)


def weights(out: int, inputs: int, seed: int = 0) -> torch.Tensor:
    """bf16 [out, inputs], with a row and a group of zeros."""
    made = torch.randn(out, inputs, generator=torch.Generator().manual_seed(seed)).mul_(0.05)
    made[1] = 0.0
    made[2, 32:64] = 0.0
    return made.bfloat16()


def products_of(linear: NativeLinear, inputs: int) -> torch.Tensor:
    """The layer's weights [out, inputs], by its products with the identity."""
    return linear(torch.eye(inputs)).t()


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("inputs", [64, 288])
def test_codes_have_nearly_the_least_squared_error_of_all_candidates(bits: int, inputs: int) -> None:
    """Candidates are those of docs/method.md. Native code and torch agree."""
    weight, half = weights(70, inputs), 1 << (bits - 1)
    groups = weight.float().view(70, -1, 32)
    extreme = groups.gather(2, groups.abs().argmax(2, keepdim=True))
    least = groups.square().sum(2)
    for beyond in low_bit.BEYOND:
        q = (groups / torch.where(extreme == 0, 1.0, -extreme / (half + beyond))).round().clamp(-half, half - 1)
        scale = (groups * q).sum(2) / q.square().sum(2).clamp(min=1e-9)
        least = torch.minimum(least, (groups - scale[..., None] * q).square().sum(2))
    linears = NativeLinears(kernel_library(), 2)  # type: ignore[arg-type]
    native = linears.lower(linears(weight, None), bits)
    for copy in (dequantise(low_bit.lowered(weight, bits)), products_of(native, inputs)):
        error = (copy.view_as(groups) - groups).square().sum(2)
        assert error.sum() <= 1.01 * least.sum()
        assert bool((error <= 1.5 * least + 1e-7).all()), "a tie in a group may round either way, and change its scale"
        assert not copy[1].any()
        assert not copy[2, 32:64].any()


@pytest.mark.parametrize("order", [None, "turned"])
def test_the_copy_of_packed_weights_has_nearly_the_least_squared_error(order: str | None) -> None:
    """Scales, offsets and the order of inputs vary."""
    generator = torch.Generator().manual_seed(1)
    codes = torch.randint(0, 256, (64, 320), generator=generator, dtype=torch.uint8)
    scale, minimum = torch.rand(64, 5, generator=generator) * 0.01, torch.randn(64, 5, generator=generator) * 0.1
    packed = pack_codes(codes, scale, minimum, bits=8, offset=128)
    if order:
        packed = replace(packed, order=torch.randperm(320, generator=generator))
    linears = NativeLinears(kernel_library(), 2, precise=True)  # type: ignore[arg-type]
    copy = linears.lower(linears.from_packed([packed], None), 4)
    columns = dequantise(packed)
    if packed.order is not None:  # groups are those of the codes' order
        columns = columns.index_select(1, packed.order)
    found = products_of(copy, 320)
    if packed.order is not None:
        found = found.index_select(1, packed.order)
    least = (dequantise(low_bit.lowered(columns, 4)) - columns).square().sum()
    assert (found - columns).square().sum() <= 1.01 * least


def test_weights_of_few_bits_have_no_copy() -> None:
    linears = NativeLinears(kernel_library(), 1)  # type: ignore[arg-type]
    layer = linears.lower(linears(weights(64, 64), None), 4)
    assert not linears.lowers(layer)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"draft_bits": "4", "draft_memory": 1000}, "--draft-memory"),
        ({"draft_bits": "4", "kernels": "torch"}, "few bits already"),
    ],
)
def test_a_copy_that_cannot_be_made_is_refused_by_setting(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(**settings)


def test_a_model_too_large_for_the_draft_memory_gets_no_copy() -> None:
    model = load(torch.bfloat16, draft_memory=1000)
    assert model.draft_bits == 0
    assert [*model.decoder.weights.heads] == [TARGET]
    assert model.key.draft_bits == 0


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("policy", ["fixed", "knapspec"])
def test_drafts_of_the_copy_change_no_text(policy: str, temperature: float, prompts: Sequence[str]) -> None:
    """Three requests in a batch; the copy drafts every token."""
    model = load(torch.bfloat16, profile=made_up_profile(low_bit=0.3), draft_bits="4")
    config = EngineConfig(fixed=FixedConfig(plan="2"), draft_confidence=0.0, prior="none")
    sampling = SamplingParams(max_tokens=40, temperature=temperature, seed=3, ignore_eos=True)
    core = model.core(config)
    texts = [chat_ids(core, prompt) for prompt in prompts[:3]]
    rounds: list[RequestRound] = []
    drafted = answer(core, texts, sampling, [policy], concurrency=3, rounds=rounds)
    assert drafted == answer(core, texts, sampling, ["none"])
    assert (LOW_BIT,) * len(model.spec.whole) in {round.plan for round in rounds if round.drafted}


def test_the_menu_decides_which_plans_may_draft() -> None:
    with_copy = load(torch.bfloat16, profile=made_up_profile(low_bit=0.3), draft_bits="4")
    without = load(torch.bfloat16, draft_bits="none")
    for model, menu, plans in (
        (with_copy, "auto", 2),
        (with_copy, "skip", 0),
        (with_copy, "low-bit", 2),
        (without, "auto", 0),
    ):
        policy = model.core(EngineConfig(knapspec=KnapSpecConfig(menu=menu), prior="none")).policy("knapspec")
        assert isinstance(policy, KnapSpec)
        assert len(policy.estimator.counts) == plans
    with pytest.raises(ConfigError, match="low-bit"):
        without.core(EngineConfig(knapspec=KnapSpecConfig(menu="low-bit")))


def test_prior_plans_outside_the_menu_are_refused_by_file(tmp_path: Path) -> None:
    model = load(torch.bfloat16, profile=made_up_profile(low_bit=0.3), draft_bits="4")
    copy = (LOW_BIT,) * len(model.spec.whole)
    file = tmp_path / "plans.json"
    write_atomically(Prior(model.source.fingerprint, {copy: count((), ()) + 1.0}).to_json(), file)
    policy = model.core(EngineConfig(prior=str(file))).policy("knapspec")
    assert isinstance(policy, KnapSpec)
    assert next(iter(policy.estimator.counts)) == copy
    with pytest.raises(TunedFileError, match=r"plans\.json.*knapspec-menu"):
        model.core(EngineConfig(prior=str(file), knapspec=KnapSpecConfig(menu="skip")))
    with pytest.raises(TunedFileError, match=r"plans\.json.*draft-bits"):
        load(torch.bfloat16, draft_bits="none").core(EngineConfig(prior=str(file)))


@pytest.mark.slow
@pytest.mark.parametrize("menu", ["auto", "low-bit"])
def test_a_search_uses_every_variant_of_the_menu(
    menu: str, prompts: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan runs each sublayer, runs its copy, or skips it if the menu has that; texts stay the same."""
    model = load(torch.bfloat16, profile=made_up_profile(low_bit=0.3), draft_bits="4")
    often: dict[str, Any] = {"budget": 1.0, "interval": 8, "beam": 32}
    core = model.core(EngineConfig(knapspec=KnapSpecConfig(menu=menu, **often), prior="none"))
    policy = core.policy("knapspec")
    assert isinstance(policy, KnapSpec)
    replayed: list[tuple[int, ...]] = []
    search = policy.searcher.search

    def watched(*args: Any, **named: Any) -> PlanCounts | None:
        counts = search(*args, **named)
        replayed.extend(counts or ())
        return counts

    monkeypatch.setattr(policy.searcher, "search", watched)
    sampling = SamplingParams(max_tokens=250, temperature=0.0, ignore_eos=True)
    texts = [chat_ids(core, prompt) for prompt in prompts[:2]]
    plain = answer(core, texts, sampling, ["none"])
    for _ in range(5):  # on a busy machine the first searches look dear
        assert answer(core, texts, sampling, ["knapspec"]) == plain
        if policy.searcher.searches:
            break
    assert policy.searcher.searches > 0
    assert {v[-1] for v in replayed} == {LOW_BIT}, "drafts use the copy of the head"
    found = {variant for variants in replayed for variant in variants[:-1]}
    assert found == {TARGET, LOW_BIT} | ({SKIP} if menu == "auto" else set())
