"""The runner that computes a round, and how a finished round is learnt from and reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from engine.core.request import Request
from engine.core.round_output import Commit
from engine.draft.base import CandidatePass, DraftPolicy, Outcome, RequestView, RoundOutcome
from engine.draft.costs import CostModel
from engine.kv.blocks import Placement
from engine.step import StepOutput, StepPlan
from engine.types import RoundReport, SamplingParams

if TYPE_CHECKING:
    from engine.sampling.sample import Edit

_PRICED_SEARCH = 0.15  # of the verify pass: a round that searches longer leaves cold caches, and teaches no prices


class StepRunner(Protocol):
    """The seam to the tensors: `engine.runtime.runner.Runner`, or a fake."""

    overlaps: bool  # whether the device computes while the host does something else

    @property
    def attention(self) -> object:
        """The owner of the K/V cache, which runners may share."""

    def run(
        self, plan: StepPlan, on_wait: Callable[[], None] | None = None, *, overlap_next: bool = False
    ) -> StepOutput:
        """Run a round. With `overlap_next`, a following plain round's pass may start before this one is read."""

    def candidates(
        self, slab: int, positions: Sequence[int], sampling: SamplingParams, edits: Iterable[Edit | None] = ()
    ) -> CandidatePass:
        """Return the passes of a search over verified rows; `edits`: of the logits after each row."""

    def fill_random_kv(self, placements: Sequence[Placement], slab: int, tokens: int) -> None:
        """Fill so many positions of a slab with random keys and values."""


@dataclass(slots=True)
class FinishedRound:
    """What `learn` and `report` need. On an asynchronous device both wait for the next round's passes."""

    plan: StepPlan
    out: StepOutput
    commit: Commit
    requests: dict[str, Request]  # that ran, by id
    figures: RoundReport  # without events and corrections
    committed: float  # by the engine's clock
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
        report, requests = self.figures, len(self.plan.work)
        report.events = self.commit.events()
        report.rounds = tuple(self.commit.rounds)
        report.draft_correction = self.costs.draft_factor(requests)
        report.verify_correction = self.costs.verify_factor(report.batched_tokens, requests)
        report.search_correction = self.costs.search_factor
        return report
