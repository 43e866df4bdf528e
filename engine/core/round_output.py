"""What a round had a request say: kept by the scheduler at once, made text and an event when there is time for it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.request import Request
from engine.step import Work
from engine.types import (
    FinishReason,
    RequestFailure,
    RequestRound,
    RequestTiming,
    RoundTrace,
    TokenEvent,
    TokenLogprobs,
)


@dataclass(slots=True)
class Emission:
    """One request's part of a committed round. Its text is made before that of the request's next one.

    Holds what later rounds, a preemption or a cancellation would change.
    """

    request: Request
    work: Work
    round: RequestRound
    tokens: tuple[int, ...]
    pieces: list[str] | None  # their text, where stop strings had to be looked for; None: to be made
    hidden: bool  # whether the last token has no text: it ends the answer
    finish_reason: FinishReason | None
    completion_tokens: int
    logprobs: tuple[TokenLogprobs, ...]
    prompt_logprobs: tuple[TokenLogprobs, ...]

    def event(self) -> TokenEvent:
        """What the request's client gets; to be called once."""
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
            trace=self._trace() if request.sampling.trace else None,
            prompt_logprobs=self.prompt_logprobs,
        )

    def _pieces(self) -> list[str]:
        """The text that became certain with each token."""
        detokenizer, pieces = self.request.detokenizer, self.pieces
        if pieces is None:
            pieces = [detokenizer.push(token) for token in (self.tokens[:-1] if self.hidden else self.tokens)]
            if self.hidden:
                pieces.append("")
        if self.finish_reason is not None:
            pieces[-1] += detokenizer.finish()
        return pieces

    def _trace(self) -> RoundTrace:
        work, part = self.work, self.round
        plan = work.plan.variants if work.plan and not work.copied else None
        source = part.source if part.drafted else None
        return RoundTrace(part.drafted, part.accepted, part.context_length, plan, part.predicted_tpt, source)


@dataclass(slots=True)
class Commit:
    """What a round came to: figures at once, events when they are asked for."""

    said: list[Emission | RequestFailure]
    rounds: list[RequestRound]

    def events(self) -> tuple[TokenEvent | RequestFailure, ...]:
        """To be called once, before that of the next round."""
        return tuple(each.event() if isinstance(each, Emission) else each for each in self.said)


def _timing(request: Request) -> RequestTiming:
    admitted = request.admitted or request.arrival
    first = request.first_token or admitted
    return RequestTiming(admitted - request.arrival, first - admitted, (request.last_token or first) - first)
