"""Anthropic's Messages API: its events describe the complete message, and its requests are chat requests."""

from __future__ import annotations

from typing import Any

import pydantic_core
import pytest

from engine.errors import QueueFullError, RequestFailedError
from server.config import ServerConfig
from tests.support.harness import CHAT_PATH, ask
from tests.support.responding import MESSAGES
from tests.support.speaking import ANSWERS, CALL, RecordingEngine, TalkingEngine

reply_to, events_of = MESSAGES.reply_to, MESSAGES.events_of
PATH, COUNT_PATH = "/v1/messages", "/v1/messages/count_tokens"
HI = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 400}
WEATHER = {"name": "weather", "description": "Of a city.", "input_schema": {"type": "object", "properties": {}}}
KINDS = {"message": "text", "reasoning": "thinking", "function_call": "tool_use"}
FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def without_ids(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in block.items() if k not in ("id", "signature")} for block in content]


@pytest.mark.parametrize("limit", [4, 9, 25, 400])
@pytest.mark.parametrize(("answer", "kinds"), ANSWERS.values(), ids=ANSWERS)
def test_events_describe_the_complete_message(answer: str, kinds: list[str], limit: int) -> None:
    body = HI | {"max_tokens": limit, "tools": [WEATHER]}
    message = reply_to(TalkingEngine(answer), body)
    events = events_of(ask(TalkingEngine(answer), "POST", PATH, json=body | {"stream": True}).content)
    start, *blocks, delta, stop = events
    assert [start["type"], delta["type"], stop["type"]] == ["message_start", "message_delta", "message_stop"]
    content: list[dict[str, Any]] = []
    texts: list[str] = []
    for event in blocks:
        if event["type"] == "content_block_start":
            content.append(event["content_block"])
            texts.append("")
        assert event["index"] == len(content) - 1, "blocks come one after the other"
        if event["type"] == "content_block_delta":
            change = event["delta"]
            if change["type"] == "signature_delta":
                content[-1]["signature"] = change["signature"]
            else:
                texts[-1] += change[FIELDS[change["type"]]]
    for block, text in zip(content, texts, strict=True):
        if block["type"] == "tool_use":
            block["input"] = pydantic_core.from_json(text or "{}", allow_partial="trailing-strings")
        else:
            block[block["type"]] = text
    assert without_ids(content) == without_ids(message["content"])
    assert delta["delta"] == {"stop_reason": message["stop_reason"], "stop_sequence": None}
    assert delta["usage"] == message["usage"]
    if message["stop_reason"] == "max_tokens":
        return
    assert [block["type"] for block in content] == [KINDS[kind] for kind in kinds if answer]
    assert message["stop_reason"] == ("tool_use" if "function_call" in kinds else "end_turn")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ('"x y"', {"INVALID_JSON": "x y"}),
        ('[{"a": 1}]', {"INVALID_JSON": '[{"a": 1}]'}),
        ("5", {"INVALID_JSON": "5"}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('" "', {}),
        ("null", {}),
        ("[NaN]", {"INVALID_JSON": "[NaN]"}),
        ('{"a": "b', {"a": "b"}),
        ('{"a": 1, "b', {"a": 1}),
    ],
)
def test_arguments_that_are_no_complete_object_are_kept(arguments: str, found: Any) -> None:
    """The stream describes the same input."""
    end = "" if arguments.startswith("{") else "}</tool_call>"
    text = f'{CALL}<tool_call>{{"name": "weather", "arguments": {arguments}{end}'
    body = HI | {"tools": [WEATHER]}
    assert reply_to(TalkingEngine(text), body)["content"][1]["input"] == found
    events = events_of(ask(TalkingEngine(text), "POST", PATH, json=body | {"stream": True}).content)
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta" and event["index"] == 1]
    said = "".join(delta["partial_json"] for delta in deltas)
    assert pydantic_core.from_json(said or "{}", allow_partial="trailing-strings") == found


@pytest.mark.parametrize("arguments", ['{"a": 1e999}', '{"a": NaN}', '{"a": b}'])
def test_arguments_that_no_json_can_express_are_text(arguments: str) -> None:
    engine = TalkingEngine(f'<tool_call>{{"name": "weather", "arguments": {arguments}}}</tool_call>')
    block = reply_to(engine, HI | {"tools": [WEATHER]})["content"][0]
    assert block["input"] == {"INVALID_JSON": arguments}


def test_usage_separates_cached_tokens() -> None:
    usage = reply_to(TalkingEngine(), HI)["usage"]
    count = ask(TalkingEngine(), "POST", COUNT_PATH, json={"messages": HI["messages"]}).json()
    assert usage["cache_read_input_tokens"] == 2
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] == count["input_tokens"]
    assert usage["output_tokens"] == 2


def test_blocks_become_the_messages_of_a_chat() -> None:
    engine = RecordingEngine()
    use = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Bern", "at": None}}
    result = {"type": "tool_result", "tool_use_id": "t1"}
    cached = {"type": "text", "text": "Look.", "cache_control": {"type": "ephemeral"}}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "I see."}, use, use | {"id": "t2"}]},
        {
            "role": "user",
            "content": [
                result | {"content": [{"type": "text", "text": "12"}], "is_error": True},
                result | {"tool_use_id": "t2"},
                cached,
            ],
        },
    ]
    system = [{"type": "text", "text": "x-anthropic-billing-header: 1"}, {"type": "text", "text": "Be brief."}, cached]
    reply_to(engine, HI | {"messages": messages, "system": system, "tools": [WEATHER]})
    first, user, answer, twelve, nothing, last = engine.tokenizer.rendered[-1]["messages"]
    assert first == {"role": "system", "content": "Be brief.\n\nLook."}
    assert user == {"role": "user", "content": "Hi"}
    assert (answer["content"], answer["reasoning_content"]) == ("I see.", "Hm.")
    assert [call["id"] for call in answer["tool_calls"]] == ["t1", "t2"]
    assert answer["tool_calls"][0]["function"] == {"name": "weather", "arguments": use["input"]}
    assert (twelve["role"], twelve["tool_call_id"], twelve["content"]) == ("tool", "t1", "Error: 12")
    assert (nothing["tool_call_id"], nothing["content"]) == ("t2", "")
    assert last == {"role": "user", "content": "Look."}
    reply_to(engine, HI | {"system": system[:1], "tools": [WEATHER]})
    assert engine.tokenizer.rendered[-1]["messages"] == [{"role": "user", "content": "Hi"}]
    assert engine.tokenizer.rendered[-1]["tools"][0]["function"] == {
        "name": "weather",
        "description": "Of a city.",
        "parameters": WEATHER["input_schema"],
    }


def test_every_answer_can_be_sent_back() -> None:
    for answer, _ in ANSWERS.values():
        for limit in (1, 3, 8, 20, 400):
            content = reply_to(TalkingEngine(answer), HI | {"max_tokens": limit, "tools": [WEATHER]})["content"]
            turn = [*HI["messages"], {"role": "assistant", "content": content}, *HI["messages"]]
            engine = RecordingEngine()
            reply_to(engine, HI | {"messages": turn, "tools": [WEATHER]})
            said = str(engine.tokenizer.rendered[-1]["messages"])
            for block in content:
                told = block.get("text") or block.get("thinking") or str(block.get("input", ""))
                assert repr(told)[1:-1] in said


RESULT_PARTS = [
    ({"type": "image", "source": {"data": "x"}}, "[image omitted]"),
    ({"type": [[]]}, '{"type": [[]]}'),
    ({"type": "tool_reference", "tool_name": "search"}, '{"type": "tool_reference", "tool_name": "search"}'),
]


@pytest.mark.parametrize(("part", "told"), RESULT_PARTS)
def test_every_part_of_a_result_is_told(part: dict[str, Any], told: str) -> None:
    engine = RecordingEngine()
    use = {"type": "tool_use", "id": "t1", "name": "weather", "input": None}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a"}, part]}
    messages = [*HI["messages"], {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    reply_to(engine, HI | {"messages": messages})
    *_, call, found = engine.tokenizer.rendered[-1]["messages"]
    assert call["tool_calls"][0]["function"]["arguments"] == {}
    assert found["content"] == f"a\n{told}"


def test_a_thread_is_refused_as_the_sdk_expects() -> None:
    reply = ask(TalkingEngine(), "POST", PATH, json=HI | {"thread": {"type": "create"}})
    error = reply.json()["error"]
    assert (reply.status_code, error["details"]["error_code"]) == (400, "thread_unsupported_request")


def test_a_limit_lowered_to_the_context_has_its_own_reason() -> None:
    answer = TalkingEngine("a" * 20_000)
    assert reply_to(answer, HI | {"max_tokens": 9000})["stop_reason"] == "model_context_window_exceeded"
    assert reply_to(TalkingEngine("a" * 20_000), HI | {"max_tokens": 3})["stop_reason"] == "max_tokens"


def test_blocks_of_an_answer_are_one_text() -> None:
    engine = RecordingEngine()
    blocks = [{"type": "text", "text": "[1, "}, {"type": "text", "text": "2, "}]
    reply_to(engine, HI | {"messages": [*HI["messages"], {"role": "assistant", "content": blocks}]})
    assert engine.tokenizer.rendered[-1]["messages"][-1]["content"] == "[1, 2, "


def test_thinking_may_be_omitted() -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024, "display": "omitted"}
    engine = TalkingEngine(ANSWERS["reasoning"][0])
    block, text = reply_to(engine, HI | {"max_tokens": 400, "thinking": thinking})["content"]
    assert (block["type"], block["thinking"], bool(block["signature"])) == ("thinking", "", True)
    assert text["text"] == "Hello"


def test_agents_may_have_many_tools_and_stops() -> None:
    tools = [WEATHER | {"name": f"f{i}"} for i in range(300)]
    reply_to(TalkingEngine(), HI | {"tools": tools, "stop_sequences": [f"stop {i}" for i in range(64)]})
    reply = ask(TalkingEngine(), "POST", PATH, json=HI | {"stop_sequences": ["x"] * 65})
    assert "'stop_sequences'" in reply.json()["error"]["message"]
    assert "64" in reply.json()["error"]["message"]


def test_a_last_message_of_the_assistant_is_continued() -> None:
    engine = TalkingEngine()
    reply_to(engine, HI | {"messages": [*HI["messages"], {"role": "assistant", "content": "{"}]})
    assert engine.tokenizer.rendered[-1]["flags"] == (False, True)


def test_settings_reach_the_engine_as_those_of_a_chat() -> None:
    engine = TalkingEngine()
    settings = {"temperature": 0.5, "top_p": 0.5, "seed": 3, "top_k": 4, "messages": HI["messages"], "max_tokens": 7}
    reply_to(engine, settings | {"stop_sequences": ["a", "b"], "thinking": {"type": "disabled"}})
    ask(engine, "POST", CHAT_PATH, json=settings | {"stop": ["a", "b"]})
    first, second = engine.submitted
    assert (first.prompt, first.sampling) == (second.prompt, second.sampling)
    assert engine.tokenizer.rendered[0]["options"] == {"enable_thinking": False}


def test_a_limit_beyond_the_context_is_lowered() -> None:
    """Claude Code asks for 32,000 tokens, whatever the model has room for."""
    engine = TalkingEngine()
    reply_to(engine, HI | {"max_tokens": 32_000})
    (request,) = engine.submitted
    assert request.sampling.max_tokens == engine.info.max_model_len - len(request.prompt)


def test_whole_numbers_may_have_a_point() -> None:
    engine = TalkingEngine()
    reply_to(engine, HI | {"max_tokens": 3.0, "top_k": 5.0})
    assert (engine.submitted[0].sampling.max_tokens, engine.submitted[0].sampling.top_k) == (3, 5)


def test_what_claude_code_sends_is_understood() -> None:
    """Recorded from its version 2.1.197, shortened."""
    cached = {"cache_control": {"type": "ephemeral"}}
    body = {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "<system-reminder>"}, {"type": "text", "text": "Hi"} | cached],
            },
            {"role": "system", "content": "Available agent types: none"},
        ],
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.197;"},
            {"type": "text", "text": "You are an agent."} | cached,
        ],
        "tools": [
            WEATHER
            | {"input_schema": WEATHER["input_schema"] | {"$schema": "https://json-schema.org/draft/2020-12/schema"}}
        ],
        "metadata": {"user_id": "{}"},
        "max_tokens": 32000,
        "thinking": {"type": "adaptive"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "high"},
        "stream": True,
    }
    engine = TalkingEngine()
    headers = {"anthropic-beta": "claude-code-20250219,effort-2025-11-24", "anthropic-version": "2023-06-01"}
    reply = ask(engine, "POST", f"{PATH}?beta=true", json=body, headers=headers)
    assert reply.status_code == 200
    assert events_of(reply.content)[-1]["type"] == "message_stop"
    rendered = engine.tokenizer.rendered[-1]
    assert [message["role"] for message in rendered["messages"]] == ["system", "user", "system"]
    assert rendered["messages"][0]["content"] == "You are an agent."
    assert rendered["options"] == {"reasoning_effort": "high", "enable_thinking": True}


@pytest.mark.parametrize(
    ("choice", "forced", "parallel"),
    [
        ({"type": "auto"}, False, True),
        ({"type": "any"}, True, True),
        ({"type": "any", "disable_parallel_tool_use": True}, True, False),
        ({"type": "tool", "name": "weather"}, True, False),
        ({"type": "none"}, False, True),
    ],
)
def test_choices_of_tools(choice: dict[str, Any], forced: bool, parallel: bool) -> None:
    engine = TalkingEngine()
    reply_to(engine, HI | {"tools": [WEATHER], "tool_choice": choice})
    grammar = engine.submitted[0].sampling.grammar
    assert (grammar is not None) == forced
    assert grammar is None or (")*" in grammar) == parallel
    assert bool(engine.tokenizer.rendered[-1]["tools"]) == (choice["type"] != "none")


def test_a_format_is_a_grammar() -> None:
    engine = TalkingEngine()
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    reply_to(engine, HI | {"output_config": {"format": {"type": "json_schema", "schema": schema}}})
    assert '"properties"' in str(engine.submitted[0].sampling.grammar)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no limit": ({"max_tokens": None}, "max_tokens"),
    "fewer than no tokens": ({"max_tokens": -1}, "max_tokens"),
    "nothing to read": (
        {"messages": [{"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}]},
        "messages",
    ),
    "empty thinking": (
        {"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": ""}]}]},
        "messages",
    ),
    "a user's thinking": (
        {"messages": [{"role": "user", "content": [{"type": "redacted_thinking", "data": "x"}]}]},
        "messages[0].content[0]",
    ),
    "no choice": ({"tools": [WEATHER], "tool_choice": {}}, "tool_choice.type"),
    "a word for a boolean": (
        {"tools": [WEATHER], "tool_choice": {"type": "auto", "disable_parallel_tool_use": "no"}},
        "tool_choice.disable_parallel_tool_use",
    ),
    "a failure of a wrong type": (
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": "yes"}]}]},
        "messages[0].content[0].is_error",
    ),
    "a budget of a wrong type": (
        {"thinking": {"type": "enabled", "budget_tokens": "many"}},
        "thinking.budget_tokens",
    ),
    "a display": ({"thinking": {"type": "enabled", "display": "bogus"}}, "thinking.display"),
    "an effort": ({"output_config": {"effort": 7}}, "output_config.effort"),
    "too many biases": ({"logit_bias": {str(token): 1 for token in range(1025)}}, "logit_bias"),
    "no messages": ({"messages": []}, "messages"),
    "a role": ({"messages": [{"role": "tool", "content": "a"}]}, "messages[0].role"),
    "an image": ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages[0].content[0]"),
    "a result without a call": (
        {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
        "messages[0].content[0].tool_use_id",
    ),
    "a stop": ({"stop_sequences": [""]}, "stop_sequences"),
    "a hosted tool": ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
    "an unknown tool": ({"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "x"}}, "tool_choice"),
    "a choice": ({"tools": [WEATHER], "tool_choice": {"type": "some"}}, "tool_choice.type"),
    "an edit of the context": (
        {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
        "context_management",
    ),
    "servers": ({"mcp_servers": [{"url": "x"}]}, "mcp_servers"),
    "a format": ({"output_config": {"format": {"type": "xml"}}}, "output_config.format"),
    "no content": ({"messages": [{"role": "user"}]}, "messages[0].content"),
    "contents of a wrong type": ({"messages": [{"role": "user", "content": [5]}]}, "messages[0].content"),
    "a system of a wrong type": ({"system": 0}, "system"),
    "a kind of thinking": ({"thinking": {"type": "much"}}, "thinking.type"),
    "the name of a tool": ({"tools": [WEATHER | {"name": "a b"}]}, "tools[0].name"),
    "a schema": (
        {"tools": [WEATHER | {"input_schema": {"type": "array"}}], "tool_choice": {"type": "any"}},
        "tools[0].input_schema",
    ),
    "a budget of a task": (
        {"output_config": {"task_budget": {"type": "tokens", "total": 5}}},
        "output_config.task_budget",
    ),
    "a temperature": ({"temperature": 3}, "temperature"),
    "a format of an answer that has begun": (
        {
            "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "{"}],
            "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        },
        "output_config.format",
    ),
}


@pytest.mark.parametrize(("change", "param"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_supported_is_refused_by_name(change: dict[str, Any], param: str) -> None:
    engine = TalkingEngine()
    reply = ask(engine, "POST", PATH, json=HI | change)
    assert reply.status_code == 400, reply.text
    assert reply.headers["request-id"] == reply.headers["x-request-id"]
    error = reply.json()
    assert (error["type"], error["error"]["type"]) == ("error", "invalid_request_error")
    assert param in error["error"]["message"]
    assert error["request_id"] == reply.headers["x-request-id"]
    assert not engine.submitted


def test_errors_have_anthropics_shape() -> None:
    engine = TalkingEngine()
    engine.refuse = QueueFullError(4, retry_after=3)
    reply = ask(engine, "POST", PATH, json=HI)
    assert (reply.status_code, reply.json()["error"]["type"]) == (429, "rate_limit_error")
    assert ask(engine, "POST", PATH, json=HI | {"model": "x"}).json()["error"]["type"] == "not_found_error"
    assert ask(engine, "GET", PATH).json()["type"] == "error"
    engine = TalkingEngine()
    engine.fail_at = (1, RequestFailedError("broken"))
    *_, last = events_of(ask(engine, "POST", PATH, json=HI | {"stream": True}).content)
    assert (last["type"], last["error"]["type"]) == ("error", "api_error")


@pytest.mark.parametrize("header", ["x-api-key", "api-key", "authorization"])
def test_keys_may_have_the_headers_of_other_vendors(header: str) -> None:
    config = ServerConfig(api_key=("secret",))
    value = "Bearer {}" if header == "authorization" else "{}"

    def status(key: str) -> int:
        return ask(
            TalkingEngine(), "POST", PATH, json=HI, config=config, headers={header: value.format(key)}
        ).status_code

    assert (status("secret"), status("other"), status("")) == (200, 401, 401)
    missing = ask(TalkingEngine(), "POST", PATH, json=HI, config=config)
    assert missing.json()["error"]["type"] == "authentication_error"


def test_a_conversation_that_is_too_long_is_counted_and_refused_in_anthropics_words() -> None:
    """By these words, Claude Code knows that it must shorten the conversation."""
    long = {"messages": [{"role": "user", "content": "x" * 5000}]}
    count = ask(TalkingEngine(), "POST", COUNT_PATH, json=long).json()["input_tokens"]
    assert count > 5000
    for stream in (False, True):
        reply = ask(TalkingEngine(), "POST", PATH, json=HI | long | {"stream": stream})
        assert reply.status_code == 400
        message = reply.json()["error"]["message"]
        assert message == f"prompt is too long: {count} tokens > {TalkingEngine.info.max_model_len} maximum"


def test_no_tokens_only_read_the_prompt() -> None:
    """So that its prefix is cached."""
    for stream in (False, True):
        engine = TalkingEngine()
        reply = ask(engine, "POST", PATH, json=HI | {"max_tokens": 0, "stream": stream})
        assert reply.status_code == 200
        assert len(engine.submitted) == 1
        assert "text_delta" not in reply.text
        if not stream:
            assert (reply.json()["content"], reply.json()["usage"]["output_tokens"]) == ([], 0)


def test_tools_of_anthropics_servers_stay_in_the_history() -> None:
    engine = RecordingEngine()
    answer = [
        {"type": "text", "text": "Let me see."},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "rain"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "u"}]},
        {"type": "text", "text": "It rains."},
    ]
    user = {"role": "user", "content": "Hi"}
    messages = [user, {"role": "assistant", "content": answer}, user]
    assert ask(engine, "POST", PATH, json=HI | {"messages": messages}).status_code == 200
    found = engine.tokenizer.rendered[-1]["messages"]
    assert [message["role"] for message in found] == ["user", "assistant", "tool", "assistant", "user"]
    assert found[1]["tool_calls"][0]["function"] == {"name": "web_search", "arguments": {"query": "rain"}}
    assert '"url": "u"' in found[2]["content"]
    assert found[3]["content"] == "It rains."
