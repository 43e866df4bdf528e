"""What happens around every request, as plain ASGI: request ids, last-resort errors, the body limit, disconnects."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.errors import FACTS, REQUEST_ID, APIError, internal_error

log = logging.getLogger("knapserve.server")
access_log = logging.getLogger("knapserve.access")

_GENERATE = ("/v1/chat/completions", "/v1/completions")

SANE_ID = re.compile(r"[A-Za-z0-9._:/=+@-]{1,128}")


@asynccontextmanager
async def cancelled_on_disconnect(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block when the client leaves, and raise ClientDisconnect then. The body must have been read."""
    task = asyncio.current_task()
    assert task is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        task.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if gone and task.uncancel() == 0:
            raise ClientDisconnect from None
        raise
    finally:
        watcher.cancel()


class BrowserMiddleware(CORSMiddleware):
    """Starlette's CORS, that refuses a preflight in the shape of all errors."""

    def preflight_response(self, request_headers: Headers) -> Response:
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        allowed = {k: v for k, v in response.headers.items() if k == "vary" or k.startswith("access-control-")}
        return APIError(response.status_code, f"{bytes(response.body).decode()}.", headers=allowed).response()


class FailureMiddleware:
    """Answers with a 500 where nothing else caught an exception, and logs it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = False

        async def watched(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            raise
        except Exception:
            log.exception("unexpected error", extra={"facts": {"request_id": REQUEST_ID.get()}})
            if began:
                raise  # the server closes the connection: the reply cannot be completed
            await internal_error().response(scope)(scope, receive, send)


class EdgeMiddleware:
    """Outermost: gives every response an `x-request-id`, counts and logs requests."""

    def __init__(self, app: ASGIApp, log_requests: bool, count: Callable[[str, str, int], None]) -> None:
        """`count` is told method, path and status of every response that began."""
        self._app = app
        self._logs = log_requests
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] in _GENERATE and scope["method"] == "POST":
            scope[FACTS] = {}  # what is refused on its way is logged too
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if SANE_ID.fullmatch(given) else uuid.uuid4().hex
        REQUEST_ID.set(request_id)
        began = time.perf_counter()
        status = 0  # not known yet
        method = scope["method"]
        if method == "HEAD":  # what GET answers, without its body
            scope = {**scope, "method": "GET"}

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request_id
            elif method == "HEAD":
                message = {**message, "body": b""}
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            log.debug("request %s: the client left", request_id)
        finally:
            if status:
                self._count(method, scope["path"], status)
            if self._logs and FACTS in scope:
                seconds = time.perf_counter() - began
                facts = {"request_id": request_id, "status": status, "seconds": round(seconds, 6), **scope[FACTS]}
                access_log.info("%s %s", method, scope["path"], extra={"facts": facts})


class BodyLimitMiddleware:
    """Refuses bodies over `limit` bytes with a 413: at once by their declared length, else while they are read."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdecimal() and int(declared) > self._limit:
            await self._too_large().response(scope)(scope, receive, send)
            return
        size = 0

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                if size > self._limit:
                    raise self._too_large()
            return message

        await self._app(scope, limited, send)

    def _too_large(self) -> APIError:
        return APIError(413, f"The request body is larger than {self._limit} bytes.", code="request_too_large")
