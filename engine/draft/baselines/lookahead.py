"""Lookahead decoding (Fu et al., 2024): collect n-grams from Jacobi iterations, and verify those that fit.

Two branches share each pass. The *lookahead branch* is a window of W columns and N−1 levels. Level 0 follows the text,
and the token of level j in column i follows that of level j−1 in the same column:

    parent(0, i) = (0, i−1),        parent(j, i) = (j−1, i),        (0, 0) = the last known token

The model's draws after the last level make it an N-gram in every column: they go to the request's pool, and become the
last level while the others move up. The *verification branch* holds the N-grams of the pool that begin with the last
known token, up to G of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from engine.draft.base import BatchView, DraftPolicy, PolicyContext, RequestView, RoundOutcome
from engine.step import Plan

_ROOT = -1  # the number of the last known token in a tree


class Tree:
    """Tokens of a plan by their parents. A path that occurs twice has one row."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], int] = {}  # rows by parent and token

    def add(self, parent: int, token: int) -> int:
        """Return the row of a token after `parent`."""
        return self._rows.setdefault((parent, token), len(self._rows))

    def add_path(self, tokens: Iterable[int]) -> list[int]:
        """Add tokens that follow the last known token, one after another. Returns its row, −1, and theirs."""
        return [*accumulate(tokens, self.add, initial=_ROOT)]

    def plan(self, variants: tuple[int, ...]) -> Plan:
        """Return the plan that is this tree."""
        parents, tokens = zip(*self._rows, strict=True)
        return Plan(variants, len(tokens), tokens=tokens, parents=parents, draws=True)


class Pool:
    """N-grams by their first token: for each, the `most` that were seen last, the newest at the end."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._followers: dict[int, list[tuple[int, ...]]] = {}

    def add(self, first: int, followers: tuple[int, ...]) -> None:
        """Take an n-gram: its first token and the others."""
        known = self._followers.setdefault(first, [])
        if followers in known:
            known.remove(followers)
        known.append(followers)
        del known[: -self._most]

    def after(self, first: int) -> Sequence[tuple[int, ...]]:
        """Return what may follow a token, the oldest first."""
        return self._followers.get(first, ())


@dataclass(slots=True)
class Window:
    """What the policy keeps of one request."""

    pool: Pool
    levels: list[Sequence[int]] = field(default_factory=list)  # N−1 at most; level 0 lacks (0, 0), the known token
    first: int = 0  # (0, 0) in the last plan
    last_rows: Sequence[int] = ()  # the rows of the last level in the last plan


class Lookahead(DraftPolicy[Window]):
    """Verify n-grams of earlier rounds while the window makes new ones."""

    name = "lookahead"

    def __init__(self, context: PolicyContext) -> None:
        self._config, self._whole = context.config.lookahead, context.spec.whole

    def new_state(self) -> Window:
        return Window(Pool(self._config.guesses))

    def propose(self, batch: BatchView[Window]) -> Sequence[Plan]:
        return [self._plan(view) for view in batch.views]

    def _plan(self, view: RequestView[Window]) -> Plan:
        state, tree = view.state, Tree()
        if not state.levels:
            count = self._config.window + self._config.ngram - 3  # leaves W columns once the window is full
            state.levels = [Random(len(view.tokens)).choices(view.tokens, k=count)]
        state.first = view.tokens[-1]
        for followers in state.pool.after(state.first):  # first, since plans are cut at their end
            tree.add_path(followers)
        rows = tree.add_path(state.levels[0])
        for level in state.levels[1:]:
            rows = [tree.add(parent, token) for parent, token in zip(rows, level, strict=True)]
        state.last_rows = rows
        return tree.plan(self._whole)

    def observe(self, views: Sequence[RequestView[Window]], round: RoundOutcome) -> None:
        for view, outcome in zip(views, round.outcomes, strict=True):
            if len(outcome.draws) > max(view.state.last_rows, default=0) + 1:  # all of the window was verified
                self._advance(view.state, [outcome.draws[row + 1] for row in view.state.last_rows])

    def _advance(self, state: Window, drawn: Sequence[int]) -> None:
        """Put what was drawn after the last level, [columns], below it, and move on by a position."""
        levels = state.levels
        if len(levels) < self._config.ngram - 1:  # the window is being filled, a level a round
            state.levels = [*(level[1:] for level in levels), drawn[1:]]
            return
        for first, *followers in zip((state.first, *levels[0]), *levels[1:], drawn, strict=True):
            state.pool.add(first, tuple(followers))
        top, *others = *levels[1:], drawn
        state.levels = [top[1:], *others]
