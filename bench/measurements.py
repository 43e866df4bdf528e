"""What a benchmark counts while targets answer prompts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.plans import Variants
from engine.types import RequestRound, RoundReport


@dataclass
class Totals:
    """Counts and seconds that add up: of a batch of prompts, of a domain, or of a run.

    Decoding means rounds without prompt tokens. Other programs have few of these counts.
    """

    tokens: int = 0
    seconds: float = 0.0
    decode_tokens: int = 0
    decode_seconds: float = 0.0
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    search_seconds: float = 0.0
    rounds: int = 0
    request_rounds: int = 0  # the rounds of each request, summed over requests
    draft_passes: int = 0
    drafted: int = 0
    accepted: int = 0
    tested: int = 0  # drafted tokens up to the first rejection
    positions_read: float = 0.0  # cached positions, mean over layers
    plans: Counter[Variants] = field(default_factory=Counter)  # draft passes by plan

    def __add__(self, other: Totals) -> Totals:
        return Totals(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    @staticmethod
    def sum(each: Iterable[Totals]) -> Totals:
        """Add up any number of totals."""
        return sum(each, Totals())

    @property
    def speed(self) -> float:
        """Tokens per second of whole answers."""
        return self.tokens / self.seconds

    @property
    def decode_speed(self) -> float:
        """Tokens per second of decoding. There must be decoded tokens."""
        return self.decode_tokens / self.decode_seconds

    def add_round(self, report: RoundReport, positions: float) -> float:
        """Count a round without prompt tokens. Returns its seconds."""
        seconds = report.draft_seconds + report.verify_seconds + report.search_seconds + report.other_seconds
        self.decode_seconds += seconds
        self.draft_seconds += report.draft_seconds
        self.verify_seconds += report.verify_seconds
        self.search_seconds += report.search_seconds
        self.positions_read += positions
        self.rounds += 1
        self.request_rounds += len(report.rounds)
        self.draft_passes += max(each.draft_passes for each in report.rounds)
        for each in report.rounds:
            self.decode_tokens += each.emitted
            self.drafted += each.drafted
            self.accepted += each.accepted
            self.tested += each.accepted + (each.accepted < each.drafted)
            if each.plan is not None and each.draft_passes:
                self.plans[each.plan] += each.draft_passes
        return seconds

    def as_json(self) -> dict[str, Any]:
        """Return the counts by name. Plans become strings with a digit for each sublayer."""
        return vars(self) | {"plans": {"".join(map(str, plan)): passes for plan, passes in self.plans.items()}}

    @classmethod
    def from_json(cls, counts: Mapping[str, Any]) -> Totals:
        """Read the counts that `as_json` returned."""
        plans = Counter({tuple(map(int, plan)): passes for plan, passes in counts["plans"].items()})
        return cls(**{**counts, "plans": plans})


@dataclass(slots=True)
class Prediction:
    """Sums over a request's drafting rounds, to compare predicted means with measured ones."""

    seconds: float = 0.0
    emitted: int = 0
    drafted: int = 0
    accepted: int = 0
    tpt_seconds: float = 0.0  # predicted tokens per second × seconds
    acceptance_drafted: float = 0.0  # predicted acceptance × drafted tokens

    def add(self, each: RequestRound, seconds: float, requests: int) -> None:
        """Count a round of `requests` requests, if it drafted with a prediction."""
        if not each.drafted or each.predicted_tpt is None or each.predicted_acceptance is None:
            return
        self.seconds += seconds / requests
        self.emitted += each.emitted
        self.drafted += each.drafted
        self.accepted += each.accepted
        self.tpt_seconds += each.predicted_tpt * seconds
        self.acceptance_drafted += each.predicted_acceptance * each.drafted

    def means(self) -> list[float]:
        """Return tokens per second, predicted and measured, then acceptance likewise."""
        return [
            self.tpt_seconds / self.seconds,
            self.emitted / self.seconds,
            self.acceptance_drafted / self.drafted,
            self.accepted / self.drafted,
        ]


@dataclass(slots=True)
class RunStats:
    """The measurements of one target."""

    batches: list[Totals] = field(default_factory=list)  # in the order of the prompts
    predictions: defaultdict[tuple[int, str], Prediction] = field(default_factory=lambda: defaultdict(Prediction))
    first_token: list[float] = field(default_factory=list)  # seconds from arrival, by request
    chunks: int = 0  # pieces of text in streams, of servers only
    gaps: list[float] = field(default_factory=list)  # seconds between these chunks

    @property
    def total(self) -> Totals:
        """The sum of all batches."""
        return Totals.sum(self.batches)

    def add_round(self, report: RoundReport, positions: float) -> None:
        """Count a round of the last batch, whose requests read `positions` of the cache in total."""
        if report.prompt_tokens or not report.rounds:
            return
        seconds = self.batches[-1].add_round(report, positions)
        for each in report.rounds:
            self.predictions[len(self.batches), each.request_id].add(each, seconds, len(report.rounds))
