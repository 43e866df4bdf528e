"""uvicorn's HTTP/1.1 protocols with our errors, a header size limit, a stall timeout and ignored upgrade offers."""

import array
import asyncio
import contextlib
import sys
import uuid
from typing import cast

import httptools
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.http.errors import APIError, invalid

if sys.platform != "win32":
    import fcntl
    import termios

STALL_TIMEOUT = 60.0  # seconds in which a client must receive some of the bytes that wait for it
MAX_HEAD = 65_536  # bytes of a request line and headers, beyond the first received piece
_UPGRADE_HEADERS = (b"upgrade", b"http2-settings")


def _reject_connection(transport: asyncio.Transport, error: APIError, reason: str) -> None:
    body = error.response().body
    head = (
        f"HTTP/1.1 {error.status} {reason}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nx-request-id: {uuid.uuid4().hex}\r\nconnection: close\r\n\r\n"
    )
    transport.write(head.encode("ascii") + bytes(body))
    transport.close()


class _StallTimeout(asyncio.Protocol):
    """Abort connections whose client receives nothing for `STALL_TIMEOUT` seconds. Slow clients are served."""

    transport: asyncio.Transport
    _timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(STALL_TIMEOUT, self._check_progress, self._unsent_bytes())

    def _unsent_bytes(self) -> int:
        """Return the bytes that the client has not acknowledged, those in the socket's send buffer included."""
        queued = array.array("i", [0])
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, queued)
        return self.transport.get_write_buffer_size() + queued[0]

    def _check_progress(self, before: int) -> None:
        if self._unsent_bytes() < before:
            self._start_timer()
        else:
            self.transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _H11Protocol(_StallTimeout, H11Protocol):
    """h11's implementation, for clients that offer an upgrade or speak HTTP/1.0, which has no chunked encoding."""

    def send_400_response(self, msg: str) -> None:
        _reject_connection(self.transport, invalid(msg), "Bad Request")


class Protocol(_StallTimeout, HttpToolsProtocol):
    """uvicorn's faster implementation, httptools.

    Its parser treats the bytes after an upgrade offer, the body included, as another protocol. This server never
    upgrades, so connections with such an offer (curl --http2, JDK clients) switch to h11, which reads on.

    Pipelined requests are not queued. Reading must continue during a reply to notice that the client disconnects, so
    their bytes are discarded and the connection is closed after the reply. The client then retries (RFC 9112, 9.3.2).
    """

    _head: int | None = None  # bytes read of an incomplete head or trailer; None: no head is being read
    _discards = False
    _replacement: _H11Protocol | None = None

    def send_400_response(self, msg: str) -> None:
        self._reject(invalid(msg), "Bad Request")

    def _reject(self, error: APIError, reason: str) -> None:
        cycle = self.cycle
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.close()  # an error does not fit into a reply that has started
        else:
            _reject_connection(self.transport, error, reason)

    def _reject_head(self) -> None:
        error = APIError(431, f"The request line and headers are larger than {MAX_HEAD} bytes.")
        self._reject(error, "Request Header Fields Too Large")

    def data_received(self, data: bytes) -> None:
        if self._discards:
            return
        continued = self._head is not None
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            if not self._discards:
                self.logger.warning("Invalid HTTP request received.")
                self.send_400_response("Invalid HTTP request received.")
            return
        except httptools.HttpParserUpgrade as upgrade:
            if not self._discards:
                protocol, remaining = self._switch_to_h11(), data[upgrade.args[0] :]
                if remaining:  # h11 would take empty data for the end of the connection
                    protocol.data_received(remaining)
            return
        if continued and self._head is not None:
            self._head += len(data)
            if self._head > MAX_HEAD:
                self._reject_head()

    def on_message_begin(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._discards, self.cycle.keep_alive = True, False
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = None
        if self._discards or self.parser.should_upgrade():
            return
        if len(self.url) > MAX_HEAD:  # more than the parser of addresses takes
            self._discards = True
            self._reject_head()
            return
        if self.parser.get_http_version() == "1.0":
            self._replacement = self._switch_to_h11()
        else:
            super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """Start counting again: trailers may follow the last chunk, which is empty."""
        self._head = 0

    def on_body(self, body: bytes) -> None:
        self._head = None
        if self._replacement is not None:
            self._replacement.data_received(body)
        elif not self._discards:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._head = None
        if not (self._discards or self._replacement or self.parser.should_upgrade()):
            super().on_message_complete()

    def _switch_to_h11(self) -> _H11Protocol:
        """Switch the connection to h11 and replay the head to it, without the upgrade offer."""
        version = self.parser.get_http_version().encode("ascii")
        head = [self.parser.get_method(), b" ", self.url, b" HTTP/", version, b"\r\n"]
        for name, value in self.headers:
            if name not in _UPGRADE_HEADERS:
                head += [name, b": ", value, b"\r\n"]
        self.connections.discard(cast(asyncio.Protocol, self))
        protocol = _H11Protocol(config=self.config, server_state=self.server_state, app_state=self.app_state)
        protocol.connection_made(self.transport)
        self.transport.set_protocol(protocol)
        protocol.data_received(b"".join([*head, b"\r\n"]))
        return protocol
