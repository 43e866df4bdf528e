"""Parse and validate request bodies. Errors become a 400 that names the field."""

import json
import re
from typing import Any, TypeVar

import pydantic_core
from pydantic import ValidationError

from server.http.errors import APIError, invalid
from server.openai.requests.schemas import RequestModel

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LARGE_NUMBER = re.compile(rb"[eE]\+?\d{3}|\d{309}")  # that may be more than a float can hold

Model = TypeVar("Model", bound=RequestModel)


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
    return {name: value for name, value in body.items() if value is not None}


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
    return invalid(f"Invalid value for '{param}': {detail['msg'].replace(' after validation', '')}.", param)


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
