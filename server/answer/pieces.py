"""The events of the engine become pieces of an answer, in chunks as a stream sends them."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum

from engine.types import FinishReason, RequestRound, SpeculationStats, TokenEvent
from server.answer.logprobs import (
    Json,
    Logprobs,
    LogprobsFormat,
    TextOffsets,
    TokenTexts,
    chat_logprobs,
    prompt_logprobs,
)
from server.answer.parsers import Delta, Parser, ReasoningParser
from server.answer.repeats import RepeatedCalls


@dataclass(slots=True)
class Piece:
    """A piece of one choice. The last piece has the finish reason, and no text."""

    index: int
    delta: Delta = Delta()
    opening: bool = False
    logprobs: Logprobs | None = None
    finish_reason: str | None = None
    stop_string: str | None = None  # stop string that ended the answer
    unfinished_call: bool = False  # the answer ended within its last call
    round: Json | None = None  # figures of the round that generated the piece, if the client wants them
    metrics: Json | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event of a stream: a piece of one choice, perhaps with the usage so far; at the end, only the usage."""

    piece: Piece | None
    usage: Json | None = None
    metrics: Json | None = None


class Usage(Enum):
    """Which chunks of a reply have the usage so far."""

    NEVER = "never"
    AT_END = "at the end"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """Everything that determines how engine events become a reply. Each prompt has `n` choices."""

    prompt_lengths: Sequence[int] = ()  # tokens of each prompt
    n: int = 1
    opens: bool = True  # each choice begins with a piece of its own
    parser: Callable[[], Parser | None] = lambda: None  # makes the parser of a choice; None: plain text
    max_calls: int | None = None  # tool calls in one message; None: no limit
    must_call: bool = False  # a call that repeats an earlier one ends the answer
    token_texts: TokenTexts | None = None  # None: no log-probabilities
    logprobs: LogprobsFormat = chat_logprobs
    echoes: Sequence[str] = ()  # text before the answers to each prompt
    echo_first_tokens: Sequence[int] = ()  # first token of each prompt, if echoes have log-probabilities
    shows_special: bool = False  # special tokens are part of the text
    prompt_only: bool = False  # max_tokens is 0: drop the token that the engine generates

    @property
    def choices(self) -> int:
        return len(self.prompt_lengths) * self.n


class _ChoiceState:
    def __init__(self, format: ReplyFormat, index: int) -> None:
        self.format, self.index = format, index
        self.echo = format.echoes[index // format.n] if format.echoes else ""
        self.parser = format.parser()
        self.offsets = TextOffsets(len(self.echo), special=format.shows_special)
        self.calls = 0
        self.repeats = RepeatedCalls() if format.must_call and format.max_calls is None else None
        self.surplus = 0  # tokens of the last event after the end of the answer
        self.unfinished_call = False  # the last call, at the end of the answer
        self.reasoning_tokens = 0
        self.last: TokenEvent | None = None

    def opening(self, event: TokenEvent) -> list[Piece]:
        """Return the piece before the first event's text, if the endpoint has one or the prompt is echoed."""
        format = self.format
        if not (format.opens or self.echo):
            return []
        piece = Piece(self.index, Delta(content=self.echo), opening=True)
        if format.token_texts is not None and format.echo_first_tokens:
            first = format.echo_first_tokens[self.index // format.n]
            piece.logprobs = prompt_logprobs(first, event.prompt_logprobs, format.token_texts, self.echo)
        return [piece]

    def pieces(self, event: TokenEvent) -> list[Piece]:
        """Return the pieces of one event, without the finish reason."""
        format = self.format
        pieces = [Piece(self.index, delta) for delta in self._parse(event)]
        texts = format.token_texts if event.logprobs and not format.prompt_only else None
        if not pieces and (texts is not None or event.trace is not None):
            pieces.append(Piece(self.index))
        if texts is not None:
            logprobs = event.logprobs[: len(event.logprobs) - self.surplus]
            pieces[0].logprobs = format.logprobs(logprobs, texts, self.offsets)
        if event.trace is not None:
            pieces[0].round = _round(event, event.trace)
        return pieces

    @property
    def _thinking(self) -> bool:
        return isinstance(self.parser, ReasoningParser) and self.parser.thinking

    def _parse(self, event: TokenEvent) -> list[Delta]:
        if self.format.prompt_only:
            return []
        if self.parser is None:
            return [Delta(content=event.text)] if event.text else []
        deltas: list[Delta] = []
        limit = self.format.max_calls
        texts = event.pieces or (event.text,)
        # Token by token, so that the result does not depend on how many tokens an event has.
        for position, piece in enumerate(texts):
            thinking = self._thinking
            found = self.parser.push(piece) if piece else []
            self.reasoning_tokens += thinking or self._thinking
            deltas += found if self.repeats is None else self.repeats.push(found, complete=not self.parser.calling)
            if self.repeating:
                self.surplus = len(texts) - position - 1
                break
        if event.finish_reason is not None and not self.repeating:
            self.unfinished_call = self.parser.calling
            stop = event.stop_string or ""
            found = self.parser.finish(cut=bool(stop) or event.finish_reason is FinishReason.LENGTH, stop=stop)
            if self.repeats is not None:
                found = [*self.repeats.push(found, complete=not self.unfinished_call), *self.repeats.finish()]
            deltas += found
        self.calls = max([self.calls, *(delta.call + 1 for delta in deltas if delta.call is not None)])
        if limit is not None and self.calls > limit:
            self.unfinished_call = False  # the call that is left out
        return [delta for delta in deltas if delta.call is None or limit is None or delta.call < limit]

    def finish_reason(self, reason: FinishReason) -> str:
        if self.format.prompt_only:
            return FinishReason.LENGTH.value
        if self.repeating:
            return "tool_calls"
        called = self.calls and not self.unfinished_call
        return "tool_calls" if called and reason is FinishReason.STOP else reason.value

    @property
    def repeating(self) -> bool:
        """Whether the answer ends because a call is equal to an earlier one."""
        return self.repeats is not None and self.repeats.found

    @property
    def completion_tokens(self) -> int:
        return 0 if self.format.prompt_only or self.last is None else self.last.completion_tokens - self.surplus


class Chunker:
    """Convert the events of all choices of one reply into chunks, in the order of the events.

    Unless `usage` is NEVER, a usage chunk ends the reply. The last chunk has the speculation metrics of a single
    choice; several choices have their own.
    """

    def __init__(self, format: ReplyFormat, usage: Usage) -> None:
        self._format = format
        self._single = format.choices == 1
        self._usage = usage
        self._choices: dict[int, _ChoiceState] = {}

    def step(self, index: int, event: TokenEvent) -> list[Chunk]:
        """Return the chunks of one event of choice `index`: none while the parser holds its text back."""
        choice, pieces = self._choices.get(index), []
        if choice is None:
            choice = self._choices[index] = _ChoiceState(self._format, index)
            pieces = choice.opening(event)
        elif choice.repeating:
            return []  # more of an answer that has ended
        choice.last = event
        usage = self._count() if self._usage is Usage.ALWAYS else None
        chunks = [Chunk(piece, usage) for piece in [*pieces, *choice.pieces(event)]]
        if event.finish_reason is not None or choice.repeating:
            metrics = _metrics(event.speculation)
            reason = choice.finish_reason(event.finish_reason or FinishReason.STOP)
            end = Piece(
                index,
                finish_reason=reason,
                stop_string=event.stop_string,
                unfinished_call=choice.unfinished_call,
            )
            if not self._single:
                end.metrics = metrics
            last = self._single and self._usage is Usage.NEVER
            chunks.append(Chunk(end, usage, metrics=metrics if last else None))
        return chunks

    def repeats(self, index: int) -> bool:
        """Whether choice `index` has ended by a repeated call, although its request has not."""
        return self._choices[index].repeating

    def end(self) -> list[Chunk]:
        """Return the chunks after all choices have finished."""
        if self._usage is Usage.NEVER:
            return []
        last = self._choices[0].last
        metrics = _metrics(last.speculation if last else None) if self._single else None
        return [Chunk(None, usage=self._count(), metrics=metrics)]

    def _count(self) -> Json:
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


def _round(event: TokenEvent, trace: RequestRound) -> Json:
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


def _metrics(speculation: SpeculationStats | None) -> Json:
    if speculation is None:
        return {"speculative_decoding": None}
    return {"speculative_decoding": asdict(speculation) | {"plan": _plan_digits(speculation.plan)}}


def _plan_digits(plan: tuple[int, ...] | None) -> str | None:
    return None if plan is None else "".join(map(str, plan))
