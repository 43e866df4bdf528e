"""A real scheduler with a simulated model, cache, text, policy and clock.

The model's next token is a pure function of the tokens before it, which it reads from the cache only. A prefix that is
missing where the scheduler expects it fails an assertion, or changes the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

from engine.core.request import Request
from engine.core.rounds import CommittedRound
from engine.core.scheduler import Scheduler
from engine.draft.base import RequestView
from engine.kv.pages import Allocation, PageManager
from engine.step import Plan, StepOutput, StepPlan, Work, WorkOutput
from engine.types import FinishReason, Owner, RequestFailure, RequestRound, SamplingParams, TokenEvent, TokenLogprobs
from tests.support.timed import TickingClock

EOS = 0
VOCABULARY = 4
VARIANTS = (0, 1, 1, 0, 0, 1, 1)  # of every draft: two attention sublayers skipped, one MLP

Slot = tuple[int, ...] | None  # the K/V of a position depends on all tokens up to it


def next_token(prefix: Sequence[int], seed: int) -> int:
    """The model's token after `prefix`; one in eight ends the sequence."""
    noise = hash((seed, *prefix)) >> 8
    return EOS if noise % 8 == 0 else 1 + (noise >> 3) % (VOCABULARY - 1)


class LateText:
    """A detokenizer that shows every token's letter one token late, and stops where a stop string ends."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._seen = ""
        self._held = ""
        self.stop_string: str | None = None

    @property
    def stopped(self) -> bool:
        return self.stop_string is not None

    def push(self, token: int, *, may_stop: bool = True) -> str:
        assert not self.stopped, "a token after the stop"
        shown, self._held = self._held, "_abcdefgh"[token]
        self._seen += self._held
        self.stop_string = next((stop for stop in self._stops if self._seen.endswith(stop)), None)
        return shown

    def finish(self) -> str:
        shown, self._held = self._held, ""
        return shown


def plain_decoding(prompt: Sequence[int], sampling: SamplingParams, limit: int) -> tuple[list[int], str, FinishReason]:
    """Tokens, text and finish reason of a request that runs alone, token by token."""
    tokens, text, reason = list(prompt), LateText(sampling.stop), None
    shown = ""
    while reason is None:
        tokens.append(next_token(tokens, sampling.seed))
        ends = tokens[-1] == EOS and not sampling.ignore_eos
        if not ends:
            shown += text.push(tokens[-1])
        if text.stopped or ends:
            reason = FinishReason.STOP
        elif len(tokens) >= limit:
            reason = FinishReason.LENGTH
    return tokens[len(prompt) :], shown + text.finish(), reason


class FakePolicy:
    """Drafts of random length up to `gamma`, or always of `gamma`; records suspended requests."""

    name = "fake"

    def __init__(self, gamma: int, always: bool, random: Random) -> None:
        self._least, self._most, self._random = gamma if always else 0, gamma, random
        self.suspended: list[str] = []

    def plan(self) -> Plan:
        return Plan(VARIANTS, self._random.randint(self._least, self._most), predicted_tpt=1.0)

    def rows_to_record(self, view: RequestView[None]) -> int:
        return 0

    def suspend(self, view: RequestView[None]) -> None:
        self.suspended.append(view.request_id)


class FakeRunner:
    """The model and its cache. A draft token is right with probability `skill`; a draft may stop early."""

    def __init__(self, blocks: PageManager, slabs: int, skill: float, random: Random) -> None:
        self._pages: list[list[Slot]] = [[None] * blocks.block_size for _ in range(blocks.capacity + 1)]
        self._tables: list[list[int]] = [[0] * blocks.blocks_per_table for _ in range(slabs)]
        self._skill, self._random = skill, random

    def run(self, plan: StepPlan) -> StepOutput:
        for slab, first, pages in plan.placements:
            self._tables[slab][first : first + len(pages)] = pages
        outputs = tuple(self._round(work) for work in plan.work)
        return StepOutput(outputs, 0.5, 1.0)

    def _round(self, work: Work) -> WorkOutput:
        pages, start = [self._pages[page] for page in self._tables[work.slab]], work.start
        slab = [slot for page in pages for slot in page]
        known = slab[start - 1] if start else ()
        assert known is not None, "the cache is empty where it should end"
        assert slab[:start] == [known[: i + 1] for i in range(start)], "the cache holds something else"
        draft: list[int] = []
        while len(draft) < work.gamma and (not draft or self._random.random() < 0.8):
            draft.append(self._guess([*known, *work.tokens, *draft], work.sampling.seed))
        tokens = [*known, *work.tokens, *draft]
        for position in range(start, len(tokens)):
            pages[position // len(pages[0])][position % len(pages[0])] = tuple(tokens[: position + 1])
        scores = tuple(TokenLogprobs(token, -float(start + i)) for i, token in enumerate(work.scored, 1))
        if not work.draws_token:
            return WorkOutput((), prompt_logprobs=scores)
        said: list[int] = []
        for guess in [*draft, None]:
            said.append(next_token([*known, *work.tokens, *said], work.sampling.seed))
            if said[-1] != guess:
                break
        return WorkOutput(tuple(said), len(draft), confidences=(0.5,) * len(draft), prompt_logprobs=scores)

    def _guess(self, prefix: list[int], seed: int) -> int:
        right = next_token(prefix, seed)
        return right if self._random.random() < self._skill else (right + 1) % VOCABULARY


class WatchedBlocks(PageManager):
    """A manager that records the blocks reserved for each slab's owner."""

    def __init__(self, slabs: int, blocks_per_slab: int, block_size: int, capacity: int) -> None:
        super().__init__(slabs, blocks_per_slab, block_size, capacity)
        self.reserved: dict[int, int] = {}  # slab -> blocks

    def blocks(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def allocate(self, owner: str, tokens: Sequence[int], salt: str = "") -> Allocation | None:
        allocation = super().allocate(owner, tokens, salt)
        if allocation is not None:
            assert allocation.slab not in self.reserved
            self.reserved[allocation.slab] = self.blocks(len(tokens))
        return allocation

    def grow(self, slab: int, tokens: int) -> bool:
        grown = super().grow(slab, tokens)
        if grown:
            self.reserved[slab] = max(self.reserved[slab], self.blocks(tokens))
        return grown

    def release(self, slab: int) -> None:
        super().release(slab)
        del self.reserved[slab]


@dataclass(frozen=True)
class Setting:
    """A tiny engine."""

    block_size: int = 2
    blocks_per_slab: int = 4
    slabs: int = 4
    spare: int = 4  # blocks of memory beyond one full slab
    max_num_seqs: int = 3
    max_rows: int = 6
    max_shared: int | None = None
    gamma: int = 3
    skill: float = 0.7
    always_draft: bool = False  # all of gamma
    stopped_clock: bool = False  # so that all requests arrive at once
    apart: bool = False  # a round is reported while the next one runs
    owners: int = 1  # of requests, drawn at random, with salts and priorities of their own

    @property
    def max_model_len(self) -> int:
        return self.block_size * self.blocks_per_slab


@dataclass(eq=False)
class Expected:
    """A request, its expected tokens, and its events so far."""

    request: Request
    tokens: list[int]
    text: str
    reason: FinishReason
    events: list[TokenEvent] = field(default_factory=list)
    rounds: list[RequestRound] = field(default_factory=list)
    cancelled: bool = False
    rounds_when_cancelled: int = -1  # rounds reported when it was cancelled


class World:
    """The round of `EngineCore.step` around a real scheduler, with every plan and every commit checked."""

    def __init__(self, setting: Setting, seed: int = 0, prompt_rows: Callable[[int, bool], int] | None = None) -> None:
        """`prompt_rows` is the scheduler's; the setting has one for when nothing is passed."""
        self.setting = setting
        random = self._random = Random(seed)
        capacity = setting.blocks_per_slab + setting.spare
        self.blocks = WatchedBlocks(setting.slabs, setting.blocks_per_slab, setting.block_size, capacity)
        self.clock = TickingClock(0.0 if setting.stopped_clock else 1.0)
        self.scheduler = Scheduler(
            self.blocks,
            self.clock,
            max_num_seqs=min(setting.max_num_seqs, setting.slabs, setting.max_rows),
            max_num_batched_tokens=setting.max_rows,
            prompt_rows=prompt_rows or (lambda context, shared: (shared and setting.max_shared) or setting.max_rows),
            eos_token_ids=(EOS,),
            reserve_next_row=setting.apart,
        )
        self.policy = FakePolicy(setting.gamma, setting.always_draft, random)
        self.runner = FakeRunner(self.blocks, setting.slabs, setting.skill, random)
        self.requests: dict[str, Expected] = {}
        self.unreported = CommittedRound()
        self.steps = 0
        self.needless_preemptions = 0  # with room for every token but the drafted ones

    def add(
        self, prompt: Sequence[int], sampling: SamplingParams | None = None, owner: Owner | None = None
    ) -> Expected:
        """Add a request, its prompt cut to fit."""
        draw = self._random.randrange
        owner = owner or Owner(str(draw(self.setting.owners)), str(draw(self.setting.owners)))
        sampling = sampling or SamplingParams()
        prompt = tuple(prompt)[: self.setting.max_model_len - 1]
        limit = min(self.setting.max_model_len, len(prompt) + (sampling.max_tokens or self.setting.max_model_len))
        name = f"r{len(self.requests)}"
        request = Request(
            id=name,
            prompt=prompt,
            sampling=sampling,
            policy=self.policy,  # type: ignore[arg-type]
            arrival=self.clock.now(),
            limit=limit,
            detokenizer=LateText(sampling.stop),  # type: ignore[arg-type]
            view=RequestView(name, None, None),  # type: ignore[arg-type]
            tokens=list(prompt),
            owner=owner,
            priority=draw(self.setting.owners) // 2,
            cache_salt=owner.key if self.setting.owners > 2 else "",
        )
        expected = self.requests[name] = Expected(request, *plain_decoding(prompt, sampling, limit))
        self.scheduler.add(request)
        return expected

    def cancel(self, name: str) -> None:
        """Cancel a request and check that its slab is free at once."""
        expected = self.requests.get(name)
        slab = expected.request.slab if expected else -1
        self.scheduler.cancel(name)
        assert slab < 0 or slab not in self.blocks.reserved
        assert name not in [r.id for r in (*self.scheduler.running, *self.scheduler.waiting)]
        if expected and expected.request.finish_reason is FinishReason.CANCELLED:
            expected.cancelled = True
            expected.rounds_when_cancelled = len(expected.rounds)
        self.blocks.check_integrity()

    def step(self) -> StepPlan:
        """Run one round."""
        scheduler = self.scheduler
        self.admit()
        decoding = [r for r in scheduler.running if r.decoding]
        for request in decoding:
            request.plan = self.policy.plan()
        idle, preemptions = scheduler.idle, scheduler.preemptions
        needed = sum(self.blocks.blocks(len(r.tokens)) for r in scheduler.running)
        waiting = list(scheduler.waiting)
        plan = scheduler.plan()
        preempted = list(scheduler.waiting)[: len(scheduler.waiting) - len(waiting)]
        assert [*preempted, *waiting] == list(scheduler.waiting), "preempted requests go to the head of the queue"
        if len({(each.request.owner, each.request.priority) for each in self.requests.values()}) == 1:
            assert preempted == sorted(preempted, key=lambda r: r.arrival)
        assert all((r.slab, r.computed) == (-1, 0) for r in scheduler.waiting)
        if needed <= self.blocks.capacity:  # every pending token had room
            self.needless_preemptions += scheduler.preemptions - preemptions
        self._check_plan(plan)
        assert idle or plan.work, "a round makes progress"
        self.settle()
        out = self.runner.run(plan)
        self.unreported = scheduler.commit(plan, out)
        if not self.setting.apart:
            self.settle()
        self.blocks.check_integrity()
        self.steps += 1
        return plan

    def settle(self) -> None:
        """Check the events of the last round, unless that is done."""
        commit, self.unreported = self.unreported, CommittedRound()
        self._take(commit.events(), commit.rounds)

    def admit(self) -> None:
        """Admit requests: those of one owner oldest first, except those that wait for a common prefix."""
        scheduler, size = self.scheduler, self.setting.block_size
        queue = sorted(scheduler.waiting, key=lambda r: (r.admitted is None, r.arrival))
        scheduler.admit()
        if len({(each.request.owner, each.request.priority) for each in self.requests.values()}) > 1:
            return
        left = [r for r in queue if r in scheduler.waiting]
        assert [r for r in queue if r not in left] == scheduler.running[
            len(scheduler.running) - len(queue) + len(left) :
        ]
        for position, request in enumerate(queue):
            passed = any(later not in left for later in queue[position + 1 :])
            if request in left and passed:
                end = self.blocks.match(request.tokens) + size
                readers = [r for r in scheduler.running if r.tokens[:end] == request.tokens[:end]]
                assert any(r.computed < end for r in readers), (
                    "a request is passed only if it waits for a common prefix"
                )

    def _check_plan(self, plan: StepPlan) -> None:
        setting = self.setting
        running = {r.id: r for r in self.scheduler.running}
        assert sum(len(w.tokens) + w.gamma for w in plan.work) <= setting.max_rows
        prompt_rows = sum(len(w.tokens) for w in plan.work if not running[w.request_id].decoding)
        if any(r.decoding for r in running.values()):
            assert prompt_rows <= (setting.max_shared or setting.max_rows), "prompt rows beside decoding are limited"
        slabs = [w.slab for w in plan.work]
        assert slabs == sorted(set(slabs)), "each slab has at most one piece of work, in the order of slabs"
        assert {r.slab for r in running.values()} == set(self.blocks.reserved)
        for work in plan.work:
            request = running[work.request_id]
            end = work.start + len(work.tokens)
            assert (work.slab, work.start) == (request.slab, request.computed)
            assert work.tokens
            assert list(work.tokens) == request.tokens[work.start : end]
            assert work.draws_token == (end == len(request.tokens))
            assert work.sampling is request.sampling
            assert 0 <= work.gamma <= max(request.room - 1, 0)
            assert work.plan is None or (work.draws_token and 0 < work.gamma <= setting.gamma)
            assert end + work.gamma + work.next_row_reserved <= self.blocks.reserved[work.slab] * setting.block_size
            assert not work.next_row_reserved or (setting.apart and request.room > 1)

    def _take(self, events: Sequence[TokenEvent | RequestFailure], rounds: Sequence[RequestRound]) -> None:
        for event, part in zip(events, rounds, strict=True):
            expected = self.requests[event.request_id]
            request = expected.request
            assert part.request_id == event.request_id
            if self.setting.apart and expected.cancelled and expected.rounds_when_cancelled == len(expected.rounds):
                expected.rounds_when_cancelled -= 1  # a round not reported yet when the request was cancelled
                continue
            assert isinstance(event, TokenEvent)
            assert not any(e.finish_reason for e in expected.events), "no event follows the last"
            expected.events.append(event)
            expected.rounds.append(part)
            said = [t for e in expected.events for t in e.token_ids]
            assert said == expected.tokens[: len(said)]
            assert event.prompt_tokens == len(request.prompt)
            assert event.completion_tokens == len(said) == request.completion_tokens
            assert event.cached_tokens < len(request.prompt)
            scored = request.prompt[1:] if request.sampling.prompt_logprobs and len(expected.events) == 1 else ()
            assert [(one.token_id, -one.logprob) for one in event.prompt_logprobs] == [
                *zip(scored, count(1), strict=False)
            ]
            if event.finish_reason is not None:
                self._check_finished(expected)
            else:
                assert event.speculation is None
                assert event.timing is None

    def _check_finished(self, expected: Expected) -> None:
        """Check the text against plain decoding, and the request's figures."""
        request, last = expected.request, expected.events[-1]
        assert [t for e in expected.events for t in e.token_ids] == expected.tokens
        assert "".join(e.text for e in expected.events) == expected.text
        assert last.finish_reason == expected.reason
        assert request not in self.scheduler.running
        assert request.slab < 0
        assert len(self.policy.suspended) == self.scheduler.preemptions
        figures, timing = last.speculation, last.timing
        assert figures is not None
        assert timing is not None
        assert min(timing.queue, timing.prefill, timing.decode) >= 0
        assert timing.preemptions == self.policy.suspended.count(request.id)
        assert figures.num_rounds == len(expected.rounds)
        assert sum(r.emitted for r in expected.rounds) == len(expected.tokens)
        assert sum(r.accepted for r in expected.rounds) == request.figures.accepted == figures.num_accepted_draft_tokens
        assert figures.num_draft_tokens == sum(r.drafted for r in expected.rounds)
        assert figures.num_rounds + figures.num_accepted_draft_tokens == len(expected.tokens)
        assert figures.mean_acceptance_length == len(expected.tokens) / figures.num_rounds
        if figures.num_draft_tokens:
            assert figures.draft_acceptance_rate == figures.num_accepted_draft_tokens / figures.num_draft_tokens
            assert (figures.skipped_attention, figures.skipped_mlp) == (2.0, 1.0)
        else:
            assert figures.draft_acceptance_rate is None

    def drain(self) -> None:
        """Run all requests to their end, in a number of rounds bounded by their lengths."""
        bound = self.steps + 10 + 4 * sum(len(e.request.prompt) + len(e.tokens) for e in self.requests.values())
        while not self.scheduler.idle:
            assert self.steps < bound, "every request finishes in bounded time"
            self.step()
        self.settle()
        self.blocks.check_integrity()
        assert self.blocks.usage == 0
        assert not self.blocks.reserved
        for expected in self.requests.values():
            assert expected.cancelled or expected.events[-1].finish_reason == expected.reason
        assert self.scheduler.preemptions == len(self.policy.suspended)
