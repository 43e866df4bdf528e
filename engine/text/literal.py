"""Keep text that spells a chat template's markers (`<|im_end|>`) from becoming these markers.

The marker is broken by a character that no text contains. Once the chat is rendered, the parts between these characters
are tokenised one by one: none of them contains the whole marker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

BREAK = "\ufdd0"  # Unicode reserves this character for use within programs
_REPLACEMENT = "\ufffd"


class LiteralText:
    """Breaks markers. All of them in the texts of others; in the assistant's own only the special tokens."""

    def __init__(self, special: Iterable[str], others: Iterable[str], split: Callable[[str], list[str]]) -> None:
        """`split` cuts a text into the words that the tokenizer never joins."""
        special = list(special)
        self._special = _pattern(special)
        self._all = _pattern([*special, *others])
        self._split = cache(split)

    def messages(self, messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Break the markers that a chat's messages spell."""
        return [
            {
                name: value if name == "role" else self._broken(value, own=message["role"] == "assistant")
                for name, value in message.items()
            }
            for message in messages
        ]

    def values(self, values: Any) -> Any:
        """Break the markers that tools or template options spell, at any depth."""
        return self._broken(values, own=False)

    def _broken(self, value: Any, own: bool) -> Any:
        if isinstance(value, str):
            pattern = self._special if own else self._all
            return pattern.sub(self._break, value.replace(BREAK, _REPLACEMENT))
        if isinstance(value, dict):
            return {self._broken(key, own): self._broken(inner, own) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._broken(inner, own) for inner in value]
        return value

    def _break(self, found: re.Match[str]) -> str:
        marker = found[0]
        # Where the tokenizer splits the text in any case, the parts have the tokens of the whole.
        words = self._split(marker)
        first = len(words[0]) if len(words) > 1 else 1
        return marker[:first] + BREAK + marker[first:]


def _pattern(markers: list[str]) -> re.Pattern[str]:
    """Match any of these, the longest first; nothing if there are none."""
    ordered = sorted(filter(None, markers), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered)) or r"(?!)")
