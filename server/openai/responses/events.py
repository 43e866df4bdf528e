"""Write the events of OpenAI's Responses API, whose last one has the whole response."""

import time
import uuid
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, NamedTuple, cast

import pydantic_core

from server.http.errors import APIError
from server.openai.replies.build import Chunk
from server.openai.replies.endpoints import Json, Piece
from server.openai.replies.writer import encode_event
from server.openai.requests.adapted import Body, EventWriter
from server.openai.requests.messages import CUSTOM_INPUT

Event = tuple[str, Body]

_PARTS = {"message": "output_text", "reasoning": "reasoning_text"}  # type of an item → of its only part
_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}


class OfferedTool(NamedTuple):
    """A tool of a request, which the model knows as a function."""

    kind: str  # type of the items that call it
    name: str
    namespace: str | None


def _id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"


class ResponseWriter(EventWriter):
    """Write one response: an item for the reasoning, for the text, and for each call, in the order of the answer."""

    def __init__(self, echoed: Json, tools: Mapping[str, OfferedTool]) -> None:
        """`echoed` are the fields of the response that repeat the request; `tools` by the names of their functions."""
        self.id = _id("resp")
        self.echoed = echoed
        # Takes the reply and its items, and returns whether they are stored.
        self.on_end: Callable[[bytes, Sequence[Body]], bool] | None = None
        self._tools = tools
        self._number = -1  # of the last event
        self._output: list[Body] = []
        self._open: Body | None = None  # the last item, until it is complete
        self._call: int | None = None  # number of the open call
        self._text: list[str] = []  # pieces of the open item
        # The log-probabilities of each item, as JSON: they are written several times, and there may be a million.
        self._logprobs: defaultdict[str, list[str]] = defaultdict(list)
        self._held: list[Json] = []  # log-probabilities of tokens whose text has not come yet
        self._finish_reason: str | None = None
        self._unfinished_call = False
        self._usage: Json | None = None
        self._metrics: Json | None = None
        self._ended_at: int | None = None  # seconds since the epoch
        self._error: APIError | None = None

    def events(self, chunk: Chunk) -> Iterator[Event]:
        piece = chunk.piece
        if piece is None:
            self._usage, self._metrics, self._ended_at = chunk.usage, chunk.metrics, int(time.time())
            yield from self._end()
        elif piece.opening:
            yield self._event("response.created", response=self.reply())
            yield self._event("response.in_progress", response=self.reply())
        elif piece.finish_reason is not None:
            self._finish_reason, self._unfinished_call = piece.finish_reason, piece.unfinished_call
        else:
            yield from self._continue(piece)

    def reply(self) -> Body:
        cut = self._finish_reason == "length"
        ended = self._usage is not None
        status = "failed" if self._error else "in_progress" if not ended else "incomplete" if cut else "completed"
        return {
            "id": self.id,
            "object": "response",
            "status": status,
            "background": False,
            "completed_at": self._ended_at if status == "completed" else None,
            "error": {"code": "server_error", "message": self._error.message} if self._error else None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "output": [*self._output],
            "previous_response_id": None,
            "service_tier": "default",
            "store": False,
            "truncation": "disabled",
            "usage": None if self._usage is None else _usage(self._usage),
            **self.echoed,
            **((self._metrics and {"metrics": self._metrics}) or {}),
        }

    def error(self, error: APIError) -> bytes:
        self._error = error
        self.echoed = self.echoed | {"store": False}
        events = [*self._close("incomplete"), self._event("response.failed", response=self.reply())]
        return self.written(events)

    def dump(self, body: Body) -> str:
        text = super().dump(body)
        for item, entries in self._logprobs.items():
            if (place := f'"logprobs":["{item}"]') in text:  # in few events
                text = text.replace(place, f'"logprobs":[{",".join(entries)}]')
        return text

    def _continue(self, piece: Piece) -> Iterator[Event]:
        delta = piece.delta
        kind = "reasoning" if delta.reasoning else "message" if delta.call is None else "function_call"
        if self._open is not None and self._call is not None and self._call == delta.call:
            kind = self._open["type"]
        elif delta.name is not None and delta.name in self._tools:
            kind = self._tools[delta.name].kind
        self._held += cast(list[Json], (piece.logprobs or {}).get("content") or [])
        if not (delta.content or delta.reasoning or delta.call is not None):
            return
        first = not self._output
        begins = self._open is None or self._open["type"] != kind or self._call != delta.call
        if begins:
            yield from self._close("completed")
            yield from self._begin(kind, delta.call, delta.name)
        self._text.append(text := delta.reasoning or delta.arguments or delta.content)
        if not text:
            return
        follows = not begins or (first and kind == "message")  # no marker comes before it
        spoken, self._held = _of_text(self._held, text, follows=follows)
        if kind == "message":
            logprobs = [*spoken]
            if logprobs:
                self._logprobs[self._output[-1]["id"]].append(encode_event(logprobs)[1:-1])
            yield self._item_event("response.output_text.delta", content_index=0, delta=text, logprobs=logprobs)
        elif kind == "reasoning":
            yield self._item_event("response.reasoning_text.delta", content_index=0, delta=text)
        elif kind == "function_call":
            yield self._item_event("response.function_call_arguments.delta", delta=text)

    def _begin(self, kind: str, call: int | None, name: str | None) -> Iterator[Event]:
        item: Body = {"id": _id(_PREFIXES[kind]), "type": kind, "status": "in_progress"}
        if kind == "function_call":
            item |= {"call_id": _id("call"), **self._function(name or ""), "arguments": ""}
        elif kind == "custom_tool_call":
            item |= {"call_id": _id("call"), **self._function(name or ""), "input": ""}
        elif kind == "reasoning":
            item |= {"summary": [], "content": [], "encrypted_content": None}
        else:
            item |= {"role": "assistant", "content": []}
        self._open, self._call, self._text = item, call, []
        self._output.append(item)
        yield self._event("response.output_item.added", output_index=len(self._output) - 1, item={**item})
        if kind in _PARTS:
            yield self._item_event("response.content_part.added", content_index=0, part=_part(kind, ""))

    def _function(self, name: str) -> Body:
        tool = self._tools.get(name)
        if tool is None or tool.namespace is None:
            return {"name": name}
        return {"name": tool.name, "namespace": tool.namespace}

    def _close(self, status: str) -> Iterator[Event]:
        """End the open item, if there is one."""
        item, text = self._open, "".join(self._text)
        if item is None:
            return
        kind = item["type"]
        if kind == "function_call":
            item["arguments"] = text
            yield self._item_event("response.function_call_arguments.done", name=item["name"], arguments=text)
        elif kind == "custom_tool_call":
            item["input"] = text = _input(text)
            yield self._item_event("response.custom_tool_call_input.delta", delta=text)
            yield self._item_event("response.custom_tool_call_input.done", input=text)
        else:
            part = _part(kind, text, [item["id"]] if item["id"] in self._logprobs else [])
            item["content"] = [part]
            logprobs = {"logprobs": part["logprobs"]} if kind == "message" else {}
            yield self._item_event(f"response.{_PARTS[kind]}.done", content_index=0, text=text, **logprobs)
            yield self._item_event("response.content_part.done", content_index=0, part=part)
        item["status"] = status
        yield self._event("response.output_item.done", output_index=len(self._output) - 1, item=item)
        self._open, self._call = None, None

    def _end(self) -> Iterator[Event]:
        if not self._output:
            yield from self._begin("message", None, None)
        status = "incomplete" if self._finish_reason == "length" else "completed"
        if self._call is not None:
            yield from self._close("incomplete" if self._unfinished_call else "completed")
        yield from self._close(status)
        reply = self.reply()
        if self.on_end is not None and not self.on_end(self.dump(reply).encode("ascii"), self._output):
            reply["store"] = self.echoed["store"] = False
        yield self._event(f"response.{status}", response=reply)

    def _item_event(self, name: str, /, **fields: Any) -> Event:
        assert self._open is not None
        return self._event(name, item_id=self._open["id"], output_index=len(self._output) - 1, **fields)

    def _event(self, name: str, /, **fields: Any) -> Event:
        self._number += 1
        return name, {"type": name, "sequence_number": self._number, **fields}


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


def _part(kind: str, text: str, logprobs: Sequence[str] = ()) -> Body:
    """Return the part of an item. `logprobs`: the item's id, in whose place `ResponseWriter.dump` writes them."""
    part: Body = {"type": _PARTS[kind], "text": text}
    return part if kind == "reasoning" else part | {"annotations": [], "logprobs": [*logprobs]}


def _usage(usage: Json) -> Body:
    """Convert the usage of chat completions."""
    prompt: Any = usage["prompt_tokens_details"]
    completion: Any = usage["completion_tokens_details"]
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": prompt["cached_tokens"], "cache_write_tokens": 0},
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": completion["reasoning_tokens"]},
        "total_tokens": usage["total_tokens"],
    }
