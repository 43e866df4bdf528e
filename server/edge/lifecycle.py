"""The installed version, and the drain at shutdown."""

import asyncio
import logging
from functools import cache
from importlib import metadata

from engine.api import Engine
from engine.errors import KnapServeError

log = logging.getLogger("knapserve.server")

GRACE = 15.0  # seconds for an engine to finish its last round after the timeout


@cache
def version() -> str:
    """Return the installed version, or "unknown" in a checkout that is not installed."""
    try:
        return metadata.version("knapserve")
    except metadata.PackageNotFoundError:
        return "unknown"


async def drain(engine: Engine, timeout: float) -> None:
    """Reject new requests, finish or fail the running ones, and stop the engine. `timeout` is in seconds."""
    try:
        await asyncio.wait_for(engine.drain(timeout), timeout + GRACE)
    except TimeoutError:
        log.error("the engine did not stop within the shutdown timeout")
    except KnapServeError as error:
        log.error("draining the engine failed: %s", error)
