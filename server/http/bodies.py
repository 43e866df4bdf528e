"""Limits on request bodies, checked while they arrive: bytes, JSON values, time, and the number of large ones."""

import asyncio
import ctypes
import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from starlette.requests import Request

from server.http.errors import APIError, unavailable

LARGE_BYTES = 2**20
_LARGE_BODIES = 4  # that are read at a time
LARGE_SECONDS = 60.0  # in which a large body must arrive, once it may
_MEMORY_SECONDS = 0.5  # after which the memory of a large body or reply is free
IDLE_SECONDS = 60.0  # in which some bytes of an unfinished body must arrive


class ValueCounter:
    """Count the values of a JSON text that arrives in pieces, by the commas and brackets outside of its strings.

    A body of a few megabytes can hold millions of values, which take a second and a gigabyte to read.
    """

    def __init__(self) -> None:
        self.count = 0
        self._in_string = False
        self._escaped = False  # whether a backslash at the end of the last piece escapes the next character

    def feed(self, data: bytes) -> None:
        """Count the values in the next piece."""
        rest = data[self._escaped :].replace(b"\\\\", b"")
        if data:
            self._escaped = rest.endswith(b"\\")
        parts = rest.replace(b'\\"', b"").split(b'"')
        outside = b"".join(parts[self._in_string :: 2])
        self._in_string ^= len(parts) % 2 == 0
        self.count += outside.count(b",") + outside.count(b"[") + outside.count(b"{")


class BodyReader:
    """Read request bodies: refuse those that are too large (413) or do not arrive (408)."""

    def __init__(self, max_bytes: int, max_values: int) -> None:
        self._bytes, self._values = max_bytes, max_values
        self._large = asyncio.Semaphore(_LARGE_BODIES)

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """Yield a request's body. A large one occupies one of few places until the block ends. Raises APIError."""
        declared = request.headers.get("content-length", "0")
        if declared.isdecimal():
            self._check(int(declared), 0)
        pieces: list[bytes] = []
        size, values = 0, ValueCounter()
        async with AsyncExitStack() as stack:
            last = math.inf  # time at which a large body must be complete
            stream = aiter(request.stream())
            while piece := await self._next(stream, last):
                pieces.append(piece)
                size += len(piece)
                values.feed(piece)
                self._check(size, values.count)
                if size > LARGE_BYTES and last == math.inf:
                    await self._begin_large(stack)
                    last = asyncio.get_running_loop().time() + LARGE_SECONDS
            if last < math.inf:
                stack.callback(return_memory_later)
            yield b"".join(pieces)

    async def _begin_large(self, stack: AsyncExitStack) -> None:
        """Wait for a place among the large bodies, and hold it until the stack ends."""
        try:
            async with asyncio.timeout(2 * LARGE_SECONDS):  # a turn may pass
                await stack.enter_async_context(self._large)
        except TimeoutError:
            raise unavailable("Too many large requests are being read.", "busy") from None

    @staticmethod
    async def _next(stream: AsyncIterator[bytes], last: float) -> bytes:
        """Return the next bytes of a body; none at its end."""
        idle = asyncio.get_running_loop().time() + IDLE_SECONDS
        try:
            async with asyncio.timeout_at(min(idle, last)):
                return await anext(stream, b"")
        except TimeoutError:
            message, headers = "The request body did not arrive in time.", {"Connection": "close"}
            raise APIError(408, message, code="request_timeout", headers=headers) from None

    def _check(self, size: int, values: int) -> None:
        if size > self._bytes:
            raise APIError(413, f"The request body is larger than {self._bytes} bytes.", code="request_too_large")
        if values > self._values:
            raise APIError(413, f"The request body has more than {self._values} values.", code="request_too_large")


def return_memory_later() -> None:
    """Return the memory of a large body or reply to the system once it is free; the C library would keep it."""
    loop = asyncio.get_running_loop()
    loop.call_later(_MEMORY_SECONDS, loop.run_in_executor, None, _return_memory)


def _return_memory() -> None:
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
