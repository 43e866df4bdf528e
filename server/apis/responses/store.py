"""Keep responses in memory, so that later requests can refer to them (`store`, `previous_response_id`)."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response with the items that its request added to the conversation. All of them are JSON."""

    id: str
    key: str  # API key of the owner
    previous: str | None  # id of the response that it continues
    items: bytes  # items of the request, separated by commas
    output: Mapping[str, bytes]  # items of the reply, by id, as the input of later requests
    reply: bytes

    @property
    def size(self) -> int:
        return len(self.items) + sum(map(len, self.output.values())) + len(self.reply)


class ResponseStore:
    """The least recently used responses are forgotten. Each belongs to an API key. Requests may call from threads.

    Use of a response is use of those that it continues, in this order. So the end of a conversation is forgotten before
    its beginning, on which the other responses depend.
    """

    def __init__(self, limit: int) -> None:
        """`limit`: bytes of all responses together. Larger ones are not kept."""
        self.size = 0  # bytes
        self._limit = limit
        self._responses: OrderedDict[str, StoredResponse] = OrderedDict()  # the last used are the last
        self._holders: dict[str, str] = {}  # id of an output item → of its response
        self._lock = Lock()

    def add(self, response: StoredResponse) -> bool:
        """Keep a response, and forget others if need be. Whether there is room for it and those that it continues."""
        if response.size > self._limit:
            return False
        with self._lock:
            self._responses[response.id] = response
            self._holders |= dict.fromkeys(response.output, response.id)
            self.size += response.size
            self._use(response.id, response.key)
            while self.size > self._limit:
                self._forget(next(iter(self._responses)))
            return response.id in self._responses

    def get(self, id: str, key: str) -> StoredResponse | None:
        with self._lock:
            return next(iter(self._use(id, key)), None)

    def remove(self, id: str, key: str) -> bool:
        """Forget a response. Whether it was there."""
        with self._lock:
            found = any(self._conversation(id, key))
            if found:
                self._forget(id)
            return found

    def conversation(self, id: str, key: str) -> bytes | None:
        """Return all items up to the end of a response; None if it, or one before it, is not there."""
        with self._lock:
            turns = self._use(id, key)
        if not turns or turns[-1].previous is not None:
            return None
        parts = [part for turn in reversed(turns) for part in (turn.items, *turn.output.values())]
        return b",".join(filter(None, parts))  # a request may add no items

    def item(self, id: str, key: str) -> bytes | None:
        """Return an item of a response's output."""
        with self._lock:
            turns = self._use(self._holders.get(id, ""), key)
        return turns[0].output[id] if turns else None

    def _conversation(self, id: str | None, key: str) -> Iterator[StoredResponse]:
        """Yield a response and those that it continues, as far as they are there."""
        while id is not None and (found := self._responses.get(id)) is not None and found.key == key:
            yield found
            id = found.previous

    def _use(self, id: str, key: str) -> list[StoredResponse]:
        """Return a response and those that it continues, as far as they are there, and note that they are in use."""
        turns = [*self._conversation(id, key)]
        for turn in turns:
            self._responses.move_to_end(turn.id)
        return turns

    def _forget(self, id: str) -> None:
        response = self._responses.pop(id)
        self.size -= response.size
        for output_id in response.output:
            del self._holders[output_id]
