"""Requests of the Responses API that refer to stored responses: they become requests with all items."""

import json
import re
from collections.abc import Sequence
from copy import copy

from server.http.errors import APIError, invalid
from server.openai.chat import ChatTranslator
from server.openai.requests.adapted import Body, string
from server.openai.requests.translate import ParsedRequest
from server.openai.responses.events import ResponseWriter
from server.openai.responses.store import ResponseStore, StoredResponse
from server.openai.responses.translate import ResponsesTranslator

_PREVIOUS = "previous_response_id"
_DESCRIBED: dict[str, Body] = {**ResponsesTranslator.described, _PREVIOUS: {"type": "string"}}
_REFUSED = {name: values for name, values in ResponsesTranslator.refused.items() if name != _PREVIOUS}
_ITEM = re.compile(r"input\[(\d+)\]")


class StoringTranslator(ResponsesTranslator):
    """Convert requests that may refer to the responses of a store, and store theirs unless they say `store: false`."""

    known = (*ResponsesTranslator.known, _PREVIOUS)
    described = _DESCRIBED
    refused = _REFUSED
    inline_bytes = 0  # a small body may continue a long conversation

    def __init__(self, chat: ChatTranslator, store: ResponseStore) -> None:
        super().__init__(chat)
        self._store = store
        self._key = ""
        self._earlier = 0  # items of the request that come from the store

    def of(self, key: str) -> "StoringTranslator":
        one = copy(self)
        one._key = key
        return one

    def read(self, raw: bytes) -> Body:
        """Return a body with all items of its conversation. Raises APIError."""
        body = super().read(raw)
        if not isinstance(body.get("store", True), bool):
            raise invalid("'store' must be a boolean.", "store")
        items = body.get("input")
        if isinstance(items, str):
            items = [{"type": "message", "role": "user", "content": items}]
        if not isinstance(items, list) or not items:
            return body  # which is refused
        items = [self._resolved(item, f"input[{index}]") for index, item in enumerate(items)]
        earlier = self._previous_items(body)
        self._earlier = len(earlier)
        return {**body, "input": [*earlier, *items]}

    def writer(self, body: Body, parsed: ParsedRequest) -> ResponseWriter:
        writer = super().writer(body, parsed)
        previous, stored = body.get(_PREVIOUS), body.get("store", True)
        writer.echoed |= {_PREVIOUS: previous, "store": stored}
        if stored:
            items = json.dumps(body["input"][self._earlier :], ensure_ascii=False).encode("utf-8", "surrogatepass")
            writer.on_end = lambda reply, ids: self._store.add(
                StoredResponse(writer.id, self._key, previous, items, reply, ids)
            )
        return writer

    def _tool_param(self, param: str, body: Body) -> str:
        return _ITEM.sub(self._own_item, super()._tool_param(param, body), count=1)

    def _own_item(self, found: re.Match[str]) -> str:
        """Return the place of an item in the client's list."""
        index = int(found[1]) - self._earlier
        return f"input[{index}]" if index >= 0 else _PREVIOUS

    def _previous_items(self, body: Body) -> Sequence[Body]:
        if _PREVIOUS not in body:
            return []
        id = string(body, _PREVIOUS, "")
        if (items := self._store.conversation(id, self._key)) is None:
            message = f"Previous response with id {id!r:.80} not found."
            raise invalid(message, _PREVIOUS, "previous_response_not_found")
        return items

    def _resolved(self, item: object, param: str) -> object:
        """Return an item of the input; in place of a reference, what it refers to."""
        if not isinstance(item, dict) or item.get("type") != "item_reference":
            return item
        id = string(item, "id", param)
        if (found := self._store.item(id, self._key)) is None:
            reason = "it was not stored, or it has been forgotten since; send the item itself"
            raise APIError(404, f"Item with id {id!r:.80} not found: {reason}.", param="input")
        return found
