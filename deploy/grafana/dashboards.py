"""The Grafana dashboards: `python deploy/grafana/dashboards.py` writes them to dashboards/*.json.

**Service** asks for vLLM's metric names only, so it works on a vLLM server too. **Speculation** is about drafting:
what was promised, what came, and what it cost.
"""

from __future__ import annotations

import json
from pathlib import Path

import panels
from panels import Dashboard, Query, Row, heatmap, lines, mean, or_zero, quantile, quantiles, rate, ratio, stat

DIRECTORY = Path(__file__).parent / "dashboards"

TOKENS_PER_SECOND = "suffix: tokens/s"
TOKENS = "suffix: tokens"
FACTOR = "suffix:×"
GREEN, YELLOW, RED = "green", "yellow", "red"

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

ROUND = "knapserve_round_seconds_sum"
REQUEST_ROUNDS = "knapserve_rounds_total"
DRAFTED, ACCEPTED = "knapserve_draft_tokens_total", "knapserve_accepted_tokens_total"
DRAFTED_AT, ACCEPTED_AT = (f"vllm:spec_decode_num_{name}_tokens_per_pos_total" for name in ("draft", "accepted"))
BY_POLICY = "{{policy}}"

PER_ROUND = ratio(rate("vllm:generation_tokens_total"), rate(REQUEST_ROUNDS, policy=".+"))
BOUND = f"{PER_ROUND} * {ratio(rate(ROUND, phase='verify|other'), rate(ROUND))}"
DECODED, SECONDS = "knapserve_decode_tokens_total", "knapserve_decode_seconds_total"
PROMISED, UNDRAFTED = "knapserve_decode_tokens_promised_total", "knapserve_decode_tokens_plain_total"
MEASURED = ratio(rate(DECODED, by="policy"), rate(SECONDS, by="policy"))
LENGTH = "knapserve_draft_length"
NOTHING = "0|0.0"  # upper bound of the bucket of rounds that drafted nothing
PLAIN_ROUNDS = rate(f"{LENGTH}_bucket", by="policy", le=NOTHING)
DRAFTING_ROUNDS = f"({rate(f'{LENGTH}_count', by='policy')} - {PLAIN_ROUNDS})"
FIRST = "[0-9]"  # positions


def against(expected: str) -> str:
    """Tokens that came over those expected, of all policies chosen for which something was expected."""
    of_these = rate(expected, by="policy")
    return ratio(f"sum({rate(DECODED, by='policy')} and {of_these} > 0)", rate(expected))


SPECULATION = Dashboard(
    "speculation",
    "KnapServe / Speculation",
    "Whether drafting pays: what plans promised, what came, what was skipped, and what deciding cost.",
    [
        Row(
            "Does it pay?",
            [
                stat(
                    "Speed over plain",
                    "Rate that came over what plain decoding would have brought. Below 1: drafting loses.",
                    FACTOR,
                    against(UNDRAFTED),
                    (0.97, YELLOW),
                    (1.05, GREEN),
                    below=RED,
                    decimals=2,
                ),
                stat(
                    "Rate of one request",
                    "Tokens per second of a request while it decodes.",
                    TOKENS_PER_SECOND,
                    ratio(rate(DECODED), rate(SECONDS)),
                    decimals=0,
                ),
                stat(
                    "Promise kept",
                    "Rate that came over rate promised. Near 100 %: plans are chosen by right figures.",
                    "percentunit",
                    against(PROMISED),
                    (0.6, YELLOW),
                    (0.8, GREEN),
                    below=RED,
                ),
                stat(
                    "Acceptance",
                    "Drafted tokens that the model accepted.",
                    "percentunit",
                    ratio(rate(ACCEPTED), rate(DRAFTED)),
                    (0.25, YELLOW),
                    (0.5, GREEN),
                    below=RED,
                ),
                stat(
                    "Tokens per round",
                    "Of one request, the model's own token included, all policies. 1 is plain decoding.",
                    TOKENS,
                    PER_ROUND,
                    decimals=2,
                ),
                stat(
                    "Rounds that drafted",
                    "The others decoded plainly: drafting was not expected to pay, or nothing is known yet.",
                    "percentunit",
                    f"1 - {ratio(rate(f'{LENGTH}_bucket', le=NOTHING), rate(f'{LENGTH}_count'))}",
                ),
            ],
        ),
        Row(
            "Promised and measured",
            [
                lines(
                    "Tokens per second, promised and measured",
                    "TPT of one request, by policy. Far below: the machine is busier than its profile.",
                    TOKENS_PER_SECOND,
                    Query(MEASURED, f"{BY_POLICY} measured"),
                    Query(
                        f"{ratio(rate(PROMISED, by='policy'), rate(SECONDS, by='policy'))} > 0", f"{BY_POLICY} promised"
                    ),
                    width=12,
                ),
                lines(
                    "Rate of a round, median",
                    "Half of the rounds are quicker. A few rounds that bring much may pay for many that bring little.",
                    TOKENS_PER_SECOND,
                    Query(quantile(0.5, "knapserve_tpt_measured"), "measured"),
                    Query(quantile(0.5, "knapserve_tpt_predicted"), "promised"),
                    Query(quantile(0.5, "knapserve_tpt_plain"), "plain decoding instead"),
                    width=12,
                ),
                lines(
                    "Acceptance, promised and measured",
                    "Share of drafted tokens accepted, and share expected when they were drafted, by policy. Measured "
                    "far below promised: traffic has changed.",
                    "percentunit",
                    Query(ratio(rate(ACCEPTED, by="policy"), rate(DRAFTED, by="policy")), f"{BY_POLICY} measured"),
                    Query(
                        ratio(
                            rate("knapserve_draft_tokens_promised_total", by="policy"),
                            rate("knapserve_draft_tokens_predicted_total", by="policy"),
                        ),
                        f"{BY_POLICY} promised",
                    ),
                    most=1,
                    width=12,
                ),
                lines(
                    "Speed over plain",
                    "Over plain decoding as priced for the same rounds; what tokens per round allow at most, for any "
                    "policy; and over the rate of policy none, fair where they do not share rounds.",
                    FACTOR,
                    Query(
                        ratio(rate(DECODED, by="policy"), rate(UNDRAFTED, by="policy")),
                        f"{BY_POLICY} / plain",
                    ),
                    Query(BOUND, "all, at most"),
                    Query(
                        f"({MEASURED}) / on() group_left() "
                        f"({ratio(rate(DECODED, policy='none'), rate(SECONDS, policy='none'))} > 0)",
                        f"{BY_POLICY} / none",
                    ),
                    width=12,
                ),
            ],
        ),
        Row(
            "What drafts",
            [
                lines(
                    "Draft length",
                    "Tokens drafted in rounds that draft, mean. Longer where the sub-network is surer.",
                    TOKENS,
                    Query(
                        ratio(rate(f"{LENGTH}_sum", by="policy"), DRAFTING_ROUNDS),
                        BY_POLICY,
                    ),
                ),
                lines(
                    "Acceptance by position",
                    "Of the tokens drafted at a position (0 is the first), those accepted. Steep: drafts are too long.",
                    "percentunit",
                    Query(
                        ratio(
                            rate(ACCEPTED_AT, by="position", position=FIRST),
                            rate(DRAFTED_AT, by="position", position=FIRST),
                        ),
                        "{{position}}",
                    ),
                    most=1,
                ),
                heatmap(
                    "Acceptance that plans promise",
                    "By rounds. In one line: one plan for all; spread: plans follow context and text.",
                    "percentunit",
                    "knapserve_acceptance_predicted",
                ),
                lines(
                    "Rounds by whether they drafted",
                    "A request's rounds per second. Plain rounds of knapspec: drafting is not expected to pay.",
                    "ops",
                    Query(DRAFTING_ROUNDS, f"{BY_POLICY} drafted"),
                    Query(PLAIN_ROUNDS, f"{BY_POLICY} plain"),
                    stacked="normal",
                ),
                lines(
                    "Skipped sublayers and context length",
                    "Sublayers that drafts skip, mean, by context length up to so many tokens. Longer contexts (right: "
                    "mean) make attention dearer: more of it goes.",
                    "short",
                    Query(mean("knapserve_skipped_sublayers", by="context, kind"), "{{kind}}, up to {{context}}"),
                    Query(mean("knapserve_context_length"), "context", right=TOKENS),
                ),
                heatmap(
                    "Context length",
                    "Where in their context requests are while they decode, by rounds.",
                    TOKENS,
                    "knapserve_context_length",
                ),
            ],
        ),
        Row(
            "What it costs",
            [
                lines(
                    "Where a round's time goes",
                    "Shares. draft is what speculation pays for; search is searching (--knapspec-budget, 2 %) and "
                    "deciding, a few per cent where passes take less than a millisecond.",
                    "percentunit",
                    Query(f"{rate(ROUND, by='phase')} / on() group_left() ({rate(ROUND)} > 0)", "{{phase}}"),
                    stacked="normal",
                    most=1,
                ),
                lines(
                    "Reselections",
                    "Plans decided anew, per second. Many changed: the context or the text keeps changing.",
                    "ops",
                    Query(rate("knapserve_reselections_total", by="outcome"), "{{outcome}}"),
                    stacked="normal",
                ),
                lines(
                    "Cost of a reselection",
                    "Mean seconds of searching and deciding for each; their share of all round time (right).",
                    "s",
                    Query(mean("knapserve_reselection_seconds"), "one"),
                    Query(
                        ratio(rate("knapserve_reselection_seconds_sum"), rate(ROUND)),
                        "share of round time",
                        right="percentunit",
                    ),
                ),
                lines(
                    "Fallbacks to plain decoding",
                    "Requests that stopped drafting, per second, by reason. Harmless; many mean drafts do not fit.",
                    "ops",
                    Query(rate("knapserve_fallback_total", by="policy, reason"), f"{BY_POLICY}: {{{{reason}}}}"),
                ),
                lines(
                    "Profile correction",
                    "Seen over predicted time of passes. 1: the profile is right. Held within 0.4 and 2.5.",
                    FACTOR,
                    Query(panels.selector("knapserve_profile_error_ratio"), "{{pass}} {{instance}}"),
                    least=None,
                ),
                lines(
                    "Sign of life",
                    "Seconds since the engine showed that it lives. Beyond --heartbeat-timeout /health says 503. "
                    "Right: 1 while the model loads.",
                    "s",
                    Query(panels.selector("knapserve_heartbeat_age_seconds"), "{{instance}}"),
                    Query(panels.selector("knapserve_loading"), "loading {{instance}}", right="short"),
                ),
                lines(
                    "Memory",
                    "Resident memory of the engine's process, which holds model and cache, and of the server's.",
                    "bytes",
                    Query(panels.selector("knapserve_engine_process_resident_memory_bytes"), "engine {{instance}}"),
                    Query(panels.selector("process_resident_memory_bytes"), "server {{instance}}"),
                ),
                panels.table(
                    "Latency profile in use",
                    "What plans are priced by. A server on other hardware than its profile's prices them wrongly.",
                    panels.selector("knapserve_profile_info"),
                    "instance",
                    "hardware",
                    "dtype",
                    "file",
                ),
            ],
        ),
    ],
    policies=True,
)

DASHBOARDS = (SERVICE, SPECULATION)


def written(dashboard: Dashboard) -> str:
    return json.dumps(dashboard.json(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for dashboard in DASHBOARDS:
        (DIRECTORY / f"{dashboard.name}.json").write_text(written(dashboard), "utf-8")
