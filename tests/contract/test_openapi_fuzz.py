"""Recorded requests, and random ones by schemathesis, get only replies that `/openapi.json` documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi import checks

from server.apis import replies
from server.apis.messages import replies as message_replies
from server.config import ServerConfig
from tests.support import REPOSITORY
from tests.support.examples import examples
from tests.support.fake import INFO, FakeEngine
from tests.support.harness import Live
from tests.support.serving import MODEL, Process

GET = ["/v1/models", "/health", "/ping", "/live", "/version", "/metrics", "/"]
POST = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "stream": True},
    "/v1/completions": {"prompt": ["Hi", "you"], "max_tokens": 2, "logprobs": 1},
    "/v1/chat/completions/render": {"messages": [{"role": "user", "content": "Hi"}]},
    "/v1/completions/render": {"prompt": "Hi"},
    "/v1/responses": {"input": "Hi", "max_output_tokens": 2},
    "/v1/responses/input_tokens": {"input": "Hi"},
    "/v1/messages": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2},
    "/v1/messages/count_tokens": {"messages": [{"role": "user", "content": "Hi"}]},
    "/tokenize": {"prompt": "Hi", "return_token_strs": True},
    "/detokenize": {"tokens": [5, 6, 7]},
}
MISSING = ["/v1/models/{model_id}", "/v1/responses/{response_id}"]  # what random ids do not find
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
RECORDED = [json.loads(line) for line in (REPOSITORY / "tests" / "corpus" / "requests.jsonl").read_text().splitlines()]
CONTEXT = 128  # tokens: the most that any request costs
REPLIES = replies, message_replies


@pytest.fixture(scope="module", params=["fake", pytest.param("real", marks=pytest.mark.nightly)])
def small(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server whose short context keeps every request quick; with a fake engine, or a real one."""
    if request.param == "fake":
        engine = FakeEngine()
        engine.info = replace(INFO, max_model_len=CONTEXT)
        live = Live(engine, ServerConfig(served_model_name=(MODEL,), max_n=2, response_store=1 << 20))
        yield live.client
        assert live.client.get("/health").status_code == 200
        assert not engine.running
        live.close()
        return
    request.getfixturevalue("shared_server")  # which measures the profile
    flags = ("--max-model-len", str(CONTEXT), "--max-n", "2", "--response-store", "1MiB")
    directory = request.getfixturevalue("profile_dir")
    with Process(tmp_path_factory.mktemp("fuzz") / "stderr", "--profile-dir", str(directory), *flags) as process:
        yield process.http
        assert process.http.get("/health").status_code == 200
        assert process.requests == 0


@pytest.fixture(scope="module")
def document(small: httpx.Client) -> dict[str, Any]:
    """The server's document, made strict: replies may have no keys that it does not name."""
    document: dict[str, Any] = small.get("/openapi.json").json()
    for name, schema in document["components"]["schemas"].items():
        if any(hasattr(module, name) for module in REPLIES):
            schema["additionalProperties"] = False
    return document


@pytest.fixture(scope="module")
def documented(document: dict[str, Any]) -> BaseSchema:
    return schemathesis.openapi.from_dict(document)


def check_end(path: str, kind: str, content: bytes) -> None:
    """Check that a stream has the end of its API."""
    if kind.startswith("text/event-stream"):
        ends = {"/v1/responses": b'"status":"', "/v1/messages": b"message_stop"}
        assert ends.get(path, b"data: [DONE]") in content.strip().rpartition(b"\n")[2]


def fuzz(
    client: httpx.Client, schema: BaseSchema, operation: tuple[str, str], mode: GenerationMode, count: int
) -> set[int]:
    """Send `count` requests and check every reply. Returns the statuses."""
    method, path = operation
    seen: set[int] = set()
    session, url = requests.Session(), str(client.base_url).rstrip("/")

    @settings(examples(count), suppress_health_check=list(HealthCheck))
    @given(schema[path][method].as_strategy(generation_mode=mode))
    def check(case: schemathesis.Case) -> None:
        reply = session.request(**case.as_transport_kwargs(base_url=url))  # `call` reads only a stream's beginning
        case.validate_response(reply, checks=CHECKS)
        seen.add(reply.status_code)
        check_end(path, reply.headers["content-type"], reply.content)

    with session:
        check()
    return seen


def test_every_endpoint_is_tried(document: dict[str, Any]) -> None:
    assert {path: set(operations) for path, operations in document["paths"].items()} == {
        **{path: {"get"} for path in (*GET, *MISSING)},
        **{path: {"post"} for path in (*POST, "/reset_calibration")},
        "/v1/responses/{response_id}": {"get", "delete"},
    }


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        *(("GET", path, 200) for path in GET),
        *(("GET", path, 404) for path in MISSING),
        ("DELETE", "/v1/responses/{response_id}", 404),
        ("POST", "/reset_calibration", 200),
    ],
)
def test_random_requests_without_a_body_get_documented_replies(
    small: httpx.Client, documented: BaseSchema, method: str, path: str, status: int
) -> None:
    assert fuzz(small, documented, (method, path), GenerationMode.POSITIVE, 20) == {status}


@pytest.mark.parametrize("path", POST)
def test_recorded_requests_get_documented_replies(small: httpx.Client, documented: BaseSchema, path: str) -> None:
    statuses = set()
    recorded = [request.get("body") for request in RECORDED if request["path"] == path]
    for body in (POST[path], *recorded):
        reply = small.post(path, json=body)
        documented[path]["POST"].Case(body=body).validate_response(reply, checks=CHECKS)
        check_end(path, reply.headers["content-type"], reply.content)
        statuses.add(reply.status_code)
    assert 200 in statuses


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("path", POST)
def test_random_requests_of_any_values_get_documented_replies(
    small: httpx.Client, documented: BaseSchema, path: str, mode: GenerationMode
) -> None:
    """Requests that the document does not allow are refused. Those that it allows may be, for their values."""
    statuses = fuzz(small, documented, ("POST", path), mode, 50)
    assert 400 in statuses or mode is GenerationMode.POSITIVE


@pytest.mark.parametrize("path", POST)
def test_bodies_of_any_bytes_get_documented_replies(small: httpx.Client, documented: BaseSchema, path: str) -> None:
    valid = json.dumps(POST[path]).encode()
    place = st.integers(0, len(valid))

    @examples(40)
    @given(place, place, st.binary(max_size=5) | st.sampled_from([b"null", b"[", b"1e999", b"-1", b'"', b"\\ud800"]))
    def check(first: int, last: int, put: bytes) -> None:
        body = valid[: min(first, last)] + put + valid[max(first, last) :]
        reply = small.post(path, content=body, headers={"content-type": "application/json"})
        assert reply.status_code in (200, 400, 404)
        documented[path]["POST"].validate_response(reply)

    check()
