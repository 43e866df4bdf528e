"""Engine events to chunks, and chunks to a whole reply.

Streams send the chunks; a reply that is not streamed is a fold over the same chunks, so nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from engine.types import SpeculationStats, TokenEvent


class Dialect(Protocol):
    """What differs between chat and completions. Choices are the JSON objects inside `choices`."""

    id_prefix: str
    reply_object: str
    chunk_object: str
    prompt_param: str

    def opening(self, index: int) -> dict[str, Any] | None:
        """The first chunk's choice, before any text; None where there is none."""
        ...

    def text(self, index: int, text: str) -> dict[str, Any]: ...

    def finish(self, index: int, reason: str) -> dict[str, Any]: ...

    def text_of(self, choice: dict[str, Any]) -> str:
        """The text a chunk's choice carries."""
        ...

    def whole(self, index: int, text: str, reason: str | None) -> dict[str, Any]:
        """The choice of a reply that is not streamed."""
        ...


class _Chat:
    id_prefix = "chatcmpl"
    reply_object = "chat.completion"
    chunk_object = "chat.completion.chunk"
    prompt_param = "messages"

    def opening(self, index: int) -> dict[str, Any] | None:
        return self._chunk(index, {"role": "assistant", "content": "", "refusal": None})

    def text(self, index: int, text: str) -> dict[str, Any]:
        return self._chunk(index, {"content": text})

    def finish(self, index: int, reason: str) -> dict[str, Any]:
        return self._chunk(index, {}, reason)

    def text_of(self, choice: dict[str, Any]) -> str:
        return str(choice["delta"].get("content", ""))

    def whole(self, index: int, text: str, reason: str | None) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        return {"index": index, "message": message, "logprobs": None, "finish_reason": reason}

    @staticmethod
    def _chunk(index: int, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}


class _Completion:
    id_prefix = "cmpl"
    reply_object = "text_completion"
    chunk_object = "text_completion"
    prompt_param = "prompt"

    def opening(self, index: int) -> dict[str, Any] | None:
        return None

    def text(self, index: int, text: str) -> dict[str, Any]:
        return self.whole(index, text, None)

    def finish(self, index: int, reason: str) -> dict[str, Any]:
        return self.whole(index, "", reason)

    def text_of(self, choice: dict[str, Any]) -> str:
        return str(choice["text"])

    def whole(self, index: int, text: str, reason: str | None) -> dict[str, Any]:
        return {"index": index, "text": text, "logprobs": None, "finish_reason": reason}


CHAT: Dialect = _Chat()
COMPLETION: Dialect = _Completion()


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event of a stream: a piece of one choice, or (choice None) the usage at the end."""

    choice: dict[str, Any] | None
    usage: dict[str, Any] | None = None
    metrics: dict[str, Any] | None = None


class Chunker:
    """Turns the events of all choices of one reply, in the order they come, into chunks.

    `prompt_lengths` are in tokens, one per prompt, each with `n` choices. `include_usage` says whether a usage chunk
    ends the reply. The speculation figures of a single choice ride on the last chunk, those of several in each choice.
    """

    def __init__(self, dialect: Dialect, prompt_lengths: Sequence[int], n: int, include_usage: bool) -> None:
        self._dialect = dialect
        self._prompt_tokens = sum(prompt_lengths)
        self._n = n
        self._single = len(prompt_lengths) * n == 1
        self._include_usage = include_usage
        self._last: dict[int, TokenEvent] = {}

    def step(self, index: int, event: TokenEvent) -> list[Chunk]:
        """The chunks of one event of choice `index`; none where its text is still held back."""
        chunks: list[Chunk] = []
        if index not in self._last and (opening := self._dialect.opening(index)) is not None:
            chunks.append(Chunk(opening))
        self._last[index] = event
        if event.text:
            chunks.append(Chunk(self._dialect.text(index, event.text)))
        if event.finish_reason is not None:
            choice = self._dialect.finish(index, event.finish_reason.value)
            metrics = _metrics(event.speculation)
            if not self._single:
                choice["metrics"] = metrics
            chunks.append(Chunk(choice, metrics=metrics if self._single and not self._include_usage else None))
        return chunks

    def end(self) -> list[Chunk]:
        """What follows the last choice's last chunk."""
        if not self._include_usage:
            return []
        metrics = _metrics(self._last[0].speculation) if self._single else None
        return [Chunk(None, usage=self._usage(), metrics=metrics)]

    def _usage(self) -> dict[str, Any]:
        """Completion tokens of all choices; every prompt once, with what its first choice found in the prefix cache."""
        completion = sum(event.completion_tokens for event in self._last.values())
        cached = sum(event.cached_tokens for index, event in self._last.items() if index % self._n == 0)
        return {
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self._prompt_tokens + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
                "reasoning_tokens": 0,
            },
        }


def _metrics(speculation: SpeculationStats | None) -> dict[str, Any]:
    return {"speculative_decoding": None if speculation is None else asdict(speculation)}


class Fold:
    """Gathers the chunks of a reply into the object that is sent without streaming."""

    def __init__(self, dialect: Dialect, choices: int) -> None:
        self._dialect = dialect
        self._texts: list[list[str]] = [[] for _ in range(choices)]
        self._finish: list[str | None] = [None] * choices
        self._choice_metrics: dict[int, dict[str, Any]] = {}
        self._usage: dict[str, Any] | None = None
        self._metrics: dict[str, Any] | None = None

    def add(self, chunk: Chunk) -> None:
        choice = chunk.choice
        if choice is not None:
            index = choice["index"]
            self._texts[index].append(self._dialect.text_of(choice))
            self._finish[index] = choice["finish_reason"] or self._finish[index]
            if "metrics" in choice:
                self._choice_metrics[index] = choice["metrics"]
        self._usage = chunk.usage or self._usage
        self._metrics = chunk.metrics or self._metrics

    def reply(self, id: str, created: int, model: str) -> dict[str, Any]:
        choices = []
        for index, texts in enumerate(self._texts):
            choice = self._dialect.whole(index, "".join(texts), self._finish[index])
            if index in self._choice_metrics:
                choice["metrics"] = self._choice_metrics[index]
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
