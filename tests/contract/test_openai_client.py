"""The official client against the real server: replies, streams, choices, stops and errors under drafting."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from tests.support import CONFIG
from tests.support.openai_client import (
    GREEDY,
    POLICIES,
    SAMPLED,
    STORY,
    ask,
    chunks_of,
    figures,
    joined,
    messages,
    said,
)
from tests.support.serving import DTYPE, LENGTH, MODEL, Process

SQL = "Write SQL: table books has columns title, author, year, price. Show year and author of books limit 26."
SUMMARY = (
    "Summarize: On Sunday Ivy went to the garden with Zoe. The weather was warm and the way was long. At the garden "
    "they saw a small fox and many people. In the evening they came home and told everyone about the day."
)


def test_the_client_lists_and_retrieves_the_model(client: Any) -> None:
    listed = list(client.models.list())
    assert [model.id for model in listed] == [MODEL]
    assert client.models.retrieve(MODEL) == listed[0]
    assert listed[0].model_extra["max_model_len"] == LENGTH
    assert listed[0].model_extra["draft_policy"] in listed[0].model_extra["draft_policies"]
    assert set(POLICIES) <= set(listed[0].model_extra["draft_policies"])
    assert (listed[0].model_extra["device"], listed[0].model_extra["dtype"]) == ("cpu", DTYPE)
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("another")
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")


@pytest.mark.parametrize(
    ("policy", "sampling"),
    [
        *(pytest.param(policy, GREEDY, id=f"{policy}, greedy") for policy in POLICIES),
        *(pytest.param(policy, SAMPLED, id=f"{policy}, sampled", marks=pytest.mark.nightly) for policy in POLICIES[:3]),
        pytest.param(POLICIES[3], SAMPLED, id=f"{POLICIES[3]}, sampled"),
    ],
)
def test_a_stream_has_the_text_of_the_whole_reply(client: Any, policy: str, sampling: dict[str, Any]) -> None:
    whole = ask(client, STORY, policy, max_tokens=60, **sampling)
    usage = {"stream_options": {"include_usage": True}}
    chunks = chunks_of(client, STORY, policy, max_tokens=60, **usage, **sampling)
    assert joined(chunks) == said(whole) != ""
    assert len(chunks) > 4
    assert chunks[0].choices[0].delta.role == "assistant"
    ends = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    assert ends == [whole.choices[0].finish_reason]
    usage = chunks[-1].usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (whole.usage.prompt_tokens, whole.usage.completion_tokens)
    assert figures(chunks[-1])["policy"] == policy
    assert len({chunk.id for chunk in chunks}) == 1


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


def test_several_choices_differ_and_stream_alike(client: Any) -> None:
    options = {"max_tokens": 24, "temperature": 2, "seed": 5, "extra_body": {"ignore_eos": True}}
    reply = ask(client, STORY, n=3, **options)
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in reply.choices}) == 3
    assert {choice.finish_reason for choice in reply.choices} == {"length"}
    assert reply.usage.completion_tokens == 3 * 24
    assert all(figures(choice)["policy"] == "knapspec" for choice in reply.choices)
    assert "metrics" not in (reply.model_extra or {})
    assert said(ask(client, STORY, **options)) == said(reply)  # the first choice is that of n=1
    chunks = chunks_of(client, STORY, n=3, **options)
    assert [joined(chunks, index) for index in range(3)] == [choice.message.content for choice in reply.choices]


def test_finish_reason_tells_the_end_of_text_from_the_limit(client: Any) -> None:
    ended = ask(client, SQL, **GREEDY)
    length = ended.usage.completion_tokens
    assert ended.choices[0].finish_reason == "stop"
    assert 4 < length < 40
    for limit in (1, 2, 5, length - 1):
        cut = ask(client, SQL, max_tokens=limit, **GREEDY)
        assert (cut.usage.completion_tokens, cut.choices[0].finish_reason) == (limit, "length")
        assert said(ended).startswith(said(cut))
    exact = ask(client, SQL, max_completion_tokens=length, **GREEDY)
    assert (said(exact), exact.choices[0].finish_reason) == (said(ended), "stop")
    beyond = ask(client, SQL, max_tokens=length + 30, extra_body={"ignore_eos": True}, **GREEDY)
    assert (beyond.usage.completion_tokens, beyond.choices[0].finish_reason) == (length + 30, "length")
    assert said(beyond).startswith(said(ended))


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
