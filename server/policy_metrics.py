"""What drafting did, by policy: metrics with the label `policy`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from engine.types import RequestRound
from server.instruments import CounterFamily, HistogramFamily

ROUND_SECONDS = (0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_RATE = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 2000, 5000, 10000, 20000)
_SHARE = tuple(tenth / 10 for tenth in range(1, 11))
_CONTEXTS = (512, 2048, 8192, 32768)  # upper bounds of ranges of the context length that are told apart in a label
_OUTCOMES = ("changed", "kept", "plain")
_DRAFT = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
_SUBLAYERS = (0, 1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80)

Parts = list[tuple[RequestRound, float | None]]  # requests' rounds, and what each took where that says something


class PolicyFamilies:
    """The families of metrics that tell what drafting did, label `policy`."""

    def __init__(self, registry: CollectorRegistry, tokens: Sequence[float]) -> None:
        def histogram(name: str, text: str, bounds: Sequence[float], *labels: str) -> HistogramFamily:
            return HistogramFamily(registry, f"knapserve_{name}", text, ["policy", *labels], bounds)

        def counter(name: str, text: str, *labels: str) -> CounterFamily:
            return CounterFamily(registry, f"knapserve_{name}", text, ["policy", *labels])

        self.rounds = counter("rounds", "A request's rounds with tokens.")
        self.drafted = counter("draft_tokens", "Tokens drafted.")
        self.accepted = counter("accepted_tokens", "Drafted tokens accepted.")
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
        self._rounds = families.rounds.labels(policy)
        self._drafted = families.drafted.labels(policy)
        self._accepted = families.accepted.labels(policy)
        self._tried = families.tried.labels(policy)
        self._hoped = families.hoped.labels(policy)
        self._predicted = families.predicted.labels(policy)
        self._plain = families.plain.labels(policy)
        self._measured = families.measured.labels(policy)
        self._seconds = families.seconds.labels(policy)
        self.tokens = families.tokens.labels(policy)
        self._promised = families.promised.labels(policy)
        self.undrafted = families.undrafted.labels(policy)
        self._acceptance = families.acceptance.labels(policy)
        self._draft_length = families.draft_length.labels(policy)
        ranges = [str(bound) for bound in _CONTEXTS] + ["inf"]
        self._skipped_attention = [families.skipped.labels(policy, "attention", name) for name in ranges]
        self._skipped_mlp = [families.skipped.labels(policy, "mlp", name) for name in ranges]
        self._context = families.context.labels(policy)
        self._reselections = {outcome: families.reselections.labels(policy, outcome) for outcome in _OUTCOMES}
        self.reselection_seconds = families.reselection_seconds.labels(policy)
        self._slower = families.fallbacks.labels(policy, "slower_than_plain")

    def count(self, parts: Parts) -> None:
        """Count requests' rounds."""
        self._rounds.inc(len(parts))
        contexts = [part.context_length for part, _ in parts]
        self._context.observe_all(contexts)
        own = [(part, seconds) for part, seconds in parts if not part.copied]
        self._draft_length.tally([part.drafted for part, _ in own])
        drafting = [part for part, _ in own if part.drafted]
        if drafting:
            self._drafted.inc(sum([part.drafted for part in drafting]))
            self._accepted.inc(sum([part.accepted for part in drafting]))
            ranges = range(bisect_left(_CONTEXTS, min(contexts)), bisect_left(_CONTEXTS, max(contexts)) + 1)
            for where in ranges:
                if len(ranges) == 1:  # most often
                    within = drafting
                else:
                    within = [part for part in drafting if bisect_left(_CONTEXTS, part.context_length) == where]
                self._skipped_attention[where].tally([part.skipped_attention for part in within])
                self._skipped_mlp[where].tally([part.skipped_mlp for part in within])
        timed = [(part, seconds) for part, seconds in own if seconds is not None]
        self._measured.observe_all([part.emitted / seconds for part, seconds in timed])
        self._seconds.inc(sum([seconds for _, seconds in timed]))
        self.tokens.inc(sum([part.emitted for part, _ in timed]))
        # Only beside a measurement, so that all cover the same rounds.
        promised = [(part.predicted_tpt, seconds) for part, seconds in timed if part.predicted_tpt is not None]
        self._predicted.tally([rate for rate, _ in promised])
        self._promised.inc(sum([rate * seconds for rate, seconds in promised]))
        undrafted = [(part.plain_tpt, seconds) for part, seconds in timed if part.plain_tpt is not None]
        self._plain.tally([rate for rate, _ in undrafted])
        self.undrafted.inc(sum([rate * seconds for rate, seconds in undrafted]))
        expected = [(p.predicted_acceptance, p.drafted) for p, _ in own if p.predicted_acceptance is not None]
        self._acceptance.tally([rate for rate, _ in expected])
        self._tried.inc(sum([drafted for _, drafted in expected]))
        self._hoped.inc(sum([rate * drafted for rate, drafted in expected]))
        for outcome in [part.reselected for part, _ in own if part.reselected is not None]:
            self._reselections[outcome].inc()
            if outcome == "plain":
                self._slower.inc()
