"""ASD (Metel et al., 2024): skip the attention that changes the states of the context least.

Attention i maps the residual stream X^(2i) to X^(2i+1). The full model's own pass over the context leaves both, so that
their cosine costs no further pass:

    attention i is skipped if cos(X^(2i), X^(2i+1)) > τ, on average over the last rows

MLPs always run. Drafts end by the adaptive rule of Draft & Verify (`papers.layerskip`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.draft.base import DraftPolicy, Outcome, PolicyContext, RequestView
from engine.plans import SKIP, TARGET, Variants
from engine.step import Plan
from papers.layerskip import MAX_ADAPTIVE, DraftLength, steer_threshold
from papers.settings import ASDConfig

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(slots=True)
class DropState:
    """What the policy keeps of one request."""

    length: DraftLength
    variants: Variants | None = None  # in use; None: no attention is similar enough
    left: int = 0  # tokens until the attention to skip is chosen again


class AdaptiveDrop(DraftPolicy[DropState]):
    """Draft without the attention whose output is most like its input, as the context shows; look again in time."""

    name = ASDConfig.name

    def __init__(self, context: PolicyContext) -> None:
        self._config = context.config.of(ASDConfig)
        self._plain = Plan(context.spec.whole, gamma=0)

    def new_state(self) -> DropState:
        return DropState(DraftLength(MAX_ADAPTIVE, self._config.confidence))

    def plan(self, view: RequestView[DropState]) -> Plan:
        state = view.state
        if state.variants is None:
            return self._plain
        return Plan(state.variants, state.length.gamma, state.length.threshold)

    def rows_to_record(self, view: RequestView[DropState]) -> int:
        return self._config.rows if view.state.left <= 0 else 0

    def learn(self, view: RequestView[DropState], outcome: Outcome) -> None:
        state = view.state
        state.left -= outcome.emitted
        if outcome.drafted:
            steer_threshold(state.length, outcome, self._config.target)
        if outcome.references is not None:
            before = state.variants
            state.variants = drop_attention(outcome.references.states, self._config.similarity)
            state.left = self._config.interval
            view.reselected = "kept" if state.variants == before else "changed"


def drop_attention(states: Tensor, similarity: float) -> Variants | None:
    """Skip each attention whose mean cosine of input and output is above `similarity`; None if there is none.

    `states` [2L+1, rows, hidden]: the full model's residual streams X^(0) … X^(2L).
    """
    import torch.nn.functional as F

    cosines = F.cosine_similarity(states[:-1:2].float(), states[1::2].float(), dim=-1).mean(-1)  # [L]
    skipped = (cosines > similarity).tolist()
    if not any(skipped):
        return None
    return (*(variant for skips in skipped for variant in (SKIP if skips else TARGET, TARGET)), TARGET)
