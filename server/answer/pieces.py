"""The events of the engine become pieces of answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.types import FinishReason, SpeculationStats, TokenEvent, TokenLogprobs
from server.answer.parsers import Delta, Parser
from server.answer.repeats import RepeatedCalls


@dataclass(frozen=True, slots=True)
class Finish:
    """How an answer ended."""

    reason: FinishReason
    called: bool  # the model has called tools, and waits for their results
    unfinished_call: bool  # the answer ended within its last call
    stop_string: str | None  # stop string that ended the answer
    speculation: SpeculationStats | None


@dataclass(slots=True)
class Piece:
    """A piece of one choice. The last piece says how the choice ended, and has no text."""

    index: int
    delta: Delta = Delta()
    opening: bool = False
    logprobs: Sequence[TokenLogprobs] = ()  # one for each token since the last piece; an opening has the prompt's
    event: TokenEvent | None = None  # its first piece has the event, if the client wants the figures of its round
    finish: Finish | None = None


@dataclass(slots=True)
class Usage:
    """Tokens of all choices of a reply, so far."""

    prompt: int  # each prompt counts once
    cached: int  # prompt tokens taken from the prefix cache
    completion: int
    reasoning: int  # completion tokens of thoughts
    accepted_predictions: int
    rejected_predictions: int


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """Everything that determines how engine events become pieces. Each prompt has `n` choices."""

    prompt_lengths: Sequence[int] = ()  # tokens of each prompt
    n: int = 1
    opens: bool = True  # each choice begins with a piece of its own
    parser: Callable[[], Parser | None] = lambda: None  # makes the parser of a choice; None: plain text
    max_calls: int | None = None  # tool calls in one message; None: no limit
    must_call: bool = False  # a call that repeats an earlier one ends the answer
    prompt_only: bool = False  # max_tokens is 0: drop the token that the engine generates

    @property
    def choices(self) -> int:
        return len(self.prompt_lengths) * self.n


class _Answer:
    def __init__(self, format: ReplyFormat, index: int, event: TokenEvent) -> None:
        self.format, self.index = format, index
        self.last = event
        self.parser = format.parser()
        self.calls = 0
        self.repeats = RepeatedCalls() if format.must_call and format.max_calls is None else None
        self.surplus = 0  # tokens of the last event after the end of the answer
        self.unfinished_call = False  # the last call, at the end of the answer
        self.reasoning_tokens = 0

    def pieces(self, event: TokenEvent) -> list[Piece]:
        """Return the pieces of one event. With log-probabilities, tokens after the last text have a piece too."""
        self.last = event
        deltas = [] if self.format.prompt_only else self._parse(event)
        if event.logprobs and not self.format.prompt_only:
            pieces = self._scored(deltas, event.logprobs)
        else:
            pieces = [Piece(self.index, delta) for delta, _ in deltas]
        if event.trace is not None:
            pieces = pieces or [Piece(self.index)]
            pieces[0].event = event
        if event.finish_reason is not None or self.repeating:
            pieces.append(Piece(self.index, finish=self._finish(event)))
        return pieces

    def _scored(self, deltas: Sequence[tuple[Delta, int]], logprobs: Sequence[TokenLogprobs]) -> list[Piece]:
        """Return pieces with the log-probabilities of their tokens."""
        pieces, begin, count = [], 0, len(logprobs)
        for delta, later in deltas:
            pieces.append(Piece(self.index, delta, logprobs=logprobs[begin : count - later]))
            begin = count - later
        if rest := logprobs[begin : count - self.surplus]:
            pieces.append(Piece(self.index, logprobs=rest))
        return pieces

    def _parse(self, event: TokenEvent) -> list[tuple[Delta, int]]:
        """Return deltas, each with the number of the event's tokens that come after it."""
        texts = event.pieces or (event.text,)
        hidden = int(event.finish_reason is not None and not texts[-1])  # whether the last token has no text
        if self.parser is None:
            return [(Delta(content=event.text), hidden)] if event.text else []
        found = self._read(self.parser, texts)
        if event.finish_reason is not None and not self.repeating:
            found += [(delta, hidden) for delta in self._close(self.parser, event)]
        return self._within_limit(found)

    def _read(self, parser: Parser, texts: Sequence[str]) -> list[tuple[Delta, int]]:
        """Parse token by token, so that the result does not depend on how many tokens an event has."""
        found: list[tuple[Delta, int]] = []
        for later, text in zip(reversed(range(len(texts))), texts, strict=True):
            thinking = parser.thinking
            deltas = parser.push(text) if text else []
            self.reasoning_tokens += thinking or parser.thinking
            if self.repeats is not None:
                deltas = self.repeats.push(deltas, complete=not parser.calling)
            found += [(delta, later) for delta in deltas]
            if self.repeating:
                self.surplus = later
                break
        return found

    def _close(self, parser: Parser, event: TokenEvent) -> list[Delta]:
        """Return the deltas of the text that is held back at the end."""
        self.unfinished_call = parser.calling
        stop = event.stop_string or ""
        deltas = parser.finish(cut=bool(stop) or event.finish_reason is FinishReason.LENGTH, stop=stop)
        if self.repeats is not None:
            deltas = [*self.repeats.push(deltas, complete=not self.unfinished_call), *self.repeats.finish()]
        return deltas

    def _within_limit(self, found: list[tuple[Delta, int]]) -> list[tuple[Delta, int]]:
        """Count the calls, and leave out those beyond the limit."""
        self.calls = max([self.calls, *(delta.call + 1 for delta, _ in found if delta.call is not None)])
        limit = self.format.max_calls
        if limit is None or self.calls <= limit:
            return found
        self.unfinished_call = False  # the call that is left out
        return [(delta, later) for delta, later in found if delta.call is None or delta.call < limit]

    def _finish(self, event: TokenEvent) -> Finish:
        reason = FinishReason.STOP if self.repeating or event.finish_reason is None else event.finish_reason
        if self.format.prompt_only:
            reason = FinishReason.LENGTH
        return Finish(
            reason,
            called=self.calls > 0 and not self.unfinished_call and reason is FinishReason.STOP,
            unfinished_call=self.unfinished_call,
            stop_string=event.stop_string,
            speculation=event.speculation,
        )

    @property
    def repeating(self) -> bool:
        """Whether the answer ends because a call is equal to an earlier one."""
        return self.repeats is not None and self.repeats.found

    @property
    def completion_tokens(self) -> int:
        return 0 if self.format.prompt_only else self.last.completion_tokens - self.surplus


class Answers:
    """Convert the events of all choices of one reply into pieces, in the order of the events."""

    def __init__(self, format: ReplyFormat) -> None:
        self._format = format
        self._answers: dict[int, _Answer] = {}

    def step(self, index: int, event: TokenEvent) -> list[Piece]:
        """Return the pieces of one event of choice `index`: none while the parser holds its text back."""
        answer = self._answers.get(index)
        if answer is None:
            answer = self._answers[index] = _Answer(self._format, index, event)
            opening = [Piece(index, opening=True, logprobs=event.prompt_logprobs)] if self._format.opens else []
            return opening + answer.pieces(event)
        return [] if answer.repeating else answer.pieces(event)  # an answer that repeats a call has ended

    def repeats(self, index: int) -> bool:
        """Whether choice `index` has ended by a repeated call, although its request has not."""
        return self._answers[index].repeating

    def usage(self) -> Usage:
        """Count the tokens so far. Of a prompt's choices, the first has its cached tokens."""
        answers = self._answers.values()
        return Usage(
            prompt=sum(self._format.prompt_lengths),
            cached=sum(answer.last.cached_tokens for answer in answers if answer.index % self._format.n == 0),
            completion=sum(answer.completion_tokens for answer in answers),
            reasoning=sum(answer.reasoning_tokens for answer in answers),
            accepted_predictions=sum(answer.last.accepted_predictions for answer in answers),
            rejected_predictions=sum(answer.last.rejected_predictions for answer in answers),
        )
