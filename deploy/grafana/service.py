"""What clients see and what the server is busy with: vLLM's metric names only, so it works on a vLLM server too."""

from __future__ import annotations

import panels
from panels import (
    GREEN,
    RED,
    TOKENS,
    TOKENS_PER_SECOND,
    YELLOW,
    Dashboard,
    Query,
    Row,
    heatmap,
    lines,
    mean,
    or_zero,
    quantile,
    quantiles,
    rate,
    ratio,
    stat,
)

ENDED = "vllm:request_success_total"
REPLIES, API = "http_requests_total", "/v1/.*|/(de)?tokenize"  # without probes and scrapes
ERROR_SHARE = ratio(f"({or_zero(rate(REPLIES, handler=API, status='5xx'))})", rate(REPLIES, handler=API))
PREFIX_HITS = ratio(rate("vllm:prefix_cache_hits_total"), rate("vllm:prefix_cache_queries_total"))

SERVICE = Dashboard(
    "service",
    "KnapServe / Service",
    "What clients see and what the server is busy with. vLLM's metric names only: works on a vLLM server too.",
    [
        Row(
            "At a glance",
            [
                stat("Running", "Requests in a batch now.", "short", panels.total("vllm:num_requests_running")),
                stat(
                    "Waiting",
                    "Requests that wait for a place in the batch. Should come back to 0.",
                    "short",
                    panels.total("vllm:num_requests_waiting"),
                    (1, YELLOW),
                    (32, RED),
                    below=GREEN,
                ),
                stat(
                    "Output",
                    "Tokens generated per second, all requests together.",
                    TOKENS_PER_SECOND,
                    rate("vllm:generation_tokens_total"),
                ),
                stat(
                    "First token, p95",
                    "19 of 20 requests have their first token within this time.",
                    "s",
                    quantile(0.95, "vllm:time_to_first_token_seconds"),
                    (1, YELLOW),
                    (5, RED),
                    below=GREEN,
                ),
                stat(
                    "Between tokens, p95",
                    "19 of 20 gaps between the chunks of a stream are shorter. 50 ms read as fluent.",
                    "s",
                    quantile(0.95, "vllm:inter_token_latency_seconds"),
                    (0.1, YELLOW),
                    (0.5, RED),
                    below=GREEN,
                ),
                stat(
                    "Errors",
                    "Share of the replies with status 5xx, probes left out. Anything above 0 is worth a look.",
                    "percentunit",
                    ERROR_SHARE,
                    (0.0001, YELLOW),
                    (0.01, RED),
                    below=GREEN,
                ),
            ],
        ),
        Row(
            "Latency",
            [
                lines(
                    "Time to first token",
                    "Arrival to first token: queue and prompt. Rises with the queue and with long prompts.",
                    "s",
                    *quantiles("vllm:time_to_first_token_seconds"),
                ),
                lines(
                    "Inter-token latency",
                    "Gaps between the chunks that a client gets. With drafting a chunk may hold several tokens.",
                    "s",
                    *quantiles("vllm:inter_token_latency_seconds"),
                ),
                lines(
                    "Time per output token",
                    "Decode time of a request over its tokens after the first: what drafting is to lower.",
                    "s",
                    *quantiles("vllm:request_time_per_output_token_seconds"),
                ),
                lines(
                    "Whole request",
                    "Arrival to last token. Depends on how long the answers are.",
                    "s",
                    *quantiles("vllm:e2e_request_latency_seconds"),
                ),
                lines(
                    "Where a request's time goes",
                    "Means, stacked. Queue: add replicas. Prefill: long prompts, few prefix hits. Decode: the model.",
                    "s",
                    Query(mean("vllm:request_queue_time_seconds"), "queue"),
                    Query(mean("vllm:request_prefill_time_seconds"), "prefill"),
                    Query(mean("vllm:request_decode_time_seconds"), "decode"),
                    stacked="normal",
                ),
                heatmap(
                    "Inter-token latency, all of it",
                    "Dark: where most gaps lie. A second band above is prompts of others being read in between.",
                    "s",
                    "vllm:inter_token_latency_seconds",
                ),
            ],
        ),
        Row(
            "Throughput",
            [
                lines(
                    "Tokens",
                    "Generated, and prompt tokens, per second. Cached prompt tokens cost nothing.",
                    TOKENS_PER_SECOND,
                    Query(rate("vllm:generation_tokens_total"), "generated"),
                    Query(rate("vllm:prompt_tokens_total"), "prompt"),
                    Query(rate("vllm:prompt_tokens_cached_total"), "prompt, from the cache"),
                ),
                lines(
                    "Tokens per round",
                    "Prompt and generated tokens in one pass of the engine, mean. Higher is better use of the machine.",
                    TOKENS,
                    Query(mean("vllm:iteration_tokens_total"), "mean"),
                ),
                lines(
                    "Lengths",
                    "Tokens of prompts and answers, median and p95: what kind of traffic this is.",
                    TOKENS,
                    Query(quantile(0.5, "vllm:request_prompt_tokens"), "prompt p50"),
                    Query(quantile(0.95, "vllm:request_prompt_tokens"), "prompt p95"),
                    Query(quantile(0.5, "vllm:request_generation_tokens"), "answer p50"),
                    Query(quantile(0.95, "vllm:request_generation_tokens"), "answer p95"),
                ),
            ],
        ),
        Row(
            "Capacity",
            [
                lines(
                    "Requests",
                    "Running and waiting. Waiting with free K/V cache: raise --max-num-seqs. Without: add replicas.",
                    "short",
                    Query(panels.total("vllm:num_requests_running"), "running"),
                    Query(panels.total("vllm:num_requests_waiting"), "waiting"),
                ),
                lines(
                    "K/V cache in use",
                    "By server. Near 100 % requests wait or are preempted.",
                    "percentunit",
                    Query(f"max by (instance) ({panels.selector('vllm:kv_cache_usage_perc')})", "{{instance}}"),
                    most=1,
                ),
                lines(
                    "Prefix cache hits, preemptions",
                    "Share of looked-up prompt tokens that were cached; preemptions (right, should be 0).",
                    "percentunit",
                    Query(PREFIX_HITS, "hits"),
                    Query(rate("vllm:num_preemptions_total"), "preemptions", right="ops"),
                ),
            ],
        ),
        Row(
            "Ends and refusals",
            [
                lines(
                    "Replies by status",
                    "Of the API. 4xx: a wrong key (401), too large (413), a full queue (429); 5xx: the server's doing.",
                    "reqps",
                    Query(rate(REPLIES, by="status", handler=API), "{{status}}"),
                    stacked="normal",
                ),
                lines(
                    "Requests by how they ended",
                    "stop and length are answers; abort: the client left; error: the engine failed it, perhaps after a "
                    "stream had begun with 200.",
                    "reqps",
                    Query(rate(ENDED, by="finished_reason"), "{{finished_reason}}"),
                    stacked="normal",
                ),
                lines(
                    "Requests refused",
                    "Not admitted, by reason. A full queue (429): add replicas, or raise --max-queued.",
                    "reqps",
                    Query(or_zero(rate("vllm:admission_rejections_total", by="reason"), "reason"), "{{reason}}"),
                    stacked="normal",
                ),
            ],
        ),
    ],
)
