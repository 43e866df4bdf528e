"""Conversations as agents send them back: whatever this server or OpenAI's has answered, and nothing is dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.errors import RequestError
from tests.support.harness import CHAT, CHAT_PATH, ask
from tests.support.speaking import CALL, TOOL, RecordingEngine, SpeakingEngine, pieces, whole

QUESTION = {"role": "user", "content": "Hi"}


def told(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the chat template gets for these messages."""
    engine = RecordingEngine()
    whole(engine, CHAT_PATH, CHAT | {"messages": [*messages, QUESTION], "tools": [TOOL]})
    found: list[dict[str, Any]] = engine.tokenizer.rendered[-1]["messages"][:-1]
    return found


@pytest.mark.parametrize("arguments", ["{", '{"a": "\\ud800"}', '{"a": NaN}', "[" * 600 + "]" * 600, "", "5", "text"])
def test_calls_whose_arguments_are_broken_stay_as_they_are(arguments: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    (message,) = told({"role": "assistant", "content": None, "tool_calls": [call]})
    assert message["content"] == ""
    expected = {"": {}, "5": 5}.get(arguments, arguments)
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": expected}


def test_older_functions_become_tools() -> None:
    call = {"name": "f", "arguments": '{"a": 1}'}
    message, result = told(
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "f", "content": "12"},
    )
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": {"a": 1}}
    assert "function_call" not in message
    assert result == {
        "role": "tool",
        "name": "f",
        "content": "12",
        "tool_call_id": message["tool_calls"][0]["id"],
    }


def test_refusals_are_text() -> None:
    parts = [{"type": "text", "text": "No."}, {"type": "refusal", "refusal": "I will not."}]
    first, second, third = told(
        {"role": "assistant", "content": None, "refusal": "I will not."},
        {"role": "assistant", "content": parts},
        {"role": "assistant", "content": "Yes.", "refusal": None},
    )
    assert first == {"role": "assistant", "content": "I will not."}
    assert second["content"] == "No.\nI will not."
    assert third == {"role": "assistant", "content": "Yes."}


def test_empty_contents_stay_empty() -> None:
    found = told(
        {"role": "user", "content": []},
        {"role": "assistant", "content": None},
        {"role": "assistant"},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": [], "tool_calls": []},
    )
    assert [message["content"] for message in found] == [""] * 5


def test_reasoning_reaches_the_template_by_the_name_that_it_knows() -> None:
    first, second = told(
        {"role": "assistant", "content": "a", "reasoning": "Hm."},
        {"role": "assistant", "content": "a", "reasoning_content": "Hm.", "reasoning": "Hm."},
    )
    assert first["reasoning_content"] == second["reasoning_content"] == "Hm."


@pytest.mark.parametrize("limit", [None, 1, 2, 5, 9, 14, 20])
@pytest.mark.parametrize("text", ["Hello", f"<think>\nHm.\n</think>\n\n{CALL}", f"Yes. {CALL}\n{CALL}", "<think>Hm"])
def test_every_answer_can_be_sent_back(text: str, limit: int | None) -> None:
    engine = RecordingEngine(pieces(text))
    body = CHAT | {"tools": [TOOL]} | ({} if limit is None else {"max_tokens": limit})
    message = whole(engine, CHAT_PATH, body)["message"]
    (found,) = told(message)
    assert found["content"] == (message["content"] or "")
    assert found.get("reasoning_content", "") == message.get("reasoning_content", "")
    assert len(found.get("tool_calls", [])) == len(message.get("tool_calls", []))


@pytest.mark.parametrize("name", ["files.read", "server/tool", "mcp:files:read", "a" * 256, "A-b_9"])
def test_tools_may_have_the_names_of_mcp_servers(name: str) -> None:
    tool = {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    text = f'<tool_call>\n{{"name": "{name}", "arguments": {{}}}}\n</tool_call>'
    message = whole(SpeakingEngine(pieces(text)), CHAT_PATH, CHAT | {"tools": [tool]})["message"]
    assert message["tool_calls"][0]["function"]["name"] == name


@pytest.mark.parametrize("name", ["", "a" * 257, "a b", "é", 'a"b', "a\n"])
def test_other_names_of_tools_are_refused(name: str) -> None:
    tool = {"type": "function", "function": {"name": name}}
    reply = ask(SpeakingEngine(), "POST", CHAT_PATH, json=CHAT | {"tools": [tool]})
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "tools[0].function.name"


@pytest.mark.parametrize("role", ["tool", "function"])
def test_a_result_may_be_nothing(role: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "null"}}
    result = {"role": role, "tool_call_id": "c1", "name": "weather", "content": None}
    asked, found = told({"role": "assistant", "content": None, "tool_calls": [call]}, result)
    assert asked["tool_calls"][0]["function"]["arguments"] == {}
    assert found["content"] == ""


def alternate(roles: str) -> bool:
    return "ss" not in roles and "uu" not in roles and "s" not in roles[1:]


STRICT: dict[str, tuple[Callable[[str], bool], str, str]] = {  # what a template allows, roles → the roles that it gets
    "system first": (lambda roles: "s" not in roles[1:], "ssuasu", "suau"),
    "as they are": (lambda roles: "s" not in roles[1:], "suuau", "suuau"),
    "a reminder at the end": (lambda roles: "s" not in roles[1:], "sus", "su"),
    "alternating": (alternate, "suuauu", "suau"),
    "no system": (lambda roles: alternate(roles) and "s" not in roles, "suau", "uau"),
    "no system, later": (lambda roles: alternate(roles) and "s" not in roles, "usau", "uau"),
}


@pytest.mark.parametrize("name", STRICT)
def test_a_strict_template_gets_turns(name: str) -> None:
    """Agents write system messages anywhere, and users write twice; not all templates accept that."""
    allowed, roles, expected = STRICT[name]
    engine = RecordingEngine()
    render = engine.tokenizer.render_chat

    def strict(messages: list[dict[str, Any]], *rest: Any, **options: Any) -> str:
        if not allowed("".join(message["role"][0] for message in messages)):
            raise RequestError("not in this order", param="messages")
        return render(messages, *rest, **options)

    vars(engine.tokenizer)["render_chat"] = strict
    names = {"s": "system", "u": "user", "a": "assistant"}
    messages = [{"role": names[role], "content": str(place)} for place, role in enumerate(roles)]
    whole(engine, CHAT_PATH, CHAT | {"messages": messages})
    found = engine.tokenizer.rendered[-1]["messages"]
    assert "".join(message["role"][0] for message in found) == expected
    texts = [text for message in found for text in message["content"].split("\n\n")]
    assert texts == [str(place) for place in range(len(roles))]


def test_a_template_that_no_order_pleases_says_why() -> None:
    engine = RecordingEngine()

    def strict(messages: list[dict[str, Any]], *rest: Any, **options: Any) -> str:
        raise RequestError(f"not {len(messages)}", param="messages")

    vars(engine.tokenizer)["render_chat"] = strict
    reply = ask(engine, "POST", CHAT_PATH, json=CHAT | {"messages": [QUESTION, QUESTION]})
    assert (reply.status_code, reply.json()["error"]["message"]) == (400, "not 2")


def test_results_have_the_names_of_the_functions() -> None:
    """Clients leave them out, and some templates raise an error then."""
    calls = [{"id": id, "type": "function", "function": {"name": name}} for id, name in (("c1", "f"), ("c2", "g"))]
    results = [{"role": "tool", "tool_call_id": id, "content": ""} for id in ("c2", "c1")]
    _, *found = told({"role": "assistant", "content": None, "tool_calls": calls}, *results)
    assert [result["name"] for result in found] == ["f", "g"]
    _, named, other = told(
        {"role": "assistant", "content": None, "tool_calls": calls},
        results[0] | {"name": "own"},
        results[0] | {"tool_call_id": "c3"},
    )
    assert named["name"] == "own"
    assert "name" not in other


@pytest.mark.parametrize("role", ["tool", "function"])
@pytest.mark.parametrize("kind", ["image_url", "input_audio", "file", "video_url"])
def test_images_and_the_like_in_results_are_named(kind: str, role: str) -> None:
    parts = [{"type": "text", "text": "Here:"}, {"type": kind, kind: {"url": "data:x"}}, {"type": "link", "to": "é"}]
    call = {"id": "c1", "type": "function", "function": {"name": "f"}}
    _, found = told(
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": role, "tool_call_id": "c1", "name": "f", "content": parts},
    )
    assert found["content"] == f'Here:\n[{kind} omitted]\n{{"type": "link", "to": "é"}}'


def test_texts_may_have_the_types_of_the_responses_api() -> None:
    asked, answered = told(
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "c", "annotations": []}]},
    )
    assert (asked["content"], answered["content"]) == ("a\nb", "c")


def test_results_are_in_the_order_of_their_calls() -> None:
    calls = [{"id": id, "type": "function", "function": {"name": "f", "arguments": "  "}} for id in ("c1", "c2")]
    results = [{"role": "tool", "tool_call_id": id, "content": id} for id in ("c2", "c1")]
    asked, *found = told({"role": "assistant", "content": None, "tool_calls": calls}, *results)
    assert [result["content"] for result in found] == ["c1", "c2"]
    assert asked["tool_calls"][0]["function"]["arguments"] == {}
    *_, last = told({"role": "assistant", "content": None, "tool_calls": calls[:1]}, *results)
    assert last["content"] == "c1", "ids that no call has leave the order as it is"


def test_calls_cannot_be_continued() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [*CHAT["messages"], {"role": "assistant", "content": "a", "tool_calls": [call]}]
    body = CHAT | {"messages": messages, "continue_final_message": True}
    reply = ask(RecordingEngine(), "POST", CHAT_PATH, json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "continue_final_message")


def test_custom_tools_are_shown_as_functions() -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "+ line"}}
    (found,) = told({"role": "assistant", "tool_calls": [call]})[0]["tool_calls"]
    assert found == {"id": "c1", "type": "function", "function": {"name": "patch", "arguments": {"input": "+ line"}}}


def test_a_refusal_beside_a_text_is_kept() -> None:
    message = {"role": "assistant", "content": "Part", "refusal": "No", "reasoning_content": "", "reasoning": "Hm"}
    (found,) = told(message)
    assert (found["content"], found["reasoning_content"]) == ("Part\nNo", "Hm")


ITEMS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "text after a call": (
        [
            {"role": "assistant", "content": "One"},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"role": "assistant", "content": "Two"},
            {"type": "reasoning", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "b", "name": "g", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "b", "output": "2"},
            {"type": "function_call_output", "call_id": "a", "output": None},
        ],
        [{"content": "One\n\nTwo"}, {"tool_call_id": "a", "content": ""}, {"tool_call_id": "b", "content": "2"}],
    ),
    "a failed patch": (
        [
            {"type": "apply_patch_call", "call_id": "a", "operation": {"type": "delete_file"}, "status": "completed"},
            {"type": "apply_patch_call_output", "call_id": "a", "status": "failed"},
        ],
        [{"content": ""}, {"tool_call_id": "a", "content": '{"status": "failed"}'}],
    ),
    "a failed patch with its output": (
        [
            {"type": "apply_patch_call", "call_id": "a", "operation": {}},
            {"type": "apply_patch_call_output", "call_id": "a", "status": "failed", "output": "no file"},
        ],
        [{"content": ""}, {"tool_call_id": "a", "content": "Error: no file"}],
    ),
    "results with ids of items": (
        [
            {"type": "local_shell_call", "call_id": "a", "action": {}},
            {"type": "local_shell_call", "call_id": "b", "action": {}},
            {"type": "local_shell_call_output", "id": "b", "output": "two"},
            {"type": "local_shell_call_output", "id": "a", "output": "one"},
        ],
        [{"content": ""}, {"tool_call_id": "a", "content": "one"}, {"tool_call_id": "b", "content": "two"}],
    ),
    "an approval": (
        [
            {"type": "mcp_approval_request", "id": "a", "name": "f", "arguments": "{}", "server_label": "s"},
            {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
        ],
        [{"content": ""}, {"tool_call_id": "a", "content": '{"approval_request_id": "a", "approve": true}'}],
    ),
}


@pytest.mark.parametrize(("items", "wanted"), ITEMS.values(), ids=ITEMS)
def test_items_of_one_answer_are_one_message(items: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    engine = RecordingEngine()
    reply = ask(engine, "POST", "/v1/responses", json={"input": [{"role": "user", "content": "Hi"}, *items]})
    assert reply.status_code == 200, reply.text
    found = engine.tokenizer.rendered[-1]["messages"][1:]
    assert [{name: message[name] for name in want} for message, want in zip(found, wanted, strict=True)] == wanted
