"""The engine without a thread: requests in, `advance` or `step` once a round, reports out. Loop, benchmark and tests
drive it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from engine.clock import Clock
from engine.core.policies import POLICIES
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from engine.draft.base import CandidatePass, Company, DraftPolicy, Outcome, PolicyContext, RoundOutcome, View
from engine.draft.costs import CostModel
from engine.draft.lookup import Counts, LookUp, looked_up
from engine.errors import RequestError, UnknownPolicyError
from engine.kv.blocks import Placement
from engine.sampling.logits import make_processor
from engine.step import Plan, StepOutput, StepPlan
from engine.text.detokenize import Detokenizer
from engine.text.tokenizer import Tokenizer
from engine.types import EngineInfo, ErrorEvent, GenerateRequest, RoundReport, SamplingParams, TokenEvent

if TYPE_CHECKING:
    from engine.sampling.grammar import GrammarMatcher, Grammars


log = logging.getLogger("knapserve.engine")

_LITTLE_SEARCH = 0.15  # of the verify pass: what a round may search and still show what rounds usually take


class StepRunner(Protocol):
    """What runs a round: `engine.runtime.runner`, or a fake."""

    apart: bool  # whether passes go on while this thread does something else

    @property
    def attention(self) -> object:
        """What owns the cache: the same for runners that share it."""

    def run(
        self, plan: StepPlan, meanwhile: Callable[[], None] | None = None, *, go_on: bool = False
    ) -> StepOutput: ...

    def candidates(
        self,
        slab: int,
        positions: Sequence[int],
        sampling: SamplingParams,
        edits: Iterable[Callable[..., None] | None] = (),
    ) -> CandidatePass:
        """Sublayers over verified rows of the request in a slab; `edits` are done to the logits after each."""

    def imagine(self, placements: Sequence[Placement], slab: int, tokens: int) -> None:
        """Fill so many positions of a slab with made-up keys and values."""


class _Company(NamedTuple):
    """Requests that all decode by one policy, when it was last asked."""

    policy: DraftPolicy
    requests: list[Request]
    preemptions: int


class _Left(NamedTuple):
    """What remains of a round that has been run."""

    report: Callable[[], RoundReport]  # makes it, and the text of what was said: once, before that of later rounds
    lessons: list[Callable[[], None]]  # for policies and prices


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
    ) -> None:
        self.info = info
        self.tokenizer = tokenizer
        self.scheduler = scheduler
        self.runner = runner
        self.costs: CostModel = policies.costs
        self._lookups = Counts()  # of all requests
        self._policies = policies
        self._made: dict[str, DraftPolicy] = {}
        self._clock = clock
        self._grammars: Grammars | str | None = None  # or why there are none
        self._undrafted = Plan(policies.spec.whole, 0)
        self._company: _Company | None = None
        self._left: _Left | None = None  # of the last round
        self.policy(info.default_policy)

    def policy(self, name: str) -> DraftPolicy:
        """The one instance of a policy; made when first asked for. Raises UnknownPolicyError."""
        if name not in self._made:
            if name not in POLICIES:
                raise UnknownPolicyError(name, tuple(POLICIES))
            self._made[name] = POLICIES[name](self._policies)
        return self._made[name]

    def add(self, message: GenerateRequest) -> None:
        """Queue a request that `check_request` has passed."""
        sampling = message.sampling
        policy = self.policy(message.draft_policy or self.info.default_policy)
        limit = self.info.max_model_len
        if sampling.max_tokens is not None:
            limit = min(limit, len(message.prompt) + sampling.max_tokens)
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
            view=View(
                message.id,
                sampling,
                lambda rows: self.runner.candidates(request.slab, rows, sampling, self._edits(request, rows)),
            ),
            lookup=(
                LookUp(self._lookups, sampling.predicted, own=policy.looks_up)
                if policy.looks_up or sampling.predicted
                else None
            ),
            processor=make_processor(sampling, message.prompt, self.info.eos_token_ids, partial(self._begin, sampling)),
        )
        self.scheduler.add(request)

    def _begin(self, sampling: SamplingParams, grammar: str) -> GrammarMatcher:
        """The beginning of an answer of a grammar. Raises RequestError."""
        try:
            return self._compiler().begin(grammar)
        except ValueError as error:
            raise RequestError(f"This cannot be followed: {error}", param=sampling.grammar_param) from None

    def _compiler(self) -> Grammars:
        """Raises ValueError where there is no library or it cannot read the tokenizer, which takes a while: once."""
        if self._grammars is None:
            info = self.info
            try:
                from engine.sampling.grammar import Grammars, vocabulary

                self._grammars = Grammars(vocabulary(self.tokenizer, info.vocab_size, info.eos_token_ids))
            except Exception as error:
                self._grammars = f"structured output is not available with this model ({error})"
        if isinstance(self._grammars, str):
            raise ValueError(self._grammars)
        return self._grammars

    def _edits(self, request: Request, positions: Sequence[int]) -> Iterator[Callable[..., None] | None]:
        """What the request asked to be done to its logits after these positions of its text, in ascending order.

        Each holds until the next is made. None within the prompt, where nothing is asked for.
        """
        sampling, known = request.sampling, len(request.prompt)
        if request.processor is None:
            return
        begin = partial(self._begin, sampling)  # which it has passed before
        processor = make_processor(sampling, request.prompt, self.info.eos_token_ids, begin)
        assert processor is not None
        for position in positions:
            processor.advance(request.tokens[known : position + 1])
            known = max(known, position + 1)
            yield partial(processor.edit, drafted=()) if position + 1 >= len(request.prompt) else None

    def imagine(self, tokens: Sequence[int]) -> None:
        """Cache made-up keys and values for a prefix, so that timing a long context need not read it first.

        A prompt that begins with these tokens (whole blocks of them) hits the prefix like any other.
        """
        blocks = self.scheduler.blocks
        slot = blocks.allocate("imagined", tokens)
        if slot is None:
            raise RequestError(f"There is no room for {len(tokens)} cached tokens.")
        self.runner.imagine(blocks.take_placements(), slot.slab, len(tokens))
        blocks.seal(slot.slab, tokens, len(tokens))
        blocks.release(slot.slab)

    def cancel(self, request_id: str) -> None:
        """Forget a request; unknown ids are ignored."""
        self.scheduler.cancel(request_id)

    def reset_calibration(self) -> None:
        """Trust the latency profile again: forget by what rounds and searches corrected it."""
        if self._left is not None:
            _learn(self._left.lessons)
        self.costs.reset()
        for policy in self._made.values():
            policy.recalibrate()

    def step(self) -> RoundReport:
        """One round, and what there is to tell of it."""
        assert self._left is None
        return self._round(None).report()

    def advance(self, tell: Callable[[RoundReport], None]) -> None:
        """One round. Where passes go on apart from this thread, it is told, and learnt from, during those of the next
        one if nothing is decided there, else before that decides, or by `settle`; elsewhere at once."""
        if not self.runner.apart:
            tell(self.step())
            return
        settle = partial(self.settle, tell)
        try:
            left = self._round(settle)
        except BaseException:  # with which what was said before is not lost
            settle()
            raise
        settle()  # should the round have had nothing to wait for
        self._left = left

    def settle(self, tell: Callable[[RoundReport], None]) -> None:
        """Learn from the last round and tell it, unless that is done."""
        left, self._left = self._left, None
        if left is not None:
            _learn(left.lessons)
            tell(left.report())

    def _round(self, settle: Callable[[], None] | None) -> _Left:
        """One round. `settle` is called before anything is decided, or while passes go on apart."""
        apart = settle is not None and self.runner.apart
        started = self._clock.now()
        scheduler = self.scheduler
        counters = (scheduler.prefix_queries, scheduler.prefix_hits, scheduler.preemptions)
        scheduler.admit()
        standing = self._stands()
        if standing is None and settle is not None:
            settle()
        search = 0.0 if standing else self._propose()
        plan = scheduler.plan()
        out = self.runner.run(plan, settle, go_on=apart and standing is not None and scheduler.settled)
        requests = {r.id: r for r in scheduler.running}
        reading = {w.request_id: len(w.tokens) for w in plan.work if not requests[w.request_id].decoding}
        commit = scheduler.commit(plan, out)
        rounds = commit.rounds
        emitted = {r.request_id: r.emitted for r in rounds}
        events: tuple[TokenEvent | ErrorEvent, ...] | None = None
        lessons: list[Callable[[], None]] = [partial(self._observe, plan, out, requests, emitted)]
        if not apart:
            _learn(lessons)
            events = commit.events()
        other = self._clock.now() - started - search - out.draft_seconds - out.verify_seconds
        # Others are slower: caches are cold, rows were kept.
        priced = search < _LITTLE_SEARCH * out.verify_seconds and not any(w.record for w in plan.work)
        if priced:
            lessons.append(partial(self.costs.observe, plan, out, other + search))
        if not apart:
            _learn(lessons)
        rows = sum(len(w.tokens) + o.drafted for w, o in zip(plan.work, out.outputs, strict=True))
        running, waiting, usage = len(scheduler.running), len(scheduler.waiting), scheduler.blocks.usage
        queries, hits, preemptions = scheduler.prefix_queries, scheduler.prefix_hits, scheduler.preemptions

        def report() -> RoundReport:
            return RoundReport(
                events=commit.events() if events is None else events,
                rounds=tuple(rounds),
                running=running,
                waiting=waiting,
                kv_usage=usage,
                batched_tokens=rows,
                prompt_tokens=sum(reading.values()),
                draft_seconds=out.draft_seconds,
                verify_seconds=out.verify_seconds,
                search_seconds=search,
                other_seconds=other,
                prefix_queries=queries - counters[0],
                prefix_hits=hits - counters[1],
                preemptions=preemptions - counters[2],
                draft_correction=self.costs.draft_factor(len(plan.work)),
                verify_correction=self.costs.verify_factor(rows, len(plan.work)),
                search_correction=self.costs.search_factor,
            )

        return _Left(report, lessons)

    def idle_report(self) -> RoundReport:
        """What the engine looks like when nothing runs."""
        return RoundReport((), (), 0, 0, self.scheduler.blocks.usage, 0, 0, 0.0, 0.0, 0.0, 0.0)

    def _stands(self) -> DraftPolicy | None:
        """The policy of all requests, where what it proposed last holds on."""
        company, scheduler = self._company, self.scheduler
        if company is None or scheduler.running != company.requests or scheduler.preemptions != company.preemptions:
            return None
        if any(request.lookup.find(request.tokens) for request in company.requests if request.lookup is not None):
            return None
        return company.policy if company.policy.stands() else None

    def _propose(self) -> float:
        """Ask the policies of all requests that decode for plans. Returns the seconds that they took."""
        asking: dict[str, list[Request]] = {}
        for request in self.scheduler.running:
            if request.decoding:
                asking.setdefault(request.policy.name, []).append(request)
        seconds = 0.0
        for name, requests in asking.items():
            others = [
                # What is copied costs the others no draft pass.
                (r.computed, r.plan.capped(0) if r.copied else r.plan)
                for other in asking
                if other != name
                for r in asking[other]
                if r.plan is not None
            ]
            views = [request.view for request in requests]
            beside = len(self.scheduler.running) + len(self.scheduler.waiting) - 1
            for request in requests:
                request.view.context, request.view.beside = request.computed, beside
            started = self._clock.now()
            plans = requests[0].policy.propose(views, others)
            contexts = Company(views, others, self._policies.config.max_num_seqs).contexts
            for request, plan in zip(requests, plans, strict=True):
                request.copied = ()
                request.plan = self._looked_up(request, plan, contexts) or plan
            seconds += self._clock.now() - started
        running = self.scheduler.running
        alike = len(asking) == 1 and all(r.decoding and not r.copied for r in running)
        self._company = _Company(running[0].policy, list(running), self.scheduler.preemptions) if alike else None
        return seconds

    def _looked_up(self, request: Request, plan: Plan, contexts: Sequence[int]) -> Plan | None:
        """What followed in the text before, where that promises more than the plan. `contexts`: of all requests of the
        policy."""
        found = None if request.lookup is None else request.lookup.find(request.tokens)
        if request.lookup is None or found is None:
            return None
        made = looked_up(request.lookup, request.room - 1, plan, contexts, self.costs)
        if made is not None:
            request.copied, request.source = found.tokens[: made.gamma], found.source
        return made

    def _observe(
        self,
        plan: StepPlan,
        out: StepOutput,
        requests: dict[str, Request],
        emitted: dict[str, int],
    ) -> None:
        """Tell the policies what became of their proposals."""
        observed: dict[str, tuple[DraftPolicy, list[View], list[Outcome]]] = {}
        for work, output in zip(plan.work, out.outputs, strict=True):
            request = requests[work.request_id]
            own = not work.copied
            _, views, outcomes = observed.setdefault(request.policy.name, (request.policy, [], []))
            views.append(request.view)
            outcomes.append(
                Outcome(
                    work.plan or self._undrafted,
                    output.drafted if own else 0,
                    output.accepted if own else 0,
                    output.confidences,
                    emitted.get(work.request_id, 0),
                    output.references,
                )
            )
        seconds = out.draft_seconds + out.verify_seconds
        for policy, views, outcomes in observed.values():
            policy.observe(views, RoundOutcome(outcomes, len(plan.work), seconds))


def _learn(lessons: list[Callable[[], None]]) -> None:
    """All of them, once."""
    for learn in lessons:
        learn()
    lessons.clear()
