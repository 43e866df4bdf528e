"""What the engine and the processes that follow grammars say to each other: frames of bytes on a socket.

Only the vocabulary goes there as a pickle. Nothing comes back as one: what reads a stranger's grammar must not be able
to run code in the engine.
"""

from __future__ import annotations

import socket
import struct
from enum import IntEnum, IntFlag
from typing import NamedTuple

_LENGTH = struct.Struct("<I")
_MOST_BYTES = 1 << 20  # of a frame to the engine: a mask of eight million tokens
_READ_BYTES = 1 << 16
WORD = "I"  # array type of an operation's frame: operation, number of the matcher, arguments


class Vocabulary(NamedTuple):
    """A model's tokens: their bytes, the ids of special tokens and of those that end an answer, and a tokenizer.json.

    Where a grammar prescribes a text, masks allow only the way in which the tokenizer splits it.
    """

    tokens: list[bytes]
    special_ids: list[int]
    end_ids: list[int]
    tokenizer: str


class Limits(NamedTuple):
    """What a grammar's child may use: CPU seconds to compile it, and bytes of memory beside the vocabulary."""

    build_seconds: float
    memory: int


class Operation(IntEnum):
    """What the engine asks of a child. All but BEGIN, FORGET and KEEP are answered."""

    BEGIN = 0  # a new matcher
    FORGET = 1  # a matcher
    KEEP = 2  # tokens that the child has matched ahead are emitted
    ADVANCE = 3  # consume emitted tokens
    TAKE = 4  # a token, after drafted ones
    MASK = 5  # after drafted tokens


class Answer(IntFlag):
    """The first byte of a child's answer; that to MASK continues with the mask."""

    ALLOWED = 1
    TAKEN = 2  # the token is matched ahead
    STOPPED = 4  # no token may follow
    FAILED = 8  # the grammar cannot be followed any further


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

    def __init__(self, end: socket.socket) -> None:
        """`end` has a timeout."""
        self._end = end
        self._buffer = bytearray()

    def read(self) -> bytes | None:
        """Return the next frame; None if it is not complete within the socket's timeout.

        Raises EOFError when the other end is gone, ValueError for a frame that is too long.
        """
        while True:
            if len(self._buffer) >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(self._buffer)
                if length > _MOST_BYTES:
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
