"""The honest notice: asked for what it has not learned, the model says so, and how to load a real one."""

from __future__ import annotations

from collections.abc import Sequence

from engine.embedded.corpus.base import Draw, Example, chat
from engine.embedded.corpus.manner import typed
from engine.embedded.corpus.notice_further import FURTHER_SHORT, FURTHER_WRITTEN
from engine.embedded.corpus.notice_nearby import NEARBY, UNKNOWN
from engine.embedded.corpus.notice_questions import FOREIGN, SHORT, WRITTEN
from engine.embedded.corpus.notice_topics import ABOUT, WORLD
from engine.embedded.corpus.notice_wishes import WISHES

NOTICE = (
    "I am KnapServe's built-in demonstration model, and that is beyond me. I can do sums, tell short stories, "
    "translate simple English sentences into German, write SQL for a given schema, summarise a text, extract fields as "
    "JSON, write short Python functions and call tools. For anything else, load a real model: knapserve serve --model "
    "PATH_OR_HUB_ID"
)


def topic(draw: Draw) -> tuple[str, str]:
    """A question about one of the topics."""
    chosen = draw.choice(WORLD + WISHES)
    x, y = draw.sample(chosen.topics, 2)
    kind = draw.integer(0, 9)
    if kind < 5:
        phrases = chosen.phrases
    elif kind < 8 or chosen in WISHES:
        phrases = chosen.form
    else:
        phrases = ABOUT
    question = draw.phrase(phrases, x=x, y=y)
    return question[0].upper() + question[1:], x


def one_of(draw: Draw, texts: Sequence[str], further: Sequence[str]) -> tuple[str, str]:
    """One of the texts, each a combination of its own; `further` ones are for training alone."""
    place = draw.integer(0, len(texts) + (len(further) if draw.split == "train" else 0) - 1)
    return (texts[place], texts[place]) if place < len(texts) else (further[place - len(texts)], "")


def written(draw: Draw) -> tuple[str, str]:
    return one_of(draw, WRITTEN, FURTHER_WRITTEN)


def foreign(draw: Draw) -> tuple[str, str]:
    text = draw.choice(FOREIGN)
    return text, text


def short(draw: Draw) -> tuple[str, str]:
    return one_of(draw, SHORT, FURTHER_SHORT)


def nearby(draw: Draw) -> tuple[str, str]:
    return draw.choice(NEARBY)(draw)


def unknown(draw: Draw) -> tuple[str, str]:
    return draw.choice(UNKNOWN)(draw)


KINDS = {topic: 32, nearby: 30, written: 20, unknown: 10, foreign: 4, short: 4}


class Notice:
    name = "notice"

    def make(self, draw: Draw) -> Example:
        (kind,) = draw.random.choices(tuple(KINDS), tuple(KINDS.values()))
        text, key = kind(draw)
        user = typed(draw, text, greeted=kind in (topic, nearby, written))
        return Example(self.name, chat(user, NOTICE), key)

    def check(self, example: Example, answer: str) -> bool:
        answer = answer.strip()
        known = "built-in demonstration model" in answer and "--model" in answer
        return known and answer.startswith("I am KnapServe's built-in")


SKILL = Notice()
