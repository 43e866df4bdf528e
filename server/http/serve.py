"""The serving process: uvicorn with our own way to stop, and what `knapserve serve` does around it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

from engine.api import Engine
from engine.logs import JSONFormatter
from server.config import ServerConfig
from server.http.app import create_app
from server.http.protocol import Protocol
from server.openai.routes import Services

log = logging.getLogger("knapserve.server")

_SWITCH_INTERVAL = 2e-4  # seconds
_OPEN_FILES = 65_536  # at most, sockets among them
FLUSH = 5  # seconds that finished replies get to reach slow clients
_FAILURE_GRACE = 10  # ticks of 0.1 s in which clients and probes see the 503 of a dead engine


class GracefulServer(uvicorn.Server):
    """uvicorn that keeps its socket open while it drains: new requests get the engine's 503 instead of no connection.

    The first SIGTERM or SIGINT drains, another SIGINT ends the process at once. `exit_code` is 1 after an engine
    failure.
    """

    def __init__(self, config: uvicorn.Config, app: FastAPI, ready: Callable[[], str]) -> None:
        """`ready`: the line to print once it listens."""
        super().__init__(config)
        self._services: Services = app.state.services
        self._ready = ready
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._failed_ticks = 0
        self.exit_code = 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await super().startup(sockets)
        except OSError:
            await self.lifespan.shutdown()
            raise
        print(self._ready(), flush=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Signal handler. Unlike the base class's it never raises the signal again: a drained process exits 0."""
        if self._stopping is not None and sig == signal.SIGINT:
            os._exit(130)  # the engine may be in a long pass; an orderly exit would wait for it
        if self._loop is None:
            raise KeyboardInterrupt
        self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if self._stopping is None:
            running = self._services.engine.stats().running
            again = "; Ctrl-C ends it now" if sys.stderr.isatty() else ""
            log.info("draining: %d running, up to %g s%s", running, self._services.config.shutdown_timeout, again)
            self._stopping = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        try:
            await self._services.drain()
        finally:
            self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Called by uvicorn ten times a second."""
        failure = self._services.engine.stats().failure
        if failure is not None:
            if not self._failed_ticks:
                log.error("the engine has failed, the process ends: %s", failure)
                self.exit_code = 1
            self._failed_ticks += 1
            if self._failed_ticks > _FAILURE_GRACE:
                return True
        return await super().on_tick(counter)


def build_server(engine: Engine, config: ServerConfig, port: int) -> GracefulServer:
    """The server of a loaded engine, to be run on a bound socket whose port is `port`."""
    app = create_app(engine, config)
    info = engine.info
    host = f"[{config.host}]" if ":" in config.host else config.host
    services: Services = app.state.services
    url, model = f"http://{host}:{port}", services.names[0]
    facts = {"policy": info.default_policy, "device": info.device, "dtype": info.dtype, "profile": info.profile_file}

    def ready() -> str:
        if config.log_format == "text":
            return f"knapserve: serving {model} on {url} ({', '.join(f'{k} {v}' for k, v in facts.items())})"
        record = {"name": log.name, "msg": f"serving {model} on {url}", "facts": {"model": model, "url": url, **facts}}
        return JSONFormatter().format(logging.makeLogRecord({"levelname": "INFO", **record}))

    settings = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        http=Protocol,
        # Longer than clients keep idle connections (5 s is common), so that they close first and never race with us.
        timeout_keep_alive=65,
        timeout_graceful_shutdown=FLUSH,
    )
    return GracefulServer(settings, app, ready)


def _allow_open_files() -> None:
    """Raise the process's soft limit: 1,024, which is common, would leave the thousandth idle client no socket."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # the system has a limit of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def run(engine: Engine, config: ServerConfig, listener: socket.socket) -> int:
    """Serve until a signal or a failure; the exit code."""
    # With --engine thread: it must not wait for the interpreter lock while a burst of HTTP work holds it. 5 ms, the
    # default, is longer than a round of a small model.
    sys.setswitchinterval(_SWITCH_INTERVAL)
    _allow_open_files()
    server = build_server(engine, config, listener.getsockname()[1])
    try:
        server.run(sockets=[listener])
    except OSError as error:  # another process began to listen on the port meanwhile
        print(f"knapserve: error: cannot listen on {config.host}:{config.port}: {error.strerror}", file=sys.stderr)
        return 1
    except SystemExit:  # uvicorn's way to say that the application did not start; the log says why
        return 1
    return server.exit_code
