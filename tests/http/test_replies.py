"""Replies, streamed and whole: shapes, roles, usage, indices."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from engine.types import TokenLogprobs
from server.apis.logprobs import TextOffsets, TokenTexts, completion_logprobs, prompt_logprobs
from server.apis.replies import ChatCompletion, Completion
from server.app import create_app
from server.config import ServerConfig
from server.prepare import choice_seed
from tests.support.fake import INFO, SPECULATION, ByteTokenizer, FakeEngine
from tests.support.harness import CHAT, CHAT_PATH, TEXT, TEXT_PATH, ask, sse

FIGURES = {
    "policy": "knapspec",
    "num_rounds": 2,
    "num_draft_tokens": 6,
    "num_accepted_draft_tokens": 4,
    "num_lookup_tokens": 3,
    "num_accepted_lookup_tokens": 1,
    "mean_acceptance_length": 2.5,
    "draft_acceptance_rate": 4 / 6,
    "skipped_attention": 3.0,
    "skipped_mlp": 2.0,
    "reselections": 1,
    "tokens_per_second": 50.0,
    "predicted_tpt": 60.0,
    "plan": "2200322",
}


def stream(engine: FakeEngine, path: str, body: dict[str, Any]) -> list[Any]:
    reply = ask(engine, "POST", path, json=body | {"stream": True})
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert "content-length" not in reply.headers
    return sse(reply.content)


def test_a_chat_reply_has_every_required_key() -> None:
    reply = ask(FakeEngine(), "POST", CHAT_PATH, json=CHAT).json()
    assert reply.pop("id").startswith("chatcmpl-")
    assert isinstance(reply.pop("created"), int)
    fingerprint = reply["system_fingerprint"]
    assert fingerprint.startswith("fp_")
    assert reply == {
        "object": "chat.completion",
        "model": "fake/model",
        "system_fingerprint": fingerprint,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 2,
            "total_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
                "reasoning_tokens": 0,
            },
        },
        "metrics": {"speculative_decoding": FIGURES},
    }


def test_a_completion_reply_has_every_required_key() -> None:
    reply = ask(FakeEngine(), "POST", TEXT_PATH, json=TEXT | {"max_tokens": 1}).json()
    assert reply["id"].startswith("cmpl-")
    assert reply["object"] == "text_completion"
    assert reply["choices"] == [{"index": 0, "text": "Hel", "logprobs": None, "finish_reason": "length"}]
    assert reply["usage"]["prompt_tokens"] == 2


@pytest.mark.parametrize(("path", "body", "model"), [(CHAT_PATH, CHAT, ChatCompletion), (TEXT_PATH, TEXT, Completion)])
@pytest.mark.parametrize("n", [1, 3])
def test_replies_fit_the_documented_schema(
    path: str, body: dict[str, Any], model: type[ChatCompletion], n: int
) -> None:
    reply = ask(FakeEngine(), "POST", path, json=body | {"n": n})
    assert model.model_validate_json(reply.content, strict=True).choices[-1].index == n - 1


def test_a_chat_stream_has_the_documented_bytes() -> None:
    raw = ask(FakeEngine(), "POST", CHAT_PATH, json=CHAT | {"stream": True}).content
    first = json.loads(raw.split(b"\n\n")[0].removeprefix(b"data: "))
    head = (
        f'data: {{"id":"{first["id"]}","object":"chat.completion.chunk","created":{first["created"]},'
        f'"model":"fake/model","system_fingerprint":"{first["system_fingerprint"]}","choices":[{{"index":0,"delta":'
    )
    rest = '},"logprobs":null,"finish_reason":null}]}\n\n'
    figures = json.dumps({"speculative_decoding": FIGURES}, separators=(",", ":"))
    assert raw.decode() == (
        f'{head}{{"role":"assistant","content":"","refusal":null{rest}'
        f'{head}{{"content":"Hel"{rest}'
        f'{head}{{"content":"lo"{rest}'
        f'{head}{{}},"logprobs":null,"finish_reason":"stop"}}],"metrics":{figures}}}\n\n'
        "data: [DONE]\n\n"
    )


def test_a_completion_stream_has_no_role_and_ends_with_a_reason() -> None:
    *chunks, done = stream(FakeEngine(), TEXT_PATH, TEXT)
    assert done == "[DONE]"
    assert [chunk["choices"][0]["text"] for chunk in chunks] == ["Hel", "lo", ""]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "stop"]
    assert all(chunk["object"] == "text_completion" for chunk in chunks)


@pytest.mark.parametrize(("path", "body"), [(CHAT_PATH, CHAT), (TEXT_PATH, TEXT)])
def test_a_usage_chunk_is_sent_only_on_request(path: str, body: dict[str, Any]) -> None:
    *plain, _ = stream(FakeEngine(), path, body)
    assert all("usage" not in chunk for chunk in plain)
    assert "metrics" in plain[-1]
    assert all("metrics" not in chunk for chunk in plain[:-1])

    *chunks, last, _ = stream(FakeEngine(), path, body | {"stream_options": {"include_usage": True}})
    assert all(chunk["usage"] is None and "metrics" not in chunk for chunk in chunks)
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 2
    assert last["metrics"]["speculative_decoding"] == FIGURES


@pytest.mark.parametrize(("path", "body"), [(CHAT_PATH, CHAT), (TEXT_PATH, TEXT)])
@pytest.mark.parametrize("n", [1, 3])
def test_a_whole_reply_is_the_sum_of_the_stream(path: str, body: dict[str, Any], n: int) -> None:
    whole = ask(FakeEngine(), "POST", path, json=body | {"n": n}).json()
    *chunks, usage, _ = stream(FakeEngine(), path, body | {"n": n, "stream_options": {"include_usage": True}})
    assert usage["usage"] == whole["usage"]
    for choice in whole["choices"]:
        parts = [part for chunk in chunks for part in chunk["choices"] if part["index"] == choice["index"]]
        texts = [part["delta"].get("content", "") if "delta" in part else part["text"] for part in parts]
        assert "".join(texts) == (choice["message"]["content"] if "message" in choice else choice["text"])
        assert parts[-1]["finish_reason"] == choice["finish_reason"]
        assert parts[-1].get("metrics") == choice.get("metrics")


def test_each_choice_has_its_index_role_metrics_seed_and_id() -> None:
    engine = FakeEngine()
    reply = ask(engine, "POST", CHAT_PATH, json=CHAT | {"n": 3, "seed": 7}).json()
    assert [choice["index"] for choice in reply["choices"]] == [0, 1, 2]
    assert reply["usage"]["completion_tokens"] == 6
    assert reply["usage"]["prompt_tokens"] == 5
    assert "metrics" not in reply
    assert all(choice["metrics"]["speculative_decoding"]["num_rounds"] == 2 for choice in reply["choices"])
    assert [request.id for request in engine.submitted] == [f"{reply['id']}-{index}" for index in range(3)]
    assert [request.sampling.seed for request in engine.submitted] == [choice_seed(7, index) for index in range(3)]

    *chunks, _ = stream(FakeEngine(), CHAT_PATH, CHAT | {"n": 3})
    roles = [chunk["choices"][0]["index"] for chunk in chunks if "role" in chunk["choices"][0]["delta"]]
    assert sorted(roles) == [0, 1, 2]


def test_choices_of_several_prompts_are_numbered_prompt_by_prompt() -> None:
    engine = FakeEngine()
    body = TEXT | {"prompt": ["ab", "cde"], "n": 2, "seed": 5}
    reply = ask(engine, "POST", TEXT_PATH, json=body).json()
    assert [request.prompt for request in engine.submitted] == [(97, 98)] * 2 + [(99, 100, 101)] * 2
    assert [choice["index"] for choice in reply["choices"]] == [0, 1, 2, 3]
    assert reply["usage"]["prompt_tokens"] == 5
    assert reply["usage"]["prompt_tokens_details"]["cached_tokens"] == 4
    seeds = [request.sampling.seed for request in engine.submitted]
    assert seeds[:2] == seeds[2:]
    assert seeds[0] == 5 != seeds[1]


def test_equal_prompts_without_a_seed_get_different_seeds() -> None:
    engine = FakeEngine()
    assert ask(engine, "POST", TEXT_PATH, json=TEXT | {"prompt": ["a", "a"], "n": 2}).status_code == 200
    assert len({request.sampling.seed for request in engine.submitted}) == 4


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("ab", [(97, 98)]),
        (["ab", "c"], [(97, 98), (99,)]),
        ([1, 2, 255], [(1, 2, 255)]),
        ([[1, 2], [3]], [(1, 2), (3,)]),
    ],
)
def test_a_prompt_may_be_text_tokens_or_a_list_of_either(prompt: object, expected: list[tuple[int, ...]]) -> None:
    engine = FakeEngine()
    assert ask(engine, "POST", TEXT_PATH, json=TEXT | {"prompt": prompt}).status_code == 200
    assert [request.prompt for request in engine.submitted] == expected


def test_special_tokens_surround_bare_prompts_only() -> None:
    engine = FakeEngine()
    engine.tokenizer.bos = (1,)
    ask(engine, "POST", TEXT_PATH, json=TEXT)
    ask(engine, "POST", CHAT_PATH, json=CHAT)  # the template adds special tokens itself
    ask(engine, "POST", TEXT_PATH, json=TEXT | {"prompt": [7]})
    assert [request.prompt for request in engine.submitted] == [(1, *b"Hi"), tuple(b"u:Hi\n"), (7,)]


def test_parameters_reach_the_engine() -> None:
    engine = FakeEngine()
    body = TEXT | {"max_tokens": 9, "temperature": 0, "top_p": 0.5, "top_k": 4, "seed": -2, "stop": "x"}
    assert ask(engine, "POST", TEXT_PATH, json=body | {"ignore_eos": True, "draft_policy": "none"}).status_code == 200
    (request,) = engine.submitted
    assert request.draft_policy == "none"
    sampling = request.sampling
    assert (sampling.max_tokens, sampling.temperature, sampling.top_p, sampling.top_k) == (9, 0.0, 0.5, 4)
    assert (sampling.seed, sampling.stop, sampling.ignore_eos) == (2**63 - 2, ("x",), True)


def test_a_seed_of_minus_one_means_no_seed() -> None:
    engine = FakeEngine()
    for _ in range(2):
        ask(engine, "POST", TEXT_PATH, json=TEXT | {"seed": -1, "temperature": 1})
    first, second = (request.sampling.seed for request in engine.submitted)
    assert first != second


def test_absent_parameters_take_the_checkpoints_defaults() -> None:
    """The defaults are generation_config.json's. Its max_new_tokens is also a limit, as in vLLM."""
    engine = FakeEngine()
    engine.info = replace(INFO, sampling_defaults=(("temperature", 0.6), ("top_k", 20), ("max_tokens", 7)))
    ask(engine, "POST", CHAT_PATH, json=CHAT)
    assert engine.submitted[-1].sampling.max_tokens == 7
    long = "x" * (INFO.max_model_len - 3)
    ask(engine, "POST", TEXT_PATH, json={"prompt": list(long.encode())} | {"max_tokens": 3})
    assert engine.submitted[-1].sampling.max_tokens == 3
    assert ask(engine, "POST", CHAT_PATH, json={"messages": [{"role": "user", "content": long[4:]}]}).status_code == 200
    assert engine.submitted[-1].sampling.max_tokens == 4
    for body, want in (
        ({}, (7, 0.6, 1.0, 20)),
        ({"max_tokens": 3, "temperature": 1, "top_k": -1, "top_p": 0.5}, (3, 1.0, 0.5, -1)),
        ({"max_tokens": 9, "temperature": 0}, (7, 0.0, 1.0, 20)),
    ):
        ask(engine, "POST", TEXT_PATH, json=TEXT | {"max_tokens": None} | body)
        sampling = engine.submitted[-1].sampling
        assert (sampling.max_tokens, sampling.temperature, sampling.top_p, sampling.top_k) == want


def test_null_and_an_absent_parameter_mean_the_same() -> None:
    nulls = dict.fromkeys(
        ["max_tokens", "temperature", "top_p", "top_k", "stop", "n", "stream", "stream_options", "logprobs", "tools",
         "response_format", "draft_policy", "min_p", "user", "ignore_eos"]
    )  # fmt: skip
    engine = FakeEngine()
    assert ask(engine, "POST", CHAT_PATH, json=CHAT | nulls | {"seed": 1}).status_code == 200
    assert ask(engine, "POST", CHAT_PATH, json=CHAT | {"seed": 1}).status_code == 200
    given, absent = engine.submitted
    assert given.sampling == absent.sampling
    assert given.sampling.max_tokens is None
    assert ask(engine, "POST", TEXT_PATH, json=TEXT).status_code == 200
    assert engine.submitted[-1].sampling.max_tokens == 16


def test_absent_seeds_differ() -> None:
    engine = FakeEngine()
    for _ in range(2):
        ask(engine, "POST", TEXT_PATH, json=TEXT)
    first, second = (request.sampling.seed for request in engine.submitted)
    assert first != second
    assert min(first, second) >= 0
    assert max(first, second) < 2**63


def test_seeds_of_choices_stay_in_range_and_apart() -> None:
    seeds = {choice_seed(seed, choice) for seed in (0, 1, -1, 2**63 - 1, -(2**63)) for choice in range(1, 128)}
    assert len(seeds) == 5 * 127
    assert all(0 <= seed < 2**63 for seed in seeds)
    # The first output of the reference splitmix64 started at 0, less its top bit.
    assert choice_seed(0, 1) == 0xE220A8397B1DCDAF & (2**63 - 1)


def test_text_parts_are_joined_and_max_completion_tokens_takes_precedence() -> None:
    engine = FakeEngine()
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [{"role": "developer", "content": "s"}, {"role": "user", "content": parts}]
    body = CHAT | {"messages": messages, "max_tokens": 3, "max_completion_tokens": 1}
    assert ask(engine, "POST", CHAT_PATH, json=body).json()["choices"][0]["finish_reason"] == "length"
    assert engine.submitted[0].prompt == tuple(b"d:s\nu:a\nb\n")


def test_an_assistant_message_may_have_calls_and_no_content() -> None:
    engine = FakeEngine()
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    assert ask(engine, "POST", CHAT_PATH, json=CHAT | {"messages": messages}).status_code == 200
    call_text = b'<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'  # the template knows no calls
    assert engine.submitted[0].prompt == tuple(b"u:x\na:" + call_text + b"\n")


def test_an_empty_list_of_calls_is_removed() -> None:
    """Chat templates check whether the key exists, not whether the list is empty."""
    engine = FakeEngine()
    messages = [{"role": "assistant", "content": "Hi", "tool_calls": []}, {"role": "user", "content": "x"}]
    assert ask(engine, "POST", CHAT_PATH, json=CHAT | {"messages": messages}).status_code == 200
    assert engine.tokenizer.rendered[0]["messages"][0] == {"role": "assistant", "content": "Hi"}
    silent = [{"role": "assistant", "content": None, "tool_calls": []}]
    assert ask(engine, "POST", CHAT_PATH, json=CHAT | {"messages": silent}).status_code == 200


def test_tokens_without_text_make_no_chunk() -> None:
    *chunks, _ = stream(FakeEngine(("", "", "é\u2028", "")), TEXT_PATH, TEXT)
    assert [chunk["choices"][0]["text"] for chunk in chunks] == ["é\u2028", ""]


@pytest.mark.parametrize("path", [CHAT_PATH, TEXT_PATH, "/tokenize", "/detokenize"])
def test_a_tokenizer_never_runs_in_the_event_loop(path: str) -> None:
    """A checkpoint's regular expressions may take seconds for a short text."""
    threads: list[int] = []

    class Watched(ByteTokenizer):
        longest_token = 10**6

        def encode(self, text: str, *, add_special_tokens: bool = True, literal: bool = False) -> list[int]:
            threads.append(threading.get_ident())
            return [1]

        def decode(self, tokens: Sequence[int]) -> str:
            threads.append(threading.get_ident())
            return "x"

    for words in (1, 1000):
        engine = FakeEngine()
        engine.tokenizer = Watched()
        body: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi " * words}]}
        if path in (TEXT_PATH, "/tokenize"):
            body = {"prompt": "Hi " * words}
        elif path == "/detokenize":
            body = {"tokens": [100] * words}
        assert ask(engine, "POST", path, json=body).status_code == 200
        assert threads.pop() != threading.get_ident()
        assert not threads


def test_long_and_short_bodies_get_the_same_replies() -> None:
    engine = FakeEngine()
    body = CHAT | {"user": "x" * 5000}
    assert ask(engine, "POST", CHAT_PATH, json=body).json()["choices"][0]["message"]["content"] == "Hello"


def test_the_figures_have_every_key_of_the_contract() -> None:
    assert set(FIGURES) == set(SPECULATION.__dataclass_fields__)


def test_tokens_of_one_character_have_distinct_names_and_the_same_offset() -> None:
    names = TokenTexts(ByteTokenizer())
    found = [TokenLogprobs(token, -1.0, ((token ^ 1, -0.5), (token, -1.0))) for token in "a\U0001f600b".encode()]
    shown = completion_logprobs(found, names, TextOffsets(3))
    assert shown["text_offset"] == [3, 4, 4, 4, 4, 5]
    assert shown["tokens"] == ["a", "bytes:\\xf0", "bytes:\\x9f", "bytes:\\x98", "bytes:\\x80", "b"]
    assert shown["top_logprobs"][1] == {"bytes:\\xf0": -1.0, "bytes:\\xf1": -0.5}


@pytest.mark.parametrize("special", [False, True])
def test_offsets_skip_special_tokens_that_the_text_omits(special: bool) -> None:
    tokenizer = ByteTokenizer()
    tokenizer.special = frozenset("b")
    found = [TokenLogprobs(token, -1.0) for token in b"abc"]
    shown = completion_logprobs(found, TokenTexts(tokenizer), TextOffsets(special=special))
    assert shown["text_offset"] == [0, 1, 2 if special else 1]


def test_offsets_of_an_echo_are_positions_in_its_text() -> None:
    """The text omits the token that the tokenizer puts before it."""
    names = TokenTexts(ByteTokenizer())
    found = [TokenLogprobs(token, -1.0) for token in b"Hi"]
    assert prompt_logprobs(1, found, names, "Hi")["text_offset"] == [0, 0, 1]
    assert prompt_logprobs(ord("H"), found[1:], names, "Hi")["text_offset"] == [0, 1]


@pytest.mark.parametrize("n", [1, 3])
def test_the_end_of_a_stream_is_sent_as_one_message(n: int) -> None:
    """Each message is a write that wakes the client: the last chunk, usage and [DONE] are sent together."""
    bodies: list[bytes] = []
    body = json.dumps(CHAT | {"stream": True, "n": n, "stream_options": {"include_usage": True}}).encode()
    given = iter([{"type": "http.request", "body": body}])

    async def receive() -> Any:
        if (message := next(given, None)) is not None:
            return message
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            bodies.append(message["body"])
            assert message["more_body"] == (b"[DONE]" not in message["body"])

    async def run() -> None:
        engine = FakeEngine()
        await engine.start()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        scope = {"type": "http", "method": "POST", "path": CHAT_PATH, "headers": headers, "query_string": b""}
        await create_app(engine, ServerConfig())(scope, receive, send)

    asyncio.run(run())
    finish, usage, done = bodies[-1].decode().split("\n\n")[:-1][-3:]
    assert json.loads(finish.removeprefix("data: "))["choices"][0]["finish_reason"] == "stop"
    assert json.loads(usage.removeprefix("data: "))["usage"]["completion_tokens"] == 2 * n
    assert done == "data: [DONE]"
