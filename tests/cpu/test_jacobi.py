"""Jacobi decoding: every round verifies the draws of the round before, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch

from engine.backends.cuda.backend import cuda_backend
from engine.config.engine import EngineConfig
from engine.model.attention import Segment
from engine.runtime.build import LoadedModel
from engine.sampling.sample import gumbel
from engine.step import StepPlan
from engine.types import GenerateRequest, SamplingParams
from papers.settings import JacobiConfig
from tests.support.cores import GREEDY, SAMPLED, answer, load, tiny_model

PROMPT = tuple(range(5, 45))
PROMPTS = [PROMPT, PROMPT[::-1], PROMPT[::2]]
KINDS = {
    "greedy": GREEDY,
    "sampled": SAMPLED,
    "grammar": replace(GREEDY, grammar="%llguidance {}\nstart: /[a-z]{3,9}( [a-z]{2,9}){9}/"),
    "bias": replace(SAMPLED, frequency_penalty=0.5, allowed_token_ids=tuple(range(10, 60))),
}


@pytest.fixture(scope="module", params=["slabs", pytest.param("pages", marks=pytest.mark.nightly)])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    directory = tmp_path_factory.mktemp("model")
    tiny_model(directory, scale=0.5, drafts=True, num_hidden_layers=2)
    pages = cuda_backend(torch.device("cpu"), torch.float64) if request.param == "pages" else None
    return load(torch.float64, model=directory, backend=pages)


@torch.inference_mode()
def draw(model: LoadedModel, text: Sequence[int], sampling: SamplingParams) -> int:
    """The token that the model draws after a text, from a pass over all of it in a slab of its own."""
    x = model.decoder.run(model.decoder.embed(text), model.attention.prepare([Segment(9, 0, len(text))]))
    scores = model.decoder.head(x[-1:])[0]
    if not sampling.greedy:
        scores = scores / sampling.temperature + gumbel([sampling.seed], [len(text)], torch.arange(len(scores)))[0]
    return int(scores.argmax())


def solve(model: LoadedModel, text: Sequence[int], count: int, block: int, sampling: SamplingParams) -> list[list[int]]:
    """Decode `count` tokens token by token, in blocks: the guesses of every round that has any."""
    text, end, rounds = list(text), len(text) + count, []
    while len(text) < end:
        guesses = [text[-1]] * block
        while guesses:
            tried = guesses[: min(len(guesses) - 1, end - len(text) - 1)]
            rounds.append(tried)
            draws = [draw(model, [*text, *tried[:i]], sampling) for i in range(len(tried) + 1)]
            final = next((i for i, (a, b) in enumerate(zip(tried, draws, strict=False)) if a != b), len(tried)) + 1
            text += draws[:final]
            if len(text) == end:
                break
            guesses = [*draws, *guesses[len(draws) :]][final:]
    return [tried for tried in rounds if tried]


@pytest.mark.parametrize("kind", ["greedy", "sampled"])
@pytest.mark.parametrize("block", [1, 3, 5])
def test_guesses_are_those_of_the_naive_iteration(model: LoadedModel, kind: str, block: int) -> None:
    sampling = SamplingParams(max_tokens=16, temperature=0.0 if kind == "greedy" else 0.8, seed=3, ignore_eos=True)
    core = model.core(EngineConfig(policies=(JacobiConfig(block=block),)))
    core.add(GenerateRequest("a", PROMPT, sampling, "jacobi"))
    core.step()
    text = tuple(core.scheduler.running[0].tokens)
    tried: list[list[int]] = []
    plan = core.scheduler.plan

    def watched() -> StepPlan:
        found = plan()
        tried.extend([*work.plan.tokens] for work in found.work if work.plan is not None)
        return found

    with patch.object(core.scheduler, "plan", watched):
        while not core.scheduler.idle:
            core.step()
    assert tried == solve(model, text, 15, block, sampling)
    assert (block > 1) == bool(tried)


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_that_of_plain_decoding(model: LoadedModel, kind: str) -> None:
    core = model.core(EngineConfig(policies=(JacobiConfig(block=6),)))
    sampling = replace(KINDS[kind], max_tokens=30)
    plain = answer(core, PROMPTS, sampling, ["none"])
    assert answer(core, PROMPTS, sampling, ["jacobi"], concurrency=2) == plain
    assert answer(core, PROMPTS, sampling, ["jacobi", "clasp", "none"], concurrency=3) == plain
