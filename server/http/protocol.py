"""HTTP/1.1 as uvicorn speaks it, with errors in our shape, a bounded head, and offers to upgrade that are not taken."""

from __future__ import annotations

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

STALLED = 60.0  # seconds in which a client has to take something of what waits for it
LARGEST_HEAD = 65_536  # bytes of a request line and headers, the piece that they begin in apart
_OFFER = (b"upgrade", b"http2-settings")  # headers


def _refuse(transport: asyncio.Transport, error: APIError, reason: str) -> None:
    """Answer what never became a request, and close."""
    body = error.response().body
    head = (
        f"HTTP/1.1 {error.status} {reason}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nx-request-id: {uuid.uuid4().hex}\r\nconnection: close\r\n\r\n"
    )
    transport.write(head.encode("ascii") + bytes(body))
    transport.close()


class _Impatient(asyncio.Protocol):
    """Aborts the connection of a client that takes nothing of what waits for it, which would be kept for as long as it
    likes. A slow one is waited for."""

    transport: asyncio.Transport
    _stalled: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_again()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _look_again(self) -> None:
        self._stalled = asyncio.get_running_loop().call_later(STALLED, self._look, self._untaken())

    def _untaken(self) -> int:
        """Bytes that the client has not taken. The system asks for more only when much of what it holds is gone, so
        that counts too, where it tells how much that is."""
        held = array.array("i", [0])
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, held)
        return self.transport.get_write_buffer_size() + held[0]

    def _look(self, before: int) -> None:
        if self._untaken() < before:
            self._look_again()
        else:
            self.transport.abort()

    def _forget(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


class _PlainProtocol(_Impatient, H11Protocol):
    """For connections whose client offered an upgrade, or speaks HTTP/1.0, which knows no chunks."""

    def send_400_response(self, msg: str) -> None:
        _refuse(self.transport, invalid(msg), "Bad Request")


class Protocol(_Impatient, HttpToolsProtocol):
    """uvicorn's faster implementation.

    Its parser takes what follows an offer to upgrade for another protocol, and a body with it. Nothing is upgraded
    here, so such a connection (curl --http2, clients of the JDK) goes to the implementation that reads on.

    Requests are not queued behind one that is not answered (pipelining, which no client of ours does): reading has to
    go on, for it tells when the client leaves. What comes is dropped, and the connection closed after the answer; its
    client asks again (RFC 9112, 9.3.2).
    """

    _head: int | None = None  # bytes read of a head, or of what follows a body in chunks, that is not complete
    _deaf = False
    _successor: _PlainProtocol | None = None

    def send_400_response(self, msg: str) -> None:
        self._give_up(invalid(msg), "Bad Request")

    def _give_up(self, error: APIError, reason: str) -> None:
        if self._answering:
            self.transport.close()  # nothing fits into what was begun
        else:
            _refuse(self.transport, error, reason)

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and self.cycle.response_started

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        continued = self._head is not None
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            if not self._deaf:
                self.logger.warning("Invalid HTTP request received.")
                self.send_400_response("Invalid HTTP request received.")
            return
        except httptools.HttpParserUpgrade as upgrade:
            if not self._deaf:
                protocol, rest = self._hand_over(), data[upgrade.args[0] :]
                if rest:  # no bytes would say that none follow
                    protocol.data_received(rest)
            return
        if continued and self._head is not None:
            self._head += len(data)
            if self._head > LARGEST_HEAD:
                error = APIError(431, f"The headers are larger than {LARGEST_HEAD} bytes.")
                self._give_up(error, "Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._deaf, self.cycle.keep_alive = True, False
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = None
        if self._deaf or self.parser.should_upgrade():
            return
        if self.parser.get_http_version() == "1.0":
            self._successor = self._hand_over()
        else:
            super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """Of every chunk: behind the last, which is empty, there may be headers again."""
        self._head = 0

    def on_body(self, body: bytes) -> None:
        self._head = None
        if self._successor is not None:
            self._successor.data_received(body)
        elif not self._deaf:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._head = None
        if not (self._deaf or self._successor or self.parser.should_upgrade()):
            super().on_message_complete()

    def _hand_over(self) -> _PlainProtocol:
        """The connection's protocol from here on, which has got the head again, without the offer to upgrade."""
        version = self.parser.get_http_version().encode("ascii")
        head = [self.parser.get_method(), b" ", self.url, b" HTTP/", version, b"\r\n"]
        for name, value in self.headers:
            if name not in _OFFER:
                head += [name, b": ", value, b"\r\n"]
        self.connections.discard(cast(asyncio.Protocol, self))
        protocol = _PlainProtocol(config=self.config, server_state=self.server_state, app_state=self.app_state)
        protocol.connection_made(self.transport)
        self.transport.set_protocol(protocol)
        protocol.data_received(b"".join([*head, b"\r\n"]))
        return protocol
