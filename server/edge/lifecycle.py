"""The installed version, and the drain at shutdown."""

import asyncio
import logging
from collections.abc import Iterable
from concurrent.futures import Executor
from functools import cache
from importlib import metadata

from engine.api import Engine
from engine.errors import KnapServeError

log = logging.getLogger("knapserve.server")

GRACE = 15.0  # seconds that an engine may take beyond the timeout to finish its last round


@cache
def version() -> str:
    """Return the installed version, or "unknown" in a checkout that is not installed."""
    try:
        return metadata.version("knapserve")
    except metadata.PackageNotFoundError:
        return "unknown"


class Drain:
    """Drain the engine once. Later callers wait for the same drain."""

    def __init__(self, engine: Engine, timeout: float, threads: Iterable[Executor] = ()) -> None:
        self._engine = engine
        self._timeout = timeout
        self._threads = threads  # of requests that are not submitted yet
        self._task: asyncio.Task[None] | None = None

    async def __call__(self) -> None:
        """Reject new requests, finish or fail the running ones, and stop the engine."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        await asyncio.shield(self._task)

    async def _run(self) -> None:
        for threads in self._threads:
            threads.shutdown(wait=False, cancel_futures=True)
        try:
            await asyncio.wait_for(self._engine.drain(self._timeout), self._timeout + GRACE)
        except TimeoutError:
            log.error("the engine did not stop within the shutdown timeout")
        except KnapServeError as error:
            log.error("draining the engine failed: %s", error)
