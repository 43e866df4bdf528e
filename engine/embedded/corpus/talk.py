"""Small talk: greetings, thanks, who are you, moods. One fixed answer for each intent."""

from __future__ import annotations

from engine.embedded.corpus.base import Draw, Example, chat
from engine.embedded.corpus.manner import typed
from engine.embedded.corpus.talk_intents import FAVOURITES, INTENTS, OTHER_MODELS


class Talk:
    name = "talk"

    def make(self, draw: Draw) -> Example:
        intent = draw.choice(INTENTS)
        slots = {"other": draw.choice(OTHER_MODELS), "thing": draw.choice(FAVOURITES)}
        user = typed(draw, draw.phrase(intent.phrases, **slots), greeted=intent.greeted)
        return Example(self.name, chat(user, intent.answer), expect=intent.answer)

    def check(self, example: Example, answer: str) -> bool:
        return bool(answer.strip() == example.expect)


SKILL = Talk()
