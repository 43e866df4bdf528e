"""Sums with worked steps: bare arithmetic and stories.

The steps are of one format. An operand is split into its decimal places, largest first, so that every partial
operation is easy:

    55 + 19: 55 + 10 = 65, 65 + 9 = 74.
    74 - 30: 74 - 30 = 44.
    The answer is 44 cards.

    6 × 14: 6 × 10 = 60, 6 × 4 = 24, 60 + 24 = 84.
"""

from __future__ import annotations

import re

from engine.embedded.corpus.base import Draw, Example, chat
from engine.embedded.corpus.sums_bare import bare, bare_chain, bare_in_words
from engine.embedded.corpus.sums_steps import key, result, worked
from engine.embedded.corpus.sums_stories import pair_story, product_story, story

NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*")
KINDS = (*(story,) * 12, *(bare,) * 6, bare_in_words, bare_in_words, bare_chain, pair_story, pair_story, product_story)


class Sums:
    name = "sums"

    def make(self, draw: Draw) -> Example:
        prompt, terms, noun = draw.choice(KINDS)(draw)
        return Example(self.name, chat(prompt, worked(terms, noun)), key(terms), result(terms))

    def check(self, example: Example, answer: str) -> bool:
        """The last number of the last line is the result."""
        numbers = NUMBER.findall(answer.strip().rpartition("\n")[2])
        return bool(numbers) and numbers[-1] == str(example.expect)


SKILL = Sums()
