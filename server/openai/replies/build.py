"""Convert engine events to the chunks of a reply."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from engine.types import FinishReason, RequestRound, SpeculationStats, TokenEvent
from server.openai.replies.endpoints import Endpoint, Json, Piece
from server.openai.replies.logprobs import TextOffsets, TokenTexts, prompt_logprobs
from server.openai.replies.parsers import Delta, Parser, ReasoningParser


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event of a stream: a piece of one choice, or the usage at the end (`piece` is None)."""

    piece: Piece | None
    usage: Json | None = None
    metrics: Json | None = None


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """Everything that determines how engine events become a reply. Each prompt has `n` choices."""

    endpoint: Endpoint
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
    def __init__(self, format: ReplyFormat, index: int) -> None:
        self.format, self.index = format, index
        self.echo = format.echoes[index // format.n] if format.echoes else ""
        self.parser = format.parser()
        self.offsets = TextOffsets(len(self.echo), special=format.shows_special)
        self.calls = 0
        self.reasoning_tokens = 0
        self.last: TokenEvent | None = None

    def opening(self, event: TokenEvent) -> list[Piece]:
        """Return the piece before the first event's text, if the endpoint has one or the prompt is echoed."""
        format = self.format
        if not (format.endpoint.opens or self.echo):
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
            pieces[0].logprobs = format.endpoint.logprobs(event.logprobs, texts, self.offsets)
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
        choice, pieces = self._choices.get(index), []
        if choice is None:
            choice = self._choices[index] = _ChoiceState(self._format, index)
            pieces = choice.opening(event)
        choice.last = event
        chunks = [Chunk(piece) for piece in [*pieces, *choice.pieces(event)]]
        if event.finish_reason is not None:
            metrics = _metrics(event.speculation)
            end = Piece(index, finish_reason=choice.finish_reason(event.finish_reason))
            if not self._single:
                end.metrics = metrics
            chunks.append(Chunk(end, metrics=metrics if self._single and not self._include_usage else None))
        return chunks

    def end(self) -> list[Chunk]:
        """Return the chunks after all choices have finished."""
        if not self._include_usage:
            return []
        last = self._choices[0].last
        metrics = _metrics(last.speculation if last else None) if self._single else None
        return [Chunk(None, usage=self._usage(), metrics=metrics)]

    def _usage(self) -> Json:
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
