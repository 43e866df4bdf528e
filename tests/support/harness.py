"""Two ways to test an app: in process, and as a real server on a loopback port."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import cache, partial
from http.client import HTTPResponse
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import httpx
import uvicorn.server
from fastapi import FastAPI

from server.app import create_app
from server.config import ServerConfig
from server.edge.listen import listening, tls_context
from server.metrics.registry import Metrics
from server.serve import GracefulServer, build_server
from server.services import Services
from tests.support.fake import FakeEngine
from tests.support.waiting import until

CHAT = {"model": "fake/model", "messages": [{"role": "user", "content": "Hi"}]}
TEXT = {"model": "fake/model", "prompt": "Hi"}
CHAT_PATH, TEXT_PATH = "/v1/chat/completions", "/v1/completions"


def allowed_tools(*names: str, mode: str = "auto") -> dict[str, Any]:
    """A `tool_choice` of a chat."""
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def ask(
    engine: FakeEngine, method: str, path: str, *, config: ServerConfig | None = None, **options: Any
) -> httpx.Response:
    """Send one request to a fresh app over `engine`. Routes and metrics, which are slow to build, are shared."""
    config = config or ServerConfig()
    app = _routed(config)
    with patch("server.services.Metrics", _shared_metrics) if path != "/metrics" else nullcontext():
        app.state.services = Services(engine, config)
    return _answers(app, engine, [(method, path, options)])[0]


def asks(
    engine: FakeEngine, *requests: tuple[str, str, dict[str, Any]], config: ServerConfig | None = None
) -> list[httpx.Response]:
    """Send requests in turn to one fresh app over `engine`."""
    return _answers(create_app(engine, config or ServerConfig()), engine, requests)


_METRICS = Metrics(FakeEngine(), "fake/model")


def _shared_metrics(engine: FakeEngine, model_name: str) -> Metrics:
    return _METRICS


@cache
def _routed(config: ServerConfig) -> FastAPI:
    return create_app(FakeEngine(), config)


def _answers(
    app: FastAPI, engine: FakeEngine, requests: Sequence[tuple[str, str, dict[str, Any]]]
) -> list[httpx.Response]:
    async def run() -> list[httpx.Response]:
        await engine.start()
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return [await client.request(method, path, **options) for method, path, options in requests]

    return asyncio.run(run())


def sse(raw: bytes) -> list[Any]:
    """The payloads of a stream, checked byte for byte: only `data:` events, each ended by a blank line."""
    *events, rest = raw.split(b"\n\n")
    assert rest == b""
    assert all(event.startswith(b"data: ") and b"\n" not in event for event in events)
    return [event[6:].decode() if event == b"data: [DONE]" else json.loads(event[6:]) for event in events]


async def _main_loop(server: GracefulServer) -> None:
    """uvicorn's, but it ends at once and not with the next tick of 0.1 s."""
    counter = 0
    while not await server.on_tick(counter):
        counter += 1
        for _ in range(20):
            if not server.should_exit:
                await asyncio.sleep(0.005)


async def _short_sleep(seconds: float) -> None:
    await asyncio.sleep(seconds / 20)


# uvicorn's `shutdown` sleeps 0.1 s at a time.
_HURRIED = SimpleNamespace(**{**vars(asyncio), "sleep": _short_sleep})


def bearer(key: str) -> dict[str, str]:
    """The header of an API key; none without a key."""
    return {"authorization": f"Bearer {key}"} if key else {}


def posted(path: str, body: dict[str, Any], version: str = "1.1", more: str = "") -> bytes:
    """A request as bytes."""
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/{version}\r\n{more}Host: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def rest_of(connection: socket.socket) -> bytes:
    """All that a server sends until it closes the connection."""
    return b"".join(iter(lambda: connection.recv(65_536), b""))


def exchange(port: int, sent: bytes) -> bytes:
    """Write all of `sent`, and only then read, until the server ends the connection."""
    with connect(port) as connection:
        connection.sendall(sent)
        return rest_of(connection)


def status_of_reply(connection: socket.socket) -> int:
    """Read the next reply on a connection to its end. Head and body may arrive apart."""
    with HTTPResponse(connection) as reply:
        reply.begin()
        reply.read()
        return reply.status


class Live:
    """A server in a thread, and a client of it."""

    def __init__(self, engine: FakeEngine, config: ServerConfig) -> None:
        self.engine = engine
        self._stack = ExitStack()
        config = replace(config, port=0)
        listener: socket.socket = self._stack.enter_context(listening(config))
        self.port = 0 if config.uds else listener.getsockname()[1]
        self.url = url_of(config, self.port)
        self.server: GracefulServer = build_server(engine, config, self.port, tls_context(config))
        self._stack.enter_context(patch.object(self.server, "main_loop", partial(_main_loop, self.server)))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]}, daemon=True)
        self.thread.start()
        until(lambda: self.server.started, "the start of the server")
        self.client = httpx.Client(**client_options(config, self.url), timeout=20)

    def terminate(self) -> None:
        self.server.handle_exit(signal.SIGTERM, None)

    def close(self) -> None:
        self.client.close()
        if self.thread.is_alive():
            if self.engine.gate is not None:
                self.engine.release(len(self.engine.running), RuntimeError("the test is over"))
            self.terminate()
        with patch.object(uvicorn.server, "asyncio", _HURRIED):
            self.thread.join(20)
        assert not self.thread.is_alive()
        self._stack.close()


def url_of(config: ServerConfig, port: int) -> str:
    """The address of a server of these settings on this machine, as its start line names it."""
    scheme = "https" if config.ssl_certfile else "http"
    return f"unix:{config.uds}" if config.uds else f"{scheme}://127.0.0.1:{port}"


def client_options(config: ServerConfig, url: str) -> dict[str, Any]:
    """What httpx needs to speak to a server of these settings."""
    trust = ssl.create_default_context(cafile=config.ssl_certfile) if config.ssl_certfile else False
    if config.uds is None:
        return {"base_url": url, "verify": trust}
    return {"base_url": "http://socket", "transport": httpx.HTTPTransport(uds=str(config.uds))}
