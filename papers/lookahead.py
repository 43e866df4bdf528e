"""Lookahead decoding (Fu et al., 2024) on a chain: collect n-grams from Jacobi iterations, and verify those that fit.

A pass verifies a chain of up to W tokens. It begins with n-grams of the request's pool, each of which begins with the
token before it; the newest one counts. Guesses fill the rest. What the model draws after each row is the next guess for
that position, as in Jacobi's iteration, and N−1 draws in a row make an n-gram with the token of the first row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from engine.draft.base import DraftPolicy, Outcome, PolicyContext, RequestView
from engine.step import Plan
from papers.settings import LookaheadConfig


@dataclass(slots=True)
class Window:
    """What the policy keeps of one request."""

    ngrams: dict[int, Sequence[int]] = field(default_factory=dict)  # the newest n-grams' rest, by their first token
    guesses: list[int] = field(default_factory=list)  # guesses of the tokens after the last known one
    planned: Sequence[int] = ()  # the tokens of the last plan


class Lookahead(DraftPolicy[Window]):
    """Verify n-grams of earlier rounds, and guesses that make new ones."""

    name = LookaheadConfig.name
    state_type = Window

    def __init__(self, context: PolicyContext) -> None:
        self._config, self._whole = context.config.of(LookaheadConfig), context.spec.whole

    def plan(self, view: RequestView[Window]) -> Plan:
        state, width = view.state, self._config.window
        chain: list[int] = []
        for _ in range(self._config.guesses):
            chain += state.ngrams.get(chain[-1] if chain else view.tokens[-1], ())
        missing = width - len(state.guesses)
        state.guesses += Random(len(view.tokens)).choices(view.tokens, k=missing)
        state.planned = (*chain, *state.guesses[len(chain) :])[:width]
        return Plan(self._whole, width, tokens=tuple(state.planned), draws=True)

    def learn(self, view: RequestView[Window], outcome: Outcome) -> None:
        size = self._config.ngram - 1
        state, draws = view.state, outcome.draws
        if not draws:
            return
        rows = (view.tokens[-outcome.emitted - 1], *state.planned)
        for first in range(len(draws) - size + 1):
            state.ngrams[rows[first]] = draws[first : first + size]
        state.guesses = list(draws[outcome.emitted :])
