"""The engine without a thread: requests in, one round at a time, reports out.

`engine.core.loop` drives it for the server; benchmarks and tests drive it themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from engine.clock import Clock
from engine.core.constraints import Processors
from engine.core.proposals import Proposer, UniformBatch
from engine.core.request import Request
from engine.core.rounds import CommittedRound, FinishedRound, StepRunner
from engine.core.scheduler import Scheduler
from engine.draft.base import CandidatePass, DraftPolicy, PolicyContext, RequestView
from engine.draft.costs import CostModel
from engine.draft.lookup import AgreementCounts, Lookup
from engine.errors import RequestFailedError
from engine.kernels.library import KernelLibrary
from engine.step import Overlap, StartedPass, StepOutput, StepPlan, Work
from engine.text.detokenize import Detokenizer
from engine.text.tokenizer import Tokenizer
from engine.types import EngineInfo, GenerateRequest, RequestFailure, RoundReport, SamplingParams

log = logging.getLogger("knapserve.engine")

Deliver = Callable[[RoundReport], None]


@dataclass(slots=True)
class _Last:
    """What a round leaves to the next one. Its report waits until then, if host and device overlap."""

    finished: FinishedRound | None = None  # until it is reported
    served: Sequence[str] = ()  # ids of its requests
    serving: Sequence[str] = ()  # ids of the requests of the round after it, once that runs
    proposed: UniformBatch | None = None
    started: StartedPass | None = None  # the pass of the round after it

    def flush(self, deliver: Deliver) -> None:
        """Learn from the round and deliver its report, unless that has happened already."""
        finished, self.finished = self.finished, None
        if finished is not None:
            finished.learn()
            deliver(finished.report())


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
        """Make the policies. Raises ConfigError, TunedFileError."""
        blocks = scheduler.blocks
        self.proposer = Proposer(scheduler, policies, clock)
        self.info = replace(
            info,
            num_blocks=blocks.capacity,
            block_size=blocks.block_size,
            policies=tuple(self.proposer.policies),
            unavailable_policies=tuple(self.proposer.unavailable.items()),
        )
        self.tokenizer = tokenizer
        self.scheduler = scheduler
        self.runner = runner
        self.costs: CostModel = policies.costs
        self._clock = clock
        self.processors = Processors(tokenizer, info, kernels, policies.config.grammar)
        self._lookup_counts = AgreementCounts()  # the counts of all requests
        self._last = _Last()

    def policy(self, name: str) -> DraftPolicy[Any]:
        """Return the one instance of a policy. Raises UnknownPolicyError."""
        return self.proposer.policy(name)

    def close(self) -> None:
        """End the processes that follow grammars."""
        self.processors.close()

    def add(self, message: GenerateRequest) -> None:
        """Queue a request that `check_request` has passed, once its grammar is compiled.

        Raises RequestError for a grammar that is invalid or beyond its budget.
        """
        sampling = message.sampling
        policy = self.policy(message.draft_policy or self.info.default_policy)
        limit = self.info.max_model_len
        if sampling.max_tokens is not None:
            limit = min(limit, len(message.prompt) + sampling.max_tokens)
        lookup = None
        if policy.looks_up or sampling.predicted:
            lookup = Lookup(self._lookup_counts, sampling.predicted, own=policy.looks_up)

        tokens = list(message.prompt)
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
            view=RequestView(
                request_id=message.id,
                candidates=partial(self._candidates, message.id),
                state=policy.new_state(),
                tokens=tokens,
                prompt_tokens=len(tokens),
            ),
            tokens=tokens,
            lookup=lookup,
            owner=message.owner,
            priority=message.priority,
            cache_salt=message.cache_salt,
            processor=self.processors.make(sampling, message.prompt),
        )
        self.scheduler.add(request)

    def _candidates(self, request_id: str, positions: Sequence[int]) -> CandidatePass:
        """Return the passes of a search over verified rows of a running request."""
        request = next(r for r in self.scheduler.running if r.id == request_id)
        edits = self.processors.replay(request, positions)
        return self.runner.candidates(request.slab, positions, request.sampling, edits)

    def cancel(self, request_id: str) -> None:
        """Forget a request and free its cache; unknown ids are ignored."""
        self.scheduler.cancel(request_id)

    def step(self) -> RoundReport:
        """Run one round, learn from it, and return its report."""
        self._last = self._round(_Last(), flush=lambda: None)
        finished, self._last.finished = self._last.finished, None
        assert finished is not None
        finished.learn()
        report = finished.report()
        report.other_seconds += self._clock.now() - finished.committed
        return report

    def run_round(self, deliver: Deliver) -> None:
        """Run one round and deliver its report: at once, or, where host and device overlap, during the next round."""
        if not self.runner.overlaps:
            deliver(self.step())
            return
        last = self._last
        flush = partial(last.flush, deliver)
        try:
            self._last = self._round(last, flush)
        finally:
            flush()  # needed if the round did not wait for the device, or failed

    def fail_running(self) -> RoundReport:
        """Fail all requests of a round that failed, and of one that it was to report. Waiting ones stay."""
        failures = {failure.request_id: failure for failure in self.scheduler.fail_running()}
        for request_id in (*self._last.served, *self._last.serving):  # perhaps finished, and not reported yet
            failures.setdefault(request_id, RequestFailure(request_id, RequestFailedError("The engine has failed.")))
        self._last = _Last()
        return self.idle_report(*failures.values())

    def works(self) -> bool:
        """Whether a plain row is computed. If so, a round that failed was the fault of its requests."""
        blocks = self.scheduler.blocks
        slot = blocks.allocate("probe", (0,))
        if slot is None:
            return False
        work = Work("probe", slot.slab, 0, (0,), draws_token=True, sampling=SamplingParams(max_tokens=1))
        try:
            self.runner.run(StepPlan((work,), blocks.take_placements()))
        except Exception:
            log.exception("a round without requests fails too")
            return False
        finally:
            blocks.release(slot.slab)
        return True

    def flush(self, deliver: Deliver) -> None:
        """Learn from the last round and deliver its report, unless that has happened already."""
        self._last.flush(deliver)

    def _round(self, last: _Last, flush: Callable[[], None]) -> _Last:
        """Run one round: admit → propose → plan → run → commit. `flush` learns from the last round and reports it.

        Where host and device overlap, the runner calls `flush` while the device computes. If the last plans can be
        reused, a plain round's pass may even start before the last one is read. Otherwise the last round is flushed
        first, so that decisions know all rounds.
        """
        started, counters = self._clock.now(), self.scheduler.counters
        self.scheduler.admit()
        self.proposer.extend_lookups()
        overlaps, search_seconds, proposed = self.runner.overlaps, 0.0, last.proposed
        reuse = overlaps and self.proposer.can_reuse_plans(proposed)
        if not reuse:
            flush()
            search_seconds, proposed = self.proposer.propose()
        plan = self.scheduler.plan()
        last.serving = [work.request_id for work in plan.work]
        overlap = Overlap(flush, last.started, reuse and self.scheduler.settled) if overlaps else None
        out = self.runner.run(plan, overlap)
        commit = self.scheduler.commit(plan, out)
        finished = self._finished(plan, out, commit, started, counters, search_seconds)
        return _Last(finished, last.serving, proposed=proposed, started=out.following)

    def _finished(
        self,
        plan: StepPlan,
        out: StepOutput,
        commit: CommittedRound,
        started: float,
        counters: tuple[int, int, int],
        search_seconds: float,
    ) -> FinishedRound:
        """Collect a round's figures. `counters`: the scheduler's when the round `started`."""
        scheduler, committed = self.scheduler, self._clock.now()
        figures = self.idle_report()
        figures.batched_tokens = sum(len(w.tokens) + o.drafted for w, o in zip(plan.work, out.outputs, strict=True))
        figures.prompt_tokens = sum(len(w.tokens) for w in plan.work if w.reads_prompt)
        figures.draft_seconds, figures.verify_seconds = out.draft_seconds, out.verify_seconds
        figures.search_seconds = search_seconds
        figures.other_seconds = committed - started - out.draft_seconds - out.verify_seconds - search_seconds
        figures.prefix_queries, figures.prefix_hits, figures.preemptions = (
            now - then for now, then in zip(scheduler.counters, counters, strict=True)
        )
        return FinishedRound(plan, out, commit, figures, committed, self.costs)

    def idle_report(self, *failures: RequestFailure) -> RoundReport:
        """Report the engine's state, and failed requests, without a round."""
        scheduler = self.scheduler
        return RoundReport(
            events=failures,
            running=len(scheduler.running),
            waiting=len(scheduler.waiting),
            deferred=min(scheduler.deferred, len(scheduler.waiting)),
            kv_usage=scheduler.blocks.usage,
        )
