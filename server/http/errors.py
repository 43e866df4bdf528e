"""Every failure in OpenAI's shape: `{"error": {"message", "type", "param", "code"}}`.

The server raises `APIError`; `as_api_error` maps what the engine raises. Anything else is a 500, its cause in the log.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Scope

from engine.errors import (
    ContextLengthError,
    EngineDrainingError,
    EngineUnavailableError,
    KnapServeError,
    QueueFullError,
    RequestError,
)

log = logging.getLogger("knapserve.server")

INVALID = "invalid_request_error"
FACTS = "knapserve.facts"  # key of a scope: what is to be logged of the request once it is over; there is none for most
REQUEST_ID: ContextVar[str] = ContextVar("knapserve.request_id", default="")
# Parts of the request are echoed (a model's name, a field's path): both limits together stay below 2 kB.
_MAX_MESSAGE = 1000  # bytes
_MAX_PARAM = 300


class APIError(Exception):
    """A failure as the client sees it. Message and param are cut so that little of the request is ever echoed."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = INVALID,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = _cut(message, _MAX_MESSAGE)
        self.type = type
        self.param = None if param is None else _cut(param, _MAX_PARAM)
        self.code = code
        self.headers = headers

    def body(self) -> dict[str, Any]:
        """The reply's JSON object, also an error chunk's."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}

    def response(self, scope: Scope | None = None) -> JSONResponse:
        """The reply; where a scope is given, what the log says of its request tells why."""
        if scope is not None and FACTS in scope:
            scope[FACTS].update(self.facts)
        return JSONResponse(self.body(), status_code=self.status, headers=self.headers)

    @property
    def facts(self) -> dict[str, Any]:
        """What the log says of it: nothing that the client wrote, so of a path only our field that it begins with."""
        field = None if self.param is None else re.split(r"[.\[]", self.param)[0]
        found = {"error": self.code or self.type, "param": field}
        return {name: value for name, value in found.items() if value is not None}


def _cut(text: str, limit: int) -> str:
    raw = text.encode(errors="replace")
    return text if len(raw) <= limit else raw[:limit].decode(errors="ignore") + "…"


def invalid(message: str, param: str | None = None, code: str | None = None) -> APIError:
    """A 400 that names the field."""
    return APIError(400, message, param=param, code=code)


def unknown_model(name: str, served: Iterable[str]) -> APIError:
    message = f"The model '{name}' does not exist; here is {', '.join(served)}."
    return APIError(404, message, param="model", code="model_not_found")


def internal_error() -> APIError:
    return APIError(500, "The server had an error while processing your request.", type="server_error", code="internal")


def unavailable(message: str, code: str) -> APIError:
    return APIError(503, message, type="service_unavailable_error", code=code, headers={"Retry-After": "5"})


def as_api_error(error: KnapServeError, prompt_param: str | None = None) -> APIError:
    """The engine's failures by class; `prompt_param` is what this endpoint calls its prompt."""
    if isinstance(error, ContextLengthError):
        return invalid(str(error), prompt_param or error.param, "context_length_exceeded")
    if isinstance(error, RequestError):
        return invalid(str(error), error.param)
    if isinstance(error, QueueFullError):
        return APIError(
            429,
            str(error),
            type="rate_limit_error",
            code="queue_full",
            headers={"Retry-After": str(max(1, round(error.retry_after)))},
        )
    if isinstance(error, EngineDrainingError):
        return unavailable(str(error), "draining")
    if isinstance(error, EngineUnavailableError):
        # The reason may tell of paths and versions: it belongs to the log.
        log.error("engine unavailable: %s", error)
        return unavailable("The engine is not available.", "engine_unavailable")
    log.error("unexpected engine error", exc_info=error, extra=_whose())
    return internal_error()


def any_api_error(error: Exception, prompt_param: str | None = None) -> APIError:
    """Any failure as the client may see it; what was not foreseen is logged and becomes a 500."""
    if isinstance(error, APIError):
        return error
    if isinstance(error, KnapServeError):
        return as_api_error(error, prompt_param)
    log.error("unexpected error", exc_info=error, extra=_whose())
    return internal_error()


def _whose() -> dict[str, Any]:
    """For the log: the request that is being answered."""
    return {"facts": {"request_id": REQUEST_ID.get()}}


def from_http_exception(request: Request, error: HTTPException, known: Iterable[str]) -> APIError:
    """404 and 405 of the router, in our shape. `known`: paths that may have been meant."""
    where = f"{request.method} {request.url.path}"
    if error.status_code == 405:
        message = f"Method not allowed: {where}. Perhaps you meant to use a different HTTP method?"
    elif error.status_code == 404:
        close = get_close_matches(request.url.path, known, 1, 0.7)
        message = f"Unknown path: {where}." + (f" Did you mean {close[0]}?" if close else "")
    else:
        message = str(error.detail)
    return APIError(error.status_code, message, headers=error.headers)
