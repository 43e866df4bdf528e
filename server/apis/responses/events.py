"""Write the events of OpenAI's Responses API, whose last one has the whole response."""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

import pydantic_core

from engine.types import FinishReason, TokenLogprobs
from server.answer.pieces import Usage
from server.answer.writer import Block, BlockWriter, Body, Encoded, Event, encode_event, encoded, encoded_list
from server.apis.chunks import metrics_of
from server.apis.logprobs import TokenTexts, chat_logprobs
from server.apis.parts import CUSTOM_INPUT
from server.apis.responses.tools import OfferedTool
from server.edge.errors import APIError

_PARTS = {"message": "output_text", "reasoning": "reasoning_text"}  # type of an item → of its only part
_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}

# Takes the reply and the items of its output, and returns whether they are stored.
OnEnd = Callable[[bytes, Sequence[Body]], bool]


def _id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"


class ResponseWriter(BlockWriter):
    """Write one response: an item for the reasoning, for the text, and for each call, in the order of the answer."""

    def __init__(
        self,
        id: str,
        echoed: Body,
        tools: Mapping[str, OfferedTool],
        texts: TokenTexts,
        on_end: OnEnd | None = None,
    ) -> None:
        """`echoed` are the fields of the response that repeat the request; `tools` by the names of their functions."""
        super().__init__()
        self._id, self._echoed, self._tools, self._texts, self._on_end = id, echoed, tools, texts, on_end
        self._events = 0
        self._output: list[Body] = []
        # The complete items as JSON, with their log-probabilities: these are written several times, and there may be a
        # million.
        self._encoded: list[str] = []
        self._logprobs: list[str] = []  # JSON of the open item's log-probabilities
        self._ended_at: int | None = None  # seconds since the epoch
        self._error: APIError | None = None
        self._whole = Encoded()  # the complete response

    @property
    def _item(self) -> Body:
        return self._output[-1]

    @property
    def _cut(self) -> bool:
        return self.finish is not None and self.finish.reason is FinishReason.LENGTH

    @property
    def _status(self) -> str:
        if self._error is not None:
            return "failed"
        if self._ended_at is None:
            return "in_progress"
        return "incomplete" if self._cut else "completed"

    def begin_answer(self) -> Iterable[Event]:
        response = encoded(self.reply())
        return [self._event(f"response.{name}", response=response) for name in ("created", "in_progress")]

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
            yield self._item_event("response.content_part.added", content_index=0, part=_part(kind, "", []))

    def extend(self, block: Block, text: str) -> Iterator[Event]:
        tokens, self.tokens = self.tokens, []
        if block.kind == "text":
            if len(block.pieces) == 1 and len(self._output) > 1:
                tokens = self._after_markers(tokens, text)
            entries: Any = []
            if tokens:
                entries = Encoded(encode_event(chat_logprobs(tokens, self._texts)))
                self._logprobs.append(entries[1:-1])
            yield self._item_event("response.output_text.delta", content_index=0, delta=text, logprobs=entries)
        elif block.kind == "thought":
            yield self._item_event("response.reasoning_text.delta", content_index=0, delta=text)
        elif self._item["type"] == "function_call":
            yield self._item_event("response.function_call_arguments.delta", delta=text)

    def _after_markers(self, tokens: Sequence[TokenLogprobs], text: str) -> list[TokenLogprobs]:
        """Return the tokens of the text that begins an item. Markers before it, and white space, are no part of it."""
        spelled = [self._texts.bytes(token.token_id) for token in tokens]
        begin = b"".join(spelled).rfind(text.encode())
        return [token for token, end in zip(tokens, accumulate(map(len, spelled)), strict=True) if end > begin]

    def close(self, block: Block, *, complete: bool) -> Iterator[Event]:
        item, text = self._item, block.text
        cut = self._cut
        if block.kind == "call":
            cut = self.finish is not None and self.finish.unfinished_call
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
            logprobs = encoded_list(self._logprobs)
            kind, part = _PARTS[item["type"]], encoded(_part(item["type"], text, logprobs))
            item["content"] = [{"type": kind, "text": text}]
            content = {"content": encoded_list([part])}
            shown = {"logprobs": logprobs} if block.kind == "text" else {}
            yield self._item_event(f"response.{kind}.done", content_index=0, text=text, **shown)
            yield self._item_event("response.content_part.done", content_index=0, part=part)
        self._encoded.append(whole := encoded(item | content))
        yield self._event("response.output_item.done", output_index=len(self._output) - 1, item=whole)

    def end_answer(self) -> Iterator[Event]:
        self._ended_at = int(time.time())
        if not self._output:
            yield from self.open_block(Block("text"))
            yield from self.close_block(complete=True)
        self._whole = encoded(self.reply())
        if self._on_end is not None and not self._on_end(self._whole.encode("ascii"), self._output):
            self._echoed = self._echoed | {"store": False}
            self._whole = encoded(self.reply())
        yield self._event(f"response.{self._status}", response=self._whole)

    def encode(self, usage: Usage) -> bytes:
        self.ending(usage)
        return self._whole.encode("ascii")

    def error(self, error: APIError) -> bytes:
        self._error = error
        self._echoed = self._echoed | {"store": False}
        events = [*self.close_block(complete=False), self._event("response.failed", response=encoded(self.reply()))]
        return self.written(events)

    def reply(self) -> Body:
        status = self._status
        reply: Body = {
            "id": self._id,
            "object": "response",
            "status": status,
            "background": False,
            "completed_at": self._ended_at if status == "completed" else None,
            "error": {"code": "server_error", "message": self._error.message} if self._error else None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "output": encoded_list(self._encoded),
            "previous_response_id": None,
            "service_tier": "default",
            "store": False,
            "truncation": "disabled",
            "usage": None if self._ended_at is None or self.usage is None else _usage(self.usage),
            **self._echoed,
        }
        if self._ended_at is not None and self.finish is not None:
            reply["metrics"] = metrics_of(self.finish)
        return reply

    def _item_event(self, name: str, /, **fields: Any) -> Event:
        return self._event(name, item_id=self._item["id"], output_index=len(self._output) - 1, **fields)

    def _event(self, type: str, /, **fields: Any) -> Event:
        self._events += 1
        return type, {"type": type, "sequence_number": self._events - 1, **fields}


def _input(arguments: str) -> str:
    """Return the text for a custom tool, of which the end may be missing. Other arguments are that text themselves."""
    with suppress(ValueError):
        found = pydantic_core.from_json(arguments, allow_partial="trailing-strings")
        if isinstance(found, dict) and isinstance(text := found.get(CUSTOM_INPUT, "" if not found else None), str):
            return text
    return arguments


def _part(kind: str, text: str, logprobs: Encoded | list[Body]) -> Body:
    """Return the only part of an item of text."""
    part: Body = {"type": _PARTS[kind], "text": text}
    return part if kind == "reasoning" else part | {"annotations": [], "logprobs": logprobs}


def _usage(usage: Usage) -> Body:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    }
