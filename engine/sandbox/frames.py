"""Frames of bytes on a socket, between this process and those that run programs of strangers."""

import socket
import struct

_LENGTH = struct.Struct("<I")
_READ_BYTES = 1 << 16


def send(end: socket.socket, data: bytes) -> None:
    """Write one frame. Raises OSError when the other end is gone."""
    end.sendall(_LENGTH.pack(len(data)) + data)


def receive(end: socket.socket) -> bytes:
    """Wait for one frame. Raises EOFError when the other end is gone."""
    (length,) = _LENGTH.unpack(_exactly(end, _LENGTH.size))
    return bytes(_exactly(end, length))


def _exactly(end: socket.socket, count: int) -> bytearray:
    data = bytearray()
    while len(data) < count:
        piece = end.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


class Reader:
    """Frames from a process that may send them in pieces, or too much."""

    def __init__(self, end: socket.socket, most_bytes: int) -> None:
        """`end` has a timeout; `most_bytes` limits a frame."""
        self._end, self._most_bytes = end, most_bytes
        self._buffer = bytearray()

    def read(self) -> bytes | None:
        """Return the next frame; None if it is not complete within the socket's timeout.

        Raises EOFError when the other end is gone, ValueError for a frame that is too long.
        """
        while True:
            if len(self._buffer) >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(self._buffer)
                if length > self._most_bytes:
                    raise ValueError("a frame that is too long")
                if len(self._buffer) >= _LENGTH.size + length:
                    frame = bytes(self._buffer[_LENGTH.size : _LENGTH.size + length])
                    del self._buffer[: _LENGTH.size + length]
                    return frame
            try:
                piece = self._end.recv(_READ_BYTES)
            except TimeoutError:
                return None
            if not piece:
                raise EOFError
            self._buffer += piece
