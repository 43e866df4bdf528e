"""The replies of chat completions and completions: pieces of an answer as objects of the list `choices`."""

import json
import uuid
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence

from server.answer.logprobs import Json, Logprobs
from server.answer.parsers import Delta
from server.answer.pieces import Chunk, Piece, Usage
from server.answer.writer import ReplyWriter, encode_event
from server.edge.errors import APIError
from server.prepare import ParsedRequest
from server.templates import MISTRAL_ID_LENGTH

_ID_LENGTH = 24  # letters and digits in the id of a call
_encode_reply = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def envelope(request: ParsedRequest, fingerprint: str) -> Json:
    """Return the fields that a reply and all chunks of a stream share."""
    return {
        "id": request.id,
        "created": request.created,
        "model": request.model,
        "system_fingerprint": fingerprint,
    }


class Choices(ABC):
    """The differences between chat completions and completions."""

    reply_object: str
    chunk_object: str

    def chunk(self, piece: Piece) -> Json:
        """Return the choice of a chunk."""
        choice = {
            "index": piece.index,
            **self._piece(piece),
            "logprobs": piece.logprobs,
            "finish_reason": piece.finish_reason,
        }
        if piece.round is not None:
            choice["round"] = piece.round
        if piece.metrics is not None:
            choice["metrics"] = piece.metrics
        return choice

    def reply(self, pieces: Sequence[Piece]) -> Json:
        """Return the choice of a complete reply from all its pieces, without log-probabilities."""
        last = pieces[-1]
        choice = {
            "index": last.index,
            **self._whole([piece.delta for piece in pieces]),
            "finish_reason": last.finish_reason,
        }
        if last.metrics is not None:
            choice["metrics"] = last.metrics
        if rounds := [piece.round for piece in pieces if piece.round is not None]:
            choice["rounds"] = rounds
        return choice

    @abstractmethod
    def _piece(self, piece: Piece) -> Json: ...

    @abstractmethod
    def _whole(self, deltas: Sequence[Delta]) -> Json: ...


class ChatChoices(Choices):
    reply_object = "chat.completion"
    chunk_object = "chat.completion.chunk"

    def __init__(self, *, short_ids: bool) -> None:
        """`short_ids`: ids of tool calls have the length that the templates of Mistral's models accept."""
        self._id_length = MISTRAL_ID_LENGTH if short_ids else _ID_LENGTH
        self._id_prefix = "" if short_ids else "call_"

    def _piece(self, piece: Piece) -> Json:
        delta = piece.delta
        if piece.finish_reason is not None:
            return {"delta": {}}
        if piece.opening:
            return {"delta": {"role": "assistant", "content": "", "refusal": None}}
        if delta.reasoning:
            return {"delta": {"reasoning_content": delta.reasoning, "reasoning": delta.reasoning}}
        if delta.call is None:
            return {"delta": {"content": delta.content}}
        call: Json = {"function": {"arguments": delta.arguments}}
        if delta.name is not None:
            call = self._call(delta.name, delta.arguments)
        return {"delta": {"tool_calls": [{"index": delta.call, **call}]}}

    def _whole(self, deltas: Sequence[Delta]) -> Json:
        content = "".join(delta.content for delta in deltas)
        reasoning = "".join(delta.reasoning for delta in deltas)
        message: Json = {"role": "assistant", "content": content, "refusal": None}
        names = {delta.call: delta.name for delta in deltas if delta.name is not None}
        if names:
            arguments: defaultdict[int | None, list[str]] = defaultdict(list)
            for delta in deltas:
                arguments[delta.call].append(delta.arguments)
            calls = [self._call(name, "".join(arguments[call])) for call, name in names.items()]
            message |= {"content": content or None, "tool_calls": calls}
        if reasoning:
            message |= {"reasoning_content": reasoning, "reasoning": reasoning}
        return {"message": message}

    def _call(self, name: str, arguments: str) -> Json:
        id = f"{self._id_prefix}{uuid.uuid4().hex[: self._id_length]}"
        return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


class TextChoices(Choices):
    reply_object = "text_completion"
    chunk_object = "text_completion"

    def _piece(self, piece: Piece) -> Json:
        return {"text": piece.delta.content}

    def _whole(self, deltas: Sequence[Delta]) -> Json:
        return {"text": "".join(delta.content for delta in deltas)}


class ChunkWriter(ReplyWriter):
    """Write chat completions and completions.

    Log-probabilities of complete replies are encoded as they arrive. A reply may have a million of them, which would
    occupy the event loop for a second at the end, and take five times the memory as objects.
    """

    def __init__(self, envelope: Json, choices: Choices, usage: Usage) -> None:
        """`usage`: which chunks of a stream have it."""
        self._envelope, self._choices = envelope, choices
        head = encode_event({"id": envelope["id"], "object": choices.chunk_object} | envelope)
        self._head = f'data: {head[:-1]},"choices":['
        self._tail = "]" if usage is Usage.NEVER else '],"usage":null'
        self._pieces: defaultdict[int, list[Piece]] = defaultdict(list)
        self._logprobs: defaultdict[int, _LogprobsText] = defaultdict(_LogprobsText)
        self._end: Chunk | None = None

    def frames(self, chunks: Iterable[Chunk]) -> bytes:
        return "".join([self._frame(chunk) for chunk in chunks]).encode("ascii")

    def _frame(self, chunk: Chunk) -> str:
        choice = "" if chunk.piece is None else encode_event(self._choices.chunk(chunk.piece))
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
            choices.append(f'{_encode_reply(self._choices.reply(pieces))[:-1]},"logprobs":{logprobs}}}')
        head = _encode_reply({"id": self._envelope["id"], "object": self._choices.reply_object} | self._envelope)
        end: Json = {"usage": self._end.usage}
        if self._end.metrics is not None:
            end["metrics"] = self._end.metrics
        return f'{head[:-1]},"choices":[{",".join(choices)}],{_encode_reply(end)[1:]}'.encode()


class _LogprobsText:
    """The JSON text of `choices[].logprobs`, whose lists grow."""

    def __init__(self) -> None:
        self._lists: dict[str, list[str] | None] = {}

    def add(self, logprobs: Logprobs) -> None:
        for key, values in logprobs.items():
            texts = self._lists.setdefault(key, None if values is None else [])
            if values and texts is not None:
                texts.append(_encode_reply(values)[1:-1])

    def encode(self) -> str:
        lists = []
        for key, texts in self._lists.items():
            values = "null" if texts is None else f"[{','.join(texts)}]"
            lists.append(f'"{key}":{values}')
        return f"{{{','.join(lists)}}}"
