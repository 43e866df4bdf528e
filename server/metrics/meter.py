"""Measure one HTTP request for the metrics and the access log."""

import time
from collections import defaultdict
from typing import Any

from engine.plans import count_variants
from engine.types import RequestTiming, SpeculationStats, TokenEvent
from server.metrics.registry import Metrics


class RequestMeter:
    """Time the events of one HTTP request. `arrival` is a time of `time.perf_counter`."""

    def __init__(self, metrics: Metrics, arrival: float) -> None:
        self._metrics = metrics
        self._arrival = arrival
        self._last: dict[int, float] = {}  # time of each choice's last event
        self._n = 0  # choices per prompt; 0 until they are known
        self._max_tokens: int | None = None
        self._generated: defaultdict[int, list[int]] = defaultdict(list)  # tokens of finished choices, by prompt
        self._reasons: dict[str, None] = {}  # why choices ended, in order
        self.facts: dict[str, Any] = {}  # fields of the access log

    def asked(self, n: int, max_tokens: int | None) -> None:
        """Note the parameters of an admitted request: choices per prompt, and the client's limit of tokens."""
        self._n, self._max_tokens = n, max_tokens

    def event(self, index: int, event: TokenEvent) -> None:
        """Count an event of choice `index`."""
        metrics, now = self._metrics, time.perf_counter()
        last = self._last.get(index)
        self._last[index] = now
        if last is None:
            metrics.observe("time_to_first_token_seconds", now - self._arrival)
            self.facts.setdefault("first_token", round(now - self._arrival, 6))
            self._add("prompt_tokens", event.prompt_tokens)
            self._add("cached_tokens", event.cached_tokens)
            metrics.count("prompt_tokens", event.prompt_tokens)
            metrics.count("prompt_tokens_cached", event.cached_tokens)
            metrics.count("prompt_tokens_by_source", event.cached_tokens, "local_cache_hit")
            computed = event.prompt_tokens - event.cached_tokens
            metrics.count("prompt_tokens_by_source", computed, "local_compute")
        elif event.token_ids:
            metrics.observe("inter_token_latency_seconds", now - last)
        if event.finish_reason is not None:
            self.finished(event.finish_reason.value)
            self._add("completion_tokens", event.completion_tokens)
            if event.speculation is not None:
                self._speculation(event.speculation)
            metrics.observe("e2e_request_latency_seconds", now - self._arrival)
            metrics.observe("request_prompt_tokens", event.prompt_tokens)
            metrics.observe("request_generation_tokens", event.completion_tokens)
            metrics.observe("request_prefill_kv_computed_tokens", event.prompt_tokens - event.cached_tokens)
            if self._n:
                self._parameters(index, event)
            if event.timing is not None:
                self._timing(event.timing, event.completion_tokens)

    def _parameters(self, index: int, event: TokenEvent) -> None:
        """Count what the client asked for: per choice, and per prompt once its last choice has finished."""
        metrics = self._metrics
        metrics.observe("request_params_max_tokens", self._max_tokens or metrics.max_model_len - event.prompt_tokens)
        generated = self._generated[index // self._n]
        generated.append(event.completion_tokens)
        if len(generated) == self._n:
            metrics.observe("request_params_n", self._n)
            metrics.observe("request_max_num_generation_tokens", max(generated))

    def _speculation(self, speculation: SpeculationStats) -> None:
        self._add("rounds", speculation.num_rounds)
        self._add("drafted", speculation.num_draft_tokens)
        self._add("accepted", speculation.num_accepted_draft_tokens)
        self._add("looked_up", speculation.num_lookup_tokens)
        if speculation.plan is not None:
            parts = count_variants(speculation.plan).items()
            self.facts["plan"] = ", ".join(f"{count} {kind} {variant}" for (kind, variant), count in parts)

    def _timing(self, timing: RequestTiming, completion_tokens: int) -> None:
        metrics = self._metrics
        metrics.observe("request_queue_time_seconds", timing.queue)
        metrics.observe("request_prefill_time_seconds", timing.prefill)
        metrics.observe("request_decode_time_seconds", timing.decode)
        metrics.observe("request_inference_time_seconds", timing.prefill + timing.decode)
        metrics.observe("request_num_preemptions", timing.preemptions)
        if completion_tokens > 1:
            metrics.observe("request_time_per_output_token_seconds", timing.decode / (completion_tokens - 1))

    def _add(self, name: str, count: int) -> None:
        self.facts[name] = self.facts.get(name, 0) + count

    def finished(self, reason: str) -> None:
        """Count why a choice ended: its finish reason, `abort` (the client left) or `error`."""
        self._metrics.count("request_success", label=reason)
        self._reasons[reason] = None
        self.facts["finish_reason"] = ",".join(self._reasons)
