"""Ask the draft policies for plans, once a round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from engine.clock import Clock
from engine.core.policies import make_policies
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from engine.draft.base import BatchView, DraftPolicy, PolicyContext
from engine.draft.lookup import Lookup, plan_lookup
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

    def can_reuse_plans(self, last: UniformBatch | None) -> bool:
        """Whether the plans of the last proposal hold for one more round, so that `propose` need not run."""
        scheduler = self._scheduler
        if last is None or scheduler.running != last.requests or scheduler.preemptions != last.preemptions:
            return False
        if any(_lookup(request) for request in last.requests):
            return False
        return last.policy.can_reuse_plans()

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
            if lookup := _lookup(request):
                most, always, costs = request.room - 1, request.policy.always_copies, self._context.costs
                request.plan = plan_lookup(lookup, most, plan, batch.contexts, costs, always) or plan


def _lookup(request: Request) -> Lookup | None:
    """Return the index of a request's text, if the end of that text occurred before and may be copied from."""
    if request.lookup is not None:
        request.lookup.extend(request.tokens)
    return request.lookup if request.lookup is not None and request.lookup.match is not None else None
