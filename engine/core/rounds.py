"""The runner that computes a round; the round's output, turned into text, events, lessons and figures in time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from engine.core.request import Request
from engine.draft.base import CandidatePass, DraftPolicy, Outcome, RequestView, RoundOutcome
from engine.draft.costs import DRAFT, CostModel
from engine.step import Overlap, StepOutput, StepPlan
from engine.types import (
    RequestFailure,
    RequestRound,
    RoundReport,
    SamplingParams,
    TokenEvent,
)

if TYPE_CHECKING:
    from engine.sampling.sample import Edit

# Share of the verify pass: a round that searches longer leaves cold caches, and teaches no prices.
_PRICED_SEARCH = 0.15


class StepRunner(Protocol):
    """The seam to the tensors: `engine.runtime.runner.Runner`, or a fake."""

    overlaps: bool  # whether the device computes while the host does something else

    def run(self, plan: StepPlan, overlap: Overlap | None = None) -> StepOutput:
        """Run a round."""

    def candidates(
        self, slab: int, positions: Sequence[int], sampling: SamplingParams, edits: Iterable[Edit | None] = ()
    ) -> CandidatePass:
        """Return the passes of a search over verified rows; `edits`: of the logits after each row."""


@dataclass(slots=True)
class RequestOutput:
    """One request's part of a committed round. Its text is made before the text of the request's next round."""

    request: Request
    round: RequestRound
    event: TokenEvent  # without its text
    pieces: list[str] | None  # the text of the tokens, if stop strings made it necessary already
    hidden: bool  # whether the last token ends the answer and has no text

    def with_text(self) -> TokenEvent:
        """Make the text of the event for the request's client; call once."""
        event, detokenizer, pieces = self.event, self.request.detokenizer, self.pieces
        if pieces is None:
            shown = event.token_ids[:-1] if self.hidden else event.token_ids
            pieces = [detokenizer.push(token) for token in shown] + [""] * self.hidden
        if event.finish_reason is not None:
            pieces[-1] += detokenizer.finish()
        event.text, event.pieces, event.stop_string = "".join(pieces), tuple(pieces), detokenizer.stop_string
        return event


@dataclass(slots=True)
class CommittedRound:
    """The result of a round: figures at once, events on demand."""

    requests: dict[str, Request] = field(default_factory=dict)  # the requests that ran, by id
    outputs: list[RequestOutput | RequestFailure] = field(default_factory=list)
    rounds: list[RequestRound] = field(default_factory=list)

    def events(self) -> tuple[TokenEvent | RequestFailure, ...]:
        """Make the events; call once, and before those of the next round."""
        return tuple(each.with_text() if isinstance(each, RequestOutput) else each for each in self.outputs)


@dataclass(slots=True)
class FinishedRound:
    """What `learn` and `report` need. On an asynchronous device both wait for the next round's passes."""

    plan: StepPlan
    out: StepOutput
    commit: CommittedRound
    figures: RoundReport  # without events and corrections
    committed: float  # the time of the commit, by the engine's clock
    costs: CostModel

    def learn(self) -> None:
        """Let the policies and the cost model learn from the round."""
        self._observe()
        recorded = any(work.rows_to_record for work in self.plan.work)
        searched = self.figures.search_seconds
        if searched < _PRICED_SEARCH * self.out.verify_seconds and not recorded:
            self.costs.observe(self.plan, self.out, self.figures.other_seconds + searched)

    def _observe(self) -> None:
        """Tell every policy the outcomes of its plans."""
        emitted = {part.request_id: part.emitted for part in self.commit.rounds}
        by_policy: dict[str, tuple[DraftPolicy[Any], list[RequestView[Any]], list[Outcome]]] = {}
        for work, output in zip(self.plan.work, self.out.outputs, strict=True):
            request = self.commit.requests[work.request_id]
            _, views, outcomes = by_policy.setdefault(request.policy.name, (request.policy, [], []))
            views.append(request.view)
            plan = work.drafting
            outcomes.append(
                Outcome(
                    variants=plan.variants if plan else None,
                    drafted=output.drafted if plan else 0,
                    accepted=output.accepted if plan else 0,
                    confidences=output.confidences,
                    emitted=emitted.get(work.request_id, 0),
                    references=output.references,
                    draws=output.draws,
                )
            )
        seconds = self.out.draft_seconds + self.out.verify_seconds
        for policy, views, outcomes in by_policy.values():
            policy.observe(views, RoundOutcome(outcomes, len(self.plan.work), seconds))

    def report(self) -> RoundReport:
        """Make the round's report, with the text of its tokens; once, and before that of a later round."""
        report, requests = self.figures, len(self.plan.work)
        report.events = self.commit.events()
        report.rounds = tuple(self.commit.rounds)
        report.draft_correction = self.costs.factor(DRAFT)
        report.verify_correction = self.costs.verify_factor(report.batched_tokens, requests)
        report.search_correction = self.costs.search_factor
        return report
