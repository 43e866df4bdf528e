"""The exactly judged skills of the corpus: sums, SQL and fields are right by an independent computation."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest

from engine.embedded.corpus import fields, fields_composed, fields_composed_words, sql, sums
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
    for split, low, high in (("train", 0.15, 0.3), ("held_out", 0.05, 0.15)):
        missing = [None in fields.SKILL.make(Draw(seed, split)).expect.values() for seed in SEEDS]
        assert low < sum(missing) / len(missing) < high
    for kind in KINDS:
        assert {maker for maker, _ in kind.fields.values()} <= set(MAKERS)
        assert all(len(set(fields.slots_in(t)) & set(kind.fields)) >= 2 for s in SPLITS for t in kind.texts.of(s))


def of_template(template: str, text: str) -> bool:
    parts = re.split(r"\{\w+\}", template)
    return re.fullmatch("(.+)".join(map(re.escape, parts)).replace(r"\ a\ ", r"\ an?\ "), text, re.DOTALL) is not None


def test_fields_are_evaluated_on_held_out_templates_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = [fields.draw_text(Draw(seed)) for seed in SEEDS]
    from_template = [any(of_template(t, text.text) for t in text.kind.texts.train) for text in trained]
    assert 0.5 < sum(from_template) / len(trained) < 0.9
    monkeypatch.setattr(fields, "compose", None)
    for seed in SEEDS:
        text = fields.draw_text(Draw(seed, "held_out"))
        assert any(of_template(t, text.text) for t in text.kind.texts.held_out), text.text


def test_fields_can_be_composed_of_all_kinds() -> None:
    assert set(fields_composed_words.PARTS) == {kind.name for kind in KINDS}
    for kind in KINDS:
        parts = fields_composed.PARTS_OF[kind.name]
        assert set(parts.labels) == set(kind.fields) >= {*parts.greets, *parts.signs, *parts.own}
        for pool in (parts.values, parts.phrases, parts.sentences):
            assert set(fields_composed.by_slot(pool)) == set(kind.fields)
        for seed in range(40):
            template, made = fields_composed.compose(Draw(seed), kind)
            text = Draw(seed).expand(template, **{slot: written for slot, (written, _) in made.items()})
            assert template not in kind.texts.held_out
            assert len(made) >= 2
            assert sorted(fields.slots_in(template)) == sorted(made)  # each value once
            assert all(written in text and str(value) in text for written, value in made.values())


def test_neutral_sentences_hold_no_values() -> None:
    sentences = " ".join(fields_composed_words.NEUTRAL)
    assert not re.search(r"[\d@{}()]", sentences)
    values = {MAKERS[name](Draw(seed))[0] for name in MAKERS for seed in range(60)}
    assert not [value for value in values if re.search(rf"\b{re.escape(value)}\b", sentences)]


@pytest.mark.parametrize("split", SPLITS)
def test_nothing_of_the_sort_of_a_missing_field_is_in_the_text(split: Split) -> None:
    for seed in range(1500):
        draw = Draw(seed, split)
        text = fields.draw_text(draw)
        present = {text.kind.fields[slot][0] for slot in text.made}
        makers = dict(fields.ABSENT) | {key: maker for maker, keys in text.kind.fields.values() for key in keys}
        missing = [makers[key] for key, value in text.ask(draw).items() if value is None]
        assert len(set(missing)) == len(missing) <= (2 if split == "train" else 1)
        assert not present & set(missing)
        people = set(fields.PEOPLE)
        assert not (present & people and people & set(missing))
