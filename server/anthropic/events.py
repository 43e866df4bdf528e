"""Write the events of Anthropic's Messages API, and the message that they describe."""

import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pydantic_core

from server.http.errors import APIError, anthropic_body
from server.openai.replies.build import Chunk
from server.openai.replies.endpoints import Json, Piece
from server.openai.replies.writer import encode_event
from server.openai.requests.adapted import Body, EventWriter, event_frame

Event = tuple[str, Body]

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
# Type of a block → of its deltas, and the field with the text of both.
_DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}


class MessageWriter(EventWriter):
    """Write one message: a block for the thinking, for the text, and for each call, in the order of the answer."""

    keep_alive = event_frame("ping", {"type": "ping"})

    def __init__(self, model: str, *, shows_thinking: bool = True, fills_context: bool = False) -> None:
        """`shows_thinking`: blocks of thinking have their text. `fills_context`: the limit is that of the context."""
        self.id = f"msg_{uuid.uuid4().hex}"
        self._model, self._shows_thinking, self._fills_context = model, shows_thinking, fills_context
        self._content: list[Body] = []
        self._open: Body | None = None  # the last block, until it is complete
        self._call: int | None = None  # number of the open call
        self._text: list[str] = []  # pieces of the open block
        self._is_object: bool | None = None  # what the arguments of the open call begin
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None
        self._usage: Json = {}

    def events(self, chunk: Chunk) -> Iterator[Event]:
        piece = chunk.piece
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)
        if piece is None:
            yield from self._end()
        elif piece.opening:
            yield _event("message_start", message=self.reply())
            yield _event("ping")
        elif piece.finish_reason is not None:
            stopped = piece.finish_reason == "stop" and piece.stop_string is not None
            self._stop_reason = "stop_sequence" if stopped else _STOP_REASONS.get(piece.finish_reason, "end_turn")
            if piece.finish_reason == "length" and self._fills_context:
                self._stop_reason = "model_context_window_exceeded"
            self._stop_sequence = piece.stop_string if stopped else None
        else:
            yield from self._continue(piece)

    def reply(self) -> Body:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [*self._content],
            "stop_reason": self._stop_reason,
            "stop_sequence": self._stop_sequence,
            "usage": self._usage,
        }

    def error(self, error: APIError) -> bytes:
        return event_frame("error", anthropic_body(error))

    def _continue(self, piece: Piece) -> Iterator[Event]:
        delta = piece.delta
        kind = "thinking" if delta.reasoning else "text" if delta.call is None else "tool_use"
        text = delta.reasoning or delta.arguments or delta.content
        if not text and delta.call is None:
            return
        if self._open is None or self._open["type"] != kind or self._call != delta.call:
            yield from self._close()
            yield self._begin(kind, delta.call, delta.name)
        if kind == "thinking" and not self._shows_thinking:
            return
        self._text.append(text)
        if kind == "tool_use":
            if self._is_object is None and text.strip():
                self._is_object = text.lstrip().startswith("{")
            text = text if self._is_object else ""
        if text:
            name, field = _DELTAS[kind]
            yield self._delta({"type": name, field: text})

    def _begin(self, kind: str, call: int | None, name: str | None) -> Event:
        block: Body = {"type": kind}
        if kind == "tool_use":
            block |= {"id": f"toolu_{uuid.uuid4().hex}", "name": name or "", "input": {}}
        else:
            block |= {"text": ""} if kind == "text" else {"thinking": "", "signature": ""}
        self._open, self._call, self._text, self._is_object = block, call, [], None
        self._content.append(block)
        return _event("content_block_start", index=len(self._content) - 1, content_block={**block})

    def _close(self) -> Iterator[Event]:
        """End the open block, if there is one."""
        block, text = self._open, "".join(self._text)
        if block is None:
            return
        if block["type"] == "tool_use":
            block["input"] = value = _input(text)
            if value and not self._is_object:
                yield self._delta({"type": "input_json_delta", "partial_json": self.dump(value)})
        elif block["type"] == "thinking":
            block |= {"thinking": text, "signature": self.id}  # clients expect one, and send it back
            yield self._delta({"type": "signature_delta", "signature": self.id})
        else:
            block["text"] = text
        yield _event("content_block_stop", index=len(self._content) - 1)
        self._open, self._call = None, None

    def _end(self) -> Iterator[Event]:
        yield from self._close()
        delta = {"stop_reason": self._stop_reason, "stop_sequence": self._stop_sequence}
        yield _event("message_delta", delta=delta, usage=self._usage)
        yield _event("message_stop")

    def _delta(self, delta: Body) -> Event:
        return _event("content_block_delta", index=len(self._content) - 1, delta=delta)


def _event(name: str, /, **fields: Any) -> Event:
    return name, {"type": name, **fields}


def _input(text: str) -> Body:
    """Return the arguments of a call, of which the end may be missing.

    Other arguments than objects get the key of Anthropic's example for invalid JSON.
    """
    with suppress(ValueError):
        value = pydantic_core.from_json(text.strip() or "{}", allow_inf_nan=False, allow_partial="trailing-strings")
        if isinstance(value, dict):
            encode_event(value)  # raises ValueError for numbers that JSON cannot write, as 1e999 becomes
            return value
    return {"INVALID_JSON": text}


def _usage(usage: Json) -> Json:
    """Convert the usage of chat completions. Input tokens are those that were not cached."""
    prompt: Any = usage["prompt_tokens_details"]
    total: Any = usage["prompt_tokens"]
    return {
        "input_tokens": total - prompt["cached_tokens"],
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": prompt["cached_tokens"],
        "output_tokens": usage["completion_tokens"],
    }
