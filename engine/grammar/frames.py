"""Frames of bytes on a socket between the engine and the processes that follow grammars.

Not pickles: what reads a stranger's grammar must not be able to run code in the engine.
"""

from __future__ import annotations

import socket
import struct

_LENGTH = struct.Struct("<I")


def send(end: socket.socket, data: bytes) -> None:
    """Write one frame. Raises OSError when the other end is gone."""
    end.sendall(_LENGTH.pack(len(data)) + data)


def receive(end: socket.socket) -> bytes:
    """Wait for one frame. Raises EOFError when the other end is gone, TimeoutError before the first byte."""
    (length,) = _LENGTH.unpack(_exactly(end, _LENGTH.size))
    return bytes(_exactly(end, length))


def _exactly(end: socket.socket, count: int) -> bytearray:
    data = bytearray(end.recv(count))
    while len(data) < count:
        piece = end.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data
