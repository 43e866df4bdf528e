"""A small application that answers probes while the model loads."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn
from prometheus_client import CollectorRegistry, generate_latest
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from server.apis.paths import PATHS
from server.apis.replies import Status
from server.edge.asgi import RequestIdMiddleware
from server.edge.connections import Connections
from server.edge.errors import unavailable
from server.edge.protocol import Protocol
from server.metrics.registry import CONTENT_TYPE, loading_gauge


@contextmanager
def answer_while_loading(
    listener: socket.socket, tls: ssl.SSLContext | None = None, header_timeout: float = 10.0
) -> Iterator[None]:
    """Answer requests on a listening socket: 200 on `/live` and `/metrics`, elsewhere 503.

    After exit, new connections wait in the socket's queue until the main server accepts them.
    """
    config = uvicorn.Config(
        RequestIdMiddleware(_answer, PATHS, log_requests=False, count=lambda _: None),
        log_config=None,
        access_log=False,
        ws="none",
        lifespan="off",
        interface="asgi3",
    )
    config.load()
    stop, connections = asyncio.Event(), Connections(header_timeout, tls)
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        loop = runner.get_loop()
        thread = threading.Thread(target=runner.run, args=(_serve(listener, config, connections, stop),), daemon=True)
        thread.start()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join()


async def _serve(
    listener: socket.socket, config: uvicorn.Config, connections: Connections, stop: asyncio.Event
) -> None:
    connections.listen(listener, partial(Protocol, config, ServerState(), {}, connections))
    await stop.wait()
    asyncio.get_running_loop().remove_reader(listener)
    connections.close()
    await asyncio.sleep(0)  # lets the connections close


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    response: Response
    if scope["path"] == "/metrics":  # so that Prometheus takes the target for up
        registry = CollectorRegistry()
        loading_gauge(registry).set(1)
        response = Response(generate_latest(registry), headers={"content-type": CONTENT_TYPE})
    elif scope["path"] == "/live":
        response = JSONResponse(Status().model_dump())
    else:
        response = unavailable("The model is loading.", "loading").response(scope)
    response.headers["connection"] = "close"
    await response(scope, receive, send)
