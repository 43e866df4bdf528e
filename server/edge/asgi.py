"""ASGI middleware around every request: request ids, access log, errors and CORS."""

import asyncio
import logging
import re
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.edge.errors import ERROR_BODY, FACTS, REQUEST_ID, APIError, ErrorBody, as_api_error
from server.metrics.registry import Exchange

log = logging.getLogger("knapserve.server")
access_log = logging.getLogger("knapserve.access")

_LENGTH = re.compile(r"[0-9]{1,15}")  # length of a body, in bytes
VALID_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/=+@-]{1,128}")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an API has of its own, whatever the endpoint."""

    prefix: str  # beginning of its paths
    error_body: ErrorBody
    id_header: str  # a further header with the request's id


@dataclass(frozen=True, slots=True)
class Paths:
    """What the outermost middleware knows of the endpoints."""

    generating: Sequence[str]  # paths whose requests are logged
    aliases: re.Pattern[str]  # what clients may write in place of "/v1/"
    dialects: Sequence[Dialect] = ()

    def canonical(self, path: str) -> str:
        """Return our spelling of a path, without superfluous slashes."""
        return self.aliases.sub("/v1/", "/" + "/".join(filter(None, path.split("/"))))


@asynccontextmanager
async def cancelled_on_disconnect(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block when the client disconnects, and raise ClientDisconnect. Read the request body first."""
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


class CorsErrorMiddleware(CORSMiddleware):
    """Starlette's CORS middleware with rejected preflights in OpenAI's error format.

    An allowed origin may also reach a private network from a public one, under both names that browsers have for it.
    """

    def preflight_response(self, request_headers: Headers) -> Response:
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            if "access-control-request-local-network" in request_headers:
                response.headers["access-control-allow-local-network"] = "true"
            return response
        allowed = {k: v for k, v in response.headers.items() if k == "vary" or k.startswith("access-control-")}
        allowed.pop("access-control-allow-private-network", None)
        return APIError(response.status_code, f"{bytes(response.body).decode()}.", headers=allowed).response()


class ErrorMiddleware:
    """Answer in place of an application that raises an exception."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            raise
        except Exception as error:
            reply = as_api_error(error).response(scope)
            if started:
                raise  # the reply cannot be completed; the server closes the connection
            await reply(scope, receive, send)


class RequestIdMiddleware:
    """Add an `x-request-id` to every response; count requests and log those that generate. The outermost middleware."""

    def __init__(self, app: ASGIApp, paths: Paths, log_requests: bool, count: Callable[[Exchange], None]) -> None:
        """`count` receives every exchange whose response started."""
        self._app, self._paths = app, paths
        self._logs = log_requests
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = {**scope, "path": self._paths.canonical(scope["path"])}
        dialect = next((found for found in self._paths.dialects if scope["path"].startswith(found.prefix)), None)
        if dialect is not None:
            scope[ERROR_BODY] = dialect.error_body
        if scope["path"] in self._paths.generating and scope["method"] == "POST":
            scope[FACTS] = {}  # rejected requests are logged too
        client_id = Headers(scope=scope).get("x-request-id", "")
        request_id = client_id if VALID_REQUEST_ID.fullmatch(client_id) else uuid.uuid4().hex
        REQUEST_ID.set(request_id)
        start = time.perf_counter()
        status = 0  # 0: the response has not started
        received = sent = 0
        method = scope["method"]
        if method == "HEAD":  # the reply to GET without its body
            scope = {**scope, "method": "GET"}

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        async def send_with_id(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                if dialect is not None:
                    headers[dialect.id_header] = request_id
            elif method == "HEAD":
                message = {**message, "body": b""}
            sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive_counted, send_with_id)
        except ClientDisconnect:
            log.debug("request %s: client disconnected", request_id)
        finally:
            seconds = time.perf_counter() - start
            length = Headers(scope=scope).get("content-length", "")
            if _LENGTH.fullmatch(length):  # counts if the body was refused unread
                received = max(received, int(length))
            if status:
                self._count(Exchange(method, scope["path"], status, seconds, received, sent))
            if self._logs and FACTS in scope:
                facts = {"request_id": request_id, "status": status, "seconds": round(seconds, 6), **scope[FACTS]}
                access_log.info("%s %s", method, scope["path"], extra={"facts": facts})
