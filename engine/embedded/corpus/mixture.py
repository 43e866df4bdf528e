"""Which skills a training run reads, and when: the weights of the mixture as a function of its progress."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from engine.embedded.corpus.base import Draw, Example, Skill, Split, belongs
from engine.embedded.corpus.manner import with_system
from engine.seeds import mix64

# skill: (module, attribute, share of the examples at the start, share at the end)
SKILLS: dict[str, tuple[str, str, float, float]] = {
    "echo": ("echo", "SKILL", 17, 17),
    "talk": ("talk", "SKILL", 26, 26),
    "knapserve": ("knapserve", "SKILL", 17, 17),
    "notice": ("notice", "SKILL", 25, 25),
    "sums": ("sums", "SKILL", 58, 58),
    "stories": ("stories", "SKILL", 11, 11),
    "translation": ("german", "SKILL", 84, 84),
    "sql": ("sql", "SKILL", 44, 44),
    "summaries": ("summaries", "SKILL", 50, 50),
    "fields": ("fields", "SKILL", 110, 110),
    "tools": ("tools", "SKILL", 20, 20),
    "turns": ("turns", "SKILL", 24, 24),
    "python": ("python", "SKILL", 42, 42),
    "documents": ("documents", "SKILL", 10, 10),
    "documents_long": ("documents", "LONG", 0, 2.5),
    "documents_8k": ("documents", "VERY_LONG", 0, 0.8),
}

# Of so many examples of a skill, a training run learns from the one that the network finds hardest.
CANDIDATES = {"fields": 3, "sql": 2}


@cache
def skill(name: str) -> Skill:
    """The skill called `name`; KeyError if there is none."""
    module, attribute, *_ = SKILLS[name]
    found: Skill = getattr(importlib.import_module(f"engine.embedded.corpus.{module}"), attribute)
    return found


def weights(progress: float) -> dict[str, float]:
    """Share of each skill in the examples drawn at `progress` in [0, 1], not normalised."""
    return {name: start + (end - start) * progress for name, (_, _, start, end) in SKILLS.items()}


def example(name: str, seed: int, split: Split) -> Example:
    """The example of a skill that belongs to `seed`: phrasing and combination both of `split`."""
    draw = Draw(seed, split)
    made = skill(name).make(draw)
    while not belongs(made.key, split):
        made = skill(name).make(draw)
    return made if made.tools else replace(made, messages=with_system(draw, made.messages))


def training_candidates(seed: int, first: int, count: int, progress: float) -> Iterator[list[Example]]:
    """Examples `first` … `first + count` of the endless training text that `seed` makes, and what could stand in the
    place of each: of its skill as well, made as many as `CANDIDATES` says."""
    shares = weights(progress)
    names = list(shares)
    for index in range(first, first + count):
        own = mix64(mix64(seed) ^ index)
        name = Draw(own).random.choices(names, list(shares.values()))[0]
        yield [example(name, mix64(own + i), "train") for i in range(CANDIDATES.get(name, 1))]


def training_examples(seed: int, first: int, count: int, progress: float) -> Iterator[Example]:
    """The first candidate of each."""
    return (made for made, *_ in training_candidates(seed, first, count, progress))
