"""Lookahead decoding: window, n-grams and guesses are those of the paper's two branches, written as lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from random import Random

import pytest
import torch

from engine.backends.cuda.backend import cuda_backend
from engine.config.engine import EngineConfig
from engine.config.policies import LookaheadConfig
from engine.draft.baselines.lookahead import Pool
from engine.model.attention import Segment
from engine.runtime.build import LoadedModel
from engine.sampling.sample import gumbel
from engine.step import Plan
from engine.types import GenerateRequest, RequestRound, SamplingParams, TokenEvent
from tests.support.cores import GREEDY, SAMPLED, answer, load, tiny_model

PROMPT = (5, 6, 7, 8) * 5
PROMPTS = [PROMPT, tuple(range(5, 30)), tuple(range(40, 5, -2))]
SMALL = LookaheadConfig(window=4, ngram=3, guesses=2)
KINDS = {
    "greedy": GREEDY,
    "sampled": SAMPLED,
    "grammar": replace(GREEDY, grammar="%llguidance {}\nstart: /[a-z]{3,9}( [a-z]{2,9}){9}/"),
    "bias": replace(SAMPLED, frequency_penalty=0.5, allowed_token_ids=tuple(range(10, 60))),
}
Path = tuple[int, ...]


@pytest.fixture(scope="module", params=["slabs", pytest.param("pages", marks=pytest.mark.nightly)])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    directory = tmp_path_factory.mktemp("model")
    tiny_model(directory, scale=0.35, drafts=True, num_hidden_layers=2)
    pages = cuda_backend(torch.device("cpu"), torch.float64) if request.param == "pages" else None
    return load(torch.float64, model=directory, backend=pages)


class Paper:
    """The lookahead and the verification branch of one request; every token is drawn by a pass over its whole path."""

    def __init__(self, model: LoadedModel, config: LookaheadConfig, text: Sequence[int], sampling: SamplingParams):
        self.model, self.config, self.sampling = model, config, sampling
        length = config.window + config.ngram - 3
        self.levels = [Random(len(text)).choices(text, k=length)]
        self.pool: dict[int, list[Path]] = {}

    @torch.inference_mode()
    def draw(self, text: Sequence[int]) -> int:
        decoder, segment = self.model.decoder, Segment(9, 0, len(text))
        scores = decoder.head(decoder.run(decoder.embed(text), self.model.attention.prepare([segment]))[-1:])[0]
        if not self.sampling.greedy:
            noise = gumbel([self.sampling.seed], [len(text)], torch.arange(len(scores)))[0]
            scores = scores / self.sampling.temperature + noise
        return int(scores.argmax())

    def column(self, i: int) -> Path:
        """The path to the last level: level 0 up to this column, then down the column."""
        return (*self.levels[0][:i], *(level[i] for level in self.levels[1:]))

    def round(self, text: Sequence[int]) -> set[Path]:
        """Return all paths that a round verifies, then update window and pool."""
        columns = [self.column(i) for i in range(len(self.levels[0]) + 1)]
        ends = [*columns, *self.pool.get(text[-1], [])]
        drawn = [self.draw([*text, *path]) for path in columns]
        if len(self.levels) < self.config.ngram - 1:
            self.levels = [level[1:] for level in self.levels] + [drawn[1:]]
        else:
            assert len(drawn) == self.config.window
            for i, token in enumerate(drawn):
                key = self.levels[0][i - 1] if i else text[-1]
                gram = (*(level[i] for level in self.levels[1:]), token)
                grams = [known for known in self.pool.get(key, []) if known != gram]
                self.pool[key] = [*grams, gram][-self.config.guesses :]
            below = [*self.levels[1:], drawn]
            self.levels = [below[0][1:], *below[1:]]
        return {path[:end] for path in ends for end in range(1, len(path) + 1)}


def paths(plan: Plan) -> list[Path]:
    found: list[Path] = []
    for token, parent in zip(plan.tokens, plan.parents, strict=True):
        found.append((*(found[parent] if parent >= 0 else ()), token))
    return found


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("greedy", (4, 3, 2)),
        ("sampled", (3, 4, 9)),
        pytest.param("greedy", (2, 2, 1), marks=pytest.mark.nightly),
        pytest.param("sampled", (15, 5, 15), marks=pytest.mark.nightly),
    ],
)
def test_every_round_verifies_what_the_naive_branches_do(
    model: LoadedModel, kind: str, shape: tuple[int, int, int]
) -> None:
    sampling = SamplingParams(max_tokens=150, temperature=0.0 if kind == "greedy" else 0.3, seed=3, ignore_eos=True)
    config = LookaheadConfig(*shape)
    core = model.core(EngineConfig(lookahead=config))
    core.add(GenerateRequest("a", PROMPT, sampling, "lookahead"))
    core.step()
    request = core.scheduler.running[0]
    paper = Paper(model, config, request.tokens, sampling)
    for _ in range(16):
        text = list(request.tokens)
        part = core.step().rounds[0]
        assert request.plan is not None
        verified = paths(request.plan)
        wanted = paper.round(text)
        assert len(verified) == len(wanted)
        assert set(verified) == wanted
        new = tuple(request.tokens[len(text) :])
        assert part.accepted == max((k for k in range(len(new) + 1) if new[:k] in wanted), default=0) == len(new) - 1


def test_the_pool_keeps_the_n_grams_seen_last() -> None:
    pool = Pool(2)
    for followers in ((1, 2), (3, 4), (1, 2), (5, 6)):
        pool.add(7, followers)
    assert pool.after(7) == [(1, 2), (5, 6)]
    assert pool.after(1) == ()


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_that_of_plain_decoding(model: LoadedModel, kind: str) -> None:
    core = model.core(EngineConfig(lookahead=SMALL))
    sampling = replace(KINDS[kind], max_tokens=30)
    plain = answer(core, PROMPTS, sampling, ["none"])
    rounds: list[RequestRound] = []
    assert answer(core, PROMPTS, sampling, ["lookahead"], concurrency=2, rounds=rounds) == plain
    if kind in ("greedy", "sampled"):
        assert len(rounds) < sum(map(len, plain)), "some n-grams were accepted"
    assert answer(core, PROMPTS, sampling, ["lookahead", "clasp", "none"], concurrency=3) == plain


def test_without_rows_for_the_window_only_n_grams_are_verified(model: LoadedModel) -> None:
    core = model.core(EngineConfig(lookahead=SMALL, max_num_seqs=4, max_num_batched_tokens=6))
    plain = answer(core, PROMPTS, GREEDY, ["none"])
    assert answer(core, PROMPTS, GREEDY, ["lookahead"], concurrency=3) == plain


@pytest.mark.parametrize("policy", ["lookahead", "jacobi"])
@pytest.mark.parametrize("foreseen", [0, 20])
def test_guesses_survive_preemptions_and_an_expected_answer(model: LoadedModel, policy: str, foreseen: int) -> None:
    core = model.core(EngineConfig(lookahead=SMALL, max_num_seqs=1))
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
