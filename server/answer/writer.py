"""Write replies: as the events of a stream, or at once. Each API has its own writer of the same pieces."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.types import TokenLogprobs
from server.answer.pieces import Finish, Piece, Usage
from server.edge.errors import APIError

Body = dict[str, Any]


Event = tuple[str, Body]  # its name and its object, of which values may be encoded already


class Encoded(str):
    """A value's JSON text."""


# ASCII only: some clients treat U+2028 as the end of a line. One encoder, because json.dumps builds one per call.
encode_event = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


# Complete replies, which no client splits into lines, are shorter in UTF-8.
encode_reply = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def encoded(body: Body, encode: Callable[[object], str] = encode_event) -> Encoded:
    """Encode an object whose values may be encoded already."""
    fields = [
        f"{encode(name)}:{value if isinstance(value, Encoded) else encode(value)}" for name, value in body.items()
    ]
    return Encoded(f"{{{','.join(fields)}}}")


def encoded_list(items: Iterable[str]) -> Encoded:
    """Return the JSON text of a list, given those of its items."""
    return Encoded(f"[{','.join(items)}]")


class ReplyWriter(ABC):
    """Write one reply in the format of an API. Use either `frames`, `end` and `error`, or `add` and `encode`."""

    keep_alive = b": keep-alive\n\n"  # what a stream sends while it waits
    done = b"data: [DONE]\n\n"  # bytes after the last frame

    @abstractmethod
    def frames(self, pieces: Iterable[Piece], count: Callable[[], Usage]) -> bytes:
        """Return the events of the next pieces. `count` returns the usage so far."""

    @abstractmethod
    def end(self, usage: Usage) -> bytes:
        """Return the events after the last piece."""

    @abstractmethod
    def error(self, error: APIError) -> bytes:
        """Return the event that ends a stream which has failed."""

    @abstractmethod
    def add(self, pieces: Iterable[Piece]) -> None:
        """Add the next pieces of a complete reply."""

    @abstractmethod
    def encode(self, usage: Usage) -> bytes:
        """Return the complete reply as JSON."""


@dataclass(slots=True)
class Block:
    """A run of text, a thought or a call within an answer."""

    kind: Literal["text", "thought", "call"]
    call: int | None = None  # its number among the calls
    name: str = ""  # name of the called function
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text so far, or the arguments of the call."""
        return "".join(self.pieces)


class BlockWriter(ReplyWriter):
    """Write one answer as named events that begin, continue and end its blocks, in their order.

    Subclasses say what the events are. The complete reply is what they describe.
    """

    done = b""

    def __init__(self) -> None:
        self.block: Block | None = None  # the last one, until it is complete
        self.finish: Finish | None = None  # how the answer has ended
        self.usage: Usage | None = None  # so far
        self.tokens: list[TokenLogprobs] = []  # tokens of the next text and of markers before it

    @abstractmethod
    def begin_answer(self) -> Iterable[Event]: ...

    @abstractmethod
    def begin(self, block: Block) -> Iterable[Event]: ...

    @abstractmethod
    def extend(self, block: Block, text: str) -> Iterable[Event]:
        """Return the events for more text of the open block."""

    @abstractmethod
    def close(self, block: Block, *, complete: bool) -> Iterable[Event]:
        """Return the events that end a block. It is not `complete` if the answer fails within it."""

    @abstractmethod
    def end_answer(self) -> Iterable[Event]:
        """Return the events after the last block."""

    @abstractmethod
    def reply(self) -> Body:
        """Return the complete reply, after the last piece. Its values may be encoded."""

    def events(self, piece: Piece) -> list[Event]:
        """Return the names and objects of a piece's events, beside those that begin an answer."""
        self.finish = piece.finish or self.finish
        self.tokens += piece.logprobs
        delta, block = piece.delta, self.block
        kind: Literal["text", "thought", "call"] = "text" if delta.call is None else "call"
        if delta.reasoning:
            kind = "thought"
        text = delta.reasoning or delta.arguments or delta.content
        if not (text or kind == "call"):
            return []
        events: list[Event] = []
        if block is None or (block.kind, block.call) != (kind, delta.call):
            block = Block(kind, delta.call, delta.name or "")
            events += self.open_block(block)
        block.pieces.append(text)
        if text:
            events += self.extend(block, text)
        return events

    def open_block(self, block: Block) -> list[Event]:
        """Begin a block, after the end of the open one."""
        events = self.close_block(complete=True)
        self.block = block
        return [*events, *self.begin(block)]

    def close_block(self, *, complete: bool) -> list[Event]:
        """End the open block, if there is one."""
        block, self.block = self.block, None
        return [] if block is None else [*self.close(block, complete=complete)]

    def ending(self, usage: Usage) -> list[Event]:
        """Return the events after the last piece."""
        self.usage = usage
        return [*self.close_block(complete=True), *self.end_answer()]

    def frames(self, pieces: Iterable[Piece], count: Callable[[], Usage]) -> bytes:
        events: list[Event] = []
        for piece in pieces:
            if piece.opening:
                self.usage = count()
                events += self.begin_answer()
            events += self.events(piece)
        return self.written(events)

    def end(self, usage: Usage) -> bytes:
        return self.written(self.ending(usage))

    def written(self, events: Iterable[Event]) -> bytes:
        """Return events as a stream has them."""
        frames = []
        for name, event in events:
            data = encoded(event) if Encoded in map(type, event.values()) else encode_event(event)
            frames.append(f"event: {name}\ndata: {data}\n\n")
        return "".join(frames).encode("ascii")

    def add(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            self.events(piece)

    def encode(self, usage: Usage) -> bytes:
        self.ending(usage)
        return encoded(self.reply()).encode("ascii")
