"""Questions about KnapServe itself. One fixed answer for each fact."""

from __future__ import annotations

from engine.embedded.corpus.base import Draw, Example, chat
from engine.embedded.corpus.knapserve_facts import HOW_TO, IDEAS, RUNNING, WHAT_IS, Fact
from engine.embedded.corpus.knapserve_requests import MEASURING, REQUESTS
from engine.embedded.corpus.manner import typed

FACTS = IDEAS + RUNNING + REQUESTS + MEASURING
OWN_SHARE = 0.5  # of the phrasings of a fact that could also be asked for with `WHAT_IS` or `HOW_TO`


class KnapServe:
    name = "knapserve"

    def make(self, draw: Draw) -> Example:
        fact = draw.choice(FACTS)
        user = typed(draw, _question(draw, fact))
        return Example(self.name, chat(user, fact.answer), expect=fact.answer)

    def check(self, example: Example, answer: str) -> bool:
        return bool(answer.strip() == example.expect)


def _question(draw: Draw, fact: Fact) -> str:
    general = len(fact.terms) + len(fact.deeds)
    if not general or draw.chance(OWN_SHARE):
        return draw.phrase(fact.phrases)
    pick = draw.integer(1, general)
    if pick <= len(fact.terms):
        question = draw.phrase(WHAT_IS, term=fact.terms[pick - 1])
    else:
        question = draw.phrase(HOW_TO, deed=fact.deeds[pick - 1 - len(fact.terms)])
    return question[0].upper() + question[1:]


SKILL = KnapServe()
