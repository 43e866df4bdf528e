"""Errors in OpenAI's format: `{"error": {"message", "type", "param", "code"}}`.

The server raises `APIError`, and `as_api_error` maps other exceptions to it.
"""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from difflib import get_close_matches

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Match, Route
from starlette.types import Scope

from engine.errors import (
    ContextLengthError,
    EngineDrainingError,
    EngineRestartingError,
    EngineUnavailableError,
    QueueFullError,
    RequestError,
)

log = logging.getLogger("knapserve.server")

INVALID = "invalid_request_error"
FACTS = "knapserve.facts"  # ASGI scope key: fields for the access log; only generation requests have it
REQUEST_ID: ContextVar[str] = ContextVar("knapserve.request_id", default="")
# Errors echo parts of the request (a model's name, a field's path); these limits keep a reply below 2 kB.
_MAX_MESSAGE = 1000  # bytes
_MAX_PARAM = 300


class APIError(Exception):
    """An error reply. Message and param are truncated, so that a reply echoes little of the request."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = INVALID,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        lengths: tuple[int, int] | None = None,
    ) -> None:
        """`lengths`: tokens requested, and the context length that they exceed."""
        super().__init__(message)
        self.status = status
        self.message = _truncate(message, _MAX_MESSAGE)
        self.type = type
        self.param = None if param is None else _truncate(param, _MAX_PARAM)
        self.code = code
        self.headers = headers
        self.lengths = lengths

    def body(self) -> dict[str, object]:
        """Return the JSON object of an error reply or an error chunk."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}

    def response(self, scope: Scope | None = None) -> JSONResponse:
        """Return the reply. With a `scope`, add the error to the access log of its request."""
        if scope is not None and FACTS in scope:
            scope[FACTS].update(self.facts)
        anthropic = scope is not None and scope["path"].startswith("/v1/messages")
        body = anthropic_body(self) if anthropic else self.body()
        return JSONResponse(body, status_code=self.status, headers=self.headers)

    def renamed(self, old: str, new: str) -> "APIError":
        """Return this error with another name of the field that `param` begins with, in its message too."""
        if old == new or self.param is None:
            return self
        return APIError(
            self.status,
            self.message.replace(f"'{old}", f"'{new}"),
            type=self.type,
            param=new + self.param.removeprefix(old),
            code=self.code,
            headers=self.headers,
            lengths=self.lengths,
        )

    @property
    def facts(self) -> dict[str, str]:
        """Fields for the access log. Of `param`, only the name of our field: the rest of the path is the client's."""
        field = None if self.param is None else re.split(r"[.\[]", self.param)[0]
        facts = {"error": self.code or self.type, "param": field}
        return {name: value for name, value in facts.items() if value is not None}


_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "invalid_request_error",
    413: "request_too_large",
    415: "invalid_request_error",
    429: "rate_limit_error",
    503: "overloaded_error",
}


# Field → the code by which Anthropic's SDK knows that it must do without it.
_UNSUPPORTED = {"thread": "thread_unsupported_request"}


def anthropic_body(error: APIError) -> dict[str, object]:
    """Return the JSON object of an error in Anthropic's format."""
    # Anthropic's errors have no `param`.
    unnamed = error.status == 400 and error.param and f"'{error.param}" not in error.message
    message = f"{error.param}: {error.message}" if unnamed else error.message
    details: dict[str, object] = {"type": _ANTHROPIC_TYPES.get(error.status, "api_error"), "message": message}
    if error.lengths is not None:
        # Anthropic's words, by which Claude Code knows that it must shorten the conversation.
        details["message"] = "prompt is too long: {} tokens > {} maximum".format(*error.lengths)
    if error.param in _UNSUPPORTED:
        details["details"] = {"error_code": _UNSUPPORTED[error.param], "unsupported": [error.param]}
    return {"type": "error", "error": details, "request_id": REQUEST_ID.get()}


def _truncate(text: str, limit: int) -> str:
    raw = text.encode(errors="replace")
    return text if len(raw) <= limit else raw[:limit].decode(errors="ignore") + "…"


def invalid(message: str, param: str | None = None, code: str | None = None) -> APIError:
    """Return a 400 that names the field."""
    return APIError(400, message, param=param, code=code)


def unknown_model(name: str, served: Iterable[str]) -> APIError:
    message = f"The model '{name}' does not exist; available: {', '.join(served)}."
    return APIError(404, message, param="model", code="model_not_found")


def unavailable(message: str, code: str) -> APIError:
    return APIError(503, message, type="service_unavailable_error", code=code, headers={"Retry-After": "5"})


def as_api_error(error: Exception, prompt_param: str | None = None) -> APIError:
    """Map an exception to its reply. An unexpected exception is logged and becomes a 500.

    `prompt_param` is the name of the endpoint's prompt field.
    """
    if isinstance(error, APIError):
        return error
    if isinstance(error, ContextLengthError):
        return APIError(
            400,
            str(error),
            param=prompt_param or error.param,
            code="context_length_exceeded",
            lengths=(error.requested, error.limit),
        )
    if isinstance(error, RequestError):
        return invalid(str(error), error.param)
    if isinstance(error, QueueFullError):
        headers = {"Retry-After": str(max(1, round(error.retry_after)))}
        return APIError(429, str(error), type="rate_limit_error", code="queue_full", headers=headers)
    if isinstance(error, EngineDrainingError):
        return unavailable(str(error), "draining")
    if isinstance(error, EngineRestartingError):
        return unavailable(str(error), "engine_restarting")
    if isinstance(error, EngineUnavailableError):
        # The reason may contain paths and versions, so it goes to the log only.
        log.error("engine unavailable: %s", error)
        return unavailable("The engine is not available.", "engine_unavailable")
    log.error("unexpected error", exc_info=error, extra={"facts": {"request_id": REQUEST_ID.get()}})
    return APIError(500, "The server had an error while processing your request.", type="server_error", code="internal")


def from_http_exception(request: Request, error: HTTPException, routes: Sequence[Route]) -> APIError:
    """Convert the router's 404 and 405."""
    target = f"{request.method} {request.url.path}"
    headers = error.headers
    if error.status_code == 405:
        headers = {"Allow": ", ".join(sorted(_methods(request, routes)))}
        message = f"Method not allowed: {target}. Perhaps you meant to use a different HTTP method?"
    elif error.status_code == 404:
        paths = [route.path for route in routes if "{" not in route.path]
        close = get_close_matches(request.url.path, paths, 1, 0.7)
        message = f"Unknown path: {target}." + (f" Did you mean {close[0]}?" if close else "")
    else:
        message = str(error.detail)
    return APIError(error.status_code, message, headers=headers)


def _methods(request: Request, routes: Sequence[Route]) -> set[str]:
    """Return the methods that a request's path has."""
    matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    methods = {method for route in matching for method in route.methods or ()}
    return methods | ({"HEAD"} if "GET" in methods else set())
