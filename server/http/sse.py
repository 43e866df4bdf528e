"""Server-sent events: framing, keep-alive comments, and the response that carries them."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from server.http.asgi import cancelled_on_disconnect
from server.http.errors import APIError
from server.openai.replies.build import Chunk
from server.openai.replies.endpoints import Json, Piece

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"

# ASCII only: some clients treat U+2028 as the end of a line. One encoder, because json.dumps builds one per call.
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Framer:
    """Format the chunks of one reply as events. The envelope, which all chunks share, is encoded once."""

    def __init__(self, envelope: Json, choice: Callable[[Piece], Json], include_usage: bool) -> None:
        """`choice` converts a piece to the only object of the list `choices`."""
        self._choice = choice
        self._head = f'data: {_encode(envelope)[:-1]},"choices":['
        self._tail = '],"usage":null' if include_usage else "]"

    def frames(self, chunks: Iterable[Chunk]) -> bytes:
        """Return the bytes of several chunks."""
        return "".join([self._frame(chunk) for chunk in chunks]).encode("ascii")

    def _frame(self, chunk: Chunk) -> str:
        choice = "" if chunk.piece is None else _encode(self._choice(chunk.piece))
        tail = self._tail if chunk.usage is None else f'],"usage":{_encode(chunk.usage)}'
        metrics = "" if chunk.metrics is None else f',"metrics":{_encode(chunk.metrics)}'
        return f"{self._head}{choice}{tail}{metrics}}}\n\n"


class EventStream(Response):
    """Send frames as they arrive, then `[DONE]`. An exception after the first frame becomes an error chunk.

    The response starts with the first frame. An exception before that reaches the application's handlers, so the client
    gets its status code. `source` produces the frames: it is entered first and left last, even if the client
    disconnects early. `frames` yields (bytes, whether they are the last). The last ones are sent together with
    `[DONE]`, because every write wakes the client.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        source: AbstractAsyncContextManager[object],
        frames: AsyncGenerator[tuple[bytes, bool], None],
        keep_alive: float,
        as_error: Callable[[Exception], APIError],
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._source = source
        self._frames = frames
        self._keep_alive = keep_alive
        self._as_error = as_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        out = _Output(send, self.status_code, self.raw_headers)
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
                    if not out.started:
                        raise
                    last_frames = f"data: {_encode(self._as_error(error).body())}\n\n".encode("ascii")
            await out.write(last_frames + DONE, more=False)


class _Output:
    """Write one response. A lock keeps keep-alive comments and frames apart."""

    def __init__(self, send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._send = send
        self._start = {"type": "http.response.start", "status": status, "headers": headers}
        self._lock = asyncio.Lock()
        self._idle = True
        self._comment: asyncio.Task[None] | None = None
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
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle

        async def comment() -> None:
            await self.write(KEEP_ALIVE)
            self._idle = True

        def beat() -> None:
            nonlocal timer
            timer = loop.call_later(interval, beat)
            if self._idle and (self._comment is None or self._comment.done()):
                self._comment = asyncio.create_task(comment())
            self._idle = True

        timer = loop.call_later(interval, beat)
        try:
            yield
        finally:
            timer.cancel()
            if self._comment is not None:
                self._comment.cancel()
                await asyncio.gather(self._comment, return_exceptions=True)
