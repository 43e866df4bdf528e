"""Lookahead decoding: n-grams and guesses of each round are those that the model's draws make, written as lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from random import Random

import pytest
import torch

from engine.backends.cuda.backend import cuda_backend
from engine.config.engine import EngineConfig
from engine.model.attention import Segment
from engine.runtime.build import LoadedModel
from engine.sampling.sample import gumbel
from engine.types import GenerateRequest, RequestRound, SamplingParams, TokenEvent
from papers.settings import LookaheadConfig
from tests.support.cores import GREEDY, SAMPLED, answer, load, tiny_model

PROMPT = (5, 6, 7, 8) * 5
PROMPTS = [PROMPT, tuple(range(5, 30)), tuple(range(40, 5, -2))]
SMALL = LookaheadConfig(window=6, ngram=3, guesses=2)
KINDS = {
    "greedy": GREEDY,
    "sampled": SAMPLED,
    "grammar": replace(GREEDY, grammar="%llguidance {}\nstart: /[a-z]{3,9}( [a-z]{2,9}){9}/"),
    "bias": replace(SAMPLED, frequency_penalty=0.5, allowed_token_ids=tuple(range(10, 60))),
}


@pytest.fixture(scope="module", params=["slabs", pytest.param("pages", marks=pytest.mark.nightly)])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    directory = tmp_path_factory.mktemp("model")
    tiny_model(directory, scale=0.35, drafts=True, num_hidden_layers=2)
    pages = cuda_backend(torch.device("cpu"), torch.float64) if request.param == "pages" else None
    return load(torch.float64, model=directory, backend=pages)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("greedy", (6, 3, 2)), ("sampled", (9, 4, 9)), pytest.param("greedy", (15, 5, 15), marks=pytest.mark.nightly)],
)
def test_every_round_verifies_the_newest_n_grams_and_then_guesses(
    model: LoadedModel, kind: str, shape: tuple[int, int, int]
) -> None:
    """Read from the text: every token of a round is drawn by a pass over all tokens before it."""
    sampling = SamplingParams(max_tokens=150, temperature=0.0 if kind == "greedy" else 0.3, seed=3, ignore_eos=True)
    (width, size, most), config = shape, LookaheadConfig(*shape)
    core = model.core(EngineConfig(policies=(config,)))
    core.add(GenerateRequest("a", PROMPT, sampling, "lookahead"))
    core.step()
    request = core.scheduler.running[0]
    newest: dict[int, tuple[int, ...]] = {}
    guesses: list[int] = []
    begun = 0
    for _ in range(16):
        text = list(request.tokens)
        chain: list[int] = []
        for _ in range(most):
            chain += newest.get([text[-1], *chain][-1], ())
        begun += bool(chain)
        guesses += Random(len(text)).choices(text, k=width - len(guesses))
        wanted = [*chain, *guesses[len(chain) :]][:width]
        part = core.step().rounds[0]
        assert request.plan is not None
        assert [*request.plan.tokens] == wanted
        drawn = [draw(model, [*text, *wanted[:n]], sampling) for n in range(width + 1)]
        for n in range(width + 3 - size):
            newest[[text[-1], *wanted][n]] = tuple(drawn[n : n + size - 1])
        said = request.tokens[len(text) :]
        assert said == drawn[: len(said)]
        assert part.accepted == len(said) - 1
        guesses = drawn[len(said) :]
    assert begun > 1, "some n-grams were verified"


@torch.inference_mode()
def draw(model: LoadedModel, text: Sequence[int], sampling: SamplingParams) -> int:
    decoder, segment = model.decoder, Segment(9, 0, len(text))
    scores = decoder.head(decoder.run(decoder.embed(text), model.attention.prepare([segment]))[-1:])[0]
    if not sampling.greedy:
        noise = gumbel([sampling.seed], [len(text)], torch.arange(len(scores)))[0]
        scores = scores / sampling.temperature + noise
    return int(scores.argmax())


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_that_of_plain_decoding(model: LoadedModel, kind: str) -> None:
    core = model.core(EngineConfig(policies=(SMALL,)))
    sampling = replace(KINDS[kind], max_tokens=30)
    plain = answer(core, PROMPTS, sampling, ["none"])
    rounds: list[RequestRound] = []
    assert answer(core, PROMPTS, sampling, ["lookahead"], concurrency=2, rounds=rounds) == plain
    if kind in ("greedy", "sampled"):
        assert len(rounds) < sum(map(len, plain)), "some n-grams were accepted"
    assert answer(core, PROMPTS, sampling, ["lookahead", "clasp", "none"], concurrency=3) == plain


def test_without_rows_for_all_guesses_the_first_are_verified(model: LoadedModel) -> None:
    core = model.core(EngineConfig(policies=(SMALL,), max_num_seqs=4, max_num_batched_tokens=6))
    plain = answer(core, PROMPTS, GREEDY, ["none"])
    assert answer(core, PROMPTS, GREEDY, ["lookahead"], concurrency=3) == plain


@pytest.mark.parametrize("policy", ["lookahead", "jacobi"])
@pytest.mark.parametrize("foreseen", [0, 20])
def test_guesses_survive_preemptions_and_an_expected_answer(model: LoadedModel, policy: str, foreseen: int) -> None:
    core = model.core(EngineConfig(policies=(SMALL,), max_num_seqs=1))
    sampling = replace(GREEDY, ignore_eos=True)
    (expected,) = answer(core, [PROMPT], sampling, ["none"])
    predicted = (*expected[:5], 7, *expected[6:foreseen]) if foreseen else ()
    core.add(GenerateRequest("a", PROMPT, replace(sampling, predicted=predicted), policy))
    said: list[int] = []
    sources: set[str] = set()
    for step in count():
        if core.scheduler.idle:
            break
        if step % 7 == 4:  # an urgent request takes the only place
            core.add(GenerateRequest(f"urgent {step}", PROMPT, replace(sampling, max_tokens=1), "none", priority=-1))
        report = core.step()
        for event in report.events:
            assert isinstance(event, TokenEvent)
            said += event.token_ids if event.request_id == "a" else ()
        sources |= {part.source for part in report.rounds if part.drafted}
    assert tuple(said) == expected
    assert sources == ({"model", "prediction"} if foreseen else {"model"})
    assert core.scheduler.preemptions > 2
