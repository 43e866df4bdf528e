"""The bytes on the wire: framing, disconnects, and metrics that agree with replies."""

from __future__ import annotations

import json
import select
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.harness import CHAT_PATH, TEXT_PATH, sse
from tests.support.serving import DTYPE, MODEL, Metrics, Process
from tests.support.waiting import PATIENCE, until

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Tell me a story about a red owl."}], "temperature": 0}
TEXT: dict[str, Any] = {"prompt": "Once upon a time", "temperature": 0}
# More than the server writes while a test looks: 1,500 rounds.
ENDLESS: dict[str, Any] = TEXT | {"max_tokens": 1500, "ignore_eos": True, "draft_policy": "none"}


@pytest.mark.parametrize(("path", "body"), [(CHAT_PATH, CHAT), (TEXT_PATH, TEXT)])
@pytest.mark.parametrize("include_usage", [False, True])
def test_the_bytes_of_a_stream_are_server_sent_events(
    server: Process, path: str, body: dict[str, Any], include_usage: bool
) -> None:
    options: dict[str, Any] = {"stream": True, "max_tokens": 20}
    if include_usage:
        options["stream_options"] = {"include_usage": True}
    reply = server.http.post(path, json=body | options, headers={"x-request-id": "mine-1"})
    assert reply.status_code == 200
    assert reply.headers["content-type"].partition(";")[0] == "text/event-stream"
    assert reply.headers["x-request-id"] == "mine-1"
    *chunks, done = sse(reply.content)
    assert done == "[DONE]"
    assert reply.content.count(b"[DONE]") == 1
    whole = server.http.post(path, json=body | {"max_tokens": 20}).json()
    kind = "chat.completion.chunk" if path == CHAT_PATH else "text_completion"
    assert {(c["object"], c["model"], c["id"], c["created"]) for c in chunks} == {
        (kind, MODEL, chunks[0]["id"], chunks[0]["created"])
    }
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    reason = whole["choices"][0]["finish_reason"]
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + [reason]
    if path == CHAT_PATH:
        assert [choice["delta"].get("role") for choice in choices] == ["assistant"] + [None] * (len(choices) - 1)
        text = "".join(choice["delta"].get("content", "") for choice in choices)
        assert text == whole["choices"][0]["message"]["content"]
    else:
        assert "".join(choice["text"] for choice in choices) == whole["choices"][0]["text"]
    assert ["metrics" in chunk for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1]["metrics"]["speculative_decoding"]["policy"] == "knapspec"
    if include_usage:
        assert [chunk["usage"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
        assert [len(chunk["choices"]) for chunk in chunks] == [1] * (len(chunks) - 1) + [0]
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        assert [chunks[-1]["usage"][name] for name in names] == [whole["usage"][name] for name in names]
    else:
        assert all("usage" not in chunk and len(chunk["choices"]) == 1 for chunk in chunks)


def test_a_refusal_of_a_stream_is_a_plain_400(server: Process) -> None:
    reply = server.http.post(CHAT_PATH, json=CHAT | {"stream": True, "max_tokens": 5000})
    assert reply.status_code == 400
    assert reply.headers["content-type"] == "application/json"
    assert reply.json()["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize("bad", [b"what is this\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n"])
def test_bytes_that_are_no_http_get_an_error_body(server: Process, bad: bytes) -> None:
    with socket.create_connection((server.http.base_url.host, server.http.base_url.port or 80), PATIENCE) as client:
        client.sendall(bad)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"x-request-id: " in head
    assert f"content-length: {len(body)}".encode() in head
    error = json.loads(body)["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", None)
    assert error["message"]


def reply_of(connection: socket.socket) -> tuple[int, Any]:
    """Status and JSON of the next reply."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(65536)
    head, _, body = answer.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        body += connection.recv(65536)
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("split", [False, True])
def test_an_offered_upgrade_is_declined(server: Process, chunked: bool, split: bool) -> None:
    """`curl --http2` and the JDK's client offer an upgrade; the connection serves further requests."""
    body = json.dumps(TEXT | {"max_tokens": 3, "ignore_eos": True}).encode()
    sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    head = f"POST {TEXT_PATH} HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n{length}\r\n"
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n"
    url = server.http.base_url
    with socket.create_connection((url.host, url.port or 80), PATIENCE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for ending in (offer, offer, "\r\n"):
            parts = [(head + ending).encode(), sent[:20], sent[20:]]
            for part in parts if split else [b"".join(parts)]:
                connection.sendall(part)
                server.http.get("/live")  # once this is answered, the server has read the part
            status, answer = reply_of(connection)
            assert status == 200, answer
            assert answer["usage"]["completion_tokens"] == 3


def test_a_long_request_line_is_refused(server: Process) -> None:
    url = server.http.base_url
    with socket.create_connection((url.host, url.port or 80), PATIENCE) as connection:
        connection.sendall(b"GET /v1/models/" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: here\r\n\r\n")
        assert reply_of(connection)[0] == 431


def test_a_head_without_end_is_refused(server: Process) -> None:
    url = server.http.base_url
    with socket.create_connection((url.host, url.port or 80), PATIENCE) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nX-Long: ")
        with suppress(ConnectionError):
            for _ in range(100):
                connection.sendall(b"a" * 10_000)
                if select.select([connection], [], [], 0.01)[0]:
                    break
            else:
                pytest.fail("a megabyte of headers was taken")
            status, answer = reply_of(connection)
            assert status == 431
            assert answer["error"]["type"] == "invalid_request_error"
    assert server.http.get("/health").status_code == 200


def cut(before: Metrics, server: Process) -> None:
    """Wait until the only running request is gone, long before its 1,500 tokens."""
    until(lambda: server.metrics().total("vllm:num_requests_running") == 0, "the end of a request whose client left")
    after = server.metrics()
    assert after.total("vllm:kv_cache_usage_perc") == 0
    assert after.total("vllm:num_requests_waiting") == 0
    generated = after.total("vllm:generation_tokens_total") - before.total("vllm:generation_tokens_total")
    assert 0 < generated < 1500
    ended = {"finished_reason": "abort"}
    name = "vllm:request_success_total"
    assert after.total(name, **ended) - before.total(name, **ended) == 1
    assert after.total(name) - before.total(name) == 1
    # The request is gone, not just unreported: others run, and it gets no further token.
    reply = server.http.post(TEXT_PATH, json=TEXT | {"max_tokens": 5, "ignore_eos": True})
    assert reply.json()["usage"]["completion_tokens"] == 5
    assert server.metrics().total("vllm:generation_tokens_total") == after.total("vllm:generation_tokens_total") + 5


def test_a_client_that_leaves_a_stream_ends_its_request(server: Process) -> None:
    before = server.metrics()
    with server.http.stream("POST", TEXT_PATH, json=ENDLESS | {"stream": True}) as reply:
        lines = reply.iter_lines()
        seen = [line for line in (next(lines) for _ in range(6)) if line]
        assert all(line.startswith("data: {") for line in seen)
        assert server.metrics().total("vllm:num_requests_running") == 1
        assert server.metrics().total("vllm:kv_cache_usage_perc") > 0
    cut(before, server)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_is_killed_ends_its_request(server: Process, stream: bool) -> None:
    """The connection is reset during a stream, or before a whole reply."""
    before = server.metrics()
    body = json.dumps(ENDLESS | {"stream": stream}).encode()
    host, port = server.url.removeprefix("http://").split(":")
    head = f"POST {TEXT_PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: server.metrics().total("vllm:num_requests_running") == 1, "the request to run")
        if stream:
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # close by RST
    cut(before, server)


def test_a_client_that_leaves_ends_all_its_choices(server: Process) -> None:
    def aborted() -> float:
        return server.metrics().total("vllm:request_success_total", finished_reason="abort")

    before, already = server.metrics(), aborted()
    with server.http.stream("POST", TEXT_PATH, json=ENDLESS | {"stream": True, "n": 4, "temperature": 1}) as reply:
        next(reply.iter_lines())  # leaves at once: a busy machine must not let choices end first
    until(lambda: aborted() - already == 4, "the end of all choices")
    until(lambda: server.metrics().total("vllm:num_requests_running") == 0, "the engine to be idle")
    after = server.metrics()
    assert after.total("vllm:kv_cache_usage_perc") == 0
    name = "vllm:generation_tokens_total"
    assert after.total(name) - before.total(name) < 4 * 1500


def test_health_live_and_version_answer(server: Process) -> None:
    for path in ("/health", "/live", "/version", "/openapi.json"):
        assert server.http.get(path).status_code == 200
    with server.http.stream("POST", TEXT_PATH, json=ENDLESS | {"stream": True, "prompt": [9] * 500}):
        assert server.http.get("/health").status_code == 200


@pytest.mark.nightly
def test_health_is_answered_while_long_prompts_are_read(server: Process) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    head = f"POST {TEXT_PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    with ExitStack() as stack:
        readers = []
        for first in range(20, 24):  # prompts that share no prefix
            body = json.dumps({"prompt": [first, *range(100, 2000)], "max_tokens": 1}).encode()
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            readers.append(connection)
        until(lambda: server.metrics().total("vllm:num_requests_running") > 0, "the prompts to be read")
        assert server.http.get("/health").status_code == 200
        answered, _, _ = select.select(readers, [], [], 0)
        assert len(answered) < len(readers), "the last prompt is still being read"
        assert all(connection.recv(100).startswith(b"HTTP/1.1 200") for connection in readers)


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/v1/nothing", 404), ("GET", CHAT_PATH, 405)])
def test_unknown_paths_get_an_error_body(server: Process, method: str, path: str, status: int) -> None:
    reply = server.http.request(method, path)
    assert reply.status_code == status
    assert reply.json()["error"].keys() == {"message", "type", "param", "code"}


FAMILIES = [
    *("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"),
    *("vllm:prefix_cache_queries", "vllm:prefix_cache_hits", "vllm:num_preemptions"),
    *("vllm:prompt_tokens", "vllm:prompt_tokens_cached", "vllm:generation_tokens"),
    *("vllm:request_success", "vllm:admission_rejections"),
    *("vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds"),
    *("vllm:request_time_per_output_token_seconds", "vllm:e2e_request_latency_seconds"),
    *("vllm:request_queue_time_seconds", "vllm:request_prefill_time_seconds", "vllm:request_decode_time_seconds"),
    *("vllm:request_prompt_tokens", "vllm:request_generation_tokens", "vllm:iteration_tokens_total"),
    *("vllm:spec_decode_num_drafts", "vllm:spec_decode_num_draft_tokens", "vllm:spec_decode_num_accepted_tokens"),
    *("knapserve_rounds", "knapserve_tpt_predicted", "knapserve_tpt_measured", "knapserve_acceptance_predicted"),
    *("knapserve_draft_length", "knapserve_skipped_sublayers", "knapserve_context_length"),
    *("knapserve_draft_sublayers", "knapserve_copied_tokens"),
    *("knapserve_reselections", "knapserve_round_seconds", "knapserve_profile_info"),
]


def test_metrics_have_vllms_names_and_labels(server: Process, profile_dir: Path) -> None:
    metrics = server.metrics()
    assert set(FAMILIES) <= metrics.families.keys()
    for name, family in metrics.families.items():
        if name.startswith("vllm:"):
            absent = {"vllm:admission_rejections": "engine", "vllm:cache_config_info": "model_name"}.get(name, "")
            labels = {"model_name": MODEL, "engine": "0"}
            labels.pop(absent, "")
            assert all(labels.items() <= sample.labels.items() for sample in family.samples)
    (info,) = metrics.families["knapserve_profile_info"].samples
    assert (profile_dir / info.labels["file"]).is_file()
    assert info.labels["dtype"] == DTYPE


@pytest.mark.nightly
def test_latencies_between_tokens_add_up_within_the_clients_time(server: Process) -> None:
    """Each arrival of tokens after the first is one observation.

    There is one for every chunk of text, and there may be more: some arrivals have no text to send yet.
    """
    before = server.metrics()
    body = CHAT | {"stream": True, "max_tokens": 300, "ignore_eos": True, "temperature": 0, "draft_policy": "none"}
    texts, started = 0, time.perf_counter()
    with server.http.stream("POST", CHAT_PATH, json=body) as reply:
        for line in reply.iter_lines():
            if line.startswith("data: {"):
                texts += '"delta":{"content"' in line
    ended, after = time.perf_counter(), server.metrics()
    name = "vllm:inter_token_latency_seconds"
    gaps = after.total(f"{name}_count") - before.total(f"{name}_count")
    assert 100 < texts <= gaps + 1 <= 300
    assert 0 < after.total(f"{name}_sum") - before.total(f"{name}_sum") < ended - started


def test_counters_equal_the_usage_of_replies(server: Process) -> None:
    """Several requests, some drafted, some at their limit, one refused: every counter moves by their usage."""
    before = server.metrics()
    usages, speculations, ends = [], [], []
    for policy, limit in (("none", 7), ("layerskip", 30), ("knapspec", 30), ("fixed", 200)):
        reply = server.http.post(CHAT_PATH, json=CHAT | {"max_tokens": limit, "draft_policy": policy}).json()
        usages.append(reply["usage"])
        speculations.append(reply["metrics"]["speculative_decoding"])
        ends.append(reply["choices"][0]["finish_reason"])
    assert set(ends) == {"length", "stop"}
    assert server.http.post(CHAT_PATH, json=CHAT | {"n": 0}).status_code == 400
    after = server.metrics()

    def moved(name: str, **labels: str) -> float:
        return after.total(name, **labels) - before.total(name, **labels)

    rounds = sum(figures["num_rounds"] for figures in speculations)
    expected = {
        "vllm:prompt_tokens_total": sum(usage["prompt_tokens"] for usage in usages),
        "vllm:prompt_tokens_cached_total": sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages),
        "vllm:prefix_cache_queries_total": sum(usage["prompt_tokens"] for usage in usages),
        "vllm:prefix_cache_hits_total": sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages),
        "vllm:generation_tokens_total": sum(usage["completion_tokens"] for usage in usages),
        "vllm:request_prompt_tokens_sum": sum(usage["prompt_tokens"] for usage in usages),
        "vllm:request_generation_tokens_sum": sum(usage["completion_tokens"] for usage in usages),
        "vllm:request_success_total": 4,
        "vllm:time_to_first_token_seconds_count": 4,
        "vllm:e2e_request_latency_seconds_count": 4,
        "vllm:request_queue_time_seconds_count": 4,
        "vllm:request_prefill_time_seconds_count": 4,
        "vllm:request_decode_time_seconds_count": 4,
        "vllm:spec_decode_num_draft_tokens_total": sum(figures["num_draft_tokens"] for figures in speculations),
        "vllm:spec_decode_num_accepted_tokens_total": sum(
            figures["num_accepted_draft_tokens"] for figures in speculations
        ),
        "vllm:num_preemptions_total": 0,
        "knapserve_rounds_total": rounds,
        "knapserve_draft_length_sum": sum(
            figures["num_draft_tokens"] - figures["num_lookup_tokens"] for figures in speculations
        ),
        "knapserve_copied_tokens_total": sum(figures["num_lookup_tokens"] for figures in speculations),
        "knapserve_reselections_total": moved("knapserve_reselections_total", policy="knapspec"),
    }
    assert {name: moved(name) for name in expected} == expected
    assert 0 < moved("vllm:inter_token_latency_seconds_count") <= rounds - 4, "tokens of quick rounds share a chunk"
    for reason in ("length", "stop"):
        assert moved("vllm:request_success_total", finished_reason=reason) == ends.count(reason)
    for figures in speculations:
        assert moved("knapserve_rounds_total", policy=figures["policy"]) == figures["num_rounds"]
    assert moved("vllm:spec_decode_num_draft_tokens_total") > 0


def test_a_body_over_the_limit_is_refused(server: Process) -> None:
    reply = httpx.post(f"{server.url}{TEXT_PATH}", content=b" " * (16 * 2**20 + 1))
    assert reply.status_code == 413
    assert reply.json()["error"].keys() == {"message", "type", "param", "code"}
