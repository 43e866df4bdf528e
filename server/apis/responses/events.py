"""Write the events of OpenAI's Responses API, whose last one has the whole response."""

import time
import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, cast

import pydantic_core

from server.answer.logprobs import Json
from server.answer.pieces import Chunk, Piece
from server.answer.writer import Block, BlockWriter, Body, Encoded, Event, encode_event, encoded
from server.apis.parts import CUSTOM_INPUT
from server.apis.responses.tools import OfferedTool
from server.edge.errors import APIError

_PARTS = {"message": "output_text", "reasoning": "reasoning_text"}  # type of an item → of its only part
_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
_NO_LOGPROBS = Encoded("[]")

# Takes the reply and the items of its output, and returns whether they are stored.
OnEnd = Callable[[bytes, Sequence[Body]], bool]


def _id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"


class ResponseWriter(BlockWriter):
    """Write one response: an item for the reasoning, for the text, and for each call, in the order of the answer."""

    def __init__(self, id: str, echoed: Body, tools: Mapping[str, OfferedTool], on_end: OnEnd | None = None) -> None:
        """`echoed` are the fields of the response that repeat the request; `tools` by the names of their functions."""
        super().__init__()
        self._id, self._echoed, self._tools, self._on_end = id, echoed, tools, on_end
        self._number = -1  # number of the last event
        self._output: list[Body] = []
        # The complete items as JSON, with their log-probabilities: these are written several times, and there may be a
        # million.
        self._encoded: list[str] = []
        self._logprobs: list[str] = []  # those of the open item, as JSON
        self._held: list[Json] = []  # log-probabilities of tokens whose text has not come yet
        self._metrics: Json | None = None
        self._ended_at: int | None = None  # seconds since the epoch
        self._error: APIError | None = None

    @property
    def _item(self) -> Body:
        return self._output[-1]

    @property
    def _cut(self) -> bool:
        return self.end is not None and self.end.finish_reason == "length"

    def begin_answer(self) -> Iterable[Event]:
        return [self._event(f"response.{name}", response=self._reply()) for name in ("created", "in_progress")]

    def begin(self, block: Block) -> Iterator[Event]:
        self._logprobs = []
        tool = self._tools.get(block.name)
        kinds = {"text": "message", "thought": "reasoning", "call": tool.kind if tool else "function_call"}
        kind = kinds[block.kind]
        item: Body = {"id": _id(_PREFIXES[kind]), "type": kind, "status": "in_progress"}
        if block.kind == "call":
            item |= {"call_id": _id("call"), "name": block.name}
            if tool is not None and tool.namespace is not None:
                item |= {"name": tool.name, "namespace": tool.namespace}
            item["arguments" if kind == "function_call" else "input"] = ""
        elif block.kind == "thought":
            item |= {"summary": [], "content": [], "encrypted_content": None}
        else:
            item |= {"role": "assistant", "content": []}
        self._output.append(item)
        yield self._event("response.output_item.added", output_index=len(self._output) - 1, item={**item})
        if block.kind != "call":
            part = encoded(_part(kind, "", _NO_LOGPROBS))
            yield self._item_event("response.content_part.added", content_index=0, part=part)

    def skip(self, piece: Piece) -> Iterable[Event]:
        self._hold(piece)
        return ()

    def extend(self, block: Block, text: str, piece: Piece) -> Iterator[Event]:
        self._hold(piece)
        # No marker comes before the text that begins an answer.
        follows = len(block.pieces) > 1 or (len(self._output) == 1 and block.kind == "text")
        spoken, self._held = _of_text(self._held, text, follows=follows)
        if block.kind == "text":
            if spoken:
                self._logprobs.append(encode_event([*spoken])[1:-1])
            name = "response.output_text.delta"
            yield self._item_event(name, content_index=0, delta=text, logprobs=[*spoken])
        elif block.kind == "thought":
            yield self._item_event("response.reasoning_text.delta", content_index=0, delta=text)
        elif self._item["type"] == "function_call":
            yield self._item_event("response.function_call_arguments.delta", delta=text)

    def close(self, block: Block, *, complete: bool) -> Iterator[Event]:
        item, text = self._item, block.text
        cut = self.end is not None and self.end.unfinished_call if block.kind == "call" else self._cut
        item["status"] = "completed" if complete and not cut else "incomplete"
        content: Body = {}
        if item["type"] == "function_call":
            item["arguments"] = text
            name = "response.function_call_arguments.done"
            yield self._item_event(name, name=item["name"], arguments=text)
        elif item["type"] == "custom_tool_call":
            item["input"] = text = _input(text)
            yield self._item_event("response.custom_tool_call_input.delta", delta=text)
            yield self._item_event("response.custom_tool_call_input.done", input=text)
        else:
            logprobs = Encoded(f"[{','.join(self._logprobs)}]")
            part = _part(item["type"], text, logprobs)
            item["content"] = [{"type": part["type"], "text": text}]
            content = {"content": Encoded(f"[{encoded(part)}]")}
            shown = {"logprobs": logprobs} if block.kind == "text" else {}
            yield self._item_event(f"response.{part['type']}.done", content_index=0, text=text, **shown)
            yield self._item_event("response.content_part.done", content_index=0, part=encoded(part))
        self._encoded.append(whole := encoded(item | content))
        yield self._event("response.output_item.done", output_index=len(self._output) - 1, item=whole)

    def end_answer(self, chunk: Chunk) -> Iterator[Event]:
        self._metrics, self._ended_at = chunk.metrics, int(time.time())
        if not self._output:
            yield from self.open_block(Block("text"))
            yield from self.close_block(complete=True)
        if self._on_end is not None and not self._on_end(self.encode(), self._output):
            self._echoed = self._echoed | {"store": False}
        yield self._event("response.incomplete" if self._cut else "response.completed", response=self._reply())

    def error(self, error: APIError) -> bytes:
        self._error = error
        self._echoed = self._echoed | {"store": False}
        events = [*self.close_block(complete=False), self._event("response.failed", response=self._reply())]
        return self.written(events)

    def reply(self) -> Body:
        status = "in_progress" if self._ended_at is None else "incomplete" if self._cut else "completed"
        if self._error is not None:
            status = "failed"
        reply: Body = {
            "id": self._id,
            "object": "response",
            "status": status,
            "background": False,
            "completed_at": self._ended_at if status == "completed" else None,
            "error": {"code": "server_error", "message": self._error.message} if self._error else None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "output": Encoded(f"[{','.join(self._encoded)}]"),
            "previous_response_id": None,
            "service_tier": "default",
            "store": False,
            "truncation": "disabled",
            "usage": None if self._ended_at is None or self.usage is None else _usage(self.usage),
            **self._echoed,
        }
        if self._metrics:
            reply["metrics"] = self._metrics
        return reply

    def _reply(self) -> Encoded:
        return encoded(self.reply())

    def _hold(self, piece: Piece) -> None:
        self._held += cast(list[Json], (piece.logprobs or {}).get("content") or [])

    def _item_event(self, name: str, /, **fields: Any) -> Event:
        return self._event(name, item_id=self._item["id"], output_index=len(self._output) - 1, **fields)

    def _event(self, type: str, /, **fields: Any) -> Event:
        self._number += 1
        event = {"type": type, "sequence_number": self._number, **fields}
        return type, encoded(event) if any(isinstance(value, Encoded) for value in fields.values()) else event


def _of_text(entries: Sequence[Json], text: str, *, follows: bool) -> tuple[Sequence[Json], list[Json]]:
    """Return the log-probabilities of the tokens that make a text, and those of the tokens after it.

    Unless the text `follows` the one before at once, tokens before it are markers, which belong to no item.
    """
    pieces = [bytes(cast(list[int], entry["bytes"])) for entry in entries]
    whole = b"".join(pieces)
    start = 0 if follows and whole.startswith(text.encode()) else whole.rfind(text.encode())
    if start < 0:
        return entries, []
    ends = [*accumulate(map(len, pieces))]
    first, last = bisect_right(ends, start), bisect_left(ends, start + len(text.encode()))
    return entries[first : last + 1], [*entries[last + 1 :]]


def _input(arguments: str) -> str:
    """Return the text for a custom tool, of which the end may be missing. Other arguments are that text themselves."""
    with suppress(ValueError):
        found = pydantic_core.from_json(arguments, allow_partial="trailing-strings")
        if isinstance(found, dict) and isinstance(text := found.get(CUSTOM_INPUT, "" if not found else None), str):
            return text
    return arguments


def _part(kind: str, text: str, logprobs: Encoded) -> Body:
    """Return the only part of an item of text."""
    part: Body = {"type": _PARTS[kind], "text": text}
    return part if kind == "reasoning" else part | {"annotations": [], "logprobs": logprobs}


def _usage(usage: Body) -> Body:
    """Convert the usage of chat completions."""
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {
            "cached_tokens": usage["prompt_tokens_details"]["cached_tokens"],
            "cache_write_tokens": 0,
        },
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": usage["completion_tokens_details"]["reasoning_tokens"]},
        "total_tokens": usage["total_tokens"],
    }
