"""The official clients of the Responses and Messages APIs against the real server, under drafting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel, Field

from tests.support.openai_client import GREEDY, POLICIES, STORY, WEATHER, ask
from tests.support.serving import MODEL, Process

QUESTION = "What is the weather in Paris?"
TOOL: Any = {"type": "function", **WEATHER["function"]}
USE: Any = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "input_schema": WEATHER["function"]["parameters"],
}


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


def test_a_streamed_response_is_the_whole_one(client: Any) -> None:
    options: Any = {"model": MODEL, "input": STORY, "temperature": 0, "max_output_tokens": 30}
    whole = client.responses.create(**options)
    assert whole.status == "incomplete"
    assert whole.incomplete_details.reason == "max_output_tokens"
    text = ""
    for event in client.responses.create(**options, stream=True):
        text += event.delta if event.type == "response.output_text.delta" else ""
    assert event.type == "response.incomplete"
    assert text == whole.output_text == event.response.output_text
    assert event.response.usage.output_tokens == 30


def test_a_response_is_parsed_by_a_schema(client: Any) -> None:
    response = client.responses.parse(model=MODEL, input="A cat.", text_format=Pet, temperature=0)
    assert isinstance(response.output_parsed, Pet)


def test_a_tools_result_is_sent_back_as_items(client: Any) -> None:
    options: Any = {"model": MODEL, "tools": [TOOL], "temperature": 0}
    asked = client.responses.create(input=QUESTION, tool_choice="required", **options)
    calls = [item for item in asked.output if item.type == "function_call"]
    assert calls
    assert {call.name for call in calls} == {"get_weather"}
    told = {"type": "function_call_output", "call_id": calls[0].call_id, "output": '{"degrees": 12}'}
    items: Any = [{"role": "user", "content": QUESTION}, *asked.output, told]
    assert client.responses.create(input=items, max_output_tokens=20, **options).output


def test_a_streamed_message_is_the_whole_one(claude: Any) -> None:
    options: Any = {"model": MODEL, "max_tokens": 30, "messages": [{"role": "user", "content": STORY}]}
    whole = claude.messages.create(**options, extra_body=GREEDY)
    assert whole.stop_reason == "max_tokens"
    with claude.messages.stream(**options, extra_body=GREEDY) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert [block.text for block in message.content if block.type == "text"] == [text]
    assert [block.text for block in whole.content if block.type == "text"] == [text]
    assert message.usage.output_tokens == whole.usage.output_tokens == 30


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


def test_errors_are_the_clients_own(claude: Any, client: Any) -> None:
    said: Any = [{"role": "user", "content": "Hi"}]
    with pytest.raises(anthropic.NotFoundError):
        claude.messages.create(model="another", messages=said, max_tokens=1)
    with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
        claude.messages.create(model=MODEL, messages=said, max_tokens=-1)
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        client.responses.create(model=MODEL, input="Hi", previous_response_id="resp_1")
