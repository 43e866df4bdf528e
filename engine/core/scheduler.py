"""Who runs, with how many rows: pure bookkeeping from state to StepPlan and back to events.

There are no prefill and decode phases. Every request has tokens and a count of computed positions; a round lets the
count catch up, and a request that has caught up may draft.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from engine.architecture.spec import skipped
from engine.clock import Clock
from engine.core.request import Request
from engine.core.round_output import Commit, Emission
from engine.kv.blocks import Allocation, Blocks
from engine.step import Copy, Plan, StepOutput, StepPlan, Work, WorkOutput
from engine.types import ErrorEvent, FinishReason, RequestRound


class Scheduler:
    """State of all requests. `admit` → (policies propose) → `plan` → runner → `commit`, once a round."""

    def __init__(
        self,
        blocks: Blocks,
        clock: Clock,
        *,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        prompt_rows: Callable[[int, bool], int] | None = None,
        eos_token_ids: tuple[int, ...] = (),
        ahead: bool = False,
    ) -> None:
        """`ahead`: the runner may begin a round before the last one is committed, where there is room.

        `prompt_rows`: most prompt rows of a round, by the context at which they are read and whether others decode;
        None: no other limit than that of all rows.
        """
        self.blocks = blocks
        self.running: list[Request] = []  # in order of admission
        self.waiting: deque[Request] = deque()
        self.prefix_queries = self.prefix_hits = self.preemptions = 0
        self._clock = clock
        self._max_num_seqs = max_num_seqs
        self._max_rows = max_num_batched_tokens
        self._prompt_rows = prompt_rows
        self._eos = frozenset(eos_token_ids)
        self.ahead = ahead
        self._copies: list[Copy] = []

    @property
    def idle(self) -> bool:
        return not self.running and not self.waiting

    @property
    def settled(self) -> bool:
        """Whether nobody can join those that run before one of them ends."""
        return not self.waiting or len(self.running) >= self._max_num_seqs

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

        A request whose prompt begins like one that is being read now waits for it (and is passed by others): once that
        has read the common part, it comes from the cache.
        """
        held: list[Request] = []
        while self.waiting and len(self.running) < self._max_num_seqs:
            request = self.waiting.popleft()
            if self._prefix_in_progress(request):
                held.append(request)
                continue
            allocation = self._allocate(request)
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

    def _allocate(self, request: Request) -> Allocation | None:
        """Cache room for all tokens of a request, None while there is none."""
        if not request.scoring:
            return self.blocks.allocate(request.id, request.tokens)
        # What the prefix cache holds has no logits: nothing is looked up.
        allocation = self.blocks.allocate(request.id, request.tokens[:1])
        if allocation is not None and not self.blocks.grow(allocation.slab, len(request.tokens)):
            self.blocks.release(allocation.slab)
            return None
        return allocation

    def _prefix_in_progress(self, request: Request) -> bool:
        """Whether the next block that it lacks is being read for another one."""
        if request.behind is not None:
            reader, end = request.behind
            if reader.slab >= 0 and not reader.decoding and reader.computed < end:
                return True
            request.behind = None
        size, tokens = self.blocks.block_size, request.tokens
        if request.scoring or len(tokens) <= size:
            return False
        head = tokens[:size]
        readers = [r for r in self.running if not r.decoding and r.tokens[:size] == head]
        if not readers:
            return False
        end = self.blocks.match(tokens) + size
        wanted = tokens[:end]
        ahead = [r for r in readers if r.computed < end and r.tokens[:end] == wanted] if end < len(tokens) else []
        if ahead:
            request.behind = ahead[0], end
        return bool(ahead)

    def plan(self) -> StepPlan:
        """The next round: every request that decodes gets its rows, prompts share what is left of the row budget.

        Pending tokens get cache room before any draft does, so that drafting never preempts.
        """
        decoding = [r for r in self.running if r.decoding]
        for request in decoding:
            if request.slab >= 0:  # else preempted for an older one
                self._reserve(request)
        decoding = [r for r in decoding if r.slab >= 0]
        prompts = [r for r in self.running if not r.decoding]
        spare = self._max_rows - len(decoding)
        drafting = spare // 2 if prompts else spare  # drafts never starve a prompt
        works: list[Work] = []
        for request in decoding:
            draft = self._draft(request, drafting)
            gamma = draft.gamma if draft else 0
            spare -= gamma
            drafting -= gamma
            works.append(self._work(request, 1, draft, request.policy.record(request.view, 1)))
        if self.ahead:  # of what drafts have left
            for request, work in zip(decoding, works, strict=True):
                if work.plain and request.room > 1:
                    work.more = self.blocks.grow(request.slab, len(request.tokens) + 1)
        share = 1.0  # left of the time that a round may take
        for request in prompts:
            rows = min(request.pending, spare)
            if self._prompt_rows is not None:
                most = self._prompt_rows(request.computed, bool(decoding))
                rows = min(rows, int(share * most))
                share -= rows / most
            if rows == 0:
                continue
            spare -= rows
            record = request.policy.record(request.view, rows) if rows == request.pending else 0
            works.append(self._work(request, rows, None, record))
        copies, self._copies = tuple(self._copies), []
        return StepPlan(
            tuple(sorted(works, key=lambda w: w.slab)),
            copies,
            tuple(self.blocks.take_freed()),
            tuple(self.blocks.take_placements()),
        )

    def _draft(self, request: Request, rows: int) -> Plan | None:
        """The request's plan with γ cut to what fits: its room, the row budget, free cache."""
        if request.plan is None:
            return None
        gamma = min(request.plan.gamma, request.room - 1, rows)
        while gamma > 0 and not self.blocks.grow(request.slab, len(request.tokens) + gamma):
            gamma //= 2
        return request.plan.capped(gamma) if gamma > 0 else None

    def _work(self, request: Request, rows: int, plan: Plan | None, record: int) -> Work:
        tokens = tuple(request.tokens[request.computed : request.computed + rows])
        samples = rows == request.pending
        scored = request.prompt[request.computed + 1 : request.computed + rows + 1] if request.scoring else ()
        return Work(
            *(request.id, request.slab, request.computed, tokens, samples, request.sampling, plan, record),
            copied=request.copied[: plan.gamma] if plan else (),
            processor=request.processor if samples else None,
            scored=scored,
        )

    def _reserve(self, request: Request) -> None:
        """Cache room for a request's tokens, if need be by preempting the youngest, which may be the request itself."""
        while request.slab >= 0 and not self.blocks.grow(request.slab, len(request.tokens)):
            self._preempt(max(self.running, key=lambda r: r.arrival))

    def _preempt(self, request: Request) -> None:
        """Back to the head of the queue: tokens stay, K/V is computed again (what stays cached is found again)."""
        self.running.remove(request)
        self.blocks.release(request.slab)
        request.slab, request.computed = -1, 0
        request.prompt_logprobs.clear()
        request.policy.suspend(request.view)
        self.preemptions += 1
        self.waiting.appendleft(request)

    def commit(self, plan: StepPlan, out: StepOutput) -> Commit:
        """Take over what the round computed; finished requests leave. Text is made when events are asked for."""
        by_id = {r.id: r for r in self.running}
        said: list[Emission | ErrorEvent] = []
        rounds: list[RequestRound] = []
        for work, output in zip(plan.work, out.outputs, strict=True):
            request = by_id[work.request_id]
            request.computed += len(work.tokens) + output.accepted
            request.prompt_logprobs += output.prompt_logprobs
            if output.tokens:
                emission = self._emit(request, work, output)
                said.append(emission)
                rounds.append(emission.round)
            if request.processor is not None and (why := request.processor.failed):
                said[-1] = ErrorEvent(request.id, why, request.sampling.grammar_param)
                self._retire(request, FinishReason.CANCELLED)
                continue
            self.blocks.seal(request.slab, request.tokens, request.computed)
            if request.finish_reason is not None:
                self._retire(request, request.finish_reason)
            else:
                self.blocks.trim(request.slab, len(request.tokens))
        return Commit(said, rounds)

    def _emit(self, request: Request, work: Work, output: WorkOutput) -> Emission:
        """Append tokens up to the end of the request."""
        request.last_token = self._clock.now()
        if request.first_token is None:
            request.first_token = request.last_token
        sampling, detokenizer = request.sampling, request.detokenizer
        pieces: list[str] | None = [] if sampling.stop else None
        hidden = False
        for token in output.tokens:
            request.tokens.append(token)
            early = request.completion_tokens <= sampling.min_tokens
            ends = (token in self._eos and not sampling.ignore_eos) or token in sampling.stop_token_ids
            hidden = ends and not sampling.include_stop
            if pieces is not None:
                pieces.append("" if hidden else detokenizer.push(token, may_stop=not early))
            if request.processor is not None:
                request.processor.advance((token,))
                ends = ends or request.processor.stopped
            if detokenizer.stopped or ends:
                request.finish_reason = FinishReason.STOP
            elif request.room <= 0:
                request.finish_reason = FinishReason.LENGTH
            if request.finish_reason is not None:
                request.computed = min(request.computed, len(request.tokens))
                break
        part = self._account(request, work, output)
        scored, request.prompt_logprobs = tuple(request.prompt_logprobs), []
        return Emission(
            *(request, work, part, output.tokens[: part.emitted], pieces, hidden),
            *(request.finish_reason, request.completion_tokens, output.logprobs[: part.emitted], scored),
        )

    @staticmethod
    def _account(request: Request, work: Work, output: WorkOutput) -> RequestRound:
        """Add a round to the request's figures. Drafts beyond its end count as drafted, not as accepted; the last token
        of a round always counts as the target's own, so that tokens are rounds plus accepted drafts."""
        plan = work.plan
        attention, mlp = skipped(plan.variants) if plan is not None else (0, 0)
        emitted = len(request.tokens) - work.start - len(work.tokens)
        accepted = emitted - 1
        request.rounds += 1
        source = request.source if work.copied else "model"
        if source == "prediction":
            request.accepted_predictions += accepted
            request.rejected_predictions += output.drafted - accepted
        if source == "lookup":
            request.looked_up += output.drafted
            request.accepted_lookups += accepted
        by_model = plan.variants if plan is not None and output.drafted and source == "model" else None
        request.drafted_with = by_model or request.drafted_with
        if plan is not None:
            request.drafted += output.drafted
            request.accepted += accepted
            request.draft_passes += 0 if work.copied else output.drafted
            request.skipped_attention += attention * output.drafted
            request.skipped_mlp += mlp * output.drafted
        reselected, request.view.reselected = request.view.reselected, None
        request.reselections += reselected == "changed"
        return RequestRound(
            request_id=request.id,
            policy=request.policy.name,
            emitted=emitted,
            drafted=output.drafted,
            accepted=accepted,
            draft_passes=0 if work.copied else output.drafted,
            context_length=work.start + len(work.tokens),
            skipped_attention=attention,
            skipped_mlp=mlp,
            predicted_tpt=request.plan.predicted_tpt if request.plan else None,
            predicted_acceptance=plan.predicted_acceptance if plan else None,
            reselected=reselected,
            plain_tpt=request.plan.plain_tpt if request.plan else None,
            source=source,
            plan=by_model,
        )

    def _retire(self, request: Request, reason: FinishReason) -> None:
        request.finish_reason = reason
        self.running.remove(request)
        self.blocks.release(request.slab)
        request.slab = -1
