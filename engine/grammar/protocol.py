"""What the engine and the processes that follow grammars say to each other: frames of bytes on a socket.

Only the vocabulary goes there as a pickle. Nothing comes back as one: what reads a stranger's grammar must not be able
to run code in the engine.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import NamedTuple

MOST_BYTES = 1 << 20  # bytes of a frame to the engine, at most: a mask of eight million tokens
WORD = "I"  # array type of an operation's frame: operation, number of the matcher, arguments


class Vocabulary(NamedTuple):
    """A model's tokens: their bytes, the ids of special tokens and of those that end an answer, and a tokenizer.json.

    Where a grammar prescribes a text, masks allow only the way in which the tokenizer splits it.
    """

    tokens: list[bytes]
    special_ids: list[int]
    end_ids: list[int]
    tokenizer: str


class Operation(IntEnum):
    """What the engine asks of a child. All but BEGIN, FORGET and KEEP are answered."""

    BEGIN = 0  # a new matcher
    FORGET = 1  # a matcher
    KEEP = 2  # tokens that the child has matched ahead are emitted
    ADVANCE = 3  # consume emitted tokens
    TAKE = 4  # a token, after drafted ones
    MASK = 5  # the tokens that may follow drafted ones


class Answer(IntFlag):
    """The first byte of a child's answer; that to MASK continues with the mask."""

    ALLOWED = 1
    TAKEN = 2  # the token is matched ahead
    STOPPED = 4  # no token may follow
    FAILED = 8  # the grammar cannot be followed any further
