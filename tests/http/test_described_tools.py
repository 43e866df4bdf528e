"""Tools of models whose chat template knows none: the server describes them, and writes calls and results as text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.errors import RequestError
from server.config import ServerConfig
from tests.support.fake import INFO, FakeEngine
from tests.support.harness import CHAT, CHAT_PATH, ask
from tests.support.speaking import CALL, TOOL, pieces


class SmallEngine(FakeEngine):
    info = replace(INFO, max_model_len=4096)


def message_of(engine: FakeEngine, body: dict[str, Any]) -> dict[str, Any]:
    reply = ask(engine, "POST", CHAT_PATH, json=CHAT | body)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["choices"][0]["message"]
    return found


def test_the_prompt_describes_tools_and_answers_are_parsed() -> None:
    engine = SmallEngine(pieces(CALL))
    message = message_of(engine, {"tools": [TOOL]})
    assert message["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city": "Bern"}'}
    system, user = engine.tokenizer.rendered[-1]["messages"]
    assert system["role"] == "system"
    assert '"name": "weather"' in system["content"]
    assert "<tool_call>" in system["content"]
    assert user == {"role": "user", "content": "Hi"}
    assert engine.tokenizer.rendered[-1]["tools"] == []


def test_a_systems_text_stays_before_the_description() -> None:
    engine = SmallEngine()
    message_of(engine, {"tools": [TOOL], "messages": [{"role": "system", "content": "Be brief."}, *CHAT["messages"]]})
    system, _ = engine.tokenizer.rendered[-1]["messages"]
    assert system["content"].startswith("Be brief.\n\nYou may call")


def test_calls_and_results_are_text() -> None:
    engine = SmallEngine()
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}
    result = {"role": "tool", "tool_call_id": "c1", "content": "12"}
    answer = {"role": "assistant", "content": "Let me see.", "tool_calls": [call, call]}
    message_of(engine, {"tools": [TOOL], "messages": [*CHAT["messages"], answer, result, result, *CHAT["messages"]]})
    _, _, answer, results, last = engine.tokenizer.rendered[-1]["messages"]
    assert answer == {"role": "assistant", "content": f"Let me see.\n{CALL}\n{CALL}"}
    result_text = "<tool_response>\n12\n</tool_response>"
    assert results == {"role": "user", "content": f"{result_text}\n{result_text}"}
    assert last == CHAT["messages"][0]


def test_a_template_without_system_messages_gets_the_description_from_the_user() -> None:
    engine = SmallEngine()
    render = engine.tokenizer.render_chat

    def strict(messages: list[dict[str, Any]], *rest: Any, **options: Any) -> str:
        if any(message["role"] == "system" for message in messages):
            raise RequestError("System role not supported", param="messages")
        return render(messages, *rest, **options)

    vars(engine.tokenizer)["render_chat"] = strict
    message_of(engine, {"tools": [TOOL]})
    (user,) = engine.tokenizer.rendered[-1]["messages"]
    assert user["role"] == "user"
    assert user["content"].startswith("You may call")
    assert user["content"].endswith("\n\nHi")


def test_a_required_call_is_enforced() -> None:
    engine = SmallEngine(pieces(CALL))
    message_of(engine, {"tools": [TOOL], "tool_choice": "required"})
    assert "weather" in str(engine.submitted[0].sampling.grammar)


def test_a_server_without_parser_refuses_tools() -> None:
    config = ServerConfig(tool_call_parser="none")
    reply = ask(SmallEngine(), "POST", CHAT_PATH, json=CHAT | {"tools": [TOOL]}, config=config)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "tools")
