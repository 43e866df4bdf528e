"""Frames of bytes on a socket between two processes of this program."""

from __future__ import annotations

import math
import socket
import struct
from collections.abc import Iterator

_LENGTH = struct.Struct("<Q")  # precedes each frame: its length in bytes
_READ_BYTES = 1 << 16  # a larger buffer would be mapped anew for each read


def framed(data: bytes) -> bytes:
    """Return the bytes of one frame."""
    return _LENGTH.pack(len(data)) + data


class Frames:
    """One end of a socket pair. Frames may arrive in pieces."""

    def __init__(self, end: socket.socket, most_bytes: float = math.inf) -> None:
        """`most_bytes` limits the frames to receive: a stranger's program may send too much."""
        self.socket = end
        self._most_bytes = most_bytes
        self._buffer = bytearray()

    def send(self, data: bytes) -> None:
        """Write one frame, waiting for room. Raises OSError when the other end is gone."""
        self.socket.sendall(framed(data))

    def receive(self) -> bytes:
        """Wait for one frame; later ones are kept.

        Raises EOFError when the other end is gone, ValueError for a frame that is too long, and TimeoutError after the
        socket's timeout; what has arrived by then is kept.
        """
        while (frame := next(self.complete(), None)) is None:
            self.fill()
        return frame

    def fill(self) -> None:
        """Wait for bytes. Raises EOFError when the other end is gone."""
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise EOFError
        self._buffer += data

    def complete(self) -> Iterator[bytes]:
        """Remove and yield the frames that have arrived completely. Raises ValueError for one that is too long."""
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > self._most_bytes:
                raise ValueError("a frame that is too long")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            frame = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield frame
