"""Parameters, structured output and tools through the official client and a real server, drafting or not."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import httpx
import openai
import pytest
from pydantic import BaseModel

from tests.support.openai_client import GREEDY, POLICIES, STORY, ask, figures, ids_of, messages, said
from tests.support.serving import MODEL, Process

QUESTION = "What is the weather in Bern for 3 days?"


class Person(BaseModel):
    """The class that `parse` requests."""

    name: str
    kind: Literal["cat", "dog"]
    age: int


class Trip(BaseModel):
    """The arguments of a tool."""

    city: Literal["Bern", "Oslo"]
    days: Literal[1, 2, 3]


@pytest.mark.parametrize("policy", ["none", "layerskip"])
def test_an_echo_has_log_probabilities(client: Any, policy: str) -> None:
    """Evaluation harnesses score texts so: log-probabilities equal those of generating the text."""
    options: Any = {"model": MODEL, "logprobs": 2, "extra_body": {"ignore_eos": True, "draft_policy": policy}, **GREEDY}
    ids = ids_of("Once upon a time there was a")
    written = client.completions.create(prompt=ids, max_tokens=24, **options).choices[0].logprobs
    assert written is not None
    text = ids + [id for token in written.tokens for id in ids_of(token)]  # all at once, it may be cut otherwise
    for limit in (0, 1):
        reply = client.completions.create(prompt=[text, ids], max_tokens=limit, echo=True, **options)
        assert reply.usage.completion_tokens == 2 * limit
        scored = reply.choices[0].logprobs
        assert scored is not None
        assert "".join(scored.tokens) == reply.choices[0].text
        assert len(scored.tokens) == len(text) + limit
        assert scored.token_logprobs[0] is scored.top_logprobs[0] is None
        part = slice(len(ids), len(ids) + len(written.tokens))
        assert scored.tokens[part] == written.tokens
        assert scored.token_logprobs[part] == pytest.approx(written.token_logprobs, abs=1e-4)
        for token, top in zip(scored.tokens[part], scored.top_logprobs[part], strict=True):
            assert max(top, key=lambda name: top[name]) == token, "greedy decoding takes the likeliest token"


def test_the_async_client_parses_and_calls_tools_all_at_once(server: Process) -> None:
    """`parse`, its stream helper and tools run side by side on one engine, each under another policy."""
    options: Any = {"model": MODEL, "max_tokens": 200, **GREEDY}
    asked = messages("Mia has a dog that is 3. JSON with name, kind, age.")

    async def parsed(client: openai.AsyncOpenAI, policy: str) -> Person | None:
        extra = {"draft_policy": policy}
        reply = await client.chat.completions.parse(messages=asked, response_format=Person, extra_body=extra, **options)
        return reply.choices[0].message.parsed

    async def streamed(client: openai.AsyncOpenAI, policy: str) -> Person | None:
        extra = {"draft_policy": policy}
        stream = client.chat.completions.stream(messages=asked, response_format=Person, extra_body=extra, **options)
        async with stream as events:
            text = "".join([event.delta async for event in events if event.type == "content.delta"])
            reply = await events.get_final_completion()
        assert text == reply.choices[0].message.content
        return reply.choices[0].message.parsed

    async def called(client: openai.AsyncOpenAI, policy: str) -> tuple[str, Any]:
        tool = openai.pydantic_function_tool(Trip)
        reply = await client.chat.completions.parse(
            messages=messages(QUESTION),
            tools=[tool],
            tool_choice={"type": "function", "function": {"name": "Trip"}},
            extra_body={"draft_policy": policy},
            **options,
        )
        (call,) = reply.choices[0].message.tool_calls or []
        return call.function.name, call.function.parsed_arguments

    async def together() -> tuple[list[Person | None], list[tuple[str, Any]]]:
        async with server.async_client() as client:
            people = [f(client, policy) for policy in POLICIES for f in (parsed, streamed)]
            trips = [called(client, policy) for policy in POLICIES]
            return await asyncio.gather(*people), await asyncio.gather(*trips)

    people, trips = asyncio.run(together())
    assert people[0] is not None
    assert people == [people[0]] * (2 * len(POLICIES)), "every policy gives the same"
    name, trip = trips[0]
    assert name == "Trip"
    assert isinstance(trip, Trip)
    assert trips == [trips[0]] * len(POLICIES)


def test_the_final_message_can_be_continued(client: Any) -> None:
    whole = said(ask(client, STORY, max_tokens=40, **GREEDY))
    begun: Any = [*messages(STORY), {"role": "assistant", "content": whole[:20]}]
    reply = client.chat.completions.create(
        model=MODEL,
        messages=begun,
        max_tokens=30,
        extra_body={"continue_final_message": True, "add_generation_prompt": False},
        **GREEDY,
    )
    rest = reply.choices[0].message.content
    assert rest
    assert not rest.startswith(whole[:20])
    answered = client.chat.completions.create(model=MODEL, messages=begun[:1], max_tokens=1, **GREEDY)
    begun_tokens = reply.usage.prompt_tokens - answered.usage.prompt_tokens
    assert 0 < begun_tokens < 20, "the continuation adds no turn"


def test_tokenize_counts_the_prompt_tokens_of_a_chat(server: Process, client: Any) -> None:
    reply = ask(client, STORY, max_tokens=1, **GREEDY)
    counted = httpx.post(f"{server.url}/tokenize", json={"messages": messages(STORY)}).json()
    assert counted["count"] == reply.usage.prompt_tokens
    text = httpx.post(f"{server.url}/detokenize", json={"tokens": counted["tokens"]}).json()["prompt"]
    assert STORY in text


def test_predicted_outputs_are_counted(client: Any) -> None:
    plain = ask(client, STORY, "none", max_tokens=60, **GREEDY)
    predicted: Any = {"type": "content", "content": said(plain)}
    reply = ask(client, STORY, "none", max_tokens=60, prediction=predicted, **GREEDY)
    assert said(reply) == said(plain)
    details = reply.usage.completion_tokens_details
    assert (details.accepted_prediction_tokens or 0) > 20
    assert figures(reply)["num_rounds"] < figures(plain)["num_rounds"] / 3
