"""The keywords of JSON schemas: which ones llguidance enforces, and what their values must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from server.openai.requests.numbers import is_number
from server.openai.requests.references import REFERENCES

MOST_COUNT = 2**20  # of characters, items or properties; no answer has as many
# Formats that llguidance knows, and the most characters of one that fractional digits would make endless.
FORMATS: dict[str, int | None] = {"duration": 40} | dict.fromkeys(("email", "hostname", "ipv4", "ipv6", "uuid", "uri"))
COMBINING = {*REFERENCES, "allOf", "anyOf", "oneOf"}
# Keywords that say something about the items or properties of a value.
REACHING = {"items", "additionalItems", "prefixItems", "properties", "additionalProperties", "patternProperties"} | {
    *("unevaluatedItems", "unevaluatedProperties", "propertyNames", "const", "enum")
}
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


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


A_SCHEMA, SCHEMAS, NAMED_SCHEMAS = "a schema", "a list of schemas", "an object of schemas"
A_COUNT = "a whole number, at least 0"
Valid = Callable[[Any], bool]
EXPECTED: dict[str, tuple[Valid, str]] = {
    **dict.fromkeys(("items", "additionalItems", "additionalProperties"), (lambda _: True, A_SCHEMA)),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), (lambda value: isinstance(value, list), SCHEMAS)),
    **dict.fromkeys(("properties", "patternProperties"), (lambda value: isinstance(value, dict), NAMED_SCHEMAS)),
    **dict.fromkeys(
        [bound + what for bound in ("min", "max") for what in ("Length", "Items", "Properties")],
        (lambda value: is_number(value) and value >= 0 and value == int(value), A_COUNT),
    ),
    **dict.fromkeys(("minimum", "maximum"), (is_number, "a number")),
    **dict.fromkeys(
        ("exclusiveMinimum", "exclusiveMaximum"),
        (lambda value: isinstance(value, bool) or is_number(value), "a number"),
    ),
    "multipleOf": (lambda value: is_number(value) and value > 0, "a number greater than 0"),
    "type": (lambda value: is_text(value) or (_is_names(value) and value != []), "a string or a list of strings"),
    "required": (lambda value: isinstance(value, bool) or _is_names(value), "a list of strings"),
    "enum": (lambda value: isinstance(value, list) and value != [], "a list of at least one value"),
    "const": (lambda _: True, "a value"),
    "pattern": (is_text, "a string"),
    "format": (is_text, "a string"),
}
ENFORCED = {*EXPECTED, *REFERENCES}
