"""Keep responses in memory, so that later requests can refer to them (`store`, `previous_response_id`)."""

import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

from server.openai.requests.adapted import Body


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response with the items that its request added to the conversation."""

    id: str
    key: str  # of the API, which owns it
    previous: str | None  # id of the response that it continues
    items: bytes  # of the request, as a JSON list
    reply: bytes  # as JSON
    output_ids: Sequence[str]  # of the items in the reply

    @property
    def size(self) -> int:
        return len(self.items) + len(self.reply)

    def output(self) -> list[Body]:
        items: list[Body] = json.loads(self.reply)["output"]
        return items


class ResponseStore:
    """The responses that were used last, each for its own API key. Requests may call from several threads.

    Use of a response is use of those that it continues, in this order. So the end of a conversation is forgotten before
    its beginning, on which the other responses depend.
    """

    def __init__(self, limit: int) -> None:
        """`limit`: bytes of all responses together."""
        self._limit = limit
        self._size = 0
        self._responses: OrderedDict[str, StoredResponse] = OrderedDict()  # the last used are the last
        self._holders: dict[str, str] = {}  # id of an output item → of its response
        self._lock = Lock()

    def add(self, response: StoredResponse) -> None:
        """Keep a response, and forget others if need be."""
        with self._lock:
            self._responses[response.id] = response
            self._holders |= dict.fromkeys(response.output_ids, response.id)
            self._size += response.size
            for _ in self._used(response.id, response.key):
                pass
            while self._size > self._limit:
                self._forget(next(iter(self._responses)))

    def get(self, id: str, key: str) -> StoredResponse | None:
        with self._lock:
            return next(self._used(id, key), None)

    def remove(self, id: str, key: str) -> bool:
        """Forget a response. Whether it was there."""
        with self._lock:
            found = self._own(id, key) is not None
            if found:
                self._forget(id)
            return found

    def conversation(self, id: str, key: str) -> list[Body] | None:
        """Return all items up to the end of a response; None if it, or one before it, is not there."""
        with self._lock:
            turns = [*self._used(id, key)]
        if not turns or turns[-1].previous is not None:
            return None
        return [item for turn in reversed(turns) for item in [*json.loads(turn.items), *turn.output()]]

    def item(self, id: str, key: str) -> Body | None:
        """Return an item of a response's output."""
        with self._lock:
            holder = next(self._used(self._holders.get(id, ""), key), None)
        return None if holder is None else next(item for item in holder.output() if item["id"] == id)

    def _own(self, id: str, key: str) -> StoredResponse | None:
        found = self._responses.get(id)
        return found if found is not None and found.key == key else None

    def _used(self, id: str | None, key: str) -> Iterator[StoredResponse]:
        """Yield a response and those that it continues, as far as they are there, and note that they are in use."""
        while id is not None and (found := self._own(id, key)) is not None:
            self._responses.move_to_end(id)
            yield found
            id = found.previous

    def _forget(self, id: str) -> None:
        response = self._responses.pop(id)
        self._size -= response.size
        for output_id in response.output_ids:
            del self._holders[output_id]
