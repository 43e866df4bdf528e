"""Figures of a benchmark: prediction errors and speed-ups by domain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.prediction_error import prediction_errors
from bench.results import domain_lines
from bench.targets import RoundRecord

ROUND = RoundRecord(
    request=1, seconds=0.1, emitted=4, drafted=4, accepted=3,
    predicted_tpt=50.0, predicted_acceptance=0.5,
)  # fmt: skip
PLAIN = replace(ROUND, drafted=0, accepted=0, emitted=1, predicted_tpt=20.0, predicted_acceptance=None)


def test_predictions_are_compared_request_by_request() -> None:
    history = [ROUND, replace(ROUND, predicted_tpt=30.0)] * 4 + [PLAIN] * 5
    history += [replace(ROUND, request=2, accepted=4, emitted=5)] * 4
    history += [replace(ROUND, request=3)]  # too few tokens to count
    found = prediction_errors(history)
    np.testing.assert_allclose(found.tpt, [[40.0, 40.0], [50.0, 50.0]])
    np.testing.assert_allclose(found.acceptance, [[0.5, 0.75], [0.5, 1.0]])
    assert found.as_dict()["tpt"] == pytest.approx(0.0)
    assert found.as_dict()["acceptance"] == pytest.approx(0.375)


def test_the_error_expected_from_sampling_noise_is_reported() -> None:
    """Exact predictions have about the error that sampling noise explains."""
    random = np.random.default_rng(0)
    history: list[RoundRecord] = []
    for request in range(300):
        for accepted in random.binomial(4, 0.7, size=20):
            round = replace(ROUND, request=request, accepted=int(accepted), emitted=int(accepted) + 1)
            history.append(replace(round, predicted_acceptance=0.7, predicted_tpt=38.0))
    found = prediction_errors(history).as_dict()
    assert found["acceptance"] == pytest.approx(found["acceptance_chance"], rel=0.15)
    assert found["tpt"] == pytest.approx(found["tpt_chance"], rel=0.15)
    assert found["acceptance_chance"] == pytest.approx(0.6745 * (0.7 * 0.3 / 80) ** 0.5, rel=0.05)


def test_rounds_without_drafts_have_no_predictions_to_compare() -> None:
    assert prediction_errors([PLAIN] * 9).tpt.shape == (0, 2)


def test_a_domain_without_a_figure_has_an_empty_cell() -> None:
    """Answers of one token have no decoding time, so their domain has no speed-up of decoding."""
    domains = {"code": {"knapspec": 1.5, "knapspec, decode": 2.0}, "yes or no": {"knapspec": 1.1}}
    assert [*domain_lines(domains)] == [
        ["", "knapspec", "knapspec, decode"],
        ["code", "1.50", "2.00"],
        ["yes or no", "1.10", ""],
        ["mean", "1.30", "2.00"],
        ["lowest", "1.10", "2.00"],
    ]
