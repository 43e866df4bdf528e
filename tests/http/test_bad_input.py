"""A bad request is a 400 or 404 that names the field, and never reaches the engine."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from engine.errors import PromptError
from server.apis.bodies import ChatCompletionRequest
from server.apis.messages.bodies import MessagesRequest
from server.apis.responses.bodies import StoringRequest
from server.config import ServerConfig
from tests.support.fake import ByteTokenizer, FakeEngine
from tests.support.harness import CHAT, CHAT_PATH, TEXT, TEXT_PATH, allowed_tools, ask, asks

KEYS = {"message", "type", "param", "code"}


def refused(path: str, status: int = 400, engine: FakeEngine | None = None, **options: Any) -> dict[str, Any]:
    engine = engine or FakeEngine()
    reply = ask(engine, "POST", path, **options)
    assert reply.status_code == status, reply.text
    assert engine.submitted == []
    error: dict[str, Any] = reply.json()["error"]
    assert reply.json().keys() == {"error"}
    assert error.keys() == KEYS
    assert error["type"] == "invalid_request_error"
    assert len(reply.content) < 2048
    return error


def test_errors_name_no_classes_of_ours() -> None:
    assert refused(CHAT_PATH, json={"messages": [5]})["message"].endswith(": Input should be an object.")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[1]",
        b'"x"',
        b"null",
        b'{"model": NaN}',
        b'{"a": 1e999}',
        b'{"a": -1E+400}',
        b'{"a": ' + b"9" * 400 + b".0}",
        b'{"a": "\xff"}',
        b'{"a": "\\ud800"}',
        b"[" * 5000,
    ],
)
@pytest.mark.parametrize("path", [CHAT_PATH, TEXT_PATH])
def test_a_malformed_body_is_refused(path: str, raw: bytes) -> None:
    error = refused(path, content=raw, headers={"content-type": "application/json"})
    assert error["param"] is None
    assert "Content-Type" not in error["message"]


@pytest.mark.parametrize("media_type", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_that_is_not_declared_as_json_is_refused(media_type: str) -> None:
    """A page of another origin may send such bodies without a preflight request."""
    body = json.dumps(CHAT).encode()
    error = refused(CHAT_PATH, content=body, headers={"content-type": media_type} if media_type else {})
    assert "Content-Type" in error["message"]
    kept = {"content-type": "application/json; charset=utf-8"}
    assert ask(FakeEngine(), "POST", CHAT_PATH, content=body, headers=kept).status_code == 200


def long_engine() -> FakeEngine:
    """An engine whose context has room for more log-probabilities than a reply may have."""
    engine = FakeEngine(capacity=128)
    engine.info = replace(engine.info, max_model_len=8192)
    return engine


def test_a_reply_may_have_at_most_2_to_the_22_log_probabilities() -> None:
    many = CHAT | {"n": 128, "logprobs": True, "top_logprobs": 20}  # 2,688 for each token
    assert refused(CHAT_PATH, engine=long_engine(), json=many | {"max_tokens": 1561})["param"] == "logprobs"
    assert refused(CHAT_PATH, engine=long_engine(), json=many)["param"] == "logprobs"
    assert ask(long_engine(), "POST", CHAT_PATH, json=many | {"max_tokens": 1560}).status_code == 200


def test_log_probabilities_of_an_echoed_prompt_count() -> None:
    silent = TEXT | {"n": 128, "logprobs": 5, "max_tokens": 2}  # 768 for each token
    echo = silent | {"echo": True}
    assert refused(TEXT_PATH, engine=long_engine(), json=echo | {"prompt": "x" * 5460})["param"] == "logprobs"
    assert ask(long_engine(), "POST", TEXT_PATH, json=echo | {"prompt": "x" * 5459}).status_code == 200
    assert ask(long_engine(), "POST", TEXT_PATH, json=silent | {"prompt": "x" * 5460}).status_code == 200


def test_a_rendered_template_that_cannot_fit_is_refused_untokenised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ByteTokenizer, "render_chat", lambda *_, **__: "x" * 10**6)
    monkeypatch.setattr(ByteTokenizer, "encode", lambda *_, **__: pytest.fail("tokenised"))
    for path in ("/tokenize", CHAT_PATH):
        assert refused(path, json={"messages": CHAT["messages"]})["code"] == "context_length_exceeded"


def test_too_many_messages_are_refused() -> None:
    empty = {"role": "user", "content": ""}
    assert refused(CHAT_PATH, json=CHAT | {"messages": [empty] * 20000})["param"] == "messages"


def schema_format(schema: dict[str, Any], name: str = "answer") -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


GO_ON = {"continue_final_message": True, "messages": [{"role": "assistant", "content": "x"}]}
COMMON = [
    ({"max_tokens": -1}, "max_tokens"),
    ({"max_tokens": "5"}, "max_tokens"),
    ({"max_tokens": True}, "max_tokens"),
    ({"max_tokens": 1.5}, "max_tokens"),
    ({"temperature": -0.1}, "temperature"),
    ({"temperature": 2.1}, "temperature"),
    ({"temperature": True}, "temperature"),
    ({"temperature": "1"}, "temperature"),
    ({"top_p": -0.01}, "top_p"),
    ({"top_p": 1.01}, "top_p"),
    ({"top_k": -2}, "top_k"),
    ({"top_k": 1.5}, "top_k"),
    ({"n": 0}, "n"),
    ({"n": 129}, "n"),
    ({"seed": 2**63}, "seed"),
    ({"seed": -(2**63) - 1}, "seed"),
    ({"seed": False}, "seed"),
    ({"stop": ""}, "stop"),
    ({"stop": ["a", ""]}, "stop[1]"),
    ({"stop": ["a", 1]}, "stop[1]"),
    ({"stop": ["a"] * 5}, "stop"),
    ({"stop": 1}, "stop"),
    ({"stream": 1}, "stream"),
    ({"stream": "true"}, "stream"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ({"stream": True, "stream_options": 1}, "stream_options"),
    ({"ignore_eos": 0}, "ignore_eos"),
    ({"draft_policy": "medusa"}, "draft_policy"),
    ({"draft_policy": 1}, "draft_policy"),
    ({"model": 1}, "model"),
    ({"min_p": 1.1}, "min_p"),
    ({"min_p": -0.1}, "min_p"),
    ({"presence_penalty": 2.1}, "presence_penalty"),
    ({"presence_penalty": False}, "presence_penalty"),
    ({"frequency_penalty": -2.1}, "frequency_penalty"),
    ({"frequency_penalty": "1"}, "frequency_penalty"),
    ({"repetition_penalty": 0}, "repetition_penalty"),
    ({"repetition_penalty": -1}, "repetition_penalty"),
    ({"logit_bias": {"1": 101}}, "logit_bias.1"),
    ({"logit_bias": {"1": "5"}}, "logit_bias.1"),
    ({"logit_bias": {"256": 1}}, "logit_bias"),
    ({"logit_bias": {"-1": 1}}, "logit_bias"),
    ({"logit_bias": {"a": 1}}, "logit_bias"),
    ({"logit_bias": {"1_0": 1}}, "logit_bias"),
    ({"logit_bias": {"9" * 400: 1}}, "logit_bias"),
    ({"logit_bias": {"1": 1, "01": 2}}, "logit_bias"),
    ({"logit_bias": [1]}, "logit_bias"),
    ({"logit_bias": {str(i): "x" for i in range(1025)}}, "logit_bias"),
    ({"max_tokens": int("9" * 4300)}, "max_tokens"),
    ({"top_k": 10**30}, "top_k"),
    ({"repetition_penalty": 1e-320}, "repetition_penalty"),
    ({"stop_token_ids": [256]}, "stop_token_ids"),
    ({"stop_token_ids": [-1]}, "stop_token_ids[0]"),
    ({"stop_token_ids": [1] * 129}, "stop_token_ids"),
    ({"stop_token_ids": 1}, "stop_token_ids"),
    ({"stop": {}}, "stop"),
    ({"stop": "x" * 4097}, "stop"),
    ({"min_tokens": -1}, "min_tokens"),
    ({"min_tokens": 5, "max_tokens": 4}, "min_tokens"),
    ({"min_tokens": 2**31 - 1}, "min_tokens"),
    ({"skip_special_tokens": 1}, "skip_special_tokens"),
    ({"include_stop_str_in_output": "yes"}, "include_stop_str_in_output"),
    ({"response_format": "json_object"}, "response_format"),
    ({"response_format": {"type": "xml"}}, "response_format.type"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "response_format.json_schema.schema"),
    ({"response_format": schema_format({"enum": ["x" * 70_000]})}, "response_format"),
    ({"response_format": schema_format(deep(80))}, "response_format"),
    ({"response_format": schema_format({}, name="a b")}, "response_format.json_schema.name"),
    ({"response_format": schema_format({}) | {"shema": {}}}, "response_format.shema"),
    ({"response_format": {"type": "json_object", "schema": {}}}, "response_format.schema"),
    ({"response_format": schema_format({}) | {"type": "json_object"}}, "response_format.json_schema"),
]


def tool(**parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": parameters}}


CHAT_ONLY: list[tuple[dict[str, Any], str]] = [
    ({"messages": [{"role": "user", "content": {"a": 1}}]}, "messages[0].content"),
    ({"tool_choice": {"type": "custom"}, "tools": [tool()]}, "tool_choice.type"),
    ({"tool_choice": {"type": "allowed_tools"}, "tools": [tool()]}, "tool_choice.allowed_tools"),
    ({"tool_choice": allowed_tools("f", mode="none"), "tools": [tool()]}, "tool_choice.allowed_tools.mode"),
    ({"tool_choice": allowed_tools(), "tools": [tool()]}, "tool_choice.allowed_tools.tools"),
    ({"tool_choice": allowed_tools("f", "g"), "tools": [tool()]}, "tool_choice.allowed_tools.tools"),
    ({"tool_choice": allowed_tools("f")}, "tool_choice"),
    ({"tool_choice": {"type": "function"}, "tools": [tool()]}, "tool_choice.function"),
    ({"tools": [tool(description="x" * 70_000)]}, "tools[0].function.parameters"),
    ({"tools": [tool(description="x" * 60_000)] * 5}, "tools"),
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": "Hi"}, "messages"),
    ({"messages": ["Hi"]}, "messages[0]"),
    ({"messages": [{"content": "Hi"}]}, "messages[0].role"),
    ({"messages": [{"role": "robot", "content": "Hi"}]}, "messages[0].role"),
    ({"messages": [{"role": "user"}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    ({"messages": [*CHAT["messages"], {"role": "user", "content": [{"type": "text"}]}]}, "messages[1].content[0].text"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        "messages[0].content[0].type",
    ),
    ({"max_completion_tokens": 0}, "max_completion_tokens"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"logprobs": 1}, "logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"logprobs": True, "top_logprobs": -1}, "top_logprobs"),
    ({"top_logprobs": 2}, "top_logprobs"),
    ({"tools": [{"type": "retrieval"}]}, "tools[0].type"),
    ({"tools": [{"type": "function"}]}, "tools[0].function"),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
    ({"tools": [{"type": "function", "function": {"name": "f", "parameters": 5}}]}, "tools[0].function.parameters"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}] * 2}, "tools"),
    ({"tools": [{"type": "function", "function": {"name": f"f{i}"}} for i in range(129)]}, "tools"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
    ({"chat_template_kwargs": "x"}, "chat_template_kwargs"),
    ({"continue_final_message": True}, "continue_final_message"),
    ({"prediction": "x"}, "prediction"),
    ({"prediction": {"type": "text", "content": "x"}}, "prediction.type"),
    ({"prediction": {"type": "content", "content": []}}, "prediction.content"),
    (GO_ON | {"add_generation_prompt": True}, "continue_final_message"),
    ({"messages": [{"role": "assistant", "tool_calls": 5}]}, "messages[0].tool_calls"),
    ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0]"),
    ({"include_reasoning": False}, "include_reasoning"),
]
TEXT_ONLY: list[tuple[dict[str, Any], str]] = [
    ({"prompt": None}, "prompt"),
    ({"prompt": ""}, "prompt"),
    ({"prompt": []}, "prompt"),
    ({"prompt": [[]]}, "prompt[0]"),
    ({"prompt": ["a", ""]}, "prompt[1]"),
    ({"prompt": 5}, "prompt"),
    ({"prompt": {"a": 1}}, "prompt"),
    ({"prompt": [1, True]}, "prompt[0]"),
    ({"prompt": [1, 256]}, "prompt[1]"),
    ({"prompt": [-1]}, "prompt[0]"),
    ({"prompt": [[1], [1, 2, 999]]}, "prompt[1][2]"),
    ({"prompt": [[1], "a", 1.5]}, "prompt[2]"),
    ({"prompt": ["a"] * 2049}, "prompt"),
    ({"logprobs": 6}, "logprobs"),
    ({"logprobs": True}, "logprobs"),
    ({"echo": 1}, "echo"),
    ({"max_tokens": -1}, "max_tokens"),
]


@pytest.mark.parametrize(("change", "param"), [*COMMON, *CHAT_ONLY])
def test_a_bad_chat_request_is_refused_by_field(change: dict[str, Any], param: str) -> None:
    assert refused(CHAT_PATH, json=CHAT | change)["param"] == param


@pytest.mark.parametrize(("change", "param"), [*COMMON, *TEXT_ONLY])
def test_a_bad_completion_request_is_refused_by_field(change: dict[str, Any], param: str) -> None:
    assert refused(TEXT_PATH, json=TEXT | change)["param"] == param


NEUTRAL: dict[str, Any] = {
    "min_p": 0.0,
    "min_tokens": 0,
    "stop_token_ids": [],
    "presence_penalty": 0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "logit_bias": {},
    "echo": False,
    "response_format": {"type": "text"},
    "prediction": None,
    "skip_special_tokens": True,
    "bad_words": [],
    "repeat_last_n": 64,
    "reasoning_format": "auto",
    "stop": [],
    "store": True,
    "service_tier": "auto",
    "user": "me",
    "metadata": {"a": "b"},
}
NEUTRAL_CHAT = {
    "logprobs": False,
    "top_logprobs": 0,
    "tools": [],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "add_generation_prompt": True,
    "modalities": ["text"],
}


def test_unsupported_parameters_with_neutral_values_are_accepted() -> None:
    assert ask(FakeEngine(), "POST", CHAT_PATH, json=CHAT | NEUTRAL | NEUTRAL_CHAT).status_code == 200
    body = TEXT | NEUTRAL | {"suffix": "", "best_of": 2, "n": 2, "logprobs": None}
    assert ask(FakeEngine(), "POST", TEXT_PATH, json=body).status_code == 200


def test_penalties_over_a_window_of_tokens_are_refused() -> None:
    error = refused(CHAT_PATH, json=CHAT | {"repeat_last_n": 64, "presence_penalty": 0.5})
    assert error["param"] == "repeat_last_n"
    for body in ({"repeat_last_n": -1, "presence_penalty": 0.5}, {"repeat_last_n": 64, "repetition_penalty": 1}):
        assert ask(FakeEngine(), "POST", CHAT_PATH, json=CHAT | body).status_code == 200


def test_unknown_fields_are_ignored_with_one_warning_each(caplog: pytest.LogCaptureFixture) -> None:
    request = ("POST", CHAT_PATH, {"json": CHAT | {"flavour": 1, "colour": 2}})
    with caplog.at_level(logging.WARNING):
        assert [reply.status_code for reply in asks(FakeEngine(), request, request)] == [200, 200]
    assert len([record for record in caplog.records if "flavour" in record.getMessage()]) == 1
    assert len([record for record in caplog.records if "colour" in record.getMessage()]) == 1


@pytest.mark.parametrize(("path", "body"), [(CHAT_PATH, CHAT), (TEXT_PATH, TEXT)])
def test_an_unknown_model_is_a_404(path: str, body: dict[str, Any]) -> None:
    error = refused(path, 404, json=body | {"model": "gpt-" + "x" * 5000})
    assert (error["code"], error["param"]) == ("model_not_found", "model")


def test_a_request_without_a_model_gets_the_served_one() -> None:
    reply = ask(FakeEngine(), "POST", CHAT_PATH, json={"messages": CHAT["messages"]})
    assert reply.json()["model"] == "fake/model"


def test_n_is_bounded_by_the_setting() -> None:
    reply = ask(FakeEngine(), "POST", TEXT_PATH, json=TEXT | {"n": 3}, config=ServerConfig(max_n=2))
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "n"


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (TEXT_PATH, TEXT | {"prompt": "x" * 64}, "prompt"),
        (TEXT_PATH, TEXT | {"prompt": "x" * 49}, "prompt"),  # 16 tokens by default
        (TEXT_PATH, TEXT | {"prompt": ["x", [1] * 60], "max_tokens": 5}, "prompt"),
        (TEXT_PATH, TEXT | {"prompt": "x" * 1000}, "prompt"),
        (CHAT_PATH, CHAT | {"max_tokens": 60}, "messages"),
        (CHAT_PATH, CHAT | {"messages": [{"role": "user", "content": "x" * 61}]}, "messages"),
        (CHAT_PATH, CHAT | {"messages": [{"role": "user", "content": "x" * 1000}]}, "messages"),
    ],
)
def test_a_request_longer_than_the_context_is_refused(path: str, body: dict[str, Any], param: str) -> None:
    error = refused(path, json=body)
    assert (error["code"], error["param"]) == ("context_length_exceeded", param)
    assert error["message"].startswith("This model's maximum context length is 64 tokens")


def test_the_last_token_of_the_context_can_be_used() -> None:
    assert ask(FakeEngine(), "POST", TEXT_PATH, json=TEXT | {"prompt": "x" * 48}).status_code == 200
    long = CHAT | {"messages": [{"role": "user", "content": "x" * 60}]}
    assert ask(FakeEngine(), "POST", CHAT_PATH, json=long).status_code == 200


class Untouched:
    """A tokenizer that must not be used."""

    longest_token = 4


def test_a_prompt_that_is_surely_too_long_is_refused_untokenised() -> None:
    engine = FakeEngine()
    engine.tokenizer = Untouched()  # type: ignore[assignment]
    for path, body in (
        (TEXT_PATH, TEXT | {"prompt": "x" * 257}),
        (CHAT_PATH, CHAT | {"messages": [{"role": "user", "content": "x" * 257}]}),
    ):
        assert ask(engine, "POST", path, json=body).json()["error"]["code"] == "context_length_exceeded"


def test_errors_echo_little_of_the_request() -> None:
    refused(CHAT_PATH, json=CHAT | {"draft_policy": "é" * 3000})
    refused(CHAT_PATH, json=CHAT | {"messages": [{"role": "user", "content": [{"type": "x" * 9000}]}]})


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (MessagesRequest, {"max_tokens": 5, "messages": [1] * 1000}),
        (MessagesRequest, {"max_tokens": 5, "messages": [{"role": "user", "content": [{}, *[1] * 1000]}]}),
        (MessagesRequest, {"max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}], "tools": [{}] * 1000}),
        (StoringRequest, {"input": [{}] * 1000}),
        (StoringRequest, {"input": [{"role": "user", "content": [1] * 1000}]}),
        (StoringRequest, {"input": "Hi", "tools": [{"type": "function"}] * 1000}),
        (StoringRequest, {"input": "Hi", "tools": [{"type": "namespace", "name": "a", "tools": [1] * 1000}]}),
        (StoringRequest, {"input": "Hi", "include": [1] * 1000}),
        (StoringRequest, {"input": "Hi", "tool_choice": {"type": "allowed_tools", "tools": [1] * 1000}}),
        (ChatCompletionRequest, {"messages": [{}] * 1000}),
    ],
)
def test_the_first_wrong_item_of_a_list_ends_the_check(kind: type[BaseModel], body: dict[str, Any]) -> None:
    """An error for each of 200,000 items would take seconds, in which nothing else runs."""
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(body)
    assert caught.value.error_count() < 10


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (CHAT_PATH, CHAT, "messages"),
        (f"{CHAT_PATH}/render", CHAT, "messages"),
        ("/tokenize", {"messages": CHAT["messages"]}, "messages"),
        ("/v1/responses", {"input": "Hi"}, "input"),
    ],
)
def test_what_the_template_refuses_is_the_field_with_the_prompt(path: str, body: dict[str, Any], param: str) -> None:
    engine = FakeEngine()

    def refuse(*arguments: Any, **options: Any) -> str:
        raise PromptError("The chat template rejects these messages: no.")

    vars(engine.tokenizer)["render_chat"] = refuse
    assert refused(path, engine=engine, json=body)["param"] == param


def test_a_number_beyond_a_float_is_no_json_wherever_it_is() -> None:
    for number in ("9" * 250 + "e99", "1e400"):
        raw = b'{"input": "Hi", "tools": [{"type": "function", "name": "f", "parameters": {"const": {"a": %s}}}]}'
        headers = {"content-type": "application/json"}
        error = refused("/v1/responses", content=raw % number.encode(), headers=headers)
        assert "not valid JSON" in error["message"]
