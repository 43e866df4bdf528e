"""Drafting: what was promised, what came, and what it cost."""

from __future__ import annotations

import panels
from panels import (
    FACTOR,
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
    quantile,
    rate,
    ratio,
    stat,
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
                    "Seen over predicted time; 1 is right. Of passes within 0.4 and 2.5, of searches rough.",
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
