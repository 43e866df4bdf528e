"""Limits on request bodies, checked while they arrive: bytes, JSON values, speed, and memory of all together."""

import asyncio
import ctypes
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from starlette.requests import Request

from server.edge.errors import APIError, unavailable

LARGE_BYTES = 2**20
BUDGET = 128 * 2**20  # bytes of all bodies, or twice the limit of one if that is more
# A body may fall IDLE_SECONDS behind MIN_RATE: a byte buys 2 ms, and any number of bytes at most IDLE_SECONDS. The
# figures are those of Apache's mod_reqtimeout (body=20,MinRate=500).
IDLE_SECONDS = 20.0
MIN_RATE = 500.0  # bytes per second
_OVERHEAD = 64  # bytes of memory for each piece of a body, which may be a single byte
_MEMORY_SECONDS = 0.5  # time until the memory of a large body or reply is free


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


@dataclass(eq=False, slots=True)
class _Body:
    """A body that arrives."""

    timeout: asyncio.Timeout
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0  # bytes
    held: int = 0  # bytes of the budget
    refused: bool = False  # whether memory was lacking


class BodyReader:
    """Read request bodies: refuse those that are too large (413) or too slow (408).

    All bodies share a budget of memory. Beyond it, the one that has been silent the longest is refused (503).
    """

    def __init__(self, max_bytes: int, max_values: int) -> None:
        self._bytes, self._values = max_bytes, max_values
        self._free = max(BUDGET, 2 * max_bytes)  # bytes of the budget
        self._arriving: dict[_Body, None] = {}  # in order of silence, the longest first

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """Yield a request's body, which counts towards the budget until the block ends. Raises APIError."""
        declared = request.headers.get("content-length", "0")
        if declared.isdecimal():
            self._check(int(declared), 0)
        body = _Body(asyncio.timeout(IDLE_SECONDS))
        try:
            await self._receive(request, body)
            self._arriving.pop(body)
            yield b"".join(body.pieces)
        finally:
            if body.size > LARGE_BYTES:
                return_memory_later()
            self._release(body)

    async def _receive(self, request: Request, body: _Body) -> None:
        loop, values = asyncio.get_running_loop(), ValueCounter()
        try:
            async with body.timeout as timeout:
                async for piece in request.stream():
                    self._hold(body, piece)
                    values.feed(piece)
                    self._check(body.size, values.count)
                    due = (timeout.when() or 0.0) + len(piece) / MIN_RATE
                    timeout.reschedule(min(due, loop.time() + IDLE_SECONDS))
        except TimeoutError:
            if body.refused:
                raise unavailable("Too many large requests are being read.", "busy") from None
            raise APIError(408, "The request body did not arrive in time.", code="request_timeout") from None

    def _hold(self, body: _Body, piece: bytes) -> None:
        """Add the next bytes of a body, and refuse bodies until those that are held fit the budget."""
        if body.refused:
            raise TimeoutError
        body.pieces.append(piece)
        body.size += len(piece)
        body.held += len(piece) + _OVERHEAD
        self._free -= len(piece) + _OVERHEAD
        self._arriving.pop(body, None)
        self._arriving[body] = None
        while self._free < 0:
            silent = next(iter(self._arriving))
            silent.refused = True
            if not silent.timeout.expired():
                silent.timeout.reschedule(0)
            self._release(silent)

    def _release(self, body: _Body) -> None:
        self._arriving.pop(body, None)
        self._free += body.held
        body.held = 0
        body.pieces.clear()

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
