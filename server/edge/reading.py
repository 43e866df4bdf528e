"""Parse and validate request bodies. Errors become a 400 that names the field.

Types are strict, as in OpenAI's API: "5" is not an integer, and true is not a number. Null fields count as absent.
"""

import json
import re
from typing import Annotated, Any, TypeVar

import pydantic_core
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from server.edge.errors import APIError, invalid

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LARGE_NUMBER = re.compile(rb"\d[eE]\+?\d\d|\d{309}")  # numbers that may be more than a float can hold

Model = TypeVar("Model", bound=BaseModel)
Objects = BeforeValidator(lambda value: _objects(value))  # errors name the list, not its first item
Whole = Annotated[int, BeforeValidator(lambda value: whole(value))]  # an integer, which may be written as 3.0


def _nullable(schema: dict[str, Any]) -> None:
    """Document that null counts as absent in every optional field."""
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        if name not in required:
            schema["properties"][name] = {"anyOf": [field, {"type": "null"}]}


class RequestModel(BaseModel):
    """Base of all parts of bodies. `server.apis.fields` handles unknown fields of a whole body."""

    model_config = ConfigDict(
        strict=True,
        extra="ignore",
        frozen=True,
        json_schema_extra=_nullable,
        defer_build=True,  # APIs that nobody uses take less memory
    )


class NullableModel(RequestModel):
    """A part of a body whose null fields are dropped, at any depth below it as well if its parts are such models."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        return without_nulls(value) if isinstance(value, dict) else value


def without_nulls(part: dict[str, Any]) -> dict[str, Any]:
    """Return an object without its null fields."""
    return {name: value for name, value in part.items() if value is not None}


def read_object(raw: bytes) -> dict[str, Any]:
    """Parse a body's JSON object and drop its null fields, which count as absent. Raises APIError."""
    try:
        body = pydantic_core.from_json(raw.removeprefix(_BYTE_ORDER_MARK), allow_inf_nan=False)
        if _LARGE_NUMBER.search(raw):
            json.dumps(body, allow_nan=False)
    except ValueError as error:
        raise invalid(f"The body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise invalid("The body must be a JSON object.")
    return without_nulls(body)


def whole(value: Any) -> Any:
    """Turn a number such as 3.0 into 3, as other servers do; other values stay as they are."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _objects(value: Any) -> Any:
    if isinstance(value, list) and not all(isinstance(item, dict) for item in value):
        raise ValueError("Input should be a list of objects")
    return value


def read_field(value: object, param: str) -> dict[str, Any]:
    """Return a field that is an object or its JSON. Raises APIError naming `param`."""
    if isinstance(value, str):
        try:
            value = pydantic_core.from_json(value, allow_inf_nan=False)
        except ValueError:
            raise invalid(f"'{param}' is not valid JSON.", param) from None
    if not isinstance(value, dict):
        raise invalid(f"'{param}' must be an object.", param)
    return value


def validate(kind: type[Model], body: dict[str, Any], within: str = "") -> Model:
    """Validate a body, or the object that the field `within` has. Raises APIError naming the invalid field."""
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        raise _from_validation(error, body, within) from None


def _from_validation(error: ValidationError, body: dict[str, Any], within: str) -> APIError:
    """Convert the error at the deepest location: of the errors of a union, the most specific one.

    At the same depth, a value of the right type but out of range comes before one of a wrong type.
    """
    details = error.errors(include_url=False, include_input=False)
    found = [(_path(detail["loc"], body, detail["type"] == "missing"), detail) for detail in details]
    path, detail = max(found, key=lambda item: (len(item[0]), not item[1]["type"].endswith("_type")))
    if detail["type"].startswith("union_tag"):  # pydantic's errors about `type` are those of the object
        path = [*path, "type"]
    param = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in [within, *path]).lstrip(".")
    if detail["type"] in ("missing", "union_tag_not_found"):
        return invalid(f"Missing required parameter: '{param}'.", param)
    if detail["type"] == "extra_forbidden":
        return invalid(f"Unknown parameter: '{param}'.", param)
    reason = detail["msg"].replace(" after validation", "")
    if detail["type"] in ("model_type", "model_attributes_type"):  # pydantic writes names of classes
        reason = "Input should be an object"
    return invalid(f"Invalid value for '{param}': {reason}.", param)


def _path(location: tuple[int | str, ...], body: Any, missing: bool) -> list[int | str]:
    """Return the parts of an error's location that are part of the body, a missing field included.

    The other parts are pydantic's names for the members of unions.
    """
    path: list[int | str] = []
    node = body
    for depth, part in enumerate(location):
        if isinstance(node, dict) and (part in node or (missing and depth == len(location) - 1)):
            path.append(part)
            node = node.get(part)
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            path.append(part)
            node = node[part]
    return path
