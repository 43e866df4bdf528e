"""uvicorn's HTTP/1.1 protocol with our errors, limits on heads, replies to HTTP/1.0, and a close that reads on.

What it overrides is internal to uvicorn, so pyproject.toml admits tested versions only. With uvicorn's own protocol,
heads and trailers have no limits and no time, a reset overtakes the reply to a refused body, pipelined bytes hide a
disconnect, an upgrade offer hides the body, HTTP/1.0 gets chunks, and nobody is answered once descriptors run out. Its
h11 protocol mends only upgrades, HTTP/1.0 and trailers, and takes 9 µs of processor time instead of 2 for each chunk.
"""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, cast

import httptools
import uvicorn
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from server.edge.connections import Connection, Connections
from server.edge.errors import APIError, invalid, unavailable

MAX_HEAD = 65_536  # bytes of a request line and headers, or of trailers
LINGER_SECONDS = 30.0  # time for which a close reads and discards bytes, as nginx's lingering_time
LINGER_BYTES = 64 * 2**20  # most bytes that a close discards
_UPGRADE_HEADERS = (b"upgrade", b"http2-settings")


class _Transport:
    """A transport for uvicorn, which closes it in several places, with another `close`."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport, self.close = transport, close

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol, Connection):
    """uvicorn's faster implementation, httptools.

    Its parser treats the bytes after an upgrade offer, the body included, as another protocol. This server never
    upgrades, so a head with such an offer (curl --http2, JDK clients) is parsed again without it.

    Pipelined requests are not queued. Reading must continue during a reply to notice that the client disconnects, so
    their bytes are discarded and the connection is closed after the reply. The client then retries (RFC 9112, 9.3.2).

    A reply to a request that has not arrived completely ends the connection. The close ends our side alone and
    discards what still arrives: otherwise a reset could overtake the reply (RFC 9112, 9.6).
    """

    _receiving = False  # whether a request has begun to arrive and has not ended
    _head: int | None = 0  # bytes read of an incomplete head or trailer; None: neither is being read
    _discards = False  # whether arriving bytes are dropped unparsed
    _lingers = False  # whether the connection is closed once the rest of the request has arrived
    _dropped = 0  # bytes that arrived while `_discards` or `_lingers`
    _timer: asyncio.TimerHandle | None = None  # limits the time of a head, of trailers or of a close

    def __init__(
        self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any], registry: Connections
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._registry = registry

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.abort, self._end, self.waits = transport.abort, transport.close, True
        super().connection_made(cast(asyncio.Transport, _Transport(transport, self._close)))
        self._start_timer(self._registry.header_timeout, self._head_timed_out)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._registry.remove(self)
        super().connection_lost(exc)

    def _close(self) -> None:
        """Close the connection. If bytes of a request may still arrive, end our side alone and discard them."""
        if self.transport.is_closing() or self._lingers:
            return
        if not (self._receiving or self._discards):
            self._end()
            return
        self._lingers = self.waits = True
        self.connections.discard(self)  # a shutdown does not wait for it
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.transport.resume_reading()
        self._start_timer(LINGER_SECONDS, self.abort)

    def _reject(self, error: APIError) -> None:
        """Answer in place of the application, and close the connection."""
        self._discards = True
        if self._lingers:
            self.abort()  # the request has its answer
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the application must not answer as well
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self._end()  # an error does not fit into a reply that has started
                return
        response = error.response()
        response.headers.update({"x-request-id": uuid.uuid4().hex, "connection": "close"})
        lines = [b"%s: %s\r\n" % header for header in response.raw_headers]
        self.transport.write(b"".join([STATUS_LINE[error.status], *lines, b"\r\n", response.body]))
        self._close()

    def send_400_response(self, msg: str) -> None:
        self._reject(invalid(msg))

    def _start_timer(self, seconds: float, expire: Callable[[], object]) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _head_timed_out(self) -> None:
        if self._head:
            message = f"The head of the request did not arrive within {self._registry.header_timeout:g} seconds."
            self._reject(APIError(408, message, code="request_timeout"))
        self._end()

    def data_received(self, data: bytes) -> None:
        self._registry.heard(self)
        if self._discards or self._lingers:
            self._dropped += len(data)
            if self._dropped > LINGER_BYTES:
                self._discards = True
                self.abort()
        self._unset_keepalive_if_required()
        while data and not self._discards:
            continued = self._head is not None
            size = len(data) if self._head is None else MAX_HEAD - self._head
            piece, data = data[:size], data[size:]
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserError:
                if not self._discards:
                    self.logger.warning("Invalid HTTP request received.")
                    self.send_400_response("Invalid HTTP request received.")
            except httptools.HttpParserUpgrade as upgrade:
                if not self._discards:
                    data = self._head_without_offer() + piece[upgrade.args[0] :] + data
                    self.parser = httptools.HttpRequestParser(self)
            else:
                if continued and self._head is not None:
                    self._head += len(piece)
                    if self._head >= MAX_HEAD:
                        self._reject(APIError(431, f"The head of the request is larger than {MAX_HEAD} bytes."))
        if self._head and self._timer is None:
            self._start_timer(self._registry.header_timeout, self._head_timed_out)

    def on_message_begin(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._discards, self.cycle.keep_alive = True, False
        self._receiving = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = None
        self._stop_timer()
        if self._discards:
            return
        if self.parser.get_method() == b"CONNECT":
            self.send_400_response("CONNECT is not supported.")
            return
        if self.parser.should_upgrade():
            return
        version = self.parser.get_http_version()
        codings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
        if codings and (codings != [b"chunked"] or version == "1.0"):  # RFC 9112, 6.1
            self.send_400_response("Transfer-Encoding must be chunked, and needs HTTP/1.1.")
            return
        if self._registry.room() < 0 and httptools.parse_url(self.url).path != b"/live":
            self._reject(unavailable("Too many connections are open.", "busy"))
            return
        if version == "1.0":
            self.app = self._without_framing
        super().on_headers_complete()
        self.cycle.keep_alive = False  # a reply ends the connection, until all of the request has arrived

    def on_chunk_header(self) -> None:
        """Start counting again: trailers may follow the last chunk, which is empty."""
        self._head = 0

    def on_body(self, body: bytes) -> None:
        self._head = None
        if not self._discards:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._head = None
        self._stop_timer()
        if self._discards or self.parser.should_upgrade():
            return
        self._receiving = False
        if self._lingers:
            self._end()
            return
        self.waits = False
        super().on_message_complete()
        if not self.cycle.response_started:
            self.cycle.keep_alive = self.parser.should_keep_alive() and self.cycle.scope["http_version"] != "1.0"

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._head, self.waits = 0, True
        self._registry.heard(self)

    def _head_without_offer(self) -> bytes:
        """Return the head that was read, without an upgrade offer."""
        version = self.parser.get_http_version().encode("ascii")
        head = [self.parser.get_method(), b" ", self.url, b" HTTP/", version, b"\r\n"]
        for name, value in self.headers:
            if name not in _UPGRADE_HEADERS:
                head += [name, b": ", value, b"\r\n"]
        return b"".join([*head, b"\r\n"])

    async def _without_framing(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer HTTP/1.0, which has no chunked encoding: the end of the connection ends a reply without length."""
        cycle = self.cycle
        cycle.chunked_encoding = False

        async def send_unframed(message: Message) -> None:
            if message["type"] == "http.response.body":
                cycle.expected_content_length = len(message.get("body", b""))  # uvicorn raises if it differs
            await send(message)

        await self.config.loaded_app(scope, receive, send_unframed)
