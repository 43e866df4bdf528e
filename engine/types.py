"""Data that server and engine exchange: `GenerateRequest` in, `TokenEvent` and `RoundReport` out.

All of it can be pickled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from engine.errors import ContextLengthError, PromptError, RequestError, RequestFailedError, UnknownPolicyError
from engine.plans import Variants


class FinishReason(StrEnum):
    """Why a request ended, as OpenAI names it; `CANCELLED` never reaches a client."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"


class ThoughtLimit(NamedTuple):
    """How long an answer may reason: after `tokens` tokens, `close` is the only one that may follow."""

    tokens: int
    open: int | None  # id of the token that opens the reasoning
    close: int
    begun: bool  # whether the prompt has opened the reasoning


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are drawn, and when the answer ends."""

    max_tokens: int | None = None  # None: as many as the context allows
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1  # -1 or 0: off
    min_p: float = 0.0  # lowest share of the top token's probability
    seed: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    min_tokens: int = 0  # tokens before the answer may end
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()  # (token id, added to its logit)
    allowed_token_ids: tuple[int, ...] = ()  # the only tokens that may be drawn; (): all tokens
    bad_words: tuple[tuple[int, ...], ...] = ()  # sequences of tokens that must not occur
    thought_limit: ThoughtLimit | None = None
    grammar: str | None = None  # the answer's grammar, in a format of llguidance
    grammar_param: str = "response_format"  # the request field that the grammar comes from
    logprobs: int | None = None  # alternatives to report beside each token; None: no log-probabilities at all
    prompt_logprobs: bool = False  # log-probabilities of the prompt too, which then bypasses the prefix cache
    skip_special_tokens: bool = True  # whether the text lacks special tokens
    predicted: tuple[int, ...] = ()  # tokens of the answer that the client expects, to draft by copying
    trace: bool = False  # whether events carry the figures of their round
    include_stop: bool = False  # whether the text includes the stop string or token that ended it

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0

    @property
    def edits_logits(self) -> bool:
        """Whether penalties, bias, forbidden tokens, a minimum length or a grammar change the model's distribution."""
        forbids = self.allowed_token_ids or self.bad_words or self.grammar is not None or self.thought_limit
        return self.penalises or bool(self.logit_bias or self.min_tokens or forbids)

    @property
    def penalises(self) -> bool:
        """Whether a penalty is set, so that earlier tokens change the distribution."""
        return any((self.presence_penalty, self.frequency_penalty, self.repetition_penalty - 1.0))

    @property
    def truncates(self) -> bool:
        """Whether top-k, top-p or min-p exclude tokens."""
        return self.temperature > 0.0 and (self.top_k > 0 or self.top_p < 1.0 or self.min_p > 0.0)


def key_limit(limit: int) -> int:
    """Return how many of the running and waiting requests one of several API keys may have."""
    return math.ceil(0.75 * limit)


class Owner(NamedTuple):
    """Who asks: an API key and one of its requests, which may have many choices. Owners get equal shares."""

    key: str = ""
    request: str = ""


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One choice to generate. `draft_policy=None`: the server's default policy."""

    id: str
    prompt: tuple[int, ...]
    sampling: SamplingParams = SamplingParams()
    draft_policy: str | None = None
    owner: Owner = Owner()
    priority: int = 0  # requests with a lower one run first
    cache_salt: str = ""  # only requests with the same salt share cached prefixes


@dataclass(frozen=True, slots=True)
class SpeculationStats:
    """Speculation figures of one request (docs/api.md, `metrics.speculative_decoding`)."""

    policy: str
    num_rounds: int  # rounds that emitted tokens
    num_draft_tokens: int
    num_accepted_draft_tokens: int
    num_lookup_tokens: int  # drafted tokens that were copied from the text
    num_accepted_lookup_tokens: int
    mean_acceptance_length: float  # tokens emitted per round, the target's own included
    draft_acceptance_rate: float | None  # accepted / drafted; None when nothing was drafted
    skipped_attention: float  # mean sublayers skipped per draft pass
    skipped_mlp: float
    reselections: int
    tokens_per_second: float | None  # decode rate after the first token
    predicted_tpt: float | None  # tokens per second, of the plan in use
    plan: Variants | None = None  # the plan of the last draft by the model


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """A token's log-probability in the target's unprocessed distribution, and those of the likeliest tokens."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(slots=True)  # made every round: a frozen dataclass takes three times as long
class TokenEvent:
    """The tokens that one round, or several in a row, add to one request. `text` is valid UTF-8, cut at stop strings.

    Counts are set on every event, `speculation` and `timing` on the last one.
    """

    request_id: str
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0  # tokens of the answer so far
    cached_tokens: int = 0  # prompt tokens taken from the prefix cache
    speculation: SpeculationStats | None = None
    timing: RequestTiming | None = None
    logprobs: tuple[TokenLogprobs, ...] = ()  # one a token, where asked for
    accepted_predictions: int = 0  # tokens copied from the expected answer, on the last event
    rejected_predictions: int = 0
    trace: RequestRound | None = None  # the round's figures, if the request wants them
    pieces: tuple[str, ...] = ()  # pieces of the text, one for each token
    prompt_logprobs: tuple[TokenLogprobs, ...] = ()  # the prompt's, on the first event; the first token has none
    stop_string: str | None = None  # the stop string that ended the answer, on the last event

    @classmethod
    def joined(cls, events: Sequence[TokenEvent]) -> TokenEvent:
        """Join successive events of one request that carry no traces."""
        if len(events) == 1:
            return events[0]
        return replace(
            events[-1],
            text="".join([event.text for event in events]),
            token_ids=tuple(chain.from_iterable([event.token_ids for event in events])),
            logprobs=tuple(chain.from_iterable([event.logprobs for event in events])),
            pieces=tuple(chain.from_iterable([event.pieces or (event.text,) for event in events])),
            prompt_logprobs=events[0].prompt_logprobs,
        )


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """The request failed inside the engine; no further event follows."""

    request_id: str
    error: RequestError | RequestFailedError  # the client's fault, or the engine's


@dataclass(frozen=True, slots=True)
class RequestTiming:
    """Seconds, by the engine's clock, and what interrupted them."""

    queue: float
    prefill: float  # the time from scheduling to the first token
    decode: float  # the time from the first token to the last
    preemptions: int = 0


@dataclass(slots=True)  # made every round
class RequestRound:
    """Figures of one request in one round. All emitted tokens but the last were drafted."""

    request_id: str
    policy: str
    emitted: int
    drafted: int
    accepted: int
    draft_passes: int
    context_length: int
    skipped_attention: int  # attention sublayers that the draft's plan skips
    skipped_mlp: int
    predicted_tpt: float | None  # tokens per second
    predicted_acceptance: float | None
    reselected: str | None = None  # outcome of a decision made before this round: "changed", "kept", "plain"
    plain_tpt: float | None = None  # predicted tokens per second of plain decoding
    source: str = "model"  # where the draft came from: "model", "lookup" or "prediction"
    plan: Variants | None = None  # the plan of a draft by the model
    search_interval: float | None = None  # rounds between two searches for plans, if the policy decided in this round

    @property
    def copied(self) -> bool:
        """Whether the draft was copied from text, which says nothing about the policy's plans."""
        return self.source != "model"


@dataclass(slots=True)  # made every round
class RoundReport:
    """The events of one round, and its figures."""

    events: tuple[TokenEvent | RequestFailure, ...] = ()
    rounds: tuple[RequestRound, ...] = ()
    running: int = 0  # requests, after the round
    waiting: int = 0
    kv_usage: float = 0.0  # share of blocks in use, 0..1
    batched_tokens: int = 0  # rows of the verify pass
    prompt_tokens: int = 0  # prompt rows among `batched_tokens`
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    search_seconds: float = 0.0
    other_seconds: float = 0.0  # the host's other work
    prefix_queries: int = 0  # prompt tokens looked up by requests admitted in this round
    prefix_hits: int = 0
    preemptions: int = 0
    draft_correction: float = 1.0  # current ratio of observed to profiled time, of draft passes
    verify_correction: float = 1.0  # the same of verify passes as wide as this round's
    search_correction: float = 1.0  # the same of searches
    deferred: int = 0  # requests that wait for their grammar, or for a prefix that another is reading


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Facts that do not change while the engine runs."""

    model: str
    max_model_len: int
    max_num_seqs: int
    vocab_size: int
    eos_token_ids: tuple[int, ...]
    device: str
    dtype: str
    default_policy: str
    profile_file: str
    profile_hardware: str
    sampling_defaults: tuple[tuple[str, float], ...] = ()  # the checkpoint's defaults, by SamplingParams field
    tool_format: str = ""  # how the chat template writes tool calls, as `--tool-call-parser` names it; "": no tools
    thinks: bool = False  # whether the model writes its reasoning between <think> tags
    max_queued: int = 0  # requests that may wait beyond the running ones
    policies: tuple[str, ...] = ()  # available ones
    unavailable_policies: tuple[tuple[str, str], ...] = ()  # further policies, each with the reason
    num_blocks: int = 0  # blocks of the K/V cache
    block_size: int = 0  # tokens per block

    def check_policy(self, name: str | None) -> None:
        """Refuse a draft policy that requests cannot use; None is the default one. Raises UnknownPolicyError."""
        if name is not None and name not in self.policies:
            raise UnknownPolicyError(name, self.policies, dict(self.unavailable_policies).get(name, ""))


def check_request(info: EngineInfo, request: GenerateRequest) -> None:
    """Refuse a request that can never run. Raises RequestError, ContextLengthError, UnknownPolicyError."""
    if not request.prompt:
        raise PromptError("The prompt is empty.")
    if min(request.prompt) < 0 or max(request.prompt) >= info.vocab_size:
        raise PromptError(f"Token ids lie between 0 and {info.vocab_size - 1}.")
    info.check_policy(request.draft_policy)
    completion = request.sampling.max_tokens or 1
    if len(request.prompt) + completion > info.max_model_len:
        raise ContextLengthError(info.max_model_len, len(request.prompt), completion, param="prompt")


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot; `heartbeat_age`: seconds since the loop's last sign of life."""

    ready: bool
    draining: bool
    failure: str | None
    running: int
    waiting: int
    deferred: int  # waiting requests that could not run even if there were room
    kv_usage: float
    heartbeat_age: float
    restarting: bool = False  # whether the engine is being restarted after a failure
    restarts: int = 0
