"""A request: the one home of its state inside the engine."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.plans import Variants, skipped
from engine.types import (
    FinishReason,
    Owner,
    RequestRound,
    RequestTiming,
    SamplingParams,
    SpeculationStats,
    TokenLogprobs,
)

if TYPE_CHECKING:
    from engine.draft.base import DraftPolicy, RequestView
    from engine.draft.lookup import Lookup
    from engine.sampling.logits import LogitsProcessor
    from engine.step import Plan, Work, WorkOutput
    from engine.text.detokenize import Detokenizer


class AwaitedPrefix(NamedTuple):
    """The beginning of a prompt that another request is reading, up to a position."""

    reader: Request
    end: int


@dataclass(slots=True)
class Figures:
    """Sums over the rounds of a request that emitted tokens."""

    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    looked_up: int = 0  # drafted tokens that were copied from the text
    accepted_lookups: int = 0
    accepted_predictions: int = 0
    rejected_predictions: int = 0
    draft_passes: int = 0
    skipped_attention: int = 0  # summed over draft passes
    skipped_mlp: int = 0
    reselections: int = 0
    drafted_with: Variants | None = None  # the plan of the last draft by the model

    def add(self, round: RequestRound) -> None:
        """Add the figures of a round."""
        self.rounds += 1
        self.drafted += round.drafted
        self.accepted += round.accepted
        if round.source == "lookup":
            self.looked_up += round.drafted
            self.accepted_lookups += round.accepted
        if round.source == "prediction":
            self.accepted_predictions += round.accepted
            self.rejected_predictions += round.drafted - round.accepted
        self.draft_passes += round.draft_passes
        self.skipped_attention += round.skipped_attention * round.draft_passes
        self.skipped_mlp += round.skipped_mlp * round.draft_passes
        self.reselections += round.reselected == "changed"
        self.drafted_with = round.plan or self.drafted_with


@dataclass(slots=True, eq=False)
class Request:
    """All state of a request inside the engine."""

    # set on arrival
    id: str
    prompt: tuple[int, ...]
    sampling: SamplingParams
    policy: DraftPolicy[Any]
    arrival: float
    limit: int  # most tokens of prompt and completion together
    detokenizer: Detokenizer
    view: RequestView[Any]  # what the policy sees of the request
    tokens: list[int]  # prompt and completion; grows with every round
    owner: Owner = Owner()
    priority: int = 0
    cache_salt: str = ""
    processor: LogitsProcessor | None = None
    lookup: Lookup | None = None

    # grows with every round
    computed: int = 0  # positions with verified K/V
    slab: int = -1  # the number of its table of pages, -1 while waiting
    awaited_prefix: AwaitedPrefix | None = None  # a prefix that another request is reading
    overtook: str | None = None  # id of the request for which there was no memory when this one was admitted
    cached_tokens: int = 0
    preemptions: int = 0
    prompt_logprobs: list[TokenLogprobs] = field(default_factory=list)  # kept until the first event carries them

    # drafting
    plan: Plan | None = None
    figures: Figures = field(default_factory=Figures)

    # times, by the engine's clock
    admitted: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    finish_reason: FinishReason | None = None

    @property
    def completion_tokens(self) -> int:
        return len(self.tokens) - len(self.prompt)

    @property
    def pending(self) -> int:
        """Tokens without verified K/V; 1 when the request decodes."""
        return len(self.tokens) - self.computed

    @property
    def decoding(self) -> bool:
        """Whether all tokens but the last emitted one have K/V, so that the request may draft."""
        return len(self.tokens) - self.computed == 1 and len(self.tokens) > len(self.prompt)

    @property
    def scoring(self) -> bool:
        """Whether the prompt is being read for its log-probabilities."""
        return self.sampling.prompt_logprobs and self.completion_tokens == 0

    @property
    def room(self) -> int:
        """Tokens that the request may still emit."""
        return self.limit - len(self.tokens)

    @property
    def timing(self) -> RequestTiming:
        """The times of the request so far."""
        admitted = self.admitted or self.arrival
        first = self.first_token or admitted
        return RequestTiming(
            queue=admitted - self.arrival,
            prefill=first - admitted,
            decode=(self.last_token or first) - first,
            preemptions=self.preemptions,
        )

    def append(self, tokens: Sequence[int], eos: Container[int], now: float) -> tuple[list[str] | None, bool]:
        """Append tokens up to the end of the answer; set `finish_reason` if it ends. `eos`: ids that end answers.

        Returns the tokens' text, if stop strings make it necessary now, and whether the last token has no text.
        """
        self.last_token = now
        if self.first_token is None:
            self.first_token = now
        sampling, detokenizer = self.sampling, self.detokenizer
        pieces: list[str] | None = [] if sampling.stop else None
        hidden = False
        for token in tokens:
            self.tokens.append(token)
            stops = token in sampling.stop_token_ids and (self.processor is None or self.processor.may_end())
            ends = stops or (token in eos and not sampling.ignore_eos)
            hidden = ends and not sampling.include_stop
            if pieces is not None:
                may_stop = self.completion_tokens > sampling.min_tokens
                pieces.append("" if hidden else detokenizer.push(token, may_stop=may_stop))
            if self.processor is not None and not ends:
                self.processor.advance((token,))
                ends = self.processor.stopped
            if detokenizer.stopped or ends:
                self.finish_reason = FinishReason.STOP
            elif self.room <= 0:
                self.finish_reason = FinishReason.LENGTH
            if self.finish_reason is not None:
                self.computed = min(self.computed, len(self.tokens))
                break
        return pieces, hidden

    def account(self, work: Work, output: WorkOutput) -> RequestRound:
        """Add a round, whose tokens are appended, to the request's figures.

        Draft tokens beyond the end of the answer count as drafted, not as accepted. The last token of a round counts as
        the target's own, so that emitted tokens equal rounds plus accepted tokens.
        """
        plan = work.plan
        attention, mlp = skipped(plan.variants) if plan is not None else (0, 0)
        emitted = len(self.tokens) - work.start - len(work.tokens)
        by_model = work.drafting if output.drafted else None
        reselected, self.view.reselected = self.view.reselected, None
        interval, self.view.search_interval = self.view.search_interval, None
        round = RequestRound(
            request_id=self.id,
            policy=self.policy.name,
            emitted=emitted,
            drafted=output.drafted,
            accepted=emitted - 1,
            draft_passes=output.drafted if by_model else 0,
            context_length=work.start + len(work.tokens),
            skipped_attention=attention,
            skipped_mlp=mlp,
            predicted_tpt=self.plan.predicted_tpt if self.plan else None,
            predicted_acceptance=plan.predicted_acceptance if plan else None,
            reselected=reselected,
            plain_tpt=self.plan.plain_tpt if self.plan else None,
            source=plan.source if plan else "model",
            plan=by_model.variants if by_model else None,
            search_interval=interval,
        )
        self.figures.add(round)
        return round

    def speculation(self) -> SpeculationStats:
        """Return the request's speculation figures so far (docs/api.md)."""
        figures, decode = self.figures, (self.last_token or 0.0) - (self.first_token or 0.0)
        passes = max(figures.draft_passes, 1)
        return SpeculationStats(
            policy=self.policy.name,
            num_rounds=figures.rounds,
            num_draft_tokens=figures.drafted,
            num_accepted_draft_tokens=figures.accepted,
            num_lookup_tokens=figures.looked_up,
            num_accepted_lookup_tokens=figures.accepted_lookups,
            mean_acceptance_length=self.completion_tokens / max(figures.rounds, 1),
            draft_acceptance_rate=figures.accepted / figures.drafted if figures.drafted else None,
            skipped_attention=figures.skipped_attention / passes,
            skipped_mlp=figures.skipped_mlp / passes,
            reselections=figures.reselections,
            tokens_per_second=(self.completion_tokens - 1) / decode if decode > 0 else None,
            predicted_tpt=self.plan.predicted_tpt if self.plan else None,
            plan=figures.drafted_with,
        )
