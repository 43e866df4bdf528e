"""The OpenAPI document: descriptions of endpoints that FastAPI cannot derive, and the models that it does not see.

The endpoints parse bodies, and write streams and errors, themselves.
"""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from server.apis.replies import ErrorReply

Json = dict[str, Any]
Replies = dict[int | str, Json]  # replies by status, as FastAPI takes them

_DESCRIPTIONS = {
    400: "Invalid or unsupported request, or one that exceeds the context length.",
    401: "Missing or incorrect API key.",
    403: "Cross-origin request refused.",
    404: "Unknown model, response or item.",
    408: "The request body did not arrive in time.",
    413: "Request body too large.",
    415: "Request body with a Content-Encoding.",
    429: "Queue full; retry after `Retry-After` seconds.",
    500: "Internal server error.",
    503: "The server is loading or shutting down, or its engine has failed.",
}
_STREAMED = "The complete reply, or a stream of {} if `stream` is true."
_STRING = {"type": "string"}


def _reference(kind: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _event(chunk: type) -> Json:
    """Describe an event of a stream in OpenAPI 3.2: a chunk or an error in JSON, or `[DONE]` at the end."""
    payload = {"anyOf": [_reference(chunk), _reference(ErrorReply)]}
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": payload}
    return {"type": "object", "properties": {"data": {"anyOf": [{"const": "[DONE]"}, data]}}, "required": ["data"]}


def errors(*statuses: int, model: type = ErrorReply) -> Replies:
    """Describe error replies."""
    content = {"application/json": {"schema": _reference(model)}}
    return {status: {"content": content, "description": _DESCRIPTIONS[status]} for status in sorted(statuses)}


def request_body(model: type) -> Json:
    """Describe the body of a request."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": _reference(model)}}}}


def chunks(kind: type, chunk: type) -> Replies:
    """Describe a reply of OpenAI's older APIs: an object, or a stream of chunks."""
    content = {"text/event-stream": {"itemSchema": _event(chunk)}}
    return {200: {"model": kind, "description": _STREAMED.format("chunks"), "content": content}}


def events(kind: type) -> Replies:
    """Describe a reply of another API: an object, or a stream of named events."""
    event = {"type": "object", "properties": {"event": _STRING, "data": _STRING}, "required": ["event", "data"]}
    content = {"text/event-stream": {"itemSchema": event}}
    return {200: {"model": kind, "description": _STREAMED.format("events"), "content": content}}


def reply(kind: type, description: str) -> Replies:
    """Describe a reply that the endpoint writes itself."""
    return {200: {"model": kind, "description": description}}


def text(media_type: str, description: str) -> Replies:
    """Describe a reply that is no JSON."""
    return {200: {"description": description, "content": {media_type: {"schema": _STRING}}}}


def complete(document: Json, requests: Iterable[type[BaseModel]], streamed: Iterable[type[BaseModel]]) -> None:
    """Add the models of requests, and of streams and errors, to FastAPI's document."""
    _, models = models_json_schema(
        [*((kind, "validation") for kind in requests), *((kind, "serialization") for kind in streamed)],
        ref_template="#/components/schemas/{model}",
    )
    schemas = document["components"]["schemas"]
    schemas.update(models["$defs"])
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)  # no endpoint returns FastAPI's own 422
