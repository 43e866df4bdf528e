"""The formats of chat completions and completions: pieces of an answer as objects of the list `choices`."""

import uuid
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.types import TokenLogprobs
from server.openai.replies.logprobs import Logprobs, TextOffsets, TokenTexts, chat_logprobs, completion_logprobs
from server.openai.replies.parsers import Delta

Json = dict[str, object]
# Letters and digits in the id of a tool call; the chat templates of Mistral's models reject other lengths.
MISTRAL_ID_LENGTH = 9


@dataclass(slots=True)
class Piece:
    """A piece of one choice. The last piece has the finish reason, and no text."""

    index: int
    delta: Delta = Delta()
    opening: bool = False
    logprobs: Logprobs | None = None
    finish_reason: str | None = None
    stop_string: str | None = None  # that ended the answer
    unfinished_call: bool = False  # the answer ended within its last call
    round: Json | None = None  # figures of the round that generated the piece, if the client wants them
    metrics: Json | None = None


class Endpoint(ABC):
    """The differences between chat completions and completions."""

    id_prefix: str
    reply_object: str
    chunk_object: str
    prompt_param: str
    opens: bool  # streams begin each choice with a chunk of its own

    def chunk_choice(self, piece: Piece) -> Json:
        """Return the choice of a chunk."""
        choice = {
            "index": piece.index,
            **self._chunk_text(piece),
            "logprobs": piece.logprobs,
            "finish_reason": piece.finish_reason,
        }
        if piece.round is not None:
            choice["round"] = piece.round
        if piece.metrics is not None:
            choice["metrics"] = piece.metrics
        return choice

    def reply_choice(self, pieces: Sequence[Piece]) -> Json:
        """Return the choice of a complete reply from all its pieces, without log-probabilities."""
        last = pieces[-1]
        choice = {
            "index": last.index,
            **self._reply_text([piece.delta for piece in pieces]),
            "finish_reason": last.finish_reason,
        }
        if last.metrics is not None:
            choice["metrics"] = last.metrics
        if rounds := [piece.round for piece in pieces if piece.round is not None]:
            choice["rounds"] = rounds
        return choice

    @abstractmethod
    def logprobs(self, logprobs: Sequence[TokenLogprobs], texts: TokenTexts, offsets: TextOffsets) -> Logprobs: ...

    @abstractmethod
    def _chunk_text(self, piece: Piece) -> Json: ...

    @abstractmethod
    def _reply_text(self, deltas: Sequence[Delta]) -> Json: ...


class _Chat(Endpoint):
    """Chat completions. `call_id` makes the ids of tool calls."""

    id_prefix = "chatcmpl"
    reply_object = "chat.completion"
    chunk_object = "chat.completion.chunk"
    prompt_param = "messages"
    opens = True

    def __init__(self, call_id: Callable[[], str]) -> None:
        self._call_id = call_id

    def logprobs(self, logprobs: Sequence[TokenLogprobs], texts: TokenTexts, offsets: TextOffsets) -> Logprobs:
        return chat_logprobs(logprobs, texts)

    def _chunk_text(self, piece: Piece) -> Json:
        delta = piece.delta
        if piece.finish_reason is not None:
            return {"delta": {}}
        if piece.opening:
            return {"delta": {"role": "assistant", "content": "", "refusal": None}}
        if delta.reasoning:
            return {"delta": {"reasoning_content": delta.reasoning, "reasoning": delta.reasoning}}
        if delta.call is None:
            return {"delta": {"content": delta.content}}
        more: Json = {"function": {"arguments": delta.arguments}}
        call = more if delta.name is None else self._call(delta.name, delta.arguments)
        return {"delta": {"tool_calls": [{"index": delta.call, **call}]}}

    def _reply_text(self, deltas: Sequence[Delta]) -> Json:
        content, reasoning = "".join(d.content for d in deltas), "".join(d.reasoning for d in deltas)
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
        return {"id": self._call_id(), "type": "function", "function": {"name": name, "arguments": arguments}}


class _Completion(Endpoint):
    id_prefix = "cmpl"
    reply_object = "text_completion"
    chunk_object = "text_completion"
    prompt_param = "prompt"
    opens = False

    def logprobs(self, logprobs: Sequence[TokenLogprobs], texts: TokenTexts, offsets: TextOffsets) -> Logprobs:
        return completion_logprobs(logprobs, texts, offsets)

    def _chunk_text(self, piece: Piece) -> Json:
        return {"text": piece.delta.content}

    def _reply_text(self, deltas: Sequence[Delta]) -> Json:
        return {"text": "".join(delta.content for delta in deltas)}


CHAT: Endpoint = _Chat(lambda: f"call_{uuid.uuid4().hex[:24]}")
MISTRAL_CHAT: Endpoint = _Chat(lambda: uuid.uuid4().hex[:MISTRAL_ID_LENGTH])
COMPLETION: Endpoint = _Completion()
