"""Messages between server and engine.

Everything that crosses seam 1 (`GenerateRequest` in, `TokenEvent` and `RoundReport` out) is picklable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

from engine.errors import ContextLengthError, RequestError, RequestFailedError, UnknownPolicyError


class FinishReason(StrEnum):
    """Why a request ended, in OpenAI's words; `CANCELLED` never reaches a client."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are drawn and when to end. `max_tokens=None` means: as many as the context allows."""

    max_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1  # -1 or 0: off
    min_p: float = 0.0  # least share of the top token's probability
    seed: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    min_tokens: int = 0  # before the answer may end
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()  # (token id, added to its logit)
    grammar: str | None = None  # what llguidance takes; the answer is of it
    grammar_param: str = "response_format"  # what asked for it
    logprobs: int | None = None  # alternatives to report beside each token; None: no log-probabilities at all
    prompt_logprobs: bool = False  # of the prompt's tokens too; they are not taken from the prefix cache then
    skip_special_tokens: bool = True  # in the text
    predicted: tuple[int, ...] = ()  # tokens of an answer that the client expects: drafted by copying
    trace: bool = False  # events tell what drafting did in their round
    include_stop: bool = False  # in the text: the stop string or token that ended it

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0

    @property
    def edits_logits(self) -> bool:
        """Whether penalties, bias, a least length or a grammar change the model's distribution."""
        return self.penalises or bool(self.logit_bias or self.min_tokens or self.grammar is not None)

    @property
    def penalises(self) -> bool:
        """Whether any penalty is asked for: what was said before changes what is likely."""
        return any((self.presence_penalty, self.frequency_penalty, self.repetition_penalty - 1.0))

    @property
    def truncates(self) -> bool:
        """Whether top-k, top-p or min-p leave tokens out."""
        return self.temperature > 0.0 and (self.top_k > 0 or self.top_p < 1.0 or self.min_p > 0.0)


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One choice to generate. `draft_policy=None` takes the server's default policy."""

    id: str
    prompt: tuple[int, ...]
    sampling: SamplingParams = SamplingParams()
    draft_policy: str | None = None


@dataclass(frozen=True, slots=True)
class SpeculationStats:
    """What drafting did for one request (docs/api.md, `metrics.speculative_decoding`)."""

    policy: str
    num_rounds: int  # rounds that emitted tokens
    num_draft_tokens: int
    num_accepted_draft_tokens: int
    num_lookup_tokens: int  # of the drafted, those that were looked up in the text,
    num_accepted_lookup_tokens: int  # and of the accepted
    mean_acceptance_length: float  # tokens emitted per round, the target's own included
    draft_acceptance_rate: float | None  # accepted / drafted; None when nothing was drafted
    skipped_attention: float  # mean sublayers skipped per draft pass
    skipped_mlp: float
    reselections: int
    tokens_per_second: float | None  # decode rate after the first token
    predicted_tpt: float | None  # tokens per second that the plan in use promised
    plan: tuple[int, ...] | None = None  # what the last draft by the model ran: `engine.architecture.spec.Variants`


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Of one token: its log-probability in the target's distribution before any processing, and the likeliest ids."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class RoundTrace:
    """What drafting did in one round of one request. All tokens but the last were drafted."""

    drafted: int
    accepted: int
    context: int
    plan: tuple[int, ...] | None  # what drafted, as `architecture.spec.Variants`; None if no part of the model did
    predicted_tpt: float | None
    source: str | None = None  # of what was drafted: "model", "lookup" or "prediction"


@dataclass(slots=True)  # made every round: frozen ones take three times as long
class TokenEvent:
    """What one engine round, or some in a row, add to one request. `text` is complete UTF-8, cut at stop strings.

    The counts are set on every event, `speculation` and `timing` on the last.
    """

    request_id: str
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0  # so far
    cached_tokens: int = 0  # of the prompt, taken from the prefix cache
    speculation: SpeculationStats | None = None
    timing: RequestTiming | None = None
    logprobs: tuple[TokenLogprobs, ...] = ()  # one a token, where asked for
    accepted_predictions: int = 0  # tokens copied from the expected answer, on the last event
    rejected_predictions: int = 0
    trace: RoundTrace | None = None  # where asked for
    pieces: tuple[str, ...] = ()  # of the text: what became certain with each token
    prompt_logprobs: tuple[TokenLogprobs, ...] = ()  # where asked for, on the first event: all but the first token's
    rounds: int = 1  # that this stands for

    @classmethod
    def joined(cls, events: Sequence[TokenEvent]) -> TokenEvent:
        """One event that says what successive ones of a request, without traces, say."""
        if len(events) == 1:
            return events[0]
        return replace(
            events[-1],
            text="".join([event.text for event in events]),
            token_ids=tuple(chain.from_iterable([event.token_ids for event in events])),
            logprobs=tuple(chain.from_iterable([event.logprobs for event in events])),
            pieces=tuple(chain.from_iterable([event.pieces or (event.text,) for event in events])),
            prompt_logprobs=events[0].prompt_logprobs,
            rounds=sum([event.rounds for event in events]),
        )


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """The request failed inside the engine; no further event follows."""

    request_id: str
    error: RequestError | RequestFailedError  # the client's fault, or the engine's


@dataclass(frozen=True, slots=True)
class RequestTiming:
    """Seconds, by the engine's clock."""

    queue: float
    prefill: float  # from scheduling to the first token
    decode: float  # from the first token to the last


@dataclass(slots=True)  # made every round: frozen ones take three times as long
class RequestRound:
    """One request's part in one round that emitted tokens for it."""

    request_id: str
    policy: str
    emitted: int
    drafted: int
    accepted: int
    draft_passes: int
    context_length: int
    skipped_attention: int  # of the plan drafted with
    skipped_mlp: int
    predicted_tpt: float | None  # tokens per second
    predicted_acceptance: float | None
    reselected: str | None = None  # outcome of a re-decision made before this round: "changed", "kept", "plain"
    plain_tpt: float | None = None  # tokens per second that plain decoding was expected to bring instead
    source: str = "model"  # of what was drafted: a cheaper version of the model, or text: "lookup", "prediction"
    plan: tuple[int, ...] | None = None  # of that version: `engine.architecture.spec.Variants`

    @property
    def copied(self) -> bool:
        """Drafted from text, which says nothing of the policy's plans."""
        return self.source != "model"


@dataclass(slots=True)  # made every round: frozen ones take three times as long
class RoundReport:
    """One batched hand-off per engine round: the events, and what the round cost in seconds."""

    events: tuple[TokenEvent | RequestFailure, ...]
    rounds: tuple[RequestRound, ...]
    running: int
    waiting: int
    kv_usage: float  # share of blocks in use, 0..1
    batched_tokens: int  # rows of the verify pass
    prompt_tokens: int  # of these, prompt rows
    draft_seconds: float
    verify_seconds: float
    search_seconds: float
    other_seconds: float
    prefix_queries: int = 0  # prompt tokens looked up by requests admitted in this round
    prefix_hits: int = 0
    preemptions: int = 0
    draft_correction: float = 1.0  # seen over predicted time of draft passes, as prices are corrected now
    verify_correction: float = 1.0  # of verify passes as wide as this round's
    search_correction: float = 1.0  # of searches


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What does not change while the engine runs."""

    model: str
    max_model_len: int
    max_num_seqs: int
    vocab_size: int
    eos_token_ids: tuple[int, ...]
    device: str
    dtype: str
    default_policy: str
    policies: tuple[str, ...]
    profile_file: str
    profile_hardware: str
    sampling_defaults: tuple[tuple[str, float], ...] = ()  # of the checkpoint, by SamplingParams field
    tool_format: str = ""  # how the chat template writes tool calls (`server.openai.replies.calls`); "": not at all
    thinks: bool = False  # reasoning between <think> tags
    max_queued: int = 0  # requests that may wait beyond those that run


def check_request(info: EngineInfo, request: GenerateRequest, checked: tuple[int, ...] = ()) -> None:
    """Refuse a request that can never run. `checked`: a prompt whose tokens are known to be valid. Raises RequestError
    and its kinds."""
    if not request.prompt:
        raise RequestError("The prompt is empty.", param="prompt")
    if request.prompt is not checked and (min(request.prompt) < 0 or max(request.prompt) >= info.vocab_size):
        raise RequestError(f"Token ids lie between 0 and {info.vocab_size - 1}.", param="prompt")
    if request.draft_policy is not None and request.draft_policy not in info.policies:
        raise UnknownPolicyError(request.draft_policy, info.policies)
    if len(request.prompt) + (request.sampling.max_tokens or 1) > info.max_model_len:
        asked = f"{len(request.prompt)} tokens in the prompt, {request.sampling.max_tokens or 1} in the completion"
        raise ContextLengthError(info.max_model_len, f"you requested {asked}", param="prompt")


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot; `heartbeat_age` is seconds since the loop last showed life."""

    ready: bool
    draining: bool
    failure: str | None
    running: int
    waiting: int
    kv_usage: float
    heartbeat_age: float
