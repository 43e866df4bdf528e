"""Parameters, structured output and tools through the official client and a real server, drafting or not."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any, Literal

import httpx
import openai
import pytest
from pydantic import BaseModel

from tests.support.openai_client import (
    GREEDY,
    POLICIES,
    SAMPLED,
    STORY,
    TIME,
    WEATHER,
    ask,
    figures,
    ids_of,
    messages,
    said,
)
from tests.support.serving import MODEL, Process

CHANGES: dict[str, dict[str, Any]] = {
    "presence": {"presence_penalty": 1.5},
    "frequency": {"frequency_penalty": 1.2},
    "bias": {"logit_bias": {"20": 6, "30": -100}},
    "min_p": {"extra_body": {"min_p": 0.3}},
    "repetition": {"extra_body": {"repetition_penalty": 1.3}},
    "min_tokens": {"extra_body": {"min_tokens": 50}},
    "stop_token_ids": {"extra_body": {"stop_token_ids": [13, 14, 15, 16]}},
    "ignore_eos": {"extra_body": {"ignore_eos": True}},
    "special tokens": {"extra_body": {"skip_special_tokens": False, "ignore_eos": True}},
    "top_k": {"extra_body": {"top_k": 5}},
    "schema": {"response_format": {"type": "json_object"}},
}
CHECKED = ("presence", "schema")


class Person(BaseModel):
    """The class that `parse` requests."""

    name: str
    kind: Literal["cat", "dog"]
    age: int


class Trip(BaseModel):
    """The arguments of a tool."""

    city: Literal["Bern", "Oslo"]
    days: Literal[1, 2, 3]


@pytest.mark.parametrize(
    "sampling", [GREEDY, pytest.param(SAMPLED, marks=pytest.mark.nightly)], ids=["greedy", "sampled"]
)
@pytest.mark.parametrize(  # `make nightly` has the others
    "name", [pytest.param(name, marks=[] if name in CHECKED else pytest.mark.nightly) for name in CHANGES]
)
def test_every_parameter_gives_the_same_text_with_and_without_drafting(
    client: openai.OpenAI, name: str, sampling: dict[str, Any]
) -> None:
    """docs/method.md: every policy gives the text of plain decoding, and most draft some tokens."""
    options = {"max_tokens": 64, **sampling, **CHANGES[name]}
    plain = ask(client, STORY, "none", **options)
    for policy in POLICIES[1:]:
        drafted = ask(client, STORY, policy, **options)
        assert said(drafted) == said(plain)
        assert drafted.choices[0].finish_reason == plain.choices[0].finish_reason
        if policy != "knapspec" and name != "schema" and said(plain):  # those depend on the speed
            assert figures(drafted)["num_draft_tokens"] > 0


@pytest.mark.parametrize("policy", ["none", "layerskip"])
def test_logprobs_of_a_chat_are_consistent(client: openai.OpenAI, policy: str) -> None:
    reply = ask(client, STORY, policy, max_tokens=20, logprobs=True, top_logprobs=3, **GREEDY)
    logprobs = reply.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert reply.usage is not None
    assert len(logprobs.content) == reply.usage.completion_tokens
    whole = b"".join(bytes(entry.bytes or []) for entry in logprobs.content)
    assert whole.decode() == said(reply)
    for entry in logprobs.content:
        assert len(entry.top_logprobs) == 3
        assert entry.top_logprobs[0].token == entry.token, "greedy decoding takes the likeliest token"
        assert entry.logprob == entry.top_logprobs[0].logprob <= 0
        assert sum(math.exp(top.logprob) for top in entry.top_logprobs) <= 1 + 1e-4
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            messages=messages(STORY),
            max_tokens=20,
            logprobs=True,
            top_logprobs=3,
            stream=True,
            extra_body={"draft_policy": policy},
            **GREEDY,
        )
    )
    streamed = [entry for chunk in chunks for c in chunk.choices if c.logprobs for entry in c.logprobs.content or []]
    assert [entry.token for entry in streamed] == [entry.token for entry in logprobs.content]


def test_logprobs_and_echo_of_a_completion_are_consistent(client: openai.OpenAI) -> None:
    options: Any = {
        "model": MODEL,
        "prompt": "Once upon",
        "max_tokens": 8,
        "extra_body": {"ignore_eos": True},
        **GREEDY,
    }
    reply = client.completions.create(logprobs=2, **options)
    logprobs = reply.choices[0].logprobs
    assert logprobs is not None
    shown = ["" if token.startswith("<|") else token for token in logprobs.tokens or []]
    assert "".join(shown) == reply.choices[0].text
    assert logprobs.text_offset == [len("".join(shown[:i])) for i in range(len(shown))]
    echoed = client.completions.create(echo=True, **options)
    assert echoed.choices[0].text == "Once upon" + reply.choices[0].text
    silent = client.completions.create(model=MODEL, prompt="Once upon", max_tokens=0, echo=True)
    assert silent.choices[0].text == "Once upon"
    assert silent.usage is not None
    assert silent.usage.completion_tokens == 0


@pytest.mark.parametrize("policy", ["none", "layerskip"])
def test_an_echo_has_log_probabilities(client: openai.OpenAI, policy: str) -> None:
    """Evaluation harnesses score texts so: log-probabilities equal those of generating the text."""
    options: Any = {"model": MODEL, "logprobs": 2, "extra_body": {"ignore_eos": True, "draft_policy": policy}, **GREEDY}
    ids = ids_of("Once upon a time there was a")
    written = client.completions.create(prompt=ids, max_tokens=24, **options).choices[0].logprobs
    assert written is not None
    assert written.tokens is not None
    assert written.token_logprobs is not None
    text = ids + [id for token in written.tokens for id in ids_of(token)]  # all at once, it may be cut otherwise
    for limit in (0, 1):
        reply = client.completions.create(prompt=[text, ids], max_tokens=limit, echo=True, **options)
        assert reply.usage is not None
        assert reply.usage.completion_tokens == 2 * limit
        scored = reply.choices[0].logprobs
        assert scored is not None
        assert scored.tokens is not None
        assert scored.token_logprobs is not None
        assert scored.top_logprobs is not None
        assert "".join(scored.tokens) == reply.choices[0].text
        assert len(scored.tokens) == len(text) + limit
        assert scored.token_logprobs[0] is scored.top_logprobs[0] is None
        part = slice(len(ids), len(ids) + len(written.tokens))
        assert scored.tokens[part] == written.tokens
        assert scored.token_logprobs[part] == pytest.approx(written.token_logprobs, abs=1e-4)
        for token, top in zip(scored.tokens[part], scored.top_logprobs[part], strict=True):
            assert max(top, key=lambda name: top[name]) == token, "greedy decoding takes the likeliest token"


@pytest.mark.parametrize("policy", POLICIES)
def test_parse_returns_the_requested_class(client: openai.OpenAI, policy: str) -> None:
    parsed = 0
    for seed, temperature in enumerate((0, 0.8, 1.5)):
        try:
            reply = client.chat.completions.parse(
                model=MODEL,
                messages=messages("Mia has a dog that is 3. JSON with name, kind, age."),
                response_format=Person,
                temperature=temperature,
                seed=seed,
                max_tokens=300,
                extra_body={"draft_policy": policy},
            )
        except openai.LengthFinishReasonError:  # a list of numbers may be long where nothing is likely
            continue
        person = reply.choices[0].message.parsed
        assert person is not None
        assert person.kind in ("cat", "dog")
        parsed += 1
    assert parsed, "every answer was cut short"


@pytest.mark.parametrize("policy", ["none", "layerskip"])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_forced_tools_are_called_with_valid_arguments(client: openai.OpenAI, choice: Any, policy: str) -> None:
    options = {"tools": [WEATHER, TIME], "tool_choice": choice, "max_tokens": 200, **GREEDY}
    reply = ask(client, "What is the weather in Bern for 3 days?", policy, **options)
    assert reply.choices[0].finish_reason in ("tool_calls", "length")
    calls = reply.choices[0].message.tool_calls
    assert calls
    for call in calls:
        assert call.type == "function"
        assert call.function.name in ("get_weather", "get_time")
        if reply.choices[0].finish_reason == "tool_calls" and call.function.name == "get_weather":
            arguments = json.loads(call.function.arguments)
            assert arguments.keys() == {"city", "days"}
            assert 1 <= arguments["days"] <= 9
    stream = client.chat.completions.create(
        model=MODEL,
        messages=messages("What is the weather in Bern for 3 days?"),
        stream=True,
        extra_body={"draft_policy": policy},
        **options,
    )
    arguments = ""
    for chunk in stream:
        for part in chunk.choices[0].delta.tool_calls or [] if chunk.choices else []:
            if part.index == 0 and part.function:
                arguments += part.function.arguments or ""
    assert arguments == calls[0].function.arguments


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
            messages=messages("What is the weather in Bern for 3 days?"),
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


def test_a_tool_result_is_answered(client: openai.OpenAI) -> None:
    function = {"name": "get_weather", "arguments": '{"city": "Bern"}'}
    talk: Any = [
        *messages("What is the weather in Bern?"),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": function},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": ""},
    ]
    replies = []
    for condition, temperature in (("sunny", 21), ("rain", 9)):
        talk[-1]["content"] = f'{{"condition": "{condition}", "temperature": {temperature}}}'
        reply = client.chat.completions.create(model=MODEL, messages=talk, tools=[WEATHER], max_tokens=60, **GREEDY)
        replies.append(reply.choices[0].message.content)
    assert "21" in replies[0]
    assert "9" in replies[1]


def test_the_final_message_can_be_continued(client: openai.OpenAI) -> None:
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
    assert reply.usage is not None
    assert answered.usage is not None
    begun_tokens = reply.usage.prompt_tokens - answered.usage.prompt_tokens
    assert 0 < begun_tokens < 20, "the continuation adds no turn"


def test_tokenize_counts_the_prompt_tokens_of_a_chat(server: Process, client: openai.OpenAI) -> None:
    reply = ask(client, STORY, max_tokens=1, **GREEDY)
    counted = httpx.post(f"{server.url}/tokenize", json={"messages": messages(STORY)}).json()
    assert reply.usage is not None
    assert counted["count"] == reply.usage.prompt_tokens
    text = httpx.post(f"{server.url}/detokenize", json={"tokens": counted["tokens"]}).json()["prompt"]
    assert STORY in text


def test_predicted_outputs_are_counted(client: openai.OpenAI) -> None:
    plain = ask(client, STORY, "none", max_tokens=60, **GREEDY)
    predicted: Any = {"type": "content", "content": said(plain)}
    reply = ask(client, STORY, "none", max_tokens=60, prediction=predicted, **GREEDY)
    assert said(reply) == said(plain)
    assert reply.usage is not None
    details = reply.usage.completion_tokens_details
    assert details is not None
    assert (details.accepted_prediction_tokens or 0) > 20
    assert figures(reply)["num_rounds"] < figures(plain)["num_rounds"] / 3
