"""Requests of the Responses API that refer to stored responses: they become requests with all items."""

import json
import re
from collections.abc import Sequence
from copy import copy
from typing import Any

from server.http.errors import APIError, invalid
from server.openai.chat import ChatTranslator
from server.openai.requests.adapted import Body, string
from server.openai.requests.translate import ParsedRequest
from server.openai.responses.events import ResponseWriter
from server.openai.responses.store import ResponseStore, StoredResponse
from server.openai.responses.translate import ResponsesTranslator

_PREVIOUS, _REFERENCE = "previous_response_id", "item_reference"
_DESCRIBED: dict[str, Body] = {
    **ResponsesTranslator.described,
    _PREVIOUS: {"type": "string"},
    "store": {"type": "boolean", "default": True},
}
_REFUSED = {name: values for name, values in ResponsesTranslator.refused.items() if name != _PREVIOUS}
_ITEM = re.compile(r"^input\[(\d+)\]")


class StoringTranslator(ResponsesTranslator):
    """Convert requests that may refer to the responses of a store, and store theirs unless they say `store: false`."""

    known = (*ResponsesTranslator.known, _PREVIOUS)
    described = _DESCRIBED
    refused = _REFUSED

    def __init__(self, chat: ChatTranslator, store: ResponseStore, max_bytes: int) -> None:
        """`max_bytes`: most bytes of a request with all that it refers to."""
        super().__init__(chat)
        self._store, self._max_bytes = store, max_bytes
        self._key = ""
        self._earlier = 0  # items of the request that come from the response that it continues

    def for_request(self, key: str) -> "StoringTranslator":
        one = copy(self)
        one._key = key
        return one

    def size(self, raw: bytes) -> int:
        refers = any(name in raw for name in (b'"previous_response_id"', b'"item_reference"', b'"id"'))
        return min(len(raw) + self._store.size, self._max_bytes) if refers else len(raw)

    def read(self, raw: bytes) -> Body:
        """Return a body with all items of its conversation. Raises APIError."""
        body = super().read(raw)
        if not isinstance(body.get("store", True), bool):
            raise invalid("'store' must be a boolean.", "store")
        items = body.get("input", [] if _PREVIOUS in body else None)
        if isinstance(items, str):
            items = [{"type": "message", "role": "user", "content": items}]
        if not isinstance(items, list) or not (items or _PREVIOUS in body):
            return body  # which is refused
        earlier = self._previous_items(body)
        referred = self._referred(items)
        if len(raw) + len(earlier) + sum(map(len, referred.values())) > self._max_bytes:
            raise invalid(f"The request has more than {self._max_bytes} bytes with all that it refers to.", "input")
        previous: list[Body] = json.loads(b"[" + earlier + b"]")
        self._earlier = len(previous)
        own = [json.loads(referred[item["id"]]) if _refers(item) else item for item in items]
        return {**body, "input": previous + own}

    def writer(self, body: Body, parsed: ParsedRequest) -> ResponseWriter:
        writer = super().writer(body, parsed)
        previous, stored = body.get(_PREVIOUS), body.get("store", True)
        writer.echoed |= {_PREVIOUS: previous, "store": stored}
        if stored:
            own = _encoded(body["input"][self._earlier :])[1:-1]
            writer.on_end = lambda reply, output: self._store.add(
                StoredResponse(
                    writer.id,
                    self._key,
                    previous,
                    own,
                    {item["id"]: _encoded(_without_logprobs(item)) for item in output},
                    reply,
                )
            )
        return writer

    def _own_param(self, param: str, body: Body) -> str:
        return _ITEM.sub(self._own_item, super()._own_param(param, body))

    def _own_item(self, found: re.Match[str]) -> str:
        """Return the place of an item in the client's list."""
        index = int(found[1]) - self._earlier
        return f"input[{index}]" if index >= 0 else _PREVIOUS

    def _previous_items(self, body: Body) -> bytes:
        if _PREVIOUS not in body:
            return b""
        id = string(body, _PREVIOUS, "")
        if (items := self._store.conversation(id, self._key)) is None:
            message = f"Previous response with id {id!r:.80} not found, or one that it continues."
            raise invalid(message, _PREVIOUS, "previous_response_not_found")
        return items

    def _referred(self, items: Sequence[Any]) -> dict[str, bytes]:
        """Return the items that a list refers to, as JSON by their ids."""
        found: dict[str, bytes] = {}
        for index, item in enumerate(items):
            if not _refers(item):
                continue
            if (id := string(item, "id", f"input[{index}]")) in found:
                raise invalid(f"'input' refers to {id!r:.80} twice.", f"input[{index}].id")
            if (stored := self._store.item(id, self._key)) is None:
                reason = "it was not stored, or it has been forgotten since; send the item itself"
                raise APIError(404, f"Item with id {id!r:.80} not found: {reason}.", param="input")
            found[id] = stored
        return found


def _refers(item: object) -> bool:
    """Whether an item of the input is a reference, whose type may be missing."""
    if not isinstance(item, dict):
        return False
    bare = item.get("type") is None and "id" in item and item.keys() <= {"type", "id"}
    return item.get("type") == _REFERENCE or bare


def _without_logprobs(item: Body) -> Body:
    if item["type"] != "message":
        return item
    parts = [{name: value for name, value in part.items() if name != "logprobs"} for part in item["content"]]
    return {**item, "content": parts}


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
