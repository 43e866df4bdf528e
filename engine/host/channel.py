"""Pickled objects over a socket between the server's process and the engine's."""

from __future__ import annotations

import pickle
import socket
import struct
from typing import Any

_HEADER = struct.Struct("<Q")  # bytes of the pickle that follows
_READ_BYTES = 1 << 18


def packed(item: Any) -> bytes:
    """Return an object as the bytes of one channel message."""
    data = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
    return _HEADER.pack(len(data)) + data


class Channel:
    """One end of a socket pair; both ends belong to this program."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._buffer = bytearray()
        self._received: list[Any] = []  # complete objects that `receive_one` left for `receive`

    def send(self, item: Any) -> None:
        """Write one object, waiting for room. Raises OSError when the other end is gone."""
        self.socket.sendall(packed(item))

    def receive(self) -> list[Any]:
        """Wait for bytes and return the objects that are complete. Raises EOFError when the other end is gone."""
        if self._received:
            items, self._received = self._received, []
            return items
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise EOFError
        self._buffer += data
        items, at = [], 0
        while len(self._buffer) - at >= _HEADER.size:
            (size,) = _HEADER.unpack_from(self._buffer, at)
            if len(self._buffer) - at - _HEADER.size < size:
                break
            at += _HEADER.size
            items.append(pickle.loads(memoryview(self._buffer)[at : at + size]))
            at += size
        del self._buffer[:at]
        return items

    def receive_one(self) -> Any:
        """Wait for one object; later objects stay for `receive`."""
        while not (items := self.receive()):
            pass
        self._received = items[1:]
        return items[0]
