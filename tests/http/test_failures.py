"""Failures of the engine, before and after the first byte, in process."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import httpx
import pytest

from engine.errors import (
    ContextLengthError,
    EngineDeadError,
    EngineDrainingError,
    KnapServeError,
    ModelError,
    QueueFullError,
    RequestError,
    RequestFailedError,
    UnknownPolicyError,
)
from server.config import ServerConfig
from server.edge.errors import as_api_error
from tests.support.fake import FakeEngine
from tests.support.harness import CHAT, CHAT_PATH, TEXT, TEXT_PATH, ask, sse

REFUSALS: list[tuple[Exception, int, str, str | None, str | None]] = [
    (RequestError("no", param="top_k"), 400, "invalid_request_error", "top_k", None),
    (UnknownPolicyError("x", ("y",)), 400, "invalid_request_error", "draft_policy", None),
    (ContextLengthError(8, 9, param="prompt"), 400, "invalid_request_error", "prompt", "context_length_exceeded"),
    (QueueFullError(4, retry_after=3), 429, "rate_limit_error", None, "queue_full"),
    (EngineDrainingError(), 503, "service_unavailable_error", None, "draining"),
    (EngineDeadError("secret"), 503, "service_unavailable_error", None, "engine_unavailable"),
    (RequestFailedError("secret"), 500, "server_error", None, "internal"),
    (ModelError("secret"), 500, "server_error", None, "internal"),
    (ZeroDivisionError("secret"), 500, "server_error", None, "internal"),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("error", "status", "type", "param", "code"), REFUSALS)
def test_each_error_of_the_engine_has_its_status_and_type(
    error: Exception, status: int, type: str, param: str | None, code: str | None, streamed: bool
) -> None:
    engine = FakeEngine()
    engine.refuse = error
    reply = ask(engine, "POST", TEXT_PATH, json=TEXT | {"stream": streamed})
    assert reply.status_code == status
    body = reply.json()["error"]
    assert (body["type"], body["param"], body["code"]) == (type, param, code)
    assert "secret" not in reply.text
    assert reply.headers.get("retry-after") == {429: "3", 503: "5"}.get(status)


def test_a_policy_that_is_not_available_is_refused_with_the_reason() -> None:
    engine = FakeEngine()
    engine.info = replace(engine.info, unavailable_policies=(("self-sd", "run `knapserve tune`"),))
    reply = ask(engine, "POST", CHAT_PATH, json=CHAT | {"draft_policy": "self-sd"})
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "draft_policy"
    assert "'self-sd' is not available: run `knapserve tune`." in reply.json()["error"]["message"]


def test_only_internal_errors_of_the_engine_are_a_500(caplog: pytest.LogCaptureFixture) -> None:
    """A new error class of the engine that has no mapping fails this test."""
    pending, unmapped = [KnapServeError], set()
    with caplog.at_level(logging.CRITICAL):
        while pending:
            kind = pending.pop()
            pending += kind.__subclasses__()
            error = kind.__new__(kind)
            Exception.__init__(error, "x")
            error.__dict__ |= {"param": None, "retry_after": 1, "requested": 9, "limit": 8}
            if as_api_error(error).status == 500:
                unmapped.add(kind.__name__)
    # The others end the process before it serves, or are the engine's own fault.
    before = {"ConfigError", "ModelError", "PolicyUnavailableError", "ProfileMismatchError", "TunedFileError"}
    assert unmapped == {"KnapServeError", "RequestFailedError", *before}


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("error", [EngineDeadError("secret"), ZeroDivisionError("secret")])
@pytest.mark.parametrize(("path", "body"), [(CHAT_PATH, CHAT), (TEXT_PATH, TEXT)])
def test_a_failure_after_the_first_token_is_an_error_chunk(
    path: str, body: dict[str, Any], error: Exception, n: int
) -> None:
    engine = FakeEngine()
    engine.fail_at = (1, error)
    reply = ask(engine, "POST", path, json=body | {"stream": True, "n": n, "stream_options": {"include_usage": True}})
    assert reply.status_code == 200
    *chunks, failure, done = sse(reply.content)
    assert done == "[DONE]"
    assert failure.keys() == {"error"}
    assert failure["error"].keys() == {"message", "type", "param", "code"}
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks)
    assert "secret" not in reply.text
    assert engine.running == set()


@pytest.mark.parametrize("streamed", [False, True])
def test_a_failure_before_the_first_token_is_a_503(streamed: bool) -> None:
    engine = FakeEngine()
    engine.fail_at = (0, EngineDeadError("secret"))
    reply = ask(engine, "POST", CHAT_PATH, json=CHAT | {"stream": streamed, "n": 3})
    assert reply.status_code == 503
    assert reply.json()["error"]["code"] == "engine_unavailable"
    assert len(engine.cancelled) == 3


def test_a_whole_reply_that_fails_midway_is_a_503() -> None:
    engine = FakeEngine()
    engine.fail_at = (1, EngineDeadError("secret"))
    assert ask(engine, "POST", CHAT_PATH, json=CHAT).status_code == 503


def test_events_that_end_without_a_finish_reason_are_a_503() -> None:
    engine = FakeEngine(())
    assert ask(engine, "POST", CHAT_PATH, json=CHAT).status_code == 503


@pytest.mark.parametrize("streamed", [False, True])
def test_a_queue_that_fills_midway_cancels_the_choices_submitted_so_far(streamed: bool) -> None:
    engine = FakeEngine(capacity=2)
    reply = ask(engine, "POST", CHAT_PATH, json=CHAT | {"n": 3, "stream": streamed})
    assert reply.status_code == 429
    assert int(reply.headers["retry-after"]) == 3
    assert [request.id for request in engine.submitted] == engine.cancelled
    assert len(engine.cancelled) == 2


def test_choices_that_do_not_fit_the_queue_are_refused_before_any_is_submitted() -> None:
    engine = FakeEngine()
    engine.info = replace(engine.info, max_num_seqs=2, max_queued=1)
    never = ask(engine, "POST", CHAT_PATH, json=CHAT | {"n": 4})
    assert (never.status_code, never.json()["error"]["param"]) == (400, "n")
    never = ask(engine, "POST", TEXT_PATH, json=TEXT | {"prompt": ["a", "b", "c", "d"]})
    assert (never.status_code, never.json()["error"]["param"]) == (400, "prompt")
    engine.running = {"another"}
    later = ask(engine, "POST", CHAT_PATH, json=CHAT | {"n": 3})
    assert (later.status_code, later.json()["error"]["code"]) == (429, "queue_full")
    assert int(later.headers["retry-after"]) > 0
    assert not engine.submitted
    assert ask(engine, "POST", CHAT_PATH, json=CHAT | {"n": 2}).status_code == 200


def test_a_key_may_fill_its_share_of_the_queue_and_leaves_the_rest_to_others() -> None:
    engine = FakeEngine()
    engine.info = replace(engine.info, max_num_seqs=3, max_queued=1)
    config = ServerConfig(api_key=("one", "two"))

    def choices(n: int) -> httpx.Response:
        return ask(
            engine, "POST", CHAT_PATH, json=CHAT | {"n": n}, config=config, headers={"authorization": "Bearer two"}
        )

    never = choices(4)
    assert (never.status_code, never.json()["error"]["param"]) == (400, "n")
    assert choices(3).status_code == 200
    engine.running = {"a", "b", "c"}  # of the other key
    assert choices(1).status_code == 200
    assert choices(2).status_code == 429


def test_unexpected_errors_are_logged_but_not_sent_to_the_client(caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeEngine()
    engine.refuse = ZeroDivisionError("secret")
    reply = ask(engine, "POST", CHAT_PATH, json=CHAT, headers={"x-request-id": "mine"})
    assert "secret" not in json.dumps(reply.json())
    assert reply.headers["x-request-id"] == "mine"
    (record,) = [record for record in caplog.records if record.exc_info]
    assert record.facts["request_id"] == "mine"  # type: ignore[attr-defined]
    assert "secret" in str(record.exc_info)
