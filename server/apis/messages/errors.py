"""Errors in the format and the words of Anthropic's API."""

from server.edge.errors import REQUEST_ID, APIError

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
# Field → the code by which Anthropic's SDK knows that it must do without it.
_UNSUPPORTED = {"thread": "thread_unsupported_request"}


def error_body(error: APIError) -> dict[str, object]:
    """Return the JSON object of an error. It has no `param`, so its message names the field."""
    unnamed = error.status == 400 and error.param and f"'{error.param}" not in error.message
    message = f"{error.param}: {error.message}" if unnamed else error.message
    if error.lengths is not None:  # Anthropic's words, by which Claude Code knows that it must shorten the conversation
        message = "prompt is too long: {} tokens > {} maximum".format(*error.lengths)
    kind = _TYPES.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    details: dict[str, object] = {"type": kind, "message": message}
    if error.param in _UNSUPPORTED:
        details["details"] = {"error_code": _UNSUPPORTED[error.param], "unsupported": [error.param]}
    return {"type": "error", "error": details, "request_id": REQUEST_ID.get()}
