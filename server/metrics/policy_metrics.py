"""Metrics of drafting, with the label `policy`."""

import collections
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from engine.plans import NAMES, count_variants
from engine.types import RequestRound

ROUND_SECONDS = (0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_RATES = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 2000, 5000, 10000, 20000)
_SHARES = tuple(tenth / 10 for tenth in range(1, 11))
_DRAFT_LENGTHS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
_SUBLAYERS = (0, 1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80)
_CONTEXTS = (512, 2048, 8192, 32768)  # upper bounds of the groups of the label `context`
_CONTEXT_LABELS = (*map(str, _CONTEXTS), "inf")
_SLOWER = "slower_than_plain"
_UP_TO_CONTEXT = ()  # stands for the buckets of context lengths

# The metrics without further labels: their names after "knapserve_", and their help texts.
# Quotients of sums are rates over time; a mean of rounds' rates would weight long rounds too little.
_COUNTERS = {
    "rounds": "Rounds of requests that generated tokens.",
    "draft_tokens": "Tokens drafted by the model.",
    "accepted_tokens": "Tokens drafted by the model and accepted.",
    "draft_tokens_predicted": "Tokens drafted with a plan that predicted an acceptance rate.",
    "draft_tokens_promised": "Predicted number of accepted tokens among draft_tokens_predicted.",
    "decode_seconds": "Seconds of rounds without prompt tokens, per request.",
    "decode_tokens": "Tokens generated in decode_seconds.",
    "decode_tokens_promised": "Predicted tokens of the plan in decode_seconds.",
    "decode_tokens_plain": "Predicted tokens of plain decoding in decode_seconds.",
}
_HISTOGRAMS: dict[str, tuple[str, Sequence[float]]] = {
    "tpt_predicted": ("Predicted tokens per second of the plan in use.", _RATES),
    "tpt_plain": ("Predicted tokens per second of plain decoding.", _RATES),
    "tpt_measured": ("Tokens per second of rounds without prompt tokens.", _RATES),
    "acceptance_predicted": ("Predicted acceptance rate of the plan in use.", _SHARES),
    "draft_length": ("Tokens drafted per round.", _DRAFT_LENGTHS),
    "context_length": ("Tokens of context, per round.", _UP_TO_CONTEXT),
    "reselection_seconds": ("Seconds of searching and deciding, per decision on the plan.", ROUND_SECONDS),
}
# Counters with further labels: their help texts, the labels, and the values that these have.
_LABELLED: dict[str, tuple[str, Sequence[str], Sequence[Sequence[str]]]] = {
    "copied_tokens": ("Draft tokens copied from text, by source.", ["source"], [["lookup"], ["prediction"]]),
    "accepted_copied_tokens": ("Copied tokens that were accepted.", ["source"], [["lookup"], ["prediction"]]),
    "draft_sublayers": (
        "Sublayers and heads in draft passes, by the variant that ran.",
        ["kind", "variant"],
        [
            *(["attention", name] for name in NAMES),
            *(["mlp", name] for name in NAMES if name != "window"),
            *(["head", name] for name in NAMES if name not in ("skip", "window")),
        ],
    ),
    "reselections": ("Decisions on the plan, by outcome.", ["outcome"], [["changed"], ["kept"], ["plain"]]),
    "fallback": ("Requests that fell back to plain decoding.", ["reason"], [[_SLOWER]]),
}


class PolicyMetrics:
    """The metrics of all policies."""

    def __init__(self, registry: CollectorRegistry, token_bounds: Sequence[float]) -> None:
        """`token_bounds` are the histogram buckets of context lengths."""
        self._policies: set[str] = set()  # the policies that have series

        def make(kind: Any, name: str, text: str, *labels: str, **options: Any) -> Any:
            return kind(f"knapserve_{name}", text, ["policy", *labels], registry=registry, **options)

        self._counters: dict[str, Counter] = {name: make(Counter, name, text) for name, text in _COUNTERS.items()}
        self._labelled: dict[str, Counter] = {
            name: make(Counter, name, text, *labels) for name, (text, labels, _) in _LABELLED.items()
        }
        self._histograms: dict[str, Histogram] = {
            name: make(Histogram, name, text, buckets=bounds or token_bounds)
            for name, (text, bounds) in _HISTOGRAMS.items()
        }
        text = "Sublayers the draft skipped, by context length."
        self._skipped = make(Histogram, "skipped_sublayers", text, "kind", "context", buckets=_SUBLAYERS)
        text = "Rounds between two searches for plans: max(T, price of a search ÷ budget)."
        self._search_interval = make(Gauge, "search_interval_rounds", text)

    def create(self, policy: str) -> None:
        """Export all series of a policy at zero: a rate misses the step from an absent series to one."""
        if policy in self._policies:
            return
        self._policies.add(policy)
        for metric in (*self._counters.values(), *self._histograms.values()):
            metric.labels(policy)
        for name, (_, _, series) in _LABELLED.items():
            for labels in series:
                self._labelled[name].labels(policy, *labels)
        for kind in ("attention", "mlp"):
            for context in _CONTEXT_LABELS:
                self._skipped.labels(policy, kind, context)

    def _count(self, policy: str, name: str, amount: float) -> None:
        self._counters[name].labels(policy).inc(amount)

    def _observe(self, policy: str, name: str, values: Iterable[float]) -> None:
        series = self._histograms[name].labels(policy)
        for value in values:
            series.observe(value)

    def decided(self, policy: str, seconds: float) -> None:
        """Count the time of a decision and of the search before it."""
        self._observe(policy, "reselection_seconds", [seconds])

    def count(self, policy: str, rounds: Sequence[RequestRound], seconds: float) -> None:
        """Count requests of one engine round, which took `seconds`; 0: the time does not measure the plan."""
        self.create(policy)
        self._count(policy, "rounds", len(rounds))
        self._observe(policy, "context_length", (r.context_length for r in rounds))
        for r in rounds:
            if r.copied:
                self._labelled["copied_tokens"].labels(policy, r.source).inc(r.drafted)
                self._labelled["accepted_copied_tokens"].labels(policy, r.source).inc(r.accepted)
            if r.search_interval is not None:
                self._search_interval.labels(policy).set(r.search_interval)
            if r.reselected is not None and not r.copied:
                self._labelled["reselections"].labels(policy, r.reselected).inc()
                if r.reselected == "plain":
                    self._labelled["fallback"].labels(policy, _SLOWER).inc()
        rounds = [r for r in rounds if not r.copied]
        self._observe(policy, "draft_length", (r.drafted for r in rounds))
        self._count_drafts(policy, [r for r in rounds if r.drafted])
        if seconds > 0:
            self._count_rates(policy, rounds, seconds)
        predicted = [(r.predicted_acceptance, r.drafted) for r in rounds if r.predicted_acceptance is not None]
        self._observe(policy, "acceptance_predicted", (rate for rate, _ in predicted))
        self._count(policy, "draft_tokens_predicted", sum(drafted for _, drafted in predicted))
        self._count(policy, "draft_tokens_promised", sum(rate * drafted for rate, drafted in predicted))

    def _count_drafts(self, policy: str, rounds: Sequence[RequestRound]) -> None:
        self._count(policy, "draft_tokens", sum(r.drafted for r in rounds))
        self._count(policy, "accepted_tokens", sum(r.accepted for r in rounds))
        passes: collections.Counter[tuple[int, ...]] = collections.Counter()
        for r in rounds:
            context = _CONTEXT_LABELS[bisect_left(_CONTEXTS, r.context_length)]
            self._skipped.labels(policy, "attention", context).observe(r.skipped_attention)
            self._skipped.labels(policy, "mlp", context).observe(r.skipped_mlp)
            if r.plan is not None:
                passes[r.plan] += r.drafted
        for plan, times in passes.items():
            for labels, sublayers in count_variants(plan).items():
                self._labelled["draft_sublayers"].labels(policy, *labels).inc(sublayers * times)

    def _count_rates(self, policy: str, rounds: Sequence[RequestRound], seconds: float) -> None:
        self._observe(policy, "tpt_measured", (r.emitted / seconds for r in rounds))
        self._count(policy, "decode_seconds", seconds * len(rounds))
        self._count(policy, "decode_tokens", sum(r.emitted for r in rounds))
        predicted = [r.predicted_tpt for r in rounds if r.predicted_tpt is not None]
        self._observe(policy, "tpt_predicted", predicted)
        self._count(policy, "decode_tokens_promised", sum(predicted) * seconds)
        plain = [r.plain_tpt for r in rounds if r.plain_tpt is not None]
        self._observe(policy, "tpt_plain", plain)
        self._count(policy, "decode_tokens_plain", sum(plain) * seconds)
