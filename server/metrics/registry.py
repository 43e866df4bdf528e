"""Prometheus metrics, with vLLM's names where vLLM has the metric.

They have two sources: the engine's `RoundReport`s, and the events of HTTP requests (`metrics.meter`). Each app has its
own registry. As in vLLM, prompt tokens and latencies count per choice, as each choice is an engine request.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    Summary,
    disable_created_metrics,
    generate_latest,
)

from engine.api import Engine
from engine.types import RequestRound, RoundReport
from server.config import GENERATING
from server.metrics.policy_metrics import ROUND_SECONDS, PolicyMetrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
                80.0, 160.0, 640.0, 2560.0)  # fmt: skip
_PER_TOKEN = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75,
              1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)  # fmt: skip
_REQUEST = (0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0,
            240.0, 480.0, 960.0, 1920.0, 7680.0)  # fmt: skip
_REPLY = (0.1, 0.5, 1.0)
_REPLY_FINE = (0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 7.5, 10.0,
               30.0, 60.0)  # fmt: skip
_ITERATION = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
_CHOICES = (1, 2, 5, 10, 20)
_PREEMPTIONS = (1, 2, 3, 4, 5, 10, 20)
_UP_TO_CONTEXT = ()  # stands for the buckets of `_token_bounds`
_POSITIONS = tuple(map(str, range(32)))
_REJECTIONS = ("queue_full", "draining", "unavailable", "invalid")

# vLLM's metrics: their names after "vllm:", and their help texts.
_MODEL = ("model_name", "engine")  # labels that all of them have
_COUNTERS = {
    "prefix_cache_queries": "Prompt tokens looked up in the prefix cache.",
    "prefix_cache_hits": "Prompt tokens found in the prefix cache.",
    "num_preemptions": "Requests preempted.",
    "prompt_tokens": "Prompt tokens of requests that started to generate.",
    "prompt_tokens_cached": "Prompt tokens taken from the prefix cache.",
    "generation_tokens": "Tokens generated.",
    "spec_decode_num_drafts": "Drafts verified.",
    "spec_decode_num_draft_tokens": "Tokens drafted.",
    "spec_decode_num_accepted_tokens": "Drafted tokens accepted.",
}
_BY_SOURCE = "Prompt tokens of requests that started to generate, computed or taken from the prefix cache."
_BY_TIER = "Prompt tokens found in the prefix cache, by the memory that holds it."
_DRAFTED_AT = "Tokens drafted, by position in the draft."
_ACCEPTED_AT = "Drafted tokens accepted, by position in the draft."
_LABELLED_COUNTERS = {  # help texts, a further label, and its values
    "prompt_tokens_by_source": (_BY_SOURCE, "source", ("local_compute", "local_cache_hit")),
    "prompt_tokens_cached_by_source": (_BY_TIER, "source", ("device",)),
    "spec_decode_num_draft_tokens_per_pos": (_DRAFTED_AT, "position", _POSITIONS),
    "spec_decode_num_accepted_tokens_per_pos": (_ACCEPTED_AT, "position", _POSITIONS),
    "request_success": ("Finished requests, by reason.", "finished_reason", ("stop", "length", "abort", "error")),
}
_HISTOGRAMS: dict[str, tuple[str, Sequence[float]]] = {
    "iteration_tokens_total": ("Prompt and generated tokens per engine round.", _ITERATION),
    "time_to_first_token_seconds": ("Seconds from arrival to the first token.", _FIRST_TOKEN),
    "inter_token_latency_seconds": ("Seconds between chunks of a choice with tokens.", _PER_TOKEN),
    "request_time_per_output_token_seconds": ("Decode seconds of a request per token after the first.", _PER_TOKEN),
    "e2e_request_latency_seconds": ("Seconds from arrival to the last token.", _REQUEST),
    "request_queue_time_seconds": ("Seconds until a request is scheduled.", _REQUEST),
    "request_prefill_time_seconds": ("Seconds from scheduling to the first token.", _REQUEST),
    "request_decode_time_seconds": ("Seconds from the first to the last token.", _REQUEST),
    "request_inference_time_seconds": ("Seconds from scheduling to the last token.", _REQUEST),
    "request_prompt_tokens": ("Prompt tokens per request.", _UP_TO_CONTEXT),
    "request_generation_tokens": ("Tokens generated per request.", _UP_TO_CONTEXT),
    "request_prefill_kv_computed_tokens": ("Prompt tokens per request that were not cached.", _UP_TO_CONTEXT),
    "request_num_preemptions": ("Preemptions per request.", _PREEMPTIONS),
    "request_max_num_generation_tokens": ("Tokens generated in the longest choice of a prompt.", _UP_TO_CONTEXT),
    "request_params_n": ("Choices asked for per prompt.", _CHOICES),
    "request_params_max_tokens": ("Limit of generated tokens, the client's or the context's.", _UP_TO_CONTEXT),
}

_METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH")


def loading_gauge(registry: CollectorRegistry) -> Gauge:
    return Gauge("knapserve_loading", "1 while the model loads.", registry=registry)


def _token_bounds(limit: int) -> list[int]:
    """Return buckets 1, 2, 5, 10, … up to `limit`, the context length in tokens."""
    bounds = [digit * 10**power for power in range(12) for digit in (1, 2, 5)]
    return [bound for bound in bounds if bound < limit] + [limit]


@dataclass(slots=True)
class Exchange:
    """A request and its reply, over HTTP."""

    method: str
    path: str
    status: int = 0  # 0: the reply has not started
    seconds: float = 0.0  # time from the request's head to the end of the reply
    received: int = 0  # bytes of the request's body
    sent: int = 0  # bytes of the reply's body


class Metrics:
    """All metrics of one app."""

    def __init__(self, engine: Engine, model_name: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # one more series for each; for the whole process
        self.registry = CollectorRegistry()
        self._model = (model_name, "0")  # values of the labels `_MODEL`
        self.max_model_len = engine.info.max_model_len
        self.handlers: Sequence[tuple[re.Pattern[str], str]] = ()  # paths of the endpoints, and their names
        tokens = _token_bounds(self.max_model_len)
        # All series exist from the start: a rate misses the step from an absent series to one.
        self._counters: dict[tuple[str, str], Counter] = {}
        for name, text in _COUNTERS.items():
            self._counters[name, ""] = self._vllm(Counter, name, text).labels(*self._model)
        for name, (text, label, values) in _LABELLED_COUNTERS.items():
            family = self._vllm(Counter, name, text, label)
            self._counters |= {(name, value): family.labels(*self._model, value) for value in values}
        self._histograms: dict[str, Histogram] = {}
        for name, (text, bounds) in _HISTOGRAMS.items():
            family = self._vllm(Histogram, name, text, buckets=bounds or tokens)
            self._histograms[name] = family.labels(*self._model)
        labels = ["model_name", "reason"]
        text = "Rejected requests, by reason."
        self._rejections = Counter("vllm:admission_rejections", text, labels, registry=self.registry)
        for reason in _REJECTIONS:
            self._rejections.labels(model_name, reason)
        self._create_http_metrics()
        self._policies = PolicyMetrics(self.registry, tokens)
        self._policies.create(engine.info.default_policy)
        self._last = RoundReport()
        self._search_seconds = 0.0  # time of searches since the last decision on a plan
        self._create_gauges(engine)
        self._create_engine_metrics(engine)
        ProcessCollector(registry=self.registry)
        if engine.pid != os.getpid():
            ProcessCollector("knapserve_engine", lambda: engine.pid, registry=self.registry)
        engine.add_listener(self.round)

    def _vllm(self, kind: Any, name: str, text: str, *labels: str, **options: Any) -> Any:
        """Create a metric of vLLM, with further labels."""
        return kind(f"vllm:{name}", text, (*_MODEL, *labels), registry=self.registry, **options)

    def _gauge(self, name: str, text: str, read: Callable[[], float], **labels: object) -> None:
        """Create a gauge of one series, whose value is read with each scrape."""
        gauge = Gauge(name, text, labels, registry=self.registry)
        (gauge.labels(**labels) if labels else gauge).set_function(read)

    def _create_gauges(self, engine: Engine) -> None:
        """Create the gauges of the engine's statistics."""
        model, stats = dict(zip(_MODEL, self._model, strict=True)), engine.stats
        self._gauge("vllm:num_requests_running", "Running requests.", lambda: stats().running, **model)
        self._gauge("vllm:num_requests_waiting", "Waiting requests.", lambda: stats().waiting, **model)
        text = "Waiting requests: for room, or for their grammar or a prefix that another request is reading."
        reasons = self._vllm(Gauge, "num_requests_waiting_by_reason", text, "reason")
        reasons.labels(*self._model, "capacity").set_function(lambda: stats().waiting - stats().deferred)
        reasons.labels(*self._model, "deferred").set_function(lambda: stats().deferred)
        text = "Share of the K/V cache in use, 0 to 1."
        self._gauge("vllm:kv_cache_usage_perc", text, lambda: stats().kv_usage, **model)
        text = "Seconds since the engine's last heartbeat."
        self._gauge("knapserve_heartbeat_age_seconds", text, lambda: stats().heartbeat_age)
        text = "Restarts of the engine after failures."
        self._gauge("knapserve_engine_restarts", text, lambda: stats().restarts)

    def _create_http_metrics(self) -> None:
        registry, labels = self.registry, ["method", "handler", "status"]
        text = "HTTP requests, by method, handler and status class."
        self._http = Counter("http_requests", text, labels, registry=registry)
        name, text = "http_request_duration_seconds", "Seconds from a request's head to the end of its reply"
        by_handler = f"{text}, by method and handler."
        self._http_seconds = Histogram(name, by_handler, labels[:2], buckets=_REPLY, registry=registry)
        name = "http_request_duration_highr_seconds"
        self._all_http_seconds = Histogram(name, f"{text}.", buckets=_REPLY_FINE, registry=registry)
        text = "Bytes of request bodies, by handler."
        self._received = Summary("http_request_size_bytes", text, ["handler"], registry=registry)
        text = "Bytes of reply bodies, by handler."
        self._sent = Summary("http_response_size_bytes", text, ["handler"], registry=registry)
        for path in GENERATING:
            for status in ("2xx", "4xx", "5xx"):
                self._http.labels("POST", path, status)
            self._http_seconds.labels("POST", path)
            self._received.labels(path)
            self._sent.labels(path)

    def _create_engine_metrics(self, engine: Engine) -> None:
        registry = self.registry
        loading_gauge(registry).set(0)
        name, text = "knapserve_round_seconds", "Seconds of a round, by phase."
        phases = Histogram(name, text, ["phase"], buckets=ROUND_SECONDS, registry=registry)
        self._phases = [phases.labels(phase) for phase in ("draft", "verify", "search", "other")]
        text = "Measured over predicted seconds of passes and searches, which corrects the profile."
        error = Gauge("knapserve_profile_error_ratio", text, ["pass"], registry=registry)
        error.labels("draft").set_function(lambda: self._last.draft_correction)
        error.labels("verify").set_function(lambda: self._last.verify_correction)
        error.labels("search").set_function(lambda: self._last.search_correction)
        info = engine.info
        profile = {"file": Path(info.profile_file).name, "hardware": info.profile_hardware, "dtype": info.dtype}
        self._gauge("knapserve_profile_info", "The latency profile in use.", lambda: 1, **profile)
        cache = {
            "block_size": info.block_size,
            "num_gpu_blocks": info.num_blocks,
            "kv_cache_size_tokens": info.num_blocks * info.block_size,
            "enable_prefix_caching": True,
            "engine": self._model[1],
        }
        text = "The K/V cache: its blocks, of the GPU or of main memory, and tokens per block."
        self._gauge("vllm:cache_config_info", text, lambda: 1, **cache)

    def count(self, name: str, amount: float = 1, label: str = "") -> None:
        """Add to one of vLLM's counters, to the series of a value of its label if it has one."""
        self._counters[name, label].inc(amount)

    def observe(self, name: str, value: float) -> None:
        """Add a value to one of vLLM's histograms."""
        self._histograms[name].observe(value)

    def http(self, exchange: Exchange) -> None:
        """Count a reply. Clients cannot add label values: unknown methods and paths count as "other"."""
        handler = next((name for path, name in self.handlers if path.match(exchange.path)), "other")
        method = exchange.method if exchange.method in _METHODS else "other"
        self._http.labels(method, handler, f"{exchange.status // 100}xx").inc()
        self._http_seconds.labels(method, handler).observe(exchange.seconds)
        self._all_http_seconds.observe(exchange.seconds)
        self._received.labels(handler).observe(exchange.received)
        self._sent.labels(handler).observe(exchange.sent)

    def rejected(self, reason: str) -> None:
        self._rejections.labels(self._model[0], reason).inc()

    def round(self, report: RoundReport) -> None:
        """Count a round, on the event loop's thread. A report without tokens is no round."""
        if report.batched_tokens == 0:
            return
        self._last = report
        self.count("prefix_cache_queries", report.prefix_queries)
        self.count("prefix_cache_hits", report.prefix_hits)
        self.count("prompt_tokens_cached_by_source", report.prefix_hits, "device")
        self.count("num_preemptions", report.preemptions)
        phases = report.draft_seconds, report.verify_seconds, report.search_seconds, report.other_seconds
        for phase, seconds in zip(self._phases, phases, strict=True):
            phase.observe(seconds)
        emitted = sum(part.emitted for part in report.rounds)
        self.count("generation_tokens", emitted)
        self.observe("iteration_tokens_total", report.prompt_tokens + emitted)
        by_policy: defaultdict[str, list[RequestRound]] = defaultdict(list)
        for part in report.rounds:
            by_policy[part.policy].append(part)
        self._count_drafts([part for part in report.rounds if part.drafted])
        self._search_seconds += report.search_seconds  # a search may take many rounds
        decided = next((part.policy for part in report.rounds if part.reselected is not None), None)
        if decided is not None:
            self._policies.decided(decided, self._search_seconds)
            self._search_seconds = 0.0
        # A round with prompt tokens takes longer than its plan predicts, so it does not measure the plan.
        seconds = 0.0 if report.prompt_tokens else sum(phases)
        for policy, parts in by_policy.items():
            self._policies.count(policy, parts, seconds)

    def _count_drafts(self, drafting: Sequence[RequestRound]) -> None:
        self.count("spec_decode_num_drafts", len(drafting))
        for name, tokens in (
            ("spec_decode_num_draft_tokens", [part.drafted for part in drafting]),
            ("spec_decode_num_accepted_tokens", [part.accepted for part in drafting]),
        ):
            self.count(name, sum(tokens))
            for i, position in enumerate(_POSITIONS[: max(tokens, default=0)]):
                self.count(f"{name}_per_pos", sum(n > i for n in tokens), position)

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
