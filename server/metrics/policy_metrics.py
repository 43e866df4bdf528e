"""What drafting did, by policy: metrics with the label `policy`."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from types import SimpleNamespace

from prometheus_client import CollectorRegistry, Counter, Histogram

from engine.architecture.spec import NAMES, census
from engine.types import RequestRound

ROUND_SECONDS = (0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_RATE = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 2000, 5000, 10000, 20000)
_SHARE = tuple(tenth / 10 for tenth in range(1, 11))
_CONTEXTS = (512, 2048, 8192, 32768)  # upper bounds of ranges of the context length that are told apart in a label
_SOURCES = ("lookup", "prediction")  # of drafts that are text
_OUTCOMES = ("changed", "kept", "plain")
_DRAFT = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
_NEVER: dict[str, tuple[str, ...]] = {"attention": (), "mlp": ("window",), "head": ("skip", "window")}
_SUBLAYERS = (0, 1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80)


class Histograms(Histogram):
    """Histograms that observe the figures of all requests in a round at once: `observe` costs 3 µs each."""

    def observe_all(self, values: Iterable[float]) -> None:
        values = list(values)
        self._sum.inc(sum(values))
        for bucket, times in Tally([bisect_left(self._upper_bounds, value) for value in values]).items():
            self._buckets[bucket].inc(times)


class PolicyFamilies:
    """The families of metrics that tell what drafting did, label `policy`."""

    def __init__(self, registry: CollectorRegistry, tokens: Sequence[float]) -> None:
        def histogram(name: str, text: str, bounds: Sequence[float], *labels: str) -> Histograms:
            return Histograms(f"knapserve_{name}", text, ["policy", *labels], buckets=bounds, registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"knapserve_{name}", text, ["policy", *labels], registry=registry)

        self.rounds = counter("rounds", "A request's rounds with tokens.")
        self.drafted = counter("draft_tokens", "Tokens drafted.")
        self.accepted = counter("accepted_tokens", "Drafted tokens accepted.")
        self.copied = counter("copied_tokens", "Tokens drafted from text instead, by source.", "source")
        self.kept = counter("accepted_copied_tokens", "Of these, accepted ones.", "source")
        self.tried = counter("draft_tokens_predicted", "Tokens drafted with a plan that promised an acceptance rate.")
        self.hoped = counter("draft_tokens_promised", "Of these, accepted ones that were promised.")
        self.predicted = histogram("tpt_predicted", "Tokens per second that the plan in use promised.", _RATE)
        self.plain = histogram("tpt_plain", "Tokens per second that plain decoding would have brought.", _RATE)
        self.measured = histogram("tpt_measured", "Tokens per second of rounds without prompt tokens.", _RATE)
        # Sums, whose quotients are rates: the mean of rounds' rates would make light of long rounds.
        self.seconds = counter("decode_seconds", "Seconds of requests' rounds without prompt tokens.")
        self.tokens = counter("decode_tokens", "Tokens that these brought.")
        self.promised = counter("decode_tokens_promised", "Tokens that the plans in use promised for these seconds.")
        self.undrafted = counter("decode_tokens_plain", "Tokens that plain decoding would have brought in them.")
        self.acceptance = histogram("acceptance_predicted", "Acceptance rate that the plan in use promised.", _SHARE)
        self.draft_length = histogram("draft_length", "Tokens drafted per round.", _DRAFT)
        self.skipped = histogram(
            "skipped_sublayers", "Sublayers the draft skipped, by context length.", _SUBLAYERS, "kind", "context"
        )
        self.sublayers = counter(
            "draft_sublayers", "Sublayers and heads of the draft passes, by what was run of them.", "kind", "variant"
        )
        self.context = histogram("context_length", "Tokens of context, per round.", tokens)
        self.reselections = counter("reselections", "Plans decided anew, by outcome.", "outcome")
        self.reselection_seconds = histogram(
            "reselection_seconds",
            "Seconds spent on searching and deciding, per time that plans were decided anew.",
            ROUND_SECONDS,
        )
        self.fallbacks = counter("fallback", "Requests that went over to plain decoding.", "reason")


class PolicyMetrics:
    """The metrics of one policy."""

    def __init__(self, families: PolicyFamilies, policy: str) -> None:
        labelled = (
            *(families.copied, families.kept, families.skipped, families.sublayers),
            *(families.reselections, families.fallbacks),
        )
        own = {name: family.labels(policy) for name, family in vars(families).items() if family not in labelled}
        self._own = SimpleNamespace(**own)  # children of the families, by their names there
        self.reselection_seconds: Histogram = self._own.reselection_seconds
        ranges = [str(bound) for bound in _CONTEXTS] + ["inf"]
        self._skipped = [
            [families.skipped.labels(policy, kind, name) for kind in ("attention", "mlp")] for name in ranges
        ]
        self._sublayers = {
            (kind, variant): families.sublayers.labels(policy, kind, variant)
            for kind in ("attention", "mlp", "head")
            for variant in NAMES
            if variant not in _NEVER[kind]
        }
        self._copied = {
            source: (families.copied.labels(policy, source), families.kept.labels(policy, source))
            for source in _SOURCES
        }
        self._reselections = {outcome: families.reselections.labels(policy, outcome) for outcome in _OUTCOMES}
        self._slower = families.fallbacks.labels(policy, "slower_than_plain")

    def count(self, parts: Sequence[RequestRound], seconds: float) -> None:
        """Count requests' parts in a round, which took so long; 0 if that says nothing."""
        self._own.rounds.inc(len(parts))
        self._own.context.observe_all(part.context_length for part in parts)
        for part in parts:
            if part.copied:
                drafted, accepted = self._copied[part.source]
                drafted.inc(part.drafted)
                accepted.inc(part.accepted)
        parts = [part for part in parts if not part.copied]
        self._own.draft_length.observe_all(part.drafted for part in parts)
        drafting = [part for part in parts if part.drafted]
        self._own.drafted.inc(sum(part.drafted for part in drafting))
        self._own.accepted.inc(sum(part.accepted for part in drafting))
        ranges = [bisect_left(_CONTEXTS, part.context_length) for part in drafting]
        for where in set(ranges):
            within = [part for part, at in zip(drafting, ranges, strict=True) if at == where]
            attention, mlp = self._skipped[where]
            attention.observe_all(part.skipped_attention for part in within)
            mlp.observe_all(part.skipped_mlp for part in within)
        passes: Tally[tuple[int, ...]] = Tally()
        for part in drafting:
            if part.plan is not None:
                passes[part.plan] += part.drafted
        for plan, times in passes.items():
            for key, sublayers in census(plan).items():
                self._sublayers[key].inc(sublayers * times)
        if seconds > 0:
            self._timed(parts, seconds)
        promised = [(p.predicted_acceptance, p.drafted) for p in parts if p.predicted_acceptance is not None]
        self._own.acceptance.observe_all(rate for rate, _ in promised)
        self._own.tried.inc(sum(drafted for _, drafted in promised))
        self._own.hoped.inc(sum(rate * drafted for rate, drafted in promised))
        for outcome in (part.reselected for part in parts if part.reselected is not None):
            self._reselections[outcome].inc()
            if outcome == "plain":
                self._slower.inc()

    def _timed(self, parts: Sequence[RequestRound], seconds: float) -> None:
        """Count rates, and what was promised: only beside a measurement, so that all cover the same rounds."""
        self._own.measured.observe_all(part.emitted / seconds for part in parts)
        self._own.seconds.inc(seconds * len(parts))
        self._own.tokens.inc(sum(part.emitted for part in parts))
        promised = [part.predicted_tpt for part in parts if part.predicted_tpt is not None]
        self._own.predicted.observe_all(promised)
        self._own.promised.inc(sum(promised) * seconds)
        undrafted = [part.plain_tpt for part in parts if part.plain_tpt is not None]
        self._own.plain.observe_all(undrafted)
        self._own.undrafted.inc(sum(undrafted) * seconds)
