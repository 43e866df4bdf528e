"""Each generation request is logged as one line of text or JSON, without prompts unless set."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest

from engine.logs import JSONFormatter, TextFormatter
from server.config import ServerConfig
from tests.support.fake import FakeEngine
from tests.support.harness import CHAT, CHAT_PATH, TEXT, TEXT_PATH, Live, ask, asks


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """The facts of the requests logged so far."""
    caplog.set_level(logging.INFO, "knapserve.access")
    return lambda: [record.facts for record in caplog.records if record.name == "knapserve.access"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("stream", [False, True])
def test_the_line_of_a_request_agrees_with_its_reply(lines: Any, stream: bool) -> None:
    reply = ask(FakeEngine(), "POST", TEXT_PATH, json=TEXT | {"stream": stream}, headers={"x-request-id": "mine"})
    (facts,) = lines()
    assert facts["request_id"] == reply.headers["x-request-id"] == "mine"
    assert (facts["status"], facts["stream"], facts["choices"]) == (200, stream, 1)
    assert facts["id"] in reply.text
    assert facts["finish_reason"] == "stop"
    assert 0 < facts["first_token"] <= facts["seconds"]
    if not stream:
        usage = reply.json()["usage"]
        assert facts["prompt_tokens"] == usage["prompt_tokens"]
        assert facts["completion_tokens"] == usage["completion_tokens"]
        assert facts["cached_tokens"] == usage["prompt_tokens_details"]["cached_tokens"]


def test_the_line_of_a_request_sums_its_choices(lines: Any) -> None:
    reply = ask(FakeEngine(), "POST", CHAT_PATH, json=CHAT | {"n": 3})
    (facts,) = lines()
    assert facts["choices"] == 3
    assert facts["completion_tokens"] == reply.json()["usage"]["completion_tokens"]
    assert facts["finish_reason"] == "stop"


def test_refused_requests_are_logged_and_probes_are_not(lines: Any) -> None:
    refused = ("POST", CHAT_PATH, {"json": CHAT | {"temperature": 9}})
    asks(FakeEngine(), ("GET", "/health", {}), refused, ("GET", "/metrics", {}), ("GET", "/v1/models", {}))
    assert [facts["status"] for facts in lines()] == [400]
    config = ServerConfig(api_key=("one",), max_body_size=10)
    headers = {"authorization": "Bearer one"}
    asks(
        FakeEngine(),
        ("POST", CHAT_PATH, {"json": CHAT}),
        ("POST", CHAT_PATH, {"json": CHAT, "headers": headers}),
        config=config,
    )
    assert [facts["status"] for facts in lines()] == [400, 401, 413]
    assert [facts["error"] for facts in lines()] == ["invalid_request_error", "invalid_api_key", "request_too_large"]
    assert [facts.get("param") for facts in lines()] == ["temperature", None, None]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"messages": [{"role": "user", "content": [{"type": "something private"}]}]}, "messages"),
        ({"logit_bias": {"something private": 1}}, "logit_bias"),
        ({"model": "something private"}, "model"),
        ({"draft_policy": "something private"}, "draft_policy"),
        ({"something private": {"something private": 1}, "n": "something private"}, "n"),
    ],
)
def test_the_line_of_a_refusal_names_the_field_but_not_its_value(lines: Any, wrong: dict[str, Any], field: str) -> None:
    assert ask(FakeEngine(), "POST", CHAT_PATH, json=CHAT | wrong).status_code in (400, 404)
    (facts,) = lines()
    assert facts["param"] == field
    assert "private" not in str(facts)


@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_is_logged_with_the_id_of_its_request(
    lines: Any, caplog: pytest.LogCaptureFixture, stream: bool
) -> None:
    engine = FakeEngine()
    engine.fail_at = (1, ValueError("a bug"))
    ask(engine, "POST", TEXT_PATH, json=TEXT | {"stream": stream}, headers={"x-request-id": "mine"})
    (facts,) = lines()
    assert facts["error"] == "internal"
    (failure,) = [record for record in caplog.records if record.exc_info]
    assert failure.facts["request_id"] == "mine"  # type: ignore[attr-defined]


def test_prompts_are_logged_only_by_setting(lines: Any) -> None:
    for config in (ServerConfig(), ServerConfig(log_prompts=True), ServerConfig(log_requests=False)):
        ask(FakeEngine(), "POST", TEXT_PATH, json=TEXT | {"prompt": "something private"}, config=config)
    silent, asked = lines()
    assert "something private" not in str(silent)
    assert asked["prompts"] == ["something private"]


def record(message: str, facts: dict[str, Any], *, error: bool = False) -> logging.LogRecord:
    made = logging.LogRecord("knapserve.access", logging.INFO, "", 0, message, (), None)
    made.facts = facts
    if error:
        try:
            raise ValueError("broken")
        except ValueError:
            made.exc_info = sys.exc_info()
    return made


def test_json_lines_hold_facts_and_tracebacks() -> None:
    facts = {"request_id": "a", "seconds": 0.25, "prompts": ['two\nlines "quoted"', "\u2028"]}
    line = JSONFormatter().format(record("POST /x", facts, error=True))
    assert "\n" not in line
    entry = json.loads(line)
    assert {name: entry[name] for name in facts} == facts
    assert (entry["level"], entry["logger"], entry["message"]) == ("info", "knapserve.access", "POST /x")
    assert entry["time"].endswith("Z")
    assert "ValueError: broken" in entry["exception"]


@pytest.mark.parametrize("style", ["text", "json"])
def test_the_ready_line_says_what_is_served(
    live: Callable[..., Live], capsys: pytest.CaptureFixture[str], style: str
) -> None:
    url = live(FakeEngine(), log_format=style).url
    line = capsys.readouterr().out
    facts = {"policy": "knapspec", "device": "cpu", "dtype": "float32", "profile": "fake.json"}
    if style == "json":
        entry = json.loads(line)
        assert entry.items() >= {**facts, "model": "fake/model", "url": url, "level": "info"}.items()
    else:
        assert all(f"{name} {value}" in line for name, value in facts.items())
        assert line.startswith(f"knapserve: serving fake/model on {url} (")


def test_text_lines_quote_values_that_are_not_one_word() -> None:
    facts = {"id": "a", "seconds": 0.123456, "prompts": ["two\nlines"], "why": "it is", "empty": "", "stream": True}
    line = TextFormatter().format(record("POST /x", facts))
    assert "\n" not in line
    said = r"""POST /x id=a seconds=0.1235 prompts=["two\nlines"] why="it is" empty="" stream=true"""
    assert line.endswith(f"INFO knapserve.access: {said}")
