"""Prometheus metrics, under vLLM's names where it has one.

Two sources feed them: the engine's `RoundReport`s (what rounds cost and what drafting did) and the events of each HTTP
request (`RequestMeter`: what clients saw). Every app has a registry of its own. Prompt tokens and latencies count per
choice, each being a request to the engine, as in vLLM.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Sequence
from operator import add, attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector, generate_latest

from engine.seam import Engine
from engine.types import RequestRound, RequestTiming, RoundReport, TokenEvent
from server.instruments import Counter, CounterFamily, Histogram, HistogramFamily

_FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
                80.0, 160.0, 640.0, 2560.0)  # fmt: skip
_PER_TOKEN = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75,
              1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)  # fmt: skip
_REQUEST = (0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0,
            240.0, 480.0, 960.0, 1920.0, 7680.0)  # fmt: skip
_ROUND = (0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_ITERATION = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
_RATE = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 2000, 5000,
         10000, 20000)  # fmt: skip
_SHARE = tuple(tenth / 10 for tenth in range(1, 11))
_POSITIONS = 32
_CONTEXTS = (512, 2048, 8192, 32768)  # upper bounds of ranges of the context length that are told apart in a label
_ENDS = ("stop", "length", "abort", "error")
_REJECTIONS = ("queue_full", "draining", "unavailable", "invalid")
_PATHS = ("/", "/v1/chat/completions", "/v1/completions", "/v1/models", "/tokenize", "/detokenize", "/health", "/live",
          "/metrics", "/version")  # fmt: skip
_METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH")
_GENERATING = _PATHS[1:3]
_OUTCOMES = ("changed", "kept", "plain")
_HELD_ROUNDS = 64  # that are counted together: half a millisecond for sixteen requests
_DRAFT = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
_SUBLAYERS = (0, 1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80)


_Parts = list[tuple[RequestRound, float | None]]  # requests' rounds, and what each took where that says something
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

        self._policies = _PolicyMetrics(self.registry, tokens)
        self._policy_children: dict[str, _PolicyChildren] = {}
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
        phases = HistogramFamily(self.registry, "knapserve_round_seconds", "Seconds of a round.", ["phase"], _ROUND)
        self._phases = [phases.labels(phase) for phase in ("draft", "verify", "search", "other")]
        error = Gauge(
            "knapserve_profile_error_ratio",
            "Seen over predicted time of passes, by which prices are corrected.",
            ["pass"],
            registry=self.registry,
        )
        self._draft_correction = self._verify_correction = 1.0
        error.labels("draft").set_function(lambda: self._draft_correction)
        error.labels("verify").set_function(lambda: self._verify_correction)
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
        self._draft_correction, self._verify_correction = report.draft_correction, report.verify_correction
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
        by_policy: dict[str, _Parts] = {}
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

    def _children(self, policy: str) -> _PolicyChildren:
        children = self._policy_children.get(policy)
        if children is None:
            children = self._policy_children[policy] = _PolicyChildren(self._policies, policy)
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


class _PolicyMetrics:
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
            _ROUND,
        )
        self.fallbacks = counter("fallback", "Requests that went over to plain decoding.", "reason")


class _PolicyChildren:
    """The metrics of one policy."""

    def __init__(self, families: _PolicyMetrics, policy: str) -> None:
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

    def count(self, parts: _Parts) -> None:
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


class RequestMeter:
    """Times one HTTP request as its client sees it. `arrival` is by `time.perf_counter`."""

    def __init__(self, metrics: Metrics, arrival: float) -> None:
        self._metrics = metrics
        self._arrival = arrival
        self._last: dict[int, float] = {}  # time of each choice's last event
        self.facts: dict[str, Any] = {}  # for the log

    def event(self, index: int, event: TokenEvent) -> None:
        metrics, now = self._metrics, time.perf_counter()
        last = self._last.get(index)
        self._last[index] = now
        if last is None:
            metrics.ttft.observe(now - self._arrival)
            self.facts.setdefault("first_token", round(now - self._arrival, 6))
            self._add("prompt_tokens", event.prompt_tokens)
            self._add("cached_tokens", event.cached_tokens)
            metrics.prompt_tokens.inc(event.prompt_tokens)
            metrics.prompt_tokens_cached.inc(event.cached_tokens)
        elif event.token_ids:
            metrics.inter_token.observe(now - last)
        if event.finish_reason is not None:
            metrics.finished(event.finish_reason.value)
            self._finished(event.finish_reason.value)
            self._add("completion_tokens", event.completion_tokens)
            if event.speculation is not None:
                self._add("rounds", event.speculation.num_rounds)
            metrics.e2e.observe(now - self._arrival)
            metrics.request_prompt.observe(event.prompt_tokens)
            metrics.request_generation.observe(event.completion_tokens)
            if event.timing is not None:
                self._timing(event.timing, event.completion_tokens)

    def _timing(self, timing: RequestTiming, completion_tokens: int) -> None:
        metrics = self._metrics
        metrics.queue_time.observe(timing.queue)
        metrics.prefill_time.observe(timing.prefill)
        metrics.decode_time.observe(timing.decode)
        if completion_tokens > 1:
            metrics.per_token.observe(timing.decode / (completion_tokens - 1))

    def unfinished(self, reason: str) -> None:
        """A choice ended without a finish reason: `abort` (the client left) or `error`."""
        self._metrics.finished(reason)
        self._finished(reason)

    def _add(self, name: str, count: int) -> None:
        self.facts[name] = self.facts.get(name, 0) + count

    def _finished(self, reason: str) -> None:
        """Reasons of all choices, each once."""
        known = self.facts.get("finish_reason")
        if known is None:
            self.facts["finish_reason"] = reason
        elif reason not in known.split(","):
            self.facts["finish_reason"] = f"{known},{reason}"
