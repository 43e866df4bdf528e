"""The exactly judged skills of the corpus: sums, SQL and fields are right by an independent computation."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest

from engine.embedded.corpus import fields, sql, sums
from engine.embedded.corpus.base import Draw, Example, Phrases, Skill, Split
from engine.embedded.corpus.fields_values import MAKERS
from engine.embedded.corpus.fields_words import KINDS

SKILLS: list[Skill] = [sums.SKILL, sql.SKILL, fields.SKILL]
SPLITS: tuple[Split, ...] = ("train", "held_out")
SEEDS = range(400)


def examples(skill: Skill) -> list[Example]:
    return [skill.make(Draw(seed, split)) for split in SPLITS for seed in SEEDS]


def prompt(example: Example) -> str:
    return str(example.prompt[0]["content"])


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.name)
def test_the_reference_passes_and_others_fail(skill: Skill) -> None:
    made = examples(skill)
    for example, other in pairwise(made):
        assert example.key
        assert "{" not in prompt(example) or skill.name == "fields"
        assert skill.check(example, f" {example.answer}\n")
        assert not skill.check(example, "")
        assert skill.check(example, other.answer) == (example.expect == other.expect)


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.name)
def test_a_seed_makes_one_example_of_its_split(skill: Skill, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Split] = []
    of = Phrases.of
    monkeypatch.setattr(Phrases, "of", lambda pool, split: asked.append(split) or of(pool, split))
    for split in SPLITS:
        asked.clear()
        first = [skill.make(Draw(seed, split)) for seed in range(100)]
        assert set(asked) == {split}
        assert first == [skill.make(Draw(seed, split)) for seed in range(100)]


def test_sums_are_worked_without_mistakes() -> None:
    for example in examples(sums.SKILL):
        *steps, last = example.answer.split("\n")
        assert re.fullmatch(r"[\d+*-]+", example.key)
        assert eval(example.key) == example.expect >= 0
        assert all(number in prompt(example) for number in re.findall(r"\d+", example.key))
        for left, right in re.findall(r"([\d +×-]+) = (\d+)", " ".join(steps)):
            assert eval(left.replace("×", "*")) == int(right)
        for step in steps:
            head, _, parts = step.partition(": ")
            assert eval(head.replace("×", "*")) == int(parts.rpartition("= ")[2].rstrip("."))
        assert not sums.SKILL.check(example, "\n".join([*steps, last.replace(str(example.expect), "7777")]))
        assert not sums.SKILL.check(example, f"{last}\nThe answer is {example.expect}.5")


def test_the_values_of_fields_stand_in_the_text() -> None:
    made = examples(fields.SKILL)
    for example in made:
        answer = json.loads(example.answer)
        assert list(answer.items()) == list(example.expect.items())
        assert 2 <= len(answer) <= 5
        assert "\n" not in example.answer
        assert all(value is None or str(value) in prompt(example) for value in answer.values())
        assert not fields.SKILL.check(example, json.dumps(dict(reversed(answer.items()))))
        assert not fields.SKILL.check(example, json.dumps({key: str(value) + "x" for key, value in answer.items()}))
        numbers = {k: float(v) if isinstance(v, int) else v for k, v in answer.items()}
        assert fields.SKILL.check(example, json.dumps(numbers)) == (repr(numbers) == repr(answer))
    missing = sum(None in example.expect.values() for example in made)
    assert 0.05 < missing / len(made) < 0.15
    for kind in KINDS:
        assert {maker for maker, _ in kind.fields.values()} <= set(MAKERS)
        assert all(len(set(fields.slots_in(t)) & set(kind.fields)) >= 2 for s in SPLITS for t in kind.texts.of(s))
