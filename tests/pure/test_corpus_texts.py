"""Summaries and documents: every reference is right by what stands in its prompt, and what is wrong is not accepted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

import pytest

from engine.embedded.corpus import documents, documents_words, summaries
from engine.embedded.corpus.base import Draw, Example, Phrases, Skill, Split
from engine.embedded.corpus.documents_text import token_estimate

SKILLS: tuple[Skill, ...] = (summaries.SKILL, documents.SKILL, documents.LONG, documents.VERY_LONG)
SPLITS: tuple[Split, ...] = get_args(Split)
POOLS = [
    pool for module in (summaries, documents_words) for pool in vars(module).values() if isinstance(pool, Phrases)
] + [pool for pools in summaries.FACTS.values() for pool in pools]


def made(skill: Skill, count: int) -> Iterator[Example]:
    if "_" in skill.name:
        count //= 20
    return (skill.make(Draw(seed, split)) for seed in range(count) for split in SPLITS)


def asked(*kinds: str) -> Iterator[tuple[Example, str, list[str]]]:
    """Examples on short documents with the document, its questions, and what the last answer was made of."""
    for example in made(documents.SKILL, 600):
        kind, *holds = example.expect
        if kind in kinds:
            first, *more = (m["content"] for m in example.prompt if m["role"] == "user")
            yield example, "\n".join([first, *more[-1:]]), holds


def has(text: str, words: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(words)}(?!\w)", text) is not None


@pytest.mark.parametrize("skill", SKILLS, ids=lambda skill: skill.name)
def test_references_pass_and_wrong_answers_fail(skill: Skill) -> None:
    last = ""
    for example in made(skill, 400):
        assert skill.check(example, f" {example.answer}\n")
        assert not skill.check(example, example.prompt[0]["content"])
        assert not skill.check(example, example.answer[: len(example.answer) // 2])
        assert not skill.check(example, last) or last == example.answer
        last = example.answer


@pytest.mark.parametrize("skill", SKILLS, ids=lambda skill: skill.name)
def test_a_seed_gives_one_example(skill: Skill) -> None:
    assert list(made(skill, 40)) == list(made(skill, 40))


def test_phrasings_held_out_are_not_in_training() -> None:
    class Watched(Draw):
        seen: set[str]

        def expand(self, template: str, **slots: object) -> str:
            self.seen.add(template)
            return super().expand(template, **slots)

    Watched.seen = set()
    for skill in SKILLS[:3]:
        for seed in range(1000 if skill.name in ("summaries", "documents") else 50):
            skill.make(Watched(seed, "train"))
    assert len(POOLS) > 70
    assert not Watched.seen & {template for pool in POOLS for template in pool.held_out}
    assert Watched.seen >= set(documents_words.LOOK_UP.train) | set(summaries.BEFORE.train)


def test_summaries_need_every_fact_and_are_not_copied() -> None:
    for example in made(summaries.SKILL, 300):
        text, facts = example.expect["text"], example.expect["facts"]
        assert text in example.prompt[0]["content"]
        assert all(has(text.lower(), fact.lower()) for fact in facts)
        assert 12 <= len(example.answer.split()) <= 40 <= 50 <= len(text.split()) <= 150
        for fact in facts:
            assert not summaries.SKILL.check(example, re.sub(re.escape(fact), "x", example.answer, flags=re.I))
        assert not summaries.SKILL.check(example, text)
        assert not summaries.SKILL.check(example, text[: int(0.9 * len(text))])


def test_a_value_stands_on_the_line_of_its_key_under_its_name() -> None:
    for example, prompt, (key, *pairs) in asked("one", "reverse", "two"):
        for name, value in zip(pairs[::2], pairs[1::2], strict=True):
            lines = [line for line in prompt.splitlines() if has(line, key) and has(line, value)]
            assert lines, prompt
            assert has(example.answer, value)
            assert has(example.answer, key)
            if re.search(rf'{name}"?(: |=| = )', lines[0]):
                assert any(re.search(rf'{name}"?(: |=| = )"?{re.escape(value)}\b', line) for line in lines), prompt


def test_reverse_look_ups_have_one_answer() -> None:
    for _, prompt, (key, name, value) in asked("reverse"):
        named = re.findall(rf'.*\b{name}"?(?:: |=| = | )"?{re.escape(value)}(?![\w.]).*', prompt)
        assert len([line for line in named if not line.endswith(("?", ".", "!")) and not has(line, key)]) <= 1, prompt


def test_what_is_absent_is_only_in_the_question() -> None:
    for example, prompt, (wanted, *_) in asked("absent", "listed"):
        if wanted.isdigit():
            continue  # a number may be somebody else's value too
        count = len(re.findall(rf"(?<![\w.]){re.escape(wanted)}(?!\w)", prompt))
        assert (count == 1) == (example.answer == documents.ABSENT), prompt


def test_conversations_go_on_in_training_alone() -> None:
    """Every question of one is of its split, and the last is the one that is judged."""
    for skill in (documents.SKILL, documents.LONG):
        lengths = {split: set[int]() for split in SPLITS}
        for seed in range(120):
            for split in SPLITS:
                example = skill.make(Draw(seed, split))
                lengths[split].add(len(example.messages))
                assert example.answer == example.messages[-1]["content"]
        assert lengths["held_out"] == {2}
        possible = {2 * n for n in range(1, skill.follow_ups + 2)}
        assert lengths["train"] <= possible
        assert len(lengths["train"]) > 0.7 * len(possible)


def test_sections_hold_the_entries_that_are_said() -> None:
    for example, prompt, (name, *keys) in asked("summary"):
        parts = [part.split("\n\n")[0] for part in re.split(rf"{name}[\])]?(?: ==)?\n", prompt)[1:]]
        is_prose = any(part.count(". ") > 2 for part in parts)
        assert is_prose or any(all(has(part, key) for key in keys) for part in parts), prompt
        assert len(set(keys)) == len(keys)
        assert f"\n{len(keys)} entr" in example.answer
    for example, _, (where, count, keys) in asked("count"):
        assert int(count) == len(keys.split(","))
        assert example.answer.startswith(f"{where}:\n1. ")
        assert f"\n{count} entr" in example.answer


def test_answers_quote_a_line_of_the_document_that_holds_what_they_say() -> None:
    for example, prompt, holds in asked("one", "reverse", "two"):
        by, _, quoted = example.answer.partition("> ")
        assert by == (f"The line with {holds[1]} {holds[2]}:\n" if example.expect[0] == "reverse" else "")
        quote, _, said = quoted.partition("\n\n")
        assert quote in prompt
        for value in (holds[0], *holds[2::2]):
            assert has(quote, value)
            assert has(said, value)


@pytest.mark.parametrize("skill", [documents.SKILL, documents.LONG, documents.VERY_LONG], ids=lambda skill: skill.name)
def test_prompts_stay_below_their_bound(skill: documents.Documents) -> None:
    for example in made(skill, 600):
        assert token_estimate(example.prompt[0]["content"]) <= skill.tokens


def test_targets_are_anywhere() -> None:
    depths = [
        prompt.index(holds[-1]) / len(prompt)
        for _, prompt, holds in asked("one")
        if len(prompt) > 500 and prompt.count(holds[-1]) == 1
    ]
    for low in (0.0, 0.25, 0.5, 0.75):  # less at both ends: there stand the heading and the question
        assert 0.1 < sum(low <= depth < low + 0.25 for depth in depths) / len(depths) < 0.45
