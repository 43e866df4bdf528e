"""Each metric of vLLM is served with its type, labels and buckets, or docs/operations.md says why not."""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric

from engine.types import FinishReason, RequestTiming, TokenEvent
from server.config import ServerConfig
from server.metrics.meter import RequestMeter
from server.metrics.registry import Metrics
from tests.support.fake import INFO, FakeEngine
from tests.support.harness import TEXT, TEXT_PATH, asks
from tests.support.scraping import Samples, samples, scrape, vllm

VERSION = "0.33.0"  # of vLLM
LABELS = {"model_name", "engine"}  # of a metric, if the list below has none

# The metrics of vllm/v1/metrics, with their labels beyond LABELS.
FAMILIES = """
gauge num_requests_running
gauge num_requests_waiting
gauge num_requests_waiting_by_reason reason
gauge engine_sleep_state sleep_state
gauge kv_cache_usage_perc
counter prefix_cache_queries
counter prefix_cache_hits
counter num_preemptions
counter prompt_tokens
counter prompt_tokens_by_source source
counter prompt_tokens_cached
counter prompt_tokens_cached_by_source source
counter generation_tokens
counter request_success finished_reason
histogram request_prompt_tokens
histogram request_generation_tokens
histogram iteration_tokens_total
histogram request_max_num_generation_tokens
histogram request_params_n
histogram request_params_max_tokens
histogram time_to_first_token_seconds
histogram inter_token_latency_seconds
histogram request_time_per_output_token_seconds
histogram e2e_request_latency_seconds
histogram request_queue_time_seconds
histogram request_inference_time_seconds
histogram request_prefill_time_seconds
histogram request_decode_time_seconds
histogram request_num_preemptions
histogram request_prefill_kv_computed_tokens
counter spec_decode_num_drafts
counter spec_decode_num_draft_tokens
counter spec_decode_num_accepted_tokens
counter spec_decode_num_accepted_tokens_per_pos position
"""
# Those with other labels. `cache_config_info` has one for each of vLLM's options; these are the ones that exist here.
SPECIAL = {
    "vllm:admission_rejections": ("counter", {"model_name", "reason"}),
    "vllm:cache_config_info": (
        "gauge",
        {"engine", "block_size", "num_gpu_blocks", "kv_cache_size_tokens", "enable_prefix_caching"},
    ),
    "http_requests": ("counter", {"method", "handler", "status"}),
    "http_request_duration_seconds": ("histogram", {"method", "handler"}),
    "http_request_duration_highr_seconds": ("histogram", set()),
    "http_request_size_bytes": ("summary", {"handler"}),
    "http_response_size_bytes": ("summary", {"handler"}),
}
# Those that vLLM exports with certain options, and those of other modules.
OPTIONAL = """
corrupted_requests diffusion_num_canvas_positions diffusion_num_committed_tokens diffusion_num_denoising_steps
estimated_flops_per_gpu estimated_read_bytes_per_gpu estimated_write_bytes_per_gpu external_prefix_cache_hits
external_prefix_cache_queries hf3fs_load_duration_seconds hf3fs_num_failed_load hf3fs_num_failed_save
hf3fs_save_duration_seconds hisparse_cache_hits hisparse_cache_misses hisparse_host_block_idle_before_evict_seconds
hisparse_host_block_lifetime_seconds hisparse_host_block_reuse_gap_seconds hisparse_host_cache_usage_perc
hisparse_host_to_device_bytes hisparse_pending_page_transfers kv_block_idle_before_evict_seconds
kv_block_lifetime_seconds kv_block_reuse_gap_seconds kv_offload_allocation_failure kv_offload_config_info
kv_offload_cpu_allocation_size kv_offload_cpu_cache_read_usage_perc kv_offload_cpu_cache_usage_perc
kv_offload_cpu_cache_write_usage_perc kv_offload_load_bytes kv_offload_load_size kv_offload_load_time
kv_offload_lookup_async_delay_seconds kv_offload_lookup_sync_delay_seconds kv_offload_size kv_offload_store_bytes
kv_offload_store_size kv_offload_store_time kv_offload_stores_skipped kv_offload_tiering_active_cascade_jobs
kv_offload_tiering_active_promotion_jobs kv_offload_tiering_backpressure_blocks_dropped
kv_offload_tiering_backpressure_store_latency_ema kv_offload_tiering_backpressure_stores_dropped
kv_offload_tiering_cascade_job_failures kv_offload_tiering_chunk_hits kv_offload_tiering_chunk_queries
kv_offload_tiering_lookup_async_delay_seconds kv_offload_tiering_lookup_sync_delay_seconds
kv_offload_tiering_primary_read_usage_perc kv_offload_tiering_primary_write_usage_perc
kv_offload_tiering_promotion_allocation_failures kv_offload_tiering_promotion_job_failures
kv_offload_tiering_promotion_latency_seconds kv_offload_tiering_read_bytes kv_offload_tiering_read_time
kv_offload_tiering_write_bytes kv_offload_tiering_write_time kv_offload_total_bytes kv_offload_total_time
lora_requests_info mm_cache_hits mm_cache_queries mooncake_bytes_transferred mooncake_num_descriptors
mooncake_num_failed_recvs mooncake_num_failed_transfers mooncake_num_kv_expired_reqs mooncake_store_operation
mooncake_store_operation_bytes mooncake_store_operation_failed_keys mooncake_store_operation_keys
mooncake_store_operation_time_seconds mooncake_xfer_time_seconds nixl_bytes_transferred nixl_num_descriptors
nixl_num_failed_notifications nixl_num_failed_transfers nixl_num_kv_expired_reqs nixl_num_notifications_after_expiry
nixl_post_time_seconds nixl_xfer_time_seconds num_requests_kv_fetch_by_stage
rl_weight_update_operation_duration_seconds rl_weight_update_operations_in_flight simple_kv_offload_info
simple_kv_offload_load_blocks simple_kv_offload_pending_store_blocks simple_kv_offload_save_outcomes
simple_kv_offload_used_blocks sleep_mode_operation_duration_seconds sleep_mode_operations_in_flight
tool_call_parser_invocations umbp_transfer_bytes umbp_transfer_completed umbp_transfer_failed umbp_transfer_submitted
watermark_requests websocket_connection_duration_seconds websocket_connections websocket_connections_active
"""

_REQUEST = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680]
_STEP = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80]
_FIRST = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
          160, 640, 2560]  # fmt: skip
BUCKETS: dict[str, list[float]] = {
    "vllm:time_to_first_token_seconds": _FIRST,
    "vllm:inter_token_latency_seconds": _STEP,
    "vllm:request_time_per_output_token_seconds": _STEP,
    "vllm:iteration_tokens_total": [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384],
    "vllm:request_params_n": [1, 2, 5, 10, 20],
    "vllm:request_num_preemptions": [1, 2, 3, 4, 5, 10, 20],
    "http_request_duration_seconds": [0.1, 0.5, 1],
    "http_request_duration_highr_seconds": [
        0.01,
        0.025,
        0.05,
        0.075,
        0.1,
        0.25,
        0.5,
        0.75,
        1,
        1.5,
        2,
        2.5,
        3,
        3.5,
        4,
        4.5,
        5,
        7.5,
        10,
        30,
        60,
    ],
}
_TOKENS: list[float] = [1, 2, 5, 10, 20, 50]  # up to the context length, here of 64 tokens


def expected() -> dict[str, tuple[str, set[str]]]:
    """Return type and labels of the metrics that vLLM always exports, by name."""
    lines = [line.split() for line in FAMILIES.strip().splitlines()]
    return {f"vllm:{name}": (kind, LABELS | set(labels)) for kind, name, *labels in lines} | SPECIAL


def excluded() -> list[str]:
    """Return the patterns in the documentation's table of missing metrics."""
    text = Path("docs/operations.md").read_text()
    assert f"vLLM {VERSION}" in text
    table = text.split("| missing | reason |\n|---|---|\n")[1].split("\n\n")[0]
    return [name for row in table.splitlines() for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


@pytest.fixture(scope="module")
def served() -> dict[str, Metric]:
    return {family.name: family for family in Metrics(FakeEngine(), "fake/model").registry.collect()}


def test_each_metric_of_vllm_is_either_served_or_documented_as_missing(served: dict[str, Metric]) -> None:
    names = {*expected(), *(f"vllm:{name}" for name in OPTIONAL.split())}
    missing = {name for name in names if any(fnmatchcase(name, pattern) for pattern in excluded())}
    assert missing == names - served.keys()
    for pattern in excluded():
        assert any(fnmatchcase(name, pattern) for name in missing), pattern


def test_types_and_labels_are_vllms(served: dict[str, Metric]) -> None:
    for name, (kind, labels) in expected().items():
        if name in served:
            assert served[name].type == kind, name
            assert all(sample.labels.keys() - {"le"} == labels for sample in served[name].samples), name


def test_histograms_have_vllms_buckets(served: dict[str, Metric]) -> None:
    for name, family in served.items():
        if family.type == "histogram" and name in expected():
            bounds = {float(sample.labels["le"]) for sample in family.samples if "le" in sample.labels}
            default = _TOKENS if name.endswith("_tokens") else _REQUEST
            assert bounds >= set(BUCKETS.get(name, default)), name


def test_values_of_one_request_are_right() -> None:
    engine = FakeEngine()
    engine.info = replace(INFO, num_blocks=40, block_size=16)
    _, found = scrape(engine, (TEXT_PATH, TEXT | {"prompt": "prompt"}))
    sums = {
        "request_queue_time_seconds": 0.25,
        "request_prefill_time_seconds": 0.5,
        "request_decode_time_seconds": 2.0,
        "request_inference_time_seconds": 0.5 + 2.0,
        "request_time_per_output_token_seconds": 2.0,
        "request_prompt_tokens": 6,
        "request_prefill_kv_computed_tokens": 6 - 2,
        "request_generation_tokens": 2,
    }
    for name, value in sums.items():
        assert (vllm(found, f"{name}_count"), vllm(found, f"{name}_sum")) == (1, value), name
    assert vllm(found, "prompt_tokens_by_source_total", source="local_compute") == 4
    assert vllm(found, "prompt_tokens_by_source_total", source="local_cache_hit") == 2
    assert vllm(found, "prompt_tokens_cached_by_source_total", source="device") == 2 * 2  # in each round of the script
    cache = {"block_size": "16", "num_gpu_blocks": "40", "kv_cache_size_tokens": "640", "enable_prefix_caching": "True"}
    assert found["vllm:cache_config_info", tuple(sorted({"engine": "0", **cache}.items()))] == 1


def test_waiting_requests_count_by_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()
    stats = replace(engine.stats(), waiting=5, deferred=2)
    monkeypatch.setattr(engine, "stats", lambda: stats)
    _, found = scrape(engine)
    assert vllm(found, "num_requests_waiting") == 5
    assert vllm(found, "num_requests_waiting_by_reason", reason="capacity") == 3
    assert vllm(found, "num_requests_waiting_by_reason", reason="deferred") == 2


def test_bytes_of_bodies_count_by_handler() -> None:
    body = TEXT | {"prompt": "prompt"}
    (whole, streamed), found = scrape(FakeEngine(), (TEXT_PATH, body), (TEXT_PATH, body | {"stream": True}))
    labels = (("handler", TEXT_PATH),)
    assert found["http_response_size_bytes_count", labels] == found["http_request_size_bytes_count", labels] == 2
    assert found["http_response_size_bytes_sum", labels] == len(whole.content) + len(streamed.content)
    sent = sum(len(reply.request.content) for reply in (whole, streamed))
    assert found["http_request_size_bytes_sum", labels] == sent


def test_bodies_that_are_refused_unread_count() -> None:
    engine = FakeEngine()
    reply, last = asks(
        engine,
        ("POST", TEXT_PATH, {"json": TEXT | {"prompt": "x" * 1000}}),
        ("GET", "/metrics", {}),
        config=ServerConfig(max_body_size=100),
    )
    assert reply.status_code == 413
    found = samples(last.text)
    assert found["http_request_size_bytes_sum", (("handler", TEXT_PATH),)] == len(reply.request.content)


@pytest.mark.parametrize("length", ["9" * 5000, "-1", "x", "٣"])
def test_lengths_that_no_body_has_do_not_count(length: str) -> None:
    headers = {"content-length": length.encode(), "content-type": b"application/json"}
    reply, last = asks(FakeEngine(), ("GET", "/health", {"headers": headers}), ("GET", "/metrics", {}))
    assert reply.status_code == 200
    assert samples(last.text)["http_request_size_bytes_sum", (("handler", "/health"),)] == 0


def after(n: int, max_tokens: int | None, *generated: int) -> Samples:
    """Return the metrics after a request with prompts of 4 tokens, whose choices have so many tokens."""
    metrics = Metrics(FakeEngine(), "fake/model")
    meter = RequestMeter(metrics, arrival=0.0)
    meter.asked(n, max_tokens)
    for index, tokens in enumerate(generated):
        timing = RequestTiming(0.0, 0.0, 0.0, preemptions=2)
        meter.event(index, TokenEvent("a", "", (1,), FinishReason.STOP, 4, tokens, timing=timing))
    return samples(metrics.exposition().decode())


def test_parameters_count_by_prompt_and_limits_by_choice() -> None:
    found = after(2, 10, 3, 7, 5, 1)  # two prompts
    assert (vllm(found, "request_params_n_count"), vllm(found, "request_params_n_sum")) == (2, 2 + 2)
    assert vllm(found, "request_max_num_generation_tokens_sum") == 7 + 5
    assert vllm(found, "request_params_max_tokens_sum") == 4 * 10
    assert vllm(found, "request_num_preemptions_sum") == 4 * 2
    found = after(2, None, 3)  # the other choice is still running
    assert vllm(found, "request_params_n_count") == vllm(found, "request_max_num_generation_tokens_count") == 0
    assert vllm(found, "request_params_max_tokens_sum") == INFO.max_model_len - 4
