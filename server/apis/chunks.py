"""The replies of chat completions and completions: pieces of an answer as objects of the list `choices`."""

import uuid
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict

from engine.plans import Variants
from engine.types import TokenEvent
from server.answer.pieces import Finish, Piece, Usage
from server.answer.writer import Body, ReplyWriter, encode_event, encode_reply, encoded, encoded_list
from server.apis.api import Model
from server.apis.bodies import StreamOptions
from server.apis.logprobs import TextOffsets, chat_logprobs, completion_logprobs, prompt_logprobs
from server.edge.errors import APIError
from server.prepare import ParsedRequest

_ID_LENGTH = 24  # letters and digits in the id of a call

Logprobs = Mapping[str, Sequence[object] | None]  # `choices[].logprobs`; lists have an item for each token


class ChunkWriter(ReplyWriter):
    """Write chat completions or completions.

    Log-probabilities of complete replies are encoded as they arrive. A reply may have a million of them, which would
    occupy the event loop for a second at the end, and take five times the memory as objects.
    """

    reply_object: str
    chunk_object: str

    def __init__(self, request: ParsedRequest, model: Model, options: StreamOptions | None) -> None:
        self._request, self._model, self._options = request, model, options or StreamOptions()
        self._single = request.format.choices == 1
        # All chunks begin alike. To encode that each time would take as long as the rest of a chunk.
        self._head = f'data: {encode_event(self._envelope(self.chunk_object))[:-1]},"choices":['
        self._metrics = ""  # JSON of the metrics, once a single choice has ended
        self._pieces: defaultdict[int, list[Piece]] = defaultdict(list)
        # Choice → field of `choices[].logprobs` → JSON of the items of its list, or None for null.
        self._logprobs: defaultdict[int, dict[str, list[str] | None]] = defaultdict(dict)

    @abstractmethod
    def delta(self, piece: Piece) -> Body:
        """Return what a chunk has of a piece, without log-probabilities."""

    @abstractmethod
    def whole(self, pieces: Sequence[Piece]) -> Body:
        """Return what a complete reply has of all pieces of a choice, without log-probabilities."""

    @abstractmethod
    def logprobs(self, piece: Piece) -> Logprobs | None: ...

    def frames(self, pieces: Iterable[Piece], count: Callable[[], Usage]) -> bytes:
        usage = ""
        if self._options.include_usage:
            so_far = _usage(count()) if self._options.continuous_usage_stats else None
            usage = f',"usage":{encode_event(so_far)}'
        return "".join([self._frame(piece, usage) for piece in pieces]).encode("ascii")

    def _frame(self, piece: Piece, usage: str) -> str:
        if piece.finish is not None and self._single:
            self._metrics = f',"metrics":{encode_event(metrics_of(piece.finish))}'
        metrics = "" if self._options.include_usage else self._metrics
        return f"{self._head}{encode_event(self._choice(piece))}]{usage}{metrics}}}\n\n"

    def end(self, usage: Usage) -> bytes:
        if not self._options.include_usage:
            return b""
        return f'{self._head}],"usage":{encode_event(_usage(usage))}{self._metrics}}}\n\n'.encode("ascii")

    def _choice(self, piece: Piece) -> Body:
        """Return the choice of a chunk."""
        choice = {
            "index": piece.index,
            **self.delta(piece),
            "logprobs": self.logprobs(piece) if piece.logprobs or piece.opening else None,
            "finish_reason": None if piece.finish is None else _reason(piece.finish),
        }
        if piece.event is not None:
            choice["round"] = _round(piece.event)
        if piece.finish is not None and not self._single:
            choice["metrics"] = metrics_of(piece.finish)
        return choice

    def error(self, error: APIError) -> bytes:
        return f"data: {encode_event(error.body())}\n\n".encode("ascii")

    def add(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            for field, values in (self.logprobs(piece) or {}).items():
                texts = self._logprobs[piece.index].setdefault(field, None if values is None else [])
                if values and texts is not None:
                    texts += map(encode_reply, values)
            piece.logprobs = ()
            self._pieces[piece.index].append(piece)

    def encode(self, usage: Usage) -> bytes:
        choices, end = [], {"usage": _usage(usage)}
        for index, pieces in sorted(self._pieces.items()):
            finish = pieces[-1].finish
            assert finish is not None
            choice = {"index": index, **self.whole(pieces), "finish_reason": _reason(finish)}
            if self._single:
                end["metrics"] = metrics_of(finish)
            else:
                choice["metrics"] = metrics_of(finish)
            if rounds := [_round(piece.event) for piece in pieces if piece.event is not None]:
                choice["rounds"] = rounds
            lists = self._logprobs[index].items()
            logprobs = {field: None if texts is None else encoded_list(texts) for field, texts in lists}
            choice["logprobs"] = encoded(logprobs, encode_reply) if logprobs else None
            choices.append(encoded(choice, encode_reply))
        body = self._envelope(self.reply_object) | {"choices": encoded_list(choices)} | end
        return encoded(body, encode_reply).encode()

    def _envelope(self, object: str) -> Body:
        """Return the fields that a reply and all chunks of a stream share."""
        return {
            "id": self._request.id,
            "object": object,
            "created": self._request.created,
            "model": self._request.model,
            "system_fingerprint": self._model.fingerprint,
        }


class ChatWriter(ChunkWriter):
    reply_object = "chat.completion"
    chunk_object = "chat.completion.chunk"

    def delta(self, piece: Piece) -> Body:
        delta = piece.delta
        if piece.finish is not None:
            return {"delta": {}}
        if piece.opening:
            return {"delta": {"role": "assistant", "content": "", "refusal": None}}
        if delta.reasoning:
            return {"delta": {"reasoning_content": delta.reasoning, "reasoning": delta.reasoning}}
        if delta.call is None:
            return {"delta": {"content": delta.content}}
        call: Body = {"function": {"arguments": delta.arguments}}
        if delta.name is not None:
            call = self._call(delta.name, delta.arguments)
        return {"delta": {"tool_calls": [{"index": delta.call, **call}]}}

    def whole(self, pieces: Sequence[Piece]) -> Body:
        deltas = [piece.delta for piece in pieces]
        content = "".join(delta.content for delta in deltas)
        reasoning = "".join(delta.reasoning for delta in deltas)
        message: Body = {"role": "assistant", "content": content, "refusal": None}
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

    def logprobs(self, piece: Piece) -> Logprobs | None:
        if not piece.logprobs:
            return None
        return {"content": chat_logprobs(piece.logprobs, self._model.texts), "refusal": None}

    def _call(self, name: str, arguments: str) -> Body:
        id = f"call_{uuid.uuid4().hex[:_ID_LENGTH]}"
        if length := self._model.chats.tool_format.id_length:
            id = uuid.uuid4().hex[:length]
        return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


class CompletionWriter(ChunkWriter):
    reply_object = "text_completion"
    chunk_object = "text_completion"

    def __init__(
        self, request: ParsedRequest, model: Model, options: StreamOptions | None, echoes: Sequence[str]
    ) -> None:
        """`echoes`: texts of the prompts, if answers begin with them."""
        super().__init__(request, model, options)
        self._echoes = echoes
        self._offsets: dict[int, TextOffsets] = {}  # choice → offset of its next token

    def delta(self, piece: Piece) -> Body:
        return {"text": self._echoes[self._prompt(piece)] if piece.opening else piece.delta.content}

    def whole(self, pieces: Sequence[Piece]) -> Body:
        return {"text": "".join(self.delta(piece)["text"] for piece in pieces)}

    def logprobs(self, piece: Piece) -> Logprobs | None:
        prompt = self._prompt(piece)
        if piece.opening and self._request.sampling.prompt_logprobs:
            first = self._request.prompts[prompt][0]
            return prompt_logprobs(first, piece.logprobs, self._model.texts, self._echoes[prompt])
        if not piece.logprobs:
            return None
        if piece.index not in self._offsets:
            begin = len(self._echoes[prompt]) if self._echoes else 0
            self._offsets[piece.index] = TextOffsets(begin, special=not self._request.options.skip_special_tokens)
        return completion_logprobs(piece.logprobs, self._model.texts, self._offsets[piece.index])

    def _prompt(self, piece: Piece) -> int:
        """Return the number of the prompt that a piece answers."""
        return piece.index // self._request.format.n


def _reason(finish: Finish) -> str:
    return "tool_calls" if finish.called else finish.reason.value


def _usage(usage: Usage) -> Body:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {
            "accepted_prediction_tokens": usage.accepted_predictions,
            "rejected_prediction_tokens": usage.rejected_predictions,
            "reasoning_tokens": usage.reasoning,
        },
    }


def _round(event: TokenEvent) -> Body:
    trace, last = event.trace, len(event.pieces) - 1
    assert trace is not None
    return {
        "tokens": [(piece, position == last) for position, piece in enumerate(event.pieces)],
        "drafted": trace.drafted,
        "accepted": trace.accepted,
        "context": trace.context_length,
        "plan": _plan_digits(trace.plan),
        "predicted_tpt": trace.predicted_tpt,
        "source": trace.source if trace.drafted else None,
    }


def metrics_of(finish: Finish) -> Body:
    """Return the field `metrics` of a reply or a choice."""
    figures = finish.speculation
    if figures is None:
        return {"speculative_decoding": None}
    return {"speculative_decoding": asdict(figures) | {"plan": _plan_digits(figures.plan)}}


def _plan_digits(plan: Variants | None) -> str | None:
    return None if plan is None else "".join(map(str, plan))
