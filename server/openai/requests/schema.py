"""Rewrite JSON schemas as llguidance can enforce them (its docs/json_schema.md lists what it supports).

Annotations are dropped. Keywords that no grammar enforces are dropped too, or refused if the request is strict. Numbers
get bounds, so that a weak model cannot fill its answer with digits.
"""

from collections.abc import Mapping
from typing import Any

from server.http.errors import APIError, invalid
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
    is_nullable,
)
from server.openai.requests.numbers import ANY_NUMBER, bound_digits, bound_numbers, divides, is_exact, is_usual
from server.openai.requests.patterns import converted
from server.openai.requests.references import REFERENCES, References, objects_in

Schema = dict[str, Any] | bool

# No white space but a space after a separator, as `json.dumps` writes. Unknown formats and numbers of properties that
# llguidance cannot count are left out (`lenient`); what a strict request refuses is found here.
_OPTIONS = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?", "lenient": True}
_ANY = {"$ref": "#/$defs/any"}
_ANY_VALUE = {
    "anyOf": [
        {"type": ["null", "boolean", "string"]},
        ANY_NUMBER,
        {"type": "array", "items": _ANY},
        {"type": "object", "additionalProperties": _ANY},
    ]
}


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


class _Rewriter:
    """One schema. Parts that references name become definitions.

    Many methods take `alone`: whether no other schema describes the items and properties of the same value. Only then
    may bounds be added for those that the schema leaves open: llguidance intersects the schemas of a value, and an
    intersection of two that refer to themselves does not end.
    """

    def __init__(self, schema: Mapping[str, Any], param: str, strict: bool) -> None:
        self._schema, self._param, self._strict = schema, param, strict
        self._references = References(schema)
        parts = [*objects_in(schema)]
        self._shared = {id(target) for part in parts for target in self._references.targets(part)}
        self._definitions: dict[str, Schema] = {"any": _ANY_VALUE}
        self._names: dict[tuple[int, bool] | str, str] = {}  # of definitions, by part and `alone`, or by content
        self._waiting: list[tuple[str, dict[str, Any], bool]] = []
        self._described: dict[int, tuple[bool, bool]] = {}  # results of `_describes_object` by part
        self._reaching: dict[int, bool] = {}  # results of `_reaches` by part
        # Beside other schemas, bounds that the client did not write may leave no number of these, and a step that it
        # did not write may have a common multiple with theirs that is too large for a grammar.
        self._usual = all(map(is_usual, parts))
        self._stepped = any("multipleOf" in part for part in parts)

    def root(self, arguments: bool) -> dict[str, Any]:
        """Rewrite the whole schema."""
        found = self._part(self.as_object() if arguments else self._schema, alone=True)
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
        if id(part) not in self._described:
            self._described[id(part)] = True, True  # a loop decides nothing
            found = [self._one_describes_object(group) for group in self._groups(part)]
            if part.get("type") is not None:
                kinds = as_list(part["type"])
                found.append(("object" in kinds, kinds == ["object"]))
            if part.keys() & {"const", "enum"}:
                values = [isinstance(value, dict) for value in as_list(part.get("enum", [part.get("const")]))]
                found.append((any(values), all(values)))
            certain = any(certain for _, certain in found) and not is_nullable(part)
            self._described[id(part)] = all(possible for possible, _ in found), certain
        return self._described[id(part)]

    def _one_describes_object(self, group: list[Any]) -> tuple[bool, bool]:
        found = [*map(self._describes_object, group)]
        return any(possible for possible, _ in found), all(certain for _, certain in found)

    def _groups(self, part: dict[str, Any]) -> list[list[Any]]:
        """Return the schemas that a part combines: of each group, one must match."""
        every = [self._target(part, key) for key in REFERENCES if part.get(key) is not None]
        every += as_list(part.get("allOf") or [])
        some = [as_list(part[key]) for key in ("anyOf", "oneOf") if part.get(key)]
        return [*([schema] for schema in every), *some]

    def _reaches(self, part: Any) -> bool:
        """Whether a schema says something about the items or properties of a value."""
        if not isinstance(part, dict):
            return False
        if id(part) not in self._reaching:
            self._reaching[id(part)] = True  # a loop may
            reached = (any(map(self._reaches, group)) for group in self._groups(part))
            self._reaching[id(part)] = not REACHING.isdisjoint(part) or any(reached)
        return self._reaching[id(part)]

    def _refused(self, message: str) -> APIError:
        return invalid(message, self._param)

    def _skip(self, keyword: str, value: str | None = None) -> None:
        """Leave a keyword out. Raises APIError if the request is strict."""
        if self._strict:
            what = f"'{keyword}'" if value is None else f"{keyword} '{value}'"
            raise self._refused(f"'strict' is not possible with the schema's {what}: no grammar can enforce it.")

    def _target(self, part: dict[str, Any], key: str) -> Schema:
        target = self._references.target(part, key)
        if not isinstance(target, (dict, bool)):
            raise self._refused(f"The schema's reference '{part[key]!s:.200}' leads to no part of the schema.")
        return target

    def _referred(self, part: dict[str, Any], key: str) -> Schema:
        """Return what a reference names; if that only names another part, then that one."""
        target, passed = self._target(part, key), set[int]()
        while isinstance(target, dict) and _only_refers(target):
            if id(target) in passed:
                raise self._refused(f"The schema's reference '{part[key]}' leads back to itself.")
            passed.add(id(target))
            target = self._target(target, "$ref")
        return target

    def _part(self, part: Any, alone: bool) -> Schema:
        if not isinstance(part, (dict, bool)):
            raise self._refused("A schema must be an object or a boolean, at every level.")
        if isinstance(part, bool):
            return self._inline({}, alone) if part else False
        return self._definition(part, alone) if id(part) in self._shared else self._inline(part, alone)

    def _definition(self, part: dict[str, Any], alone: bool) -> dict[str, Any]:
        key = (id(part), alone)
        if key not in self._names:
            self._names[key] = str(len(self._names))
            self._waiting.append((self._names[key], part, alone))
        return {"$ref": f"#/$defs/{self._names[key]}"}

    def _inline(self, part: dict[str, Any], alone: bool) -> Schema:
        if part.get("not") in (True, {}):
            return False
        found = self._combined(part, alone)
        return {"anyOf": [found, {"type": "null"}]} if is_nullable(part) else found

    def _combined(self, part: dict[str, Any], alone: bool) -> Schema:
        """Rewrite a part and the schemas that it combines."""
        known = _present(part)
        for key in known:
            self._check(key, known[key])
        combining = not COMBINING.isdisjoint(known)
        intersecting = combining and _count_schemas(known) > 1
        own = not REACHING.isdisjoint(known)
        describing = own + sum(any(map(self._reaches, group)) for group in self._groups(part))
        # llguidance intersects `patternProperties` with the properties that other schemas leave open.
        alone = alone and (not intersecting or (describing <= 1 and "patternProperties" not in known))

        def rewritten(schema: Any, group: list[Any]) -> Schema:
            return self._part(schema, alone and (not intersecting or any(map(self._reaches, group))))

        out: dict[str, Any] = {}
        for key, value in known.items():
            if key in REFERENCES:
                target = self._referred(part, key)
                out.setdefault("allOf", []).append(rewritten(target, [target]))
            elif key == "allOf":
                out.setdefault(key, []).extend(rewritten(schema, [schema]) for schema in value)
            elif key in ("anyOf", "oneOf"):
                out[key] = [rewritten(schema, value) for schema in value]
            elif (found := self._value(key, value, alone and not _overlaps(known))) is not None or key == "const":
                out[key] = found
        self._replace_unenforced(known, out, alone and not combining)
        if list(out) == ["allOf"] and len(out["allOf"]) == 1:
            return out["allOf"][0]  # type: ignore[no-any-return]
        if not out and alone:
            return _ANY
        self._limit_properties(out, alone and not combining)
        fills = alone and (not combining or (intersecting and describing == own))
        return self._bounded(out, alone and not combining, fills)

    def _check(self, key: str, value: Any) -> None:
        valid, expected = EXPECTED.get(key, (None, ""))
        if valid is not None and not valid(value):
            raise self._refused(f"The schema's '{key}' must be {expected}.")
        if key in ("const", "enum") and not is_exact(value):
            raise self._refused(f"A number in the schema's '{key}' has too many digits for a grammar. Use a string.")

    def _value(self, key: str, value: Any, alone: bool) -> Any:
        """Rewrite a keyword's value. None drops the keyword."""
        if key not in EXPECTED:
            return None
        expected = EXPECTED[key][1]
        if expected is A_SCHEMA and not isinstance(value, list):
            return self._part(value, alone)
        if expected in (A_SCHEMA, SCHEMAS):
            return [self._part(part, alone) for part in value]
        if expected is NAMED_SCHEMAS:
            names = {name: self._pattern(name) if key == "patternProperties" else name for name in value}
            return {names[name]: self._part(part, alone) for name, part in value.items() if names[name] is not None}
        if expected is A_COUNT:
            return None if key.startswith("max") and value > MOST_COUNT else int(value)
        if key == "pattern":
            return self._pattern(value)
        if key == "multipleOf" and not divides(value):
            return self._skip(key)
        return None if key == "required" and isinstance(value, bool) else value

    def _pattern(self, pattern: str) -> str | None:
        """Return a pattern as llguidance reads it. None drops it; raises APIError if the request is strict."""
        found = converted(pattern)
        if found is None:
            self._skip("pattern", pattern)
        return found

    def _replace_unenforced(self, part: dict[str, Any], out: dict[str, Any], alone: bool) -> None:
        """Enforce keywords that llguidance lacks by others, or skip them. `alone`: the part combines no schemas."""
        for key in UNENFORCED.keys() & part.keys():
            value = part[key]
            without_effect = key == "if" and part.keys().isdisjoint({"then", "else"})
            if key.startswith("depend") and isinstance(value, dict):
                without_effect = not any(value.values())
            if without_effect or value in UNENFORCED[key]:
                continue
            other = "items" if key == "unevaluatedItems" else "additionalProperties"
            if key.startswith("unevaluated") and part.keys().isdisjoint({*COMBINING, "if", "contains", other}):
                out[other] = self._part(value, alone)
            elif key != "propertyNames" or not self._name_properties(value, part, out, alone):
                self._skip(key)

    def _name_properties(self, names: Any, part: dict[str, Any], out: dict[str, Any], alone: bool) -> bool:
        """Whether `propertyNames` is replaced by `properties` or `patternProperties`."""
        names = self._target(names, "$ref") if isinstance(names, dict) and "$ref" in names else names
        if not isinstance(names, dict) or not alone or out.keys() & {"properties", "patternProperties"}:
            return False
        values = part.get("additionalProperties", True)
        values = self._definition(values, alone) if isinstance(values, dict) else self._part(values, alone)
        restricting = [*names.keys() & (ENFORCED | UNENFORCED.keys()) - {"type", "format"}]
        if restricting in (["enum"], ["const"]):
            chosen = as_list(names.get("enum", names.get("const")))
            out["properties"] = {name: values for name in chosen if isinstance(name, str)}
        elif restricting == ["pattern"] and isinstance(names["pattern"], str):
            pattern = self._pattern(names["pattern"])
            out["patternProperties"] = {pattern: values}
        else:
            return False
        out["additionalProperties"] = False
        return True

    def _limit_properties(self, out: dict[str, Any], alone: bool) -> None:
        """Leave out numbers of properties that llguidance refuses, or meets by repeating a name."""
        required = {*out.get("required", ())}
        named = out.get("properties", {}).keys() | required
        closed = out.get("additionalProperties") is False and not out.get("patternProperties")
        countable = alone and (closed or len(named) == len(required))
        least, most = out.pop("minProperties", 0), out.pop("maxProperties", None)
        if least > len(required) and countable:
            out["minProperties"] = len(required) + 1
        if least > len(required) + countable:
            self._skip("minProperties")
        if most is None or (closed and most >= len(named)):
            return
        if countable and (most == len(required) + 1 or len(named) == len(required)):
            out["maxProperties"] = most
        else:
            self._skip("maxProperties")

    def _bounded(self, out: dict[str, Any], alone: bool, fills: bool) -> Schema:
        """Add bounds of digits to a rewritten part, and with `fills` to the items and properties that it leaves open.

        `alone`: no other schema describes the value itself.
        """
        kinds = {*as_list(out.get("type", ["array", "object", "number"]))}
        constant = not out.keys().isdisjoint({"const", "enum"})
        if constant or "pattern" in out:
            out.pop("format", None)  # they say more; zod's time zones differ from llguidance's
        if kinds & {"integer", "number"} and not constant:
            if alone or (self._usual and "type" in out):
                bound_digits(out, step="number" in kinds and (alone or not self._stepped))
            try:
                bound_numbers(out, whole="number" not in kinds)
            except ValueError as error:
                raise self._refused(str(error)) from None
        if fills and not constant and "array" in kinds:
            out.setdefault("additionalItems" if isinstance(out.get("items"), list) else "items", _ANY)
        if fills and not constant and "object" in kinds:
            out.setdefault("additionalProperties", _ANY)
        longest = FORMATS.get(out.get("format", ""))
        if longest is not None:
            out.setdefault("maxLength", longest)
        if not alone or len(out) == 1 or kinds & {"array", "object"}:
            return out
        # One definition for equal numbers and strings, each of which has a cost in llguidance's lexer.
        name = self._names.setdefault(str(out), str(len(self._names)))
        self._definitions[name] = out
        return {"$ref": f"#/$defs/{name}"}


def _present(part: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without keywords that are null, which some converters write for absent ones."""
    return {key: value for key, value in part.items() if value is not None or key == "const"}


def _only_refers(schema: dict[str, Any]) -> bool:
    """Whether a schema says no more than the one that it names."""
    return [key for key in _present(schema) if key in ENFORCED] == ["$ref"] and not is_nullable(schema)


def _count_schemas(part: dict[str, Any]) -> int:
    """Count the schemas that a part intersects: each keyword but its `type` is one, and each item of `allOf`."""
    keywords = part.keys() & ENFORCED - {"type", "allOf"}
    return len(keywords) + len(part.get("allOf", ()))


def _overlaps(part: dict[str, Any]) -> bool:
    """Whether several of the schemas of properties may apply to one value."""
    patterns = part.get("patternProperties", ())
    return len(patterns) + ("properties" in part) > 1 and "patternProperties" in part
