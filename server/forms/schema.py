"""Rewrite JSON schemas as llguidance can enforce them (its docs/json_schema.md lists what it supports).

Annotations are dropped. Keywords that no grammar enforces are dropped too, or refused if the request is strict. Numbers
get bounds, so that a weak model cannot fill its answer with digits.
"""

from collections.abc import Mapping
from typing import Any

from server.edge.errors import APIError, invalid
from server.forms import keywords
from server.forms.keywords import COMBINING, ENFORCED, EXPECTED, UNENFORCED, as_list, is_nullable
from server.forms.numbers import bound_digits, bound_numbers, divides, is_exact, is_usual
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
    return _Rewriter(schema, param, strict).root(arguments)


def check_object(schema: Mapping[str, Any], param: str) -> None:
    """Raise APIError if no object matches a schema, as far as `type`, constants and references tell."""
    _Rewriter(schema, param, False).as_object()


class _Rewriter:
    """One schema. Parts that references name become definitions.

    Items and properties that a schema leaves open get bounds of digits by the definition `any`. llguidance intersects
    the schemas of a value, and an intersection of two that refer to themselves does not end. Thus only a schema that is
    `alone`, which is not intersected with others, gets `any`; others get `some`, which bounds two levels.
    """

    def __init__(self, schema: Mapping[str, Any], param: str, strict: bool) -> None:
        self._schema, self._param, self._strict = schema, param, strict
        self._references = References(schema)
        # In an intersection, bounds that the client did not write may leave no number of these, and a step that it did
        # not write may have a common multiple with theirs that is too large for a grammar.
        self._usual = all(map(is_usual, self._references.parts))
        self._stepped = any("multipleOf" in part for part in self._references.parts)
        self._definitions: dict[str, Schema] = {}
        self._names: dict[tuple[int, bool] | str, str] = {}  # names of definitions, by part and `alone`, or by content
        self._waiting: list[tuple[str, dict[str, Any], bool]] = []
        self._ends: dict[int, Schema] = {}  # results of `_followed` by part
        self._objects: dict[int, bool] = {}  # results of `_allows_object` by part

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
        if not self._allows_object(self._schema):
            raise self._refused("The parameters of a function must describe an object ('type': 'object').")
        found = self._followed(self._schema, "$ref") if _only_refers(self._schema) else self._schema
        return {**(found if isinstance(found, Mapping) else {}), "type": "object", "nullable": False}

    def _allows_object(self, part: Any) -> bool:
        if not isinstance(part, Mapping):
            return part is True
        if id(part) not in self._objects:
            self._objects[id(part)] = True  # a loop decides nothing
            known = _present(part)
            values = as_list(known.get("enum", known.get("const", {})))
            own = "object" in as_list(known.get("type", "object")) and any(isinstance(value, dict) for value in values)
            every = [self._target(part, key) for key in REFERENCES if key in known] + as_list(known.get("allOf", []))
            some = [as_list(known[key]) for key in ("anyOf", "oneOf") if key in known]
            groups = [*([schema] for schema in every), *some]
            self._objects[id(part)] = own and all(any(map(self._allows_object, group)) for group in groups)
        return self._objects[id(part)]

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

    def _followed(self, part: Mapping[str, Any], key: str) -> Schema:
        """Return what a reference names; if that only names another part, then that one."""
        target, passed = self._target(part, key), set[int]()
        while isinstance(target, dict) and _only_refers(target):
            if id(target) in passed:
                raise self._refused(f"The schema's reference '{part[key]}' leads back to itself.")
            passed.add(id(target))
            # The ends of chains are kept: many parts may name the beginning of a long one.
            target = self._ends[id(target)] if id(target) in self._ends else self._target(target, "$ref")
        self._ends |= dict.fromkeys(passed, target)
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
        return {"anyOf": [found, {"type": "null"}]} if is_nullable(part) else found

    def _combined(self, part: dict[str, Any], alone: bool) -> Schema:
        """Rewrite a part and the schemas that it combines."""
        known = _present(part)
        for key in [key for key in known if key in EXPECTED]:
            valid, expected = EXPECTED[key]
            if not valid(known[key]):
                raise self._refused(f"The schema's '{key}' must be {expected}.")
        combining = not COMBINING.isdisjoint(known)
        intersecting = _intersects(known)
        alone = alone and not intersecting
        out: dict[str, Any] = {}
        for key, value in known.items():
            if key in REFERENCES:
                out.setdefault("allOf", []).append(self._definition(self._followed(part, key), alone))
            elif key == "allOf":
                out.setdefault(key, []).extend(self._part(schema, alone) for schema in value)
            elif key in EXPECTED and ((found := self._value(key, value, alone)) is not None or key == "const"):
                out[key] = found
        self._replace_unenforced(known, out, alone and not combining)
        if list(out) == ["allOf"] and len(out["allOf"]) == 1:
            return out["allOf"][0]  # type: ignore[no-any-return]
        if not out:
            return self._any(alone)
        self._limit_properties(out, alone and not combining)
        if not out.keys().isdisjoint({"const", "enum"}):
            out.pop("format", None)
            return out
        if intersecting or not combining:  # otherwise the one schema that it combines does
            self._fill(out, alone)
        return self._with_digits(out, alone and not combining)

    def _value(self, key: str, value: Any, alone: bool) -> Any:
        """Rewrite a keyword's value. None drops the keyword."""
        expected = EXPECTED[key][1]
        if expected is keywords.A_SCHEMA and not isinstance(value, list):
            return self._part(value, alone)
        if expected in (keywords.A_SCHEMA, keywords.SCHEMAS):
            return [self._part(part, alone) for part in value]
        if expected is keywords.NAMED_SCHEMAS:
            names = {name: self._pattern(name) if key == "patternProperties" else name for name in value}
            return {names[name]: self._part(part, alone) for name, part in value.items() if names[name] is not None}
        if expected is keywords.A_COUNT:
            return None if key.startswith("max") and value > keywords.MOST_COUNT else int(value)
        if key == "pattern":
            return self._pattern(value)
        if key in ("const", "enum") and not is_exact(value):
            raise self._refused(f"A number in the schema's '{key}' has too many digits for a grammar. Use a string.")
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
        for key in [key for key in part if key in UNENFORCED]:
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
        values = self._definition(part.get("additionalProperties", True), alone)
        restricting = [*names.keys() & (ENFORCED | UNENFORCED.keys()) - {"type", "format"}]
        if restricting in (["enum"], ["const"]):
            chosen = as_list(names.get("enum", names.get("const")))
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

    def _fill(self, out: dict[str, Any], alone: bool) -> None:
        """Describe the items and properties that a rewritten schema leaves open."""
        kinds = _kinds(out)
        if "array" in kinds:
            out.setdefault("additionalItems" if isinstance(out.get("items"), list) else "items", self._any(alone))
        if "object" in kinds:
            out.setdefault("additionalProperties", self._any(alone))

    def _any(self, alone: bool) -> Schema:
        """Return a schema of all values whose digits are bounded."""
        number = self._number({"type": "number"}, alone)
        if alone:
            self._definitions["any"] = _any_value({"$ref": "#/$defs/any"}, number)
            return {"$ref": "#/$defs/any"}
        self._definitions["inner"] = _any_value(True, number)
        self._definitions["some"] = _any_value({"$ref": "#/$defs/inner"}, number)
        return {"$ref": "#/$defs/some"}

    def _with_digits(self, out: dict[str, Any], alone: bool) -> Schema:
        """Bound the digits of a rewritten schema's own numbers and formats."""
        if "pattern" in out:
            out.pop("format", None)  # the pattern says more; zod's time zones differ from llguidance's
        if out.get("format") in keywords.ENDLESS_FORMATS:
            out.setdefault("maxLength", keywords.MOST_CHARACTERS)
        kinds = _kinds(out)
        if kinds & {"integer", "number"}:
            self._number(out, alone)
        if not alone or len(out) == 1 or kinds & {"array", "object"}:
            return out
        # One definition for equal numbers and strings, each of which has a cost in llguidance's lexer.
        name = self._names.setdefault(str(out), str(len(self._names)))
        self._definitions[name] = out
        return {"$ref": f"#/$defs/{name}"}

    def _number(self, out: dict[str, Any], alone: bool) -> dict[str, Any]:
        fractional = "number" in _kinds(out)
        if alone or (self._usual and "type" in out):
            bound_digits(out, step=fractional and (alone or not self._stepped))
        try:
            bound_numbers(out, whole=not fractional)
        except ValueError as error:
            raise self._refused(str(error)) from None
        return out


def _any_value(inner: Schema, number: Schema) -> Schema:
    """Return a schema of all values, whose items and properties match `inner`."""
    array, mapping = {"type": "array", "items": inner}, {"type": "object", "additionalProperties": inner}
    return {"anyOf": [{"type": ["null", "boolean", "string"]}, number, array, mapping]}


def _present(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without keywords that are null, which some converters write for absent ones."""
    return {key: value for key, value in part.items() if value is not None or key == "const"}


def _only_refers(schema: Mapping[str, Any]) -> bool:
    """Whether a schema says no more than the one that it names."""
    return [key for key in _present(schema) if key in ENFORCED] == ["$ref"] and not is_nullable(schema)


def _intersects(part: dict[str, Any]) -> bool:
    """Whether a schema says that several may apply to the value or to a property, beside its `type`."""
    if {"properties", "patternProperties"} <= part.keys():
        return True
    schemas = len(part.keys() & ENFORCED - {"type", "allOf"}) + len(part.get("allOf", ()))
    return schemas > 1 and not COMBINING.isdisjoint(part)


def _kinds(schema: dict[str, Any]) -> set[str]:
    return {*as_list(schema.get("type", ["array", "object", "number"]))}
