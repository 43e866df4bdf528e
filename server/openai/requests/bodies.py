"""Request bodies: bytes to validated models, and pydantic's findings to a 400 that names the field."""

from __future__ import annotations

from typing import Any, TypeVar

import pydantic_core
from pydantic import ValidationError

from server.http.errors import APIError, invalid
from server.openai.requests.schemas import RequestModel

Model = TypeVar("Model", bound=RequestModel)


def read_object(raw: bytes) -> dict[str, Any]:
    """The JSON object of a body without its null fields: null means absent. Raises APIError."""
    try:
        body = pydantic_core.from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise invalid(f"The body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise invalid("The body must be a JSON object.")
    return {name: value for name, value in body.items() if value is not None}


def validated(kind: type[Model], body: dict[str, Any]) -> Model:
    """Raises APIError naming the field at fault."""
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        raise _from_validation(error, body) from None


def _from_validation(error: ValidationError, body: dict[str, Any]) -> APIError:
    """The 400 for pydantic's finding that lies deepest in the body: of a union's complaints, the most specific."""
    details = error.errors(include_url=False, include_input=False)
    found = [(_path(detail["loc"], body, detail["type"] == "missing"), detail) for detail in details]
    path, detail = max(found, key=lambda item: len(item[0]))
    param = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    if detail["type"] == "missing":
        return invalid(f"Missing required parameter: '{param}'.", param)
    return invalid(f"Invalid value for '{param}': {detail['msg']}.", param)


def _path(location: tuple[int | str, ...], body: Any, missing: bool) -> list[int | str]:
    """The parts of an error's location that exist in the body, but for what is missing; the others are names of union
    members."""
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
