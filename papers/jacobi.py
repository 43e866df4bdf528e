"""Parallel Jacobi decoding (Santilli et al., 2023): the model iterates on a block of guesses until all are its own.

Greedy decoding of a block y₁ … y_b solves y_i = argmax p(y | y₁ … y_{i−1}, x). Jacobi's iteration solves all equations
at once, from the guesses of the round before (PGJ: blocks one after the other, as in the method of Gauss and Seidel):

    y_i^(k+1) = argmax p(y | y₁^(k) … y_{i−1}^(k), x)        for every token of the block that is not final

One pass computes a round. Its draws are final up to the first that differs from its guess, and that one too. The others
are the next guesses. When a block is solved, the next begins. Sampled requests draw with the noise of each position.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.draft.base import DraftPolicy, Outcome, PolicyContext, RequestView
from engine.step import Plan
from papers.settings import JacobiConfig


@dataclass(slots=True)
class Block:
    """What the policy keeps of one request."""

    guesses: tuple[int, ...] = ()  # a guess for each token of the block that is not final


class Jacobi(DraftPolicy[Block]):
    """Verify the model's own draws of the round before, block by block."""

    name = JacobiConfig.name
    state_type = Block

    def __init__(self, context: PolicyContext) -> None:
        self._block, self._whole = context.config.of(JacobiConfig).block, context.spec.whole

    def plan(self, view: RequestView[Block]) -> Plan:
        """Plan a round. The guess of a block's last token has nothing to lead to, and is left out."""
        state = view.state
        if not state.guesses:
            state.guesses = (view.tokens[-1],) * self._block
        tokens = state.guesses[:-1]
        return Plan(self._whole, len(tokens), tokens=tokens, draws=True)

    def learn(self, view: RequestView[Block], outcome: Outcome) -> None:
        drawn = (*outcome.draws, *view.state.guesses[len(outcome.draws) :])
        view.state.guesses = drawn[outcome.emitted :]
