"""A round that has run: policies and prices learn from it, clients get its report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.core.request import Request
from engine.core.round_output import Commit
from engine.core.scheduler import Counters
from engine.draft.base import DraftPolicy, Outcome, RequestView, RoundOutcome
from engine.draft.costs import CostModel
from engine.step import StepOutput, StepPlan
from engine.types import RoundReport

_PRICED_SEARCH = 0.15  # of the verify pass: a round that searches longer leaves cold caches, and teaches no prices


@dataclass(slots=True)
class FinishedRound:
    """What `learn` and `report` need. On an asynchronous device both wait for the next round's passes."""

    plan: StepPlan
    out: StepOutput
    commit: Commit
    requests: dict[str, Request]  # that ran, by id
    prompt_tokens: int
    search_seconds: float
    other_seconds: float  # of the host, outside passes and searches, up to the commit
    running: int  # after the round
    waiting: int
    kv_usage: float
    counters: Counters  # of this round
    costs: CostModel
    learnt: bool = False

    def learn(self) -> None:
        """Tell the policies and the cost model what became of the round, once."""
        if self.learnt:
            return
        self.learnt = True
        self._observe()
        recorded = any(work.record for work in self.plan.work)
        if self.search_seconds < _PRICED_SEARCH * self.out.verify_seconds and not recorded:
            self.costs.observe(self.plan, self.out, self.other_seconds + self.search_seconds)

    def _observe(self) -> None:
        """Tell every policy what became of its proposals."""
        emitted = {part.request_id: part.emitted for part in self.commit.rounds}
        by_policy: dict[str, tuple[DraftPolicy[Any], list[RequestView[Any]], list[Outcome]]] = {}
        for work, output in zip(self.plan.work, self.out.outputs, strict=True):
            request = self.requests[work.request_id]
            _, views, outcomes = by_policy.setdefault(request.policy.name, (request.policy, [], []))
            views.append(request.view)
            drafted = work.plan is not None and not work.copied
            outcomes.append(
                Outcome(
                    variants=work.plan.variants if work.plan is not None and drafted else None,
                    drafted=output.drafted if drafted else 0,
                    accepted=output.accepted if drafted else 0,
                    confidences=output.confidences,
                    emitted=emitted.get(work.request_id, 0),
                    references=output.references,
                )
            )
        seconds = self.out.draft_seconds + self.out.verify_seconds
        for policy, views, outcomes in by_policy.values():
            policy.observe(views, RoundOutcome(outcomes, len(self.plan.work), seconds))

    def report(self) -> RoundReport:
        """Make the round's report, with the text of its tokens; once, and before that of a later round."""
        out, requests = self.out, len(self.plan.work)
        rows = sum(len(w.tokens) + o.drafted for w, o in zip(self.plan.work, out.outputs, strict=True))
        return RoundReport(
            events=self.commit.events(),
            rounds=tuple(self.commit.rounds),
            running=self.running,
            waiting=self.waiting,
            kv_usage=self.kv_usage,
            batched_tokens=rows,
            prompt_tokens=self.prompt_tokens,
            draft_seconds=out.draft_seconds,
            verify_seconds=out.verify_seconds,
            search_seconds=self.search_seconds,
            other_seconds=self.other_seconds,
            prefix_queries=self.counters.prefix_queries,
            prefix_hits=self.counters.prefix_hits,
            preemptions=self.counters.preemptions,
            draft_correction=self.costs.draft_factor(requests),
            verify_correction=self.costs.verify_factor(rows, requests),
            search_correction=self.costs.search_factor,
        )
