"""Benchmark targets: draft policies of this engine. Other programs are in `bench.peers`."""

import gc
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol, cast

from bench.measurements import RunStats, Totals
from engine.clock import SystemClock
from engine.core.engine import EngineCore
from engine.errors import ConfigError, EngineDeadError, RequestError
from engine.runtime.runner import Runner
from engine.types import GenerateRequest, RequestFailure, RoundReport, SamplingParams, check_request

_TURN = 0.03  # seconds per turn of a policy; short, as a machine's speed changes within a second


class Prompt(NamedTuple):
    """A user's message, and the tokens of the prompt with it."""

    text: str
    tokens: tuple[int, ...]
    domain: str = ""


class BenchTarget(Protocol):
    """A program that answers prompts."""

    name: str
    stats: RunStats

    def run(self, prompts: Sequence[Prompt], streams: int) -> list[tuple[int, ...]] | None:
        """Answer prompts, `streams` at a time. Returns the tokens of each answer, if they are known."""


class PolicyTarget:
    """A draft policy on its own engine core, so that policies do not share what they learn."""

    def __init__(
        self,
        policy: str,
        core: EngineCore,
        sampling: SamplingParams,
        context: tuple[int, ...] = (),
        name: str | None = None,
    ) -> None:
        """`context`: tokens before every prompt, read before the first. Raises UnknownPolicyError."""
        core.info.check_policy(policy)
        self._context = context
        self._policy, self.name = policy, name or policy
        self.core = core
        self.stats = RunStats()
        self._sampling = sampling
        self._clock = SystemClock()
        if not gc.get_freeze_count():  # once, as in `engine.host.child`
            gc.freeze()

    def run(self, prompts: Sequence[Prompt], streams: int) -> list[tuple[int, ...]]:
        (answers,) = run_in_turns([self], prompts, streams)
        return answers

    def rounds(self, prompts: Sequence[Prompt], streams: int) -> Generator[float, None, list[tuple[int, ...]]]:
        """Answer prompts round by round. Yields the seconds of each round and returns the answers.

        Only the time within rounds counts. Raises ConfigError for a prompt that does not fit.
        """
        core, stats = self.core, self.stats
        self.check(prompts)
        spec, scheduler = core.costs.spec, core.scheduler
        self._reset_cache()
        batch = Totals()
        stats.batches.append(batch)
        answers: dict[str, list[int]] = {}
        arrived: dict[str, float] = {}  # when requests without tokens arrived, as `seconds` counts
        seconds = 0.0
        reports: list[tuple[float, RoundReport]] = []  # with their times by the system clock
        contexts: deque[float] = deque()  # the contexts of rounds without a report yet
        pending = deque(enumerate(prompts))

        def collect(report: RoundReport) -> None:
            reports.append((self._clock.now(), report))

        while pending or not scheduler.idle:
            started = self._clock.now()
            while pending and len(scheduler.running) + len(scheduler.waiting) < streams:
                index, prompt = pending.popleft()
                arrived[str(index)] = seconds
                tokens, sampling = self._context + prompt.tokens, replace(self._sampling, seed=index)
                core.add(GenerateRequest(str(index), tokens, sampling, self._policy))
            spans = [span for r in scheduler.running for span in spec.spans(spec.whole, r.computed)]
            contexts.append(sum(count * tokens for count, tokens in spans) / spec.layers)
            core.run_round(collect)
            if scheduler.idle:
                core.flush(collect)
            for at, report in reports:
                stats.add_round(report, contexts.popleft())
                for event in report.events:
                    if isinstance(event, RequestFailure):
                        raise EngineDeadError(str(event.error))
                    if event.request_id in arrived:
                        stats.first_token.append(seconds + at - started - arrived.pop(event.request_id))
                    answers.setdefault(event.request_id, []).extend(event.token_ids)
            reports.clear()
            spent = self._clock.now() - started
            seconds += spent
            yield spent
        batch.tokens, batch.seconds = sum(map(len, answers.values())), seconds
        return [tuple(answers[str(index)]) for index in range(len(prompts))]

    def _reset_cache(self) -> None:
        """Leave nothing but the context in the prefix cache, so that every target reads the prompts."""
        core, blocks = self.core, self.core.scheduler.blocks
        if not self._context:
            blocks.clear()
            return
        tokens = (*self._context, self._context[0])
        core.add(GenerateRequest("context", tokens, SamplingParams(max_tokens=1), "none"))
        while not core.scheduler.idle:
            core.run_round(lambda report: None)
        core.flush(lambda report: None)
        held = blocks.allocate("context", tokens)
        assert held is not None, "the request had room"
        blocks.clear()
        blocks.release(held.slab)

    def check(self, prompts: Sequence[Prompt]) -> None:
        """Raise ConfigError if a prompt is empty or does not fit into the context."""
        by_length = sorted(prompts, key=lambda prompt: len(prompt.tokens))
        try:
            for extreme in (by_length[0], by_length[-1]):
                check_request(self.core.info, GenerateRequest("", self._context + extreme.tokens, self._sampling))
        except RequestError as error:
            raise ConfigError(f"a prompt cannot be answered: {error}") from None


def run_in_turns(
    targets: Sequence[PolicyTarget],
    prompts: Sequence[Prompt],
    streams: int = 1,
    first: int = 0,
    turn: float = _TURN,
) -> list[list[tuple[int, ...]]]:
    """Let all targets answer the prompts in turns of `turn` seconds. Target number `first` begins.

    Targets that share a cache (`LoadedModel.core`) run one after the other, and read their context
    each time.
    """
    if len({id(cast(Runner, target.core.runner).attention) for target in targets}) < len(targets):
        turn = float("inf")
        for target in targets:
            target.core.scheduler.blocks.clear()  # the others have overwritten its context
    answers: list[list[tuple[int, ...]]] = [[] for _ in targets]
    turns = deque((index, target.rounds(prompts, streams)) for index, target in enumerate(targets))
    turns.rotate(-first)
    while turns:
        index, rounds = turns.popleft()
        spent = 0.0
        try:
            while spent < turn:
                spent += next(rounds)
            turns.append((index, rounds))
        except StopIteration as done:
            answers[index] = done.value
    return answers


def answer_in_turns(
    policies: Sequence[PolicyTarget], batches: Iterable[Sequence[Prompt]], streams: int = 1, first: int = 0
) -> Iterator[list[int]]:
    """Let policies answer batches in turns. Policy number `first` begins; each batch, the next one.

    Yields after each batch, for each policy, how many answers differ from those of policy 0.
    """
    for number, batch in enumerate(batches, first):
        answers = run_in_turns(policies, batch, streams, number % len(policies))
        yield [sum(one != other for one, other in zip(own, answers[0], strict=True)) for own in answers]


def answer_in_order(
    targets: Sequence[BenchTarget], batches: Iterable[Sequence[Prompt]], streams: int = 1
) -> Iterator[int]:
    """Let targets answer batches of prompts one after the other, each time with another one first.

    Yields the number of each batch once it is answered.
    """
    for number, batch in enumerate(batches):
        turn = number % len(targets)
        for target in (*targets[turn:], *targets[:turn]):
            target.run(batch, streams)
        yield number


def warm_up(targets: Sequence[BenchTarget], prompts: Sequence[Prompt], streams: int = 1) -> None:
    """Let targets answer prompts that do not count."""
    for target in targets:
        target.run(prompts, streams)
        target.stats = RunStats()
