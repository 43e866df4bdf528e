"""An engine whose process is started again when it fails; meanwhile requests are refused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from engine.clock import Clock
from engine.errors import EngineRestartingError
from engine.host.client import TokenStream
from engine.host.process import EngineLaunch, EngineProcess
from engine.types import EngineStats, GenerateRequest, RoundReport

log = logging.getLogger("knapserve.engine")

_POLL = 0.05  # seconds between looks at the engine
_MOST_FAILURES = 5  # most failures in a row; an engine that lived `_STEADY` seconds begins a new row
_STEADY = 60.0


class RestartingEngine:
    """`engine.api.Engine` over successive engine processes of the same settings."""

    def __init__(self, engine: EngineProcess, launch: Callable[[], EngineLaunch], clock: Clock) -> None:
        """`launch` starts a new process, without waiting for its model."""
        self.info, self.tokenizer = engine.info, engine.tokenizer
        self._engine, self._launch, self._clock = engine, launch, clock
        self._listeners: list[Callable[[RoundReport], None]] = []
        self._watcher: asyncio.Task[None] | None = None
        self._launched: EngineLaunch | None = None  # the process that loads its model now
        self._given_up = self._draining = False
        self._restarts = 0

    @property
    def pid(self) -> int:
        return self._engine.pid

    def submit(self, request: GenerateRequest) -> TokenStream:
        if self.stats().restarting:
            raise EngineRestartingError
        return self._engine.submit(request)

    def cancel(self, request_id: str) -> None:
        self._engine.cancel(request_id)

    def reset_calibration(self) -> None:
        self._engine.reset_calibration()

    def fail(self, reason: str) -> None:
        self._engine.fail(reason)

    def stats(self) -> EngineStats:
        stats = replace(self._engine.stats(), restarts=self._restarts)
        if stats.failure is None or self._draining or self._given_up:
            return stats
        return replace(stats, failure=None, draining=False, restarting=True)

    def add_listener(self, listener: Callable[[RoundReport], None]) -> None:
        self._listeners.append(listener)
        self._engine.add_listener(listener)

    async def start(self) -> None:
        await self._engine.start()
        self._watcher = asyncio.create_task(self._watch())

    async def drain(self, timeout: float) -> None:
        self._draining = True
        if self._watcher is not None:
            self._watcher.cancel()
            if self._launched is not None:
                self._launched.child.kill()  # this ends the thread that waits for it
            await asyncio.gather(self._watcher, return_exceptions=True)
        await self._engine.drain(timeout)

    async def _watch(self) -> None:
        """Restart a failed engine, until it fails too often."""
        failures, started = 0, self._clock.now()
        while True:
            await asyncio.sleep(_POLL)
            if self._engine.stats().failure is None:
                continue
            failures = 1 if self._clock.now() - started > _STEADY else failures + 1
            if failures > _MOST_FAILURES:
                self._given_up = True
                return
            await asyncio.sleep(2 ** (failures - 1) - 1)  # 0, 1, 3, 7, 15 s
            log.warning("restarting the engine")
            try:
                await self._replace()
            except Exception as error:  # whatever it is, another attempt follows
                log.error("the engine could not be restarted: %s", error)
            started = self._clock.now()

    async def _replace(self) -> None:
        """Start a new process in place of the failed one. Raises KnapServeError."""
        await self._engine.drain(0)
        with self._launch() as launched:
            self._launched = launched
            try:
                engine = await asyncio.to_thread(launched.ready)
            finally:
                self._launched = None
        engine.tokenizer = self.tokenizer  # a second copy would only take memory
        for listener in self._listeners:
            engine.add_listener(listener)
        await engine.start()
        self._engine = engine
        self._restarts += 1
        log.info("the engine serves again")
