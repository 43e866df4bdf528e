"""The keywords of JSON schemas: which ones llguidance enforces, and what their values must be."""

from collections.abc import Callable, Mapping
from typing import Any

from server.openai.requests.numbers import is_number
from server.openai.requests.references import REFERENCES

MOST_COUNT = 2**20  # of characters, items or properties; no answer has as many
# Formats that llguidance knows, and the most characters of those that fractional digits would make endless.
FORMATS: dict[str, int | None] = {
    **dict.fromkeys(("date", "email", "hostname", "ipv4", "ipv6", "uuid", "uri")),
    **dict.fromkeys(("date-time", "time", "duration"), 40),
}
COMBINING = {*REFERENCES, "allOf", "anyOf", "oneOf"}
# Keywords that restrict and that llguidance lacks, with the values that restrict nothing.
UNENFORCED: dict[str, tuple[Any, ...]] = {
    "not": (False,),
    "if": (),
    "contains": (),
    "propertyNames": (True, {}, {"type": "string"}),
    "unevaluatedProperties": (True, {}),
    "unevaluatedItems": (True, {}),
    "dependentRequired": (),
    "dependentSchemas": (),
    "dependencies": (),
}

A_SCHEMA, SCHEMAS, NAMED_SCHEMAS = "a schema", "a list of schemas", "an object of schemas"
A_COUNT, A_NUMBER, A_STRING = "a whole number, at least 0", "a number", "a string"


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def is_nullable(schema: Mapping[str, Any]) -> bool:
    """Whether null matches a schema of OpenAPI 3.0 although its `type` or the schemas that it combines exclude null."""
    constant = schema.keys() & {"enum", "const"} and None not in as_list(schema.get("enum", [schema.get("const")]))
    return schema.get("nullable") is True and not constant and bool(schema.keys() & {"type", *COMBINING})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return is_number(value) and value >= 0 and value == int(value)


def _is_bound(value: Any) -> bool:
    return isinstance(value, bool) or is_number(value)  # a boolean in draft 4


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_type(value: Any) -> bool:
    return _is_text(value) or (_is_names(value) and value != [])


def _is_required(value: Any) -> bool:
    return isinstance(value, bool) or _is_names(value)  # a boolean in draft 3


_KINDS: list[tuple[str, Callable[[Any], bool], str]] = [
    ("items additionalItems additionalProperties", lambda _: True, A_SCHEMA),
    ("allOf anyOf oneOf prefixItems", lambda value: isinstance(value, list), SCHEMAS),
    ("properties patternProperties", lambda value: isinstance(value, dict), NAMED_SCHEMAS),
    ("minLength maxLength minItems maxItems minProperties maxProperties", _is_count, A_COUNT),
    ("minimum maximum", is_number, A_NUMBER),
    ("exclusiveMinimum exclusiveMaximum", _is_bound, A_NUMBER),
    ("multipleOf", lambda value: is_number(value) and value > 0, "a number greater than 0"),
    ("type", _is_type, "a string or a list of strings"),
    ("required", _is_required, "a list of strings"),
    ("enum", lambda value: isinstance(value, list) and value != [], "a list of at least one value"),
    ("const", lambda _: True, "a value"),
    ("pattern format", _is_text, A_STRING),
]
EXPECTED = {key: (valid, expected) for keys, valid, expected in _KINDS for key in keys.split()}
ENFORCED = {*EXPECTED, *REFERENCES}
