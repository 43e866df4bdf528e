"""Rewrite JSON schemas as llguidance can enforce them (its docs/json_schema.md lists what it supports).

Annotations are dropped. Keywords that no grammar enforces are dropped too, or refused if the request is strict. Numbers
get bounds, so that a weak model cannot fill its answer with digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from server.edge.errors import APIError, invalid
from server.openai.requests import patterns
from server.openai.requests.keywords import (
    A_COUNT,
    A_SCHEMA,
    COMBINING,
    ENFORCED,
    EXPECTED,
    FORMATS,
    MOST_COUNT,
    NAMED_SCHEMAS,
    REACHING,
    SCHEMAS,
    UNENFORCED,
    as_list,
    is_text,
)
from server.openai.requests.numbers import ANY_NUMBER, bound_numbers, constant, divides, is_small
from server.openai.requests.references import REFERENCES, objects_in, resolver

Schema = dict[str, Any] | bool

# No white space but a space after a separator, as `json.dumps` writes.
_OPTIONS = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?", "coerce_one_of": True}
_ANY = {"$ref": "#/$defs/any"}
_ANY_VALUE = {
    "anyOf": [
        {"type": ["null", "boolean", "string"]},
        ANY_NUMBER,
        {"type": "array", "items": _ANY},
        {"type": "object", "additionalProperties": _ANY},
    ]
}
_EMPTY: dict[str, Any] = {}


def rewritten(
    schema: Mapping[str, Any], param: str, *, strict: bool = False, arguments: bool = False
) -> dict[str, Any]:
    """Return a schema as llguidance expects it, with its options. With `arguments`, it describes an object.

    Raises APIError naming `param` if the schema is invalid, or if it is `strict` and cannot be enforced.
    """
    return _Rewriter(schema, param, strict).root(arguments)


def check_object(schema: Mapping[str, Any], param: str) -> None:
    """Raise APIError if no object matches a schema, as far as `type`, constants and references tell."""
    _Rewriter(schema, param, False).as_object()


class _Alone(IntEnum):
    """Whether no other schema applies to a value. llguidance intersects those that do.

    Bounds that the client did not write can make the intersection fail.
    """

    NO = 0
    WITHIN = 1  # others apply to the value itself, but not to its items and properties
    YES = 2


class _Rewriter:
    """One schema. The parts that are referred to become definitions, one for each use."""

    def __init__(self, schema: Mapping[str, Any], param: str, strict: bool) -> None:
        self._schema, self._param, self._strict = schema, param, strict
        self._resolve = resolver(schema)
        references = {part[key] for part in objects_in(schema) for key in REFERENCES if is_text(part.get(key))}
        self._shared = {id(target) for target in map(self._resolve, references) if isinstance(target, dict)}
        self._definitions: dict[str, Schema] = {"any": _ANY_VALUE}
        self._names: dict[tuple[int, _Alone] | str, str] = {}  # of definitions, by part and use, or by content
        self._waiting: list[tuple[str, dict[str, Any], _Alone]] = []
        # Whether bounds that the client did not write leave all numbers of the schema possible.
        self._small = all(map(is_small, objects_in(schema)))
        # A step of numbers beside another one makes an intersection that llguidance cannot follow.
        self._stepped = any("multipleOf" in part for part in objects_in(schema))
        self._ends: dict[str, Schema] = {}  # what references name, after those that name another one
        self._described: dict[int, tuple[bool, bool]] = {}
        self._reaching: dict[int, bool] = {}  # parts of the schema that say something about items or properties

    def root(self, arguments: bool) -> dict[str, Any]:
        """Rewrite the whole schema."""
        found = self._part(self.as_object() if arguments else self._schema, _Alone.YES)
        if isinstance(found, bool):
            raise self._refused("No value matches the schema.")
        while self._waiting:
            name, target, alone = self._waiting.pop()
            self._definitions[name] = self._inline(target, alone)
        return {**found, "$defs": self._definitions, "x-guidance": _OPTIONS}

    def as_object(self) -> Mapping[str, Any]:
        """Return the schema, so that only objects match it."""
        possible, certain = self._describes_object(self._schema)
        if not possible:
            raise self._refused("The parameters of a function must describe an object ('type': 'object').")
        return self._schema if certain else {**self._schema, "type": "object", "nullable": False}

    def _describes_object(self, part: Any) -> tuple[bool, bool]:
        """Whether a schema allows objects, and whether it allows nothing else."""
        if not isinstance(part, dict):
            return part is True, False
        if id(part) in self._described:
            return self._described[id(part)]
        described = id(part)
        self._described[described] = True, True  # a loop decides nothing
        part = _present(part)
        every = [self._target(part[key]) for key in REFERENCES if key in part] + as_list(part.get("allOf", []))
        found = [self._describes_object(other) for other in every]
        for key in ("anyOf", "oneOf"):
            some = [self._describes_object(other) for other in as_list(part.get(key, []))]
            found += [(any(possible for possible, _ in some), all(certain for _, certain in some))] if some else []
        if "type" in part:
            kinds = as_list(part["type"])
            found.append(("object" in kinds, kinds == ["object"]))
        if part.keys() & {"const", "enum"}:
            values = [isinstance(value, dict) for value in as_list(part.get("enum", [part.get("const")]))]
            found.append((any(values), all(values)))
        certain = any(certain for _, certain in found) and not _is_nullable(part)
        self._described[described] = all(possible for possible, _ in found), certain
        return self._described[described]

    def _refused(self, message: str) -> APIError:
        return invalid(message, self._param)

    def _skip(self, keyword: str, value: str | None = None) -> None:
        """Leave a keyword out. Raises APIError if the request is strict."""
        if self._strict:
            what = f"'{keyword}'" if value is None else f"{keyword} '{value}'"
            raise self._refused(f"'strict' is not possible with the schema's {what}: no grammar can enforce it.")

    def _part(self, part: Any, alone: _Alone) -> Schema:
        if not isinstance(part, (dict, bool)):
            raise self._refused("A schema must be an object or a boolean, at every level.")
        if part is False or part is True:
            return self._inline(_EMPTY, alone) if part else False
        return self._definition(part, alone) if id(part) in self._shared else self._inline(part, alone)

    def _definition(self, part: dict[str, Any], alone: _Alone) -> dict[str, Any]:
        key = (id(part), alone)
        if key not in self._names:
            self._names[key] = str(len(self._names))
            self._waiting.append((self._names[key], part, alone))
        return {"$ref": f"#/$defs/{self._names[key]}"}

    def _reference(self, reference: Any, alone: _Alone) -> Schema:
        target, passed = self._target(reference), set[int]()
        if reference not in self._ends:
            while isinstance(target, dict) and _only_refers(target):
                if id(target) in passed:
                    raise self._refused(f"The schema's reference '{reference}' leads back to itself.")
                passed.add(id(target))
                target = self._target(target["$ref"])
            self._ends[reference] = target
        return self._part(self._ends[reference], alone)

    def _target(self, reference: Any) -> Schema:
        target = self._resolve(reference) if isinstance(reference, str) else None
        if not isinstance(target, (dict, bool)):
            raise self._refused(f"The schema's reference '{reference!s:.200}' leads to no part of the schema.")
        return target

    def _inline(self, part: dict[str, Any], alone: _Alone) -> Schema:
        if part.get("not") in (True, _EMPTY):
            return False
        part = _present(part)
        if _is_nullable(part):
            if part.keys() & COMBINING:
                return {"anyOf": [self._inline({**part, "nullable": False}, alone), {"type": "null"}]}
            part["type"] = [*as_list(part["type"]), "null"]
        known = [key for key in part if key in ENFORCED]
        combined = [key for key in known if key in COMBINING]
        fill_parts = False
        if combined and len({*known} - {"type"}) + len(as_list(part.get("allOf", [0]))) > 2:
            reaching = self._count_reaching(part)
            fill_parts = alone is _Alone.YES and not reaching and "type" in part
            # Beside others, llguidance intersects patternProperties with additionalProperties.
            within = reaching <= 1 and "patternProperties" not in part
            alone = min(alone, _Alone.WITHIN if within else _Alone.NO)
        out: dict[str, Any] = {}
        for key in known:
            inner = _Alone.YES if alone and not self._overlaps(key, part) else _Alone.NO
            value = self._value(key, part[key], alone if key in COMBINING else inner)
            if key == "allOf" or key in REFERENCES:
                out["allOf"] = [*out.get("allOf", ()), *(value if key == "allOf" else [value])]
            elif value is not None or key == "const":
                out[key] = value
        if out.keys() & {"pattern", "enum", "const"}:  # they say more; zod's time zones differ from llguidance's
            out.pop("format", None)
        if out.get("format") in patterns.FORMATS:
            out["pattern"] = patterns.FORMATS[out.pop("format")]
        for key in [key for key in UNENFORCED if key in part]:
            self._replace(key, part, out, alone)
        if list(out) == ["allOf"] and len(out["allOf"]) == 1:
            return out["allOf"][0]  # type: ignore[no-any-return]
        if not out and alone is _Alone.YES:
            return _ANY
        if isinstance(out.get("items"), list):  # up to JSON Schema's draft 2019-09
            out["prefixItems"], out["items"] = out["items"], out.get("additionalItems", _ANY if alone else {})
        out.pop("additionalItems", None)
        self._check_sizes(out, alone)
        constant = bool(out.keys() & {"const", "enum"})
        fill = alone is _Alone.YES and not combined and not constant
        fill_parts = fill_parts or bool(alone and REACHING.intersection(known))
        self._bound(out, fill, fill or (fill_parts and not constant))
        if fill and len(out) > 1 and not {"array", "object"} & _kinds(out):
            # One definition for equal numbers and strings: each has a cost in llguidance's lexer.
            name = self._names.setdefault(str(out), str(len(self._names)))
            self._definitions[name] = out
            return {"$ref": f"#/$defs/{name}"}
        return out

    @staticmethod
    def _overlaps(key: str, part: dict[str, Any]) -> bool:
        """Whether several of the schemas of properties may apply to one value."""
        named = part.get("patternProperties")
        several = (len(named) if isinstance(named, dict) else 0) + ("properties" in part) > 1
        return several and key in ("properties", "patternProperties")

    def _count_reaching(self, part: dict[str, Any]) -> int:
        """Count the schemas that apply to a value and say something about its items or properties."""
        every = [self._target(part[key]) for key in REFERENCES if key in part] + as_list(part.get("allOf", []))
        some = [any(map(self._reaches, as_list(part.get(key, [])))) for key in ("anyOf", "oneOf")]
        return bool(part.keys() & REACHING) + sum(map(self._reaches, every)) + sum(some)

    def _reaches(self, part: Any) -> bool:
        if not isinstance(part, dict):
            return False
        if id(part) not in self._reaching:
            self._reaching[id(part)] = True  # a loop may
            self._reaching[id(part)] = self._count_reaching(_present(part)) > 0
        return self._reaching[id(part)]

    def _value(self, key: str, value: Any, alone: _Alone) -> Any:
        """Rewrite a keyword's value. None drops the keyword."""
        if key in REFERENCES:
            return self._reference(value, alone)
        valid, expected = EXPECTED[key]
        if not valid(value):
            raise self._refused(f"The schema's '{key}' must be {expected}.")
        if expected is A_SCHEMA:
            parts = value if key == "items" and isinstance(value, list) else None
            return self._part(value, alone) if parts is None else [self._part(part, alone) for part in parts]
        if expected is SCHEMAS:
            return [self._part(part, alone) for part in value]
        if expected is NAMED_SCHEMAS:
            names = {name: name if key == "properties" else self._pattern(name) for name in value}
            return {names[name]: self._part(part, alone) for name, part in value.items() if names[name] is not None}
        if key in ("const", "enum"):
            try:
                return constant(value)
            except ValueError as error:
                raise self._refused(str(error)) from None
        if key == "pattern":
            return self._pattern(value)
        if key == "multipleOf" and not divides(value):
            return self._skip(key)
        if expected is A_COUNT:
            return None if key.startswith("max") and value > MOST_COUNT else int(value)
        unknown = key == "format" and value not in FORMATS.keys() | patterns.FORMATS.keys()
        return None if unknown or (isinstance(value, bool) and key == "required") else value

    def _pattern(self, pattern: str) -> str | None:
        """Return a pattern as llguidance reads it. None drops it; raises APIError if the request is strict."""
        found = patterns.converted(pattern)
        if found is None:
            self._skip("pattern", pattern)
        return found

    def _replace(self, key: str, part: dict[str, Any], out: dict[str, Any], alone: _Alone) -> None:
        """Enforce a keyword that llguidance lacks by others, or skip it."""
        value = part[key]
        harmless = value in UNENFORCED[key] or (key == "if" and not part.keys() & {"then", "else"})
        if harmless or (key.startswith("depend") and isinstance(value, dict) and not any(value.values())):
            return
        other = "items" if key == "unevaluatedItems" else "additionalProperties"
        if key.startswith("unevaluated") and not part.keys() & {*COMBINING, "if", other}:
            out[other] = self._part(value, _Alone.YES if alone else _Alone.NO)
        elif key != "propertyNames" or not self._name_properties(value, part, out, alone):
            self._skip(key)

    def _name_properties(self, names: Any, part: dict[str, Any], out: dict[str, Any], alone: _Alone) -> bool:
        """Whether `propertyNames` is replaced by `properties` or `patternProperties`."""
        names = self._target(names["$ref"]) if isinstance(names, dict) and "$ref" in names else names
        if not isinstance(names, dict) or alone < _Alone.YES or out.keys() & {"properties", "patternProperties"}:
            return False
        values = part.get("additionalProperties", _EMPTY)
        values = self._definition(values, alone) if isinstance(values, dict) else self._part(values, alone)
        restricting = [*names.keys() & (ENFORCED | UNENFORCED.keys()) - {"type", "format"}]
        if restricting in (["enum"], ["const"]):
            chosen = as_list(names.get("enum", names.get("const")))
            out["properties"] = {name: values for name in chosen if isinstance(name, str)}
        elif restricting == ["pattern"] and is_text(names["pattern"]) and (found := self._pattern(names["pattern"])):
            out["patternProperties"] = {found: values}
        else:
            return False
        out["additionalProperties"] = False
        return True

    def _check_sizes(self, out: dict[str, Any], alone: _Alone) -> None:
        """Drop bounds on the number of properties that llguidance refuses, or meets by repeating a name."""
        required = set(out.get("required", ()))
        named = out.get("properties", {}).keys() | required
        closed = out.get("additionalProperties") is False and not out.get("patternProperties")
        least, most, one = out.pop("minProperties", 0), out.pop("maxProperties", None), len(required) + 1
        simple = alone is _Alone.YES and (closed or len(named) == len(required))
        if least >= one:
            if not simple or least > one:
                self._skip("minProperties")
            if simple:
                out["minProperties"] = one
        if most is not None and not (closed and most >= len(named)):
            if simple and (most == one or len(named) == len(required)):
                out["maxProperties"] = most
            else:
                self._skip("maxProperties")

    def _bound(self, out: dict[str, Any], fill: bool, fill_parts: bool) -> None:
        """Write bounds of numbers.

        With `fill`, bound the digits of all numbers and formats too; with `fill_parts`, those of all items and
        properties.
        """
        kinds = _kinds(out)
        if kinds & {"integer", "number"}:
            whole, added = "number" not in kinds, fill or (self._small and "type" in out)
            try:
                bound_numbers(out, whole=whole, fill=added, fine=fill or not self._stepped)
            except ValueError as error:
                raise self._refused(str(error)) from None
        if fill_parts and "array" in kinds:
            out.setdefault("items", _ANY)
        if fill_parts and "object" in kinds:
            out.setdefault("additionalProperties", _ANY)
        longest = FORMATS.get(out.get("format", ""))
        if fill and longest is not None:
            out.setdefault("maxLength", longest)


def _present(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without keywords that are null, which some converters write for absent ones."""
    return {key: value for key, value in part.items() if value is not None or key == "const"}


def _only_refers(schema: dict[str, Any]) -> bool:
    """Whether a schema says no more than the one that it names."""
    return [key for key in schema if key in ENFORCED] == ["$ref"] and not _is_nullable(schema)


def _is_nullable(schema: Mapping[str, Any]) -> bool:
    """Whether null matches a schema of OpenAPI 3.0 although its `type` or the schemas that it combines exclude null."""
    constant = schema.keys() & {"enum", "const"} and None not in as_list(schema.get("enum", [schema.get("const")]))
    return schema.get("nullable") is True and not constant and bool(schema.keys() & {"type", *COMBINING})


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    return set(as_list(schema.get("type", ["array", "object", "number"])))
