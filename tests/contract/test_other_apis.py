"""The official clients of the Responses and Messages APIs against the real server, under drafting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from pydantic import BaseModel, Field

from tests.support.openai_client import GREEDY, POLICIES, STORY, ask
from tests.support.serving import MODEL, Process

QUESTION = "What is the weather in Paris?"
CITY, DAYS = {"type": "string", "maxLength": 20}, {"type": "integer", "minimum": 1, "maximum": 9}
SCHEMA = {"type": "object", "properties": {"city": CITY, "days": DAYS}, "required": ["city", "days"]}
USE: Any = {"name": "get_weather", "input_schema": SCHEMA | {"additionalProperties": False}}


class Pet(BaseModel):
    name: str = Field(max_length=12)
    legs: int = Field(ge=0, le=9)


@pytest.fixture
def claude(server: Process) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("policy", POLICIES)
def test_all_apis_give_the_same_text(client: Any, claude: Any, policy: str) -> None:
    """They are translations of one request."""
    expected = ask(client, STORY, policy, max_tokens=60, **GREEDY).choices[0].message.content
    options: Any = {"model": MODEL, "temperature": 0, "extra_body": {"draft_policy": policy}}
    response = client.responses.create(input=STORY, max_output_tokens=60, **options)
    assert response.output_text == expected
    said: Any = [{"role": "user", "content": STORY}]
    message = claude.messages.create(
        messages=said, max_tokens=60, model=MODEL, extra_body=options["extra_body"] | GREEDY
    )
    assert [block.text for block in message.content if block.type == "text"] == [expected]


def test_a_response_is_parsed_by_a_schema(client: Any) -> None:
    response = client.responses.parse(model=MODEL, input="A cat.", text_format=Pet, temperature=0)
    assert isinstance(response.output_parsed, Pet)


def test_a_stop_sequence_is_named(claude: Any) -> None:
    options: Any = {"model": MODEL, "max_tokens": 60, "messages": [{"role": "user", "content": STORY}]}
    text = claude.messages.create(**options, extra_body=GREEDY).content[0].text
    stop = text.split()[3]
    message = claude.messages.create(**options, stop_sequences=["never", stop], extra_body=GREEDY)
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", stop)
    assert message.content[0].text == text[: text.index(stop)]


def test_a_tools_result_is_sent_back_as_blocks(claude: Any) -> None:
    said: Any = [{"role": "user", "content": QUESTION}]
    options: Any = {"model": MODEL, "max_tokens": 100, "tools": [USE], "extra_body": GREEDY}
    with claude.messages.stream(messages=said, tool_choice={"type": "any"}, **options) as stream:
        message = stream.get_final_message()
    uses = [block for block in message.content if block.type == "tool_use"]
    assert message.stop_reason == "tool_use"
    assert {use.name for use in uses} == {"get_weather"}
    assert set(uses[0].input) == {"city", "days"}
    results = [{"type": "tool_result", "tool_use_id": use.id, "content": "12 degrees"} for use in uses]
    said += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    assert claude.messages.create(messages=said, **options).content


def test_tokens_are_counted_before_they_are_sent(claude: Any) -> None:
    said: Any = [{"role": "user", "content": "Count these words."}]
    counted = claude.messages.count_tokens(model=MODEL, messages=said, system="Be brief.")
    usage = claude.messages.create(model=MODEL, messages=said, system="Be brief.", max_tokens=1).usage
    assert usage.input_tokens + (usage.cache_read_input_tokens or 0) == counted.input_tokens
