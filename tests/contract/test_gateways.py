"""Requests through gateways: LiteLLM, where installed (`pip install -e '.[test,gateways]'`)."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.openai_client import GREEDY, STORY, WEATHER, ask, messages, said
from tests.support.serving import LENGTH, MODEL, Process
from tests.support.waiting import PATIENCE

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # the import asks the network for prices otherwise
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    litellm = pytest.importorskip("litellm")

pytestmark = pytest.mark.filterwarnings("ignore")  # LiteLLM would take errors made of its own warnings for the server's


@pytest.fixture
def options(server: Process) -> Iterator[dict[str, Any]]:
    """Options of every call. The client is closed here, since LiteLLM keeps its own open."""
    with server.client() as client:
        yield {
            "model": f"openai/{MODEL}",
            "api_base": f"{server.url}/v1",
            "api_key": "none",
            "max_retries": 0,
            "timeout": PATIENCE,
            "client": client,
            **GREEDY,
        }


def test_a_chat_is_the_same_through_the_gateway(server: Process, options: dict[str, Any]) -> None:
    with server.client() as client:
        direct = ask(client, STORY, max_tokens=40, **GREEDY)
    whole = litellm.completion(messages=messages(STORY), max_tokens=40, **options)
    assert whole.choices[0].message.content == said(direct)
    assert whole.choices[0].finish_reason == direct.choices[0].finish_reason
    assert direct.usage is not None
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (direct.usage.prompt_tokens, 40)
    chunks = list(
        litellm.completion(
            messages=messages(STORY), max_tokens=40, stream=True, stream_options={"include_usage": True}, **options
        )
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == said(direct)
    assert [chunk.usage.completion_tokens for chunk in chunks if getattr(chunk, "usage", None)] == [40]


def test_tool_calls_pass_the_gateway(options: dict[str, Any]) -> None:
    request = {
        "messages": messages("What is the weather in Bern for 3 days?"),
        "tools": [WEATHER],
        "tool_choice": "required",
        "max_tokens": 200,
    }
    whole = litellm.completion(**request, **options)
    (call, *_) = whole.choices[0].message.tool_calls
    assert whole.choices[0].finish_reason == "tool_calls"
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments).keys() == {"city", "days"}
    chunks = list(litellm.completion(**request, stream=True, **options))
    rebuilt = litellm.stream_chunk_builder(chunks)
    assert rebuilt.choices[0].message.tool_calls[0].function.arguments == call.function.arguments


def test_completions_pass_the_gateway(options: dict[str, Any]) -> None:
    options |= {"model": f"text-completion-openai/{MODEL}"}
    options |= {"extra_body": {"ignore_eos": True}}  # whatever the weights would say
    reply = litellm.text_completion(prompt="Once upon a time", max_tokens=8, **options)
    assert reply.choices[0].text
    assert reply.usage.completion_tokens == 8


def test_refusals_raise_the_gateways_exceptions(options: dict[str, Any]) -> None:
    with pytest.raises(litellm.ContextWindowExceededError):
        litellm.completion(messages=messages("a b " * LENGTH), **options)
    with pytest.raises(litellm.NotFoundError):
        litellm.completion(messages=messages("Hi"), **(options | {"model": "openai/another"}))
    with pytest.raises(litellm.BadRequestError):
        litellm.completion(messages=messages("Hi"), **(options | {"temperature": 3}))
