"""Rewrite JSON schemas as llguidance can enforce them (its docs/json_schema.md lists what it supports).

Annotations are dropped. Keywords that no grammar enforces are dropped too, or refused if the request is strict. Numbers
get bounds, so that a weak model cannot fill its answer with digits.
"""

import json
from collections.abc import Mapping
from typing import Any

from server.edge.errors import APIError, invalid
from server.forms import keywords
from server.forms.numbers import bound_numbers, divides, is_exact
from server.forms.patterns import converted
from server.forms.references import REFERENCES, References

Schema = dict[str, Any] | bool

# No white space but a space after a separator, as `json.dumps` writes. Unknown formats and numbers of properties that
# llguidance cannot count are left out (`lenient`); what a strict request refuses is found here.
_OPTIONS = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?", "lenient": True}


def rewritten(
    schema: Mapping[str, Any], param: str, *, strict: bool = False, arguments: bool = False
) -> dict[str, Any]:
    """Return a schema as llguidance expects it, with its options. With `arguments`, it describes an object.

    Raises APIError naming `param` if the schema is invalid, or if it is `strict` and cannot be enforced.
    """
    return _Rewriter(schema, param, strict=strict).root(arguments)


def check_object(schema: Mapping[str, Any], param: str) -> None:
    """Raise APIError if a schema's `type`, or that of the schema which it names, excludes objects."""
    _Rewriter(schema, param, strict=False).as_object()


class _Rewriter:
    """One schema. Parts that references name become definitions.

    llguidance intersects the schemas of a value, and an intersection of two that refer to themselves does not end. Only
    a part that is `alone`, which no other part intersects, thus gets the definition `any`: it bounds the digits of the
    items and properties that the part leaves open.
    """

    def __init__(self, schema: Mapping[str, Any], param: str, *, strict: bool) -> None:
        self._schema, self._param, self._strict = schema, param, strict
        self._references = References(schema)
        # Beside the client's own steps, another step may have a common multiple that is too large for a grammar.
        self._stepped = '"multipleOf"' in json.dumps(schema)
        self._definitions: dict[str, Schema] = {}
        self._names: dict[tuple[int, bool] | str, str] = {}  # names of definitions, by part and `alone`, or by content
        self._waiting: list[tuple[str, dict[str, Any], bool]] = []

    def root(self, arguments: bool) -> dict[str, Any]:
        """Rewrite the whole schema."""
        found = self._part(self.as_object() if arguments else self._schema, alone=True)
        if isinstance(found, bool):
            raise self._refused("No value matches the schema.")
        while self._waiting:
            name, target, alone = self._waiting.pop()
            self._definitions[name] = self._part(target, alone)
        return {**found, "$defs": self._definitions, "x-guidance": _OPTIONS}

    def as_object(self) -> Mapping[str, Any]:
        """Return the schema, so that only objects match it."""
        found: Any = self._schema
        if isinstance(found, Mapping) and [key for key in _present(found) if key in keywords.ENFORCED] == ["$ref"]:
            found = self._target(found, "$ref")
        found = {} if found is True else found
        if not isinstance(found, Mapping) or "object" not in keywords.as_list(found.get("type") or "object"):
            raise self._refused("The parameters of a function must describe an object ('type': 'object').")
        return {**found, "type": "object", "nullable": False}

    def _refused(self, message: str) -> APIError:
        return invalid(message, self._param)

    def _skip(self, keyword: str, value: str | None = None) -> None:
        """Leave a keyword out. Raises APIError if the request is strict."""
        if self._strict:
            what = f"'{keyword}'" if value is None else f"{keyword} '{value}'"
            raise self._refused(f"'strict' is not possible with the schema's {what}: no grammar can enforce it.")

    def _target(self, part: Mapping[str, Any], key: str) -> Schema:
        target = self._references.target(part, key)
        if not isinstance(target, (dict, bool)):
            raise self._refused(f"The schema's reference '{part[key]!s:.200}' leads to no part of the schema.")
        return target

    def _definition(self, part: Schema, alone: bool) -> Schema:
        """Rewrite what several parts may name, once for each use."""
        if isinstance(part, bool):
            return self._part(part, alone)
        key = (id(part), alone)
        if key not in self._names:
            self._names[key] = str(len(self._names))
            self._waiting.append((self._names[key], part, alone))
        return {"$ref": f"#/$defs/{self._names[key]}"}

    def _part(self, part: Any, alone: bool) -> Schema:
        if not isinstance(part, (dict, bool)):
            raise self._refused("A schema must be an object or a boolean, at every level.")
        if part is False or (part is not True and part.get("not") in (True, {})):
            return False
        part = {} if part is True else part
        found = self._combined(part, alone)
        return {"anyOf": [found, {"type": "null"}]} if keywords.is_nullable(part) else found

    def _combined(self, part: dict[str, Any], alone: bool) -> Schema:
        """Rewrite a part and the schemas that it combines."""
        known = _present(part)
        enforced = {key: value for key, value in known.items() if key in keywords.EXPECTED}
        for key, value in enforced.items():
            valid, expected = keywords.EXPECTED[key]
            if not valid(value):
                raise self._refused(f"The schema's '{key}' must be {expected}.")
        alone = alone and not _intersects(known)
        simple = alone and keywords.COMBINING.isdisjoint(known)
        values = {key: self._value(key, value, alone) for key, value in enforced.items()}
        out = {key: value for key, value in values.items() if value is not None or key == "const"}
        named = [self._definition(self._target(part, key), alone) for key in known if key in REFERENCES]
        if named:
            out["allOf"] = named + out.get("allOf", [])
        self._replace_unenforced(known, out, simple)
        if not out:
            return self._any(alone)
        if out.keys() == {"allOf"} and len(out["allOf"]) == 1:
            return out["allOf"][0]  # type: ignore[no-any-return]
        self._limit_properties(out, simple)
        if not out.keys().isdisjoint({"const", "enum", "pattern"}):
            out.pop("format", None)  # these say more; zod's time zones differ from llguidance's
        if not out.keys().isdisjoint({"const", "enum"}):
            return out
        if simple:
            self._fill(out)
        return self._with_digits(out, simple)

    def _value(self, key: str, value: Any, alone: bool) -> Any:
        """Rewrite a keyword's value. None drops the keyword."""
        match key:
            case "properties":
                return {name: self._part(part, alone) for name, part in value.items()}
            case "patternProperties":
                patterns = ((self._pattern(name), part) for name, part in value.items())
                return {pattern: self._part(part, alone) for pattern, part in patterns if pattern is not None}
            case "prefixItems" | "allOf" | "anyOf" | "oneOf":
                return [self._part(part, alone) for part in value]
            case "items" if isinstance(value, list):  # as before draft 2020-12
                return [self._part(part, alone) for part in value]
            case "items" | "additionalItems" | "additionalProperties":
                return self._part(value, alone)
            case "maxLength" | "maxItems" | "maxProperties" if value > keywords.MOST_COUNT:
                return None
            case "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties":
                return int(value)
            case "pattern":
                return self._pattern(value)
            case "const" | "enum" if not is_exact(value):
                raise self._refused(
                    f"A number in the schema's '{key}' has too many digits for a grammar. Use a string."
                )
            case "multipleOf" if not divides(value):
                return self._skip(key)
            case "required" if isinstance(value, bool):
                return None
        return value

    def _pattern(self, pattern: str) -> str | None:
        """Return a pattern as llguidance reads it. None drops it; raises APIError if the request is strict."""
        found = converted(pattern)
        if found is None:
            self._skip("pattern", pattern)
        return found

    def _replace_unenforced(self, part: dict[str, Any], out: dict[str, Any], alone: bool) -> None:
        """Enforce keywords that llguidance lacks by others, or skip them. `alone`: the part combines no schemas."""
        for key, value in part.items():
            if key not in keywords.UNENFORCED or value in keywords.UNENFORCED[key]:
                continue
            other = "items" if key == "unevaluatedItems" else "additionalProperties"
            if key.startswith("unevaluated") and part.keys().isdisjoint({*keywords.COMBINING, "if", "contains", other}):
                out[other] = self._part(value, alone)
            elif key != "propertyNames" or not self._name_properties(value, part, out, alone):
                self._skip(key)

    def _name_properties(self, names: Any, part: dict[str, Any], out: dict[str, Any], alone: bool) -> bool:
        """Whether `propertyNames` is replaced by `properties` or `patternProperties`."""
        names = self._target(names, "$ref") if isinstance(names, dict) and "$ref" in names else names
        if not isinstance(names, dict) or not alone or out.keys() & {"properties", "patternProperties"}:
            return False
        values = self._definition(part.get("additionalProperties", True), alone)
        restricting = [*names.keys() & (keywords.ENFORCED | keywords.UNENFORCED.keys()) - {"type", "format"}]
        if restricting in (["enum"], ["const"]):
            chosen = keywords.as_list(names.get("enum", names.get("const")))
            out["properties"] = {name: values for name in chosen if isinstance(name, str)}
        elif restricting == ["pattern"] and (pattern := self._pattern(str(names["pattern"]))) is not None:
            out["patternProperties"] = {pattern: values}
        else:
            return False
        out["additionalProperties"] = False
        return True

    def _limit_properties(self, out: dict[str, Any], alone: bool) -> None:
        """Leave out numbers of properties that llguidance refuses, or meets by repeating a name."""
        required = {*out.get("required", ())}
        all_required = out.get("properties", {}).keys() <= required
        closed = out.get("additionalProperties") is False and not out.get("patternProperties")
        countable = alone and (closed or all_required)
        least, most = out.pop("minProperties", 0), out.pop("maxProperties", None)
        one_more = len(required) + 1
        if least >= one_more and countable:
            out["minProperties"] = one_more
        if least > one_more or (least == one_more and not countable):
            self._skip("minProperties")
        if most is not None and countable and (most == one_more or all_required):
            out["maxProperties"] = most
        elif most is not None:
            self._skip("maxProperties")

    def _fill(self, out: dict[str, Any]) -> None:
        """Describe the items and properties that a rewritten schema leaves open."""
        kinds = _kinds(out)
        if "array" in kinds:
            out.setdefault("additionalItems" if isinstance(out.get("items"), list) else "items", self._any(True))
        if "object" in kinds:
            out.setdefault("additionalProperties", self._any(True))

    def _any(self, alone: bool) -> Schema:
        """Return a schema of all values, whose digits are bounded if it is `alone`."""
        if not alone:
            return True
        any_value = {"$ref": "#/$defs/any"}
        kinds = [
            {"type": ["null", "boolean", "string"]},
            self._bounded({"type": "number"}, alone=True),
            {"type": "array", "items": any_value},
            {"type": "object", "additionalProperties": any_value},
        ]
        self._definitions["any"] = {"anyOf": kinds}
        return any_value

    def _with_digits(self, out: dict[str, Any], alone: bool) -> Schema:
        """Bound the digits of a rewritten schema's own numbers and formats."""
        if out.get("format") in keywords.ENDLESS_FORMATS:
            out.setdefault("maxLength", keywords.MOST_CHARACTERS)
        kinds = _kinds(out)
        if kinds & {"integer", "number"}:
            self._bounded(out, alone)
        if not alone or len(out) == 1 or kinds & {"array", "object"}:
            return out
        # One definition for equal numbers and strings, each of which has a cost in llguidance's lexer.
        name = self._names.setdefault(str(out), str(len(self._names)))
        self._definitions[name] = out
        return {"$ref": f"#/$defs/{name}"}

    def _bounded(self, out: dict[str, Any], alone: bool) -> dict[str, Any]:
        """Bound a schema's numbers, and their digits if the schema is `alone` or has a type."""
        digits = alone or "type" in out
        step = digits and "number" in _kinds(out) and (alone or not self._stepped)
        try:
            bound_numbers(out, digits=digits, step=step)
        except ValueError as error:
            raise self._refused(str(error)) from None
        return out


def _present(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without keywords that are null, which some converters write for absent ones."""
    return {key: value for key, value in part.items() if value is not None or key == "const"}


def _intersects(part: dict[str, Any]) -> bool:
    """Whether a schema says that several may apply to the value or to a property, beside its `type`."""
    if {"properties", "patternProperties"} <= part.keys():
        return True
    schemas = len(part.keys() & keywords.ENFORCED - {"type", "allOf"}) + len(part.get("allOf", ()))
    return schemas > 1 and not keywords.COMBINING.isdisjoint(part)


def _kinds(schema: dict[str, Any]) -> set[str]:
    return {*keywords.as_list(schema.get("type", ["array", "object", "number"]))}
