"""The output of a round: collected by the scheduler at once, turned into text and events when there is time."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.request import Request
from engine.types import FinishReason, RequestFailure, RequestRound, RequestTiming, TokenEvent, TokenLogprobs


@dataclass(slots=True)
class RequestOutput:
    """One request's part of a committed round. Its text is made before the text of the request's next round.

    It holds copies of values that later rounds, a preemption or a cancellation would change.
    """

    request: Request
    round: RequestRound
    tokens: tuple[int, ...]
    pieces: list[str] | None  # their text, if stop strings made it necessary already
    hidden: bool  # whether the last token ends the answer and has no text
    finish_reason: FinishReason | None
    completion_tokens: int
    logprobs: tuple[TokenLogprobs, ...]
    prompt_logprobs: tuple[TokenLogprobs, ...]

    def event(self) -> TokenEvent:
        """Make the event for the request's client; call once."""
        request = self.request
        pieces = self._pieces()
        done = self.finish_reason is not None
        return TokenEvent(
            request_id=request.id,
            text="".join(pieces),
            token_ids=self.tokens,
            pieces=tuple(pieces),
            finish_reason=self.finish_reason,
            prompt_tokens=len(request.prompt),
            completion_tokens=self.completion_tokens,
            cached_tokens=request.cached_tokens,
            speculation=request.speculation() if done else None,
            timing=_timing(request) if done else None,
            logprobs=self.logprobs,
            accepted_predictions=request.accepted_predictions if done else 0,
            rejected_predictions=request.rejected_predictions if done else 0,
            trace=self.round if request.sampling.trace else None,
            prompt_logprobs=self.prompt_logprobs,
        )

    def _pieces(self) -> list[str]:
        """Return the text that became certain with each token."""
        detokenizer, pieces = self.request.detokenizer, self.pieces
        if pieces is None:
            pieces = [detokenizer.push(token) for token in (self.tokens[:-1] if self.hidden else self.tokens)]
            if self.hidden:
                pieces.append("")
        if self.finish_reason is not None:
            pieces[-1] += detokenizer.finish()
        return pieces


@dataclass(slots=True)
class Commit:
    """The result of a round: figures at once, events on demand."""

    outputs: list[RequestOutput | RequestFailure]
    rounds: list[RequestRound]

    def events(self) -> tuple[TokenEvent | RequestFailure, ...]:
        """Make the events; call once, and before those of the next round."""
        return tuple(each.event() if isinstance(each, RequestOutput) else each for each in self.outputs)


def _timing(request: Request) -> RequestTiming:
    admitted = request.admitted or request.arrival
    first = request.first_token or admitted
    return RequestTiming(admitted - request.arrival, first - admitted, (request.last_token or first) - first)
