"""Schedule requests: from their state to a `StepPlan`, and from a `StepOutput` back to their state and events.

There are no prefill and decode phases. Every request has tokens and a number of computed positions. A round raises that
number towards the number of tokens; a request with one token left to compute decodes, and may draft.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from engine.clock import Clock
from engine.core.request import AwaitedPrefix, Request
from engine.core.rounds import CommittedRound, RequestOutput
from engine.core.turns import GrammarTime, Shares, most_drafted, share_rows
from engine.errors import RequestError, RequestFailedError
from engine.kv.pages import Allocation, PageManager
from engine.step import Plan, StepOutput, StepPlan, Work, WorkOutput
from engine.types import FinishReason, RequestFailure, TokenEvent


class Scheduler:
    """Owns all requests. Once a round: `admit` → policies propose → `plan` → the runner runs → `commit`."""

    def __init__(
        self,
        blocks: PageManager,
        clock: Clock,
        *,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        prompt_rows: Callable[[int, bool], int] | None = None,
        eos_token_ids: tuple[int, ...] = (),
        reserve_next_row: bool = False,
    ) -> None:
        """`reserve_next_row`: the runner may start a round's pass before the last one is committed: keep room for it.

        `prompt_rows(context, shared)`: most prompt rows of a round at this context, if others decode (`shared`) or not;
        None: only the limit of all rows holds.
        """
        self.blocks = blocks
        self.running: list[Request] = []  # in order of admission
        self.waiting: deque[Request] = deque()
        self.deferred = 0  # requests that waited in the last round for a prefix that another is reading
        self.prefix_queries = self.prefix_hits = self.preemptions = 0
        self._clock = clock
        self._max_num_seqs = max_num_seqs
        self._max_rows = max_num_batched_tokens
        self._prompt_rows = prompt_rows or (lambda context, shared: max_num_batched_tokens)
        self._eos = frozenset(eos_token_ids)
        self._reserve_next_row = reserve_next_row
        self._admitting: Request | None = None
        self._turns_taken = False  # whether no running request has to make way for a waiting one

    @property
    def idle(self) -> bool:
        return not self.running and not self.waiting

    @property
    def counters(self) -> tuple[int, int, int]:
        """Tokens looked up in the prefix cache and found there, and preemptions, since the start."""
        return self.prefix_queries, self.prefix_hits, self.preemptions

    @property
    def settled(self) -> bool:
        """Whether no waiting request can join before a running one ends."""
        return not self.waiting or (self._turns_taken and len(self.running) >= self._max_num_seqs)

    def add(self, request: Request) -> None:
        """Queue a request."""
        self.waiting.append(request)
        self._turns_taken = False

    def cancel(self, request_id: str) -> None:
        """Forget a request and free its cache; unknown ids are ignored."""
        for request in (*self.running, *self.waiting):
            if request.id == request_id:
                self._retire(request, FinishReason.CANCELLED)
                return

    def admit(self) -> None:
        """Give waiting requests a slab of the cache in turn, while there is room or another must make way.

        A request whose prompt starts like one that is being read waits, and others may overtake it: once the common
        part has been read, the prefix cache has it. Requests of others may also overtake one for which there is no
        memory; they make way for it as soon as only they are left in its way.
        """
        self.deferred = 0
        candidates = list(self.waiting)
        blocked: Request | None = None  # the first request for which there is no memory
        while candidates and not self.settled:
            shares = Shares(self.running)
            request = self._admitting = min(candidates, key=shares.turn)
            yielding = None
            if len(self.running) >= self._max_num_seqs:
                yielding = shares.yielding(request)
                if yielding is None:
                    self._turns_taken = True
                    break
            candidates.remove(request)
            if self._prefix_in_progress(request):
                self.deferred += 1
                continue
            if yielding is not None:
                self._preempt(yielding)
            allocation = self._allocate(request)
            if allocation is None and self._clear_way(request):
                allocation = self._allocate(request)
            if allocation is None:
                blocked = blocked or request
                candidates = [r for r in candidates if r.owner != request.owner]
                continue
            self.waiting.remove(request)
            request.overtook = None if blocked is None else blocked.id
            request.slab, request.computed = allocation.slab, allocation.cached
            if request.admitted is None:
                request.admitted = self._clock.now()
                request.cached_tokens = allocation.cached
                self.prefix_queries += len(request.prompt)
                self.prefix_hits += allocation.cached
            self.running.append(request)
        self._admitting = None

    def _clear_way(self, request: Request) -> bool:
        """Preempt those that overtook a request, if it has room without them. Whether it did."""
        overtakers = [r for r in self.running if r.overtook == request.id]
        others = sum(self._blocks_of(r) for r in self.running if r.overtook != request.id)
        if not overtakers or others + self._blocks_of(request) > self.blocks.capacity:
            return False
        for overtaker in reversed(overtakers):
            self._preempt(overtaker)
        return True

    def _blocks_of(self, request: Request) -> int:
        return -(-len(request.tokens) // self.blocks.block_size)

    def _allocate(self, request: Request) -> Allocation | None:
        """Allocate cache room for all tokens of a request; None if there is none now."""
        if not request.scoring:
            return self.blocks.allocate(request.id, request.tokens, request.cache_salt)
        # Prompt log-probabilities need logits, which cached prefixes lack: look up nothing.
        allocation = self.blocks.allocate(request.id, request.tokens[:1], request.cache_salt)
        if allocation is not None and not self.blocks.grow(allocation.slab, len(request.tokens)):
            self.blocks.release(allocation.slab)
            return None
        return allocation

    def _prefix_in_progress(self, request: Request) -> bool:
        """Whether another request is reading the next block that this one needs."""
        if request.awaited_prefix is not None:
            reader, end = request.awaited_prefix
            if reader.slab >= 0 and not reader.decoding and reader.computed < end:
                return True
            request.awaited_prefix = None
        size, tokens = self.blocks.block_size, request.tokens
        if request.scoring or len(tokens) <= size:
            return False
        head = tokens[:size]
        salt = request.cache_salt
        readers = [r for r in self.running if not r.decoding and r.cache_salt == salt and r.tokens[:size] == head]
        if not readers:
            return False
        end = self.blocks.match(tokens, salt) + size
        wanted = tokens[:end]
        if end < len(tokens):
            ahead = next((r for r in readers if r.computed < end and r.tokens[:end] == wanted), None)
            request.awaited_prefix = AwaitedPrefix(ahead, end) if ahead else None
        return request.awaited_prefix is not None

    def plan(self) -> StepPlan:
        """Plan the next round: decoding requests get their rows, prompts share the rest of the row budget.

        Pending tokens get cache room before any draft does, so that drafting never preempts.
        """
        decoding = [r for r in self.running if r.decoding]
        for request in decoding:
            if request.slab >= 0:  # otherwise preempted for an older request
                self._reserve(request)
        grammar_time = GrammarTime()
        decoding = grammar_time.among([r for r in decoding if r.slab >= 0])
        prompts = [r for r in self.running if not r.decoding]
        spare = self._max_rows - len(decoding)
        drafting = spare // 2 if prompts else spare  # drafts leave room for prompts
        works: list[Work] = []
        for request in decoding:
            draft = self._draft(request, drafting)
            added = draft.gamma if draft else 0
            spare -= added
            drafting -= added
            works.append(self._work(request, 1, draft))
        if self._reserve_next_row:  # drafts come first
            for request, work in zip(decoding, works, strict=True):
                if work.plain and request.room > 1:
                    work.next_row_reserved = self.blocks.grow(request.slab, len(request.tokens) + 1)
        works += self._prompt_works(prompts, spare, grammar_time, beside=bool(decoding))
        return StepPlan(tuple(sorted(works, key=lambda w: w.slab)), self.blocks.take_placements())

    def _prompt_works(
        self, prompts: Sequence[Request], spare: int, grammar_time: GrammarTime, *, beside: bool
    ) -> Iterator[Work]:
        """Yield the round's rows of prompts; `beside`: others decode."""
        # The head and the log-probabilities of a row take as long again.
        limits = [self._prompt_rows(r.computed, beside) // (2 if r.scoring else 1) for r in prompts]
        shares = share_rows([request.pending for request in prompts], limits, spare)
        for request, rows in zip(prompts, shares, strict=True):
            if rows == request.pending and not grammar_time.take(request):
                rows -= 1
            if rows > 0:
                yield self._work(request, rows)

    def _draft(self, request: Request, rows: int) -> Plan | None:
        """Return the request's plan, cut to its room, the row budget and the free cache; None for γ = 0."""
        if request.plan is None:
            return None
        plan = request.plan.capped(most_drafted(request))
        gamma = min(plan.gamma, rows)
        while gamma > 0 and not self.blocks.grow(request.slab, len(request.tokens) + gamma):
            gamma //= 2
        return plan.capped(gamma) if gamma > 0 else None

    def _work(self, request: Request, rows: int, plan: Plan | None = None) -> Work:
        tokens = tuple(request.tokens[request.computed : request.computed + rows])
        draws_token = rows == request.pending
        scored = request.prompt[request.computed + 1 : request.computed + rows + 1] if request.scoring else ()
        return Work(
            request_id=request.id,
            slab=request.slab,
            start=request.computed,
            tokens=tokens,
            draws_token=draws_token,
            reads_prompt=not request.decoding,
            sampling=request.sampling,
            plan=plan,
            rows_to_record=request.policy.rows_to_record(request.view) if draws_token else 0,
            processor=request.processor if draws_token else None,
            scored=scored,
        )

    def _reserve(self, request: Request) -> None:
        """Get cache room for a request's tokens; if need be, preempt others, or this one: low priority, then youth."""
        while request.slab >= 0 and not self.blocks.grow(request.slab, len(request.tokens)):
            self._preempt(max(self.running, key=Shares(self.running).turn_to_yield))

    def _preempt(self, request: Request) -> None:
        """Put a request back at the head of the queue. Its tokens stay; lost K/V is computed again."""
        self.running.remove(request)
        self._turns_taken = False
        self.blocks.release(request.slab)
        request.slab, request.computed = -1, 0
        request.prompt_logprobs.clear()
        request.policy.suspend(request.view)
        request.preemptions += 1
        self.preemptions += 1
        self.waiting.appendleft(request)

    def commit(self, plan: StepPlan, out: StepOutput) -> CommittedRound:
        """Append a round's tokens to their requests and let finished requests leave; make their text later."""
        commit, now = CommittedRound({r.id: r for r in self.running}), self._clock.now()
        for work, output in zip(plan.work, out.outputs, strict=True):
            request = commit.requests[work.request_id]
            request.computed += len(work.tokens) + output.accepted
            request.prompt_logprobs += output.prompt_logprobs
            if -1 in output.tokens:
                if request.processor is not None and request.processor.excluded_all:
                    reason = "'allowed_token_ids' has no token that may follow in the form of the answer."
                    commit.outputs.append(self._refuse(request, reason, "allowed_token_ids"))
                else:
                    commit.outputs.append(self._fail(request, "The model computed no numbers (NaN)."))
                continue
            emitted = self._emit(request, work, output, now) if output.tokens else None
            if emitted is not None:
                commit.rounds.append(emitted.round)
            if request.processor is not None and (failure := request.processor.failed):
                commit.outputs.append(self._refuse(request, failure, request.sampling.grammar_param))
                continue
            if emitted is not None:
                commit.outputs.append(emitted)
            self.blocks.seal(request.slab, request.tokens, request.computed)
            if request.finish_reason is not None:
                self._retire(request, request.finish_reason)
            else:
                self.blocks.trim(request.slab, len(request.tokens))
        return commit

    def fail_running(self) -> list[RequestFailure]:
        """Fail all running requests after a round that failed; if it failed to admit one, that one alone.

        Forgets what the round may have written to the cache.
        """
        admitting, self._admitting = self._admitting, None
        if not self.running and self.waiting:
            admitting = admitting or self.waiting[0]
        if admitting is not None and admitting in self.waiting:
            return [self._fail(admitting, "The engine failed to begin.")]
        return [self._fail(request, "The engine failed to compute tokens.") for request in list(self.running)]

    def _refuse(self, request: Request, reason: str, param: str) -> RequestFailure:
        """End a request because of what it asks for."""
        self._retire(request, FinishReason.CANCELLED)
        return RequestFailure(request.id, RequestError(reason, param=param))

    def _fail(self, request: Request, reason: str) -> RequestFailure:
        """End a request by no fault of its own. Cached prefixes may share its values, so they go too."""
        self._retire(request, FinishReason.CANCELLED)
        self.blocks.clear()
        return RequestFailure(request.id, RequestFailedError(reason))

    def _emit(self, request: Request, work: Work, output: WorkOutput, now: float) -> RequestOutput:
        """Append a request's tokens up to the end of its answer, and account for the round."""
        pieces, hidden = request.append(output.tokens, self._eos, now)
        part = request.account(work, output)
        prompt_logprobs, request.prompt_logprobs = tuple(request.prompt_logprobs), []
        done, figures = request.finish_reason is not None, request.figures
        event = TokenEvent(
            request_id=request.id,
            text="",
            token_ids=output.tokens[: part.emitted],
            finish_reason=request.finish_reason,
            prompt_tokens=len(request.prompt),
            completion_tokens=request.completion_tokens,
            cached_tokens=request.cached_tokens,
            speculation=request.speculation() if done else None,
            timing=request.timing if done else None,
            logprobs=output.logprobs[: part.emitted],
            accepted_predictions=figures.accepted_predictions if done else 0,
            rejected_predictions=figures.rejected_predictions if done else 0,
            trace=part if request.sampling.trace else None,
            prompt_logprobs=prompt_logprobs,
        )
        return RequestOutput(request, part, event, pieces, hidden)

    def _retire(self, request: Request, reason: FinishReason) -> None:
        request.finish_reason = reason
        (self.running if request in self.running else self.waiting).remove(request)
        self._turns_taken = False
        if request.processor is not None:
            request.processor.close()
        if request.slab >= 0:
            self.blocks.release(request.slab)
            request.slab = -1
