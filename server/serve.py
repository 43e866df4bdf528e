"""Run the application under uvicorn, with a graceful shutdown."""

import asyncio
import logging
import os
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType

import uvicorn
from fastapi import FastAPI

from engine.api import Engine
from engine.logs import JSONFormatter
from server.app import create_app
from server.config import ServerConfig
from server.edge.connections import Connections
from server.edge.protocol import Protocol
from server.services import Services

log = logging.getLogger("knapserve.server")

_SWITCH_INTERVAL = 2e-4  # seconds; `run` says why
_OPEN_FILES = 65_536  # wanted limit on open files, sockets included
FLUSH = 5  # seconds for finished replies to reach slow clients
_FAILURE_GRACE = 10  # ticks of 0.1 s in which clients and probes still see the 503 of a dead engine


class GracefulServer(uvicorn.Server):
    """uvicorn that keeps its socket open while it drains, so that new requests get a 503.

    The first SIGTERM or SIGINT starts the drain; a second SIGINT ends the process at once. `exit_code` is 1 after an
    engine failure.
    """

    def __init__(self, config: uvicorn.Config, app: FastAPI, ready: Callable[[], str]) -> None:
        """`ready` returns the line to print once the server listens."""
        super().__init__(config)
        self._services: Services = app.state.services
        self._ready = ready
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._failed_ticks = 0
        self.exit_code = 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup([])  # `Connections` accepts in uvicorn's place
        connections = Connections(self._services.config.header_timeout, self.config.ssl)
        connect = partial(Protocol, self.config, self.server_state, self.lifespan.state, connections)
        for listener in sockets or ():
            listener.listen(self.config.backlog)
            connections.listen(listener, connect)
        print(self._ready(), flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in sockets or ():
            asyncio.get_running_loop().remove_reader(listener)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal, but unlike uvicorn do not raise it again: a drained process exits with 0."""
        if self._stopping is not None and sig == signal.SIGINT:
            os._exit(130)  # an orderly exit would wait for the engine's current pass
        if self._loop is None:
            raise KeyboardInterrupt
        self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if self._stopping is None:
            running = self._services.engine.stats().running
            hint = "; press Ctrl-C to end the process now" if sys.stderr.isatty() else ""
            log.info(
                "draining: %d requests running, timeout %g s%s", running, self._services.config.shutdown_timeout, hint
            )
            self._stopping = asyncio.create_task(self._services.drain())
            self._stopping.add_done_callback(self._exit)

    def _exit(self, _: asyncio.Task[None]) -> None:
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Called by uvicorn ten times a second."""
        self._services.watch()
        failure = self._services.engine.stats().failure
        if failure is not None:
            if not self._failed_ticks:
                log.error("the engine has failed; the process exits: %s", failure)
                self.exit_code = 1
            self._failed_ticks += 1
            if self._failed_ticks > _FAILURE_GRACE:
                return True
        return await super().on_tick(counter)


def build_server(engine: Engine, config: ServerConfig, port: int, tls: ssl.SSLContext | None = None) -> GracefulServer:
    """Build the server of a loaded engine, to run on a bound socket whose port is `port` (0: a Unix socket)."""
    app = create_app(engine, config)
    info = engine.info
    services: Services = app.state.services
    host, model = f"[{config.host}]" if ":" in config.host else config.host, services.names[0]
    url = f"unix:{config.uds}" if config.uds else f"{'https' if tls else 'http'}://{host}:{port}"
    page = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:") + "/"
    facts = {"policy": info.default_policy, "device": info.device, "dtype": info.dtype, "profile": info.profile_file}

    def ready() -> str:
        if config.log_format == "text":
            chat = "" if config.uds else f"; chat in a browser: {page}"
            return f"knapserve: serving {model} on {url} ({', '.join(f'{k} {v}' for k, v in facts.items())}){chat}"
        record = {"name": log.name, "msg": f"serving {model} on {url}", "facts": {"model": model, "url": url, **facts}}
        return JSONFormatter().format(logging.makeLogRecord({"levelname": "INFO", **record}))

    settings = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        # Longer than clients keep idle connections (often 5 s), so that the client closes first.
        timeout_keep_alive=65,
        timeout_graceful_shutdown=FLUSH,
        ssl_context_factory=None if tls is None else lambda *_: tls,
    )
    return GracefulServer(settings, app, ready)


def _allow_open_files() -> None:
    """Raise the soft limit on open files. The common limit of 1,024 would refuse the thousandth idle client."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < target:
        with suppress(ValueError, OSError):  # the system enforces a lower limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


def run(engine: Engine, config: ServerConfig, listener: socket.socket, tls: ssl.SSLContext | None) -> int:
    """Serve until a signal or a failure. Returns the exit code."""
    # With --engine thread, the engine waits for the interpreter lock during bursts of HTTP work. The default interval,
    # 5 ms, is longer than a round of a small model.
    sys.setswitchinterval(_SWITCH_INTERVAL)
    _allow_open_files()
    server = build_server(engine, config, 0 if config.uds else listener.getsockname()[1], tls)
    try:
        server.run(sockets=[listener])
    except SystemExit:  # uvicorn exits when the application fails to start; the log has the reason
        return 1
    return server.exit_code
