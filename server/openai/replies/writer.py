"""Write replies: as the events of a stream, or at once. Each API has its own writer of the same chunks."""

import json
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable

from server.http.errors import APIError
from server.openai.replies.build import Chunk
from server.openai.replies.endpoints import Endpoint, Json, Piece
from server.openai.replies.logprobs import Logprobs

# ASCII only: some clients treat U+2028 as the end of a line. One encoder, because json.dumps builds one per call.
encode_event = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
encode_reply = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


class ReplyWriter(ABC):
    """Write one reply in the format of an API. Use either `frames` and `error`, or `add` and `encode`."""

    keep_alive = b": keep-alive\n\n"  # what a stream sends while it waits
    done = b"data: [DONE]\n\n"  # after the last frame

    @abstractmethod
    def frames(self, chunks: Iterable[Chunk]) -> bytes:
        """Return the events of the next chunks."""

    @abstractmethod
    def error(self, error: APIError) -> bytes:
        """Return the event that ends a stream which has failed."""

    @abstractmethod
    def add(self, chunks: Iterable[Chunk]) -> None:
        """Add the next chunks of a complete reply. The last of all has the usage."""

    @abstractmethod
    def encode(self) -> bytes:
        """Return the complete reply as JSON."""


class ChunkWriter(ReplyWriter):
    """Write chat completions and completions.

    Log-probabilities of complete replies are encoded as they arrive. A reply may have a million of them, which would
    occupy the event loop for a second at the end, and take five times the memory as objects.
    """

    def __init__(self, envelope: Json, endpoint: Endpoint, *, include_usage: bool) -> None:
        """`envelope` has the fields that a reply and all chunks of a stream share."""
        self._envelope, self._endpoint = envelope, endpoint
        head = encode_event({"id": envelope["id"], "object": endpoint.chunk_object} | envelope)
        self._head = f'data: {head[:-1]},"choices":['
        self._tail = '],"usage":null' if include_usage else "]"
        self._pieces: defaultdict[int, list[Piece]] = defaultdict(list)
        self._logprobs: defaultdict[int, _LogprobsText] = defaultdict(_LogprobsText)
        self._end: Chunk | None = None

    def frames(self, chunks: Iterable[Chunk]) -> bytes:
        return "".join([self._frame(chunk) for chunk in chunks]).encode("ascii")

    def _frame(self, chunk: Chunk) -> str:
        choice = "" if chunk.piece is None else encode_event(self._endpoint.chunk_choice(chunk.piece))
        tail = self._tail if chunk.usage is None else f'],"usage":{encode_event(chunk.usage)}'
        metrics = "" if chunk.metrics is None else f',"metrics":{encode_event(chunk.metrics)}'
        return f"{self._head}{choice}{tail}{metrics}}}\n\n"

    def error(self, error: APIError) -> bytes:
        return f"data: {encode_event(error.body())}\n\n".encode("ascii")

    def add(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            piece = chunk.piece
            if piece is None:
                self._end = chunk
                continue
            if piece.logprobs is not None:
                self._logprobs[piece.index].add(piece.logprobs)
                piece.logprobs = None
            self._pieces[piece.index].append(piece)

    def encode(self) -> bytes:
        assert self._end is not None
        choices = []
        for index, pieces in sorted(self._pieces.items()):
            logprobs = self._logprobs[index].encode() if index in self._logprobs else "null"
            choices.append(f'{encode_reply(self._endpoint.reply_choice(pieces))[:-1]},"logprobs":{logprobs}}}')
        head = encode_reply({"id": self._envelope["id"], "object": self._endpoint.reply_object} | self._envelope)
        usage = {"usage": self._end.usage} | ({} if self._end.metrics is None else {"metrics": self._end.metrics})
        return f'{head[:-1]},"choices":[{",".join(choices)}],{encode_reply(usage)[1:]}'.encode()


class _LogprobsText:
    """The JSON text of `choices[].logprobs`, whose lists grow."""

    def __init__(self) -> None:
        self._lists: dict[str, list[str] | None] = {}

    def add(self, logprobs: Logprobs) -> None:
        for key, values in logprobs.items():
            texts = self._lists.setdefault(key, None if values is None else [])
            if values and texts is not None:
                texts.append(encode_reply(values)[1:-1])

    def encode(self) -> str:
        lists = (
            f'"{key}":' + ("null" if texts is None else f"[{','.join(texts)}]") for key, texts in self._lists.items()
        )
        return f"{{{','.join(lists)}}}"
