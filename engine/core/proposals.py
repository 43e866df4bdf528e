"""Ask the draft policies for plans, once a round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from engine.clock import Clock
from engine.core.policies import POLICIES
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from engine.draft.base import BatchView, DraftPolicy, PolicyContext
from engine.draft.lookup import plan_lookup
from engine.errors import UnknownPolicyError
from engine.step import Plan


class _SettledBatch(NamedTuple):
    """The running requests at the last proposal, all decoding by one policy."""

    policy: DraftPolicy[Any]
    requests: list[Request]
    preemptions: int


class Proposer:
    """The policies of one engine, and the plans they propose for the running requests."""

    def __init__(self, scheduler: Scheduler, context: PolicyContext, clock: Clock) -> None:
        self._scheduler, self._context, self._clock = scheduler, context, clock
        self._policies: dict[str, DraftPolicy[Any]] = {}
        self._settled: _SettledBatch | None = None

    def policy(self, name: str) -> DraftPolicy[Any]:
        """Return the one instance of a policy, made at its first use. Raises UnknownPolicyError."""
        if name not in self._policies:
            if name not in POLICIES:
                raise UnknownPolicyError(name, tuple(POLICIES))
            self._policies[name] = POLICIES[name](self._context)
        return self._policies[name]

    def recalibrate(self) -> None:
        """Have all policies decide anew."""
        for policy in self._policies.values():
            policy.recalibrate()

    def plans_stand(self) -> bool:
        """Whether the last proposals hold for one more round, so that nobody need be asked."""
        settled, scheduler = self._settled, self._scheduler
        if settled is None or scheduler.running != settled.requests or scheduler.preemptions != settled.preemptions:
            return False
        if any(request.lookup.find(request.tokens) for request in settled.requests if request.lookup is not None):
            return False
        return settled.policy.plans_stand()

    def propose(self) -> float:
        """Give every decoding request a plan. Returns the seconds that policies took."""
        running = self._scheduler.running
        by_policy: dict[str, list[Request]] = {}
        for request in running:
            if request.decoding:
                by_policy.setdefault(request.policy.name, []).append(request)
        seconds = 0.0
        for name, requests in by_policy.items():
            others = [
                # Copied tokens cost the others no draft pass.
                (r.computed, r.plan.capped(0) if r.copied else r.plan)
                for other in by_policy
                if other != name
                for r in by_policy[other]
                if r.plan is not None
            ]
            started = self._clock.now()
            self._propose(requests, others)
            seconds += self._clock.now() - started
        uniform = len(by_policy) == 1 and all(r.decoding and not r.copied for r in running)
        self._settled = (
            _SettledBatch(running[0].policy, list(running), self._scheduler.preemptions) if uniform else None
        )
        return seconds

    def _propose(self, requests: Sequence[Request], others: Sequence[tuple[int, Plan]]) -> None:
        """Give requests of one policy their plans; `others`: context and plan of those with other policies."""
        beside = len(self._scheduler.running) + len(self._scheduler.waiting) - 1
        for request in requests:
            request.view.context, request.view.beside = request.computed, beside
        batch = BatchView([request.view for request in requests], others, self._context.config.max_num_seqs)
        plans = requests[0].policy.propose(batch)
        for request, plan in zip(requests, plans, strict=True):
            request.copied = ()
            request.plan = self._lookup_plan(request, plan, batch.contexts) or plan

    def _lookup_plan(self, request: Request, plan: Plan, contexts: Sequence[int]) -> Plan | None:
        """Return a plan that copies tokens from the text, where it is predicted to beat the policy's plan."""
        match = None if request.lookup is None else request.lookup.find(request.tokens)
        if request.lookup is None or match is None:
            return None
        made = plan_lookup(request.lookup, request.room - 1, plan, contexts, self._context.costs)
        if made is not None:
            request.copied, request.source = match.tokens[: made.gamma], match.source
        return made
