"""Drafts looked up in earlier text: matches, their statistics, and when they are drafted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.checkpoints.shapes import shape
from engine.core.request import Figures
from engine.draft.costs import CostModel
from engine.draft.lookup import MAX_COPIED, AgreementCounts, Lookup, Match, plan_lookup
from engine.step import Plan
from engine.types import RequestRound
from tests.support.cores import made_up_profile
from tests.support.examples import examples

COSTS = CostModel(shape("smollm2-135m"), made_up_profile(verify_slope=0.1))
PASS = COSTS.verify_pass(1, [100])
PLAIN = Plan(COSTS.spec.whole, 0, predicted_tpt=1 / PASS, plain_tpt=1 / PASS)


def longest(text: Sequence[int]) -> tuple[int, int]:
    """Length of the longest match of the end, at most 16 tokens, and its newest position; by brute force."""
    best, place = 0, 0
    for end in range(2, len(text)):
        match = 0
        while match < min(16, end) and text[end - 1 - match] == text[-1 - match]:
            match += 1
        if match >= 2 and match >= best:
            best, place = match, end
    return best, place


def find(lookup: Lookup, text: Sequence[int]) -> Match | None:
    """The match of the text's end."""
    lookup.extend(text)
    return lookup.match


@examples(150)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.data())
def test_the_longest_match_is_found_as_the_text_grows(text: list[int], data: st.DataObject) -> None:
    """Among the newest sixteen positions of a pair, however many tokens arrive at a time."""
    lookup, end = Lookup(AgreementCounts()), 1
    while True:
        found = find(lookup, text[:end])
        match, place = longest(text[:end])
        pairs = [i for i in range(2, end) if text[i - 2 : i] == text[end - 2 : end]]
        if len(pairs) <= 16:
            assert (found.length if found else 0) == match
            assert not found or found.tokens == tuple(text[place:end][:MAX_COPIED])
        if end == len(text):
            return
        end = min(end + data.draw(st.integers(1, 4)), len(text))


def test_a_match_is_scored_against_the_tokens_that_follow() -> None:
    """Tokens are scored up to the first that differs, by the number of agreeing tokens before each."""
    pool = AgreementCounts()
    lookup = Lookup(pool)
    text = [1, 2, 3, 4, 5, 6, 1, 2]
    assert find(lookup, text) is not None
    find(lookup, [*text, 3, 4, 9])
    assert pool.cells[:2] == [[0, 1], [1, 1]]
    assert find(lookup, [*text, 3, 4, 9, 8]) is None
    find(lookup, [*text, 3, 4, 9, 8, 7])
    assert pool.cells[:2] == [[0, 1], [1, 1]], "without a match nothing is counted"


def test_a_request_trusts_the_pool_until_it_has_evidence_of_its_own() -> None:
    pool = AgreementCounts()
    pair = Match((3,), 2, "lookup")
    for _ in range(100):
        pool.add(pair.bin_after(0), True)
    lookup = Lookup(pool)
    assert lookup.agreement(pair, 1)[0] > 0.9
    text = [1, 2, 3, 1, 2]
    for word in range(4, 30):
        find(lookup, text)
        text += [word, 1, 2]
    assert lookup.agreement(pair, 1)[0] < 0.2
    assert Lookup(pool).agreement(pair, 1)[0] > lookup.agreement(pair, 1)[0]


def finding(match: int, share: float, tokens: int = MAX_COPIED) -> Lookup:
    """A request whose text ends with a match of `match` tokens, and a pool in which matches agree at rate `share`."""
    pool = AgreementCounts()
    for length in range(2, 30):
        for i in range(40):
            pool.add(Match((), length, "lookup").bin_after(0), i < 40 * share)
    lookup = Lookup(pool)
    words = list(range(100, 100 + match + tokens))
    find(lookup, [*words, *words[:match]])
    return lookup


@pytest.mark.parametrize("match", [2, 6, 14])
def test_a_match_is_drafted_only_if_it_predicts_more_speed_than_the_plan(match: int) -> None:
    made = plan_lookup(finding(match, 1.0), 99, PLAIN, [100], COSTS)
    assert made is not None
    assert made.gamma > 5
    assert made.predicted_tpt > 3 / PASS  # type: ignore[operator]
    assert made.expected <= made.gamma + 1
    assert plan_lookup(finding(match, 0.0), 99, PLAIN, [100], COSTS) is None
    assert plan_lookup(finding(match, 1.0), 0, PLAIN, [100], COSTS) is None
    fast = Plan(COSTS.spec.whole, 4, predicted_tpt=20 / PASS, expected=5.0)
    assert plan_lookup(finding(match, 1.0), 99, fast, [100], COSTS) is None


def test_drafts_are_shorter_where_fewer_tokens_agree() -> None:
    lengths = [
        made.gamma if (made := plan_lookup(finding(4, share), 99, PLAIN, [100], COSTS)) else 0
        for share in (1, 0.6, 0.2)
    ]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]


def test_requests_in_a_batch_draft_nothing_where_rows_are_dear() -> None:
    """Each further row costs more than it gains in a batch."""
    costs = CostModel(COSTS.spec, made_up_profile(verify_slope=1.0))
    seconds = costs.verify_pass(8, [100] * 8)
    plain = Plan(costs.spec.whole, 0, predicted_tpt=1 / seconds)
    assert plan_lookup(finding(4, 0.7), 99, plain, [100] * 8, costs) is None
    seconds = COSTS.verify_pass(8, [100] * 8)
    cheap = plan_lookup(finding(4, 0.9), 99, Plan(costs.spec.whole, 0, predicted_tpt=1 / seconds), [100] * 8, COSTS)
    assert cheap is not None


def test_old_counts_fade() -> None:
    counts = AgreementCounts()
    for _ in range(1000):
        counts.add(0, True)
    for _ in range(1000):
        counts.add(0, False)
    assert counts.mean(0, counts) < 0.1
    assert sum(counts.cells[0]) <= 257


def following(expected: list[int], *answers: list[int], own: bool = False) -> tuple[int, ...]:
    """Tokens found after the last of `answers`, which the request generated in turn after the prompt."""
    lookup = Lookup(AgreementCounts(), expected, own=own)
    found = None
    for answer in answers:
        found = find(lookup, [50, 51, *answer])
    return found.tokens if found else ()


def test_a_prediction_is_matched_again_after_a_deviation() -> None:
    expected = [1, 2, 3, 4, 5, 6, 2, 3, 9]
    assert following(expected, [1]) == (2, 3, 4, 5, 6, 2, 3, 9), "the answer begins as predicted"
    assert following(expected, [3]) == ()
    assert following(expected, [1], [1, 2, 7]) == ()
    assert following(expected, [1], [1, 2, 7, 5]) == (), "one word in common is not enough"
    assert following(expected, [1], [1, 2, 7, 5, 6]) == (2, 3, 9)
    assert following(expected, [5], [5, 6, 2, 3]) == (9,), "the longer suffix counts"
    assert following(expected, [3], [3, 9]) == ()


def test_of_equal_matches_the_next_one_in_the_prediction_is_taken() -> None:
    expected = [1, 2, 3, 1, 2, 4, 1, 2, 5]
    assert following(expected, [1]) == tuple(expected[1:])
    assert following(expected, [1], [1, 2, 3], [1, 2, 3, 7, 1, 2])[0] == 4
    assert following(expected, [8], [8, 1, 2], [8, 1, 2, 9, 1, 2])[0] == 3


def test_the_position_in_a_repetitive_prediction_advances_with_the_answer() -> None:
    """The prediction has one token forty times, then others: they are expected after forty of it."""
    token, end = 1, (8, 9)
    lookup = Lookup(AgreementCounts(), [token] * 40 + [*end], own=False)
    text = [7]
    find(lookup, text)
    for _ in range(40):
        text.append(token)
        found = find(lookup, text)
    assert found is not None
    assert found.tokens == end


def test_a_prediction_comes_before_a_match_in_the_prompt() -> None:
    expected = [1, 2, 3, 4]
    lookup = Lookup(AgreementCounts(), expected)
    assert find(lookup, [1, 2, 6, 9, 1, 2]) == Match((3, 4), 2, "prediction")
    assert find(Lookup(AgreementCounts()), [1, 2, 6, 9, 1, 2]) == Match((6, 9, 1, 2), 2, "lookup")
    assert following(expected, [7, 8, 9, 7, 8], own=True) == (9, 7, 8)
    assert following(expected, [7, 8, 9, 7, 8], own=False) == (), "a policy that looks nothing up"


def test_beside_a_policy_without_predictions_a_match_must_beat_plain_decoding() -> None:
    """`fixed` and `layerskip` predict no speed: a match that rarely agrees must not replace their plan."""
    fixed = Plan(COSTS.spec.whole, 4)
    assert plan_lookup(finding(4, 1.0), 99, fixed, [100], COSTS) is not None
    for requests in (1, 2, 8):
        assert plan_lookup(finding(4, 0.0), 99, fixed, [100] * requests, COSTS) is None


def test_a_prediction_that_never_agrees_is_given_up() -> None:
    """The prediction contains every other pair of the answer, but nothing that follows."""
    lookup = Lookup(AgreementCounts(), [1, 2, 3, 1, 2, 4] * 4, own=False)
    answer, drafted = [1, 2], 0
    for token in range(60, 100):
        find(lookup, [50, *answer])
        drafted += plan_lookup(lookup, 99, PLAIN, [100], COSTS) is not None
        answer += [token, 1, 2]
    assert 0 < drafted <= 8


def test_a_copied_draft_counts_as_looked_up_and_skips_nothing() -> None:
    figures = Figures()
    for source, passes in (("lookup", 0), ("model", 2)):
        figures.add(RequestRound("a", "knapspec", 3, 2, 2, passes, 50, 4, 6, None, None, source=source))
    assert (figures.drafted, figures.looked_up, figures.draft_passes) == (4, 2, 2)
    assert (figures.skipped_attention, figures.skipped_mlp) == (2 * 4, 2 * 6)
