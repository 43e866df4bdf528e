"""Benchmark targets: draft policies of this engine. Other programs are in `bench.peers`."""

import gc
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, cast

from engine.clock import SystemClock
from engine.core.engine import EngineCore
from engine.draft.knapspec import KnapSpec
from engine.errors import ConfigError, EngineDeadError, RequestError
from engine.plans import Variants
from engine.runtime.runner import Runner
from engine.types import GenerateRequest, RequestFailure, RoundReport, SamplingParams, check_request

_TURN = 0.03  # seconds per turn of a policy; short, as a machine's speed changes within a second


class Prompt(NamedTuple):
    """A user's message, and the tokens of the prompt with it."""

    text: str
    tokens: tuple[int, ...]
    domain: str = ""


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """Predictions and measurements of one round of one request. Seconds are the request's share of the round."""

    request: int  # unique within the target
    seconds: float
    emitted: int
    drafted: int
    accepted: int
    predicted_tpt: float | None
    predicted_acceptance: float | None


class BatchTotals(NamedTuple):
    """Tokens and seconds of a batch of prompts."""

    tokens: int
    seconds: float
    decode_tokens: int
    decode_seconds: float

    @property
    def speed(self) -> float:
        """Tokens per second."""
        return self.tokens / self.seconds

    @property
    def decode_speed(self) -> float:
        """Tokens per second of decoding, if there are such tokens."""
        return self.decode_tokens / self.decode_seconds


def sum_batches(batches: Iterable[Sequence[float]]) -> BatchTotals:
    """Return the sum of batches, one at least. They are lists if they come from a file."""
    return BatchTotals(*map(sum, zip(*batches, strict=True)))


@dataclass(slots=True)
class RunStats:
    """Tokens and seconds of one target, summed over prompts."""

    tokens: int = 0
    seconds: float = 0.0
    batches: list[BatchTotals] = field(default_factory=list)  # in the order of the prompts
    first_token: list[float] = field(default_factory=list)  # seconds from arrival to the first token, per request
    decode_seconds: float = 0.0  # the time of rounds without prompt tokens
    decode_tokens: int = 0
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    search_seconds: float = 0.0
    other_seconds: float = 0.0
    draft_passes: int = 0
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    tested: int = 0  # drafted tokens up to the first rejection
    plans: Counter[Variants] = field(default_factory=Counter)  # draft passes by plan; copied tokens have none
    searches: int = 0  # finished ones
    knapsack_seconds: float = 0.0  # the time of searches, without decisions
    context: float = 0.0  # cached positions that decode rounds read, mean over layers
    history: list[RoundRecord] = field(default_factory=list)  # rounds without prompt tokens
    chunks: int = 0  # pieces of text in streams, of servers only
    gaps: list[float] = field(default_factory=list)  # seconds between these chunks

    @property
    def total(self) -> BatchTotals:
        """The sum of all batches."""
        return BatchTotals(self.tokens, self.seconds, self.decode_tokens, self.decode_seconds)

    def add_round(self, report: RoundReport, context: float) -> None:
        """Count one round, in which requests read `context` cached positions in total."""
        self.other_seconds += report.other_seconds
        if report.prompt_tokens or not report.rounds:
            return
        spent = report.draft_seconds + report.verify_seconds + report.search_seconds + report.other_seconds
        self.decode_seconds += spent
        self.decode_tokens += sum(r.emitted for r in report.rounds)
        self.draft_seconds += report.draft_seconds
        self.verify_seconds += report.verify_seconds
        self.search_seconds += report.search_seconds
        self.draft_passes += max(r.draft_passes for r in report.rounds)
        self.rounds += 1
        self.context += context
        requests = len(report.rounds)
        for r in report.rounds:
            self.history.append(
                RoundRecord(
                    request=(len(self.batches) << 32) + int(r.request_id),
                    seconds=spent / requests,
                    emitted=r.emitted,
                    drafted=r.drafted,
                    accepted=r.accepted,
                    # Tokens per second of the request's share of the round.
                    predicted_tpt=None if r.predicted_tpt is None else r.predicted_tpt * requests,
                    predicted_acceptance=r.predicted_acceptance,
                )
            )
            self.drafted += r.drafted
            self.accepted += r.accepted
            self.tested += r.accepted + (r.accepted < r.drafted)
            if r.plan is not None and r.draft_passes:
                self.plans[r.plan] += r.draft_passes

    def add_batch(self, tokens: int, seconds: float) -> None:
        """Count a finished batch of prompts."""
        self.tokens += tokens
        self.seconds += seconds
        decode_tokens = self.decode_tokens - sum(batch.decode_tokens for batch in self.batches)
        decode_seconds = self.decode_seconds - sum(batch.decode_seconds for batch in self.batches)
        self.batches.append(BatchTotals(tokens, seconds, decode_tokens, decode_seconds))


class Measured(Protocol):
    """What has a row in a table."""

    name: str
    stats: RunStats


class BenchTarget(Measured, Protocol):
    """A program that answers prompts."""

    def run(self, prompts: Sequence[Prompt], streams: int) -> list[tuple[int, ...]] | None:
        """Answer prompts, `streams` at a time. Returns the tokens of each answer, or None if they are not known."""


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
        """`context` precedes every prompt, and is read before the first. Raises UnknownPolicyError."""
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

        Only the time within rounds counts. Raises ConfigError for a prompt that does not fit into the context.
        """
        core, stats = self.core, self.stats
        self.check(prompts)
        spec, scheduler = core.costs.spec, core.scheduler
        self._reset_cache()
        answers: dict[str, list[int]] = {}
        searches_before, seconds_before = self._search_totals()
        arrived: dict[str, float] = {}  # arrival time of requests without tokens, on the clock of `seconds`
        seconds = 0.0
        reports: list[tuple[float, RoundReport]] = []  # reports, each with its time by the system clock
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
        searches, search_seconds = self._search_totals()
        stats.searches += searches - searches_before
        stats.knapsack_seconds += search_seconds - seconds_before
        stats.add_batch(sum(len(tokens) for tokens in answers.values()), seconds)
        return [tuple(answers[str(index)]) for index in range(len(prompts))]

    def _reset_cache(self) -> None:
        """Leave nothing but the context in the prefix cache, so that every target computes the prompts itself."""
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

    def _search_totals(self) -> tuple[int, float]:
        policy = self.core.policy(self._policy)
        if not isinstance(policy, KnapSpec):
            return 0, 0.0
        return policy.searcher.searches, policy.searcher.spent

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
    """Let all targets answer the prompts in turns of `turn` seconds, starting with target number `first`.

    Targets that share a cache (`LoadedModel.core`) run one after the other instead, and read their context each time.
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
    """Let policies answer batches of prompts in turns. Policy number `first` begins, with the next batch the next one.

    Yields after each batch, for each policy, how many of its answers differ from those of the first policy.
    """
    for number, batch in enumerate(batches, first):
        answers = run_in_turns(policies, batch, streams, number % len(policies))
        yield [sum(one != other for one, other in zip(own, answers[0], strict=True)) for own in answers]


def answer_in_order(targets: Sequence[BenchTarget], batches: Iterable[Sequence[Prompt]], streams: int) -> Iterator[int]:
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
