"""Authentication, by API keys, of the endpoints that use or change the engine, and optionally of `/metrics`."""

import hashlib
import hmac
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from server.edge.errors import APIError

API_KEY = "knapserve.key"  # ASGI scope key: the digest of the client's key, where keys are required


def _digest(key: str) -> bytes:
    # Digests have one length, so that comparing them does not leak the key's length.
    return hashlib.sha256(key.encode()).digest()


class AuthMiddleware:
    """Reject requests to protected paths that lack one of `keys`. Keys are compared in constant time."""

    def __init__(self, app: ASGIApp, keys: Sequence[str], metrics: bool) -> None:
        self._app = app
        self._digests = [_digest(key) for key in keys]
        self._paths = {"/v1", "/tokenize", "/detokenize", "/reset_calibration"} | ({"/metrics"} if metrics else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._protected(scope["path"]):
            scope[API_KEY] = self._key(Headers(scope=scope))
        await self._app(scope, receive, send)

    def _protected(self, path: str) -> bool:
        return path.startswith("/v1/") or path in self._paths

    def _key(self, headers: Headers) -> str:
        """Return the digest of the key in the headers. Azure and Anthropic have their own. Raises APIError."""
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            key = headers.get("x-api-key") or headers.get("api-key") or ""
        if not key.strip():
            message = "You didn't provide an API key: send it as 'Authorization: Bearer KEY'."
        else:
            given = _digest(key.strip())
            # Compares all keys, so that the time does not show which one matches.
            if sum(hmac.compare_digest(given, digest) for digest in self._digests):
                return given.hex()
            message = "Incorrect API key provided."
        raise APIError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
