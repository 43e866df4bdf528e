"""Write the events of Anthropic's Messages API, and the message that they describe."""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import pydantic_core

from engine.types import FinishReason
from server.answer.pieces import Usage
from server.answer.writer import Block, BlockWriter, Body, Event, encode_event
from server.apis.messages.errors import error_body
from server.edge.errors import APIError


class MessageWriter(BlockWriter):
    """Write one message: a block for the thinking, for the text, and for each call, in the order of the answer."""

    keep_alive = b'event: ping\ndata: {"type":"ping"}\n\n'

    def __init__(self, id: str, model: str, *, shows_thinking: bool = True, fills_context: bool = False) -> None:
        """`shows_thinking`: blocks of thinking have their text. `fills_context`: the limit is that of the context."""
        super().__init__()
        self._id, self._model = id, model
        self._shows_thinking, self._fills_context = shows_thinking, fills_context
        self._content: list[Body] = []
        self._is_object: bool | None = None  # what the arguments of the open call begin

    def begin_answer(self) -> Iterable[Event]:
        return [_event("message_start", message=self.reply()), _event("ping")]

    def reply(self) -> Body:
        reason, stopped_by = self._stop()
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [*self._content],
            "stop_reason": reason,
            "stop_sequence": stopped_by,
            "usage": {} if self.usage is None else _usage(self.usage),
        }

    def error(self, error: APIError) -> bytes:
        return self.written([("error", error_body(error))])

    def begin(self, block: Block) -> Iterable[Event]:
        self._is_object = None
        shown: Body = {"type": "text", "text": ""}
        if block.kind == "call":
            shown = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex}", "name": block.name, "input": {}}
        elif block.kind == "thought":
            shown = {"type": "thinking", "thinking": "", "signature": ""}
        self._content.append(shown)
        return [self._block_event("content_block_start", content_block={**shown})]

    def extend(self, block: Block, text: str) -> Iterator[Event]:
        if block.kind == "text":
            yield self._delta(type="text_delta", text=text)
        elif block.kind == "thought":
            if self._shows_thinking:
                yield self._delta(type="thinking_delta", thinking=text)
        else:
            if self._is_object is None and text.strip():
                self._is_object = text.lstrip().startswith("{")
            if self._is_object:
                yield self._delta(type="input_json_delta", partial_json=text)

    def close(self, block: Block, *, complete: bool) -> Iterator[Event]:
        shown = self._content[-1]
        if block.kind == "call":
            shown["input"] = value = _input(block.text)
            if value and not self._is_object:
                yield self._delta(type="input_json_delta", partial_json=encode_event(value))
        elif block.kind == "thought":
            # Clients expect a signature, and send it back.
            shown |= {"thinking": block.text if self._shows_thinking else "", "signature": self._id}
            yield self._delta(type="signature_delta", signature=self._id)
        else:
            shown["text"] = block.text
        yield self._block_event("content_block_stop")

    def end_answer(self) -> Iterable[Event]:
        reply = self.reply()
        delta = {"stop_reason": reply["stop_reason"], "stop_sequence": reply["stop_sequence"]}
        return [_event("message_delta", delta=delta, usage=reply["usage"]), _event("message_stop")]

    def _stop(self) -> tuple[str | None, str | None]:
        """Return the reason of the answer's end, and the stop sequence that ended it; None before."""
        finish = self.finish
        if finish is None:
            return None, None
        if finish.called:
            return "tool_use", None
        if finish.reason is FinishReason.LENGTH:
            return "model_context_window_exceeded" if self._fills_context else "max_tokens", None
        return "end_turn" if finish.stop_string is None else "stop_sequence", finish.stop_string

    def _delta(self, **delta: Any) -> Event:
        return self._block_event("content_block_delta", delta=delta)

    def _block_event(self, name: str, /, **fields: Any) -> Event:
        return _event(name, index=len(self._content) - 1, **fields)


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


def _usage(usage: Usage) -> Body:
    """Return the usage. Input tokens are those that were not cached."""
    return {
        "input_tokens": usage.prompt - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.completion,
    }
