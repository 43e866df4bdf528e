"""The engine without a thread: requests in, one round at a time, reports out.

`engine.core.loop` drives it for the server; benchmarks and tests drive it themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from engine.clock import Clock
from engine.core.constraints import Processors
from engine.core.finished import FinishedRound
from engine.core.proposals import Proposer
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from engine.draft.base import CandidatePass, DraftPolicy, PolicyContext, RequestView
from engine.draft.costs import CostModel
from engine.draft.lookup import AgreementCounts, LookUp
from engine.errors import RequestError
from engine.kernels.library import KernelLibrary
from engine.kv.blocks import Placement
from engine.step import StepOutput, StepPlan
from engine.text.detokenize import Detokenizer
from engine.text.tokenizer import Tokenizer
from engine.types import EngineInfo, GenerateRequest, RequestFailure, RoundReport, SamplingParams

if TYPE_CHECKING:
    from engine.sampling.sample import Edit

Deliver = Callable[[RoundReport], None]


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
        self,
        slab: int,
        positions: Sequence[int],
        sampling: SamplingParams,
        edits: Iterable[Edit | None] = (),
    ) -> CandidatePass:
        """Return the passes of a search over verified rows; `edits`: of the logits after each row."""

    def imagine(self, placements: Sequence[Placement], slab: int, tokens: int) -> None:
        """Fill so many positions of a slab with made-up keys and values."""


class EngineCore:
    """Scheduler, runner and policies of one model. Used by one thread at a time."""

    def __init__(
        self,
        info: EngineInfo,
        tokenizer: Tokenizer,
        scheduler: Scheduler,
        runner: StepRunner,
        policies: PolicyContext,
        clock: Clock,
        kernels: KernelLibrary | None = None,
    ) -> None:
        self.info = info
        self.tokenizer = tokenizer
        self.scheduler = scheduler
        self.runner = runner
        self.costs: CostModel = policies.costs
        self._clock = clock
        self._proposer = Proposer(scheduler, policies, clock)
        self._processors = Processors(tokenizer, info, kernels)
        self._lookup_counts = AgreementCounts()  # of all requests
        self._pending: FinishedRound | None = None  # a round that is not reported yet
        self.policy(info.default_policy)

    def policy(self, name: str) -> DraftPolicy[Any]:
        """Return the one instance of a policy. Raises UnknownPolicyError."""
        return self._proposer.policy(name)

    # -- requests ----------------------------------------------------------------------------------------------------

    def add(self, message: GenerateRequest) -> None:
        """Queue a request that `check_request` has passed. Raises RequestError for a grammar that is invalid."""
        sampling = message.sampling
        policy = self.policy(message.draft_policy or self.info.default_policy)
        limit = self.info.max_model_len
        if sampling.max_tokens is not None:
            limit = min(limit, len(message.prompt) + sampling.max_tokens)
        lookup = None
        if policy.looks_up or sampling.predicted:
            lookup = LookUp(self._lookup_counts, sampling.predicted, own=policy.looks_up)

        def candidates(positions: Sequence[int]) -> CandidatePass:
            edits = self._processors.replay(request, positions)
            return self.runner.candidates(request.slab, positions, sampling, edits)

        request = Request(
            id=message.id,
            prompt=message.prompt,
            sampling=sampling,
            policy=policy,
            arrival=self._clock.now(),
            limit=limit,
            detokenizer=Detokenizer(
                self.tokenizer.backend,
                sampling.stop,
                message.prompt,
                skip_special_tokens=sampling.skip_special_tokens,
                include_stop=sampling.include_stop,
            ),
            view=RequestView(message.id, sampling, candidates, policy.new_state()),
            lookup=lookup,
            processor=self._processors.make(sampling, message.prompt),
        )
        self.scheduler.add(request)

    def cancel(self, request_id: str) -> None:
        """Forget a request and free its cache; unknown ids are ignored."""
        self.scheduler.cancel(request_id)

    def reset_calibration(self) -> None:
        """Price passes by the latency profile again, and have the policies decide anew."""
        if self._pending is not None:
            self._pending.learn()
        self.costs.reset()
        self._proposer.recalibrate()

    def imagine(self, tokens: Sequence[int]) -> None:
        """Cache made-up keys and values for a prefix, so that timing a long context need not read it first.

        A prompt that begins with these tokens (whole blocks of them) hits the prefix cache. Raises RequestError when
        the cache has no room.
        """
        blocks = self.scheduler.blocks
        slot = blocks.allocate("imagined", tokens)
        if slot is None:
            raise RequestError(f"There is no room for {len(tokens)} cached tokens.")
        self.runner.imagine(blocks.take_placements(), slot.slab, len(tokens))
        blocks.seal(slot.slab, tokens, len(tokens))
        blocks.release(slot.slab)

    # -- rounds ------------------------------------------------------------------------------------------------------

    def step(self) -> RoundReport:
        """Run one round, learn from it, and return its report."""
        assert self._pending is None
        finished = self._run_round()
        ended = self._clock.now()
        finished.learn()
        report = finished.report()
        report.other_seconds += self._clock.now() - ended
        return report

    def run_round(self, deliver: Deliver) -> None:
        """Run one round and deliver its report: at once, or, where host and device overlap, during the next round."""
        if not self.runner.overlaps:
            deliver(self.step())
            return
        flush = partial(self.flush, deliver)
        try:
            finished = self._run_round(flush)
        finally:
            flush()  # if the round did not wait for the device, or failed
        self._pending = finished

    def flush(self, deliver: Deliver) -> None:
        """Learn from the pending round, if there is one, and deliver its report."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.learn()
            deliver(pending.report())

    def _run_round(self, flush: Callable[[], None] | None = None) -> FinishedRound:
        """Schedule → propose → run → commit. `flush` is called while the device computes or before a decision."""
        started = self._clock.now()
        scheduler = self.scheduler
        before = scheduler.counters
        scheduler.admit()
        stand = flush is not None and self._proposer.plans_stand()
        if flush is not None and not stand:
            flush()  # decisions take all rounds into account
        search = 0.0 if stand else self._proposer.propose()
        plan = scheduler.plan()
        out = self.runner.run(plan, flush, overlap_next=stand and scheduler.settled)
        requests = {request.id: request for request in scheduler.running}
        prompt_tokens = sum(len(w.tokens) for w in plan.work if not requests[w.request_id].decoding)
        commit = scheduler.commit(plan, out)
        return FinishedRound(
            plan=plan,
            out=out,
            commit=commit,
            requests=requests,
            prompt_tokens=prompt_tokens,
            search_seconds=search,
            other_seconds=self._clock.now() - started - search - out.draft_seconds - out.verify_seconds,
            running=len(scheduler.running),
            waiting=len(scheduler.waiting),
            kv_usage=scheduler.blocks.usage,
            counters=scheduler.counters.since(before),
            costs=self.costs,
        )

    def idle_report(self, *failures: RequestFailure) -> RoundReport:
        """Report the engine's state, and failed requests, without a round."""
        running, waiting = len(self.scheduler.running), len(self.scheduler.waiting)
        return RoundReport(failures, (), running, waiting, self.scheduler.blocks.usage, 0, 0, 0.0, 0.0, 0.0, 0.0)
