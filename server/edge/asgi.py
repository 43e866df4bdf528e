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
    id_header: str  # name of a further header for the request's id


@dataclass(frozen=True, slots=True)
class Paths:
    """What the outermost middleware knows of the endpoints."""

    generating: Sequence[str]  # paths whose requests are logged
    aliases: re.Pattern[str]  # prefixes that stand for "/v1/"
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
    """Add an `x-request-id` to responses; count requests, and log those that generate. The outermost middleware."""

    def __init__(self, app: ASGIApp, paths: Paths, log_requests: bool, count: Callable[[Exchange], None]) -> None:
        """`count` receives every exchange whose response started."""
        self._app, self._paths = app, paths
        self._logs = log_requests
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(scope["method"], self._paths.canonical(scope["path"]))
        head_only = exchange.method == "HEAD"  # the reply to GET without its body
        scope = {**scope, "path": exchange.path, "method": "GET" if head_only else exchange.method}
        request_headers = Headers(scope=scope)
        request_id = request_headers.get("x-request-id", "")
        if not VALID_REQUEST_ID.fullmatch(request_id):
            request_id = uuid.uuid4().hex
        REQUEST_ID.set(request_id)
        id_headers = {"x-request-id": request_id}
        for dialect in self._paths.dialects:
            if exchange.path.startswith(dialect.prefix):
                scope[ERROR_BODY] = dialect.error_body
                id_headers[dialect.id_header] = request_id
        if exchange.path in self._paths.generating and exchange.method == "POST":
            scope[FACTS] = {}  # rejected requests are logged too

        async def receive_counted() -> Message:
            message = await receive()
            exchange.received += len(message.get("body", b""))
            return message

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                MutableHeaders(scope=message).update(id_headers)
            elif head_only:
                message = {**message, "body": b""}
            exchange.sent += len(message.get("body", b""))
            await send(message)

        start = time.perf_counter()
        try:
            await self._app(scope, receive_counted, send_with_id)
        except ClientDisconnect:
            log.debug("request %s: client disconnected", request_id)
        finally:
            exchange.seconds = time.perf_counter() - start
            length = request_headers.get("content-length", "")
            if _LENGTH.fullmatch(length):  # a body that was refused unread counts too
                exchange.received = max(exchange.received, int(length))
            if exchange.status:
                self._count(exchange)
            if self._logs and FACTS in scope:
                facts = {"request_id": request_id, "status": exchange.status, "seconds": round(exchange.seconds, 6)}
                access_log.info("%s %s", exchange.method, exchange.path, extra={"facts": facts | scope[FACTS]})
