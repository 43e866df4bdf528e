"""Rounds of the whole engine in float64: prefixes, preemption and chunks change no token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.config.engine import EngineConfig
from engine.config.policies import FixedConfig
from engine.core.engine import EngineCore
from engine.errors import ConfigError
from engine.kernels.library import kernel_library
from engine.kv.cache import bytes_per_token
from engine.runtime.build import LoadedModel
from engine.types import FinishReason, GenerateRequest, RequestFailure, SamplingParams, TokenEvent
from papers.settings import LayerSkipConfig
from tests.support.cores import GREEDY, SAMPLED, Learning, answer, chat_ids, exact, load

LONG = replace(SAMPLED, max_tokens=90, ignore_eos=True)


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return exact(max_model_len=256)


@pytest.fixture(scope="module")
def ids(model: LoadedModel, prompts: Sequence[str]) -> list[tuple[int, ...]]:
    core = model.core(EngineConfig())
    return [chat_ids(core, text) for text in prompts[::16]]


@pytest.fixture(scope="module")
def plain(model: LoadedModel, ids: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return answer(model.core(EngineConfig()), ids, LONG, ["none"])


def run(core: EngineCore, message: GenerateRequest) -> list[TokenEvent]:
    core.add(message)
    events: list[TokenEvent] = []
    while not core.scheduler.idle:
        events += [e for e in core.step().events if isinstance(e, TokenEvent)]
    return events


@pytest.mark.parametrize("sampling", [replace(GREEDY, ignore_eos=True), LONG], ids=["greedy", "sampled"])
def test_a_model_drafting_with_itself_accepts_everything(
    model: LoadedModel, ids: list[tuple[int, ...]], sampling: SamplingParams
) -> None:
    core = model.core(EngineConfig(fixed=FixedConfig(skip_ratio=0.0, gamma=5), draft_confidence=0.0))
    for index, prompt in enumerate(ids[:4]):
        last = run(core, GenerateRequest(str(index), prompt, replace(sampling, seed=index), "fixed"))[-1]
        assert last.speculation is not None
        assert last.speculation.num_draft_tokens > 40
        assert last.speculation.num_accepted_draft_tokens == last.speculation.num_draft_tokens


@pytest.mark.parametrize("policy", ["none", "knapspec"])
def test_policies_learn_from_every_round_before_they_decide(
    model: LoadedModel, ids: list[tuple[int, ...]], policy: str
) -> None:
    learning = Learning(policy)
    core = learning.core(model.core, EngineConfig())
    for index, prompt in enumerate(ids[:3]):
        run(core, GenerateRequest(str(index), prompt, replace(GREEDY, ignore_eos=True), policy))
        assert learning.done, "a finished answer leaves nothing to learn"
    assert max(late for _, late in learning.unobserved) == 0


@pytest.fixture
def cramped(model: LoadedModel) -> LoadedModel:
    """The model with memory for fewer than two full contexts."""
    return exact(max_model_len=256, kv_cache_memory=320 * bytes_per_token(model.spec, model.backend.cache_dtype))


def test_a_preempted_request_gives_the_same_tokens(
    cramped: LoadedModel, ids: list[tuple[int, ...]], plain: list[tuple[int, ...]]
) -> None:
    core = cramped.core(EngineConfig())
    assert answer(core, ids, LONG, ["none", "layerskip", "knapspec"], concurrency=8) == plain
    assert core.scheduler.preemptions > 0


@pytest.mark.slow
def test_a_prefix_hit_gives_the_tokens_of_a_miss(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    """Each turn of a chat continues the one before; its cached tokens are those of full blocks."""
    core = model.core(EngineConfig())
    prompt = ids[5]
    for turn in range(3):
        cold = model.core(EngineConfig())
        miss = run(cold, GenerateRequest("cold", prompt, LONG, "none"))
        hit = run(core, GenerateRequest(f"turn {turn}", prompt, LONG, "layerskip"))
        assert [t for e in hit for t in e.token_ids] == [t for e in miss for t in e.token_ids]
        assert miss[0].cached_tokens == 0
        assert (hit[0].cached_tokens > 0) == (turn > 0)
        prompt = (*prompt, *(t for e in hit for t in e.token_ids))[: 100 + 30 * turn]
    assert core.scheduler.prefix_hits > 0


@pytest.mark.parametrize("rows", [17, pytest.param(40, marks=pytest.mark.nightly)])
def test_prompts_read_in_small_chunks_change_no_token(
    model: LoadedModel, ids: list[tuple[int, ...]], plain: list[tuple[int, ...]], rows: int
) -> None:
    core = model.core(EngineConfig(max_num_batched_tokens=rows, max_num_seqs=8))
    assert answer(core, ids, LONG, ["layerskip", "none"], concurrency=8) == plain


@pytest.mark.slow
def test_an_answer_ends_at_its_length_or_at_the_end_token(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    core = model.core(EngineConfig())
    for policy in ("none", "layerskip", "knapspec"):
        for limit in (1, 2, 7):
            last = run(core, GenerateRequest("a", ids[0], replace(GREEDY, max_tokens=limit), policy))[-1]
            assert (last.finish_reason, last.completion_tokens) == (FinishReason.LENGTH, limit)
        full = run(core, GenerateRequest("b", ids[0], replace(LONG, max_tokens=None), policy))[-1]
        assert full.prompt_tokens + full.completion_tokens == core.info.max_model_len
        ended = run(core, GenerateRequest("c", ids[0], replace(GREEDY, max_tokens=200), policy))[-1]
        assert ended.finish_reason is FinishReason.STOP
        assert "<|end|>" not in ended.text


def test_settings_of_every_policy_are_checked_at_start(model: LoadedModel) -> None:
    with pytest.raises(ConfigError, match="--layerskip-exit is 99"):
        model.core(EngineConfig(policies=(LayerSkipConfig(exit=99),)))


@pytest.mark.parametrize("kind", ["float64", "native", "logprobs", "sampled", "grammar"])
@pytest.mark.parametrize("policy", ["none", "layerskip"])
def test_logits_that_are_no_numbers_fail_their_requests(
    model: LoadedModel, ids: list[tuple[int, ...]], kind: str, policy: str
) -> None:
    """Afterwards the same prompts get their answers: no cached prefix keeps the values."""
    if kind != "float64":
        if kernel_library() is None:
            pytest.skip("needs a C++ compiler")
        model = load(torch.bfloat16, kernels="native")
    sampling = replace(GREEDY, max_tokens=20, ignore_eos=True)
    if kind == "logprobs":
        sampling = replace(sampling, logprobs=2)
    if kind == "sampled":
        sampling = replace(sampling, temperature=1.0, top_p=0.9)
    if kind == "grammar":
        sampling = replace(sampling, grammar="start: /[a-z ]{50}/")
    core = model.core(EngineConfig())
    plain = answer(core, ids[:2], sampling, ["none"])
    norm: Tensor = vars(model.decoder)["_norm"]
    kept = norm.clone()
    for i in range(2):
        core.add(GenerateRequest(str(i), ids[i], sampling, policy))
    for _ in range(4):
        core.step()
    norm.fill_(float("nan"))
    events = core.step().events
    norm.copy_(kept)
    assert [type(event) for event in events] == [RequestFailure] * 2
    assert core.scheduler.idle
    core.scheduler.blocks.check_integrity()
    assert answer(core, ids[:2], sampling, [policy]) == plain
