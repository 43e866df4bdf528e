"""The event loop's side of an engine: request streams, health and draining."""

from __future__ import annotations

import asyncio
import logging
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.clock import Clock
from engine.errors import EngineDeadError, EngineDrainingError, KnapServeError, QueueFullError
from engine.messages import CancelRequest, EngineMessage, ResetCalibration
from engine.types import (
    EngineInfo,
    EngineStats,
    GenerateRequest,
    RequestFailure,
    RoundReport,
    TokenEvent,
    check_request,
    key_limit,
)

if TYPE_CHECKING:
    from engine.text.tokenizer import Tokenizer

log = logging.getLogger("knapserve.engine")

_DRAIN_POLL = 0.02  # seconds between looks at the streams


class TokenStream:
    """Events of one request, as an async iterator.

    Events that have arrived by the time the reader is ready are joined into one, except events with a round trace. A
    reader that is slower than the rounds therefore costs no more than one that keeps up.
    """

    def __init__(self, key: str = "") -> None:
        """`key`: the owner's API key."""
        self.key = key
        self._events: deque[TokenEvent | KnapServeError | StopAsyncIteration] = deque()
        self._arrived = asyncio.Event()
        self._done = False

    def put(self, event: TokenEvent | KnapServeError | StopAsyncIteration) -> None:
        """Append an event, an error for the reader, or the end of a cancelled request (StopAsyncIteration)."""
        self._events.append(event)
        self._arrived.set()

    def __aiter__(self) -> TokenStream:
        return self

    async def __anext__(self) -> TokenEvent:
        if self._done:
            raise StopAsyncIteration
        while not self._events:
            self._arrived.clear()
            await self._arrived.wait()
        event = self._events.popleft()
        if isinstance(event, Exception):
            self._done = True
            raise event
        joined = [event]
        if event.trace is None:
            while self._events and isinstance(following := self._events[0], TokenEvent) and following.trace is None:
                joined.append(following)
                self._events.popleft()
        self._done = joined[-1].finish_reason is not None
        return TokenEvent.joined(joined)


class EngineClient(ABC):
    """`engine.api.Engine`, which documents the methods, on the event loop's side. Subclasses run the rounds."""

    def __init__(self, info: EngineInfo, tokenizer: Tokenizer, clock: Clock) -> None:
        self.info = info
        self.tokenizer = tokenizer
        self._clock = clock
        self._max_live = info.max_num_seqs + info.max_queued  # limit of running and waiting requests
        self._stopping = False
        self._draining = False
        self._failure: str | None = None
        self._heartbeat = clock.now()
        self._last: RoundReport | None = None
        self._streams: dict[str, TokenStream] = {}
        self._listeners: list[Callable[[RoundReport], None]] = []

    def submit(self, request: GenerateRequest) -> TokenStream:
        if self._failure is not None:
            raise EngineDeadError(self._failure)
        if self._draining:
            raise EngineDrainingError
        check_request(self.info, request)
        key = request.owner.key
        live = sum(stream.key == key for stream in self._streams.values()) if key else 0
        if len(self._streams) >= self._max_live or live >= key_limit(self._max_live):
            raise QueueFullError(max(len(self._streams) - self.info.max_num_seqs, 0))
        stream = self._streams[request.id] = TokenStream(key)
        self._send(request)
        return stream

    def cancel(self, request_id: str) -> None:
        stream = self._streams.pop(request_id, None)
        if stream is not None:
            stream.put(StopAsyncIteration())
            self._send(CancelRequest(request_id))

    def reset_calibration(self) -> None:
        if self._failure is None:
            self._send(ResetCalibration())

    def stats(self) -> EngineStats:
        last = self._last or RoundReport()
        waiting = max(len(self._streams) - last.running, 0)
        return EngineStats(
            ready=self._alive() and not self._draining and self._failure is None,
            draining=self._draining,
            failure=self._failure,
            running=last.running,
            waiting=waiting,
            deferred=min(last.deferred, waiting),
            kv_usage=last.kv_usage,
            heartbeat_age=self._clock.now() - self._heartbeat,
        )

    def fail(self, reason: str) -> None:
        self._fail(reason)

    @property
    def pid(self) -> int:
        return os.getpid()

    def add_listener(self, listener: Callable[[RoundReport], None]) -> None:
        self._listeners.append(listener)

    async def drain(self, timeout: float) -> None:
        self._draining = True
        deadline = self._clock.now() + timeout
        while self._streams and self._failure is None and self._clock.now() < deadline:
            await asyncio.sleep(_DRAIN_POLL)
        for request_id, stream in list(self._streams.items()):
            stream.put(EngineDrainingError() if self._failure is None else EngineDeadError(self._failure))
            self.cancel(request_id)
        self._stopping = True
        await self._stop()

    @abstractmethod
    async def start(self) -> None:
        """Begin to serve; events go to the running event loop."""

    @abstractmethod
    def _send(self, message: EngineMessage) -> None:
        """Pass a message to the engine loop."""

    @abstractmethod
    def _alive(self) -> bool:
        """Whether the engine loop can run rounds."""

    @abstractmethod
    async def _stop(self) -> None:
        """End the engine loop and wait for its end."""

    def _receive_report(self, report: RoundReport) -> None:
        """Deliver a round's report. If that fails, all streams end with EngineDeadError."""
        try:
            self._deliver(report)
        except Exception:
            log.exception("a round's report could not be delivered")
            self._fail("a round's report could not be delivered")

    def _deliver(self, report: RoundReport) -> None:
        """Hand a round's events to their streams, and then the report to the listeners."""
        self._last = report
        for event in report.events:
            if isinstance(event, RequestFailure):
                stream = self._streams.pop(event.request_id, None)
                if stream is not None:
                    stream.put(event.error)
                continue
            stream = self._streams.get(event.request_id)
            if stream is not None:
                stream.put(event)
                if event.finish_reason is not None:
                    del self._streams[event.request_id]
        if self._listeners:  # readers of tokens come first
            asyncio.get_running_loop().call_soon(self._notify, report)

    def _notify(self, report: RoundReport) -> None:
        for listener in self._listeners:
            listener(report)

    def _fail(self, reason: str) -> None:
        """End every stream with EngineDeadError."""
        self._failure = reason
        for stream in self._streams.values():
            stream.put(EngineDeadError(reason))
        self._streams.clear()
