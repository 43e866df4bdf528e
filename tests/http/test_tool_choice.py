"""Allowed tools: the model is told about no others."""

from __future__ import annotations

import pytest

from tests.support.harness import CHAT, CHAT_PATH, allowed_tools, ask
from tests.support.speaking import TalkingEngine

TOOLS = [{"type": "function", "function": {"name": name}} for name in "abcd"]


@pytest.mark.parametrize("names", ["a", "d", "ca", "bd", "abcd"])
def test_allowed_tools_leave_the_others_out_of_the_prompt(names: str) -> None:
    engine = TalkingEngine()
    body = CHAT | {"tools": TOOLS, "tool_choice": allowed_tools(*names)}
    assert ask(engine, "POST", CHAT_PATH, json=body).status_code == 200
    (rendered,) = engine.tokenizer.rendered
    assert rendered["tools"] == [tool for tool in TOOLS if tool["function"]["name"] in names]
    assert engine.submitted[0].sampling.grammar is None


def test_one_of_the_allowed_tools_may_be_required() -> None:
    engine = TalkingEngine()
    for body in (
        CHAT | {"tools": TOOLS, "tool_choice": allowed_tools("c", "a", mode="required")},
        CHAT | {"tools": [TOOLS[0], TOOLS[2]], "tool_choice": "required"},
    ):
        assert ask(engine, "POST", CHAT_PATH, json=body).status_code == 200
    some, all_of_two = engine.submitted
    assert some.sampling.grammar is not None
    assert (some.prompt, some.sampling.grammar) == (all_of_two.prompt, all_of_two.sampling.grammar)


def test_an_answer_may_have_calls_or_the_format_with_allowed_tools() -> None:
    engine = TalkingEngine()
    format = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    body = CHAT | {"tools": TOOLS, "tool_choice": allowed_tools("b"), "response_format": format}
    assert ask(engine, "POST", CHAT_PATH, json=body).status_code == 200
    grammar = engine.submitted[0].sampling.grammar
    assert grammar is not None
    assert '{\\"name\\": \\"b\\"' in grammar
    assert '{\\"name\\": \\"a\\"' not in grammar
