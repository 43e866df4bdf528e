"""Reasoning and the tool formats of other families, through the official client and real servers.

Each model recites one text: the tests check how it is parsed, drafted or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.reciting import recite
from tests.support.serving import Process

pytestmark = pytest.mark.nightly

TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
        },
    }
    for name in ("get_weather", "get_time")
]
REASONING = "The user wants the weather in Zurich.\nThat is a town; I ask the tool 🦊 for it.\n"
WEATHER = {"name": "get_weather", "arguments": {"city": "Zurich 🦊", "days": 3}}
TIME = {"name": "get_time", "arguments": {"city": "Oslo"}}


def written(call: dict[str, Any], key: str = "arguments") -> str:
    return json.dumps({"name": call["name"], key: call["arguments"]}, ensure_ascii=False)


FORMATS = {
    "hermes": (f"Let me see.\n<tool_call>\n{written(WEATHER)}\n</tool_call>\n<tool_call>{written(TIME)}</tool_call>"),
    "llama3_json": f"<|python_tag|>{written(WEATHER, 'parameters')}; {written(TIME, 'parameters')}",
    "mistral": f"[TOOL_CALLS][{written(WEATHER)}, {written(TIME)}]",
}
ASK: Any = {"model": "m", "messages": [{"role": "user", "content": "How is the weather?"}], "temperature": 0}


@pytest.fixture(scope="module", params=FORMATS)
def speaker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Process]]:
    """A server whose model reasons, and then calls two tools in one of the formats."""
    directory = tmp_path_factory.mktemp(request.param)
    recite(directory / "model", f"<think>\n{REASONING}</think>\n\n{FORMATS[request.param]}")
    server = Process(
        directory / "stderr",
        *("--model", str(directory / "model"), "--served-model-name", "m", "--max-model-len", "1024"),
        *("--profile-dir", str(directory), "--reasoning-parser", "think", "--tool-call-parser", request.param),
    )
    with server:
        yield request.param, server


@pytest.mark.parametrize("policy", ["none", "layerskip", "knapspec"])
def test_reasoning_and_calls_are_separated(speaker: tuple[str, Process], policy: str) -> None:
    name, server = speaker
    options = ASK | {"tools": TOOLS, "extra_body": {"draft_policy": policy}}
    with server.client() as client:
        whole = client.chat.completions.create(**options)
        chunks = list(client.chat.completions.create(**options, stream=True, stream_options={"include_usage": True}))
    (choice,) = whole.choices
    assert choice.finish_reason == "tool_calls"
    extra = choice.message.model_extra or {}
    assert extra["reasoning_content"] == extra["reasoning"] == REASONING
    assert (choice.message.content or "").strip() == ("Let me see." if name == "hermes" else "")
    calls = choice.message.tool_calls or []
    read = [(c.function.name, json.loads(c.function.arguments)) for c in calls if c.type == "function"]
    assert read == [(call["name"], call["arguments"]) for call in (WEATHER, TIME)]
    assert len({call.id for call in calls}) == 2
    thought = whole.usage.completion_tokens_details.reasoning_tokens or 0
    assert len(REASONING) / 4 < thought < whole.usage.completion_tokens
    speculation = (whole.model_extra or {})["metrics"]["speculative_decoding"]
    assert speculation["policy"] == policy
    if policy == "layerskip":
        drafted = speculation["num_draft_tokens"]
        assert drafted - 4 <= speculation["num_accepted_draft_tokens"] <= drafted  # text after the end is refused
        assert drafted > 20
    assert streamed(chunks) == {
        "reasoning": REASONING,
        "content": choice.message.content or "",
        "calls": [(c.id is not None, c.function.name, c.function.arguments) for c in calls if c.type == "function"],
        "finish": ["tool_calls"],
    }
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens_details == whole.usage.completion_tokens_details


def streamed(chunks: list[Any]) -> dict[str, Any]:
    """Content, reasoning and calls that the deltas add up to."""
    seen: dict[str, Any] = {"reasoning": "", "content": "", "calls": [], "finish": []}
    for choice in (choice for chunk in chunks for choice in chunk.choices):
        delta = choice.delta
        extra = delta.model_extra or {}
        assert extra.get("reasoning") == extra.get("reasoning_content")
        seen["reasoning"] += extra.get("reasoning_content") or ""
        seen["content"] += delta.content or ""
        for part in delta.tool_calls or []:
            assert part.function is not None
            if part.index == len(seen["calls"]):
                seen["calls"].append((part.id is not None, part.function.name, ""))
            known, name, arguments = seen["calls"][part.index]
            seen["calls"][part.index] = (known, name, arguments + (part.function.arguments or ""))
        if choice.finish_reason:
            seen["finish"].append(choice.finish_reason)
    return seen


def test_reasoning_that_is_cut_short_stays_reasoning(speaker: tuple[str, Process]) -> None:
    _, server = speaker
    with server.client() as client:
        reply = client.chat.completions.create(**ASK, max_tokens=10)
        chunks = list(client.chat.completions.create(**ASK, max_tokens=10, stream=True))
    (choice,) = reply.choices
    assert (choice.finish_reason, choice.message.content) == ("length", "")
    thought = (choice.message.model_extra or {})["reasoning_content"]
    assert thought
    assert REASONING.startswith(thought)
    assert streamed(chunks)["reasoning"] == thought
    assert reply.usage.completion_tokens_details.reasoning_tokens in (9, 10)


def test_a_stop_string_after_the_reasoning_ends_the_answer(speaker: tuple[str, Process]) -> None:
    _, server = speaker
    with server.client() as client:
        reply: Any = client.chat.completions.create(**ASK, stop="get_time")
    content = reply.choices[0].message.content or ""
    assert reply.choices[0].finish_reason == "stop"
    assert "get_weather" in content
    assert "get_time" not in content
