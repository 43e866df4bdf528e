"""What was decided for requests in flight, and what came of it, apart for each size of the company."""

from __future__ import annotations

from dataclasses import dataclass

from engine.draft.base import Plan
from engine.draft.costs import SETTLING
from engine.draft.library import Choice
from engine.draft.trust import Losses

PLAIN_EVERY = 384  # drafting rounds between plain ones, which keep the price of plain decoding known;
PLAIN_ROUNDS = 2 * SETTLING[False]  # so many of them, for the first are slower than those that follow
TRIAL_EVERY = (48, 1536)  # rounds of plain decoding between trials: at first, at most


@dataclass(slots=True)
class Decision:
    """What to draft with, and until when."""

    choice: Choice
    until: int  # round of the next decision
    era: int
    trial: bool = False  # whether it was made while drafting was tried out
    rounds: int = 0  # for which it was to stand


class Regime:
    """What was decided and seen while so many requests were in flight: numbers within a factor of two are alike, and
    whether drafting pays for one says nothing of the others."""

    __slots__ = ("decision", "drafting_rounds", "era", "losses", "plain_rounds", "trial_end", "trial_every")

    def __init__(self) -> None:
        self.decision: Decision | None = None  # for requests together, or new
        self.era = 0  # how often all had to decide anew
        self.plain_rounds = self.drafting_rounds = 0
        self.trial_end: int | None = None
        self.recalibrate()

    def recalibrate(self) -> None:
        """Forget what was found by prices that hold no longer."""
        self.losses = Losses()
        self.trial_every = TRIAL_EVERY[0]

    def passed(self, plan: Plan) -> None:
        """Count a round with this plan, in which nothing was due."""
        if plan.gamma:
            self.drafting_rounds += 1
        else:
            self.plain_rounds += 1

    def rounds_left(self, plan: Plan) -> int:
        """With this plan, until something else is due."""
        return PLAIN_EVERY - 1 - self.drafting_rounds if plan.gamma else self.trial_every - self.plain_rounds

    def lost(self, seconds: float, limit: float) -> bool:
        """So much in a round that drafted; whether it is more than `limit` by now, and all decide anew. Trials do not
        count: what they lose is no news, and what they gain may be luck."""
        if self.trial_end is not None:
            return False
        self.losses.add(seconds)
        beyond = self.losses.beyond(limit)
        self.era += beyond
        return beyond

    def begin_trial(self, until: int) -> None:
        self.trial_end = until
        self.era += 1

    def end_trial(self) -> None:
        self.trial_end = None
        self.era += 1

    def plain_due(self) -> bool:
        """Now and then plain rounds while drafting: nothing else shows what one row costs now. Counts the round."""
        self.drafting_rounds += 1
        if self.drafting_rounds >= PLAIN_EVERY + PLAIN_ROUNDS:
            self.drafting_rounds = 0
        return self.drafting_rounds >= PLAIN_EVERY

    def trial_due(self) -> bool:
        """Whether to draft for a while all the same: whether it pays is only seen by drafting. Each time later."""
        if self.plain_rounds < self.trial_every:
            return False
        self.plain_rounds = 0
        self.trial_every = min(2 * self.trial_every, TRIAL_EVERY[1])
        return True


def change(before: Plan, after: Plan) -> str:
    """The outcome of a decision, as metrics call it."""
    if after.gamma == 0:
        return "plain" if before.gamma else "kept"
    return "kept" if before.gamma and before.variants == after.variants else "changed"
