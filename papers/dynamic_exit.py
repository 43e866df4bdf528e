"""DEL (Entezari Zarch et al., 2025): choose the exit layer of every draft by the acceptance that it would have had.

The verify pass leaves the residual stream after every layer. The final norm and the head turn the streams of the tested
positions into *shadow tokens*: what an exit at each layer would have drafted. Compared with the target's tokens, they
give each exit's acceptance rate and its threshold of confidence, and so the best exit for the next round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.draft.base import DraftPolicy, Outcome, PolicyContext, RequestView
from engine.draft.lookup import MAX_COPIED
from engine.plans import exit_plan
from engine.step import Plan, References
from papers.settings import DelConfig

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ExitStatistics:
    """Sums over the rounds of one request, by exit; each round weighs `decay` times the next (DEL, section 4.2).

    With S(a) = Σ_r ω^(R−r)·a_r over rounds r ≤ R, they are S(u), S(c^ℓ), S(tcs^ℓ) and S(fcs^ℓ). A round counts all
    positions up to the first mismatch of the draft, that one included, in u as well as in c^ℓ: α^ℓ is at most 1. The
    paper's u leaves out the last of them.
    """

    def __init__(self, exits: int) -> None:
        self.counted = 0.0  # positions: S(u)
        self._matched = np.zeros(exits)  # S(c^ℓ)
        self._confidence = np.zeros((2, exits))  # sums over mismatches and over matches: S(fcs^ℓ), S(tcs^ℓ)

    def add(self, matched: NDArray[np.bool_], confidences: NDArray[np.float64], decay: float) -> None:
        """Add a round: whether each shadow token matched, and its confidence, both [exits, positions]."""
        self.counted = decay * self.counted + matched.shape[1]
        self._matched = decay * self._matched + matched.sum(1)
        sums = np.stack([np.where(matched, 0.0, confidences).sum(1), np.where(matched, confidences, 0.0).sum(1)])
        self._confidence = decay * self._confidence + sums

    @property
    def acceptance(self) -> NDArray[np.float64]:
        """The acceptance rate of each exit: α^ℓ = S(c^ℓ) / S(u) (DEL, eq. 2)."""
        rates: NDArray[np.float64] = self._matched / self.counted
        return rates

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """The midpoint of each exit's mean confidences in matched and mismatched tokens (DEL, eq. 3).

        The paper leaves open what the mean of no tokens is. Here it is the end of the scale: 1 for matched tokens, so
        that an exit that never matched drafts little, and 0 for mismatched ones.
        """
        counts = np.stack([self.counted - self._matched, self._matched])
        ends = np.broadcast_to(np.array([[0.0], [1.0]]), counts.shape)
        means = np.divide(self._confidence, counts, out=ends.copy(), where=counts > 1e-9)
        return np.asarray(means.mean(0))


def best_exit(acceptance: NDArray[np.float64], layers: int, most: int) -> tuple[int, int]:
    """Return the exit layer ℓ and the draft length d ≤ `most` with the most tokens per layer (DEL, eq. 1).

        TPL(ℓ, d) = (Σ_{i ≤ d} α_ℓ^i) / (d·ℓ + L)

    `acceptance` [L−1]: of the exits after layers 1 to L−1. d = 0 is plain decoding.
    """
    lengths, depths = np.arange(most + 1), np.arange(1, len(acceptance) + 1)[:, None]
    expected = (acceptance[:, None] ** lengths).cumsum(1)
    tokens_per_layer = expected / (lengths * depths + layers)
    exit, length = np.unravel_index(int(tokens_per_layer.argmax()), tokens_per_layer.shape)
    return int(exit) + 1, int(length)


@dataclass(slots=True)
class ExitState:
    """What the policy keeps of one request."""

    statistics: ExitStatistics
    references: References | None = None  # the rows of the last round, not measured yet
    reads_again: bool = False  # rows that were measured before the request was preempted


class DynamicExit(DraftPolicy[ExitState]):
    """Draft from the best exit up to d_max tokens, or up to a token below its threshold (DEL, algorithm 1).

    The best length only chooses the exit. As printed, drafts have the first exit where it is 0.
    """

    name = DelConfig.name

    def __init__(self, context: PolicyContext) -> None:
        self._config, spec = context.config.of(DelConfig), context.spec
        self._layers = spec.layers
        self._plans = [
            exit_plan(spec.layers, depth) for depth in range(1, spec.layers + 1)
        ]  # the last is the whole model
        self._plain = Plan(spec.whole, gamma=0)

    def new_state(self) -> ExitState:
        return ExitState(ExitStatistics(self._layers - 1))

    def plan(self, view: RequestView[ExitState]) -> Plan:
        state, statistics = view.state, view.state.statistics
        state.reads_again = False
        if state.references is not None:
            statistics.add(*self._shadow_tokens(view, state.references), self._config.decay)
            state.references = None
        if not statistics.counted:
            return self._plain
        depth, _ = best_exit(statistics.acceptance, self._layers, self._config.gamma)
        return Plan(self._plans[depth - 1], self._config.gamma, float(statistics.thresholds[depth - 1]))

    def _shadow_tokens(
        self, view: RequestView[ExitState], references: References
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Draw each exit's token at the recorded rows: whether it matched, and its confidence: [exits, rows].

        Within the prompt, the token that follows is not the target's. There the whole model draws as well.
        """
        positions, exits = references.positions, self._layers - 1
        reads_prompt = positions[0] + 1 < view.prompt_tokens
        plans = self._plans if reads_prompt else self._plans[:exits]
        states = references.states[2::2][: len(plans)]  # X^(2ℓ): [plans, rows, hidden]
        tokens, confidences = map(np.array, view.candidates(positions).draws(states, plans))
        target = tokens[-1] if reads_prompt else np.array([view.tokens[p + 1] for p in positions])
        return tokens[:exits] == target, confidences[:exits]

    def rows_to_record(self, view: RequestView[ExitState]) -> int:
        """Record the end of the prompt, and later every row whose prediction was tested."""
        if self._layers == 1 or view.state.reads_again:
            return 0
        return self._config.rows if view.context < view.prompt_tokens else 1 + max(self._config.gamma, MAX_COPIED)

    def learn(self, view: RequestView[ExitState], outcome: Outcome) -> None:
        view.state.references = outcome.references

    def suspend(self, view: RequestView[ExitState]) -> None:
        view.state.references, view.state.reads_again = None, view.state.statistics.counted > 0
