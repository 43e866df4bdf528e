"""Who runs, with how many rows: pure bookkeeping from state to StepPlan and back to events.

There are no prefill and decode phases. Every request has tokens and a count of computed positions; a round lets the
count catch up, and a request that has caught up may draft.
"""

from __future__ import annotations

from collections import deque

from engine.clock import Clock
from engine.draft.base import Plan
from engine.errors import ContextLengthError
from engine.kv.blocks import BlockManager
from engine.step import Copy, StepOutput, StepPlan, Work, WorkOutput
from engine.types import FinishReason, Request, RequestRound, RequestTiming, TokenEvent


class Scheduler:
    """State of all requests. `admit` → (policies propose) → `plan` → runner → `commit`, once a round."""

    def __init__(
        self,
        blocks: BlockManager,
        clock: Clock,
        *,
        max_model_len: int,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        eos_token_ids: tuple[int, ...] = (),
    ) -> None:
        self.blocks = blocks
        self.running: list[Request] = []  # in order of admission
        self.waiting: deque[Request] = deque()
        self.prefix_queries = self.prefix_hits = self.preemptions = 0
        self._clock = clock
        self._max_model_len = max_model_len
        self._max_num_seqs = max_num_seqs
        self._max_rows = max_num_batched_tokens
        self._eos = frozenset(eos_token_ids)
        self._copies: list[Copy] = []

    @property
    def idle(self) -> bool:
        return not self.running and not self.waiting

    def check_length(self, prompt: int, max_tokens: int | None) -> None:
        """Refuse what can never run. Raises ContextLengthError."""
        if prompt + (max_tokens or 1) > self._max_model_len:
            raise ContextLengthError(self._max_model_len, prompt, max_tokens)

    def add(self, request: Request) -> None:
        """Queue a request."""
        request.tokens = list(request.prompt)
        self.waiting.append(request)

    def cancel(self, request_id: str) -> None:
        """Forget a request and free its cache; unknown ids are ignored."""
        for request in self.running:
            if request.id == request_id:
                self._retire(request, FinishReason.CANCELLED)
                return
        for request in self.waiting:
            if request.id == request_id:
                request.finish_reason = FinishReason.CANCELLED
                self.waiting.remove(request)
                return

    def admit(self) -> None:
        """Give slabs to waiting requests, oldest first, as long as there is room.

        A request whose prompt begins like one that is being read now waits for it (and is passed by others): a round or
        two later the common part comes from the cache.
        """
        held: list[Request] = []
        while self.waiting and len(self.running) < self._max_num_seqs:
            request = self.waiting.popleft()
            if self._prefix_in_progress(request):
                held.append(request)
                continue
            allocation = self.blocks.allocate(request.id, request.tokens)
            if allocation is None:
                held.append(request)
                break
            request.slab, request.computed = allocation.slab, allocation.cached
            if allocation.copied:
                self._copies.append(Copy(allocation.source, allocation.slab, allocation.copied))
            if request.admitted is None:
                request.admitted = self._clock.now()
                request.cached_tokens = allocation.cached
                self.prefix_queries += len(request.prompt)
                self.prefix_hits += allocation.cached
            self.running.append(request)
        self.waiting.extendleft(reversed(held))

    def _prefix_in_progress(self, request: Request) -> bool:
        size = self.blocks.block_size
        if len(request.tokens) <= size or self.blocks.match(request.tokens) > 0:
            return False
        head = request.tokens[:size]
        return any(r.computed < size and not r.decoding and r.tokens[:size] == head for r in self.running)

    def plan(self) -> StepPlan:
        """The next round: every request that decodes gets its rows, prompts share what is left of the row budget."""
        works: list[Work] = []
        decoding = [r for r in self.running if r.decoding]
        spare = self._max_rows - len(decoding)
        prompts = [r for r in self.running if not r.decoding]
        drafting = spare // 2 if prompts else spare  # drafts never starve a prompt
        for request in decoding:
            if request.slab < 0:
                continue  # preempted by an older one
            draft = request.plan.capped(min(request.room - 1, drafting)) if request.plan else None
            if self._reserve(request, len(request.tokens) + (draft.gamma if draft else 0)):
                pass
            elif self._reserve(request, len(request.tokens), preempt=True):
                draft = None
            else:
                continue
            gamma = draft.gamma if draft else 0
            spare -= gamma
            drafting -= gamma
            works.append(
                self._work(request, 1, draft if gamma else None, request.policy.record(request.draft_state, 1))
            )
        works = [w for w in works if self._owns(w)]
        for request in prompts:
            rows = min(request.pending, spare)
            if request.slab < 0 or rows == 0:
                continue
            spare -= rows
            record = request.policy.record(request.draft_state, rows) if rows == request.pending else 0
            works.append(self._work(request, rows, None, record))
        copies, self._copies = tuple(self._copies), []
        return StepPlan(tuple(sorted(works, key=lambda w: w.slab)), copies)

    def _work(self, request: Request, rows: int, plan: Plan | None, record: int) -> Work:
        tokens = tuple(request.tokens[request.computed : request.computed + rows])
        samples = rows == request.pending
        return Work(request.id, request.slab, request.computed, tokens, samples, request.sampling, plan, record)

    def _owns(self, work: Work) -> bool:
        return any(r.id == work.request_id for r in self.running)

    def _reserve(self, request: Request, tokens: int, preempt: bool = False) -> bool:
        """Cache room for `tokens` of a request. Drafting never preempts; a pending token does, youngest first."""
        while not self.blocks.grow(request.slab, tokens):
            if not preempt:
                return False
            youngest = max(self.running, key=lambda r: r.arrival)
            self._preempt(youngest)
            if youngest is request:
                return False
        return True

    def _preempt(self, request: Request) -> None:
        """Back to the head of the queue: tokens stay, K/V is computed again (what stays cached is found again)."""
        self.running.remove(request)
        self.blocks.release(request.slab)
        request.slab, request.computed = -1, 0
        request.preempted += 1
        request.policy.suspend(request.draft_state)
        self.preemptions += 1
        self.waiting.appendleft(request)

    def commit(self, plan: StepPlan, out: StepOutput) -> tuple[list[TokenEvent], list[RequestRound]]:
        """Take over what the round computed; finished requests leave. Events carry text."""
        by_id = {r.id: r for r in self.running}
        events: list[TokenEvent] = []
        rounds: list[RequestRound] = []
        for work, output in zip(plan.work, out.outputs, strict=True):
            request = by_id[work.request_id]
            request.computed += len(work.tokens)
            if output.tokens:
                now = self._clock.now()
                kept = self._emit(request, output, now, events)
                rounds.append(self._account(request, work, output, kept))
            self.blocks.seal(request.slab, request.tokens, min(request.computed, len(request.tokens)))
            if request.finish_reason is not None:
                self._retire(request, request.finish_reason)
        return events, rounds

    def _emit(self, request: Request, output: WorkOutput, now: float, events: list[TokenEvent]) -> int:
        """Append tokens up to the end of the request, turn them into text. Returns how many were kept."""
        request.computed += output.accepted
        if request.first_token is None:
            request.first_token = now
        request.last_token = now
        text: list[str] = []
        kept = 0
        for token in output.tokens:
            request.tokens.append(token)
            kept += 1
            text.append(request.detokenizer.push(token))
            if request.detokenizer.stopped or (token in self._eos and not request.sampling.ignore_eos):
                request.finish_reason = FinishReason.STOP
            elif request.room <= 0:
                request.finish_reason = FinishReason.LENGTH
            if request.finish_reason is not None:
                break
        if request.finish_reason is not None:
            text.append(request.detokenizer.finish())
            request.computed = min(request.computed, len(request.tokens))
        request.rounds += 1
        plan = request.plan
        if output.drafted and plan:
            passes = output.drafted
            request.drafted += output.drafted
            request.accepted += kept - 1 if kept <= output.accepted else output.accepted
            request.draft_passes += passes
            request.skipped_attention += plan.skipped_attention * passes
            request.skipped_mlp += plan.skipped_mlp * passes
        done = request.finish_reason is not None
        events.append(
            TokenEvent(
                request_id=request.id,
                text="".join(text),
                token_ids=output.tokens[:kept],
                finish_reason=request.finish_reason,
                prompt_tokens=len(request.prompt),
                completion_tokens=request.completion_tokens,
                cached_tokens=request.cached_tokens,
                speculation=request.speculation() if done else None,
                timing=self._timing(request) if done else None,
            )
        )
        return kept

    @staticmethod
    def _timing(request: Request) -> RequestTiming:
        admitted = request.admitted or request.arrival
        first = request.first_token or admitted
        return RequestTiming(admitted - request.arrival, first - admitted, (request.last_token or first) - first)

    @staticmethod
    def _account(request: Request, work: Work, output: WorkOutput, kept: int) -> RequestRound:
        plan = work.plan
        reselected, request.reselected = request.reselected, None
        return RequestRound(
            request_id=request.id,
            policy=request.policy.name,
            emitted=kept,
            drafted=output.drafted,
            accepted=output.accepted,
            draft_passes=output.drafted,
            context_length=work.start + len(work.tokens),
            skipped_attention=plan.skipped_attention if plan else 0,
            skipped_mlp=plan.skipped_mlp if plan else 0,
            predicted_tpt=request.plan.predicted_tpt if request.plan else None,
            predicted_acceptance=plan.predicted_acceptance if plan else None,
            reselected=reselected,
        )

    def _retire(self, request: Request, reason: FinishReason) -> None:
        request.finish_reason = reason
        self.running.remove(request)
        self.blocks.release(request.slab)
        request.slab = -1
