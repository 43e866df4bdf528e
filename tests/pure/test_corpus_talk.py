"""Small talk, questions about KnapServe and the honest notice: who answers what, and what is held out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from engine.embedded.corpus import knapserve, notice, notice_nearby, notice_topics, notice_wishes, talk
from engine.embedded.corpus.base import Draw, Example, Phrases, Skill, Split, belongs, fill
from engine.embedded.corpus.knapserve_facts import HOW_TO, WHAT_IS
from engine.embedded.corpus.notice_questions import FOREIGN, SHORT, WRITTEN
from engine.embedded.corpus.talk_intents import INTENTS
from server.cli import main

SKILLS: tuple[Skill, ...] = (talk.SKILL, knapserve.SKILL, notice.SKILL)
SPLITS: tuple[Split, ...] = ("train", "held_out")
ALTERNATIVES = re.compile(r"\(([^()]*)\)")


def made(skill: Skill, seed: int, split: Split) -> Example:
    draw = Draw(seed, split)
    example = skill.make(draw)
    while not belongs(example.key, split):
        example = skill.make(draw)
    return example


def plain(text: str) -> str:
    return text.lower().strip(" .?!")


def expansions(template: str) -> Iterator[str]:
    found = ALTERNATIVES.search(template)
    if found is None:
        yield plain(template)
        return
    for alternative in found.group(1).split("|"):
        yield from expansions(template[: found.start()] + alternative + template[found.end() :])


def all_of(pool: Phrases, split: Split) -> set[str]:
    return {text for template in pool.of(split) for text in expansions(template)}


def fixed_phrasings(split: Split) -> Iterator[tuple[str, str]]:
    """Every way to ask, with its answer, of the skills whose answers are fixed."""
    for intent in INTENTS:
        yield from ((text, intent.answer) for text in all_of(intent.phrases, split))
    for fact in knapserve.FACTS:
        yield from ((text, fact.answer) for text in all_of(fact.phrases, split))
        for pool, slot, values in ((WHAT_IS, "term", fact.terms), (HOW_TO, "deed", fact.deeds)):
            yield from ((plain(fill(text, {slot: value})), fact.answer) for text in pool.of(split) for value in values)


@pytest.mark.parametrize("skill", SKILLS, ids=lambda skill: skill.name)
@pytest.mark.parametrize("split", SPLITS)
def test_reference_answers_pass_and_others_fail(skill: Skill, split: Split) -> None:
    for seed in range(400):
        example = made(skill, seed, split)
        assert example.skill == skill.name
        assert all(message["content"] for message in example.messages)
        assert [message["role"] for message in example.messages[-2:]] == ["user", "assistant"]
        assert skill.check(example, f"\n{example.answer} ")
        assert example == made(skill, seed, split)
        for wrong in ("", "Yes.", example.answer[:-20], "Certainly! " + example.answer, "The answer is 7."):
            assert not skill.check(example, wrong)


def test_answers_differ_and_the_skills_refuse_those_of_the_others() -> None:
    answers = [intent.answer for intent in INTENTS] + [fact.answer for fact in knapserve.FACTS] + [notice.NOTICE]
    assert len(set(answers)) == len(answers)
    for one in SKILLS:
        for other in SKILLS:
            for seed in range(100):
                right = other is one
                assert other.check(made(other, seed, "train"), made(one, seed, "train").answer) == right


def test_a_question_has_one_answer_and_one_split() -> None:
    owner: dict[str, tuple[str, Split]] = {}
    for split in SPLITS:
        for text, answer in fixed_phrasings(split):
            assert owner.setdefault(text, (answer, split)) == (answer, split), text
    for question in (*WRITTEN, *FOREIGN, *SHORT):
        assert plain(question) not in owner, question
    prompts = {plain(made(notice.SKILL, seed, split).prompt[-1]["content"]) for seed in range(5000) for split in SPLITS}
    assert not prompts & owner.keys()


def test_held_out_templates_of_the_notice_are_in_no_pool_that_is_trained_on() -> None:
    pools = [value for module in (notice_nearby, notice_topics) for value in vars(module).values()]
    pools = [value for value in pools if isinstance(value, Phrases)]
    for category in (*notice_topics.WORLD, *notice_wishes.WISHES):
        pools += [category.form, category.phrases]
    trained = set().union(*(all_of(pool, "train") for pool in pools))
    assert not trained & set().union(*(all_of(pool, "held_out") for pool in pools))


def test_held_out_prompts_are_not_trained_on() -> None:
    trained = {plain(made(notice.SKILL, seed, "train").prompt[-1]["content"]) for seed in range(20_000)}
    held_out = {plain(made(notice.SKILL, seed, "held_out").prompt[-1]["content"]) for seed in range(2000)}
    assert len(held_out & trained) < 0.01 * len(held_out)


def test_flags_in_answers_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) | {"--version"}
    for answer in [fact.answer for fact in knapserve.FACTS] + [notice.NOTICE]:
        assert set(re.findall(r"--[a-z-]+", answer)) <= known, answer
