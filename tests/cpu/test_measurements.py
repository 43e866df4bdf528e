"""Figures of a benchmark: sums of counts, predictions by request, and speed-ups by domain."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from bench.measurements import RunStats, Totals
from bench.results import domain_table, summarise
from engine.types import RequestRound, RoundReport

ROUND = RequestRound(
    request_id="1", policy="knapspec", emitted=4, drafted=4, accepted=3, draft_passes=4, context_length=9,
    skipped_attention=0, skipped_mlp=0, predicted_tpt=50.0, predicted_acceptance=0.5, plan=(1, 0, 1, 2, 1),
)  # fmt: skip
PLAIN = replace(
    ROUND, emitted=1, drafted=0, accepted=0, draft_passes=0, predicted_tpt=20.0, predicted_acceptance=None, plan=None
)


def stats_of(*rounds: tuple[RequestRound, ...], verify_seconds: float = 0.1) -> RunStats:
    stats = RunStats(batches=[Totals()])
    for each in rounds:
        stats.add_round(RoundReport(rounds=each, verify_seconds=verify_seconds), positions=9.0)
    return stats


def test_totals_of_two_batches_are_those_of_both_together_and_survive_json() -> None:
    first, second = (stats_of((ROUND,) * 2), stats_of((PLAIN,), (ROUND,)))
    both = stats_of((ROUND,) * 2, (PLAIN,), (ROUND,)).total
    assert Totals.sum([first.total, second.total]) == both
    assert both.plans == Counter({(1, 0, 1, 2, 1): 12})
    assert (both.tested, both.rounds, both.request_rounds, both.draft_passes) == (12, 3, 4, 8)
    assert Totals.from_json(json.loads(json.dumps(both.as_json()))) == both
    assert Totals.sum([]) == Totals()


def test_rounds_that_read_prompts_are_not_of_decoding() -> None:
    stats = RunStats(batches=[Totals()])
    stats.add_round(RoundReport(rounds=(PLAIN,), prompt_tokens=3, verify_seconds=1.0), positions=0.0)
    assert stats.total == Totals()


def test_shares_of_sublayers_are_means_over_draft_passes() -> None:
    plans = Counter({(1, 0, 0, 1, 1): 3, (2, 1, 1, 1, 1): 1})
    own = Totals(tokens=1, seconds=1.0, decode_tokens=1, decode_seconds=1.0, rounds=1, plans=plans)
    row = summarise("fixed", own, own)
    assert (row["skipped_attention"], row["skipped_mlp"]) == (3 / 8, 3 / 8)
    assert row["low_bit"] == 1 / 16


def test_predictions_are_compared_request_by_request() -> None:
    """A round of two requests takes 0.1 s, of which each has half."""
    other = replace(ROUND, request_id="2", accepted=4, emitted=5)
    found = stats_of((ROUND, PLAIN), (replace(ROUND, predicted_tpt=30.0), other), verify_seconds=0.1).predictions
    assert found[1, "1"].means() == pytest.approx([2 * 40.0, 80.0, 0.5, 0.75])
    assert found[1, "2"].means() == pytest.approx([2 * 50.0, 100.0, 0.5, 1.0])
    assert stats_of((PLAIN,)).predictions[1, "1"].emitted == 0, "a round without a draft predicts nothing"


def test_a_domain_without_a_figure_has_an_empty_cell() -> None:
    """Answers of one token have no decoding time, so their domain has no speed-up of decoding."""
    domains = {"code": {"knapspec": 1.5, "knapspec, decode": 2.0}, "yes or no": {"knapspec": 1.1}}
    assert [line.split() for line in domain_table(domains).splitlines()] == [
        ["knapspec", "knapspec,", "decode"],
        ["code", "1.50", "2.00"],
        ["yes", "or", "no", "1.10"],
        ["mean", "1.30", "2.00"],
        ["lowest", "1.10", "2.00"],
    ]
