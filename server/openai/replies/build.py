"""Convert engine events to chunks, and chunks to a complete reply.

A stream sends the chunks. A reply without streaming is assembled from the same chunks, so each format is written once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from engine.types import FinishReason, RequestRound, SpeculationStats, TokenEvent, TokenLogprobs
from server.openai.replies.logprobs import TextOffsets, TokenTexts, chat_logprobs, completion_logprobs, prompt_logprobs
from server.openai.replies.parsers import Delta, Parser, ReasoningParser


class ChoiceBuilder(Protocol):
    """Assemble one choice of a complete reply from its chunks."""

    def add(self, choice: dict[str, Any]) -> None: ...

    def build(self, index: int, reason: str | None) -> dict[str, Any]: ...


class ApiFlavor(Protocol):
    """The differences between chat completions and completions. Methods return objects of the list `choices`."""

    id_prefix: str
    reply_object: str
    chunk_object: str
    prompt_param: str

    def opening(self, index: int, echo: str) -> dict[str, Any] | None:
        """Return the choice of the chunk before any text, or None if there is no such chunk."""

    def piece(self, index: int, delta: Delta) -> dict[str, Any]: ...

    def logprobs(
        self, logprobs: Sequence[TokenLogprobs], texts: TokenTexts, offsets: TextOffsets
    ) -> dict[str, Any]: ...

    def finish(self, index: int, reason: str) -> dict[str, Any]: ...

    def choice_builder(self) -> ChoiceBuilder: ...


class _Chat:
    """Chat completions. `call_id` makes the ids of tool calls."""

    id_prefix = "chatcmpl"
    reply_object = "chat.completion"
    chunk_object = "chat.completion.chunk"
    prompt_param = "messages"

    def __init__(self, call_id: Callable[[], str]) -> None:
        self._call_id = call_id

    def opening(self, index: int, echo: str) -> dict[str, Any] | None:
        return _chat_chunk(index, {"role": "assistant", "content": "", "refusal": None})

    def piece(self, index: int, delta: Delta) -> dict[str, Any]:
        if delta.call is None:
            reasoning = {"reasoning_content": delta.reasoning, "reasoning": delta.reasoning}
            return _chat_chunk(index, reasoning if delta.reasoning else {"content": delta.content})
        call: dict[str, Any] = {"index": delta.call}
        if delta.name is not None:
            call |= {"id": self._call_id(), "type": "function"}
            call["function"] = {"name": delta.name, "arguments": delta.arguments}
        else:
            call["function"] = {"arguments": delta.arguments}
        return _chat_chunk(index, {"tool_calls": [call]})

    def logprobs(self, logprobs: Sequence[TokenLogprobs], texts: TokenTexts, offsets: TextOffsets) -> dict[str, Any]:
        return chat_logprobs(logprobs, texts)

    def finish(self, index: int, reason: str) -> dict[str, Any]:
        return _chat_chunk(index, {}, reason)

    def choice_builder(self) -> ChoiceBuilder:
        return _MessageBuilder()


def _chat_chunk(index: int, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}


@dataclass(slots=True)
class _MessageBuilder:
    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    logprobs: dict[str, Any] | None = None

    def add(self, choice: dict[str, Any]) -> None:
        delta = choice["delta"]
        self.content.append(delta.get("content", ""))
        self.reasoning.append(delta.get("reasoning", ""))
        for call in delta.get("tool_calls", ()):
            if call["index"] == len(self.calls):
                self.calls.append({"id": call["id"], "type": call["type"], "function": dict(call["function"])})
            else:
                self.calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
        if choice["logprobs"] is not None:
            self.logprobs = self.logprobs or {"content": [], "refusal": None}
            self.logprobs["content"] += choice["logprobs"]["content"]

    def build(self, index: int, reason: str | None) -> dict[str, Any]:
        content, reasoning = "".join(self.content), "".join(self.reasoning)
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if self.calls:
            message |= {"content": content or None, "tool_calls": self.calls}
        if reasoning:
            message |= {"reasoning_content": reasoning, "reasoning": reasoning}
        return {"index": index, "message": message, "logprobs": self.logprobs, "finish_reason": reason}


class _Completion:
    id_prefix = "cmpl"
    reply_object = "text_completion"
    chunk_object = "text_completion"
    prompt_param = "prompt"

    def opening(self, index: int, echo: str) -> dict[str, Any] | None:
        return _text_choice(index, echo) if echo else None

    def piece(self, index: int, delta: Delta) -> dict[str, Any]:
        return _text_choice(index, delta.content)

    def logprobs(self, logprobs: Sequence[TokenLogprobs], texts: TokenTexts, offsets: TextOffsets) -> dict[str, Any]:
        return completion_logprobs(logprobs, texts, offsets)

    def finish(self, index: int, reason: str) -> dict[str, Any]:
        return _text_choice(index, "", reason)

    def choice_builder(self) -> ChoiceBuilder:
        return _TextBuilder()


def _text_choice(index: int, text: str, reason: str | None = None) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": reason}


@dataclass(slots=True)
class _TextBuilder:
    text: list[str] = field(default_factory=list)
    logprobs: dict[str, list[Any]] | None = None

    def add(self, choice: dict[str, Any]) -> None:
        self.text.append(choice["text"])
        if choice["logprobs"] is not None:
            self.logprobs = self.logprobs or {key: [] for key in choice["logprobs"]}
            for key, values in choice["logprobs"].items():
                self.logprobs[key] += values

    def build(self, index: int, reason: str | None) -> dict[str, Any]:
        return _text_choice(index, "".join(self.text), reason) | {"logprobs": self.logprobs}


# Letters and digits in the id of a tool call; the chat templates of Mistral's models reject other lengths.
MISTRAL_ID_LENGTH = 9
CHAT: ApiFlavor = _Chat(lambda: f"call_{uuid.uuid4().hex[:24]}")
MISTRAL_CHAT: ApiFlavor = _Chat(lambda: uuid.uuid4().hex[:MISTRAL_ID_LENGTH])
COMPLETION: ApiFlavor = _Completion()


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event of a stream: a piece of one choice, or the usage at the end (`choice` is None)."""

    choice: dict[str, Any] | None
    usage: dict[str, Any] | None = None
    metrics: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """Everything that determines how engine events become a reply. Each prompt has `n` choices."""

    flavor: ApiFlavor
    prompt_lengths: Sequence[int]  # tokens of each prompt
    n: int = 1
    parser: Callable[[], Parser | None] = lambda: None  # makes the parser of a choice; None: plain text
    max_calls: int | None = None  # tool calls in one message; None: no limit
    token_texts: TokenTexts | None = None  # None: no log-probabilities
    echoes: Sequence[str] = ()  # text before the answers to each prompt
    echo_first_tokens: Sequence[int] = ()  # first token of each prompt, if echoes have log-probabilities
    shows_special: bool = False  # special tokens are part of the text
    prompt_only: bool = False  # max_tokens is 0: drop the token that the engine generates

    @property
    def choices(self) -> int:
        return len(self.prompt_lengths) * self.n


class _ChoiceState:
    """One unfinished choice."""

    def __init__(self, format: ReplyFormat, index: int) -> None:
        self.format, self.index = format, index
        self.echo = format.echoes[index // format.n] if format.echoes else ""
        self.parser = format.parser()
        self.offsets = TextOffsets(len(self.echo), special=format.shows_special)
        self.calls = 0
        self.reasoning_tokens = 0
        self.last: TokenEvent | None = None

    def pieces(self, event: TokenEvent) -> list[dict[str, Any]]:
        """Return the choices of one event's chunks, without the finish reason."""
        format, flavor, index = self.format, self.format.flavor, self.index
        pieces = [flavor.piece(index, delta) for delta in self._parse(event)]
        if format.token_texts is not None and event.logprobs and not format.prompt_only:
            if not pieces:
                pieces.append(flavor.piece(index, Delta()))
            pieces[0]["logprobs"] = flavor.logprobs(event.logprobs, format.token_texts, self.offsets)
        if event.trace is not None:
            if not pieces:
                pieces.append(flavor.piece(index, Delta()))
            pieces[0]["round"] = _round(event, event.trace)
        return pieces

    def echo_logprobs(self, event: TokenEvent) -> dict[str, Any]:
        """Return the log-probabilities of the echo from the first event, or {} if the request does not want them."""
        format = self.format
        if format.token_texts is None or not format.echo_first_tokens:
            return {}
        first = format.echo_first_tokens[self.index // format.n]
        return {"logprobs": prompt_logprobs(first, event.prompt_logprobs, format.token_texts, self.echo)}

    @property
    def _thinking(self) -> bool:
        return isinstance(self.parser, ReasoningParser) and self.parser.thinking

    def _parse(self, event: TokenEvent) -> list[Delta]:
        if self.format.prompt_only:
            return []
        if self.parser is None:
            return [Delta(content=event.text)] if event.text else []
        deltas: list[Delta] = []
        # Token by token, so that the result does not depend on how many tokens an event has.
        for piece in event.pieces or (event.text,):
            thinking = self._thinking
            deltas += self.parser.push(piece) if piece else []
            self.reasoning_tokens += thinking or self._thinking
        if event.finish_reason is not None:
            deltas += self.parser.finish()
        limit = self.format.max_calls
        deltas = [delta for delta in deltas if delta.call is None or limit is None or delta.call < limit]
        self.calls = max([self.calls, *(delta.call + 1 for delta in deltas if delta.call is not None)])
        return deltas

    def finish_reason(self, reason: FinishReason) -> str:
        if self.format.prompt_only:
            return FinishReason.LENGTH.value
        return "tool_calls" if self.calls and reason is FinishReason.STOP else reason.value

    @property
    def completion_tokens(self) -> int:
        return 0 if self.format.prompt_only or self.last is None else self.last.completion_tokens


class Chunker:
    """Convert the events of all choices of one reply into chunks, in the order of the events.

    With `include_usage`, a usage chunk ends the reply. The last chunk has the speculation metrics of a single choice;
    several choices have their own.
    """

    def __init__(self, format: ReplyFormat, include_usage: bool) -> None:
        self._format = format
        self._single = format.choices == 1
        self._include_usage = include_usage
        self._choices: dict[int, _ChoiceState] = {}

    def step(self, index: int, event: TokenEvent) -> list[Chunk]:
        """Return the chunks of one event of choice `index`: none while the parser holds its text back."""
        chunks: list[Chunk] = []
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = _ChoiceState(self._format, index)
            if (opening := self._format.flavor.opening(index, choice.echo)) is not None:
                chunks.append(Chunk(opening | choice.echo_logprobs(event)))
        choice.last = event
        chunks += [Chunk(piece) for piece in choice.pieces(event)]
        if event.finish_reason is not None:
            end = self._format.flavor.finish(index, choice.finish_reason(event.finish_reason))
            metrics = _metrics(event.speculation)
            if not self._single:
                end["metrics"] = metrics
            chunks.append(Chunk(end, metrics=metrics if self._single and not self._include_usage else None))
        return chunks

    def end(self) -> list[Chunk]:
        """Return the chunks after all choices have finished."""
        if not self._include_usage:
            return []
        last = self._choices[0].last
        metrics = _metrics(last.speculation if last else None) if self._single else None
        return [Chunk(None, usage=self._usage(), metrics=metrics)]

    def _usage(self) -> dict[str, Any]:
        """Count the completion tokens of all choices, and each prompt once. Its first choice has the cached tokens."""
        prompt = sum(self._format.prompt_lengths)
        completion = sum(choice.completion_tokens for choice in self._choices.values())
        last = [choice.last for choice in self._choices.values() if choice.last]
        first = [choice.last for index, choice in self._choices.items() if index % self._format.n == 0]
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": sum(event.cached_tokens for event in first if event)},
            "completion_tokens_details": {
                "accepted_prediction_tokens": sum(event.accepted_predictions for event in last),
                "rejected_prediction_tokens": sum(event.rejected_predictions for event in last),
                "reasoning_tokens": sum(choice.reasoning_tokens for choice in self._choices.values()),
            },
        }


def _round(event: TokenEvent, trace: RequestRound) -> dict[str, Any]:
    last = len(event.pieces) - 1
    return {
        "tokens": [(piece, position == last) for position, piece in enumerate(event.pieces)],
        "drafted": trace.drafted,
        "accepted": trace.accepted,
        "context": trace.context_length,
        "plan": _plan_digits(trace.plan),
        "predicted_tpt": trace.predicted_tpt,
        "source": trace.source if trace.drafted else None,
    }


def _metrics(speculation: SpeculationStats | None) -> dict[str, Any]:
    if speculation is None:
        return {"speculative_decoding": None}
    return {"speculative_decoding": asdict(speculation) | {"plan": _plan_digits(speculation.plan)}}


def _plan_digits(plan: tuple[int, ...] | None) -> str | None:
    return None if plan is None else "".join(map(str, plan))


class ReplyBuilder:
    """Assemble the chunks of a reply into the object that is sent without streaming."""

    def __init__(self, format: ReplyFormat) -> None:
        self._dialect = format.flavor
        self._builders = [format.flavor.choice_builder() for _ in range(format.choices)]
        self._finish: list[str | None] = [None] * format.choices
        self._choice_metrics: dict[int, dict[str, Any]] = {}
        self._rounds: dict[int, list[dict[str, Any]]] = {}
        self._usage: dict[str, Any] | None = None
        self._metrics: dict[str, Any] | None = None

    def add(self, chunk: Chunk) -> None:
        choice = chunk.choice
        if choice is not None:
            index = choice["index"]
            self._builders[index].add(choice)
            self._finish[index] = choice["finish_reason"] or self._finish[index]
            if "metrics" in choice:
                self._choice_metrics[index] = choice["metrics"]
            if "round" in choice:
                self._rounds.setdefault(index, []).append(choice["round"])
        self._usage = chunk.usage or self._usage
        self._metrics = chunk.metrics or self._metrics

    def build(self, id: str, created: int, model: str) -> dict[str, Any]:
        choices = []
        for index, builder in enumerate(self._builders):
            choice = builder.build(index, self._finish[index])
            if index in self._choice_metrics:
                choice["metrics"] = self._choice_metrics[index]
            if index in self._rounds:
                choice["rounds"] = self._rounds[index]
            choices.append(choice)
        reply = {
            "id": id,
            "object": self._dialect.reply_object,
            "created": created,
            "model": model,
            "system_fingerprint": None,
            "choices": choices,
            "usage": self._usage,
        }
        return reply if self._metrics is None else reply | {"metrics": self._metrics}
