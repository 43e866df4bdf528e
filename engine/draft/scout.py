"""Which request searches for plans, and when: one at a time, by rows of its own that were kept just before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.draft.base import Outcome, Plan, PolicyContext, View
from engine.draft.library import Library
from engine.draft.search import MOST_HURRY, Rows, Search, Searcher
from engine.draft.tpt import AcceptanceCounts
from engine.model.spec import Variants

_ADOPTED = 3  # plans a search may add
_REPLAYED_PLANS = 128  # whose replays are remembered from search to search: early exits come again and again,
_REPLAYED_MEMORY = 64.0  # so many tested tokens of each
_LONG_ANSWER = (400, 1000)  # tokens after which a search is owed: the first one, and each further one
_LATE = 300  # tokens later the first one is made on credit,
_CREDIT = 1.0  # while no more than so many searches are


@dataclass(slots=True)
class Trail:
    """What searches of one request go by."""

    rows: Rows
    searched: int  # tokens of context then, or when it began to decode
    search: Search | None = None
    due: int = 0  # round from which on it may search again
    again: bool = False  # whether it has searched

    def owed(self, context: int) -> bool:
        """Whether it has waited long for a search."""
        return context - self.searched >= _LONG_ANSWER[self.again]

    def late(self, context: int) -> bool:
        """Whether it must search now, or its answer may end without."""
        return context - self.searched >= _LONG_ANSWER[0] + _LATE and not self.again


class Found(NamedTuple):
    """What a search has brought."""

    added: list[Variants]
    search: Search


class Scout:
    """Keeps the rows of whoever searches next, searches with them, and has the best of what is found join the library.

    `promised`, where it is an argument, is the plan of the round before.
    """

    def __init__(
        self, context: PolicyContext, searcher: Searcher, library: Library, trail: Callable[[View], Trail]
    ) -> None:
        self._config, self._clock = context.config, context.clock
        self._searcher, self._library, self._trail = searcher, library, trail
        menu = context.config.knapspec_menu
        self._searches = menu == "skip" or (menu == "auto" and not context.costs.has_low_bit)
        self.recorder: View | None = None  # whose rows are kept,
        self._owed = False  # and whether for a search that it is owed
        self._searching: View | None = None
        self._saving = [0.0, 0.0]  # by whether it decodes plainly: seconds of rounds before which no search can be paid
        self._hurry = 0  # how often in a row a request ended before its search did
        self._replayed: dict[Variants, AcceptanceCounts] = {}  # of plans that are not in the library

    def rests(self, views: Sequence[View], round: int) -> bool:
        """Whether there is nothing to do in this round: nobody searches, nor could."""
        view = self.recorder
        return self._searching is None and (view is None or (view in views and not self._ready(view, round)))

    def record(self, view: View) -> int:
        """Rows are kept from the rounds before a search, of the request that is next: keeping them takes a tenth of a
        pass."""
        return self._config.knapspec_rows if view is self.recorder else 0

    def recorded(self, view: View, outcome: Outcome) -> None:
        if outcome.references is not None:
            self._trail(view).rows.add(outcome.references)

    def recalibrate(self) -> None:
        """Price searches by the profile again, and look again whether one can be paid."""
        self._searcher.recalibrate()
        self._saving = [0.0, 0.0]

    def suspend(self, trail: Trail) -> None:
        """What the request's rows refer to is gone."""
        trail.search = None
        trail.rows = self._searcher.rows()

    def choose(self, views: Sequence[View], round: int, promised: Plan | None) -> None:
        """Whose rows to keep: while one searches nobody's, and of several whose that searched longest ago."""
        if self.recorder is not None and self.recorder not in views:
            self._gave_up()
        self.recorder = None
        if self._searching is not None or self._config.knapspec_gamma == 0 or not self._searches:
            return
        budget = self._searcher.budget
        plain = promised is not None and promised.gamma == 0
        late = [view for view in views if self._trail(view).late(view.context)] if self._config.knapspec_budget else []
        if budget.busy < self._saving[plain] and not late:
            return
        earned, left = budget.earned(ignorant=not len(self._library), plain=plain), budget.left
        missing = self._searcher.least_cost - max(earned, left)
        if missing > 0:
            share = self._config.knapspec_budget
            self._saving[plain] = budget.busy + missing / share if share else math.inf
            if not late:
                return
        soon = round + self._config.knapspec_rows
        due = sorted((v for v in views if soon >= self._trail(v).due), key=lambda view: self._trail(view).due)
        self.recorder = self._affordable(due, earned)
        self._owed = self.recorder is None
        if self._owed:
            owed = (view for view in due if self._trail(view).owed(view.context))
            on_credit = (view for view in late if left >= -_CREDIT * self._searcher.cost(view))
            self.recorder = self._affordable(owed, left) or next(on_credit, None)

    def _affordable(self, due: Iterable[View], seconds: float) -> View | None:
        """The first whose search takes no longer."""
        if seconds < self._searcher.least_cost:
            return None
        return next((view for view in due if self._searcher.cost(view) <= seconds), None)

    def _gave_up(self) -> None:
        self._hurry = min(self._hurry + 1, MOST_HURRY)

    def search(
        self, views: Sequence[View], running: Sequence[Variants], round: int, promised: Plan | None
    ) -> Found | None:
        """Begin a search or go on with it. `running`: what requests of other policies draft with."""
        view = self._searching = self._next(views, round)
        if view is None:
            return None
        started = self._clock.now()
        trail = self._trail(view)
        search = trail.search
        if search is None:
            together = [promised.variants] if len(views) > 1 and promised is not None and promised.gamma else []
            search = trail.search = self._searcher.begin(view, trail.rows, [*running, *together], owed=self._owed)
        self._searcher.charge(search, self._clock.now() - started)
        if not self._searcher.advance(view, search, alone=len(views) + view.beside == 1, hurry=self._hurry):
            return None
        started = self._clock.now()
        trail.search = self._searching = None
        self._hurry, self._saving = 0, [0.0, 0.0]
        trail.searched, trail.again = view.context, True
        trail.due = round + self._config.knapspec_interval
        added = self._adopt(view, search)
        self._searcher.charge(search, self._clock.now() - started)
        return Found(added, search)

    def done(self, found: Found | None, *, useful: bool) -> None:
        """Whether what a search brought was chosen, and better than what there was."""
        if found is not None:
            self._searcher.done(found.search, useful=useful)

    def _next(self, views: Sequence[View], round: int) -> View | None:
        """The request that searches in this round: one at a time."""
        view = self._searching
        if view is not None and view in views and self._trail(view).search is not None:
            return view
        if view is not None:
            self._gave_up()
        view = self.recorder
        return view if view is not None and view in views and self._ready(view, round) else None

    def _ready(self, view: View, round: int) -> bool:
        """Whether it has the rows to search, and waited long enough since it did."""
        trail = self._trail(view)
        return round >= trail.due and self._searcher.enough(trail.rows, self._hurry)

    def _adopt(self, view: View, search: Search) -> list[Variants]:
        """The best candidates join the library, and those that are there already are seen a little more of."""
        library, replayed = self._library, search.replay.counts if search.replay is not None else {}
        if not replayed:
            return []
        for variants, counts in replayed.items():
            known = self._replayed.pop(variants, None) or AcceptanceCounts(_REPLAYED_MEMORY)
            known.merge(counts)
            self._replayed[variants] = known  # the last to be forgotten
        ranked = library.rank({variants: self._replayed[variants] for variants in replayed}, view.context)
        added = [variants for variants in ranked[:_ADOPTED] if variants not in library]
        for variants in added:
            library.add(variants, self._replayed.pop(variants))
        for variants in (v for v in library if v in replayed and v not in added):
            library.add(variants, replayed[variants])
        for variants in list(self._replayed)[:-_REPLAYED_PLANS]:
            del self._replayed[variants]
        library.shrink(view.context)
        return [variants for variants in added if variants in library]
