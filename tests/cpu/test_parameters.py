"""Penalties, bias, min_tokens, stop tokens and log-probabilities follow their definitions, drafted or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.config.engine import EngineConfig
from engine.core.engine import EngineCore
from engine.kv.pages import PageManager
from engine.model.attention import Segment
from engine.runtime.build import LoadedModel
from engine.sampling.logits import LogitsProcessor
from engine.sampling.sample import Sampler
from engine.types import GenerateRequest, SamplingParams, TokenEvent
from papers.settings import LayerSkipConfig
from tests.support.cores import GREEDY, answer, chat_ids, exact

WARM = replace(GREEDY, max_tokens=48, temperature=0.9, ignore_eos=True)
CHANGES: dict[str, dict[str, Any]] = {
    "min_p": {"min_p": 0.2, "temperature": 2.0},
    "top_k": {"top_k": 5, "temperature": 2.0},
    "presence": {"presence_penalty": 1.5},
    "frequency": {"frequency_penalty": 1.0},
    "negative": {"presence_penalty": -1.0, "frequency_penalty": -0.5},
    "repetition": {"repetition_penalty": 1.4},
    "bias": {"logit_bias": ((20, 8.0), (300, -100.0), (301, 5.0))},
    "all": {"presence_penalty": 0.5, "frequency_penalty": 0.3, "repetition_penalty": 1.2, "logit_bias": ((30, 4.0),)},
}


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return exact()


@pytest.fixture(scope="module")
def core(model: LoadedModel) -> EngineCore:
    config = EngineConfig(policies=(LayerSkipConfig(exit=model.spec.layers - 2),), draft_confidence=0.0)
    return model.core(config, own_cache=True)


@pytest.fixture(scope="module")
def ids(core: EngineCore, prompts: Sequence[str]) -> list[tuple[int, ...]]:
    return [chat_ids(core, text) for text in prompts[::25]]


def run(core: EngineCore, prompt: tuple[int, ...], sampling: SamplingParams, policy: str) -> list[TokenEvent]:
    core.add(GenerateRequest("a", prompt, sampling, policy))
    events: list[TokenEvent] = []
    while not core.scheduler.idle:
        events += [event for event in core.step().events if isinstance(event, TokenEvent)]
    return events


def tokens(events: Sequence[TokenEvent]) -> list[int]:
    return [token for event in events for token in event.token_ids]


def text(events: Sequence[TokenEvent]) -> str:
    return "".join(event.text for event in events)


def accepted(events: Sequence[TokenEvent]) -> int:
    assert events[-1].speculation is not None
    return events[-1].speculation.num_accepted_draft_tokens


# -- the definition ----------------------------------------------------------------------------------------------------


def naive(logits: Tensor, sampling: SamplingParams, prompt: Sequence[int], said: Sequence[int]) -> list[float]:
    """One row edited token by token, as OpenAI (penalties, bias) and CTRL (repetition) define it."""
    scores = logits.tolist()
    counts, seen, bias = Counter(said), {*prompt, *said}, dict(sampling.logit_bias)
    for token, score in enumerate(scores):
        if sampling.repetition_penalty != 1.0 and token in seen:
            scores[token] = score / sampling.repetition_penalty if score > 0 else score * sampling.repetition_penalty
        scores[token] -= counts[token] * sampling.frequency_penalty
        scores[token] -= (counts[token] > 0) * sampling.presence_penalty
        scores[token] += bias.get(token, 0.0)
        if len(said) < sampling.min_tokens and token in (0, *sampling.stop_token_ids):
            scores[token] = float("-inf")
    return scores


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_row_is_edited_by_the_definition(seed: int) -> None:
    """Whatever was generated, and whatever was drafted and rejected meanwhile; in inference mode, as rounds are.

    Every other seed goes through hundreds of different tokens, so that the processor has to make room.
    """
    random = Random(seed)
    vocab, longest, most = (2000, 200, 150) if seed % 2 else (40, 5, 3)
    sampling = SamplingParams(
        presence_penalty=random.choice([0.0, 0.7, -2.0]),
        frequency_penalty=random.choice([0.0, 0.4, -0.3]),
        repetition_penalty=random.choice([1.0, 1.3, 0.8]),
        logit_bias=((3, 2.0), (5, -100.0)) if random.random() < 0.5 else (),
        min_tokens=random.choice([0, 4]),
        stop_token_ids=(7,),
    )
    prompt = [random.randrange(vocab) for _ in range(random.choice([1, 10, 600]))]
    processor = LogitsProcessor(sampling, prompt, (0,), None)
    said: list[int] = []
    for _ in range(8):
        for length in (0, 1, longest):
            drafted = [random.randrange(vocab) for _ in range(length)]
            logits = torch.randn(vocab, generator=torch.Generator().manual_seed(random.randrange(10**6))).double()
            edited = logits.clone()
            with torch.inference_mode():
                processor.edit(edited, drafted)
            expected = naive(logits, sampling, prompt, [*said, *drafted])
            assert edited.tolist() == pytest.approx(expected, abs=1e-7)  # penalties are float32
        new = [random.randrange(vocab) for _ in range(random.randint(0, most))]
        processor.advance(new)
        said += new


def test_truncation_stops_and_log_probabilities_edit_no_logits() -> None:
    assert not SamplingParams(top_k=3, min_p=0.1, stop=("x",), logprobs=2).edits_logits


def test_editing_a_row_leaves_the_other_rows_unchanged() -> None:
    logits = torch.randn(3, 9)
    before = logits.clone()
    pending = Sampler(None).sample(
        logits, [GREEDY] * 3, range(3), edits=[None, lambda row: row.index_fill_(0, torch.arange(8), -9e9), None]
    )
    drawn = pending.wait()
    assert drawn.tokens == [int(before[0].argmax()), 8, int(before[2].argmax())]
    assert torch.equal(logits, before), "later log-probabilities are compared with these"


# -- under drafting ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "all" else pytest.mark.nightly) for name in CHANGES]
)
def test_drafting_changes_no_token(core: EngineCore, ids: list[tuple[int, ...]], name: str, temperature: float) -> None:
    sampling = replace(WARM, **({"temperature": temperature} | CHANGES[name]))
    ids = ids[:2]
    plain = answer(core, ids, sampling, ["none"])
    assert answer(core, ids, sampling, ["layerskip"]) == plain
    assert answer(core, ids, sampling, ["knapspec", "fixed"], concurrency=3) == plain
    assert accepted(run(core, ids[0], sampling, "layerskip")) > 0
    neutral = replace(WARM, temperature=sampling.temperature)
    assert answer(core, ids, neutral, ["none"]) != plain, "the parameter changes the tokens"


@pytest.mark.slow
def test_penalties_survive_a_preemption(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    sampling = replace(WARM, **CHANGES["all"])
    roomy = model.core(EngineConfig())
    plain = answer(roomy, ids, sampling, ["none"])
    sizes = [-(-(len(i) + 48) // 16) for i in ids]
    tight = model.core(EngineConfig())
    tight.scheduler.blocks = PageManager(4, max(sizes) + 3, 16, max(sizes) + 3)
    assert answer(tight, ids, sampling, ["layerskip"], concurrency=4) == plain
    assert tight.scheduler.preemptions > 0


# -- when an answer ends -----------------------------------------------------------------------------------------------


POLICIES = pytest.mark.parametrize("policy", ["none", "layerskip"])


@POLICIES
def test_an_answer_has_at_least_min_tokens(core: EngineCore, ids: list[tuple[int, ...]], policy: str) -> None:
    short = run(core, ids[0], replace(GREEDY, max_tokens=100), policy)
    assert short[-1].finish_reason == "stop"
    count = len(tokens(short))
    longer = tokens(run(core, ids[0], replace(GREEDY, max_tokens=100, min_tokens=count + 5), policy))
    assert len(longer) >= count + 5
    assert longer[: count - 1] == tokens(short)[:-1]
    assert longer[count - 1] not in core.info.eos_token_ids


@POLICIES
def test_stop_strings_count_only_after_min_tokens(core: EngineCore, ids: list[tuple[int, ...]], policy: str) -> None:
    sampling = replace(GREEDY, max_tokens=40, ignore_eos=True)
    whole = text(run(core, ids[0], sampling, policy))
    stopping = replace(sampling, stop=(whole[2:5],))
    before = whole[: whole.index(whole[2:5])]
    assert text(run(core, ids[0], stopping, policy)) == before
    assert text(run(core, ids[0], replace(stopping, include_stop=True), policy)) == before + whole[2:5]
    assert text(run(core, ids[0], replace(stopping, min_tokens=20), policy)).startswith(before + whole[2:5])


@POLICIES
def test_stop_tokens_end_an_answer_and_are_left_out(core: EngineCore, ids: list[tuple[int, ...]], policy: str) -> None:
    sampling = replace(GREEDY, max_tokens=40, ignore_eos=True)
    whole = tokens(run(core, ids[0], sampling, policy))
    stopping = replace(sampling, stop_token_ids=(whole[6],))
    before = whole[: whole.index(whole[6])]
    events = run(core, ids[0], stopping, policy)
    assert tokens(events) == [*before, whole[6]]
    assert events[-1].finish_reason == "stop"
    decode = core.tokenizer.backend.decode
    assert text(events) == decode(before)
    assert text(run(core, ids[0], replace(stopping, include_stop=True), policy)) == decode([*before, whole[6]])


@POLICIES
@pytest.mark.parametrize("skip", [True, False])
def test_a_special_token_may_be_part_of_a_stop_string(
    core: EngineCore, ids: list[tuple[int, ...]], policy: str, skip: bool
) -> None:
    """The model says the end token, which is ignored, again and again."""
    end = core.info.eos_token_ids[0]
    name = core.tokenizer.backend.id_to_token(end)
    sampling = replace(GREEDY, max_tokens=8, ignore_eos=True, logit_bias=((end, 100.0),), skip_special_tokens=skip)
    for stop, count in ((name, 1), (2 * name, 2), (name + "x", 8)):
        for include in (False, True):
            events = run(core, ids[0], replace(sampling, stop=("?", stop), include_stop=include), policy)
            assert events[-1].completion_tokens == count
            assert events[-1].stop_string == (stop if count < 8 else None)
            unended = "" if skip else 8 * name
            assert text(events) == (stop * include if count < 8 else unended)


# -- log-probabilities -------------------------------------------------------------------------------------------------


@torch.inference_mode()
def log_probabilities(core: EngineCore, prompt: Sequence[int]) -> Tensor:
    """[rows, vocabulary], by one pass."""
    decoder, batch = core.runner.decoder, core.runner.attention.prepare([Segment(15, 0, len(prompt))])
    return torch.log_softmax(decoder.head(decoder.run(decoder.embed(prompt), batch)).float(), -1)


@POLICIES
def test_logprobs_are_the_models_own_before_any_processing(
    core: EngineCore, ids: list[tuple[int, ...]], policy: str
) -> None:
    sampling = replace(WARM, logprobs=3, presence_penalty=1.0, top_k=2)
    events = run(core, ids[0], sampling, policy)
    said = tokens(events)
    reported = [logprobs for event in events for logprobs in event.logprobs]
    assert [r.token_id for r in reported] == said
    shares = log_probabilities(core, [*ids[0], *said[:-1]])[len(ids[0]) - 1 :]
    for row, found in zip(shares, reported, strict=True):
        assert found.logprob == pytest.approx(float(row[found.token_id]), abs=1e-4)
        best = row.topk(3)
        assert [token for token, _ in found.top] == best.indices.tolist()
        assert [value for _, value in found.top] == pytest.approx(best.values.tolist(), abs=1e-4)
    if policy == "layerskip":
        assert accepted(events) > 0


def test_logprobs_are_reported_only_on_request(core: EngineCore, ids: list[tuple[int, ...]]) -> None:
    assert all(event.logprobs == () for event in run(core, ids[0], WARM, "layerskip"))
    bare = run(core, ids[0], replace(WARM, logprobs=0), "none")
    assert all(logprobs.top == () for event in bare for logprobs in event.logprobs)


def scores(core: EngineCore, prompt: tuple[int, ...], policy: str) -> tuple[tuple[float, ...], list[int]]:
    """Log-probabilities of a prompt's tokens after the first, and the answer; checks the other fields."""
    events = run(core, prompt, replace(GREEDY, max_tokens=4, logprobs=2, prompt_logprobs=True), policy)
    found, *rest = (event.prompt_logprobs for event in events)
    assert not any(rest), "prompt log-probabilities come with the first event"
    assert [one.token_id for one in found] == list(prompt[1:])
    assert all(one.logprob <= one.top[0][1] and len(one.top) == 2 for one in found)
    assert events[-1].cached_tokens == 0
    return tuple(one.logprob for one in found), tokens(events)


def test_logprobs_of_a_prompt_equal_those_of_one_pass(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    """Every position is scored, cached or not, in chunks of any size; the answer does not change."""
    core = model.core(EngineConfig())
    chunked = model.core(EngineConfig(max_num_batched_tokens=16, max_num_seqs=2))
    prompt = tuple(token for part in ids for token in part)[:150]
    plain = tokens(run(core, prompt, replace(GREEDY, max_tokens=4), "none"))
    expected = [float(row[token]) for row, token in zip(log_probabilities(core, prompt), prompt[1:], strict=False)]
    for one, policy in ((core, "none"), (core, "knapspec"), (chunked, "none")):
        found, said = scores(one, prompt, policy)
        assert found == pytest.approx(expected, abs=1e-4)
        assert said == plain
    assert scores(core, prompt[:1], "none")[0] == ()
    core.scheduler.blocks.check_integrity()  # type: ignore[attr-defined]
    assert core.scheduler.blocks.usage == 0


# -- predicted outputs -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["none", "layerskip", "knapspec"])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_predictions_change_no_token_and_save_rounds(
    core: EngineCore, ids: list[tuple[int, ...]], temperature: float, policy: str
) -> None:
    sampling = replace(WARM, temperature=temperature)
    plain = run(core, ids[1], sampling, "none")
    said = tuple(tokens(plain))
    wrong = tuple((token + 1) % core.info.vocab_size for token in said)
    gap = said[:10] + wrong[10:14] + said[14:]
    counts = {}
    for name, predicted in {"right": said, "gap": gap, "wrong": wrong, "short": said[:20], "late": said[15:]}.items():
        events = run(core, ids[1], replace(sampling, predicted=predicted), policy)
        assert tokens(events) == list(said)
        last = events[-1]
        assert last.speculation is not None
        counts[name] = last.accepted_predictions, last.rejected_predictions
        assert last.accepted_predictions <= last.speculation.num_accepted_draft_tokens
        if name == "right":
            assert last.speculation.num_rounds <= len(said) / 7 + 1
    assert counts["right"][1] == 0
    assert counts["right"][0] > 0.8 * len(said)
    assert counts["gap"][0] > 0.5 * len(said)
    assert counts["gap"][1] > 0
    assert counts["late"][0] > 0
