"""Stop strings in a text that arrives in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from engine.text.markers import StopStrings
from tests.support.examples import examples
from tests.support.stop_strings import cut_text

LETTERS = "aab"  # few, so that stop strings overlap themselves, each other and the cuts
TEXTS = st.text(LETTERS, max_size=16)
STOPS = st.lists(st.text(LETTERS, min_size=1, max_size=5), max_size=4).map(tuple)
CUTS = st.lists(st.integers(0, 16), max_size=16)


def pieces(text: str, cuts: Sequence[int]) -> list[str]:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


def shown(parts: Sequence[str], stops: tuple[str, ...]) -> str:
    """Return the text that is shown. It is never taken back, and what may begin no stop string is shown at once."""
    watch, so_far, said = StopStrings(stops), "", ""
    for part in parts:
        said += part
        so_far += watch.push(part)
        assert said.startswith(so_far)
        assert not any(stop in so_far for stop in stops)
        assert (watch.found is not None) == any(stop in said for stop in stops)
        held = said[len(so_far) :]
        assert watch.found is not None or not held or any(stop.startswith(held) for stop in stops)
    return so_far + watch.flush()


@examples(500)
@given(TEXTS, CUTS, STOPS)
def test_text_ends_before_the_stop_string_that_is_complete_first(
    text: str, cuts: list[int], stops: tuple[str, ...]
) -> None:
    assert shown(pieces(text, cuts), stops) == cut_text(text, stops)


@examples(500)
@given(TEXTS, CUTS, STOPS, st.integers(0, 16), st.booleans())
def test_a_stop_string_counts_only_if_it_ends_after_the_minimum(
    text: str, cuts: list[int], stops: tuple[str, ...], from_: int, include: bool
) -> None:
    """No stop string ends within the first pieces (`min_tokens`); one that begins there may end behind them."""
    assume(not any(inner in outer[1:] for inner in stops for outer in stops))
    watch, said, so_far, free = StopStrings(stops, include=include), "", "", 0
    for i, part in enumerate(pieces(text, cuts)):
        so_far += watch.push(part, may_stop=i >= from_)
        said += part
        free = len(said) if i < from_ else free
    ends = [(where + len(stop), where) for stop in stops for where in range(len(text)) if text.startswith(stop, where)]
    found = min((end for end in ends if end[0] > free), default=None)
    assert (watch.found is not None) == (found is not None)
    if found is None:
        assert so_far + watch.flush() == text
    else:
        assert so_far == text[: found[0] if include else max(found[1], free)]


@examples(500)
@given(st.lists(st.tuples(TEXTS, st.booleans()), max_size=6), STOPS, st.integers(0, 6), st.booleans())
def test_text_that_is_not_shown_may_be_part_of_a_stop_string(
    parts: list[tuple[str, bool]], stops: tuple[str, ...], from_: int, include: bool
) -> None:
    """What is shown is the text without it, up to where the whole text would end."""
    watch, all_shown = StopStrings(stops, include=include), StopStrings(stops)
    so_far, whole = "", ""
    for i, (part, shown) in enumerate(parts):
        so_far += watch.push(part, may_stop=i >= from_, shown=shown)
        whole += all_shown.push(part, may_stop=i >= from_)
    so_far, whole = so_far + watch.flush(), whole + all_shown.flush()
    visible = [shown for part, shown in parts for _ in part]
    expected = "".join(letter for letter, shown in zip(whole, visible, strict=False) if shown)
    assert watch.found == all_shown.found
    if include and watch.found is not None:
        assert so_far.startswith(expected)
        assert (expected + watch.found).endswith(so_far[len(expected) :])
    else:
        assert so_far == expected
