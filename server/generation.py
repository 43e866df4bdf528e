"""The engine requests of one HTTP request: submitted together, merged into one stream, cancelled together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from types import TracebackType

from engine.api import Engine
from engine.errors import EngineDeadError, EngineDrainingError, RequestError
from engine.types import GenerateRequest, TokenEvent
from server.metrics.meter import RequestMeter


class Generation:
    """All choices of one HTTP request, as an async context manager. Its exit cancels unfinished choices.

    The constructor submits all requests. If `Engine.submit` raises, it cancels those submitted so far and raises.
    """

    def __init__(self, engine: Engine, requests: Iterable[GenerateRequest], meter: RequestMeter) -> None:
        self._engine = engine
        self._meter = meter
        self._open: dict[int, str] = {}  # request ids of unfinished choices, by index
        self._streams: list[AsyncIterator[TokenEvent]] = []
        self._ended_by = "abort"
        try:
            for index, request in enumerate(requests):
                self._streams.append(engine.submit(request))
                self._open[index] = request.id
        except BaseException:
            self._cancel()
            raise

    async def __aenter__(self) -> Generation:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _ in self._open:
            self._meter.finished(self._ended_by)
        self._cancel()

    @property
    def finished(self) -> bool:
        """Whether `events` has yielded the last event."""
        return not self._open

    def end(self, index: int) -> None:
        """End a choice whose answer is complete, though the engine does not know it."""
        request_id = self._open.pop(index, None)
        if request_id is not None:
            self._meter.finished("stop")
            self._engine.cancel(request_id)

    async def events(self) -> AsyncGenerator[tuple[int, TokenEvent], None]:
        """Yield (index of a choice, event) in order of arrival. Raises the engine's exceptions."""
        try:
            alone = ((0, event) async for event in self._streams[0])
            async with aclosing(alone if len(self._streams) == 1 else self._merged()) as source:
                async for index, event in source:
                    if event.finish_reason is not None:
                        self._open.pop(index, None)
                    self._meter.event(index, event)
                    yield index, event
            if self._open:
                raise EngineDeadError("the events of a request ended without a finish reason")
        except (RequestError, EngineDrainingError):
            raise  # the client's mistake or the shutdown, not a failure of the engine
        except Exception:
            self._ended_by = "error"
            raise

    async def _merged(self) -> AsyncGenerator[tuple[int, TokenEvent], None]:
        queue: asyncio.Queue[tuple[int, TokenEvent | Exception | None]] = asyncio.Queue()

        async def pump(index: int, stream: AsyncIterator[TokenEvent]) -> None:
            try:
                async for event in stream:
                    queue.put_nowait((index, event))
                queue.put_nowait((index, None))
            except Exception as error:
                queue.put_nowait((index, error))

        pumps = [asyncio.create_task(pump(index, stream)) for index, stream in enumerate(self._streams)]
        try:
            running = len(pumps)
            while running:
                index, item = await queue.get()
                if item is None:
                    running -= 1
                elif isinstance(item, Exception):
                    raise item
                else:
                    yield index, item
        finally:
            for task in pumps:
                task.cancel()
            # No task outlives the request.
            await asyncio.gather(*pumps, return_exceptions=True)

    def _cancel(self) -> None:
        for request_id in self._open.values():
            self._engine.cancel(request_id)
        self._open.clear()
