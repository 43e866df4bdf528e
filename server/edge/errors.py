"""Errors in OpenAI's format: `{"error": {"message", "type", "param", "code"}}`.

The server raises `APIError`, and `as_api_error` maps other exceptions to it.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass
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
    PromptError,
    QueueFullError,
    RequestError,
    RequestFailedError,
)

log = logging.getLogger("knapserve.server")

INVALID = "invalid_request_error"
FACTS = "knapserve.facts"  # ASGI scope key: fields for the access log; only generation requests have it
ERROR_BODY = "knapserve.error_body"  # ASGI scope key: writes errors in the format of an API that has its own
REQUEST_ID: ContextVar[str] = ContextVar("knapserve.request_id", default="")
# Errors echo parts of the request (a model's name, a field's path); these limits keep a reply below 2 kB.
_MAX_MESSAGE = 1000  # bytes, as below
_MAX_PARAM = 300


@dataclass(eq=False)
class APIError(Exception):
    """An error reply. Message and param are truncated, so that a reply echoes little of the request."""

    status: int
    message: str
    _: KW_ONLY
    type: str = INVALID
    param: str | None = None
    code: str | None = None
    headers: Mapping[str, str] | None = None
    lengths: tuple[int, int] | None = None  # tokens requested, and the context length that they exceed

    def __post_init__(self) -> None:
        super().__init__(self.message)
        self.message = _truncate(self.message, _MAX_MESSAGE)
        self.param = None if self.param is None else _truncate(self.param, _MAX_PARAM)

    def body(self) -> Mapping[str, object]:
        """Return the JSON object of an error reply or an error chunk."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}

    def response(self, scope: Scope | None = None) -> JSONResponse:
        """Return the reply. With a `scope`, add the error to the access log of its request."""
        if scope is not None and FACTS in scope:
            scope[FACTS].update(self.facts)
        write: ErrorBody = APIError.body if scope is None else scope.get(ERROR_BODY, APIError.body)
        return JSONResponse(write(self), status_code=self.status, headers=self.headers)

    @property
    def rejection(self) -> str:
        """The reason for which a request is not admitted, as metrics count it."""
        reasons = {429: "queue_full", 503: "draining" if self.code == "draining" else "unavailable"}
        return reasons.get(self.status, "invalid")

    @property
    def facts(self) -> dict[str, str]:
        """Fields for the access log. They omit the parts of `param` that the client has named."""
        field = None if self.param is None else re.split(r"[.\[]", self.param)[0]
        facts = {"error": self.code or self.type, "param": field}
        return {name: value for name, value in facts.items() if value is not None}


ErrorBody = Callable[[APIError], Mapping[str, object]]


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
    message = "The server had an error while processing your request."
    failed = APIError(500, message, type="server_error", code="internal")
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
    if isinstance(error, PromptError) and error.param == "prompt":
        return invalid(str(error), prompt_param or error.param)
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
    if isinstance(error, RequestFailedError):
        log.error("a request has failed: %s", error, extra={"facts": {"request_id": REQUEST_ID.get()}})
        return failed
    log.error("unexpected error", exc_info=error, extra={"facts": {"request_id": REQUEST_ID.get()}})
    return failed


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
