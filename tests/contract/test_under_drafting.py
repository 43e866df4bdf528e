"""Every parameter gives the text of plain decoding under drafting that always pays (docs/method.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
import torch

from tests.support.cores import save_eager_profile
from tests.support.openai_client import GREEDY, POLICIES, SAMPLED, STORY, TIME, WEATHER, figures, ids_of, messages
from tests.support.serving import DTYPE, MODEL, Process

pytestmark = pytest.mark.nightly

HI, ASK = "Hi", "What is the weather in Bern for 3 days?"
NAME, AGES = {"type": "string", "maxLength": 12}, {"type": "array", "items": {"type": "integer"}}
SCHEMA = {
    "type": "object",
    "properties": {"name": NAME, "ages": AGES},
    "required": ["name", "ages"],
    "additionalProperties": False,
}
STRICT = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}
TOOLS: dict[str, Any] = {"tools": [WEATHER, TIME]}

# prompt, parameters; each changes what is said
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "presence": ("Tell me a story.", {"presence_penalty": 2.0}),
    "frequency": (f"Repeat after me: {' '.join(['no'] * 20)}", {"frequency_penalty": 2.0}),
    "repetition": (STORY, {"repetition_penalty": 2.0}),
    "min_p": (STORY, {"min_p": 0.3}),
    "top_k": (STORY, {"top_k": 5}),
    "bias": (STORY, {"logit_bias": dict.fromkeys(map(str, ids_of(" a the was to")), -100)}),
    "min_tokens": (HI, {"min_tokens": 50}),
    "ignore_eos": (HI, {"ignore_eos": True}),
    "special tokens": (HI, {"ignore_eos": True, "skip_special_tokens": False}),
    "stop": (STORY, {"stop": [" a "]}),
    "stop, shown": (STORY, {"stop": [" a "], "include_stop_str_in_output": True}),
    "stop_token_ids": (STORY, {"stop_token_ids": [13, 14, 15, 16]}),
    "choices": (STORY, {"n": 3}),
    "logprobs": (STORY, {"logprobs": True, "top_logprobs": 2}),
    "prediction": (
        STORY,
        {"prediction": {"type": "content", "content": "Once there was a kind dog. It went to"}},
    ),
    "object": (STORY, {"response_format": {"type": "json_object"}}),
    "strict schema": (STORY, {"response_format": STRICT}),
    "forced tool": (ASK, TOOLS | {"tool_choice": "required"}),
    "named tool": (STORY, TOOLS | {"tool_choice": {"type": "function", "function": {"name": "get_time"}}}),
}
SAME = {"min_p", "top_k", "choices", "logprobs", "prediction"}  # these do not change the greedy text


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    profiles = save_eager_profile(tmp_path_factory.mktemp("profiles"), getattr(torch, DTYPE))
    log = tmp_path_factory.mktemp("eager") / "stderr"
    with Process(log, "--profile-dir", str(profiles)) as process, process.client() as client:
        yield client


def answers(client: Any, policy: str, prompt: str, parameters: dict[str, Any]) -> tuple[list[Any], int]:
    """Text, log-probabilities and calls of every choice, and the number of drafted tokens."""
    reply = client.post(
        "/chat/completions",
        cast_to=dict[str, Any],
        body={"model": MODEL, "messages": messages(prompt), "max_tokens": 64, "draft_policy": policy, **parameters},
    )
    said = []
    for choice in reply["choices"]:
        calls = [call["function"] for call in choice["message"].get("tool_calls", ())]
        said.append((choice["message"]["content"], calls, choice["finish_reason"], choice["logprobs"]))
    metrics = [choice.get("metrics") or reply["metrics"] for choice in reply["choices"]]
    return said, sum(one["speculative_decoding"]["num_draft_tokens"] for one in metrics)


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("policy", POLICIES[1:])
def test_every_parameter_gives_the_text_of_plain_decoding(
    eager: Any, policy: str, name: str, sampling: dict[str, Any]
) -> None:
    prompt, parameters = CASES[name]
    plain, undrafted = answers(eager, "none", prompt, parameters | sampling)
    for _ in range(3):  # one in 400 drafting rounds is followed by eight plain ones: all that a short answer has
        drafted, tokens = answers(eager, policy, prompt, parameters | sampling)
        assert [choice[:3] for choice in drafted] == [choice[:3] for choice in plain]
        for one, other in zip(drafted, plain, strict=True):
            if one[3] is not None:
                ours, theirs = one[3]["content"], other[3]["content"]
                assert [entry["token"] for entry in ours] == [entry["token"] for entry in theirs]
                expected = [entry["logprob"] for entry in theirs]
                assert [entry["logprob"] for entry in ours] == pytest.approx(expected, abs=1e-3)
        if tokens > 0:
            break
    assert tokens > 0 or policy == "fixed"  # which is too unsure of short answers by a grammar
    assert undrafted == 0 or name == "prediction"
    if sampling["temperature"] == 0:
        free, _ = answers(eager, "none", prompt, sampling)
        assert (plain[0][:2] == free[0][:2]) == (name in SAME), "the parameter changes the text"


def test_an_echo_under_drafting_equals_plain_decoding(eager: Any) -> None:
    options: Any = {"model": MODEL, "prompt": "Once upon a time", "max_tokens": 40, "echo": True, "temperature": 0}
    plain, drafted = (
        eager.completions.create(**options, logprobs=1, extra_body={"draft_policy": policy, "ignore_eos": True})
        for policy in ("none", "knapspec")
    )
    assert drafted.choices[0].text == plain.choices[0].text
    assert plain.choices[0].text.startswith("Once upon a time")
    assert figures(drafted)["num_draft_tokens"] > 0
