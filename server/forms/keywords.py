"""The keywords of JSON schemas: which ones llguidance enforces, and what their values must be."""

from collections.abc import Callable, Mapping
from typing import Any

from server.forms.numbers import is_number
from server.forms.references import REFERENCES

MOST_COUNT = 2**20  # larger limits of characters, items or properties are dropped: no answer has as many
ENDLESS_FORMATS = {"date-time", "time", "duration"}  # These formats allow any number of fractional digits.
MOST_CHARACTERS = 40  # The limit of such a date or time.
COMBINING = {*REFERENCES, "allOf", "anyOf", "oneOf"}
# Keywords that restrict and that llguidance lacks, with the values that restrict nothing.
UNENFORCED: dict[str, tuple[Any, ...]] = {
    "not": (False,),
    "propertyNames": (True, {}, {"type": "string"}),
    **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems"), (True, {})),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "dependencies"), ({},)),
    **dict.fromkeys(("if", "contains"), ()),
}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def is_nullable(schema: Mapping[str, Any]) -> bool:
    """Whether null matches a schema of OpenAPI 3.0, though its `type` or combined schemas exclude null."""
    constant = schema.keys() & {"enum", "const"} and None not in as_list(schema.get("enum", [schema.get("const")]))
    return schema.get("nullable") is True and not constant and bool(schema.keys() & {"type", *COMBINING})


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_KINDS: list[tuple[str, Callable[[Any], bool], str]] = [
    ("items", lambda _: True, "a schema"),
    ("additionalItems additionalProperties", lambda value: not isinstance(value, list), "a schema"),
    ("allOf anyOf oneOf prefixItems", lambda value: isinstance(value, list), "a list of schemas"),
    ("properties patternProperties", lambda value: isinstance(value, dict), "an object of schemas"),
    (
        "minLength maxLength minItems maxItems minProperties maxProperties",
        lambda value: is_number(value) and value >= 0 and value == int(value),
        "a whole number, at least 0",
    ),
    ("minimum maximum", is_number, "a number"),
    # In draft 4, these are flags.
    ("exclusiveMinimum exclusiveMaximum", lambda value: isinstance(value, bool) or is_number(value), "a number"),
    ("multipleOf", lambda value: is_number(value) and value > 0, "a number greater than 0"),
    (
        "type",
        lambda value: isinstance(value, str) or (value != [] and _is_names(value)),
        "a string or a list of strings",
    ),
    # In draft 3, this is a flag of a property.
    ("required", lambda value: isinstance(value, bool) or _is_names(value), "a list of strings"),
    ("enum", lambda value: isinstance(value, list) and value != [], "a list of at least one value"),
    ("const", lambda _: True, "a value"),
    ("pattern format", lambda value: isinstance(value, str), "a string"),
]
EXPECTED = {key: (valid, expected) for keys, valid, expected in _KINDS for key in keys.split()}
ENFORCED = {*EXPECTED, *REFERENCES}
