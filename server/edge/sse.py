"""Server-sent events: the response that carries them, and its keep-alive comments."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from typing import Protocol

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from server.edge.asgi import cancelled_on_disconnect
from server.edge.errors import APIError


class Writer(Protocol):
    """What a stream sends beside its frames."""

    keep_alive: bytes  # comment to send when there are no frames
    done: bytes  # text that ends the stream

    def error(self, error: APIError) -> bytes: ...


class EventStream(Response):
    """Send frames as they arrive, then the writer's `done`. A later exception becomes one more frame.

    The response starts with the first frame. An exception before that reaches the application's handlers, so the client
    gets its status code. `source` produces the frames: it is entered first and left last, even if the client
    disconnects early. `frames` yields (bytes, whether they are the last). The last ones are sent together with
    `done`, because every write wakes the client. A comment is sent after some `keep_alive` seconds without a frame.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        source: AbstractAsyncContextManager[object],
        frames: AsyncGenerator[tuple[bytes, bool], None],
        writer: Writer,
        as_error: Callable[[Exception], APIError],
        keep_alive: float,
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._source, self._frames, self._writer = source, frames, writer
        self._as_error = as_error
        self._keep_alive = keep_alive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        out = _Output(send, self.status_code, self.raw_headers, self._writer.keep_alive)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._source)
            frames = await stack.enter_async_context(aclosing(self._frames))
            await stack.enter_async_context(cancelled_on_disconnect(receive))
            last_frames = b""
            async with out.kept_alive(self._keep_alive):
                try:
                    async for frame, last in frames:
                        if last:
                            last_frames = frame
                            break
                        if frame:
                            await out.write(frame)
                except ClientDisconnect:
                    raise
                except Exception as error:
                    failure = self._as_error(error)
                    if not out.started:
                        raise failure from None
                    last_frames = self._writer.error(failure)
            await out.write(last_frames + self._writer.done, more=False)


class _Output:
    """Write one response. A lock keeps keep-alive comments and frames apart."""

    def __init__(self, send: Send, status: int, headers: list[tuple[bytes, bytes]], comment: bytes) -> None:
        self._send = send
        self._start = {"type": "http.response.start", "status": status, "headers": headers}
        self._lock = asyncio.Lock()
        self._idle = True
        self._comment = comment
        self.started = False

    async def write(self, data: bytes, more: bool = True) -> None:
        async with self._lock:
            self._idle = False
            if not self.started:
                await self._send(self._start)
                self.started = True
            await self._send({"type": "http.response.body", "body": data, "more_body": more})

    @asynccontextmanager
    async def kept_alive(self, interval: float) -> AsyncIterator[None]:
        """Write a comment after `interval` to 2 · `interval` seconds without a frame."""

        async def comment() -> None:
            while True:
                self._idle = True
                await asyncio.sleep(interval)
                if self._idle:
                    await self.write(self._comment)

        comments = asyncio.create_task(comment())
        try:
            yield
        finally:
            comments.cancel()
            await asyncio.gather(comments, return_exceptions=True)
