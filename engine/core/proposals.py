"""Ask the draft policies for plans, once a round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from engine.clock import Clock
from engine.core.policies import make_policies
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from engine.draft.base import BatchView, DraftPolicy, PolicyContext
from engine.draft.lookup import plan_lookup
from engine.errors import UnknownPolicyError
from engine.step import Plan


class UniformBatch(NamedTuple):
    """The running requests at the last proposal, all decoding by one policy."""

    policy: DraftPolicy[Any]
    requests: list[Request]
    preemptions: int


class Proposer:
    """The policies of one engine, and the plans they propose for the running requests."""

    def __init__(self, scheduler: Scheduler, context: PolicyContext, clock: Clock) -> None:
        """Make all available policies. Raises ConfigError, TunedFileError."""
        self._scheduler, self._context, self._clock = scheduler, context, clock
        self.policies, self.unavailable = make_policies(context)

    def policy(self, name: str) -> DraftPolicy[Any]:
        """Return the one instance of a policy. Raises UnknownPolicyError."""
        if name not in self.policies:
            raise UnknownPolicyError(name, tuple(self.policies), self.unavailable.get(name, ""))
        return self.policies[name]

    def extend_lookups(self) -> None:
        """Index the tokens of the last round, and find matches of the texts' ends. Call before plans are made."""
        for request in self._scheduler.running:
            if request.lookup is not None and request.decoding:
                request.lookup.extend(request.tokens)

    def can_reuse_plans(self, last: UniformBatch | None) -> bool:
        """Whether the plans of the last proposal hold for one more round, so that `propose` need not run."""
        scheduler = self._scheduler
        if last is None or scheduler.running != last.requests or scheduler.preemptions != last.preemptions:
            return False
        copying = any(r.lookup is not None and r.lookup.match is not None for r in last.requests)
        return not copying and last.policy.can_reuse_plans()

    def propose(self) -> tuple[float, UniformBatch | None]:
        """Give every decoding request a plan.

        Returns the seconds that policies took, and the batch if its plans may hold for further rounds.
        """
        running = self._scheduler.running
        by_policy: dict[str, list[Request]] = {}
        for request in running:
            if request.decoding:
                by_policy.setdefault(request.policy.name, []).append(request)
        seconds = 0.0
        for name, requests in by_policy.items():
            others = [
                # Tokens that are given cost the others no draft pass.
                (r.computed, r.plan.capped(0) if r.plan.tokens else r.plan)
                for other in by_policy
                if other != name
                for r in by_policy[other]
                if r.plan is not None
            ]
            started = self._clock.now()
            self._propose(requests, others)
            seconds += self._clock.now() - started
        uniform = len(by_policy) == 1 and all(r.decoding and r.plan and not r.plan.tokens for r in running)
        batch = UniformBatch(running[0].policy, list(running), self._scheduler.preemptions) if uniform else None
        return seconds, batch

    def _propose(self, requests: Sequence[Request], others: Sequence[tuple[int, Plan]]) -> None:
        """Give requests of one policy their plans; `others`: context and plan of those with other policies."""
        other_requests = len(self._scheduler.running) + len(self._scheduler.waiting) - 1
        for request in requests:
            request.view.context, request.view.other_requests = request.computed, other_requests
        batch = BatchView([request.view for request in requests], others, self._context.config.max_num_seqs)
        for request, plan in zip(requests, requests[0].policy.propose(batch), strict=True):
            request.plan = plan
            if request.lookup is not None:
                most, always, costs = request.room - 1, request.policy.always_copies, self._context.costs
                request.plan = plan_lookup(request.lookup, most, plan, batch.contexts, costs, always) or plan
