"""The form of an answer, by the fields of OpenAI, vLLM and llama.cpp."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.fake import FakeEngine
from tests.support.harness import CHAT, CHAT_PATH, TEXT, TEXT_PATH, ask
from tests.support.speaking import CALL, TOOL, SpeakingEngine, pieces

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
JSON_SCHEMA = {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}}


def grammar(body: dict[str, Any], path: str = TEXT_PATH) -> str:
    engine = FakeEngine()
    reply = ask(engine, "POST", path, json=(TEXT if path == TEXT_PATH else CHAT) | body)
    assert reply.status_code == 200, reply.text
    return str(engine.submitted[0].sampling.grammar)


@pytest.mark.parametrize("path", [CHAT_PATH, TEXT_PATH])
@pytest.mark.parametrize(
    "body",
    [
        {"structured_outputs": {"json": SCHEMA}},
        {"structured_outputs": {"json": json.dumps(SCHEMA), "regex": None}},
        {"guided_json": SCHEMA},
        {"guided_json": json.dumps(SCHEMA)},
        {"json_schema": SCHEMA},
    ],
)
def test_all_schemas_are_one_form(body: dict[str, Any], path: str) -> None:
    assert grammar(body, path) == grammar(JSON_SCHEMA, path)


@pytest.mark.parametrize("schema", [{"json_schema": SCHEMA}, {"guided_json": SCHEMA}])
def test_a_schema_says_more_than_that_the_answer_is_an_object(schema: dict[str, Any]) -> None:
    any_object = {"response_format": {"type": "json_object"}, "structured_outputs": {"json_object": True}}
    assert grammar(any_object | schema) == grammar(schema)


def test_any_object_may_be_asked_for() -> None:
    wanted = grammar({"response_format": {"type": "json_object"}})
    assert grammar({"structured_outputs": {"json_object": True}}) == wanted
    assert grammar({"structured_outputs": {"json_object": False}}) == "None"


@pytest.mark.parametrize("name", ["structured_outputs", "guided_regex"])
def test_a_regular_expression_is_a_rule(name: str) -> None:
    value = r"^a/b\/c\$[\n" + "\n]$"
    body = {"structured_outputs": {"regex": value}} if name == "structured_outputs" else {name: value}
    assert grammar(body) == r"start: answer" + "\n" + r"answer: /a\/b\/c\$[\n\n]/"


def test_an_empty_regular_expression_is_the_empty_text() -> None:
    assert grammar({"guided_regex": "^$"}) == 'start: answer\nanswer: ""'
    assert grammar({"guided_regex": "a\\\\$"}) == "start: answer\nanswer: /a\\\\/"


def test_one_of_some_texts_is_a_rule() -> None:
    assert grammar({"guided_choice": ["yes", 'n"o']}) == 'start: answer\nanswer: "yes" | "n\\"o"'
    assert grammar({"structured_outputs": {"choice": ["é"]}}) == 'start: answer\nanswer: "é"'


@pytest.mark.parametrize("name", ["grammar", "guided_grammar"])
def test_a_grammar_is_passed_on(name: str) -> None:
    text = 'root ::= "yes" | "no"'
    assert grammar({name: text}) == text
    assert grammar({"structured_outputs": {"grammar": text}}) == text
    assert grammar({"grammar": ""}) == "None"


def test_tools_may_be_called_instead_of_an_answer_of_that_form() -> None:
    engine = SpeakingEngine(pieces(CALL))
    body = CHAT | {"tools": [TOOL], "guided_choice": ["yes"]}
    assert ask(engine, "POST", CHAT_PATH, json=body).status_code == 200
    assert "(calls | answer)" in str(engine.submitted[0].sampling.grammar)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"guided_json": "{"}, "guided_json"),
        ({"guided_json": "[" * 50_000}, "guided_json"),
        ({"guided_regex": "a\\"}, "guided_regex"),
        ({"structured_outputs": {"json": [1]}}, "structured_outputs.json"),
        ({"structured_outputs": {"structural_tag": {}}}, "structured_outputs.structural_tag.format"),
        ({"structured_outputs": {"xgrammar": "a"}}, "structured_outputs"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
        ({"guided_choice": ["a", ""]}, "guided_choice"),
        ({"guided_regex": ""}, "guided_regex"),
        ({"guided_regex": "a" * 70_000}, "guided_regex"),
        ({"guided_regex": "a", "guided_choice": ["a"]}, "guided_choice"),
        (JSON_SCHEMA | {"structured_outputs": {"regex": "a"}}, "structured_outputs.regex"),
        ({"structured_outputs": {"json": SCHEMA, "regex": "a"}}, "structured_outputs.regex"),
    ],
)
def test_a_form_that_cannot_be_is_refused_by_name(body: dict[str, Any], param: str) -> None:
    for path, base in ((TEXT_PATH, TEXT), (CHAT_PATH, CHAT)):
        reply = ask(FakeEngine(), "POST", path, json=base | body)
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text


def test_a_grammar_and_tools_are_refused_together() -> None:
    body = CHAT | {"tools": [TOOL], "tool_choice": "required", "grammar": 'root ::= "a"'}
    reply = ask(SpeakingEngine(), "POST", CHAT_PATH, json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "grammar")
