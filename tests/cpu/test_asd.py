"""ASD: attention is skipped where the context's states show that it changes little, and looked at again in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from engine.config.engine import EngineConfig
from engine.draft.base import Outcome, RequestView
from engine.model.attention import Segment
from engine.plans import SKIP, TARGET
from engine.runtime.build import LoadedModel
from engine.types import GenerateRequest
from papers.asd import AdaptiveDrop, DropState, drop_attention
from papers.layerskip import DraftLength, steer_threshold
from papers.settings import ASDConfig
from tests.support.cores import GREEDY, SAMPLED, answer, load, tiny_model

PROMPT = tuple(range(5, 45))
KINDS = {
    "greedy": GREEDY,
    "sampled": SAMPLED,
    "grammar": replace(GREEDY, grammar="%llguidance {}\nstart: /[a-z]{3,9}( [a-z]{2,9}){9}/"),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    directory = tmp_path_factory.mktemp("model")
    tiny_model(directory, scale=0.6, drafts=True)
    return load(torch.float64, model=directory)


def naive(states: Sequence[Tensor], similarity: float) -> tuple[int, ...]:
    """Decide on each attention by the cosines of its rows, one by one; `states`: 2L+1 of [rows, hidden]."""
    plan = []
    for before, after in zip(states[:-1:2], states[1::2], strict=True):
        cosines = [float(x @ y) / math.sqrt(float(x @ x) * float(y @ y)) for x, y in zip(before, after, strict=True)]
        plan += [SKIP if sum(cosines) / len(cosines) > similarity else TARGET, TARGET]
    return (*plan, TARGET)


@torch.inference_mode()
def states_at(model: LoadedModel, tokens: Sequence[int], rows: int) -> list[Tensor]:
    """The residual streams of the last rows of a text, from a pass in a slab of its own."""
    record: list[Tensor] = []
    batch = model.attention.prepare([Segment(9, 0, len(tokens))])
    model.decoder.run(model.decoder.embed(tokens), batch, record)
    return [state[-rows:] for state in record]


@pytest.mark.parametrize("rows", [1, 8, 99])
def test_the_plan_equals_the_naive_reading_at_the_prompt_and_later(model: LoadedModel, rows: int) -> None:
    similarity = sum(sorted(cosines(model, rows))[1:3]) / 2
    config = EngineConfig(policies=(ASDConfig(similarity=similarity, rows=rows, interval=10),))
    core = model.core(config)
    core.add(GenerateRequest("a", PROMPT, replace(GREEDY, ignore_eos=True), "asd"))
    core.step()
    request = core.scheduler.running[0]
    view: RequestView[DropState] = request.view
    assert view.state.variants == naive(states_at(model, PROMPT, rows), similarity)
    assert (view.state.variants or ()).count(SKIP) == 2
    chosen = 1
    while not core.scheduler.idle:
        due, before = view.state.left <= 0, view.tokens[:-1]
        core.step()
        new = len(view.tokens) - 1 - len(before)
        if due and not core.scheduler.idle:
            text = view.tokens[:-1]
            want = naive(states_at(model, text, min(rows, new)), similarity)
            assert (view.state.variants or model.spec.whole) == want
            chosen += 1
    assert chosen >= 4


def cosines(model: LoadedModel, rows: int) -> list[float]:
    """The mean cosine of each attention at the last tokens of the prompt."""
    states = states_at(model, PROMPT, rows)
    pairs = zip(states[:-1:2], states[1::2], strict=True)
    return [float(torch.cosine_similarity(x, y, dim=-1).mean()) for x, y in pairs]


def test_attention_is_chosen_after_the_prompt_and_then_once_an_interval(model: LoadedModel) -> None:
    core = model.core(EngineConfig(policies=(ASDConfig(similarity=0.0, interval=15),)))
    core.add(GenerateRequest("a", PROMPT, replace(GREEDY, ignore_eos=True), "asd"))
    core.step()
    view: RequestView[DropState] = core.scheduler.running[0].view
    at = [1]
    while not core.scheduler.idle:
        due = view.state.left <= 0
        core.step()
        if due:
            at.append(len(view.tokens) - view.prompt_tokens)
    assert len(at) >= 3
    assert all(15 < after - before <= 15 + 2 * 13 for before, after in pairwise(at))


def test_a_model_whose_attention_matters_is_decoded_plainly(model: LoadedModel) -> None:
    assert drop_attention(torch.stack(states_at(model, PROMPT, 8)), 1.0) is None
    core = model.core(EngineConfig(policies=(ASDConfig(similarity=1.0),)))
    core.add(GenerateRequest("a", PROMPT, GREEDY, "asd"))
    drafted = [part.drafted for _ in range(9) for part in core.step().rounds]
    assert not any(drafted)


def test_drafts_end_by_the_rule_of_draft_and_verify(model: LoadedModel) -> None:
    core = model.core(EngineConfig(policies=(ASDConfig(similarity=0.0),)))
    policy = core.policy("asd")
    assert isinstance(policy, AdaptiveDrop)
    core.add(GenerateRequest("a", PROMPT, replace(GREEDY, ignore_eos=True), "asd"))
    core.step()
    view, want = core.scheduler.running[0].view, DraftLength(12, 0.6)
    for _ in range(8):
        parts = core.step().rounds
        steer_threshold(want, Outcome(None, parts[0].drafted, parts[0].accepted, (), 0), 0.9)
        assert view.state.length == want


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_that_of_plain_decoding(model: LoadedModel, kind: str) -> None:
    core = model.core(EngineConfig(policies=(ASDConfig(similarity=0.5, interval=9),)))
    prompts = [PROMPT, PROMPT[::-1]]
    sampling = replace(KINDS[kind], max_tokens=40)
    plain = answer(core, prompts, sampling, ["none"])
    assert answer(core, prompts, sampling, ["asd"], concurrency=2) == plain
