"""Accept connections, and close the one that has been silent the longest before file descriptors run out."""

import asyncio
import errno
import logging
import resource
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any

log = logging.getLogger("knapserve.server")

STALL_TIMEOUT = 60.0  # seconds in which a client must receive some of the bytes that wait for it
_SHARE = 0.75  # connections' part of the descriptors; the rest is for `/live` and for the server's own files
_BATCH = 16  # connections that are accepted before others are read
_RETRY_SECONDS = 0.05  # time between attempts to accept while no descriptor is left
_WARNING_SECONDS = 60.0  # time between warnings that descriptors run out


class Connection(asyncio.Protocol):
    """What `Connections` knows of the protocol of a connection."""

    abort: Callable[[], object]  # closes the connection without waiting for its client
    waits = False  # whether the server waits for the client


class Connections:
    """The open connections of a server, which have a share of its file descriptors.

    Beyond the share, one that waits for its client is closed: the one that has been silent the longest. A connection
    waits for its client unless a request has arrived completely and is not answered yet.
    """

    def __init__(self, header_timeout: float, tls: ssl.SSLContext | None) -> None:
        """`header_timeout`: seconds in which a TLS handshake, or the head of a request, must arrive."""
        self.header_timeout, self._tls = header_timeout, tls
        self._open: dict[Connection, None] = {}  # in order of silence, the longest first
        self._next_warning = 0.0

    def listen(self, listener: socket.socket, connect: Callable[[], Connection]) -> None:
        """Accept connections until `listener` is removed from the event loop. `connect` makes the protocol of each.

        Unlike asyncio's server, this knows of connections in a TLS handshake, and of a lack of descriptors.
        """
        listener.setblocking(False)
        asyncio.get_running_loop().add_reader(listener, self._accept, listener, connect)

    def _accept(self, listener: socket.socket, connect: Callable[[], Connection]) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(_BATCH):
            try:
                client, _ = listener.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE) and not self._make_room():
                    loop.remove_reader(listener)
                    loop.call_later(_RETRY_SECONDS, self.listen, listener, connect)
                return
            if client.family != socket.AF_UNIX and hasattr(socket, "TCP_USER_TIMEOUT"):
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(1000 * STALL_TIMEOUT))
            while self.room() < 1 and self._make_room():
                pass
            self._add(connect(), client)

    def _add(self, connection: Connection, client: socket.socket) -> None:
        options: dict[str, Any] = {"ssl": self._tls, "ssl_handshake_timeout": self.header_timeout} if self._tls else {}
        loop = asyncio.get_running_loop()
        opening = loop.create_task(loop.connect_accepted_socket(lambda: connection, client, **options))
        connection.abort, connection.waits = opening.cancel, self._tls is not None  # `connection_made` replaces both
        self._open[connection] = None

        def opened(task: asyncio.Task[Any]) -> None:
            if task.cancelled() or task.exception() is not None:  # for example, a TLS handshake has failed
                self.remove(connection)
                client.close()

        opening.add_done_callback(opened)

    def room(self) -> float:
        """Return how many more connections fit the share; below 0 while more are being answered."""
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)  # the limit may change while the server runs
        return _SHARE * limit - len(self._open)

    def heard(self, connection: Connection) -> None:
        """Note that bytes have arrived, or that the connection waits for its client from now on."""
        if connection in self._open:
            self.remove(connection)
            self._open[connection] = None

    def remove(self, connection: Connection) -> None:
        self._open.pop(connection, None)

    def _make_room(self) -> bool:
        """Close the longest silent connection that waits for its client, if there is one, and log it."""
        if time.monotonic() > self._next_warning:
            self._next_warning = time.monotonic() + _WARNING_SECONDS
            message = "file descriptors run out (ulimit -n): %d connections are open; the longest silent are closed"
            log.warning(message, len(self._open))
        for connection in self._open:
            if connection.waits:
                self.remove(connection)
                connection.abort()
                return True
        return False

    def close(self) -> None:
        """Close all connections at once."""
        for connection in list(self._open):
            connection.abort()
