"""Tool calls, chats that refer back, and Python functions: the corpus skills tools, turns and python."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from engine.embedded.corpus import python, tools, turns
from engine.embedded.corpus.base import Draw, Example, Phrases, Skill, Split, belongs
from engine.embedded.corpus.python_sandbox import Refused, run
from engine.embedded.corpus.tools_values import CURRENCIES
from engine.embedded.corpus.turns_facts import FACTS

SPLITS: tuple[Split, Split] = ("train", "held_out")
SKILLS: dict[str, Skill] = {skill.name: skill for skill in (tools.SKILL, turns.SKILL, python.SKILL)}
COUNT = 300


def made(skill: Skill, split: Split = "train", count: int = COUNT) -> list[Example]:
    return [skill.make(Draw(seed, split)) for seed in range(count)]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", SKILLS)
def test_only_right_answers_pass(name: str, split: Split) -> None:
    skill, examples = SKILLS[name], made(SKILLS[name], split)
    assert examples == made(skill, split)
    for example, other in pairwise(examples):
        assert example.skill == name
        assert [m["role"] for m in example.messages][-2:] in (["user", "assistant"], ["tool", "assistant"])
        assert skill.check(example, f"\n{example.answer} ")
        assert not skill.check(example, example.answer + " Done.")
        assert not skill.check(example, "")
        if other.answer != example.answer:
            assert not skill.check(example, other.answer)


@pytest.mark.parametrize("name", SKILLS)
def test_texts_are_tidy_and_keys_are_of_both_splits(name: str) -> None:
    examples = made(SKILLS[name], count=2000)
    for example in examples:
        for message in example.messages:
            text = message["content"]
            assert text == text.strip()
            assert not any(wrong in text.split("```")[0] for wrong in ("(|", "|)", " ?", " .", ".."))
            assert message["role"] == "tool" or "  " not in text.split("```")[0]
    shares = Counter(belongs(example.key, "held_out") for example in examples if example.key)
    assert 0.05 < shares[True] / shares.total() < 0.25


def pools() -> list[Phrases]:
    found = [tool.requests for tool in tools.TOOLS] + [pool for tool in tools.TOOLS for pool in tool.optional.values()]
    found += [fact.tells for fact in FACTS] + [question.asks for fact in FACTS for question in fact.questions]
    found += [task.phrases for task in python.TASKS]
    for module in (tools, turns, python):
        found += [value for value in vars(module).values() if isinstance(value, Phrases)]
    return found


def test_held_out_phrasings_never_appear_in_train() -> None:
    for pool in pools():
        assert not set(pool.train) & set(pool.held_out)
        assert len(pool.train) + len(pool.held_out) == len({*pool.train, *pool.held_out})
        assert len(pool.train) >= 6


def test_calls_follow_the_schema_and_their_values_are_in_the_prompt() -> None:
    for example in made(tools.SKILL, count=1000):
        schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in example.tools}
        assert 1 <= len(schemas) == len(example.tools) <= 4
        for call in example.expect or []:
            given, schema = call["arguments"], schemas[call["name"]]
            assert list(given) == [name for name in schema["properties"] if name in given]
            assert set(schema["required"]) <= set(given)
            for name, value in given.items():
                assert schema["properties"][name]["type"] == kind_of(value, schema["properties"][name]["type"])
                assert value in schema["properties"][name].get("enum", [value])
                assert isinstance(value, bool) or value in CURRENCIES or str(value) in example.prompt[-1]["content"]


def kind_of(value: object, wanted: str) -> str:
    number = wanted if wanted == "number" else "integer"
    return {str: "string", bool: "boolean", int: number, float: "number"}[type(value)]


def test_a_call_with_other_arguments_or_text_fails() -> None:
    example = next(e for e in made(tools.SKILL) if e.expect and len(e.expect) == 2 and e.expect[0] != e.expect[1])
    first, second = (tools.show_calls([call]) for call in example.expect)
    assert tools.SKILL.check(example, f"{first}\n{second}")
    assert not tools.SKILL.check(example, f"{second}\n{first}")
    assert not tools.SKILL.check(example, first)
    assert not tools.SKILL.check(example, f"Sure! {example.answer}")
    name = example.expect[0]["name"]
    assert not tools.SKILL.check(example, example.answer.replace(name, name + "s"))
    assert tools.SKILL.check(example, example.answer.replace('", "', '",  "'))


def test_true_is_not_one() -> None:
    call = {"name": "wifi", "arguments": {"on": True}}
    example = replace(made(tools.SKILL, count=1)[0], expect=[call])
    assert tools.SKILL.check(example, tools.show_calls([call]))
    assert not tools.SKILL.check(example, tools.show_calls([{"name": "wifi", "arguments": {"on": 1}}]))


def test_answers_hold_what_the_tool_said() -> None:
    for example in made(tools.SKILL, count=1000):
        result = example.prompt[-1]
        if result["role"] == "tool" and "error" in (said := json.loads(result["content"])):
            assert example.answer.endswith(f"That did not work: {said['error']}.")


BEGINNINGS = {"city": "You live in ", "name": "Your name is ", "job": "You work as a "}


def test_questions_are_answered_by_what_was_told_last() -> None:
    for example in made(turns.SKILL, count=1000):
        users = [m["content"] for m in example.prompt if m["role"] == "user"]
        stated = [s for m in example.prompt if m["role"] == "assistant" for s in m["content"].split(". ")]
        subject, _, value = example.key.partition(" ")
        if subject in BEGINNINGS and ". " not in example.answer:
            assert any(value in text for text in users)
            known = [s.rstrip(".") for s in stated if s.startswith(BEGINNINGS[subject])]
            assert example.answer == f"{BEGINNINGS[subject]}{value}."
            assert not known or known[-1] == example.answer[:-1]
        if subject == "again":
            assert example.answer == example.messages[-3]["content"]
        if subject == "first":
            assert example.answer == f'Your first message was: "{users[0]}"'
        if subject == "last":
            assert example.answer == f'Your last message was: "{users[-2]}"'


def test_every_task_runs_by_all_its_names() -> None:
    owners: dict[str, str] = {}
    for task in python.TASKS:
        for template in (*task.phrases.train, *task.phrases.held_out):
            assert owners.setdefault(template, task.names[0]) == task.names[0]
        for seed in range(4):
            draw = Draw(seed)
            constant = task.constant(draw) if task.constant else None
            names = python._parameter_names(draw, task) if len(task.parameters) < 3 else task.parameters
            plain = run(task.source("f", task.parameters, constant), "f", calls := task.tried(constant))
            assert run(task.source("g", names, constant), "g", calls) == plain
            assert task.constant is None or "CONST" not in task.source("g", names, constant)
    assert len({task.names[0] for task in python.TASKS}) == len(python.TASKS) > 90


@pytest.mark.parametrize(
    ("text", "what", "said"),
    [
        ("Write a function to sort a list.", "sort a list", "Write a function (that|which) sorts a list."),
        ("a function called f to multiply a and b", "multiply a and b", ".* f (that|which) multiplies a and b"),
        ("Give me code to do it, please.", "do it", "Give me code (that|which) does it, please."),
        ("How would you code f if it has to sort a list?", "sort a list", None),
        ("Show me how to sort a list in Python.", "sort a list", None),
    ],
)
def test_a_function_may_be_asked_for_that_does_something(text: str, what: str, said: str | None) -> None:
    found = python._that(Draw(1), text, what)
    assert re.fullmatch(said, found) if said else found == text


def test_what_is_held_out_asks_for_functions_as_before() -> None:
    train, held_out = (" ".join(e.prompt[-1]["content"] for e in made(python.SKILL, s)) for s in ("train", "held_out"))
    assert re.search(r"unction (that|which) (?!can\b|should\b|has\b|will\b)", train)
    assert not re.search(r"unction (that|which) (returns|finds|gives|checks|counts)", held_out)


@pytest.mark.parametrize(
    "body",
    [
        *("import os", "().__class__", "open('x')", "eval('1')", "f = (i for i in x); f.gi_frame", "'{0.a}'.format(x)"),
        *("while True: pass", "while True: x *= 9", "x = 10 ** 10 ** 10", "x = [0] * 10 ** 9", "x = '%9999999d' % 1"),
        *(
            "for i in range(10 ** 9): pass",
            "try: pass\n except: pass",
            "f()",
            "x = f'{x:9999999}'",
            "x = [x]\n while 1: x += x",
        ),
    ],
)
def test_harmful_code_is_stopped(body: str) -> None:
    with pytest.raises((Refused, NameError, RecursionError)):
        run("def f(x=1):\n " + body, "f", [[]])
