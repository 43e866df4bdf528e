"""Passes over candidate states of verified rows: what searches and baselines build on."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.config.engine import EngineConfig
from engine.draft.base import CandidatePass, RequestView
from engine.plans import SKIP, exit_plan
from engine.runtime.build import LoadedModel
from engine.step import References
from engine.types import GenerateRequest
from papers.dynamic_exit import ExitState
from tests.support.cores import GREEDY, load


@pytest.fixture(scope="module")
def model(tiny: Path) -> LoadedModel:
    return load(torch.float64, model=tiny)


@pytest.fixture(scope="module")
def recorded(model: LoadedModel) -> tuple[RequestView[ExitState], CandidatePass, References]:
    """A request whose prompt has just been read, candidate passes over its last rows, and their recorded states."""
    core = model.core(EngineConfig())
    core.add(GenerateRequest("a", tuple(range(5, 45)), GREEDY, "del"))
    core.step()
    view: RequestView[ExitState] = core.scheduler.running[0].view
    references = view.state.references
    assert references is not None
    assert len(references.positions) == 32
    return view, view.candidates(references.positions), references


def test_a_candidate_pass_of_the_whole_model_gives_the_recorded_states(
    model: LoadedModel, recorded: tuple[RequestView[ExitState], CandidatePass, References]
) -> None:
    """Every row sees the target's K/V before its position, also beside other rows, and after any number of layers."""
    view, passes, references = recorded
    x = passes.embed([view.tokens[p] for p in references.positions])
    assert torch.equal(x, references.states[0])
    depths = range(1, model.spec.layers + 1)
    plans = [exit_plan(model.spec.layers, depth) for depth in depths]
    ran = passes.run(x.expand(len(plans), -1, -1), plans)
    for depth, states in zip(depths, ran, strict=True):
        assert (states - references.states[2 * depth]).abs().max() <= 1e-9, depth
    assert plans[-1] == model.spec.whole


def test_a_candidate_pass_with_a_skip_differs_from_its_sublayer_on(
    model: LoadedModel, recorded: tuple[RequestView[ExitState], CandidatePass, References]
) -> None:
    view, passes, references = recorded
    x = passes.embed([view.tokens[p] for p in references.positions])
    whole = model.spec.whole
    plans = [(*whole[:i], SKIP, *whole[i + 1 :]) for i in range(model.spec.sublayers)]
    for ran in passes.run(x.expand(len(plans), -1, -1), plans):
        assert (ran - references.states[-1]).abs().max() > 1e-3


def test_drawing_at_the_recorded_states_gives_the_token_that_the_target_drew(
    model: LoadedModel, recorded: tuple[RequestView[ExitState], CandidatePass, References]
) -> None:
    view, _, references = recorded
    passes, last = view.candidates(references.positions[-1:]), references.states[-1:, -1:]
    tokens, confidences = passes.draws(last, [model.spec.whole])
    assert tokens == [[view.tokens[references.positions[-1] + 1]]]
    assert 0 < confidences[0][0] <= 1
