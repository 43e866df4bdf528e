"""OpenAI's Responses API: its events describe the complete reply, and its requests are chat requests."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from engine.errors import RequestFailedError
from server.config import ServerConfig
from tests.support.harness import CHAT_PATH, ask
from tests.support.responding import RESPONSES, WEATHER
from tests.support.speaking import ANSWERS, CALL, RecordingEngine, TalkingEngine, pieces

PATH = RESPONSES.path
reply_to, events_of = RESPONSES.reply_to, RESPONSES.events_of


def without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_ids(v) for k, v in value.items() if k not in ("id", "call_id", "created_at", "completed_at")}
    return [without_ids(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("limit", [None, 4, 9, 25])
@pytest.mark.parametrize(("answer", "kinds"), ANSWERS.values(), ids=ANSWERS)
def test_events_describe_the_complete_reply(answer: str, kinds: list[str], limit: int | None) -> None:
    body = {"input": "Hi", "tools": [WEATHER]} | ({} if limit is None else {"max_output_tokens": limit})
    whole = reply_to(TalkingEngine(answer), body)
    first, second, *events, last = events_of(
        ask(TalkingEngine(answer), "POST", PATH, json=body | {"stream": True}).content
    )
    assert [first["type"], second["type"]] == ["response.created", "response.in_progress"]
    assert last["type"] == f"response.{whole['status']}"
    assert without_ids(last["response"]) == without_ids(whole)
    items: list[dict[str, Any]] = []
    texts: list[str] = []
    for event in events:
        if event["type"] == "response.output_item.added":
            items.append(event["item"])
            texts.append("")
        assert event["output_index"] == len(items) - 1, "items come one after the other"
        assert event.get("item_id", items[-1]["id"]) == items[-1]["id"]
        texts[-1] += event.get("delta", "")
        if event["type"] == "response.output_item.done":
            assert event["item"]["id"] == items[-1]["id"]
            items[-1] = event["item"]
    assert items == last["response"]["output"]
    assert texts == [item["arguments"] if "arguments" in item else item["content"][0]["text"] for item in items]
    cut = whole["status"] == "incomplete"
    assert whole["incomplete_details"] == ({"reason": "max_output_tokens"} if cut else None)
    if not cut:
        assert [item["type"] for item in items] == kinds
    complete = items[-1].get("arguments", "").endswith("}")  # a call, perhaps without its closing tag
    last_status = "completed" if complete else whole["status"]
    assert [item["status"] for item in items] == ["completed"] * (len(items) - 1) + [last_status]


def test_a_reply_has_its_request_and_usage() -> None:
    body = {"input": "Hi", "instructions": "Be brief.", "temperature": 0.5, "metadata": {"a": "b"}, "tools": [WEATHER]}
    reply = reply_to(TalkingEngine(), body)
    assert {name: reply[name] for name in body if name != "input"} == {k: v for k, v in body.items() if k != "input"}
    assert reply["store"] is False
    assert reply["usage"]["output_tokens"] == 2
    assert reply["usage"]["input_tokens_details"]["cached_tokens"] == 2
    assert reply["usage"]["total_tokens"] == reply["usage"]["input_tokens"] + 2


def test_items_become_the_messages_of_a_chat() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Bern"}'}
    items = [
        {"role": "developer", "content": "Rules."},
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I see."}]},
        call,
        call | {"call_id": "c2", "arguments": "{broken"},
        {"type": "message", "role": "user", "content": "And?"},
    ]
    engine = TalkingEngine()
    reply_to(engine, {"input": items, "instructions": "Be brief.", "tools": [WEATHER]})
    system, developer, user, answer, last = engine.tokenizer.rendered[-1]["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert developer["content"] == "Rules."
    assert user == {"role": "user", "content": "a\nb"}
    assert (answer["content"], answer["reasoning_content"]) == ("I see.", "Hm.")
    assert [call["function"]["arguments"] for call in answer["tool_calls"]] == [{"city": "Bern"}, "{broken"]
    assert last["content"] == "And?"
    assert engine.tokenizer.rendered[-1]["tools"][0]["function"]["name"] == "weather"


def test_every_answer_can_be_sent_back() -> None:
    for answer, _ in ANSWERS.values():
        for limit in (3, 8, 20, 400):
            output = reply_to(TalkingEngine(answer), {"input": "Hi", "max_output_tokens": limit, "tools": [WEATHER]})[
                "output"
            ]
            engine = TalkingEngine()
            reply_to(engine, {"input": [{"role": "user", "content": "Hi"}, *output, {"role": "user", "content": "?"}]})
            said = str(engine.tokenizer.rendered[-1]["messages"])
            for item in output:
                texts = [part["text"] for part in item.get("content", ())]
                for told in texts or [str(json.loads(item["arguments"]))] if item["status"] == "completed" else texts:
                    assert repr(told)[1:-1] in said or told in said


def test_settings_reach_the_engine_as_those_of_a_chat() -> None:
    engine = TalkingEngine()
    settings = {"temperature": 0.5, "top_p": 0.5, "seed": 3, "top_k": 4, "min_p": 0.1, "presence_penalty": 1}
    reply_to(engine, settings | {"input": "Hi", "max_output_tokens": 7, "reasoning": {"effort": "none"}})
    ask(engine, "POST", CHAT_PATH, json=settings | {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 7})
    first, second = engine.submitted
    assert (first.prompt, first.sampling) == (second.prompt, second.sampling)
    assert engine.tokenizer.rendered[0]["options"] == {"reasoning_effort": "none", "enable_thinking": False}


def test_a_format_is_a_grammar() -> None:
    engine = TalkingEngine()
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    format = {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}
    assert reply_to(engine, {"input": "Hi", "text": {"format": format}})["text"]["format"] == format
    assert '"properties"' in str(engine.submitted[0].sampling.grammar)


def test_a_stop_within_a_call_leaves_it_incomplete() -> None:
    engine = RecordingEngine(pieces('<tool_call>\n{"name": "weather", "arguments": {"city": "'))
    engine.stop_string = "Bern"
    (item,) = reply_to(engine, {"input": "Hi", "tools": [WEATHER], "tool_choice": "required", "stop": "Bern"})["output"]
    assert (item["type"], item["status"]) == ("function_call", "incomplete")


def test_log_probabilities_accompany_the_text() -> None:
    body = {"input": "Hi", "include": ["message.output_text.logprobs"], "top_logprobs": 1}
    (item,) = reply_to(TalkingEngine("Hallo"), body)["output"]
    assert [entry["token"] for entry in item["content"][0]["logprobs"]] == [*"Hallo"]
    stream = events_of(ask(TalkingEngine("Hallo"), "POST", PATH, json=body | {"stream": True}).content)
    pieces = [event for event in stream if event["type"] == "response.output_text.delta"]
    assert [entry for event in pieces for entry in event["logprobs"]] == item["content"][0]["logprobs"]


@pytest.mark.parametrize("answer", ["reasoning", "text and calls"])
def test_log_probabilities_are_those_of_the_text_alone(answer: str) -> None:
    body = {"input": "Hi", "include": ["message.output_text.logprobs"], "tools": [WEATHER], "max_output_tokens": 400}
    engine = TalkingEngine(ANSWERS[answer][0])
    (part,) = [item["content"][0] for item in reply_to(engine, body)["output"] if item["type"] == "message"]
    said = "".join(entry["token"] for entry in part["logprobs"])
    assert (said, part["text"] in said) == (said.strip(), True)
    assert len(said) < len(part["text"]) + 3, "a token may have more than the text"


@pytest.mark.parametrize("answer", ["<<a", "a <b", "<tool_cal<tool_cal."])
def test_log_probabilities_of_held_text_are_all_there(answer: str) -> None:
    """Its beginning could have been a marker."""
    body = {"input": "Hi", "include": ["message.output_text.logprobs"], "tools": [WEATHER]}
    for size in (1, 3):
        engine = TalkingEngine(answer)
        engine.script = pieces(answer, size)
        (item,) = reply_to(engine, body)["output"]
        assert [entry["token"] for entry in item["content"][0]["logprobs"]] == [*answer]


@pytest.mark.parametrize("grouped", [False, True])
def test_all_of_many_tools_may_be_allowed(grouped: bool) -> None:
    tools = [WEATHER | {"name": f"f{number}"} for number in range(1024)]
    space = {"type": "namespace", "name": "n", "description": "x", "tools": tools}
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [space] if grouped else tools}
    engine = TalkingEngine()
    reply_to(engine, {"input": "Hi", "tools": [space] if grouped else tools, "tool_choice": choice})
    assert len(engine.tokenizer.rendered[-1]["tools"]) == 1024


def test_tokens_are_counted_without_an_answer() -> None:
    engine = TalkingEngine()
    body = {"input": [{"role": "user", "content": "Hi"}], "instructions": "Be brief.", "tools": [WEATHER]}
    counted = ask(engine, "POST", f"{PATH}/input_tokens", json=body).json()
    assert not engine.submitted
    used = reply_to(engine, body)["usage"]["input_tokens"]
    assert counted == {"object": "response.input_tokens", "input_tokens": used}
    wrong = ask(engine, "POST", f"{PATH}/input_tokens", json={"input": [{"role": "tool"}]})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "input[0].role")


def test_counts_may_have_a_point() -> None:
    engine = TalkingEngine()
    reply = reply_to(engine, {"input": "Hi", "max_output_tokens": 3.0, "max_tool_calls": 1.0})
    assert (reply["max_output_tokens"], reply["max_tool_calls"]) == (3, 1)
    assert engine.submitted[0].sampling.max_tokens == 3


def test_allowed_tools_leave_the_others_out() -> None:
    other = WEATHER | {"name": "other"}
    engine = TalkingEngine()
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "other"}]}
    reply_to(engine, {"input": "Hi", "tools": [WEATHER, other], "tool_choice": choice})
    assert [tool["function"]["name"] for tool in engine.tokenizer.rendered[-1]["tools"]] == ["other"]
    assert "other" in str(engine.submitted[0].sampling.grammar)


def test_functions_may_have_a_namespace() -> None:
    """Codex groups its tools, and offers one that runs on OpenAI's servers, which the response lists no more."""
    space = {"type": "namespace", "name": "city", "description": "Cities.", "tools": [WEATHER]}
    engine = TalkingEngine(CALL.replace("weather", "city.weather"))
    call = {"type": "function_call", "call_id": "c1", "name": "weather", "namespace": "city", "arguments": "{}"}
    items = [{"role": "user", "content": "Hi"}, call]
    reply = reply_to(engine, {"input": items, "tools": [WEATHER, space, {"type": "web_search"}]})
    rendered = engine.tokenizer.rendered[-1]
    assert [tool["function"]["name"] for tool in rendered["tools"]] == ["weather", "city.weather"]
    assert rendered["messages"][-1]["tool_calls"][0]["function"]["name"] == "city.weather"
    assert reply["tools"] == [WEATHER, space]
    (item,) = reply["output"]
    assert (item["name"], item["namespace"], item["arguments"]) == ("weather", "city", '{"city": "Bern"}')


PATCH = {"type": "custom", "name": "patch", "description": "Changes files."}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}


def patch(arguments: str) -> str:
    return f'<tool_call>\n{{"name": "patch", "arguments": {arguments}}}\n</tool_call>'


@pytest.mark.parametrize("format", [None, {"type": "text"}, GRAMMAR])
def test_a_custom_tool_is_a_function_of_a_text(format: dict[str, Any] | None) -> None:
    """Codex offers its models `apply_patch` in this way."""
    items = [
        {"role": "user", "content": "Hi"},
        {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": 'a "b"\n'},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done."},
    ]
    body = {"input": items, "tools": [PATCH | {"format": format}], "tool_choice": {"type": "custom", "name": "patch"}}
    engine = RecordingEngine(pieces(patch('{"input": "c\\n\\"d"}')))
    (item,) = reply_to(engine, body)["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "patch", 'c\n"d')
    rendered = engine.tokenizer.rendered[-1]
    _, call, result = rendered["messages"]
    assert call["tool_calls"][0]["function"]["arguments"] == {"input": 'a "b"\n'}
    assert result["content"] == "Done."
    told = rendered["tools"][0]["function"]
    assert told["description"].startswith("Changes files.")
    assert ("start: /.+/" in told["description"]) == (format == GRAMMAR)
    assert '"input"' in str(engine.submitted[0].sampling.grammar)

    events = events_of(ask(engine, "POST", PATH, json=body | {"stream": True}).content)
    texts = {event["type"]: event for event in events if "custom" in event["type"]}
    assert texts["response.custom_tool_call_input.delta"]["delta"] == 'c\n"d'
    assert texts["response.custom_tool_call_input.done"]["input"] == 'c\n"d'
    assert not [event for event in events if "function_call" in event["type"]]


@pytest.mark.parametrize("arguments", ['{"input": 5}', '["a"]', "{broken"])
def test_the_input_of_a_custom_tool_is_never_lost(arguments: str) -> None:
    engine = RecordingEngine(pieces(patch(arguments)))
    output = reply_to(engine, {"input": "Hi", "tools": [PATCH]})["output"]
    assert arguments in str([item.get("input") or item["content"][0]["text"] for item in output])


def test_a_namespace_may_have_custom_tools() -> None:
    space = {"type": "namespace", "name": "files", "description": "Files.", "tools": [PATCH]}
    engine = RecordingEngine(pieces(patch('{"input": "x"}').replace("patch", "files.patch")))
    (item,) = reply_to(engine, {"input": "Hi", "tools": [space]})["output"]
    assert (item["type"], item["namespace"], item["name"]) == ("custom_tool_call", "files", "patch")


@pytest.mark.parametrize("cut", [0, 3, 8, 9, 10, 12, 15])
def test_a_custom_input_may_be_cut_off(cut: int) -> None:
    text = "*** Begin"
    written = patch('{"input": "*** Begin"}').split('"}')[0]
    engine = RecordingEngine(pieces(written[: len(written) - cut], size=1))
    body = {"input": "Hi", "tools": [PATCH], "max_output_tokens": len(written) - cut}
    (item,) = reply_to(engine, body)["output"]
    assert (item["type"], item["input"], item["status"]) == (
        "custom_tool_call",
        text[: max(0, len(text) - cut)],
        "incomplete",
    )


FOREIGN: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "a search of tools": (
        [
            {"type": "tool_search_call", "call_id": "c1", "arguments": {"query": "weather"}, "execution": "client"},
            {"type": "tool_search_output", "call_id": "c1", "tools": [WEATHER], "execution": "client"},
        ],
        ['"query": "weather"', "Of a city."],
    ),
    "a search of the web": (
        [{"type": "web_search_call", "id": "ws_1", "action": {"query": "Bern"}}],
        ["web_search", "Bern"],
    ),
    "a shell": (
        [
            {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}},
            {"type": "shell_call_output", "call_id": "c1", "output": [{"stdout": "a.txt", "stderr": ""}]},
        ],
        ["ls", "a.txt"],
    ),
    "a local shell": (
        [
            {"type": "local_shell_call", "id": "l1", "call_id": "c1", "action": {"command": ["ls"]}},
            {"type": "local_shell_call_output", "id": "c1", "output": "a.txt"},
        ],
        ["local_shell", "ls", "a.txt"],
    ),
    "a screen": (
        [
            {"type": "computer_call", "call_id": "c1", "action": {"type": "screenshot"}},
            {"type": "computer_call_output", "call_id": "c1", "output": {"type": "computer_screenshot"}},
        ],
        ["computer", "[computer_screenshot omitted]"],
    ),
    "a call of a server": (
        [{"type": "mcp_call", "id": "m1", "server_label": "s", "name": "f", "arguments": "{}", "output": "42"}],
        ["mcp", "42"],
    ),
}


@pytest.mark.parametrize(("items", "told"), FOREIGN.values(), ids=FOREIGN)
def test_items_of_openais_own_tools_are_told(items: list[dict[str, Any]], told: list[str]) -> None:
    """A conversation may have begun there; all its later turns would be refused."""
    engine = RecordingEngine()
    reply_to(engine, {"input": [{"role": "user", "content": "Hi"}, *items, {"role": "user", "content": "And?"}]})
    said = json.dumps(engine.tokenizer.rendered[-1]["messages"]).replace('\\"', '"')
    assert [text for text in told if text not in said] == []


@pytest.mark.parametrize("kind", ["additional_tools", "tool_search_output"])
def test_items_may_add_tools(kind: str) -> None:
    """Codex 0.150 sends its own tools in such an item."""
    space = {"type": "namespace", "name": "functions", "description": "x", "tools": [PATCH]}
    engine = RecordingEngine(pieces(patch('{"input": "x"}').replace("patch", "functions.patch")))
    item = {"type": kind, "role": "developer", "tools": [space, WEATHER]}
    (call,) = reply_to(engine, {"input": [{"role": "user", "content": "Hi"}, item], "tools": [WEATHER]})["output"]
    assert (call["type"], call["namespace"], call["name"]) == ("custom_tool_call", "functions", "patch")
    names = [tool["function"]["name"] for tool in engine.tokenizer.rendered[-1]["tools"]]
    assert names == ["weather", "functions.patch"]


def test_namespaces_may_begin_alike() -> None:
    spaces = [
        {"type": "namespace", "name": name, "description": "x", "tools": [WEATHER | {"name": own}]}
        for name, own in (("a", "x"), ("a.b", "c"))
    ]
    for full, wanted in (("a.b.c", ("a.b", "c")), ("a.x", ("a", "x")), ("a.y", (None, "a.y"))):
        engine = TalkingEngine(CALL.replace("weather", full))
        tools = [*spaces, WEATHER | {"name": "a.y"}]
        (item,) = reply_to(engine, {"input": "Hi", "tools": tools})["output"]
        assert (item.get("namespace"), item["name"]) == wanted


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no input": ({"input": None}, "input"),
    "an empty list": ({"input": []}, "input"),
    "a stored response": ({"previous_response_id": "resp_1"}, "previous_response_id"),
    "a background": ({"background": True}, "background"),
    "a truncation": ({"truncation": "auto"}, "truncation"),
    "an image": ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0]"),
    "a role": ({"input": [{"role": "tool", "content": "a"}], "instructions": "b"}, "input[0].role"),
    "no content": ({"input": [{"role": "user"}]}, "input[0].content"),
    "a reference": ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].type"),
    "a tool of the client's that only OpenAI describes": ({"tools": [{"type": "local_shell"}]}, "tools[0].type"),
    "a custom tool without a grammar": (
        {"tools": [{"type": "custom", "name": "a", "format": {"type": "grammar"}}]},
        "tools[0].format.syntax",
    ),
    "a tool twice": ({"tools": [WEATHER, WEATHER]}, "tools[1].name"),
    "a hosted tool that must be called": (
        {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}},
        "tool_choice.type",
    ),
    "a name": ({"tools": [WEATHER | {"name": 5}]}, "tools[0].name"),
    "the name of a tool": (
        {"tools": [{"type": "web_search"}, {"type": "namespace", "name": "n", "tools": [WEATHER | {"name": "a b"}]}]},
        "tools[1].tools[0].name",
    ),
    "the schema of a tool": (
        {"tools": [{"type": "web_search"}, WEATHER | {"parameters": {"type": "array"}}], "tool_choice": "required"},
        "tools[1].parameters",
    ),
    "a schema of any object": ({"text": {"format": {"type": "json_object", "schema": {}}}}, "text.format.schema"),
    "a schema of a text": ({"text": {"format": {"type": "text", "schema": {}}}}, "text.format.schema"),
    "a count": ({"max_tool_calls": "x"}, "max_tool_calls"),
    "a count below nothing": ({"max_tool_calls": -3}, "max_tool_calls"),
    "a boolean for a count": ({"top_logprobs": True}, "top_logprobs"),
    "a format of other endpoints": ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
    "too many tools": ({"tools": [WEATHER | {"name": f"f{i}"} for i in range(1025)]}, "tools"),
    "too many biases": ({"logit_bias": {str(token): 1 for token in range(1025)}}, "logit_bias"),
    "too many chosen tools": (
        {"tools": [WEATHER], "tool_choice": {"type": "allowed_tools", "tools": [WEATHER] * 1025}},
        "tool_choice.tools",
    ),
    "many log-probabilities": ({"top_logprobs": 50}, "top_logprobs"),
    "an unknown tool": ({"tools": [WEATHER], "tool_choice": {"type": "function", "name": "x"}}, "tool_choice"),
    "a limit": ({"max_output_tokens": 0}, "max_output_tokens"),
    "no schema": ({"text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format.schema"),
    "a text": ({"text": []}, "text"),
    "a format that is no object": ({"text": {"format": "json"}}, "text.format"),
    "tools of a namespace": ({"tools": [{"type": "namespace", "name": "a", "tools": {}}]}, "tools[0].tools"),
    "a type": ({"input": [{"type": 5}]}, "input[0].type"),
    "a type of a tool": ({"tools": [{"type": {}}]}, "tools[0].type"),
    "too many tokens": ({"max_output_tokens": 9999}, "input"),
}


@pytest.mark.parametrize(("change", "param"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_not_supported_is_refused_by_name(change: dict[str, Any], param: str, stream: bool) -> None:
    engine = TalkingEngine()
    reply = ask(engine, "POST", PATH, json={"input": "Hi", "stream": stream} | change)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text
    assert not engine.submitted


def test_a_failure_in_the_middle_ends_the_stream_with_an_event() -> None:
    engine = TalkingEngine()
    engine.fail_at = (1, RequestFailedError("broken"))
    *_, last = events_of(ask(engine, "POST", PATH, json={"input": "Hi", "stream": True}).content)
    assert last["type"] == "response.failed"
    (item,) = last["response"]["output"]
    assert (item["status"], item["content"][0]["text"]) == ("incomplete", "Hel")
    assert last["response"]["status"] == "failed"
    assert last["response"]["error"]["message"]


def test_a_key_is_required_where_keys_are() -> None:
    config = ServerConfig(api_key=("secret",))
    assert ask(TalkingEngine(), "POST", PATH, json={"input": "Hi"}, config=config).status_code == 401


def test_a_function_of_a_namespace_may_be_chosen() -> None:
    space = {"type": "namespace", "name": "city", "description": "Cities.", "tools": [WEATHER]}
    hosted, full = {"type": "web_search"}, {"type": "function", "name": "city.weather"}
    one, named = {"type": "function", "name": "weather"}, {"type": "function", "name": "weather", "namespace": "city"}
    listed = [[one, hosted], [named], [full], [{"type": "namespace", "name": "city"}]]
    allowed = [{"type": "allowed_tools", "mode": "required", "tools": tools} for tools in listed]
    for choice in (one, named, full, *allowed):
        engine = TalkingEngine(CALL.replace("weather", "city.weather"))
        (item,) = reply_to(engine, {"input": "Hi", "tools": [space, hosted], "tool_choice": choice})["output"]
        assert (item["name"], item["namespace"]) == ("weather", "city")
        assert "city.weather" in str(engine.submitted[0].sampling.grammar)


def test_an_image_in_the_result_of_a_tool_is_named() -> None:
    """Otherwise, every later turn of the conversation would be refused."""
    engine = RecordingEngine()
    parts = [{"type": "input_text", "text": "Look:"}, {"type": "input_image", "image_url": "data:x"}]
    call = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
    told = {"type": "function_call_output", "call_id": "c1", "output": parts}
    reply_to(engine, {"input": [{"role": "user", "content": "Hi"}, call, told], "tools": [WEATHER]})
    assert engine.tokenizer.rendered[-1]["messages"][-1]["content"] == "Look:\n[input_image omitted]"


def test_an_empty_id_of_a_call_is_an_id() -> None:
    engine = RecordingEngine()
    call = {"type": "function_call", "id": "fc_1", "call_id": "", "name": "weather", "arguments": "{}"}
    output = {"type": "function_call_output", "id": "fco_1", "call_id": "", "output": "12"}
    reply_to(engine, {"input": [{"role": "user", "content": "Hi"}, call, output]})
    _, answer, result = engine.tokenizer.rendered[-1]["messages"]
    assert answer["tool_calls"][0]["id"] == result["tool_call_id"] == ""
    assert result["name"] == "weather"


def test_too_many_log_probabilities_are_the_fault_of_what_asks_for_them() -> None:
    engine = RecordingEngine()
    engine.info = replace(engine.info, max_model_len=1 << 20)
    body = {"input": "Hi", "include": ["message.output_text.logprobs"], "top_logprobs": 20}
    reply = ask(engine, "POST", PATH, json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "include")
