"""Prometheus metrics, under vLLM's names where it has one.

Two sources feed them: the engine's `RoundReport`s (what rounds cost and what drafting did) and the events of each HTTP
request (`server.meter`: what clients saw). Every app has a registry of its own. Prompt tokens and latencies count per
choice, each being a request to the engine, as in vLLM.
"""

from __future__ import annotations

import os
from collections import Counter as Tally
from collections.abc import Sequence
from functools import partial
from operator import add, attrgetter
from pathlib import Path
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector, generate_latest

from engine.seam import Engine
from engine.types import RequestRound, RoundReport
from server.instruments import Counter, CounterFamily, Histogram, HistogramFamily
from server.policy_metrics import ROUND_SECONDS, Parts, PolicyFamilies, PolicyMetrics

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
_HELD_ROUNDS = 64  # that are counted together: half a millisecond for sixteen requests

_figures = attrgetter("prompt_tokens", "prefix_queries", "prefix_hits", "preemptions", "draft_seconds",
                      "verify_seconds", "search_seconds", "other_seconds")  # fmt: skip


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
        positions = [str(i) for i in range(_POSITIONS)]
        by_position = self._labelled(
            "spec_decode_num_accepted_tokens_per_pos",
            "Drafted tokens accepted, by their position.",
            "position",
            positions,
        )
        self.accepted_at = [by_position.labels(*self._values, position) for position in positions]
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

        by_position = self._labelled(
            "spec_decode_num_draft_tokens_per_pos", "Tokens drafted, by their position.", "position", positions
        )
        self.drafted_at = [by_position.labels(*self._values, position) for position in positions]
        self._http = CounterFamily(
            self.registry, "http_requests", "HTTP requests answered.", ["method", "handler", "status"]
        )
        for path in _GENERATING:
            for status in ("2xx", "4xx", "5xx"):
                self._http.labels("POST", path, status)

        self._policies = PolicyFamilies(self.registry, tokens)
        self._policy_children: dict[str, PolicyMetrics] = {}
        self._deciding_seconds = 0.0  # since plans were last decided anew
        self._held: list[tuple[tuple[float, ...], tuple[RequestRound, ...]]] = []  # rounds not yet counted
        self._children(engine.info.default_policy)
        self._engine_state(engine)
        ProcessCollector(registry=self.registry)
        if engine.pid != os.getpid():
            ProcessCollector("knapserve_engine", lambda: engine.pid, registry=self.registry)
        engine.add_listener(self.round)

    def _engine_state(self, engine: Engine) -> None:
        """What rounds cost, what they are priced by, and whether there are any."""
        Gauge("knapserve_loading", "1 while the model loads.", registry=self.registry).set(0)
        phases = HistogramFamily(
            self.registry, "knapserve_round_seconds", "Seconds of a round.", ["phase"], ROUND_SECONDS
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
        return CounterFamily(self.registry, f"vllm:{name}", text, self._names).labels(*self._values)

    def _histogram(self, name: str, text: str, bounds: Sequence[float]) -> Histogram:
        return HistogramFamily(self.registry, f"vllm:{name}", text, self._names, bounds).labels(*self._values)

    def _labelled(self, name: str, text: str, label: str, values: Sequence[str]) -> CounterFamily:
        """A counter by `label`; at zero from the start, for a rate misses the step from nothing to one."""
        counter = CounterFamily(self.registry, f"vllm:{name}", text, (*self._names, label))
        for value in values:
            counter.labels(*self._values, value)
        return counter

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
        self._held.append((_figures(report), report.rounds))
        if len(self._held) >= _HELD_ROUNDS:
            self._count()

    def _count(self) -> None:
        """Count the rounds held. Together they cost a third of what each costs on its own."""
        held, self._held = self._held, []
        if not held:
            return
        prompts, queries, hits, preemptions, *phases = zip(*(figures for figures, _ in held), strict=True)
        for phase, spent in zip(self._phases, phases, strict=True):
            phase.observe_all(spent)
        self.prefix_queries.inc(sum(queries))
        self.prefix_hits.inc(sum(hits))
        self.preemptions.inc(sum(preemptions))
        emitted = [sum([part.emitted for part in parts]) for _, parts in held]
        self.generation_tokens.inc(sum(emitted))
        self.iteration_tokens.observe_all(list(map(add, prompts, emitted)))
        by_policy: dict[str, Parts] = {}
        for (prompt_tokens, _, _, _, draft, verify, search, other), parts in held:
            total = draft + verify + search + other
            # A round that also reads prompts is slower than any plan's prediction: it says nothing of the plan.
            seconds = None if prompt_tokens or total <= 0 else total
            self._deciding_seconds += search  # a search may take many rounds
            for policy in {part.policy for part in parts}:
                of_policy = [(part, seconds) for part in parts if part.policy == policy]
                by_policy.setdefault(policy, []).extend(of_policy)
            decided = [part for part in parts if part.reselected is not None]
            if decided:
                self._children(decided[0].policy).reselection_seconds.observe(self._deciding_seconds)
                self._deciding_seconds = 0.0
        for policy, of_policy in by_policy.items():
            drafting = [part for part, _ in of_policy if part.drafted]
            if drafting:
                self._drafted(drafting)
            self._children(policy).count(of_policy)

    def _drafted(self, drafting: list[RequestRound]) -> None:
        """Count drafts, whoever's."""
        self.drafts.inc(len(drafting))
        for drafted, times in Tally([part.drafted for part in drafting]).items():
            self.draft_tokens.inc(drafted * times)
            for position in self.drafted_at[:drafted]:
                position.inc(times)
        for accepted, times in Tally([part.accepted for part in drafting]).items():
            self.accepted_tokens.inc(accepted * times)
            for position in self.accepted_at[:accepted]:
                position.inc(times)

    def _children(self, policy: str) -> PolicyMetrics:
        children = self._policy_children.get(policy)
        if children is None:
            children = self._policy_children[policy] = PolicyMetrics(self._policies, policy)
        return children

    def totals(self) -> Totals:
        """What has come by now, of all policies together."""
        self._count()
        priced = [children for children in self._policy_children.values() if children.undrafted.value]
        return Totals(
            self.prompt_tokens.value - self.prompt_tokens_cached.value,
            self.generation_tokens.value,
            self.draft_tokens.value,
            self.accepted_tokens.value,
            sum(children.tokens.value for children in priced),
            sum(children.undrafted.value for children in priced),
        )

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        self._count()
        return generate_latest(self.registry)
