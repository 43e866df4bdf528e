"""What policy knapspec keeps of each request, and of the round that it is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.draft.base import Outcome, Plan, View
from engine.draft.regime import Decision, Regime
from engine.draft.scout import Trail
from engine.draft.tpt import AcceptanceCounts
from engine.model.spec import Variants


@dataclass(slots=True)
class State:
    """What one request has seen."""

    trail: Trail
    counts: dict[Variants, AcceptanceCounts] = field(default_factory=dict)  # of rounds alone
    decision: Decision | None = None  # for rounds alone
    try_at: int | None = None  # round


class Company:
    """The requests of a round: those that ask, those of other policies, and those that will decode beside them once
    their prompts are read.

    The latter count as if they did so already. What a draft adds to a round keeps their prompts waiting, so a drafted
    token must not cost more time than one that is decoded when all are there: on two cores without bf16 products,
    drafting for the few that decoded while others' prompts were read brought 0.84 of plain decoding at 16 streams.
    """

    __slots__ = ("coming", "contexts", "running", "size", "views")

    def __init__(self, views: Sequence[View], others: Sequence[tuple[int, Plan]], most: int) -> None:
        """`most`: requests that run at once."""
        self.views = views
        self.contexts = [view.context for view in views] + [context for context, _ in others]
        here = len(self.contexts)
        self.coming = max(min(views[0].beside + 1, most) - here, 0)
        self.contexts += [sum(self.contexts) // here] * self.coming
        self.running = [plan.variants for _, plan in others if plan.gamma]
        self.size = len(self.contexts)


class Tally(NamedTuple):
    """What a round did for those who did not read their prompts in it."""

    decoding: int  # requests,
    drafting: int  # and of these
    emitted: int
    drafted: int
    accepted: int  # without what lies beyond the end of an answer


def tally(outcomes: Sequence[Outcome]) -> Tally:
    decoding = drafting = emitted = drafted = accepted = 0
    for outcome in outcomes:
        if not outcome.prompt:
            decoding += 1
            drafting += outcome.drafted > 0
            emitted += outcome.emitted
            drafted += outcome.drafted
            accepted += max(outcome.emitted - 1, 0)
    return Tally(decoding, drafting, emitted, drafted, accepted)


class Promise(NamedTuple):
    """What a round is to bring each of its requests."""

    plan: Plan
    trust: float  # by which the promise was corrected,
    credit: float  # and that of acceptance
    requests: int  # of all policies
    asked: int  # of this one; 0 where more are to come, and what comes tells nothing of it


class Standing(NamedTuple):
    """A plan that needs no asking again."""

    plan: Plan
    regime: Regime
    until: int  # round
