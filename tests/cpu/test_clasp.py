"""CLaSp: the programme over whole layers equals its naive loop, and is solved again as the text grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from engine.config.engine import EngineConfig
from engine.draft.base import RequestView
from engine.plans import SKIP, TARGET
from engine.runtime.build import LoadedModel
from engine.types import GenerateRequest
from papers.clasp import SkipState, skip_layers
from papers.settings import ClaspConfig
from tests.support.cores import GREEDY, load
from tests.support.examples import examples

Layer = Callable[[int, Tensor], Tensor]


def naive(references: Tensor, skips: int, run: Layer) -> tuple[int, ...]:
    """Fill g(i, j) state by state (CLaSp, eq. 2): references [L+1, 1, hidden]."""
    best: dict[tuple[int, int], tuple[Tensor, tuple[int, ...]]] = {(0, 0): (references[0], ())}
    layers = len(references) - 1
    for i in range(1, layers + 1):
        for j in range(min(i, skips) + 1):
            reached: list[tuple[Tensor, tuple[int, ...]]] = []
            if (i - 1, j) in best:
                state, plan = best[i - 1, j]
                reached.append((run(i - 1, state[None])[0], (*plan, TARGET)))
            if (i - 1, j - 1) in best:
                state, plan = best[i - 1, j - 1]
                reached.append((state, (*plan, SKIP)))
            similar = [float(F.cosine_similarity(state, references[i]).mean()) for state, _ in reached]
            best[i, j] = reached[similar.index(max(similar))]
    return best[layers, skips][1]


@examples(60)
@given(seed=st.integers(0, 10**6), layers=st.integers(1, 9), data=st.data())
def test_the_table_equals_the_naive_loop_on_linear_layers(seed: int, layers: int, data: st.DataObject) -> None:
    skips = data.draw(st.integers(0, layers))
    generator = torch.Generator().manual_seed(seed)
    weights = [torch.randn(8, 8, dtype=torch.float64, generator=generator) * 0.2 for _ in range(layers)]

    def run(layer: int, states: Tensor) -> Tensor:
        return states + states @ weights[layer]

    states = [torch.randn(1, 8, dtype=torch.float64, generator=generator)]
    for layer in range(layers):
        states.append(run(layer, states[-1]))
    chosen = skip_layers(torch.stack(states), skips, run)
    assert chosen == naive(torch.stack(states), skips, run)
    assert chosen.count(SKIP) == skips


@pytest.fixture(scope="module")
def model(tiny: Path) -> LoadedModel:
    return load(torch.float64, model=tiny)


@pytest.mark.parametrize("skips", [1, 2, 3])
def test_the_plan_equals_the_naive_loop_on_a_model(model: LoadedModel, skips: int) -> None:
    """At the last token of the prompt, and again after the interval; layers run one state at a time."""
    layers = model.spec.layers
    core = model.core(EngineConfig(policies=(ClaspConfig(skip_ratio=skips / layers, interval=6),)))
    core.add(GenerateRequest("a", tuple(range(5, 45)), replace(GREEDY, ignore_eos=True), "clasp"))
    core.step()
    view: RequestView[SkipState] = core.scheduler.running[0].view
    solved = 0
    while not core.scheduler.idle:
        references = view.state.references
        if references is not None:
            assert references.positions == (len(view.tokens) - 2,), "of the last verified token"
            passes = view.candidates(references.positions)

            def run(layer: int, states: Tensor) -> Tensor:
                plan = [SKIP] * (2 * layers) + [TARGET]
                plan[2 * layer] = plan[2 * layer + 1] = TARGET
                return passes.run(states, [tuple(plan)])  # noqa: B023

            want = naive(references.states[::2], skips, run)
            core.step()
            assert view.state.variants == (*(v for each in want for v in (each, each)), TARGET)
            solved += 1
        else:
            before = view.state.variants
            core.step()
            assert view.state.variants == before, "plans are kept in between"
    assert solved >= 3


def test_layers_are_chosen_after_the_prompt_and_then_once_an_interval(model: LoadedModel) -> None:
    core = model.core(EngineConfig(policies=(ClaspConfig(interval=20),)))
    core.add(GenerateRequest("a", tuple(range(5, 45)), replace(GREEDY, ignore_eos=True), "clasp"))
    core.step()
    view: RequestView[SkipState] = core.scheduler.running[0].view
    recorded = []
    while not core.scheduler.idle:
        if view.state.references is not None:
            recorded.append(len(view.tokens) - view.prompt_tokens)
        core.step()
    assert recorded[0] == 1
    steps = [after - before for before, after in pairwise(recorded)]
    assert len(steps) >= 2
    assert all(20 < step <= 20 + 2 * 13 for step in steps), "at most two rounds later than due"
