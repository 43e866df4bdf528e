"""The official client against the real server, under drafting: replies, streams, tools, choices, ends and errors."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import httpx
import openai
import pytest
from pydantic import BaseModel

from tests.support import CONFIG
from tests.support.openai_client import (
    GREEDY,
    POLICIES,
    SAMPLED,
    STORY,
    ask,
    figures,
    ids_of,
    joined,
    messages,
    said,
)
from tests.support.serving import LENGTH, MODEL, Process

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


SQL = "Write SQL: table books has columns title, author, year, price. Show year and author of books limit 26."
SUMMARY = (
    "Summarize: On Sunday Ivy went to the garden with Zoe. The weather was warm and the way was long. At the garden "
    "they saw a small fox and many people. In the evening they came home and told everyone about the day."
)


@pytest.mark.parametrize(
    "sampling", [pytest.param(GREEDY, marks=pytest.mark.nightly), SAMPLED], ids=["greedy", "sampled"]
)
def test_drafting_changes_no_token(client: Any, sampling: dict[str, Any]) -> None:
    """docs/method.md: equal to the last bit with the native kernels, to the last letter in float32."""
    for prompt in (STORY, SQL, SUMMARY):
        plain = ask(client, prompt, "none", max_tokens=60, **sampling)
        assert (figures(plain)["num_draft_tokens"], figures(plain)["draft_acceptance_rate"]) == (0, None)
        for policy in POLICIES[1:]:
            drafted = ask(client, prompt, policy, max_tokens=60, **sampling)
            assert said(drafted) == said(plain)
            assert drafted.choices[0].finish_reason == plain.choices[0].finish_reason
            assert drafted.usage.completion_tokens == plain.usage.completion_tokens
            assert figures(drafted)["policy"] == policy
            if policy != "knapspec":  # which may find that drafting does not pay on this machine
                assert figures(drafted)["num_draft_tokens"] > 0


def test_a_seed_fixes_the_text(client: Any) -> None:
    def text(seed: int | None) -> str:
        return said(ask(client, STORY, max_tokens=40, temperature=2, seed=seed))

    assert text(1) == text(1)
    assert len({text(seed) for seed in (1, 2, 3)}) > 1
    assert len({text(None) for _ in range(4)}) > 1


def test_the_last_position_of_the_context_is_used(client: Any) -> None:
    reply = client.completions.create(
        model=MODEL, prompt=[9] * (LENGTH - 8), max_tokens=8, extra_body={"ignore_eos": True}
    )
    assert (reply.usage.total_tokens, reply.choices[0].finish_reason) == (LENGTH, "length")


def test_concurrent_requests_get_the_replies_of_lone_ones(server: Process, client: Any) -> None:
    prompts = [(prompt, policy) for prompt in (STORY, SQL, SUMMARY) for policy in ("none", "knapspec")]
    alone = [said(ask(client, prompt, policy, max_tokens=48, **SAMPLED)) for prompt, policy in prompts]

    async def one(client: openai.AsyncOpenAI, prompt: str, policy: str, stream: bool) -> str:
        options: dict[str, Any] = {"max_tokens": 48, "extra_body": {"draft_policy": policy}, **SAMPLED}
        if not stream:
            return said(await client.chat.completions.create(model=MODEL, messages=messages(prompt), **options))
        chunks = await client.chat.completions.create(model=MODEL, messages=messages(prompt), stream=True, **options)
        return joined([chunk async for chunk in chunks])

    async def together() -> list[str]:
        async with server.async_client() as client:
            return await asyncio.gather(
                *(one(client, prompt, policy, stream=i % 2 == 0) for i, (prompt, policy) in enumerate(prompts))
            )

    assert asyncio.run(together()) == alone


REFUSALS: dict[str, tuple[dict[str, Any], type[openai.APIStatusError], str, str | None]] = {
    "unknown model": ({"model": "gpt-4o"}, openai.NotFoundError, "model", "model_not_found"),
    "token beyond the vocabulary": ({"prompt": [5, CONFIG["vocab_size"]]}, openai.BadRequestError, "prompt[1]", None),
    "long prompt": ({"prompt": [5] * LENGTH}, openai.BadRequestError, "prompt", "context_length_exceeded"),
    "long text": ({"prompt": "a b " * 4000}, openai.BadRequestError, "prompt", "context_length_exceeded"),
    "much asked": ({"max_tokens": LENGTH}, openai.BadRequestError, "prompt", "context_length_exceeded"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_raise_in_the_client_and_cost_no_round(server: Process, client: Any, name: str) -> None:
    """Those that depend on the model. `tests/http/test_bad_input.py` has the others."""
    change, kind, param, code = REFUSALS[name]
    before = server.metrics()
    with pytest.raises(kind) as refused:
        client.completions.create(**{"model": MODEL, "prompt": "Hi"} | change)
    error = refused.value
    assert (error.param, error.code, error.type) == (param, code, "invalid_request_error")
    if code == "context_length_exceeded":
        assert f"maximum context length is {LENGTH} tokens" in error.message
    after = server.metrics()
    for counter in ("vllm:iteration_tokens_total_count", "vllm:prompt_tokens_total", "vllm:generation_tokens_total"):
        assert after.total(counter) == before.total(counter)


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
