"""The engine in a thread of this process."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.clock import Clock
from engine.config.engine import EngineConfig
from engine.core.loop import run_rounds
from engine.host.client import EngineClient
from engine.messages import EngineMessage, Shutdown
from engine.types import RoundReport

if TYPE_CHECKING:
    from engine.core.engine import EngineCore

log = logging.getLogger("knapserve.engine")

_JOIN_SECONDS = 10.0


def build_engine(config: EngineConfig) -> EngineThread:
    """Load a model and return its engine, not started yet. Raises ConfigError, ModelError, ProfileMismatchError."""
    from engine.runtime.build import LoadedModel  # imports torch

    model = LoadedModel(config)
    core = model.core(config)
    model.warm_up()
    core.tokenizer.prepare()
    return EngineThread(core, model.clock)


class EngineThread(EngineClient):
    """Runs an `EngineCore` in a thread. Public methods belong to the event loop's thread."""

    def __init__(self, core: EngineCore, clock: Clock) -> None:
        super().__init__(core.info, core.tokenizer, clock)
        self._core = core
        self._port = _ThreadPort(self)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="knapserve-engine", daemon=True)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def _send(self, message: EngineMessage) -> None:
        self._port.put(message)

    def _alive(self) -> bool:
        return self._thread.is_alive()

    async def _stop(self) -> None:
        self._port.put(Shutdown())
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, _JOIN_SECONDS)

    def _run(self) -> None:
        try:
            run_rounds(self._core, self._port)
        except Exception as error:
            log.exception("the engine loop has failed")
            self._call(self._fail, f"{type(error).__name__}: {error}")
        finally:
            self._core.close()

    def _call(self, function: Callable[..., None], *args: object) -> None:
        """Run a function on the event loop's thread, unless the loop is closed."""
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            log.debug("the event loop is closed")


class _ThreadPort:
    """`engine.core.loop.LoopPort` over a queue."""

    def __init__(self, client: EngineThread) -> None:
        self._client = client
        self._inbox: deque[EngineMessage] = deque()
        self._wake = threading.Event()

    def put(self, message: EngineMessage) -> None:
        self._inbox.append(message)
        self._wake.set()

    def take(self) -> list[EngineMessage]:
        taken = []
        while self._inbox:
            taken.append(self._inbox.popleft())
        return taken

    def wait(self, timeout: float) -> None:
        self._wake.wait(timeout)
        self._wake.clear()

    def deliver(self, report: RoundReport) -> None:
        self.beat()
        self._client._call(self._client._receive_report, report)

    def beat(self) -> None:
        self._client._heartbeat = self._client._clock.now()
