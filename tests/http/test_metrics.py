"""Metrics agree with the replies that clients received."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from engine.errors import EngineDeadError, EngineDrainingError
from engine.types import GenerateRequest, RequestRound, RoundReport, TokenEvent
from server.config import ServerConfig
from server.edge.errors import unavailable
from server.metrics.registry import Metrics
from tests.support.fake import FakeEngine
from tests.support.harness import CHAT, CHAT_PATH, TEXT, TEXT_PATH, ask, asks
from tests.support.scraping import Samples, samples, scrape, vllm


def test_counters_equal_the_usage_of_replies() -> None:
    engine = FakeEngine()
    replies, found = scrape(
        engine, (CHAT_PATH, CHAT), (TEXT_PATH, TEXT | {"n": 3}), (TEXT_PATH, TEXT | {"stream": True, "max_tokens": 1})
    )
    usages = [reply.json()["usage"] for reply in replies[:2]]
    streamed = 1
    generated = sum(usage["completion_tokens"] for usage in usages) + streamed
    assert vllm(found, "generation_tokens_total") == generated == 9
    assert vllm(found, "prompt_tokens_total") == 5 + 3 * 2 + 2
    assert vllm(found, "prompt_tokens_cached_total") == 5 * 2
    assert vllm(found, "request_success_total", finished_reason="stop") == 4
    assert vllm(found, "request_success_total", finished_reason="length") == 1
    for histogram in (
        "time_to_first_token_seconds",
        "e2e_request_latency_seconds",
        "request_queue_time_seconds",
        "request_prefill_time_seconds",
        "request_decode_time_seconds",
        "request_prompt_tokens",
        "request_generation_tokens",
    ):
        assert vllm(found, f"{histogram}_count") == 5, histogram
    assert vllm(found, "request_generation_tokens_sum") == generated
    assert vllm(found, "request_queue_time_seconds_sum") == 5 * 0.25
    assert vllm(found, "request_time_per_output_token_seconds_count") == 4  # one had no second token
    assert vllm(found, "request_time_per_output_token_seconds_sum") == 4 * 2.0
    assert vllm(found, "inter_token_latency_seconds_count") == generated - 5
    assert vllm(found, "iteration_tokens_total_sum") == generated


def test_drafting_is_counted_by_policy() -> None:
    _, found = scrape(FakeEngine(), (CHAT_PATH, CHAT))
    assert vllm(found, "spec_decode_num_drafts_total") == 2
    assert vllm(found, "spec_decode_num_draft_tokens_total") == 6
    assert vllm(found, "spec_decode_num_accepted_tokens_total") == 2
    assert vllm(found, "prefix_cache_queries_total") == 16
    assert vllm(found, "prefix_cache_hits_total") == 4
    policy = ("policy", "knapspec")
    expected: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {
        ("knapserve_rounds_total", (policy,)): 2,
        ("knapserve_tpt_predicted_sum", (policy,)): 120,
        ("knapserve_tpt_measured_sum", (policy,)): 4,  # one token in half a second, twice
        ("knapserve_decode_tokens_total", (policy,)): 2,
        ("knapserve_decode_seconds_total", (policy,)): 1.0,
        ("knapserve_decode_tokens_promised_total", (policy,)): 60,
        ("knapserve_acceptance_predicted_sum", (policy,)): 1.5,
        ("knapserve_draft_tokens_predicted_total", (policy,)): 6,
        ("knapserve_draft_tokens_promised_total", (policy,)): 4.5,
        ("knapserve_draft_length_sum", (policy,)): 6,
        ("knapserve_context_length_sum", (policy,)): 18,
        ("knapserve_skipped_sublayers_sum", (("context", "512"), ("kind", "attention"), policy)): 10,
        ("knapserve_skipped_sublayers_sum", (("context", "512"), ("kind", "mlp"), policy)): 8,
        ("knapserve_skipped_sublayers_sum", (("context", "2048"), ("kind", "mlp"), policy)): 0,
        ("knapserve_draft_sublayers_total", (("kind", "attention"), policy, ("variant", "low-bit"))): 6,
        ("knapserve_draft_sublayers_total", (("kind", "attention"), policy, ("variant", "window"))): 6,
        ("knapserve_draft_sublayers_total", (("kind", "mlp"), policy, ("variant", "skip"))): 6,
        ("knapserve_draft_sublayers_total", (("kind", "mlp"), policy, ("variant", "low-bit"))): 12,
        ("knapserve_draft_sublayers_total", (("kind", "head"), policy, ("variant", "low-bit"))): 6,
        ("knapserve_draft_tokens_total", (policy,)): 6,
        ("knapserve_accepted_tokens_total", (policy,)): 2,
        ("knapserve_reselections_total", (("outcome", "changed"), policy)): 1,
        ("knapserve_reselections_total", (("outcome", "plain"), policy)): 0,
        ("knapserve_round_seconds_sum", (("phase", "draft"),)): 0.5,
        ("knapserve_profile_info", (("dtype", "float32"), ("file", "fake.json"), ("hardware", "abacus"))): 1,
    }
    assert {key: found[key] for key in expected} == expected


def test_search_seconds_and_corrections_of_the_profile_are_exported() -> None:
    metrics = Metrics(FakeEngine(), "fake/model")
    fell = RequestRound("a", "knapspec", 3, 4, 2, 4, 9, 5, 4, 60.0, 0.75, "plain", plain_tpt=40.0)
    quiet = replace(fell, accepted=0, reselected=None)
    report = RoundReport((), (fell, quiet), 2, 0, 0.5, 8, 0, 0.25, 0.25, 0.125, 0.0, 0, 0, 0, 1.5, 0.75)
    nobody = RoundReport((), (), 0, 0, 0.0, 0, 0, 0.0, 0.0, 0.0, 0.0)  # requests were cancelled: no round was run
    for one in (report, replace(report, rounds=(quiet,)), replace(report, search_seconds=0.0), nobody):
        metrics.round(one)
    found = samples(metrics.exposition().decode())
    policy = ("policy", "knapspec")
    assert found["knapserve_profile_error_ratio", (("pass", "draft"),)] == 1.5
    assert found["knapserve_round_seconds_count", (("phase", "draft"),)] == 3
    assert found["knapserve_profile_error_ratio", (("pass", "verify"),)] == 0.75
    for name, mean in {"tpt_predicted": 60, "tpt_plain": 40}.items():
        assert found[f"knapserve_{name}_sum", (policy,)] == mean * found["knapserve_tpt_measured_count", (policy,)] > 0
    # The second round decided nothing: its search counts for the third.
    assert found["knapserve_reselection_seconds_sum", (policy,)] == 0.25
    assert found["knapserve_reselection_seconds_count", (policy,)] == 2
    assert found["knapserve_fallback_total", (policy, ("reason", "slower_than_plain"))] == 2
    per_position = [vllm(found, "spec_decode_num_accepted_tokens_per_pos_total", position=str(i)) for i in range(3)]
    assert per_position == [2, 2, 0]


def test_rates_over_many_rounds_are_tokens_over_seconds() -> None:
    """Short rounds with few tokens and long ones with many: the mean of their rates would differ."""
    metrics = Metrics(FakeEngine(), "fake/model")
    part = RequestRound("a", "knapspec", 1, 1, 0, 1, 9, 5, 4, 1.2, 0.75, plain_tpt=1.0)
    for emitted, seconds in [(1, 1.5)] * 7 + [(6, 3.5)] * 3:
        metrics.round(RoundReport((), (replace(part, emitted=emitted),), 1, 0, 0.5, 5, 0, 0.0, seconds, 0.0, 0.0, 0, 0))
    found = samples(metrics.exposition().decode())
    tokens, spent, predicted_tokens, plain = (
        found[f"knapserve_decode_{name}_total", (("policy", "knapspec"),)]
        for name in ("tokens", "seconds", "tokens_promised", "tokens_plain")
    )
    assert (tokens, spent) == (25, 21)
    assert tokens / plain == pytest.approx(25 / 21)
    assert tokens / predicted_tokens == pytest.approx(25 / (1.2 * 21))


def test_copied_tokens_do_not_count_for_the_policy() -> None:
    metrics = Metrics(FakeEngine(), "fake/model")
    copied = RequestRound("a", "knapspec", 5, 4, 4, 0, 9, 0, 0, None, None, source="prediction")
    looked_up = RequestRound("b", "knapspec", 2, 3, 1, 0, 9, 0, 0, None, None, source="lookup")
    metrics.round(RoundReport((), (copied, looked_up), 1, 0, 0.5, 5, 0, 0.0, 0.25, 0.0, 0.0))
    found = samples(metrics.exposition().decode())
    assert vllm(found, "spec_decode_num_accepted_tokens_total") == 5
    policy = (("policy", "knapspec"),)
    assert found["knapserve_rounds_total", policy] == 2
    copies = [
        found[f"knapserve_{name}_total", (("policy", "knapspec"), ("source", source))]
        for name in ("copied_tokens", "accepted_copied_tokens")
        for source in ("prediction", "lookup")
    ]
    assert copies == [4, 3, 4, 1]
    for name in ("draft_tokens_total", "accepted_tokens_total", "draft_length_count", "tpt_measured_count"):
        assert found[f"knapserve_{name}", policy] == 0


def test_drafts_accepted_as_predicted_show_no_prediction_error() -> None:
    """A mean over rounds would show an error, and so would acceptance at positions that few drafts reach."""
    metrics = Metrics(FakeEngine(), "fake/model")
    part = RequestRound("a", "knapspec", 5, 8, 4, 8, 9, 5, 4, 1.2, 0.5)
    short = replace(part, emitted=2, drafted=1, accepted=1, predicted_acceptance=1.0)
    for one in (part, part, short):
        metrics.round(RoundReport((), (one,), 1, 0, 0.5, 9, 0, 0.1, 0.1, 0.0, 0.0))
    found = samples(metrics.exposition().decode())
    drafted, accepted, predicted, predicted_tokens = (
        found[f"knapserve_{name}_total", (("policy", "knapspec"),)]
        for name in ("draft_tokens", "accepted_tokens", "draft_tokens_predicted", "draft_tokens_promised")
    )
    assert (drafted, accepted) == (predicted, predicted_tokens) == (17, 9)
    tried, kept = (
        [vllm(found, f"spec_decode_num_{kind}_tokens_per_pos_total", position=str(i)) for i in range(9)]
        for kind in ("draft", "accepted")
    )
    assert tried == [3] + [2] * 7 + [0]
    assert kept == [3] + [2] * 3 + [0] * 5


def test_every_round_is_counted() -> None:
    many, metrics = 20, Metrics(FakeEngine(), "fake/model")
    part = RequestRound("a", "knapspec", 3, 4, 2, 4, 9, 5, 4, 60.0, 0.75)
    other = replace(
        part, policy="fixed", predicted_tpt=None, predicted_acceptance=None, drafted=0, accepted=0, emitted=1
    )
    report = RoundReport((), (part, other), 2, 0, 0.5, 6, 0, 0.25, 0.25, 0.0, 0.0)
    for number in range(many):
        metrics.round(replace(report, prompt_tokens=number % 2))
    found = samples(metrics.exposition().decode())
    assert vllm(found, "generation_tokens_total") == 4 * many
    assert found["knapserve_round_seconds_sum", (("phase", "draft"),)] == 0.25 * many
    for policy in ("knapspec", "fixed"):
        assert found["knapserve_rounds_total", (("policy", policy),)] == many
        assert found["knapserve_tpt_measured_count", (("policy", policy),)] == (many + 1) // 2, "prompts were read"


def test_every_reply_is_counted_by_its_status() -> None:
    class Broken(FakeEngine):
        def submit(self, request: GenerateRequest) -> AsyncIterator[TokenEvent]:
            raise RuntimeError("a bug")

    def answers(found: Samples, handler: str, status: str, method: str = "POST") -> float:
        labels = {"method": method, "handler": handler, "status": status}
        return found.get(("http_requests_total", tuple(sorted(labels.items()))), 0.0)

    _, found = scrape(Broken(), (CHAT_PATH, CHAT), (CHAT_PATH, CHAT | {"stream": True}), (TEXT_PATH, TEXT | {"n": 0}))
    assert answers(found, CHAT_PATH, "5xx") == 2
    assert answers(found, TEXT_PATH, "4xx") == 1
    assert answers(found, TEXT_PATH, "5xx") == 0
    config = ServerConfig(api_key=("one",), max_body_size=100)
    key = {"authorization": "Bearer one"}
    *_, last = asks(
        FakeEngine(),
        ("POST", CHAT_PATH, {"json": CHAT}),
        ("POST", CHAT_PATH, {"json": CHAT | {"user": "x" * 100}, "headers": key}),
        ("POST", CHAT_PATH, {"json": {"messages": CHAT["messages"]}, "headers": key}),
        ("BREW", "/no/such/path", {}),
        ("GET", "/v1/models/some/model", {"headers": key}),
        ("GET", "/metrics", {}),
        config=config,
    )
    found = samples(last.text)
    assert (answers(found, CHAT_PATH, "4xx"), answers(found, CHAT_PATH, "2xx")) == (2, 1)
    assert answers(found, "other", "4xx", "other") == 1
    assert answers(found, "/v1/models/{model_id}", "4xx", "GET") == 1


def test_clients_cannot_add_series() -> None:
    engine = FakeEngine()
    before = scrape(engine, (CHAT_PATH, CHAT))[1].keys()
    bodies: list[tuple[str, dict[str, Any]]] = [
        (CHAT_PATH, CHAT | {name: f"made up {i}"})
        for i in range(5)
        for name in ("model", "draft_policy", "user", f"field{i}")
    ]
    replies, found = scrape(engine, *bodies)
    assert {reply.status_code for reply in replies} == {200, 400, 404}
    assert {name for name in found.keys() - before if not name[0].startswith("http_request")} == set()
    assert len(found.keys() - before) <= 3, "only statuses that are new for these paths"


def test_corrections_of_the_profile_begin_at_one() -> None:
    _, found = scrape(FakeEngine())
    assert found["knapserve_profile_error_ratio", (("pass", "draft"),)] == 1.0
    assert found["knapserve_profile_error_ratio", (("pass", "verify"),)] == 1.0


def test_gauges_show_the_current_state() -> None:
    engine = FakeEngine()
    engine.running = {"a", "b"}
    _, found = scrape(engine)
    assert vllm(found, "num_requests_running") == 2
    assert vllm(found, "num_requests_waiting") == 0
    assert vllm(found, "kv_cache_usage_perc") == 0.5
    assert found["knapserve_heartbeat_age_seconds", ()] >= 0
    assert found["process_cpu_seconds_total", ()] > 0
    for reason in ("queue_full", "draining", "unavailable", "invalid"):
        assert vllm(found, "admission_rejections_total", reason=reason) == 0, "counters begin at zero"


def test_refusals_and_failures_are_counted() -> None:
    _, found = scrape(FakeEngine(capacity=1), (CHAT_PATH, CHAT | {"n": 2}))
    assert vllm(found, "admission_rejections_total", reason="queue_full") == 1
    _, found = scrape(FakeEngine(), (CHAT_PATH, CHAT | {"n": 0}), (TEXT_PATH, TEXT | {"max_tokens": 10**6}))
    assert vllm(found, "admission_rejections_total", reason="invalid") == 2
    for error, reason in ((EngineDrainingError(), "draining"), (EngineDeadError("x"), "unavailable")):
        engine = FakeEngine()
        engine.refuse = error
        _, found = scrape(engine, (CHAT_PATH, CHAT))
        assert vllm(found, "admission_rejections_total", reason=reason) == 1
    engine = FakeEngine()
    engine.fail_at = (1, EngineDeadError("x"))
    _, found = scrape(engine, (CHAT_PATH, CHAT | {"n": 2}))
    assert vllm(found, "request_success_total", finished_reason="error") == 2


def test_a_body_without_room_counts_as_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.edge.bodies.BodyReader.read", refuse_body)
    _, found = scrape(FakeEngine(), (CHAT_PATH, CHAT))
    assert vllm(found, "admission_rejections_total", reason="unavailable") == 1


def refuse_body(*_: object) -> NoReturn:
    raise unavailable("Too many large requests are being read.", "busy")


def test_buckets_between_tokens_resolve_rounds_below_ten_milliseconds() -> None:
    _, found = scrape(FakeEngine())
    name = "vllm:inter_token_latency_seconds_bucket"
    bounds = [float(dict(labels)["le"]) for found_name, labels in found if found_name == name]
    assert len([bound for bound in bounds if bound < 0.01]) >= 5


def test_apps_do_not_share_metrics() -> None:
    asks(FakeEngine(), ("POST", CHAT_PATH, {"json": CHAT}))
    _, found = scrape(FakeEngine())
    assert vllm(found, "generation_tokens_total") == 0


def test_the_model_label_is_the_served_name() -> None:
    text = ask(FakeEngine(), "GET", "/metrics", config=ServerConfig(served_model_name=("mine",))).text
    assert 'vllm:generation_tokens_total{engine="0",model_name="mine"} 0.0' in text
    assert json.dumps("fake/model") not in text
