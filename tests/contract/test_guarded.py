"""A server with an operator's limits: keys, origins, a short queue, small bodies, keep-alive comments."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.support.harness import CHAT_PATH, TEXT_PATH, sse
from tests.support.serving import MODEL, Metrics, Process
from tests.support.waiting import PATIENCE, until

pytestmark = pytest.mark.nightly

KEYS = ("first-key", "second-key")
ORIGIN = "https://front.example"
BODY_LIMIT = 32 * 1024
KEYED = {"authorization": f"Bearer {KEYS[0]}"}
TEXT: dict[str, Any] = {"model": MODEL, "prompt": "Once upon a time", "temperature": 0}
# Runs until its client leaves: far more rounds than a test takes to look.
ENDLESS: dict[str, Any] = TEXT | {"max_tokens": 1900, "stream": True, "ignore_eos": True, "draft_policy": "none"}


@pytest.fixture(scope="module")
def guarded(profile_dir: Path, shared_server: Process, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server that runs one request and queues one; its profile is the shared server's."""
    process = Process(
        tmp_path_factory.mktemp("guarded") / "stderr",
        *("--profile-dir", str(profile_dir), "--max-num-seqs", "1", "--max-queued", "1", "--max-n", "2"),
        *("--api-key", *KEYS, "--metrics-auth", "--cors-origins", ORIGIN, "--served-model-name", "front", MODEL),
        *("--max-body-size", str(BODY_LIMIT), "--keepalive-seconds", "0.05", "--log-format", "json"),
    )
    process.http.headers.update(KEYED)
    yield process
    process.close()
    assert "Traceback" not in process.log


@pytest.fixture
def server(guarded: Process) -> Iterator[Process]:
    yield guarded
    until(lambda: in_flight(guarded) == 0, "an idle server")


def in_flight(server: Process) -> float:
    scrape: Metrics = server.metrics()
    return scrape.total("vllm:num_requests_running") + scrape.total("vllm:num_requests_waiting")


def keyed(server: Process, key: str = KEYS[0], retries: int = 0) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=retries, timeout=PATIENCE)


@pytest.mark.parametrize("key", KEYS)
def test_each_of_several_keys_is_accepted(server: Process, key: str) -> None:
    with keyed(server, key) as client:
        assert [model.id for model in client.models.list()] == ["front", MODEL]
        reply = client.completions.create(model="front", prompt="Once", max_tokens=2)
        assert reply.model == "front"


def test_a_wrong_key_raises_in_the_client(server: Process) -> None:
    for key in ("third-key", KEYS[0][:-1]):
        with pytest.raises(openai.AuthenticationError) as refused, keyed(server, key) as client:
            client.models.list()
        assert (refused.value.code, refused.value.param) == ("invalid_api_key", None)
        assert key not in refused.value.response.text
    strange = httpx.get(f"{server.url}/v1/models", headers={b"authorization": "Bearer schlüssel".encode()})
    assert strange.status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "opens"),
    [
        *(("GET", path, False) for path in ("/v1/models", f"/v1/models/{MODEL}", "/v1/nothing", "/metrics")),
        *(("POST", path, False) for path in (CHAT_PATH, TEXT_PATH, "/tokenize", "/detokenize", "/reset_calibration")),
        *(("GET", path, True) for path in ("/health", "/live", "/version", "/", "/openapi.json")),
    ],
)
def test_only_v1_and_its_like_need_a_key(server: Process, method: str, path: str, opens: bool) -> None:
    reply = httpx.request(method, f"{server.url}{path}")
    assert reply.status_code == (200 if opens else 401)
    if not opens:
        assert reply.json()["error"].keys() == {"message", "type", "param", "code"}
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.headers["x-request-id"]


def test_only_the_configured_origin_may_call_from_a_browser(server: Process) -> None:
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    allowed = httpx.options(f"{server.url}{CHAT_PATH}", headers={"origin": ORIGIN} | asks)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == ORIGIN
    assert "authorization" in allowed.headers["access-control-allow-headers"].lower()
    stream = server.http.post(TEXT_PATH, json=TEXT | {"stream": True, "max_tokens": 3}, headers={"origin": ORIGIN})
    assert stream.headers["access-control-allow-origin"] == ORIGIN
    assert "x-request-id" in stream.headers["access-control-expose-headers"].lower()
    unknown = httpx.post(f"{server.url}{CHAT_PATH}", json={}, headers={"origin": ORIGIN})
    assert unknown.status_code == 401
    assert unknown.headers["access-control-allow-origin"] == ORIGIN, "a page may read the reason of a refusal"
    other = httpx.options(f"{server.url}{CHAT_PATH}", headers={"origin": "https://other.example"} | asks)
    assert other.status_code == 400
    assert "access-control-allow-origin" not in other.headers
    assert other.json()["error"]["type"] == "invalid_request_error"


def test_a_request_beyond_the_queue_is_a_429_with_retry_after(server: Process) -> None:
    with ExitStack() as stack:
        running = stack.enter_context(server.http.stream("POST", TEXT_PATH, json=ENDLESS))
        lines = running.iter_lines()
        assert next(lines).startswith("data: {")
        waiting = stack.enter_context(server.http.stream("POST", TEXT_PATH, json=ENDLESS))
        assert waiting.status_code == 200  # its stream is open, and says so
        comments = waiting.iter_raw()
        assert [next(comments) for _ in range(3)] == [b": keep-alive\n\n"] * 3
        before = server.metrics().total("vllm:admission_rejections_total")
        with pytest.raises(openai.RateLimitError) as refused, keyed(server) as client:
            client.completions.create(model=MODEL, prompt="Hi", max_tokens=1)
        assert (refused.value.code, refused.value.type) == ("queue_full", "rate_limit_error")
        assert int(refused.value.response.headers["retry-after"]) >= 1
        for stream in (True, False):  # a stream is refused by its status as well
            reply = server.http.post(TEXT_PATH, json=TEXT | {"stream": stream})
            assert (reply.status_code, reply.headers["content-type"]) == (429, "application/json")
        assert server.metrics().total("vllm:admission_rejections_total") == before + 3
        assert server.http.get("/health").status_code == 200, "a server with a full queue is healthy"
        assert '"text"' in next(line for line in lines if line), "running requests are not affected"


def test_a_client_that_retries_after_a_429_succeeds(server: Process) -> None:
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(server.http.stream("POST", TEXT_PATH, json=ENDLESS))
        until(lambda: in_flight(server) == 2, "a full server")
        refused = server.metrics().total("vllm:admission_rejections_total")
        said: list[str] = []

        def patient() -> None:
            with keyed(server, retries=5) as client:
                said.append(client.completions.create(model=MODEL, prompt="Once upon", max_tokens=4).choices[0].text)

        thread = threading.Thread(target=patient)
        thread.start()
        until(lambda: server.metrics().total("vllm:admission_rejections_total") > refused, "a refusal")
        stack.close()
        thread.join(PATIENCE)
    assert said


def test_choices_that_can_never_fit_are_a_400(server: Process) -> None:
    reply = server.http.post(TEXT_PATH, json=TEXT | {"n": 3})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "n")


def test_comments_disturb_no_client(server: Process) -> None:
    """The client skips comments and reads the chunks of a quick stream."""
    with keyed(server) as client, server.http.stream("POST", TEXT_PATH, json=ENDLESS) as running:
        until(lambda: in_flight(server) == 1, "a busy server")
        quick = TEXT | {"max_tokens": 30}
        stream = client.completions.create(**quick, stream=True)
        running.close()
        assert "".join(chunk.choices[0].text for chunk in stream) == client.completions.create(**quick).choices[0].text


def test_bodies_over_the_limit_are_refused_chunked_or_not(server: Process) -> None:
    with pytest.raises(openai.APIStatusError) as refused, keyed(server) as client:
        client.completions.create(model=MODEL, prompt="a" * BODY_LIMIT)
    assert refused.value.status_code == 413
    declared = server.http.post(TEXT_PATH, content=b" " * (BODY_LIMIT + 1))
    assert declared.status_code == 413
    host, port = server.url.removeprefix("http://").rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        head = f"POST {TEXT_PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEYS[1]}\r\n"
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(BODY_LIMIT // 1024 + 1):
            connection.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_stream_that_begins_with_comments_is_framed_like_any_other(server: Process) -> None:
    with server.http.stream("POST", TEXT_PATH, json=ENDLESS) as running:
        until(lambda: in_flight(server) == 1, "a busy server")
        with server.http.stream("POST", TEXT_PATH, json=TEXT | {"stream": True, "max_tokens": 12}) as waiting:
            raw = waiting.iter_raw()
            assert next(raw) == b": keep-alive\n\n"
            running.close()
            rest = b"".join(raw)
    data = b"\n\n".join(part for part in rest.split(b"\n\n") if not part.startswith(b":"))
    *chunks, done = sse(data)
    assert done == "[DONE]"
    whole = server.http.post(TEXT_PATH, json=TEXT | {"max_tokens": 12}).json()
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == whole["choices"][0]["text"]


def test_keys_and_prompts_are_not_logged(server: Process) -> None:
    reply = server.http.post(TEXT_PATH, json=TEXT | {"max_tokens": 1}, headers={"x-request-id": "find-me-1"})
    assert reply.status_code == 200
    until(lambda: "find-me-1" in server.log, "the request's line")
    assert not any(secret in server.log for secret in (*KEYS, "Once upon a time"))
    assert "latency profile loaded" in server.log, "the log from the start on"
