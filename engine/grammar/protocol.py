"""What the engine and the processes that follow grammars say to each other: frames of bytes on a socket.

Only the vocabulary goes there as a pickle. Nothing comes back as one: what reads a stranger's grammar must not be able
to run code in the engine.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

MOST_BYTES = 1 << 20  # longest frame to the engine: the mask of eight million tokens
WORD = "I"  # type code of frames to a process: an operation, the number of a matcher, arguments
_ANSWER = struct.Struct("<I?")


class Vocabulary(NamedTuple):
    """A model's tokens: their bytes, the ids of special tokens and of those that end an answer, and a tokenizer.json.

    Where a grammar prescribes a text, masks allow only the way in which the tokenizer splits it.
    """

    tokens: list[bytes]
    special_ids: list[int]
    end_ids: list[int]
    tokenizer: str


class Operation(IntEnum):
    """What the engine asks of a matcher. The last two are answered.

    Their arguments are the number of the answer's tokens that are emitted for good, the number of consumed tokens that
    count further on, and the tokens to consume after these.
    """

    BEGIN = 0
    FORGET = 1
    MATCH = 2  # consume tokens
    MASK = 3  # consume tokens, and say which may follow


class Answer(NamedTuple):
    """The state of a matcher after an operation."""

    consumed: int  # tokens of the answer so far; fewer than asked for if the next one is not allowed
    stopped: bool  # whether no token may follow these
    mask: bytes = b""  # one bit per token: whether it may follow; empty unless asked, and all tokens are consumed

    def to_bytes(self) -> bytes:
        return _ANSWER.pack(self.consumed, self.stopped) + self.mask

    @classmethod
    def from_bytes(cls, frame: bytes) -> Answer:
        """Raises struct.error for a frame that is too short."""
        consumed, stopped = _ANSWER.unpack_from(frame)
        return cls(consumed, stopped, frame[_ANSWER.size :])
