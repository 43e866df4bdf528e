"""SWIFT: the sets of its search, the scores that it compares, its stop rules, and what requests share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.config.engine import EngineConfig
from engine.core.engine import EngineCore
from engine.errors import ConfigError, UnknownPolicyError
from engine.plans import SKIP, TARGET, Variants
from engine.runtime.build import LoadedModel
from engine.types import GenerateRequest, SamplingParams
from papers import layer_sets
from papers.settings import SwiftConfig
from papers.swift import Candidate, LayerSearch, Swift, uniform_set
from tests.support.cores import GREEDY, SAMPLED, chat_ids, load
from tests.support.examples import examples

LAYERS = 8
WINDOW = 8


def scored(search: LayerSearch, plan: Variants, new: float, best: float, first: float = 0.2) -> dict[Variants, float]:
    """Scores of one window, as `learn` takes them; a set that has several roles has the score of the last."""
    return {search.initial: first, search.best: best, plan: new}


@examples(100)
@given(st.integers(3, 32), st.floats(0.05, 1.0))
def test_sets_have_the_size_of_the_ratio_and_keep_the_first_and_the_last_layer(layers: int, ratio: float) -> None:
    search = LayerSearch(SwiftConfig(skip_ratio=ratio), layers)
    size = int(ratio * (2 * layers - 4))
    for plan in (search.initial, search.propose().plan, search.propose().plan):
        assert len(plan) == 2 * layers + 1
        assert plan.count(SKIP) == size
        assert {*plan[:2], *plan[-3:]} == {TARGET}
    assert search.done == (size == 0)


def test_the_first_set_leaves_out_every_other_layer() -> None:
    """As in the authors' code: attention and MLP of every second layer, from the second."""
    assert uniform_set(LAYERS, 6) == [2, 3, 6, 7, 10, 11]


def test_equal_seeds_propose_equal_sets_and_every_interval_bayesian_optimisation_does() -> None:
    """A suggested point lies within the cube; a random one is at its corners."""
    one, two = (LayerSearch(SwiftConfig(interval=3), LAYERS) for _ in range(2))
    inner = []
    for step in range(1, 8):
        candidate = one.propose()
        assert candidate.plan == two.propose().plan
        inner.append(bool(np.logical_and(candidate.point > 0, candidate.point < 1).any()))
        for search in (one, two):
            search.learn(candidate, scored(search, candidate.plan, 0.3 + step / 100, 0.9))
    assert inner == [False, False, True, False, False, True, False]


def test_a_set_becomes_the_best_only_by_a_score_of_the_same_window() -> None:
    """A hard text's best set is not held against an easy text's average one, nor the other way round."""
    search = LayerSearch(SwiftConfig(), LAYERS)
    easy = search.propose().plan
    search.learn(_candidate(easy), scored(search, easy, 0.90, 0.85))
    assert search.best == easy
    hard = next(plan for plan in iter(lambda: search.propose().plan, None) if plan != easy)
    search.learn(_candidate(hard), scored(search, hard, 0.40, 0.35))
    assert search.best == hard, "0.40 is the better one of its own window, although another window gave 0.90"
    worse = next(plan for plan in iter(lambda: search.propose().plan, None) if plan not in (easy, hard))
    search.learn(_candidate(worse), scored(search, worse, 0.80, 0.94))
    assert search.best == hard, "0.80 exceeds the 0.40 of another window, but not the 0.94 of its own"


def _candidate(plan: Variants) -> Candidate:
    return Candidate(plan, np.array([float(variant == SKIP) for variant in plan[2:-3]]))


@pytest.mark.parametrize(
    ("settings", "score", "steps"),
    [({"max_steps": 5}, 0.1, 5), ({"patience": 4}, 0.1, 4), ({"max_matchness": 0.9}, 0.9, 1), ({}, 0.94, 300)],
)
def test_the_search_ends_after_its_steps_without_improvement_or_with_a_good_set(
    settings: dict[str, float], score: float, steps: int
) -> None:
    """In the last case the first set is the best, and 300 further steps bring none that is better."""
    search = LayerSearch(SwiftConfig(interval=10_000, **settings), LAYERS)  # type: ignore[arg-type]
    while not search.done:
        candidate = search.propose()
        search.learn(candidate, scored(search, candidate.plan, min(score, 0.3), score))
    assert search.steps == steps


def test_a_lower_ratio_begins_anew_and_the_lowest_one_stays() -> None:
    search = LayerSearch(SwiftConfig(skip_ratio=0.25, max_matchness=0.5), LAYERS)
    candidate = search.propose()
    search.learn(candidate, scored(search, candidate.plan, 0.8, 0.7))
    assert search.done
    search.lower()
    assert (search.ratio, search.skips, search.steps, search.done) == (0.15, 1, 0, False)
    assert search.best == search.initial
    search.lower()
    assert search.ratio == 0.15, "with a ratio of 0.05, nothing would be skipped"


@pytest.fixture(scope="module")
def model(tiny: Path) -> LoadedModel:
    return load(torch.float64, model=tiny)


def swift_core(model: LoadedModel, **settings: float) -> tuple[EngineCore, Swift]:
    core = model.core(EngineConfig(policies=(SwiftConfig(window=WINDOW, **settings),)))  # type: ignore[arg-type]
    policy = core.policy("swift")
    assert isinstance(policy, Swift)
    return core, policy


def add(core: EngineCore, name: str, text: str, sampling: SamplingParams = GREEDY) -> None:
    core.add(GenerateRequest(name, chat_ids(core, text), replace(sampling, ignore_eos=True), "swift"))


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_matchness_is_the_share_of_the_window_that_a_set_predicts_token_by_token(
    model: LoadedModel, prompts: Sequence[str], sampling: SamplingParams
) -> None:
    """A draft that starts from verified text before each token of the window gives the same tokens, one by one.

    The whole model predicts all of them, as it drew them.
    """
    core, policy = swift_core(model, max_steps=3)
    add(core, "a", prompts[0], replace(sampling, max_tokens=40))
    while not policy.search.steps:
        core.step()
    (request,) = core.scheduler.running
    measured = request.view.state.matchness
    assert len(measured) >= 2
    first = request.view.prompt_tokens
    for plan, score in measured.items():
        matches = 0
        for position in range(first, first + WINDOW):
            passes = request.view.candidates([position - 1])
            rows = passes.embed([request.view.tokens[position - 1]])
            ((token,),), _ = passes.draws(passes.run(rows[None], [plan]), [plan])
            matches += token == request.view.tokens[position]
        assert score == pytest.approx(matches / WINDOW)
    passes = request.view.candidates(range(first - 1, first - 1 + WINDOW))
    rows = passes.embed(request.view.tokens[first - 1 : first - 1 + WINDOW])
    drawn, _ = passes.draws(passes.run(rows[None], [model.spec.whole]), [model.spec.whole])
    assert drawn == [request.view.tokens[first : first + WINDOW]]


def test_the_search_waits_for_a_window_and_goes_on_from_one_request_to_the_next(
    model: LoadedModel, prompts: Sequence[str]
) -> None:
    core, policy = swift_core(model, max_matchness=1.0)
    add(core, "a", prompts[0], replace(GREEDY, max_tokens=WINDOW))
    while not core.scheduler.idle:
        core.step()
    assert policy.search.steps == 0, "an answer of the window's length leaves no round to search in"
    for number, name in enumerate("bc", 1):
        before = policy.search.steps
        add(core, name, prompts[number], replace(GREEDY, max_tokens=24))
        while not core.scheduler.idle:
            core.step()
        assert policy.search.steps > before


def test_drafts_are_those_of_the_best_set(model: LoadedModel, prompts: Sequence[str]) -> None:
    core, policy = swift_core(model)
    add(core, "a", prompts[0])
    drafted = 0
    while not core.scheduler.idle:
        drafted += sum(part.drafted for part in core.step().rounds)
        for request in core.scheduler.running:
            if request.plan is not None and request.plan.gamma:
                assert request.plan.variants == policy.search.best
    assert drafted > 0


def test_without_the_library_of_its_search_it_names_the_extra(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layer_sets, "find_spec", lambda name: None)
    core = model.core(EngineConfig())
    with pytest.raises(UnknownPolicyError, match=r"'swift' is not available: .* pip install 'knapserve\[papers\]'"):
        core.info.check_policy("swift")
    core.info.check_policy("clasp")
    with pytest.raises(ConfigError, match=r"--draft-policy swift is not available: .*knapserve\[papers\]"):
        model.core(EngineConfig(draft_policy="swift"))


@pytest.mark.parametrize(("least", "after"), [(0.0, 1.0), (1.0, 0.9)], ids=["any is enough", "all are wanted"])
def test_low_acceptance_lowers_the_ratio_after_as_many_rounds_as_the_search_has_patience(
    model: LoadedModel, prompts: Sequence[str], least: float, after: float
) -> None:
    """A draft without all layers between the first and the last has some tokens rejected. The search may have ended."""
    core, policy = swift_core(model, skip_ratio=1.0, patience=6, max_steps=2, max_matchness=1.0, min_acceptance=least)
    add(core, "a", prompts[0], replace(GREEDY, max_tokens=40))
    drafting = 0
    while drafting < 6:
        assert policy.search.ratio == 1.0
        drafting += any(round.drafted for round in core.step().rounds)
    assert policy.search.ratio == after
