"""The engine's thread: inbox → step → outboxes. An exception fails every waiter; nothing hangs."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable

from engine.clock import Clock
from engine.core import EngineCore
from engine.errors import EngineDeadError, EngineDrainingError, KnapServeError, QueueFullError
from engine.tokenizer import Tokenizer
from engine.types import EngineInfo, EngineStats, ErrorEvent, GenerateRequest, RoundReport, TokenEvent

log = logging.getLogger("knapserve.engine")


class Stream:
    """Events of one request, as an async iterator; closing it early cancels the request."""

    def __init__(self, request_id: str, close: Callable[[str], None]) -> None:
        self._id = request_id
        self._close = close
        self._events: asyncio.Queue[TokenEvent | KnapServeError | None] = asyncio.Queue()
        self._done = False

    def put(self, event: TokenEvent | KnapServeError | None) -> None:
        """Add an event, an error to raise, or None to end without either (the request was cancelled)."""
        self._events.put_nowait(event)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> TokenEvent:
        if self._done:
            raise StopAsyncIteration
        event = await self._events.get()
        if event is None:
            self._done = True
            raise StopAsyncIteration
        if isinstance(event, KnapServeError):
            self._done = True
            raise event
        self._done = event.finish_reason is not None
        return event

    async def aclose(self) -> None:
        if not self._done:
            self._done = True
            self._close(self._id)


class EngineThread:
    """`engine.seam.Engine` around an `EngineCore`. Public methods belong to the event loop's thread."""

    def __init__(self, core: EngineCore, clock: Clock, *, max_live: int) -> None:
        self._core = core
        self._clock = clock
        self._max_live = max_live  # running and waiting requests
        self._inbox: deque[GenerateRequest | str] = deque()  # a str is the id of a request to cancel
        self._wake = threading.Event()
        self._stop = False
        self._draining = False
        self._failure: str | None = None
        self._heartbeat = clock.now()
        self._last: RoundReport | None = None
        self._streams: dict[str, Stream] = {}
        self._listeners: list[Callable[[RoundReport], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="knapserve-engine", daemon=True)

    @property
    def info(self) -> EngineInfo:
        return self._core.info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._core.tokenizer

    def submit(self, request: GenerateRequest) -> Stream:
        if self._failure is not None:
            raise EngineDeadError(self._failure)
        if self._draining:
            raise EngineDrainingError
        self._core.check(request)
        if len(self._streams) >= self._max_live:
            raise QueueFullError(len(self._streams) - self.info.max_num_seqs)
        stream = self._streams[request.id] = Stream(request.id, self.cancel)
        self._inbox.append(request)
        self._wake.set()
        return stream

    def cancel(self, request_id: str) -> None:
        stream = self._streams.pop(request_id, None)
        if stream is not None:
            stream.put(None)
            self._inbox.append(request_id)
            self._wake.set()

    def stats(self) -> EngineStats:
        last = self._last
        return EngineStats(
            ready=self._thread.is_alive() and not self._draining and self._failure is None,
            draining=self._draining,
            failure=self._failure,
            running=last.running if last else 0,
            waiting=max(len(self._streams) - (last.running if last else 0), 0),
            kv_usage=last.kv_usage if last else 0.0,
            heartbeat_age=self._clock.now() - self._heartbeat,
        )

    def add_listener(self, listener: Callable[[RoundReport], None]) -> None:
        self._listeners.append(listener)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def drain(self, timeout: float) -> None:
        self._draining = True
        deadline = self._clock.now() + timeout
        while self._streams and self._failure is None and self._clock.now() < deadline:
            await asyncio.sleep(0.02)
        for request_id, stream in list(self._streams.items()):
            stream.put(EngineDrainingError() if self._failure is None else EngineDeadError(self._failure))
            self.cancel(request_id)
        self._stop = True
        self._wake.set()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, 10.0)

    # -- in the engine's thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stop:
                self._take_inbox()
                if self._core.scheduler.idle:
                    self._wait()
                    continue
                report = self._core.step()
                self._heartbeat = self._clock.now()
                self._call(self._deliver, report)
        except Exception as error:
            log.exception("the engine loop has failed")
            self._failure = f"{type(error).__name__}: {error}"
            self._call(self._fail)

    def _take_inbox(self) -> None:
        while self._inbox:
            message = self._inbox.popleft()
            if isinstance(message, str):
                self._core.cancel(message)
            else:
                self._core.add(message)

    def _wait(self) -> None:
        """Sleep until there is work; the heartbeat goes on."""
        self._heartbeat = self._clock.now()
        if self._last is not None and (self._last.running or self._last.waiting):
            self._call(self._deliver, self._core.idle_report())  # cancellation emptied the engine: say so
        self._wake.wait(timeout=1.0)
        self._wake.clear()

    def _call(self, function: Callable[..., None], *args: object) -> None:
        """Run on the event loop's thread; a loop that is gone has nobody to tell."""
        if args and isinstance(args[0], RoundReport):
            self._last = args[0]
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            log.debug("the event loop is closed")

    # -- on the event loop -------------------------------------------------------------------------------------------

    def _deliver(self, report: RoundReport) -> None:
        for event in report.events:
            if isinstance(event, ErrorEvent):
                stream = self._streams.pop(event.request_id, None)
                if stream is not None:
                    stream.put(EngineDeadError(event.message))
                continue
            stream = self._streams.get(event.request_id)
            if stream is not None:
                stream.put(event)
                if event.finish_reason is not None:
                    del self._streams[event.request_id]
        for listener in self._listeners:
            listener(report)

    def _fail(self) -> None:
        for stream in self._streams.values():
            stream.put(EngineDeadError(self._failure or "unknown"))
        self._streams.clear()
