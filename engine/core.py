"""The engine without a thread: requests in, one `step` a round, reports out. Loop, benchmark and tests drive it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.clock import Clock
from engine.detokenize import Detokenizer
from engine.draft.base import DraftPolicy, Outcome, Plan, PolicyContext, View, make_policy, policy_names
from engine.draft.costs import CostModel
from engine.draft.prediction import Prediction
from engine.errors import RequestError, UnknownPolicyError
from engine.logits import make_processor
from engine.runner import Runner
from engine.scheduler import Scheduler
from engine.step import StepOutput, StepPlan
from engine.tokenizer import Tokenizer
from engine.types import EngineInfo, GenerateRequest, Request, RoundReport

if TYPE_CHECKING:
    from engine.grammar import GrammarMatcher, Grammars


class EngineCore:
    """Scheduler, runner and policies of one model. Used by one thread at a time."""

    def __init__(
        self,
        info: EngineInfo,
        tokenizer: Tokenizer,
        scheduler: Scheduler,
        runner: Runner,
        policies: PolicyContext,
        clock: Clock,
    ) -> None:
        self.info = info
        self.tokenizer = tokenizer
        self.scheduler = scheduler
        self.runner = runner
        self.costs: CostModel = policies.costs
        self._policies = policies
        self._made: dict[str, DraftPolicy] = {}
        self._clock = clock
        self._grammars: Grammars | None = None
        self.policy(info.default_policy)

    def policy(self, name: str) -> DraftPolicy:
        """The one instance of a policy; made when first asked for. Raises UnknownPolicyError."""
        if name not in self._made:
            if name not in policy_names():
                raise UnknownPolicyError(name, policy_names())
            self._made[name] = make_policy(name, self._policies)
        return self._made[name]

    def add(self, message: GenerateRequest) -> None:
        """Queue a request that `check_request` has passed."""
        sampling = message.sampling
        limit = self.info.max_model_len
        if sampling.max_tokens is not None:
            limit = min(limit, len(message.prompt) + sampling.max_tokens)
        self.scheduler.add(
            Request(
                id=message.id,
                prompt=message.prompt,
                sampling=sampling,
                policy=self.policy(message.draft_policy or self.info.default_policy),
                arrival=self._clock.now(),
                limit=limit,
                detokenizer=Detokenizer(
                    self.tokenizer.backend,
                    sampling.stop,
                    message.prompt,
                    skip_special_tokens=sampling.skip_special_tokens,
                    include_stop=sampling.include_stop,
                ),
                prediction=Prediction(sampling.predicted) if sampling.predicted else None,
                processor=make_processor(sampling, message.prompt, self.info.eos_token_ids, self._match),
            )
        )

    def _match(self, grammar: str) -> GrammarMatcher:
        """The beginning of an answer of a grammar."""
        if self._grammars is None:
            from engine.grammar import Grammars, vocabulary

            info = self.info
            self._grammars = Grammars(vocabulary(self.tokenizer.backend, info.vocab_size, info.eos_token_ids))
        return self._grammars.begin(grammar)

    def imagine(self, tokens: Sequence[int]) -> None:
        """Cache made-up keys and values for a prefix, so that timing a long context need not read it first.

        A prompt that begins with these tokens (whole blocks of them) hits the prefix like any other.
        """
        blocks = self.scheduler.blocks
        slot = blocks.allocate("imagined", tokens)
        if slot is None:
            raise RequestError(f"There is no room for {len(tokens)} cached tokens.")
        self.runner.attention.cache.place(blocks.take_placements())
        self.runner.attention.cache.fill(slot.slab, len(tokens))
        blocks.seal(slot.slab, tokens, len(tokens))
        blocks.release(slot.slab)

    def cancel(self, request_id: str) -> None:
        """Forget a request; unknown ids are ignored."""
        self.scheduler.cancel(request_id)

    def step(self) -> RoundReport:
        """One round: schedule, draft, verify, keep."""
        started = self._clock.now()
        scheduler = self.scheduler
        counters = (scheduler.prefix_queries, scheduler.prefix_hits, scheduler.preemptions)
        scheduler.admit()
        search = self._propose()
        plan = scheduler.plan()
        out = self.runner.run(plan)
        requests = {r.id: r for r in scheduler.running}
        prompt_rows = sum(len(w.tokens) for w in plan.work if not requests[w.request_id].decoding)
        events, rounds = scheduler.commit(plan, out)
        self._observe(plan, out, requests, {r.request_id: r.emitted for r in rounds}, prompt_rows)
        other = self._clock.now() - started - search - out.draft_seconds - out.verify_seconds
        self.costs.observe(plan, out, other)
        return RoundReport(
            events=tuple(events),
            rounds=tuple(rounds),
            running=len(scheduler.running),
            waiting=len(scheduler.waiting),
            kv_usage=scheduler.blocks.usage,
            batched_tokens=sum(len(w.tokens) + w.gamma for w in plan.work),
            prompt_tokens=prompt_rows,
            draft_seconds=out.draft_seconds,
            verify_seconds=out.verify_seconds,
            search_seconds=search,
            other_seconds=other,
            prefix_queries=scheduler.prefix_queries - counters[0],
            prefix_hits=scheduler.prefix_hits - counters[1],
            preemptions=scheduler.preemptions - counters[2],
            draft_correction=self.costs.draft.factor,
            verify_correction=self.costs.verify_factor(sum(len(w.tokens) + w.gamma for w in plan.work)),
        )

    def idle_report(self) -> RoundReport:
        """What the engine looks like when nothing runs."""
        return RoundReport((), (), 0, 0, self.scheduler.blocks.usage, 0, 0, 0.0, 0.0, 0.0, 0.0)

    def _propose(self) -> float:
        """Ask the policies of all requests that decode for a plan. Returns the seconds they searched."""
        decoding = [r for r in self.scheduler.running if r.decoding]
        # What is copied costs the others no draft pass.
        plans = [(r.computed, r.plan.capped(0) if r.plan and r.copied else r.plan) for r in decoding]
        seconds = 0.0
        for index, request in enumerate(decoding):
            view = self._view(request)
            view.others = [(context, plan) for context, plan in plans[:index] + plans[index + 1 :] if plan]
            plan = request.policy.propose(view)
            if request.prediction is not None:
                plan = self._copied(request, request.prediction, plan)
            request.plan = plan
            plans[index] = request.computed, plan.capped(0) if request.copied else plan
            request.draft_state = view.state
            seconds += view.search_seconds
            if view.reselected is not None:
                request.reselected = view.reselected
                request.reselections += view.reselected == "changed"
        return seconds

    @staticmethod
    def _copied(request: Request, prediction: Prediction, plan: Plan) -> Plan:
        """The policy's plan, or what the client expects instead where the answer is in it."""
        answer = request.tokens[len(request.prompt) :]
        request.copied = prediction.propose(answer, max(request.room - 1, 0))
        return Plan((1,) * len(plan.variants), len(request.copied)) if request.copied else plan

    def _view(self, request: Request) -> View:
        slab, sampling = request.slab, request.sampling
        return View(
            request_id=request.id,
            context=request.computed,
            sampling=sampling,
            state=request.draft_state,
            others=(),
            candidates=lambda positions: self.runner.candidates(slab, positions, sampling),
        )

    def _observe(
        self,
        plan: StepPlan,
        out: StepOutput,
        requests: dict[str, Request],
        emitted: dict[str, int],
        prompt_rows: int,
    ) -> None:
        """Tell every policy what became of its proposals."""
        seconds = out.draft_seconds + out.verify_seconds + self.costs.overhead
        drafting = sum(o.drafted > 0 for o in out.outputs)
        alike = prompt_rows == 0 and drafting in (0, len(out.outputs)) and not any(w.copied for w in plan.work)
        for work, output in zip(plan.work, out.outputs, strict=True):
            request = requests[work.request_id]
            view = self._view(request)
            outcome = Outcome(
                plan=work.plan or Plan((1,) * self._policies.spec.sublayers, 0),
                drafted=0 if work.copied else output.drafted,
                accepted=0 if work.copied else output.accepted,
                confidences=output.confidences,
                emitted=emitted.get(work.request_id, 0),
                seconds=seconds / len(plan.work),
                requests=len(plan.work),
                round_seconds=seconds if alike else None,
                references=output.references,
            )
            request.policy.observe(view, outcome)
            request.draft_state = view.state
