"""What `knapserve bench` compares: draft policies of this engine; others have modules of their own."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from engine.clock import SystemClock
from engine.core.engine import EngineCore
from engine.draft.knapspec import KnapSpec
from engine.errors import ConfigError, EngineDeadError, RequestError
from engine.types import ErrorEvent, GenerateRequest, RequestRound, RoundReport, SamplingParams, check_request

_TURN = 0.03  # seconds that a policy decodes before the next one's turn: machines change speed within a second


class Prompt(NamedTuple):
    """A user's message, and a whole prompt with it as this model's tokens."""

    text: str
    tokens: tuple[int, ...]
    domain: str = ""


@dataclass(frozen=True, slots=True)
class DraftRound:
    """One round of one request as it was promised and as it came. Seconds are its share of the round."""

    request: int  # over all that the contender answered
    seconds: float
    emitted: int
    drafted: int
    accepted: int
    predicted_tpt: float | None
    predicted_acceptance: float | None


class Batch(NamedTuple):
    """What some prompts took."""

    tokens: int
    seconds: float
    decode_tokens: int
    decode_seconds: float

    def plus(self, other: Batch) -> Batch:
        """Both."""
        return Batch(
            self.tokens + other.tokens,
            self.seconds + other.seconds,
            self.decode_tokens + other.decode_tokens,
            self.decode_seconds + other.decode_seconds,
        )


@dataclass(slots=True)
class Tally:
    """What one contender did, summed over prompts. Seconds and tokens."""

    tokens: int = 0
    seconds: float = 0.0
    batches: list[Batch] = field(default_factory=list)  # of prompts, in their order
    decode_seconds: float = 0.0  # rounds without prompt rows
    decode_tokens: int = 0
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    search_seconds: float = 0.0
    other_seconds: float = 0.0
    draft_passes: int = 0
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    tested: int = 0
    skipped_attention: int = 0
    skipped_mlp: int = 0
    searches: int = 0  # that ended, for whole answers
    knapsack_seconds: float = 0.0  # in searches, decisions left out, for whole answers
    context: float = 0.0  # positions that the decode rounds read from the cache, mean over layers
    history: list[DraftRound] = field(default_factory=list)  # rounds without prompt rows
    first_token: list[float] = field(default_factory=list)  # seconds from a request's arrival, one each

    def round(self, report: RoundReport, context: float) -> None:
        """Count one round over requests with `context` positions to read in all."""
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
        self._note(report.rounds, spent)
        for r in report.rounds:
            self.drafted += r.drafted
            self.accepted += r.accepted
            self.tested += r.accepted + (r.accepted < r.drafted)
            self.skipped_attention += r.skipped_attention * r.draft_passes
            self.skipped_mlp += r.skipped_mlp * r.draft_passes

    def answered(self, tokens: int, seconds: float) -> None:
        """Count a batch of prompts."""
        self.tokens += tokens
        self.seconds += seconds
        decode_tokens = self.decode_tokens - sum(batch.decode_tokens for batch in self.batches)
        decode_seconds = self.decode_seconds - sum(batch.decode_seconds for batch in self.batches)
        self.batches.append(Batch(tokens, seconds, decode_tokens, decode_seconds))

    def _note(self, rounds: Sequence[RequestRound], seconds: float) -> None:
        answered = len(self.batches)
        self.history += [
            DraftRound(
                request=(answered << 32) + int(r.request_id),
                seconds=seconds / len(rounds),
                emitted=r.emitted,
                drafted=r.drafted,
                accepted=r.accepted,
                predicted_tpt=None if r.predicted_tpt is None else r.predicted_tpt * len(rounds),  # of its share
                predicted_acceptance=r.predicted_acceptance,
            )
            for r in rounds
        ]


class Contender(Protocol):
    """Something that answers prompts."""

    name: str
    tally: Tally

    def run(self, prompts: Sequence[Prompt], streams: int) -> list[tuple[int, ...]] | None:
        """Answer these prompts, `streams` at a time; the tokens of each, if this contender has the same ones."""


class PolicyContender:
    """A draft policy on a core of its own, so that what one learns does not help another."""

    def __init__(
        self,
        policy: str,
        core: EngineCore,
        sampling: SamplingParams,
        context: tuple[int, ...] = (),
        name: str | None = None,
    ) -> None:
        """Every prompt comes after `context`, whose keys and values are made up rather than read."""
        self._context = context
        self._policy, self.name = policy, name or policy
        self.core = core
        self.tally = Tally()
        self._sampling = sampling
        self._clock = SystemClock()
        if not gc.get_freeze_count():  # as in `engine.host.process`; once, for what is frozen stays
            gc.freeze()

    def run(self, prompts: Sequence[Prompt], streams: int) -> list[tuple[int, ...]]:
        (answers,) = answer_in_turns([self], prompts, streams)
        return answers

    def rounds(self, prompts: Sequence[Prompt], streams: int) -> Generator[float, None, list[tuple[int, ...]]]:
        """Answer these prompts round by round, in as many steps: each yields its seconds, the last returns the answers.

        Only time within steps counts. Raises ConfigError for a prompt that has no room.
        """
        core, tally = self.core, self.tally
        self.check(prompts)
        spec, whole = core.costs.spec, core.costs.spec.whole
        core.scheduler.blocks.clear()  # every contender reads the prompt itself
        if self._context:
            core.imagine(self._context)
        said: dict[str, list[int]] = {}
        searches, searching = self._searches()
        arrived: dict[str, float] = {}  # when, by `seconds`: requests that have not said anything
        seconds = 0.0
        told: list[tuple[float, RoundReport]] = []  # when, by the clock
        contexts: deque[float] = deque()  # of rounds that are not told yet
        todo = deque(enumerate(prompts))

        def tell(report: RoundReport) -> None:
            told.append((self._clock.now(), report))

        def live() -> int:
            return len(core.scheduler.running) + len(core.scheduler.waiting)

        while todo or live():
            started = self._clock.now()
            while todo and live() < streams:
                index, prompt = todo.popleft()
                arrived[str(index)] = seconds
                core.add(
                    GenerateRequest(
                        str(index), self._context + prompt.tokens, replace(self._sampling, seed=index), self._policy
                    )
                )
            context = sum(spec.scanned(whole, r.computed) for r in core.scheduler.running) / spec.layers
            core.advance(tell)
            contexts.append(context)
            if core.scheduler.idle:
                core.settle(tell)
            for at, report in told:
                tally.round(report, contexts.popleft())
                for event in report.events:
                    if isinstance(event, ErrorEvent):
                        raise EngineDeadError(event.message)
                    if event.request_id in arrived:
                        tally.first_token.append(seconds + at - started - arrived.pop(event.request_id))
                    said.setdefault(event.request_id, []).extend(event.token_ids)
            told.clear()
            spent = self._clock.now() - started
            seconds += spent
            yield spent
        ended, spent = self._searches()
        tally.searches += ended - searches
        tally.knapsack_seconds += spent - searching
        tally.answered(sum(len(tokens) for tokens in said.values()), seconds)
        return [tuple(said[str(index)]) for index in range(len(prompts))]

    def _searches(self) -> tuple[int, float]:
        """How many this contender has ended so far, and seconds spent on them."""
        policy = self.core.policy(self._policy)
        if not isinstance(policy, KnapSpec):
            return 0, 0.0
        return policy.searcher.searches, policy.searcher.spent

    def check(self, prompts: Sequence[Prompt]) -> None:
        """Raises ConfigError for a prompt that has no room, or is empty."""
        lengths = [len(prompt.tokens) for prompt in prompts]
        try:
            for extreme in (min(lengths), max(lengths)):
                tokens = self._context + prompts[lengths.index(extreme)].tokens
                check_request(self.core.info, GenerateRequest("", tokens, self._sampling))
        except RequestError as error:
            raise ConfigError(f"a prompt cannot be answered: {error}") from None


def answer_in_turns(
    contenders: Sequence[PolicyContender],
    prompts: Sequence[Prompt],
    streams: int = 1,
    first: int = 0,
    turn: float = _TURN,
) -> list[list[tuple[int, ...]]]:
    """Let all contenders answer these prompts, each for `turn` seconds at a time, beginning with number `first`.

    Those that share a cache (`LoadedModel.core`) answer one after the other.
    """
    alone = len({id(c.core.runner.attention) for c in contenders}) == len(contenders)
    if not alone:
        turn = float("inf")
    answers: list[list[tuple[int, ...]]] = [[] for _ in contenders]
    turns = deque((index, contender.rounds(prompts, streams)) for index, contender in enumerate(contenders))
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
