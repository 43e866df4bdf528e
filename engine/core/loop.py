"""The engine's loop (inbox → round → outboxes), its side on the event loop, and the thread that may join them.

An exception fails every waiter; nothing hangs. `engine.host.process` runs the same loop in a process of its own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from engine.clock import Clock
from engine.errors import (
    EngineDeadError,
    EngineDrainingError,
    KnapServeError,
    QueueFullError,
    RequestError,
    RequestFailedError,
)
from engine.types import EngineInfo, EngineStats, ErrorEvent, GenerateRequest, RoundReport, TokenEvent, check_request

if TYPE_CHECKING:
    from engine.core.engine import EngineCore
    from engine.text.tokenizer import Tokenizer

log = logging.getLogger("knapserve.engine")


class ResetCalibration:
    """Asks the engine to trust its latency profile again."""


Message = GenerateRequest | ResetCalibration | str  # a str is the id of a request to cancel


class Outside(Protocol):
    """What the engine's loop sees of those that it works for."""

    @property
    def stopped(self) -> bool: ...

    def take(self) -> list[Message]:
        """What has come in; empty at once if nothing has."""

    def wait(self, timeout: float) -> None:
        """Sleep until something comes in."""

    def deliver(self, report: RoundReport) -> None: ...

    def show_life(self) -> None:
        """Called about once a second while there is nothing to do."""


def run_rounds(core: EngineCore, outside: Outside) -> None:
    """Rounds while there is work, until stopped. Raises what a round raises."""
    busy = False

    def tell(report: RoundReport) -> None:
        nonlocal busy
        busy = bool(report.running or report.waiting)
        outside.deliver(report)

    while not outside.stopped:
        for message in outside.take():
            core.settle(tell)  # what is known need not wait for this
            if isinstance(message, str):
                core.cancel(message)
            elif isinstance(message, ResetCalibration):
                core.reset_calibration()
            else:
                _add(core, message, outside)
        if not core.scheduler.idle:
            core.advance(tell)
            continue
        core.settle(tell)
        outside.show_life()
        if busy:  # cancellation emptied the engine: say so
            busy = False
            outside.deliver(core.idle_report())
        outside.wait(1.0)


def _add(core: EngineCore, message: GenerateRequest, outside: Outside) -> None:
    """Queue a request. One that cannot even begin fails alone."""
    try:
        core.add(message)
    except Exception as error:
        if isinstance(error, RequestError):
            failed = ErrorEvent(message.id, str(error), error.param)
        else:
            log.exception("request %s cannot be begun", message.id)
            failed = ErrorEvent(message.id, "The request could not be begun.")
        running, waiting = len(core.scheduler.running), len(core.scheduler.waiting)
        outside.deliver(replace(core.idle_report(), events=(failed,), running=running, waiting=waiting))


class Stream:
    """Events of one request, as an async iterator; closing it early cancels the request.

    What has come by the time its reader is ready is given as one event, but for rounds that are traced: so a reader
    who is slower than the rounds costs nobody more than one that keeps up.
    """

    def __init__(self, request_id: str, close: Callable[[str], None]) -> None:
        self._id = request_id
        self._close = close
        self._events: deque[TokenEvent | KnapServeError | None] = deque()
        self._arrived = asyncio.Event()
        self._done = False

    def put(self, event: TokenEvent | KnapServeError | None) -> None:
        """Add an event, an error to raise, or None to end without either (the request was cancelled)."""
        self._events.append(event)
        self._arrived.set()

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> TokenEvent:
        if self._done:
            raise StopAsyncIteration
        while not self._events:
            self._arrived.clear()
            await self._arrived.wait()
        event = self._events.popleft()
        if event is None:
            self._done = True
            raise StopAsyncIteration
        if isinstance(event, KnapServeError):
            self._done = True
            raise event
        event = TokenEvent.joined([event, *self._more(event)])
        self._done = event.finish_reason is not None
        return event

    def _more(self, event: TokenEvent) -> Iterator[TokenEvent]:
        """Takes the events that can be joined to one just taken."""
        while event.trace is None and self._events and isinstance(self._events[0], TokenEvent):
            event = self._events[0]
            if event.trace is None:
                self._events.popleft()
                yield event

    async def aclose(self) -> None:
        if not self._done:
            self._done = True
            self._close(self._id)


class EngineClient(ABC):
    """`engine.api.Engine` on the event loop's side; where the rounds are run is up to the subclass."""

    def __init__(self, info: EngineInfo, tokenizer: Tokenizer, clock: Clock, max_live: int) -> None:
        self.info = info
        self.tokenizer = tokenizer
        self._clock = clock
        self._max_live = max_live  # running and waiting requests
        self._stop = False
        self._draining = False
        self._failure: str | None = None
        self._heartbeat = clock.now()
        self._last: RoundReport | None = None
        self._checked: tuple[int, ...] = ()
        self._streams: dict[str, Stream] = {}
        self._listeners: list[Callable[[RoundReport], None]] = []

    def submit(self, request: GenerateRequest) -> Stream:
        if self._failure is not None:
            raise EngineDeadError(self._failure)
        if self._draining:
            raise EngineDrainingError
        check_request(self.info, request, self._checked)
        self._checked = request.prompt  # that of further choices
        if len(self._streams) >= self._max_live:
            raise QueueFullError(len(self._streams) - self.info.max_num_seqs)
        stream = self._streams[request.id] = Stream(request.id, self.cancel)
        self._send(request)
        return stream

    def cancel(self, request_id: str) -> None:
        stream = self._streams.pop(request_id, None)
        if stream is not None:
            stream.put(None)
            self._send(request_id)

    def reset_calibration(self) -> None:
        if self._failure is None:
            self._send(ResetCalibration())

    def stats(self) -> EngineStats:
        last = self._last
        return EngineStats(
            ready=self._alive() and not self._draining and self._failure is None,
            draining=self._draining,
            failure=self._failure,
            running=last.running if last else 0,
            waiting=max(len(self._streams) - (last.running if last else 0), 0),
            kv_usage=last.kv_usage if last else 0.0,
            heartbeat_age=self._clock.now() - self._heartbeat,
        )

    @property
    def pid(self) -> int:
        return os.getpid()

    def add_listener(self, listener: Callable[[RoundReport], None]) -> None:
        self._listeners.append(listener)

    async def drain(self, timeout: float) -> None:
        self._draining = True
        deadline = self._clock.now() + timeout
        while self._streams and self._failure is None and self._clock.now() < deadline:
            await asyncio.sleep(0.02)
        for request_id, stream in list(self._streams.items()):
            stream.put(EngineDrainingError() if self._failure is None else EngineDeadError(self._failure))
            self.cancel(request_id)
        self._stop = True
        await self._join()

    @abstractmethod
    async def start(self) -> None:
        """Begin to serve; events go to the running event loop."""

    @abstractmethod
    def _send(self, message: Message) -> None:
        """Pass a message on."""

    @abstractmethod
    def _alive(self) -> bool:
        """Whether rounds can be run."""

    @abstractmethod
    async def _join(self) -> None:
        """End the loop; `_stop` is set."""

    def _deliver(self, report: RoundReport) -> None:
        for event in report.events:
            if isinstance(event, ErrorEvent):
                stream = self._streams.pop(event.request_id, None)
                if stream is not None:
                    wrong = event.param is not None
                    stream.put(
                        RequestError(event.message, param=event.param) if wrong else RequestFailedError(event.message)
                    )
                continue
            stream = self._streams.get(event.request_id)
            if stream is not None:
                stream.put(event)
                if event.finish_reason is not None:
                    del self._streams[event.request_id]
        if self._listeners:  # after those that wait for tokens
            asyncio.get_running_loop().call_soon(self._tell, report)

    def _tell(self, report: RoundReport) -> None:
        for listener in self._listeners:
            listener(report)

    def _fail(self) -> None:
        for stream in self._streams.values():
            stream.put(EngineDeadError(self._failure or "unknown"))
        self._streams.clear()


class EngineThread(EngineClient):
    """Runs an `EngineCore` in a thread; methods belong to the event loop's thread, those of `Outside` to its own."""

    def __init__(self, core: EngineCore, clock: Clock, *, max_live: int) -> None:
        super().__init__(core.info, core.tokenizer, clock, max_live)
        self._core = core
        self._inbox: deque[Message] = deque()
        self._wake = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="knapserve-engine", daemon=True)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def _send(self, message: Message) -> None:
        self._inbox.append(message)
        self._wake.set()

    def _alive(self) -> bool:
        return self._thread.is_alive()

    async def _join(self) -> None:
        self._wake.set()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, 10.0)

    def _run(self) -> None:
        """The thread."""
        try:
            run_rounds(self._core, self)
        except Exception as error:
            log.exception("the engine loop has failed")
            self._failure = f"{type(error).__name__}: {error}"
            self._call(self._fail)

    def _call(self, function: Callable[..., None], *args: object) -> None:
        """Run on the event loop's thread; a loop that is gone has nobody to tell."""
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            log.debug("the event loop is closed")

    # -- `Outside`, for the engine's thread --------------------------------------------------------------------------

    @property
    def stopped(self) -> bool:
        return self._stop

    def take(self) -> list[Message]:
        taken = []
        while self._inbox:
            taken.append(self._inbox.popleft())
        return taken

    def wait(self, timeout: float) -> None:
        self._wake.wait(timeout)
        self._wake.clear()

    def deliver(self, report: RoundReport) -> None:
        self.show_life()
        self._last = report
        self._call(self._deliver, report)

    def show_life(self) -> None:
        self._heartbeat = self._clock.now()
