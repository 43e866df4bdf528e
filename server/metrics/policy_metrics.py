"""Metrics of drafting, with the label `policy`."""

import collections
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from engine.plans import NAMES, count_variants
from engine.types import RequestRound

ROUND_SECONDS = (0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_RATES = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 2000, 5000, 10000, 20000)
_SHARES = tuple(tenth / 10 for tenth in range(1, 11))
_DRAFT_LENGTHS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
_SUBLAYERS = (0, 1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80)
_CONTEXTS = (512, 2048, 8192, 32768)  # upper bounds of the context lengths behind one value of the label `context`
_CONTEXT_LABELS = (*map(str, _CONTEXTS), "inf")
_SOURCES = ("lookup", "prediction")  # of copied drafts
_OUTCOMES = ("changed", "kept", "plain")
_SLOWER = "slower_than_plain"
_VARIANTS = {  # that sublayers of a kind may run
    "attention": NAMES,
    "mlp": tuple(name for name in NAMES if name != "window"),
    "head": tuple(name for name in NAMES if name not in ("skip", "window")),
}


class PolicyMetrics:
    """The metrics of all policies."""

    def __init__(self, registry: CollectorRegistry, token_bounds: Sequence[float]) -> None:
        """`token_bounds` are the histogram buckets of context lengths."""
        self._policies: set[str] = set()  # with series
        by_policy: list[Counter | Histogram] = []  # metrics without further labels
        self._by_policy = by_policy

        def histogram(name: str, text: str, bounds: Sequence[float], *labels: str) -> Histogram:
            metric = Histogram(f"knapserve_{name}", text, ["policy", *labels], buckets=bounds, registry=registry)
            by_policy.extend([] if labels else [metric])
            return metric

        def counter(name: str, text: str, *labels: str) -> Counter:
            metric = Counter(f"knapserve_{name}", text, ["policy", *labels], registry=registry)
            by_policy.extend([] if labels else [metric])
            return metric

        self._rounds = counter("rounds", "Rounds of requests that generated tokens.")
        self._draft_tokens = counter("draft_tokens", "Tokens drafted by the model.")
        self._accepted_tokens = counter("accepted_tokens", "Tokens drafted by the model and accepted.")
        self._copied = counter("copied_tokens", "Draft tokens copied from text, by source.", "source")
        self._accepted_copied = counter("accepted_copied_tokens", "Copied tokens that were accepted.", "source")
        self._predicted_drafts = counter(
            "draft_tokens_predicted", "Tokens drafted with a plan that predicted an acceptance rate."
        )
        self._predicted_accepted = counter(
            "draft_tokens_promised", "Predicted number of accepted tokens among draft_tokens_predicted."
        )
        self._predicted_tpt = histogram("tpt_predicted", "Predicted tokens per second of the plan in use.", _RATES)
        self._plain_tpt = histogram("tpt_plain", "Predicted tokens per second of plain decoding.", _RATES)
        self._measured_tpt = histogram("tpt_measured", "Tokens per second of rounds without prompt tokens.", _RATES)
        # Quotients of sums are rates over time; a mean of rounds' rates would weight long rounds too little.
        self._decode_seconds = counter("decode_seconds", "Seconds of rounds without prompt tokens, per request.")
        self._decode_tokens = counter("decode_tokens", "Tokens generated in decode_seconds.")
        self._decode_predicted = counter("decode_tokens_promised", "Predicted tokens of the plan in decode_seconds.")
        self._decode_plain = counter("decode_tokens_plain", "Predicted tokens of plain decoding in decode_seconds.")
        self._acceptance = histogram("acceptance_predicted", "Predicted acceptance rate of the plan in use.", _SHARES)
        self._draft_length = histogram("draft_length", "Tokens drafted per round.", _DRAFT_LENGTHS)
        self._skipped = histogram(
            "skipped_sublayers", "Sublayers the draft skipped, by context length.", _SUBLAYERS, "kind", "context"
        )
        self._sublayers = counter(
            "draft_sublayers", "Sublayers and heads in draft passes, by the variant that ran.", "kind", "variant"
        )
        self._context = histogram("context_length", "Tokens of context, per round.", token_bounds)
        self._search_interval = Gauge(
            "knapserve_search_interval_rounds",
            "Rounds between two searches for plans: max(T, price of a search ÷ budget).",
            ["policy"],
            registry=registry,
        )
        self._reselections = counter("reselections", "Decisions on the plan, by outcome.", "outcome")
        self._reselection_seconds = histogram(
            "reselection_seconds", "Seconds of searching and deciding, per decision on the plan.", ROUND_SECONDS
        )
        self._fallbacks = counter("fallback", "Requests that fell back to plain decoding.", "reason")

    def create(self, policy: str) -> None:
        """Export all series of a policy at zero: a rate misses the step from an absent series to one."""
        if policy in self._policies:
            return
        self._policies.add(policy)
        for metric in self._by_policy:
            metric.labels(policy)
        for kind in ("attention", "mlp"):
            for context in _CONTEXT_LABELS:
                self._skipped.labels(policy, kind, context)
        for kind, variants in _VARIANTS.items():
            for variant in variants:
                self._sublayers.labels(policy, kind, variant)
        for source in _SOURCES:
            self._copied.labels(policy, source)
            self._accepted_copied.labels(policy, source)
        for outcome in _OUTCOMES:
            self._reselections.labels(policy, outcome)
        self._fallbacks.labels(policy, _SLOWER)

    def decided(self, policy: str, seconds: float) -> None:
        """Count the time of a decision and of the search before it."""
        self._reselection_seconds.labels(policy).observe(seconds)

    def count(self, policy: str, rounds: Sequence[RequestRound], seconds: float) -> None:
        """Count requests of one engine round, which took `seconds`; 0: the time does not measure the plan."""
        self.create(policy)
        self._rounds.labels(policy).inc(len(rounds))
        _observe(self._context.labels(policy), (r.context_length for r in rounds))
        for r in rounds:
            if r.copied:
                self._copied.labels(policy, r.source).inc(r.drafted)
                self._accepted_copied.labels(policy, r.source).inc(r.accepted)
            if r.search_interval is not None:
                self._search_interval.labels(policy).set(r.search_interval)
            if r.reselected is not None and not r.copied:
                self._reselections.labels(policy, r.reselected).inc()
                if r.reselected == "plain":
                    self._fallbacks.labels(policy, _SLOWER).inc()
        rounds = [r for r in rounds if not r.copied]
        _observe(self._draft_length.labels(policy), (r.drafted for r in rounds))
        self._count_drafts(policy, [r for r in rounds if r.drafted])
        if seconds > 0:
            self._count_rates(policy, rounds, seconds)
        predicted = [(r.predicted_acceptance, r.drafted) for r in rounds if r.predicted_acceptance is not None]
        _observe(self._acceptance.labels(policy), (rate for rate, _ in predicted))
        self._predicted_drafts.labels(policy).inc(sum(drafted for _, drafted in predicted))
        self._predicted_accepted.labels(policy).inc(sum(rate * drafted for rate, drafted in predicted))

    def _count_drafts(self, policy: str, rounds: Sequence[RequestRound]) -> None:
        self._draft_tokens.labels(policy).inc(sum(r.drafted for r in rounds))
        self._accepted_tokens.labels(policy).inc(sum(r.accepted for r in rounds))
        passes: collections.Counter[tuple[int, ...]] = collections.Counter()
        for r in rounds:
            context = _CONTEXT_LABELS[bisect_left(_CONTEXTS, r.context_length)]
            self._skipped.labels(policy, "attention", context).observe(r.skipped_attention)
            self._skipped.labels(policy, "mlp", context).observe(r.skipped_mlp)
            if r.plan is not None:
                passes[r.plan] += r.drafted
        for plan, times in passes.items():
            for (kind, variant), sublayers in count_variants(plan).items():
                self._sublayers.labels(policy, kind, variant).inc(sublayers * times)

    def _count_rates(self, policy: str, rounds: Sequence[RequestRound], seconds: float) -> None:
        _observe(self._measured_tpt.labels(policy), (r.emitted / seconds for r in rounds))
        self._decode_seconds.labels(policy).inc(seconds * len(rounds))
        self._decode_tokens.labels(policy).inc(sum(r.emitted for r in rounds))
        predicted = [r.predicted_tpt for r in rounds if r.predicted_tpt is not None]
        _observe(self._predicted_tpt.labels(policy), predicted)
        self._decode_predicted.labels(policy).inc(sum(predicted) * seconds)
        plain = [r.plain_tpt for r in rounds if r.plain_tpt is not None]
        _observe(self._plain_tpt.labels(policy), plain)
        self._decode_plain.labels(policy).inc(sum(plain) * seconds)


def _observe(histogram: Histogram, values: Iterable[float]) -> None:
    for value in values:
        histogram.observe(value)
