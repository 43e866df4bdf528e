"""JSON schemas of clients: what their grammars allow, as llguidance follows them, and what is refused."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from llguidance import LLParserLimits, LLTokenizer

from engine.grammar.matching import build
from server.edge.errors import APIError
from server.forms.schema import rewritten
from tests.support.fake import INFO, FakeEngine
from tests.support.harness import CHAT, CHAT_PATH, TEXT, TEXT_PATH, ask

BYTES = LLTokenizer("byte")
TREE = {"type": "object", "properties": {"in": {"$ref": "#"}}, "additionalProperties": False}
CLOSED = {"type": "object", "additionalProperties": False}


class CallingEngine(FakeEngine):
    """An engine whose template knows tools."""

    info = replace(INFO, max_model_len=4096, tool_format="hermes")


def answer_format(schema: Any, **more: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema} | more}}


def tool(parameters: Any, name: str = "f", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters} | more}


def grammar(change: dict[str, Any], path: str = CHAT_PATH) -> str:
    engine = CallingEngine()
    reply = ask(engine, "POST", path, json=(CHAT if path == CHAT_PATH else TEXT) | change)
    assert reply.status_code == 200, reply.text
    found = engine.submitted[0].sampling.grammar
    assert found is not None
    return found


def refusal(change: dict[str, Any], param: str = "response_format") -> str:
    engine = CallingEngine()
    reply = ask(engine, "POST", CHAT_PATH, json=CHAT | change)
    assert reply.status_code == 400, reply.text
    assert engine.submitted == []
    assert reply.json()["error"]["param"] == param
    message: str = reply.json()["error"]["message"]
    return message


def allows(grammar: str, text: str) -> bool:
    matcher = build(BYTES, grammar).deep_copy()
    tokens = list(text.encode())
    return matcher.try_consume_tokens(tokens) == len(tokens) and bool(matcher.is_accepting())


def check(schema: Any, yes: list[str], no: list[str], **more: Any) -> None:
    found = grammar(answer_format(schema, **more))
    assert [text for text in yes if not allows(found, text)] == []
    assert [text for text in no if allows(found, text)] == []


CONVERTED: dict[str, tuple[Any, list[str], list[str]]] = {
    "nulls for absent keywords": (
        {
            "type": "object",
            "title": None,
            "required": None,
            "properties": {"a": {"type": "integer", "enum": None, "minimum": None, "pattern": None, "anyOf": None}},
            "additionalProperties": False,
            "$ref": None,
            "not": None,
        },
        ['{"a": 1}', "{}"],
        ['{"a": "1"}'],
    ),
    "numbers of combined schemas": (
        {"allOf": [{"type": "object", "properties": {"y": {"type": "number"}}, "required": ["y"]}, {"type": "object"}]},
        ['{"y": 1.5}', '{"y": 123456789012345678}'],
        ['{"y": 1e999}', '{"y": 1.12345678901}', f'{{"y": {"1" * 20}}}'],
    ),
    "other properties beside alternatives": (
        {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ['{"a": 1}', '{"b": [1.5], "c": 2}'],
        ["{}", '{"c": 1}'],
    ),
    "properties beside required ones": (
        {"allOf": [{"type": "object", "properties": {"a": {}}}, {"required": ["b"]}]},
        ['{"a": 1, "b": 2}'],
        ['{"a": 1}', "{}"],
    ),
    "items beside a count": (
        {"type": "array", "items": {"type": "number"}, "anyOf": [{"minItems": 2}, {"maxItems": 0}]},
        ["[]", "[1, 2.5]"],
        ["[1]", "[1e5, 2]", "[1.12345678901, 2]"],
    ),
    "alternatives of a type": (
        {"type": "object", "required": ["k"], "oneOf": [{"properties": {"k": {"const": k}}} for k in "ab"]},
        ['{"k": "a", "x": 1}'],
        ['{"x": 1}', '{"k": "c"}'],
    ),
    "patterns of names beside required ones": (  # whose intersection llguidance does not end
        {"type": "object", "patternProperties": {"^a": {}}, "anyOf": [{"required": ["b"]}]},
        ['{"b": 1}'],
        ["{}"],
    ),
    "numbers beside alternatives": (
        {"type": "number", "anyOf": [{"minimum": 3}, {"maximum": -3}]},
        ["3.25", "-4"],
        ["1", "1e5", "9" * 20],
    ),
    "a divisor beside a number": (
        {"allOf": [{"type": "number"}, {"multipleOf": 5}]},
        ["5", "10", "0", "-5"],
        ["3", "0.5", "1e5", "5" * 20],
    ),
    "a fraction that divides": ({"allOf": [{"type": "number"}, {"multipleOf": 0.5}]}, ["1.5", "2"], ["0.3"]),
    "a divisor of integers beside a number": (
        {"allOf": [{"type": "number"}, {"type": "integer", "multipleOf": 5}]},
        ["15"],
        ["3"],
    ),
    "a divisor beside a reference": (
        {"$ref": "#/$defs/n", "multipleOf": 5, "$defs": {"n": {"type": "number"}}},
        ["10"],
        ["3"],
    ),
    "a divisor in an alternative": (
        {"type": "number", "anyOf": [{"multipleOf": 5}, {"minimum": 100}]},
        ["10", "101.5"],
        ["3"],
    ),
    "a divisor in another description": (
        {
            "allOf": [
                {**CLOSED, "properties": {"p": {key: value}}} for key, value in (("type", "number"), ("multipleOf", 5))
            ]
        },
        ['{"p": 10}'],
        ['{"p": 3}'],
    ),
    "an intersection with a large number": ({"allOf": [{"type": "integer"}, {"minimum": 2**62}]}, [str(2**62)], ["1"]),
    "an empty tuple": ({"type": "array", "items": []}, ["[]", "[1]"], ["[1e5]"]),
    "properties that a pattern describes too": (
        {"type": "object", "properties": {"a": {}}, "patternProperties": {"^[a-z]": {}}},
        ['{"a": [1]}'],
        ["[]"],
    ),
    "a union that refers to itself": (
        {
            "$ref": "#/$defs/N",
            "$defs": {
                "N": {"type": "object", "anyOf": [{"$ref": "#/$defs/A"}]},
                "A": {"properties": {"of": {"$ref": "#/$defs/N"}}},
            },
        },
        ['{"of": {"of": {}}}'],
        ['{"of": 1}'],
    ),
    "dates": (
        {"type": "string", "format": "date"},
        ['"2024-02-29"', '"2000-02-29"', '"1999-12-31"', '"0001-01-01"'],
        ['"2023-04-31"', '"2023-02-30"', '"2023-13-01"', '"2023-1-1"'],
    ),
    "times": (
        {"type": "string", "format": "date-time"},
        ['"2024-02-29T23:59:59.5+01:00"', '"2024-02-28T00:00:00Z"'],
        ['"2024-02-28T24:00:00Z"', '"2024-02-28 00:00:00Z"'],
    ),
    "one of closed names": ({**CLOSED, "minProperties": 1, "properties": {"a": {}, "b": {}}}, ['{"b": 1}'], ["{}"]),
    "null as a constant": ({"const": None}, ["null"], ["1"]),
    "annotations": (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$comment": "x",
            "type": "string",
            "nullable": False,
            "deprecated": True,
            "readOnly": True,
            "examples": ["a"],
            "contentEncoding": "base64",
            "x-order": 1,
        },
        ['"a"'],
        ["1"],
    ),
    "unique items": ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, ["[1, 2]"], ["1"]),
    "restricting nothing": (
        {"type": "object", "propertyNames": {"type": "string"}, "dependentRequired": {}, "dependentSchemas": {}},
        ['{"a": 1}'],
        ["[]"],
    ),
    "an unknown format": ({"type": "integer", "format": "int64"}, ["5"], ['"5"']),
    "a reference with annotations": (
        {**CLOSED, "properties": {"a": {"$ref": "#/$defs/A", "nullable": True}}, "$defs": {"A": TREE}},
        ['{"a": {}}', '{"a": null}'],
        ['{"a": 1}'],
    ),
    "null beside a type": (  # OpenAPI 3.0
        {"type": "array", "items": {"type": "integer", "minimum": 5, "nullable": True}},
        ["[null, 5]"],
        ["null", "[4]"],
    ),
    "null beside a combination": (
        {"type": "object", "allOf": [TREE], "nullable": True},
        ["{}", "null"],
        ["1"],
    ),
    "null in a schema that another one refers to": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b", "nullable": True}, "b": TREE}},
        ["{}", "null"],
        ["1"],
    ),
    "null that an enum leaves out": ({"type": "string", "enum": ["a"], "nullable": True}, ['"a"'], ["null"]),
    "null that an enum has": ({"type": "string", "enum": ["a", None], "nullable": True}, ['"a"', "null"], ['"b"']),
    "a reference within allOf": (  # pydantic 1; a recursive one that llguidance refuses beside other keywords
        {
            "allOf": [{"$ref": "#/definitions/A"}],
            "definitions": {
                "A": {**CLOSED, "properties": {"a": {"allOf": [{"$ref": "#/definitions/A"}], "default": None}}}
            },
        },
        ['{"a": {"a": {}}}'],
        ['{"a": 1}'],
    ),
    "escaped pointers": (
        {"$ref": "#/components/schemas/A~1B%20C", "components": {"schemas": {"A/B C": {"type": "integer"}}}},
        ["1"],
        ['"1"'],
    ),
    "identifiers": (  # TypeBox
        {"$id": "T0", **CLOSED, "properties": {"nodes": {"type": "array", "items": {"$ref": "T0"}}}},
        ['{"nodes": [{}, {"nodes": []}]}'],
        ['{"nodes": [1]}'],
    ),
    "identifiers and anchors": (
        {
            "$id": "https://e.com/root.json",
            **CLOSED,
            "properties": {
                "p": {"$ref": "https://e.com/root.json#/$defs/a"},
                "q": {"$ref": "b.json"},
                "r": {"$ref": "b.json#/items"},
                "s": {"$ref": "#c"},
                "t": {"$ref": "#/$defs/a"},
            },
            "$defs": {
                "a": {"type": "integer"},
                "b": {"$id": "b.json", "type": "array", "items": {"$anchor": "c", "type": "string"}},
            },
        },
        ['{"p": 1, "q": [""], "r": "", "s": "", "t": 2}'],
        ['{"p": ""}', '{"q": 1}', '{"r": 1}', '{"s": 1}'],
    ),
    "a discriminated union": (
        {
            "oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
            "discriminator": {"propertyName": "k"},
            "$defs": {k: {**CLOSED, "properties": {"k": {"const": k}}, "required": ["k"]} for k in "ab"},
        },
        ['{"k": "a"}', '{"k":"b"}'],
        ['{"k": "c"}', "{}"],
    ),
    "a tuple of draft 7": (
        {"type": "array", "items": [{"type": "integer"}, {"type": "string"}], "additionalItems": False, "minItems": 2},
        ['[1, "a"]'],
        ["[1]", '[1, "a", 2]'],
    ),
    "booleans": (
        {"type": "object", "properties": {"a": True, "b": False}, "additionalProperties": False},
        ['{"a": [1]}', "{}"],
        ['{"b": 1}', '{"c": 1}'],
    ),
    "never": ({"type": "object", "properties": {"a": {"not": {}}}}, ['{"b": 1}'], ['{"a": 1}']),
    "an enum of names": (  # zod's records
        {
            "type": "object",
            "propertyNames": {"enum": ["a", "b"]},
            "additionalProperties": {"type": "integer"},
            "required": ["a"],
        },
        ['{"a": 1}', '{"a": 1, "b": 2}'],
        ['{"b": 1}', '{"a": 1, "c": 2}', '{"a": 1, "b": ""}'],
    ),
    "a pattern of names": (
        {"type": "object", "propertyNames": {"pattern": "^x"}, "additionalProperties": {"type": "integer"}},
        ['{"x1": 1}', "{}"],
        ['{"y": 1}'],
    ),
    "nothing unevaluated": (
        {"type": "object", "properties": {"a": True}, "unevaluatedProperties": False},
        ['{"a": 1}'],
        ['{"b": 1}'],
    ),
    "exclusive bounds of draft 4": ({"type": "integer", "minimum": 5, "exclusiveMinimum": True}, ["6"], ["5"]),
    "a count that is a float": ({"type": "string", "minLength": 2.0}, ['"ab"'], ['"a"']),
    "required as a flag of draft 3": (
        {**CLOSED, "properties": {"a": {"type": "string", "required": True}}},
        ['{"a": ""}'],
        ['{"a": 1}'],
    ),
    "a time with a pattern": (  # zod's have no time zone
        {"type": "string", "format": "time", "pattern": r"^\d\d:\d\d$"},
        ['"10:00"'],
        ['"10:00:00Z"'],
    ),
    "a property named like a keyword": (
        {**CLOSED, "properties": {"$ref": {"type": "string"}, "pattern": {"type": "integer"}}},
        ['{"$ref": "x", "pattern": 1}'],
        ['{"pattern": "x"}'],
    ),
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("schema", "yes", "no"), CONVERTED.values(), ids=CONVERTED)
def test_schemas_as_converters_write_them_are_enforced(
    schema: Any, yes: list[str], no: list[str], strict: bool
) -> None:
    check(schema, yes, no, strict=strict)


UNENFORCED: dict[str, tuple[Any, str]] = {
    "look-ahead": ({"type": "string", "pattern": "^(?!a)b"}, "pattern '^(?!a)b'"),
    "look-ahead in a name": ({"type": "object", "patternProperties": {"(?!a)": True}}, "pattern '(?!a)'"),
    "not": ({"not": {"type": "string"}}, "'not'"),
    "if": ({"if": {"type": "string"}, "then": {"minLength": 1}}, "'if'"),
    "contains": ({"type": "array", "contains": {"type": "string"}, "minContains": 2}, "'contains'"),
    "propertyNames": ({"type": "object", "propertyNames": {"minLength": 3}}, "'propertyNames'"),
    "unevaluatedProperties": ({"anyOf": [{"required": ["a"]}], "unevaluatedProperties": False}, "'unev"),
    "dependentRequired": ({"type": "object", "dependentRequired": {"a": ["b"]}}, "'dependentRequired'"),
    "dependencies": ({"type": "object", "dependencies": {"a": ["b"]}}, "'dependencies'"),
    "minProperties of some": (
        {**CLOSED, "properties": {"a": True, "b": True, "c": True}, "minProperties": 2},
        "'minProperties'",
    ),
    "minProperties of any": ({"type": "object", "minProperties": 2}, "'minProperties'"),
    "maxProperties": ({**CLOSED, "properties": {"a": True, "b": True, "c": True}, "maxProperties": 2}, "'maxProp"),
    "a large divisor": ({"type": "integer", "multipleOf": 10_000_019}, "'multipleOf'"),
    "a divisor beyond 64 bits": ({"type": "integer", "multipleOf": 2**70}, "'multipleOf'"),
    "a divisor without an exact float": ({"type": "number", "multipleOf": 0.07}, "'multipleOf'"),
}


@pytest.mark.parametrize(("schema", "named"), UNENFORCED.values(), ids=UNENFORCED)
def test_what_no_grammar_enforces_is_dropped_unless_the_request_is_strict(schema: Any, named: str) -> None:
    build(BYTES, grammar(answer_format(schema)))
    build(BYTES, grammar(answer_format(schema, strict=False)))
    assert named in refusal(answer_format(schema, strict=True))
    parameters = {"type": "object", "properties": {"a": schema}}
    for choice in ("auto", "required"):
        change = {"tools": [tool({}), tool(parameters, "g", strict=True)], "tool_choice": choice}
        assert named in refusal(change, "tools[1].function.parameters")


BIG = [0, -5, 2**53, -(2**53), 0.1, -2.5e-7, 1e22, 1e300]


@pytest.mark.parametrize("number", BIG)
def test_constants_keep_all_digits(number: float) -> None:
    for schema in ({"const": number}, {"enum": ["x", number]}):
        matcher = build(BYTES, grammar(answer_format(schema))).deep_copy()
        text = ""
        while not text or not matcher.is_accepting():
            text += next(c for c in "-.0123456789" if matcher.try_consume_tokens([ord(c)]))
        assert type(number)(json.loads(text)) == number
    check({"const": {"a": [number]}}, [f'{{"a": [{text}]}}'], [])


LAX: dict[str, tuple[Any, list[str], list[str]]] = {
    "of 64 bits": (
        {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
        ["-9223372036854774784", "9223372036854774784", "0"],
        ["9223372036854775808", "1" * 20],
    ),
    "of 64 bits without a sign": ({"type": "integer", "minimum": 0, "maximum": 2**64 - 1}, ["0", "9" * 18], ["-1"]),
    "large floats": ({"type": "number", "minimum": -1e300, "maximum": 1e300}, ["-1.5", "1000"], ["1e5"]),
    "a large divisor": ({"type": "integer", "multipleOf": 10_000}, ["20000", "-10000"], ["5", "1" + "0" * 25]),
    # llguidance does not tell additional names apart, so it may need one of them at most.
    "more names than one": ({"type": "object", "minProperties": 3}, ['{"a": 1}'], ["{}"]),
    "more names beside a required one": (
        {"type": "object", "minProperties": 3, "required": ["a"]},
        ['{"a": 1, "b": 1}'],
        ['{"a": 1}'],
    ),
    "a name beside optional ones": ({"type": "object", "minProperties": 1, "properties": {"a": {}}}, ["{}"], ["[]"]),
    "two patterns of names": (
        {"type": "object", "allOf": [{"propertyNames": {"pattern": pattern}} for pattern in "3a"]},
        ['{"a3": 1}'],
        ["[]"],
    ),
}


@pytest.mark.parametrize(("schema", "yes", "no"), LAX.values(), ids=LAX)
def test_what_a_grammar_cannot_count_or_compare_is_enforced_in_part(schema: Any, yes: list[str], no: list[str]) -> None:
    check(schema, yes, no)


NEAR = ["-1.0", "-1", "-0.5", "-0.0000000001", "0", "0.0000000001", "0.5", "0.9999999999", "1", "1.0", "1.5", "1000000"]


@pytest.mark.parametrize("low", [{}, {"minimum": -0.5}] + [{"exclusiveMinimum": bound} for bound in (-1, 0, 0.5, 1)])
@pytest.mark.parametrize("high", [{}, {"maximum": 1.5}] + [{"exclusiveMaximum": bound} for bound in (0, 0.5, 1, 10**6)])
def test_no_number_is_an_exclusive_bound(low: dict[str, float], high: dict[str, float]) -> None:
    """llguidance's own exclusive bounds allow a whole number if the other bound is near."""
    least, most = low.get("minimum", -math.inf), high.get("maximum", math.inf)
    above, below = low.get("exclusiveMinimum", -math.inf), high.get("exclusiveMaximum", math.inf)
    within = [text for text in NEAR if least <= float(text) <= most and above < float(text) < below]
    if within:
        check({"type": "number", **low, **high}, within, [text for text in NEAR if text not in within])


NO_OBJECTS: list[Any] = [
    {"type": "integer"},
    {"type": "array", "items": {"type": "string"}, "required": ["a"]},
    {"type": ["string", "null"]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
    True,
    5,
]


@pytest.mark.parametrize("choice", ["auto", "none", "required", {"type": "function", "function": {"name": "g"}}])
@pytest.mark.parametrize("parameters", NO_OBJECTS)
def test_parameters_that_are_no_object_are_refused(parameters: Any, choice: Any) -> None:
    change = {"tools": [tool({}), tool(parameters, "g")], "tool_choice": choice}
    message = refusal(change, "tools[1].function.parameters")
    assert "object" in message or "dictionary" in message


OBJECTS: list[Any] = [
    None,
    {},
    {"description": "x"},
    {"properties": {"a": {"type": "integer"}}},
    {"type": ["object", "null"]},
    {"type": "object", "nullable": True},
    {"allOf": [{"type": "object", "nullable": True}], "nullable": True},
    {"anyOf": [{"type": "object"}, {"type": "null"}]},
    {"oneOf": [{"type": "object", "properties": {"b": {"$ref": "#"}}}, {"type": "object"}]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"a": {}}}}},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
]


@pytest.mark.parametrize("parameters", OBJECTS)
def test_parameters_without_a_type_describe_an_object(parameters: Any) -> None:
    found = grammar({"tools": [tool(parameters)], "tool_choice": "required"})
    call = '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>'
    assert allows(found, call % ('{"a": 1}' if parameters is not None else "{}"))
    if parameters is None:  # a function without parameters has none
        assert not allows(found, call % '{"a": 1}')
    for other in ("1", "null", "[]", '"a"'):
        assert not allows(found, call % other)


def test_white_space_and_digits_are_bounded() -> None:
    anything = {"response_format": {"type": "json_object"}}
    for change in (anything, answer_format({"type": "object"}), answer_format({})):
        for path in (CHAT_PATH, TEXT_PATH):
            found = grammar(change, path)
            assert allows(found, '{"a": [1.25, -3, {"b": null}], "c":true}')
            for text in ('{ "a": 1}', '{"a":  1}', '{"a": 1 }', '{"a":\n1}', '{"a": [1,\n 2]}', "{\n}"):
                assert not allows(found, text)
            for number in ("1" * 20, "0." + "3" * 11, "1e5"):
                assert not allows(found, f'{{"a": [{{"b": {number}}}]}}')
    for kind in ("integer", "number", ["number", "null"]):
        check({"type": kind}, ["0", "-1", "1" * 19], ["1" * 20, "-" + "1" * 20])
    for schema in ({"type": "number"}, {"type": "number", "minimum": 0, "maximum": 1}):
        check(schema, ["0.3333333333"], ["0.33333333333"])
    check({"type": "integer", "minimum": 5}, ["5", "9" * 18], ["9" * 20])
    check({"type": "integer", "multipleOf": 7}, ["14"], ["15", "7" * 21])
    seconds = "2024-01-01T00:00:00"
    check({"type": "string", "format": "date-time"}, [f'"{seconds}.123Z"'], [f'"{seconds}.{"1" * 20}Z"'])
    call = grammar({"tools": [tool({})], "tool_choice": "required"})
    prefix = '<tool_call>\n{"name": "f", "arguments": '
    assert allows(call, prefix + '{"a": 1}}\n</tool_call>')
    assert not allows(call, prefix + '{"a":\n1}}\n</tool_call>')


BEYOND = [{"minimum": 2**63}, {"minimum": 1e300}, {"maximum": -1e19}, {"minimum": -(2**63), "maximum": -(2**63)}]
ROUNDED = [2**53 + 1, 7 * 2**60, -(2**63), 2**63, 2**64 - 1, 2**70 + 1, 10**400]
MALFORMED: list[tuple[Any, str]] = [
    ({"type": 5}, "'type'"),
    ({"type": []}, "'type'"),
    ({"type": "integer", "minimum": "é" * 60}, "'minimum'"),
    ({"minimum": True}, "'minimum'"),
    ({"required": "a"}, "'required'"),
    ({"properties": []}, "'properties'"),
    ({"properties": {"a": 5}}, "A schema must be"),
    ({"type": "array", "prefixItems": 5}, "'prefixItems'"),
    ({"anyOf": {}}, "'anyOf'"),
    ({"minLength": -1}, "'minLength'"),
    ({"pattern": 5}, "'pattern'"),
    ({"enum": []}, "'enum'"),
    ({"multipleOf": 0}, "'multipleOf'"),
    ({"$ref": "http://there.is/none"}, "'http://there.is/none'"),
    ({"$ref": 5}, "'5'"),
    ({"$ref": ["#"]}, "leads to no part"),
    ({"$dynamicRef": {}}, "leads to no part"),
    ({"properties": {"a": {}}, "$ref": "#/anyOf/" + "9" * 5000, "anyOf": [{}]}, "leads to no part"),
    ({"$id": "https://[", "$ref": "http://["}, "leads to no part"),
    ({"$ref": "#/"}, "leads to no part"),
    ({"patternProperties": True}, "'patternProperties'"),
    ({"properties": {}, "patternProperties": 5}, "'patternProperties'"),
    ({"not": {}}, "No value"),
    # No bound is beyond 64 bits, and no constant is rounded.
    *(({"type": kind, **bounds}, "imum' must be within") for kind in ("integer", "number") for bounds in BEYOND),
    *(({"const": number}, "too many digits") for number in ROUNDED),
    ({"properties": {"a": {"enum": [1, {"b": [2**53 + 1]}]}}}, "too many digits"),
]


@pytest.mark.parametrize(("schema", "said"), MALFORMED)
def test_a_malformed_schema_is_refused_by_keyword(schema: Any, said: str) -> None:
    assert said in refusal(answer_format(schema))
    change = {
        "tools": [tool({}), tool({"type": "object", "properties": {"a": schema}}, "g")],
        "tool_choice": "required",
    }
    if not {"$defs", "not"} & schema.keys():
        assert said in refusal(change, "tools[1].function.parameters")


def test_errors_name_the_position_of_a_tool_in_the_request() -> None:
    tools = [tool({}), tool({}, "g"), tool({"type": "object", "properties": 5}, "h")]
    function = {"type": "function", "function": {"name": "h"}}
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": name}} for name in "fh"]}
    for choice in ("required", function, {"type": "allowed_tools", "allowed_tools": allowed}):
        assert "'properties'" in refusal({"tools": tools, "tool_choice": choice}, "tools[2].function.parameters")


def test_the_only_callable_tool_is_named_in_errors() -> None:
    """The engine knows the grammar, not which tool it is for."""
    engine = CallingEngine()
    choice = {"type": "function", "function": {"name": "g"}}
    ask(engine, "POST", CHAT_PATH, json=CHAT | {"tools": [tool({}), tool({}, "g")], "tool_choice": choice})
    assert engine.submitted[0].sampling.grammar_param == "tools[1].function.parameters"


def random_schema(random: Random, depth: int) -> Any:
    """A schema of arbitrary keywords, with values that are often wrong."""
    if depth == 0 or random.random() < 0.1:
        return random.choice([True, False, {}, {"type": "number"}, {"$ref": "#"}, {"$ref": "#/$defs/a"}, 5, None])

    def inner() -> Any:
        return random_schema(random, depth - 1)

    number: Any = random.choice([0, -1, 2.5, 1e-12, 2**53 + 1, -(2**63), 10**400, 1e300, True, "x", None, [], {}])
    wrong: Any = random.choice([5, True, "a", [], {}, [1], {"a": 5}, {"$ref": []}, "#/anyOf/" + "9" * 5000])
    inner_schemas: dict[str, Callable[[], Any]] = {
        "items not if then contains propertyNames additionalProperties additionalItems": inner,
        "unevaluatedProperties unevaluatedItems": inner,
        "anyOf oneOf allOf prefixItems": lambda: [inner(), inner()],
        "properties patternProperties $defs dependentSchemas": lambda: {"a": inner(), "(": inner()},
    }
    kinds: dict[str, Any] = {
        **inner_schemas,
        "minimum exclusiveMaximum multipleOf maxLength minProperties maxItems": number,
        "const default x-other $id $anchor": random.choice([number, "a", {"b": [number]}]),
    }
    values: dict[str, Any] = {key: value for keys, value in kinds.items() for key in keys.split()} | {
        "type": random.choice(["string", "object", "array", ["integer", "null"], "object", "strange", None]),
        "enum": random.choice([[], [number], "a"]),
        "required": random.choice([["a"], ["a", "b"], [1], False]),
        "pattern": random.choice(["^a", "(?=a)", "(", "[", "\\", 1]),
        "format": random.choice(["date-time", "int64", 5]),
        "$ref": random.choice(["#", "#/$defs/a", "#/properties/a", "#/anyOf/1", "a", "#a", "#/anyOf/x", 5]),
        "dependentRequired": random.choice([{}, {"a": []}, {"a": ["b"]}, 5]),
    }
    values[random.choice([*values, "$dynamicRef", "$recursiveRef", "$dynamicAnchor"])] = wrong
    chosen = random.sample(sorted(values), random.randrange(1, 6))
    return {key: values[key]() if callable(values[key]) else values[key] for key in chosen}


def rewrites(schema: Any, **options: bool) -> bool:
    """Whether a schema is rewritten. It may be refused, but nothing else."""
    try:
        return bool(json.dumps(rewritten(schema, "param", **options), allow_nan=False))
    except APIError as error:
        return error.status != 400 or error.param != "param"


@pytest.mark.parametrize("count", [600, pytest.param(6000, marks=pytest.mark.nightly)])
def test_any_schema_is_rewritten_or_refused(count: int) -> None:
    random = Random(count)
    written = 0
    for schema in (random_schema(random, 4) for _ in range(count)):
        if isinstance(schema, dict):
            before = json.dumps(schema)
            written += rewrites(schema) + rewrites(schema, strict=True) + rewrites(schema, arguments=True)
            assert json.dumps(schema) == before
    assert written > count / 6


def test_a_function_with_an_empty_list_of_properties_has_none() -> None:
    """A weak model fills an open object with what it likes."""
    for parameters, more in (
        ({"type": "object", "properties": {}}, False),
        ({"type": "object", "properties": {}, "required": [], "minProperties": 0}, False),
        ({"type": "object", "properties": {}, "additionalProperties": {}}, True),
        ({"type": "object", "properties": {}, "additionalProperties": True}, True),
        ({"type": "object"}, True),
    ):
        found = grammar({"tools": [tool(parameters)], "tool_choice": "required"})
        start = '<tool_call>\n{"name": "f", "arguments": '
        assert allows(found, start + "{}}\n</tool_call>")
        assert allows(found, start + '{"a": 1}}\n</tool_call>') is more


@pytest.mark.parametrize("pattern", ["[" * 60_000, "[" * 59_999 + "\\\\", "(?=" * 20_000, "\\\\" * 30_000])
def test_long_patterns_are_read_once(pattern: str) -> None:
    """A quadratic search would take minutes, and the test's limit is one."""
    reply = ask(CallingEngine(), "POST", CHAT_PATH, json=CHAT | {"guided_json": {"type": "string", "pattern": pattern}})
    assert reply.status_code in (200, 400)


PATTERNS: dict[str, tuple[list[str], list[str]]] = {
    r"^[^[]$": (["a"], ["["]),
    r"^[^<>()[\]\.,;:\s@]+$": (["a"], ["a[", "a]", "a@"]),
    r"^\<a\>$": (["<a>"], ["a"]),
    r"^{.*}$": (["{a}"], ["a"]),
    r"^\${a}x{,3}$": (["${a}x{,3}"], ["${a}xxx"]),
    r"^[a&&b]$": (["a", "b", "&"], ["c"]),
    r"^[+--]$": (["+", ",", "-"], ["."]),
    r"^a$|^b$": (["a", "b"], ["ab"]),
    r"^(\p{Extended_Pictographic}|\p{Emoji_Component})+$": (["😀", "1"], ["a", ""]),  # zod's emoji
    r"^\p{L}+$": (["aß"], ["1", "p{L}"]),
    r"^\p{Script=Greek}\P{L}{2}$": (["α11"], ["a11", "αab"]),
    r"^\u{1F600}[\u{1F600}-\u{1F64F}\u00e9]$": (["😀😀", "😀é"], ["u", "😀u"]),
    r"^[^]$": (["a", "\n", "]"], ["", "ab"]),
    r"^(a|[]b)$": (["a"], ["b", "]b"]),
    r"^[^]a]$": (["xa]"], ["x"]),
    r"^[\<\>é]$": (["<", "é"], ["e"]),
    r"^\(\?=a\)[$(?=]\\1$": ([r"(?=a)$\1", r"(?=a)?\1"], ["a"]),
    r"^a(b|c$)": (["ab", "abx", "ac"], ["acx"]),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_mean_what_they_mean_in_ecmascript(pattern: str) -> None:
    yes, no = ([json.dumps(text, ensure_ascii=False) for text in texts] for texts in PATTERNS[pattern])
    check({"type": "string", "pattern": pattern}, yes, no)


@pytest.mark.parametrize(
    "pattern", [r"^(a(,|$))+$", "a^b", "x(^a)", "(?=a)b", "a(?!b)", "(?<=a)", r"(a)\1", r"\bword", "(?<n>a)\\k<n>"]
)
def test_patterns_that_no_grammar_follows_are_left_out(pattern: str) -> None:
    check({"type": "string", "pattern": pattern}, ['"anything"'], ["1"])
    assert "pattern" in refusal(answer_format({"type": "string", "pattern": pattern}, strict=True))


@pytest.mark.parametrize("text", ["\x7f", 'a"\\/\n\r\t\0', "é😀\u2028"])
def test_choices_and_expressions_may_have_any_character(text: str) -> None:
    for change in ({"guided_choice": ["other", text]}, {"guided_regex": re.escape(text)}):
        found = grammar(change)
        assert allows(found, text)
        assert not allows(found, text + "a")


def test_many_tools_with_equal_parameters_share_a_rule() -> None:
    parameters = {**CLOSED, "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    found = grammar({"tools": [tool(parameters, f"f{i}") for i in range(128)], "tool_choice": "required"})
    call = '<tool_call>\n{"name": "f%d", "arguments": {"a": %s}}\n</tool_call>'
    assert found.count("%json") == 1
    assert allows(found, call % (127, "1"))
    assert not allows(found, call % (128, "1"))
    assert not allows(found, call % (5, '"1"'))


def test_a_grammar_that_is_too_large_is_refused_in_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.grammar.matching._LIMITS", LLParserLimits(initial_lexer_fuel=10))
    with pytest.raises(ValueError, match="too complex"):
        build(BYTES, grammar(answer_format(TREE)))


def test_an_anchor_that_is_not_there_is_no_reference_to_the_root() -> None:
    with pytest.raises(APIError, match="leads to no part of the schema"):
        rewritten({"type": "object", "properties": {"a": {"$ref": "#None"}}}, "x")


def test_long_chains_of_references_are_followed() -> None:
    chain = {str(place): {"$ref": f"#/$defs/{place + 1}"} for place in range(200)} | {"200": {"type": "boolean"}}
    many = {f"p{index}": {"$ref": "#/$defs/0"} for index in range(50)}
    check({"type": "object", "properties": many, "$defs": chain}, ['{"p49": true}'], ['{"p49": 1}'])


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    ],
)
def test_a_reference_that_leads_back_to_itself_is_refused(schema: Any) -> None:
    with pytest.raises(ValueError, match="no text matches"):
        build(BYTES, grammar(answer_format(schema)))
