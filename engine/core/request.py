"""A request: the one home of its state inside the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.types import FinishReason, SamplingParams, SpeculationStats, TokenLogprobs

if TYPE_CHECKING:
    from engine.draft.base import DraftPolicy, RequestView
    from engine.draft.lookup import LookUp
    from engine.sampling.logits import LogitsProcessor
    from engine.step import Plan
    from engine.text.detokenize import Detokenizer


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
    processor: LogitsProcessor | None = None
    lookup: LookUp | None = None

    # grows with every round
    tokens: list[int] = field(default_factory=list)  # prompt and completion
    computed: int = 0  # positions with verified K/V
    slab: int = -1  # the cache slab, -1 while waiting
    behind: tuple[Request, int] | None = None  # the request that reads the common prefix, and the prefix's end
    cached_tokens: int = 0
    prompt_logprobs: list[TokenLogprobs] = field(default_factory=list)  # until the first event carries them

    # drafting
    plan: Plan | None = None
    copied: tuple[int, ...] = ()  # tokens to draft by copying in this round
    source: str = ""  # of the copied tokens: `engine.draft.lookup.Match.source`
    drafted_with: tuple[int, ...] | None = None  # variants of the last draft by the model
    accepted_predictions: int = 0
    rejected_predictions: int = 0
    looked_up: int = 0
    accepted_lookups: int = 0
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    draft_passes: int = 0
    skipped_attention: int = 0  # summed over draft passes
    skipped_mlp: int = 0
    reselections: int = 0

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

    def speculation(self) -> SpeculationStats:
        """Return the request's speculation figures so far (docs/api.md)."""
        decode = (self.last_token or 0.0) - (self.first_token or 0.0)
        passes = self.draft_passes
        return SpeculationStats(
            policy=self.policy.name,
            num_rounds=self.rounds,
            num_draft_tokens=self.drafted,
            num_accepted_draft_tokens=self.accepted,
            num_lookup_tokens=self.looked_up,
            num_accepted_lookup_tokens=self.accepted_lookups,
            mean_acceptance_length=self.completion_tokens / self.rounds if self.rounds else 0.0,
            draft_acceptance_rate=self.accepted / self.drafted if self.drafted else None,
            skipped_attention=self.skipped_attention / passes if passes else 0.0,
            skipped_mlp=self.skipped_mlp / passes if passes else 0.0,
            reselections=self.reselections,
            tokens_per_second=(self.completion_tokens - 1) / decode if decode > 0 else None,
            predicted_tpt=self.plan.predicted_tpt if self.plan else None,
            plan=self.drafted_with,
        )
