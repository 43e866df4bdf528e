"""Engine events to chunks, and chunks to a whole reply.

Streams send the chunks; a reply that is not streamed is a fold over the same chunks, so nothing is written twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from engine.types import FinishReason, RoundTrace, SpeculationStats, TokenEvent, TokenLogprobs
from server.openai.replies.logprobs import Offsets, TokenNames, chat_logprobs, completion_logprobs, prompt_logprobs
from server.openai.replies.parsers import Delta, Parser, ReasoningParser


class Whole(Protocol):
    """Gathers the chunks of one choice for a reply that is not streamed."""

    def add(self, choice: dict[str, Any]) -> None: ...

    def choice(self, index: int, reason: str | None) -> dict[str, Any]: ...


class Dialect(Protocol):
    """What differs between chat and completions. Choices are the JSON objects inside `choices`."""

    id_prefix: str
    reply_object: str
    chunk_object: str
    prompt_param: str

    def opening(self, index: int, echo: str) -> dict[str, Any] | None:
        """The first chunk's choice, before any text; None where there is none."""

    def piece(self, index: int, delta: Delta) -> dict[str, Any]: ...

    def logprobs(self, found: Sequence[TokenLogprobs], names: TokenNames, offsets: Offsets) -> dict[str, Any]: ...

    def finish(self, index: int, reason: str) -> dict[str, Any]: ...

    def whole(self) -> Whole: ...


class _Chat:
    """`call_id` makes the ids of tool calls."""

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
            both = {"reasoning_content": delta.reasoning, "reasoning": delta.reasoning}
            return _chat_chunk(index, both if delta.reasoning else {"content": delta.content})
        call: dict[str, Any] = {"index": delta.call}
        if delta.name is not None:
            call |= {"id": self._call_id(), "type": "function"}
            call["function"] = {"name": delta.name, "arguments": delta.arguments}
        else:
            call["function"] = {"arguments": delta.arguments}
        return _chat_chunk(index, {"tool_calls": [call]})

    def logprobs(self, found: Sequence[TokenLogprobs], names: TokenNames, offsets: Offsets) -> dict[str, Any]:
        return chat_logprobs(found, names)

    def finish(self, index: int, reason: str) -> dict[str, Any]:
        return _chat_chunk(index, {}, reason)

    def whole(self) -> Whole:
        return _WholeMessage()


def _chat_chunk(index: int, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}


@dataclass(slots=True)
class _WholeMessage:
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

    def choice(self, index: int, reason: str | None) -> dict[str, Any]:
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

    def logprobs(self, found: Sequence[TokenLogprobs], names: TokenNames, offsets: Offsets) -> dict[str, Any]:
        return completion_logprobs(found, names, offsets)

    def finish(self, index: int, reason: str) -> dict[str, Any]:
        return _text_choice(index, "", reason)

    def whole(self) -> Whole:
        return _WholeText()


def _text_choice(index: int, text: str, reason: str | None = None) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": reason}


@dataclass(slots=True)
class _WholeText:
    text: list[str] = field(default_factory=list)
    logprobs: dict[str, list[Any]] | None = None

    def add(self, choice: dict[str, Any]) -> None:
        self.text.append(choice["text"])
        if choice["logprobs"] is not None:
            self.logprobs = self.logprobs or {key: [] for key in choice["logprobs"]}
            for key, values in choice["logprobs"].items():
                self.logprobs[key] += values

    def choice(self, index: int, reason: str | None) -> dict[str, Any]:
        return _text_choice(index, "".join(self.text), reason) | {"logprobs": self.logprobs}


# Chat templates of Mistral's models refuse ids of calls that have not just so many letters and digits.
MISTRAL_ID = 9
CHAT: Dialect = _Chat(lambda: f"call_{uuid.uuid4().hex[:24]}")
MISTRAL_CHAT: Dialect = _Chat(lambda: uuid.uuid4().hex[:MISTRAL_ID])
COMPLETION: Dialect = _Completion()


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event of a stream: a piece of one choice, or (choice None) the usage at the end."""

    choice: dict[str, Any] | None
    usage: dict[str, Any] | None = None
    metrics: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """What a reply is made like. `prompt_lengths` are in tokens, one per prompt, each with `n` choices."""

    dialect: Dialect
    prompt_lengths: Sequence[int]
    n: int = 1
    parser: Callable[[], Parser | None] = lambda: None  # of one choice's text; None: text is only text
    most_calls: int | None = None  # tools that one message may call
    names: TokenNames | None = None  # where log-probabilities are shown
    echoes: Sequence[str] = ()  # what precedes the answers to each prompt
    scored_from: Sequence[int] = ()  # the first token of each prompt, where echoes have log-probabilities
    special: bool = False  # whether special tokens are in the text
    mute: bool = False  # only the prompt was asked about: what the engine said does not count

    @property
    def choices(self) -> int:
        return len(self.prompt_lengths) * self.n


class _Choice:
    """One choice on its way: what was made of its text so far."""

    def __init__(self, form: Form, index: int) -> None:
        self.form, self.index = form, index
        self.echo = form.echoes[index // form.n] if form.echoes else ""
        self.parser = form.parser()
        self.offsets = Offsets(len(self.echo), special=form.special)
        self.calls = 0
        self.reasoning_tokens = 0
        self.last: TokenEvent | None = None

    def pieces(self, event: TokenEvent) -> list[dict[str, Any]]:
        """The choices of the chunks of one event, but for the end of the last."""
        form, dialect, index = self.form, self.form.dialect, self.index
        pieces = [dialect.piece(index, delta) for delta in self._deltas(event)]
        if form.names is not None and event.logprobs and not form.mute:
            if not pieces:
                pieces.append(dialect.piece(index, Delta()))
            pieces[0]["logprobs"] = dialect.logprobs(event.logprobs, form.names, self.offsets)
        if event.trace is not None:
            if not pieces:
                pieces.append(dialect.piece(index, Delta()))
            pieces[0]["round"] = _round(event, event.trace)
        return pieces

    def scores(self, event: TokenEvent) -> dict[str, Any]:
        """The log-probabilities of the echo, which come with the first event; nothing where they are not asked for."""
        form = self.form
        if form.names is None or not form.scored_from:
            return {}
        first = form.scored_from[self.index // form.n]
        return {"logprobs": prompt_logprobs(first, event.prompt_logprobs, form.names, self.echo)}

    @property
    def _thinking(self) -> bool:
        return isinstance(self.parser, ReasoningParser) and self.parser.thinking

    def _deltas(self, event: TokenEvent) -> list[Delta]:
        if self.form.mute:
            return []
        if self.parser is None:
            return [Delta(content=event.text)] if event.text else []
        deltas: list[Delta] = []
        for piece in event.pieces or (event.text,):  # token by token, so that nothing depends on how many came at once
            thinking = self._thinking
            deltas += self.parser.push(piece) if piece else []
            self.reasoning_tokens += thinking or self._thinking
        if event.finish_reason is not None:
            deltas += self.parser.finish()
        most = self.form.most_calls
        deltas = [delta for delta in deltas if delta.call is None or most is None or delta.call < most]
        self.calls = max([self.calls, *(delta.call + 1 for delta in deltas if delta.call is not None)])
        return deltas

    def reason(self, reason: FinishReason) -> str:
        if self.form.mute:
            return FinishReason.LENGTH.value
        return "tool_calls" if self.calls and reason is FinishReason.STOP else reason.value

    @property
    def completion_tokens(self) -> int:
        return 0 if self.form.mute or self.last is None else self.last.completion_tokens


class Chunker:
    """Turns the events of all choices of one reply, in the order they come, into chunks.

    `include_usage` says whether a usage chunk ends the reply. The speculation figures of a single choice ride on the
    last chunk, those of several in each choice.
    """

    def __init__(self, form: Form, include_usage: bool) -> None:
        self._form = form
        self._single = form.choices == 1
        self._include_usage = include_usage
        self._choices: dict[int, _Choice] = {}

    def step(self, index: int, event: TokenEvent) -> list[Chunk]:
        """The chunks of one event of choice `index`; none where its text is still held back."""
        chunks: list[Chunk] = []
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = _Choice(self._form, index)
            if (opening := self._form.dialect.opening(index, choice.echo)) is not None:
                chunks.append(Chunk(opening | choice.scores(event)))
        choice.last = event
        chunks += [Chunk(piece) for piece in choice.pieces(event)]
        if event.finish_reason is not None:
            end = self._form.dialect.finish(index, choice.reason(event.finish_reason))
            metrics = _metrics(event.speculation)
            if not self._single:
                end["metrics"] = metrics
            chunks.append(Chunk(end, metrics=metrics if self._single and not self._include_usage else None))
        return chunks

    def end(self) -> list[Chunk]:
        """What follows the last choice's last chunk."""
        if not self._include_usage:
            return []
        last = self._choices[0].last
        metrics = _metrics(last.speculation if last else None) if self._single else None
        return [Chunk(None, usage=self._usage(), metrics=metrics)]

    def _usage(self) -> dict[str, Any]:
        """Completion tokens of all choices; every prompt once, with what its first choice found in the prefix cache."""
        prompt = sum(self._form.prompt_lengths)
        completion = sum(choice.completion_tokens for choice in self._choices.values())
        last = [choice.last for choice in self._choices.values() if choice.last]
        first = [choice.last for index, choice in self._choices.items() if index % self._form.n == 0]
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


def _round(event: TokenEvent, trace: RoundTrace) -> dict[str, Any]:
    last = len(event.pieces) - 1
    return {
        "tokens": [(piece, position == last) for position, piece in enumerate(event.pieces)],
        "drafted": trace.drafted,
        "accepted": trace.accepted,
        "context": trace.context,
        "plan": _digits(trace.plan),
        "predicted_tpt": trace.predicted_tpt,
        "source": trace.source,
    }


def _metrics(speculation: SpeculationStats | None) -> dict[str, Any]:
    if speculation is None:
        return {"speculative_decoding": None}
    return {"speculative_decoding": asdict(speculation) | {"plan": _digits(speculation.plan)}}


def _digits(plan: tuple[int, ...] | None) -> str | None:
    return None if plan is None else "".join(map(str, plan))


class Fold:
    """Gathers the chunks of a reply into the object that is sent without streaming."""

    def __init__(self, form: Form) -> None:
        self._dialect = form.dialect
        self._wholes = [form.dialect.whole() for _ in range(form.choices)]
        self._finish: list[str | None] = [None] * form.choices
        self._choice_metrics: dict[int, dict[str, Any]] = {}
        self._rounds: dict[int, list[dict[str, Any]]] = {}
        self._usage: dict[str, Any] | None = None
        self._metrics: dict[str, Any] | None = None

    def add(self, chunk: Chunk) -> None:
        choice = chunk.choice
        if choice is not None:
            index = choice["index"]
            self._wholes[index].add(choice)
            self._finish[index] = choice["finish_reason"] or self._finish[index]
            if "metrics" in choice:
                self._choice_metrics[index] = choice["metrics"]
            if "round" in choice:
                self._rounds.setdefault(index, []).append(choice["round"])
        self._usage = chunk.usage or self._usage
        self._metrics = chunk.metrics or self._metrics

    def reply(self, id: str, created: int, model: str) -> dict[str, Any]:
        choices = []
        for index, whole in enumerate(self._wholes):
            choice = whole.choice(index, self._finish[index])
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
