"""Prometheus metrics, under vLLM's names where it has one.

Two sources feed them: the engine's `RoundReport`s (what rounds cost and what drafting did) and the events of each HTTP
request (`metrics.meter`: what clients saw). Every app has a registry of its own. Prompt tokens and latencies count per
choice, each being a request to the engine, as in vLLM.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from engine.api import Engine
from engine.types import RequestRound, RoundReport
from server.metrics.policy_metrics import ROUND_SECONDS, PolicyFamilies, PolicyMetrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
disable_created_metrics()  # type: ignore[no-untyped-call]  # one more series for each; the library has no other way

_FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
                80.0, 160.0, 640.0, 2560.0)  # fmt: skip
_PER_TOKEN = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75,
              1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)  # fmt: skip
_REQUEST = (0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0,
            240.0, 480.0, 960.0, 1920.0, 7680.0)  # fmt: skip
_ITERATION = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
_POSITIONS = 32
_ENDS = ("stop", "length", "abort", "error")
_REJECTIONS = ("queue_full", "draining", "unavailable", "invalid")
_PATHS = ("/", "/v1/chat/completions", "/v1/completions", "/v1/models", "/tokenize", "/detokenize", "/health", "/live",
          "/metrics", "/version", "/reset_calibration")  # fmt: skip
_METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH")
_GENERATING = _PATHS[1:3]


def _token_bounds(limit: int) -> list[int]:
    """1, 2, 5, 10, … up to the context length `limit` in tokens."""
    bounds = [digit * 10**power for power in range(12) for digit in (1, 2, 5)]
    return [bound for bound in bounds if bound < limit] + [limit]


class Totals(NamedTuple):
    """Tokens since the start."""

    read: float  # of prompts, without what was cached
    generated: float
    drafted: float
    accepted: float
    decoded: float  # in rounds of which is known what plain decoding would have brought,
    undrafted: float  # and that


class Metrics:
    """All metrics of one app. Label children are resolved once, not per token."""

    def __init__(self, engine: Engine, model_name: str) -> None:
        self.registry = CollectorRegistry()
        self._names = ("model_name", "engine")
        self._values = (model_name, "0")
        tokens = _token_bounds(engine.info.max_model_len)

        self._gauge("num_requests_running", "Requests that run.").set_function(lambda: engine.stats().running)
        self._gauge("num_requests_waiting", "Requests that wait.").set_function(lambda: engine.stats().waiting)
        self._gauge("kv_cache_usage_perc", "Share of the K/V cache in use; 1 is all of it.").set_function(
            lambda: engine.stats().kv_usage
        )
        self.prefix_queries = self._counter("prefix_cache_queries", "Prompt tokens looked up in the prefix cache.")
        self.prefix_hits = self._counter("prefix_cache_hits", "Prompt tokens found in the prefix cache.")
        self.preemptions = self._counter("num_preemptions", "Requests preempted.")
        self.prompt_tokens = self._counter("prompt_tokens", "Prompt tokens of requests that began to generate.")
        self.prompt_tokens_cached = self._counter("prompt_tokens_cached", "Of these, taken from the prefix cache.")
        self.generation_tokens = self._counter("generation_tokens", "Tokens generated.")
        self.iteration_tokens = self._histogram(
            "iteration_tokens_total", "Prompt and generated tokens per engine round.", _ITERATION
        )
        self.drafts = self._counter("spec_decode_num_drafts", "Drafts verified.")
        self.draft_tokens = self._counter("spec_decode_num_draft_tokens", "Tokens drafted.")
        self.accepted_tokens = self._counter("spec_decode_num_accepted_tokens", "Drafted tokens accepted.")
        self.drafted_at = self._by_position("draft", "Tokens drafted, by their position.")
        self.accepted_at = self._by_position("accepted", "Drafted tokens accepted, by their position.")
        self.success = self._labelled("request_success", "Requests that ended, by reason.", "finished_reason", _ENDS)
        self.rejections = self._labelled(
            "admission_rejections", "Requests not admitted, by reason.", "reason", _REJECTIONS
        )

        self.ttft = self._histogram("time_to_first_token_seconds", "From arrival to the first token.", _FIRST_TOKEN)
        self.inter_token = self._histogram(
            "inter_token_latency_seconds", "Between a choice's chunks that bring tokens, one or several.", _PER_TOKEN
        )
        self.per_token = self._histogram(
            "request_time_per_output_token_seconds", "A request's decode time per token after the first.", _PER_TOKEN
        )
        self.e2e = self._histogram("e2e_request_latency_seconds", "From arrival to the last token.", _REQUEST)
        self.queue_time = self._histogram("request_queue_time_seconds", "Waiting to be scheduled.", _REQUEST)
        self.prefill_time = self._histogram("request_prefill_time_seconds", "From scheduling to first token.", _REQUEST)
        self.decode_time = self._histogram("request_decode_time_seconds", "From first to last token.", _REQUEST)
        self.request_prompt = self._histogram("request_prompt_tokens", "Prompt tokens per request.", tokens)
        self.request_generation = self._histogram("request_generation_tokens", "Tokens generated per request.", tokens)

        labels = ["method", "handler", "status"]
        self._http = Counter("http_requests", "HTTP requests answered.", labels, registry=self.registry)
        for path in _GENERATING:
            for status in ("2xx", "4xx", "5xx"):
                self._http.labels("POST", path, status)

        self._policies = PolicyFamilies(self.registry, tokens)
        self._policy_children: dict[str, PolicyMetrics] = {}
        self._deciding_seconds = 0.0  # since plans were last decided anew
        self._children(engine.info.default_policy)
        self._engine_state(engine)
        ProcessCollector(registry=self.registry)
        if engine.pid != os.getpid():
            ProcessCollector("knapserve_engine", lambda: engine.pid, registry=self.registry)
        engine.add_listener(self.round)

    def _engine_state(self, engine: Engine) -> None:
        """What rounds cost, what they are priced by, and whether there are any."""
        Gauge("knapserve_loading", "1 while the model loads.", registry=self.registry).set(0)
        phases = Histogram(
            "knapserve_round_seconds", "Seconds of a round.", ["phase"], buckets=ROUND_SECONDS, registry=self.registry
        )
        self._phases = [phases.labels(phase) for phase in ("draft", "verify", "search", "other")]
        error = Gauge(
            "knapserve_profile_error_ratio",
            "Seen over predicted time of passes and searches, by which prices are corrected.",
            ["pass"],
            registry=self.registry,
        )
        self._corrections = dict.fromkeys(("draft", "verify", "search"), 1.0)
        for name in self._corrections:
            error.labels(name).set_function(partial(self._corrections.__getitem__, name))
        labels = ("file", "hardware", "dtype")
        profile = Gauge("knapserve_profile_info", "The latency profile in use.", labels, registry=self.registry)
        file = Path(engine.info.profile_file).name
        profile.labels(file, engine.info.profile_hardware, engine.info.dtype).set(1)
        age = Gauge(
            "knapserve_heartbeat_age_seconds", "Since the engine last showed that it lives.", registry=self.registry
        )
        age.set_function(lambda: engine.stats().heartbeat_age)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"vllm:{name}", text, self._names, registry=self.registry).labels(*self._values)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(f"vllm:{name}", text, self._names, registry=self.registry).labels(*self._values)

    def _histogram(self, name: str, text: str, bounds: Sequence[float]) -> Histogram:
        family = Histogram(f"vllm:{name}", text, self._names, buckets=bounds, registry=self.registry)
        return family.labels(*self._values)

    def _labelled(self, name: str, text: str, label: str, values: Sequence[str]) -> Counter:
        """A counter by `label`; at zero from the start, for a rate misses the step from nothing to one."""
        counter = Counter(f"vllm:{name}", text, (*self._names, label), registry=self.registry)
        for value in values:
            counter.labels(*self._values, value)
        return counter

    def _by_position(self, what: str, text: str) -> list[Counter]:
        positions = [str(i) for i in range(_POSITIONS)]
        family = self._labelled(f"spec_decode_num_{what}_tokens_per_pos", text, "position", positions)
        return [family.labels(*self._values, position) for position in positions]

    def http(self, method: str, path: str, status: int) -> None:
        """Count a response, by kinds that clients cannot add to."""
        handler = path if path in _PATHS else "/v1/models/{model_id}" if path.startswith("/v1/models/") else "other"
        self._http.labels(method if method in _METHODS else "other", handler, f"{status // 100}xx").inc()

    def finished(self, reason: str) -> None:
        self.success.labels(*self._values, reason).inc()

    def rejected(self, reason: str) -> None:
        self.rejections.labels(*self._values, reason).inc()

    def round(self, report: RoundReport) -> None:
        """Listener of the engine: one call per round, on the event loop's thread. A report without rows is of none."""
        if report.batched_tokens == 0:
            return
        corrections = report.draft_correction, report.verify_correction, report.search_correction
        self._corrections["draft"], self._corrections["verify"], self._corrections["search"] = corrections
        self.prefix_queries.inc(report.prefix_queries)
        self.prefix_hits.inc(report.prefix_hits)
        self.preemptions.inc(report.preemptions)
        spent = report.draft_seconds, report.verify_seconds, report.search_seconds, report.other_seconds
        for phase, seconds in zip(self._phases, spent, strict=True):
            phase.observe(seconds)
        emitted = sum(part.emitted for part in report.rounds)
        self.generation_tokens.inc(emitted)
        self.iteration_tokens.observe(report.prompt_tokens + emitted)
        by_policy: defaultdict[str, list[RequestRound]] = defaultdict(list)
        for part in report.rounds:
            by_policy[part.policy].append(part)
        self._drafted([part for part in report.rounds if part.drafted])
        self._deciding_seconds += report.search_seconds  # a search may take many rounds
        decided = next((part.policy for part in report.rounds if part.reselected is not None), None)
        if decided is not None:
            self._children(decided).reselection_seconds.observe(self._deciding_seconds)
            self._deciding_seconds = 0.0
        # A round that also reads prompts is slower than any plan's prediction: it says nothing of the plan.
        seconds = 0.0 if report.prompt_tokens else sum(spent)
        for policy, parts in by_policy.items():
            self._children(policy).count(parts, seconds)

    def _drafted(self, drafting: Sequence[RequestRound]) -> None:
        """Count drafts, whoever's."""
        self.drafts.inc(len(drafting))
        for total, by_position, tokens in (
            (self.draft_tokens, self.drafted_at, [part.drafted for part in drafting]),
            (self.accepted_tokens, self.accepted_at, [part.accepted for part in drafting]),
        ):
            total.inc(sum(tokens))
            for i, position in enumerate(by_position[: max(tokens, default=0)]):
                position.inc(sum(n > i for n in tokens))

    def _children(self, policy: str) -> PolicyMetrics:
        children = self._policy_children.get(policy)
        if children is None:
            children = self._policy_children[policy] = PolicyMetrics(self._policies, policy)
        return children

    def totals(self) -> Totals:
        """What has come by now, of all policies together."""
        found: defaultdict[str, float] = defaultdict(float)
        of_policy: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for sample in (sample for family in self.registry.collect() for sample in family.samples):
            found[sample.name] += sample.value
            of_policy[sample.name][sample.labels.get("policy", "")] = sample.value
        undrafted = of_policy["knapserve_decode_tokens_plain_total"]
        decoded = of_policy["knapserve_decode_tokens_total"]
        return Totals(
            found["vllm:prompt_tokens_total"] - found["vllm:prompt_tokens_cached_total"],
            found["vllm:generation_tokens_total"],
            found["vllm:spec_decode_num_draft_tokens_total"],
            found["vllm:spec_decode_num_accepted_tokens_total"],
            sum(decoded[policy] for policy, tokens in undrafted.items() if tokens),
            sum(undrafted.values()),
        )

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
