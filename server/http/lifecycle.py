"""Version, and how an app winds down: at most once, whoever asks first."""

from __future__ import annotations

import asyncio
import logging
from importlib import metadata

from engine.api import Engine
from engine.errors import KnapServeError

log = logging.getLogger("knapserve.server")

GRACE = 15.0  # seconds beyond the timeout that an engine gets to end its last round


def version() -> str:
    """The installed version; "unknown" when run from a bare checkout."""
    try:
        return metadata.version("knapserve")
    except metadata.PackageNotFoundError:
        return "unknown"


class Drain:
    """Drains the engine once; later callers wait for the same drain."""

    def __init__(self, engine: Engine, timeout: float) -> None:
        self._engine = engine
        self._timeout = timeout
        self._task: asyncio.Task[None] | None = None

    async def __call__(self) -> None:
        """Refuse new requests, finish or fail what runs, stop the engine. Takes little more than the timeout."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        await asyncio.shield(self._task)

    async def _run(self) -> None:
        try:
            await asyncio.wait_for(self._engine.drain(self._timeout), self._timeout + GRACE)
        except TimeoutError:
            log.error("the engine did not stop in time")
        except KnapServeError as error:
            log.error("the engine did not drain: %s", error)
