"""The bytes on the wire: upgrades, heads without end, disconnects, and counters that agree with replies."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from tests.support.harness import CHAT_PATH, TEXT_PATH, posted, status_of_reply
from tests.support.serving import Metrics, Process
from tests.support.waiting import PATIENCE, until

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Tell me a story about a red owl."}], "temperature": 0}
TEXT: dict[str, Any] = {"prompt": "Once upon a time", "temperature": 0}
# More than the server writes while a test looks: 1,500 rounds.
ENDLESS: dict[str, Any] = TEXT | {"max_tokens": 1500, "ignore_eos": True, "draft_policy": "none"}
HEAD = f"POST {TEXT_PATH} HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
OFFER = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"


def connect(server: Process) -> socket.socket:
    url = server.http.base_url
    return socket.create_connection((url.host, url.port or 80), PATIENCE)


@pytest.fixture
def connection(server: Process) -> Iterator[socket.socket]:
    with connect(server) as connection:
        yield connection


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("split", [False, True])
def test_an_offered_upgrade_is_declined(server: Process, connection: socket.socket, chunked: bool, split: bool) -> None:
    """`curl --http2` and the JDK's client offer an upgrade; the connection serves further requests."""
    body = json.dumps(TEXT | {"max_tokens": 3, "ignore_eos": True}).encode()
    sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    generated = server.metrics().total("vllm:generation_tokens_total")
    for offer in (OFFER, OFFER, ""):
        parts = [f"{HEAD}{length}\r\n{offer}\r\n".encode(), sent[:20], sent[20:]]
        for part in parts if split else [b"".join(parts)]:
            connection.sendall(part)
            server.http.get("/live")  # once this is answered, the server has read the part
        assert status_of_reply(connection) == 200
    assert server.metrics().total("vllm:generation_tokens_total") == generated + 3 * 3


def test_a_head_without_end_is_refused(server: Process, connection: socket.socket) -> None:
    connection.sendall(b"GET /health HTTP/1.1\r\nX-Long: ")
    with suppress(ConnectionError):
        for _ in range(100):
            connection.sendall(b"a" * 10_000)
            if select.select([connection], [], [], 0.01)[0]:
                break
        else:
            pytest.fail("a megabyte of headers was taken")
        assert status_of_reply(connection) == 431
    assert server.http.get("/health").status_code == 200


def left(server: Process, before: Metrics, choices: int = 1) -> None:
    """Wait until all choices of the only request are gone, long before their 1,500 tokens."""
    aborted = {"finished_reason": "abort"}

    def moved(name: str, **labels: str) -> float:
        return server.metrics().total(name, **labels) - before.total(name, **labels)

    until(lambda: moved("vllm:request_success_total", **aborted) == choices, "the end of a request whose client left")
    until(lambda: server.requests == 0, "the engine to be idle")
    assert server.metrics().total("vllm:kv_cache_usage_perc") == 0
    assert moved("vllm:request_success_total") == choices
    generated = moved("vllm:generation_tokens_total")
    assert generated < choices * 1500
    # The request is gone, not just unreported: others run, and it gets no further token.
    reply = server.http.post(TEXT_PATH, json=TEXT | {"max_tokens": 5, "ignore_eos": True})
    assert reply.json()["usage"]["completion_tokens"] == 5
    assert moved("vllm:generation_tokens_total") == generated + 5


@pytest.mark.parametrize(("stream", "reset"), [(True, False), (True, True), (False, True)])
def test_a_client_that_leaves_ends_its_request(
    server: Process, connection: socket.socket, stream: bool, reset: bool
) -> None:
    """The connection is closed or reset during a stream, or before a whole reply."""
    before = server.metrics()
    connection.sendall(posted(TEXT_PATH, ENDLESS | {"stream": stream}))
    until(lambda: server.metrics().total("vllm:num_requests_running") == 1, "the request to run")
    until(lambda: server.metrics().total("vllm:kv_cache_usage_perc") > 0, "its place in the cache")
    if stream:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    if reset:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    connection.close()
    left(server, before)


def test_a_client_that_leaves_ends_all_its_choices(server: Process) -> None:
    before = server.metrics()
    with server.http.stream("POST", TEXT_PATH, json=ENDLESS | {"stream": True, "n": 4, "temperature": 1}) as reply:
        next(reply.iter_lines())  # leaves at once: a busy machine must not let choices end first
    left(server, before, choices=4)


@pytest.mark.nightly
def test_health_is_answered_while_long_prompts_are_read(server: Process) -> None:
    with ExitStack() as stack:
        readers = [stack.enter_context(connect(server)) for _ in range(4)]
        for first, reader in enumerate(readers, 20):  # prompts that share no prefix
            reader.sendall(posted(TEXT_PATH, {"prompt": [first, *range(100, 2000)], "max_tokens": 1}))
        until(lambda: server.metrics().total("vllm:num_requests_running") > 0, "the prompts to be read")
        assert server.http.get("/health").status_code == 200
        answered, _, _ = select.select(readers, [], [], 0)
        assert len(answered) < len(readers), "the last prompt is still being read"
        assert all(reader.recv(100).startswith(b"HTTP/1.1 200") for reader in readers)


def test_counters_equal_the_usage_of_replies(server: Process) -> None:
    """Several requests, some drafted, some at their limit, one refused: every counter moves by their usage."""
    before = server.metrics()
    replies = [
        server.http.post(CHAT_PATH, json=CHAT | {"max_tokens": limit, "draft_policy": policy}).json()
        for policy, limit in (("none", 7), ("layerskip", 30), ("knapspec", 30), ("fixed", 200))
    ]
    ends = [reply["choices"][0]["finish_reason"] for reply in replies]
    assert set(ends) == {"length", "stop"}
    assert server.http.post(CHAT_PATH, json=CHAT | {"n": 0}).status_code == 400
    after = server.metrics()

    def moved(name: str, **labels: str) -> float:
        return after.total(name, **labels) - before.total(name, **labels)

    usages = [reply["usage"] for reply in replies]
    speculations = [reply["metrics"]["speculative_decoding"] for reply in replies]
    prompts, generated = (sum(usage[f"{kind}_tokens"] for usage in usages) for kind in ("prompt", "completion"))
    cached = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
    rounds, drafted, accepted, copied = (
        sum(figures[f"num_{name}"] for figures in speculations)
        for name in ("rounds", "draft_tokens", "accepted_draft_tokens", "lookup_tokens")
    )
    expected = {
        "vllm:prompt_tokens_total": prompts,
        "vllm:prompt_tokens_cached_total": cached,
        "vllm:prefix_cache_queries_total": prompts,
        "vllm:prefix_cache_hits_total": cached,
        "vllm:generation_tokens_total": generated,
        "vllm:request_prompt_tokens_sum": prompts,
        "vllm:request_generation_tokens_sum": generated,
        "vllm:request_success_total": 4,
        "vllm:time_to_first_token_seconds_count": 4,
        "vllm:e2e_request_latency_seconds_count": 4,
        "vllm:request_queue_time_seconds_count": 4,
        "vllm:request_prefill_time_seconds_count": 4,
        "vllm:request_decode_time_seconds_count": 4,
        "vllm:spec_decode_num_draft_tokens_total": drafted,
        "vllm:spec_decode_num_accepted_tokens_total": accepted,
        "vllm:num_preemptions_total": 0,
        "knapserve_rounds_total": rounds,
        "knapserve_draft_length_sum": drafted - copied,
        "knapserve_copied_tokens_total": copied,
    }
    assert {name: moved(name) for name in expected} == expected
    assert drafted > 0
    assert 0 < moved("vllm:inter_token_latency_seconds_sum") < moved("vllm:e2e_request_latency_seconds_sum")
    assert 0 < moved("vllm:inter_token_latency_seconds_count") <= rounds - 4, "tokens of quick rounds share a chunk"
    for reason in ("length", "stop"):
        assert moved("vllm:request_success_total", finished_reason=reason) == ends.count(reason)
    for figures in speculations:
        assert moved("knapserve_rounds_total", policy=figures["policy"]) == figures["num_rounds"]
