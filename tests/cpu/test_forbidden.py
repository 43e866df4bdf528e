"""Allowed tokens and bad words, drafted or not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.config.engine import EngineConfig
from engine.core.engine import EngineCore
from engine.errors import RequestError
from engine.runtime.build import LoadedModel
from engine.sampling.logits import LogitsProcessor
from engine.types import GenerateRequest, RequestFailure, SamplingParams, ThoughtLimit, TokenEvent
from tests.support.cores import GREEDY, answer, chat_ids, exact

QUESTION = "Tell me a story about a kind dog and a market."


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return exact()


@pytest.fixture(scope="module")
def core(model: LoadedModel) -> EngineCore:
    return model.core(EngineConfig(max_num_seqs=3))


def same_under_all_policies(core: EngineCore, sampling: SamplingParams) -> tuple[int, ...]:
    prompts = [chat_ids(core, QUESTION)] * 3
    plain = answer(core, prompts, sampling, ["none"])
    assert answer(core, prompts, sampling, ["layerskip"]) == plain
    assert answer(core, prompts, sampling, ["knapspec", "fixed", "lookup"], concurrency=3) == plain
    return plain[0]


@pytest.mark.parametrize("temperature", [pytest.param(0.0, marks=pytest.mark.nightly), 1.0])
def test_only_allowed_tokens_are_drawn(core: EngineCore, temperature: float) -> None:
    free = SamplingParams(40, temperature, ignore_eos=True)
    allowed = tuple(sorted(set(same_under_all_policies(core, free))))[::2]
    said = same_under_all_policies(core, replace(free, allowed_token_ids=allowed))
    assert set(said) <= set(allowed)
    assert len(said) == 40


@pytest.mark.parametrize("policy", ["none", "layerskip"])
def test_allowed_tokens_that_a_grammar_excludes_are_the_requests_error(core: EngineCore, policy: str) -> None:
    """Nobody else's cached prefixes are lost, as they are after a failure of the model."""
    prompt = chat_ids(core, QUESTION * 3)
    answer(core, [prompt], replace(GREEDY, max_tokens=2), ["none"])
    letter = core.tokenizer.encode("a", add_special_tokens=False)
    sampling = replace(GREEDY, max_tokens=40, allowed_token_ids=tuple(letter), grammar="start: answer\nanswer: /a{3}b/")
    core.add(GenerateRequest("a", prompt, sampling, policy))
    events = []
    while not core.scheduler.idle:
        events += core.step().events
    assert isinstance(events[-1], RequestFailure)
    assert isinstance(events[-1].error, RequestError)
    assert events[-1].error.param == "allowed_token_ids"
    core.add(GenerateRequest("b", prompt, replace(GREEDY, max_tokens=2), policy))
    while not core.scheduler.idle:
        events += core.step().events
    assert isinstance(events[-1], TokenEvent)
    assert events[-1].cached_tokens > 0


def test_bad_words_do_not_occur(core: EngineCore) -> None:
    sampling = replace(GREEDY, max_tokens=40, ignore_eos=True)
    free = same_under_all_policies(core, sampling)
    one, two = free[3:4], free[6:9]
    said = same_under_all_policies(core, replace(sampling, bad_words=(one, two)))
    assert one[0] not in said
    assert two not in {said[i : i + 3] for i in range(len(said))}
    assert said[:3] == free[:3]


def test_a_bad_word_may_end_within_a_draft() -> None:
    processor = LogitsProcessor(SamplingParams(bad_words=((1, 2, 3), (2,), (7, 4))), (), (), None)
    processor.advance((7, 1))

    def forbidden(drafted: list[int]) -> list[int]:
        scores = torch.zeros(9)
        processor.edit(scores, drafted)
        return [token for token in range(9) if scores[token] == float("-inf")]

    assert forbidden([]) == [2]
    assert forbidden([2]) == [2, 3]
    assert forbidden([7]) == [2, 4]
    processor.advance((2,))
    assert forbidden([]) == [2, 3]


def test_bad_words_that_leave_nothing_are_not_enforced() -> None:
    processor = LogitsProcessor(SamplingParams(allowed_token_ids=(5,), bad_words=((5,),)), (), (), None)
    scores = torch.zeros(9)
    processor.edit(scores, [])
    assert scores.isfinite().tolist() == [token == 5 for token in range(9)]


OPEN, CLOSE = 7, 8


@pytest.mark.parametrize(
    ("begun", "emitted", "drafted", "forced"),
    [
        (True, [], [], False),
        (True, [1, 2], [], False),
        (True, [1, 2, 3], [], True),
        (True, [1], [2, 3], True),
        (True, [1], [2, 3, 4], True),
        (True, [1, CLOSE], [1, 2, 3], False),
        (True, [1, 2], [CLOSE, 3, 4, 5], False),
        (False, [1, 2, 3, 4], [5], False),
        (False, [OPEN], [1, 2, 3], True),
        (False, [1], [OPEN, 1, 2], False),
        (False, [OPEN, CLOSE, OPEN, 1, 2, 3], [], False),
    ],
)
def test_reasoning_ends_at_its_limit(begun: bool, emitted: list[int], drafted: list[int], forced: bool) -> None:
    sampling = SamplingParams(thought_limit=ThoughtLimit(3, OPEN, CLOSE, begun))
    processor = LogitsProcessor(sampling, (), (), None)
    for token in emitted:
        processor.advance([token])
    scores = torch.zeros(9)
    processor.edit(scores, drafted)
    assert scores.isfinite().tolist() == [token == CLOSE or not forced for token in range(9)]


def test_a_limit_of_the_reasoning_changes_no_text_under_drafting(core: EngineCore) -> None:
    sampling = replace(GREEDY, max_tokens=40, ignore_eos=True)
    free = same_under_all_policies(core, sampling)
    close = free[20]
    said = same_under_all_policies(core, replace(sampling, thought_limit=ThoughtLimit(6, None, close, begun=True)))
    assert close in said[:7]
    assert said[:6] == free[:6]
