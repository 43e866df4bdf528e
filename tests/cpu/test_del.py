"""DEL: acceptance, thresholds and the best exit, by hand and against real drafts."""

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
from engine.runtime.build import LoadedModel
from engine.types import GenerateRequest
from papers.dynamic_exit import ExitState, ExitStatistics, best_exit
from papers.settings import DelConfig
from tests.support.cores import GREEDY, SAMPLED, chat_ids, load
from tests.support.examples import examples


def statistics(*rounds: tuple[list[list[int]], list[list[float]]], decay: float = 0.5) -> ExitStatistics:
    """Statistics of rounds: whether each exit's shadow tokens matched, and their confidences, [exits][positions]."""
    found = ExitStatistics(len(rounds[0][0]))
    for matched, confidences in rounds:
        found.add(np.array(matched, bool), np.array(confidences), decay)
    return found


def test_acceptance_and_thresholds_equal_those_computed_by_hand() -> None:
    """Two exits; a round of four positions, then one of two; ω = 0.5.

    S(u) = 4/2 + 2 = 4. First exit: S(c) = 2/2 + 1 = 2, S(tcs) = 1.6/2 + 0.6 = 1.4, S(fcs) = 0.6/2 + 0.3 = 0.6.
    Second exit: S(c) = 3/2 + 2 = 3.5, S(tcs) = 2.7/2 + 1.6 = 2.95, S(fcs) = 0.5/2 = 0.25.
    """
    found = statistics(
        ([[1, 0, 1, 0], [1, 1, 1, 0]], [[0.9, 0.4, 0.7, 0.2], [0.8, 0.9, 1.0, 0.5]]),
        ([[0, 1], [1, 1]], [[0.3, 0.6], [0.9, 0.7]]),
    )
    assert found.counted == pytest.approx(4)
    assert found.acceptance == pytest.approx([2 / 4, 3.5 / 4])
    assert found.thresholds == pytest.approx([(1.4 / 2 + 0.6 / 2) / 2, (2.95 / 3.5 + 0.25 / 0.5) / 2])


def test_the_mean_confidence_of_no_tokens_is_the_end_of_the_scale() -> None:
    """The first exit always matched, the second never did."""
    found = statistics(([[1, 1], [0, 0]], [[0.7, 0.9], [0.5, 0.7]]), ([[1], [0]], [[0.8], [0.6]]))
    assert found.acceptance == pytest.approx([1, 0])
    assert found.thresholds == pytest.approx([(0.8 + 0) / 2, (1 + 0.6) / 2])


@examples(200)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=12), st.integers(0, 18))
def test_the_best_exit_equals_a_loop_over_all_layers_and_lengths(twentieths: list[int], most: int) -> None:
    acceptance, layers = [share / 20 for share in twentieths], len(twentieths) + 1

    def tokens_per_layer(depth: int, length: int) -> float:
        alpha = acceptance[depth - 1]
        expected = length + 1 if alpha == 1 else (1 - alpha ** (length + 1)) / (1 - alpha)
        return expected / (length * depth + layers)

    best = max(tokens_per_layer(depth, length) for depth in range(1, layers) for length in range(most + 1))
    depth, length = best_exit(np.array(acceptance), layers, most)
    assert 1 <= depth < layers
    assert 0 <= length <= most
    assert tokens_per_layer(depth, length) == pytest.approx(best, rel=1e-12)


def test_without_a_match_the_first_exit_wins_and_a_perfect_one_drafts_most() -> None:
    assert best_exit(np.array([0.0, 0.0, 0.0]), 4, 18) == (1, 0)
    assert best_exit(np.array([0.0, 1.0, 1.0]), 4, 18) == (2, 18)


@pytest.fixture(scope="module")
def model(tiny: Path) -> LoadedModel:
    return load(torch.float64, model=tiny)


@pytest.mark.slow
@pytest.mark.parametrize("sampled", [False, True])
def test_shadow_tokens_are_those_that_the_exit_drafts(
    model: LoadedModel, prompts: Sequence[str], sampled: bool
) -> None:
    """With ω = 0 the statistics are the last round's: its exit matched wherever its draft was accepted."""
    core = model.core(EngineConfig(policies=(DelConfig(decay=0.0),)))
    sampling = replace(SAMPLED if sampled else GREEDY, ignore_eos=True, max_tokens=32)
    compared = rejected = 0
    for number, text in enumerate(prompts[::40]):
        core.add(GenerateRequest(str(number), chat_ids(core, text), replace(sampling, seed=number), "del"))
        core.step()
        view, last = core.scheduler.running[0].view, None
        while not core.scheduler.idle:
            (now,) = core.step().rounds
            found: ExitState = view.state
            if last is not None and last.plan is not None:
                depth = sum(last.plan[:-1]) // 2
                matched = round(found.statistics.acceptance[depth - 1] * found.statistics.counted)
                assert found.statistics.counted == last.accepted + 1, "all tested rows, and no others"
                after = (last.accepted,) if last.accepted < last.drafted else (last.accepted, last.accepted + 1)
                assert matched in after
                compared, rejected = compared + 1, rejected + (last.accepted < last.drafted)
            last = now
    assert compared > rejected > 0


def test_the_statistics_begin_with_the_end_of_the_prompt(model: LoadedModel) -> None:
    """The whole model's draws stand for the target within the prompt, not the prompt's own tokens."""
    core = model.core(EngineConfig(policies=(DelConfig(rows=12),)))
    core.add(GenerateRequest("a", tuple(range(5, 45)), GREEDY, "del"))
    core.step()
    view = core.scheduler.running[0].view
    core.step()
    found: ExitState = view.state
    assert found.statistics.counted == 12
    assert found.statistics.acceptance.max() > 0, "random tokens follow one another, but exits agree with the model"


def test_rows_that_a_preempted_request_reads_again_are_not_measured_again(model: LoadedModel) -> None:
    core = model.core(EngineConfig())
    core.add(GenerateRequest("a", tuple(range(5, 45)), GREEDY, "del"))
    for _ in range(3):
        core.step()
    view, policy = core.scheduler.running[0].view, core.policy("del")
    assert policy.rows_to_record(view) > 0
    policy.suspend(view)
    assert policy.rows_to_record(view) == 0
    core.step()  # it decodes again
    assert policy.rows_to_record(view) > 0
