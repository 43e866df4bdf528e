"""The definition of stop strings, over a whole text at once."""

from __future__ import annotations

from collections.abc import Sequence


def cut_text(text: str, stops: Sequence[str]) -> str:
    """The text before the stop string that ends first; of those that end together, the longest."""
    found = [(where + len(stop), where) for stop in stops if (where := text.find(stop)) >= 0]
    return text[: min(found)[1]] if found else text
