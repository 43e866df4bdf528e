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
        self._n = 0  # choices per prompt; 0: unknown
        self._max_tokens: int | None = None
        self._generated: defaultdict[int, list[int]] = defaultdict(list)  # tokens of finished choices, by prompt
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
            metrics.ttft.observe(now - self._arrival)
            self.facts.setdefault("first_token", round(now - self._arrival, 6))
            self._add("prompt_tokens", event.prompt_tokens)
            self._add("cached_tokens", event.cached_tokens)
            metrics.prompt_tokens.inc(event.prompt_tokens)
            metrics.prompt_tokens_cached.inc(event.cached_tokens)
            metrics.prompt_tokens_hit.inc(event.cached_tokens)
            metrics.prompt_tokens_computed.inc(event.prompt_tokens - event.cached_tokens)
        elif event.token_ids:
            metrics.inter_token.observe(now - last)
        if event.finish_reason is not None:
            metrics.finished(event.finish_reason.value)
            self._finished(event.finish_reason.value)
            self._add("completion_tokens", event.completion_tokens)
            if event.speculation is not None:
                self._speculation(event.speculation)
            metrics.e2e.observe(now - self._arrival)
            metrics.request_prompt.observe(event.prompt_tokens)
            metrics.request_generation.observe(event.completion_tokens)
            metrics.request_computed.observe(event.prompt_tokens - event.cached_tokens)
            if self._n:
                self._parameters(index, event)
            if event.timing is not None:
                self._timing(event.timing, event.completion_tokens)

    def _parameters(self, index: int, event: TokenEvent) -> None:
        """Count what the client asked for: per choice, and per prompt once its last choice has finished."""
        metrics = self._metrics
        metrics.params_max_tokens.observe(self._max_tokens or metrics.max_model_len - event.prompt_tokens)
        generated = self._generated[index // self._n]
        generated.append(event.completion_tokens)
        if len(generated) == self._n:
            metrics.params_n.observe(self._n)
            metrics.longest_choice.observe(max(generated))

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
        metrics.queue_time.observe(timing.queue)
        metrics.prefill_time.observe(timing.prefill)
        metrics.decode_time.observe(timing.decode)
        metrics.inference_time.observe(timing.prefill + timing.decode)
        metrics.request_preemptions.observe(timing.preemptions)
        if completion_tokens > 1:
            metrics.per_token.observe(timing.decode / (completion_tokens - 1))

    def unfinished(self, reason: str) -> None:
        """A choice ended without a finish reason: `abort` (the client left) or `error`."""
        self._metrics.finished(reason)
        self._finished(reason)

    def _add(self, name: str, count: int) -> None:
        self.facts[name] = self.facts.get(name, 0) + count

    def _finished(self, reason: str) -> None:
        """Add a finish reason to the log, each reason once."""
        known = self.facts.get("finish_reason")
        if known is None:
            self.facts["finish_reason"] = reason
        elif reason not in known.split(","):
            self.facts["finish_reason"] = f"{known},{reason}"
