"""The reply to a request without streaming, assembled from the chunks that a stream would send."""

import json
from collections import defaultdict
from collections.abc import Iterable

from server.openai.replies.build import Chunk
from server.openai.replies.endpoints import Endpoint, Json, Piece
from server.openai.replies.logprobs import Logprobs

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


class CompleteReply:
    """Collect the chunks of one reply, then encode it.

    Log-probabilities are encoded as they arrive. A reply may have a million of them, which would occupy the event loop
    for a second at the end, and take five times the memory as objects.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._pieces: defaultdict[int, list[Piece]] = defaultdict(list)
        self._logprobs: defaultdict[int, _LogprobsText] = defaultdict(_LogprobsText)
        self._end: Chunk | None = None

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Add the next chunks. The last of all has the usage."""
        for chunk in chunks:
            piece = chunk.piece
            if piece is None:
                self._end = chunk
                continue
            if piece.logprobs is not None:
                self._logprobs[piece.index].add(piece.logprobs)
                piece.logprobs = None
            self._pieces[piece.index].append(piece)

    def encode(self, envelope: Json) -> bytes:
        """Return the reply as JSON. `envelope` has the fields beside choices, usage and metrics."""
        assert self._end is not None
        choices = []
        for index, pieces in sorted(self._pieces.items()):
            logprobs = self._logprobs[index].encode() if index in self._logprobs else "null"
            choices.append(f'{_encode(self._endpoint.reply_choice(pieces))[:-1]},"logprobs":{logprobs}}}')
        usage = {"usage": self._end.usage} | ({} if self._end.metrics is None else {"metrics": self._end.metrics})
        return f'{_encode(envelope)[:-1]},"choices":[{",".join(choices)}],{_encode(usage)[1:]}'.encode()


class _LogprobsText:
    """The JSON text of `choices[].logprobs`, whose lists grow."""

    def __init__(self) -> None:
        self._lists: dict[str, list[str] | None] = {}

    def add(self, logprobs: Logprobs) -> None:
        for key, values in logprobs.items():
            texts = self._lists.setdefault(key, None if values is None else [])
            if values and texts is not None:
                texts.append(_encode(values)[1:-1])

    def encode(self) -> str:
        lists = (
            f'"{key}":' + ("null" if texts is None else f"[{','.join(texts)}]") for key, texts in self._lists.items()
        )
        return f"{{{','.join(lists)}}}"
