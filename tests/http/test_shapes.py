"""Log-probabilities, echoes, reasoning and tool calls in replies, and the input of the chat template."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from engine.types import FinishReason, RequestRound, TokenEvent
from server.answer.calls import make_parser
from server.answer.pieces import Answers, ReplyFormat
from server.apis.replies import Completion
from server.config import ServerConfig
from tests.support.fake import FakeEngine
from tests.support.harness import CHAT, CHAT_PATH, TEXT, TEXT_PATH, ask
from tests.support.speaking import CALL, TOOL, SpeakingEngine, deltas, pieces, whole

# -- log-probabilities -------------------------------------------------------------------------------------------------


def test_logprobs_of_a_chat_have_openais_shape() -> None:
    body = CHAT | {"logprobs": True, "top_logprobs": 2}
    found = whole(SpeakingEngine(("H\xe9",)), CHAT_PATH, body)["logprobs"]
    assert found["refusal"] is None
    assert [entry["bytes"] for entry in found["content"]] == [[72], [0xC3], [0xA9]]
    assert [entry["token"] for entry in found["content"]] == ["H", "�", "�"]
    top = [{"token": "a", "logprob": -0.5, "bytes": [97]}, {"token": "b", "logprob": -1.5, "bytes": [98]}]
    assert all(entry["logprob"] == -0.25 and entry["top_logprobs"] == top for entry in found["content"])
    streamed = deltas(SpeakingEngine(("H", "\xe9")), CHAT_PATH, body)
    assert [entry for c in streamed if c["logprobs"] for entry in c["logprobs"]["content"]] == found["content"]


def test_chat_logprobs_alone_have_no_alternatives() -> None:
    found = whole(SpeakingEngine(("ab",)), CHAT_PATH, CHAT | {"logprobs": True})["logprobs"]
    assert [entry["top_logprobs"] for entry in found["content"]] == [[], []]


def test_logprobs_of_a_completion_have_openais_shape() -> None:
    found = whole(SpeakingEngine(("xy", "z")), TEXT_PATH, TEXT | {"logprobs": 1})["logprobs"]
    assert found == {
        "tokens": ["x", "y", "z"],
        "token_logprobs": [-0.25] * 3,
        "top_logprobs": [{"x": -0.25, "a": -0.5}, {"y": -0.25, "a": -0.5}, {"z": -0.25, "a": -0.5}],
        "text_offset": [0, 1, 2],
    }


def test_a_completion_without_alternatives_has_the_logprobs_of_its_own_tokens() -> None:
    body = TEXT | {"logprobs": 0, "echo": True, "prompt": "ab"}
    found = whole(SpeakingEngine(("xy",)), TEXT_PATH, body)["logprobs"]
    assert found["token_logprobs"] == [None, -0.75, -0.25, -0.25]
    assert found["top_logprobs"] == [None, {"b": -0.75}, {"x": -0.25}, {"y": -0.25}]


def test_logprobs_of_held_back_tokens_are_sent_with_their_text() -> None:
    streamed = deltas(SpeakingEngine(("a", "<tool", "_x")), CHAT_PATH, CHAT | {"logprobs": True, "tools": [TOOL]})
    assert "".join(c["delta"].get("content", "") for c in streamed) == "a<tool_x"
    assert sum(len(c["logprobs"]["content"]) for c in streamed if c["logprobs"]) == 8


# -- echo, and prompts alone -------------------------------------------------------------------------------------------


def test_an_echo_precedes_every_choice() -> None:
    body = TEXT | {"prompt": ["ab", "c"], "echo": True, "n": 2}
    reply = ask(FakeEngine(), "POST", TEXT_PATH, json=body).json()
    assert [choice["text"] for choice in reply["choices"]] == ["abHello", "abHello", "cHello", "cHello"]
    assert whole(FakeEngine(), TEXT_PATH, TEXT | {"prompt": [104, 105], "echo": True})["text"] == "hiHello"
    assert deltas(FakeEngine(), TEXT_PATH, TEXT | {"echo": True})[0]["text"] == "Hi"


def test_an_echo_has_logprobs_too() -> None:
    """Scoring harnesses need the prompt's tokens first; the first of them has no log-probability."""
    body = TEXT | {"prompt": ["ab\xe9", [99]], "echo": True, "logprobs": 1}
    reply = ask(SpeakingEngine(("xy",)), "POST", TEXT_PATH, json=body).json()
    Completion.model_validate(reply)
    first, second = (choice["logprobs"] for choice in reply["choices"])
    assert first == {
        "tokens": ["a", "b", "bytes:\\xc3", "bytes:\\xa9", "x", "y"],
        "token_logprobs": [None, -0.75, -0.75, -0.75, -0.25, -0.25],
        "top_logprobs": [
            None,
            {"b": -0.75, "a": -0.5},
            {"bytes:\\xc3": -0.75, "a": -0.5},
            {"bytes:\\xa9": -0.75, "a": -0.5},
            {"x": -0.25, "a": -0.5},
            {"y": -0.25, "a": -0.5},
        ],
        "text_offset": [0, 1, 2, 2, 3, 4],  # two bytes are one character
    }
    assert second["tokens"] == ["c", "x", "y"]
    assert second["token_logprobs"] == [None, -0.25, -0.25]
    for changed in ({"max_tokens": 0}, {"max_tokens": 0, "stream": True}):
        engine = SpeakingEngine(("xy",))
        if "stream" in changed:
            (opening, end) = deltas(engine, TEXT_PATH, TEXT | {"echo": True, "logprobs": 1} | changed)
            assert end["logprobs"] is None
        else:
            opening = whole(engine, TEXT_PATH, TEXT | {"echo": True, "logprobs": 1} | changed)
        assert opening["text"] == "Hi"
        assert opening["logprobs"]["tokens"] == ["H", "i"]
        assert opening["logprobs"]["token_logprobs"] == [None, -0.75]
    assert not any(
        ask(engine, "POST", TEXT_PATH, json=TEXT | change) and engine.submitted[-1].sampling.prompt_logprobs
        for change in ({"echo": True}, {"logprobs": 1})
    )


def test_an_answer_of_no_tokens_is_empty() -> None:
    engine = FakeEngine()
    reply = ask(engine, "POST", TEXT_PATH, json=TEXT | {"echo": True, "max_tokens": 0}).json()
    assert reply["choices"][0]["text"] == "Hi"
    assert reply["choices"][0]["finish_reason"] == "length"
    assert (reply["usage"]["completion_tokens"], reply["usage"]["total_tokens"]) == (0, 2)
    assert engine.submitted[0].sampling.max_tokens == 1


# -- reasoning and tools -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_reasoning_is_separated_from_the_answer(size: int) -> None:
    engine = SpeakingEngine(pieces("<think>\nHm.\n</think>\n\nYes.", size))
    message = whole(engine, CHAT_PATH, CHAT)["message"]
    assert message["content"] == "Yes."
    assert message["reasoning_content"] == message["reasoning"] == "Hm.\n"
    assert whole(SpeakingEngine(("Yes.",)), CHAT_PATH, CHAT)["message"].keys() == {"role", "content", "refusal"}


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_reasoning_that_the_model_ends_unclosed_is_the_answer_too(size: int) -> None:
    engine = SpeakingEngine(pieces("<think>\nYes, or </thin", size))
    message = whole(engine, CHAT_PATH, CHAT)["message"]
    assert message["content"] == message["reasoning_content"] == "Yes, or </thin"
    last, end = deltas(engine, CHAT_PATH, CHAT)[-2:]
    assert (last["delta"], end["finish_reason"]) == ({"content": "Yes, or </thin"}, "stop")
    cut = whole(SpeakingEngine(pieces("<think>\nYes, or ", 5)), CHAT_PATH, CHAT | {"max_tokens": 3})
    assert (cut["message"]["content"], cut["finish_reason"]) == ("", "length")
    assert whole(SpeakingEngine(("<think>\n ",)), CHAT_PATH, CHAT)["message"]["content"] == ""


def test_reasoning_tokens_are_counted_in_events_of_any_length() -> None:
    class Rounds(SpeakingEngine):
        async def _events(self, request: Any) -> Any:
            async for event in super()._events(request):
                yield replace(event, pieces=tuple(event.text.split("|")), text=event.text.replace("|", ""))

    tokens = ("<think>", "a", "b", "</think>", "c", "d")
    for script in (tokens, ("<think>|a", "b|</think>|c|d"), ("|".join(tokens),)):
        reply = ask(Rounds(script), "POST", CHAT_PATH, json=CHAT).json()
        assert reply["usage"]["completion_tokens_details"]["reasoning_tokens"] == 4
        assert reply["choices"][0]["message"]["content"] == "cd"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_tool_calls_are_the_same_whole_and_streamed(size: int) -> None:
    body = CHAT | {"tools": [TOOL]}
    choice = whole(SpeakingEngine(pieces(CALL, size)), CHAT_PATH, body)
    assert choice["finish_reason"] == "tool_calls"
    message = choice["message"]
    (call,) = message["tool_calls"]
    assert message["content"] is None
    assert call["type"] == "function"
    assert call["id"].startswith("call_")
    assert call["function"]["name"] == "weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Bern"}
    streamed = deltas(SpeakingEngine(pieces(CALL, size)), CHAT_PATH, body)
    calls = [call for c in streamed for call in c["delta"].get("tool_calls", [])]
    assert all(call["index"] == 0 for call in calls)
    assert [call["function"]["name"] for call in calls if "name" in call["function"]] == ["weather"]
    assert json.loads("".join(call["function"]["arguments"] for call in calls)) == {"city": "Bern"}
    assert streamed[-1]["finish_reason"] == "tool_calls"
    assert "tool_call" not in "".join(c["delta"].get("content") or "" for c in streamed)


def test_ids_of_calls_suit_mistrals_templates() -> None:
    """Ids have nine letters and digits; longer ids in a conversation are cut."""

    class Mistral(SpeakingEngine):
        info = replace(SpeakingEngine.info, tool_format="mistral")

    engine = Mistral(('[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Bern"}}]',))
    (call,) = whole(engine, CHAT_PATH, CHAT | {"tools": [TOOL]})["message"]["tool_calls"]
    assert re.fullmatch("[a-zA-Z0-9]{9}", call["id"])
    for known, expected in ((call["id"], call["id"]), ("call_0123456789abcdef", "789abcdef"), ("a-1", "0000000a1")):
        made = {"role": "assistant", "content": None, "tool_calls": [call | {"id": known}]}
        told = {"role": "tool", "content": "12", "tool_call_id": known}
        ask(engine, "POST", CHAT_PATH, json=CHAT | {"messages": [*CHAT["messages"], made, told], "tools": [TOOL]})
        *_, made, told = engine.tokenizer.rendered[-1]["messages"]
        assert made["tool_calls"][0]["id"] == told["tool_call_id"] == expected


@pytest.mark.parametrize("arguments", ['"\\ud83d"', '{"a": "\\udc00"}'])
def test_half_a_surrogate_pair_in_a_call_does_not_lose_the_reply(arguments: str) -> None:
    call = f'<tool_call>\n{{"name": "weather", "arguments": {arguments}}}\n</tool_call>'
    message = whole(SpeakingEngine((call,)), CHAT_PATH, CHAT | {"tools": [TOOL]})["message"]
    assert message["tool_calls"][0]["function"]["name"] == "weather"


@pytest.mark.parametrize(("special", "with_tools", "without"), [("<tool_call>", True, False), ("</think>", True, True)])
def test_special_tokens_that_mark_calls_are_kept_for_the_parser(special: str, with_tools: bool, without: bool) -> None:
    """They separate calls and reasoning from text. Other answers omit special tokens as usual."""
    engine = SpeakingEngine((CALL,))
    engine.tokenizer.special = frozenset({special})
    for tools, shown in (([TOOL], with_tools), ([], without)):
        whole(engine, CHAT_PATH, CHAT | {"tools": tools})
        assert engine.submitted[-1].sampling.skip_special_tokens is not shown


def test_without_parallel_tool_calls_only_the_first_is_returned() -> None:
    body = CHAT | {"tools": [TOOL]}
    assert len(whole(SpeakingEngine((CALL, CALL)), CHAT_PATH, body)["message"]["tool_calls"]) == 2
    single = whole(SpeakingEngine((CALL, CALL)), CHAT_PATH, body | {"parallel_tool_calls": False})
    assert len(single["message"]["tool_calls"]) == 1


def test_calls_without_tools_are_plain_text() -> None:
    for body in (CHAT, CHAT | {"tools": [TOOL], "tool_choice": "none"}):
        engine = SpeakingEngine((CALL,))
        choice = whole(engine, CHAT_PATH, body)
        assert choice["message"]["content"] == CALL
        assert choice["finish_reason"] == "stop"
        assert engine.tokenizer.rendered[-1]["tools"] == []


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_a_forced_call_is_decoded_with_a_grammar(choice: Any) -> None:
    engine = SpeakingEngine((CALL,))
    assert whole(engine, CHAT_PATH, CHAT | {"tools": [TOOL], "tool_choice": choice})["finish_reason"] == "tool_calls"
    grammar = engine.submitted[0].sampling.grammar
    assert grammar is not None
    assert "weather" in grammar
    assert "<tool_call>" in grammar
    free = SpeakingEngine((CALL,))
    whole(free, CHAT_PATH, CHAT | {"tools": [TOOL]})
    assert free.submitted[0].sampling.grammar is None


def test_tools_with_references_and_a_schema_make_one_grammar() -> None:
    parameters = {"$defs": {"A": {"type": "integer"}}, "type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    engine = SpeakingEngine((CALL,))
    whole(engine, CHAT_PATH, CHAT | {"tools": [tool, TOOL], "tool_choice": "required"})
    both = CHAT | {"tools": [tool], "response_format": {"type": "json_object"}}
    whole(engine, CHAT_PATH, both)
    assert "calls | answer" in str(engine.submitted[1].sampling.grammar)


def test_a_schema_cannot_set_options_of_the_grammar_library() -> None:
    engine = SpeakingEngine()
    schema = {"type": "object", "x-guidance": {"item_separator": "FOO"}}
    answer = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    whole(engine, CHAT_PATH, CHAT | {"response_format": answer})
    assert "FOO" not in str(engine.submitted[0].sampling.grammar)


def test_parsers_can_be_turned_off() -> None:
    config = ServerConfig(tool_call_parser="none", reasoning_parser="none")
    engine = SpeakingEngine(("<think>a</think>b",))
    reply = ask(engine, "POST", CHAT_PATH, json=CHAT, config=config).json()
    assert reply["choices"][0]["message"]["content"] == "<think>a</think>b"
    refused = ask(SpeakingEngine(), "POST", CHAT_PATH, json=CHAT | {"tools": [TOOL]}, config=config)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "tools")


# -- what reaches engine and template ----------------------------------------------------------------------------------


def test_sampling_parameters_reach_the_engine() -> None:
    engine = SpeakingEngine()
    body = {
        "min_p": 0.1, "presence_penalty": 1, "frequency_penalty": -1.5, "repetition_penalty": 1.2,
        "logit_bias": {"7": -100, "3": 2.5}, "stop_token_ids": [9], "min_tokens": 2, "max_tokens": 5,
        "skip_special_tokens": False, "include_stop_str_in_output": True,
    }  # fmt: skip
    ask(engine, "POST", CHAT_PATH, json=CHAT | body)
    seen = engine.submitted[0].sampling
    assert (seen.min_p, seen.presence_penalty, seen.frequency_penalty, seen.repetition_penalty) == (0.1, 1, -1.5, 1.2)
    assert (seen.logit_bias, seen.stop_token_ids, seen.min_tokens) == (((7, -100), (3, 2.5)), (9,), 2)
    assert (seen.skip_special_tokens, seen.include_stop, seen.logprobs, seen.grammar) == (False, True, None, None)


@pytest.mark.parametrize(("path", "body"), [(CHAT_PATH, CHAT), (TEXT_PATH, TEXT)])
def test_a_response_format_is_decoded_with_a_grammar(path: str, body: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}}
    for response_format in (
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}},
    ):
        engine = SpeakingEngine()
        whole(engine, path, body | {"response_format": response_format})
        grammar = engine.submitted[0].sampling.grammar
        assert grammar is not None
        assert ("age" in grammar) == ("json_schema" in response_format)


def test_a_tiny_temperature_is_greedy() -> None:
    engine = SpeakingEngine()
    whole(engine, CHAT_PATH, CHAT | {"temperature": 1e-40})
    assert engine.submitted[0].sampling.greedy


def test_predictions_are_cut_to_the_context() -> None:
    engine = FakeEngine()
    whole(engine, CHAT_PATH, CHAT | {"prediction": {"type": "content", "content": "x" * 100}})
    assert engine.submitted[0].sampling.predicted == (120,) * 64


def test_the_template_gets_messages_tools_and_options() -> None:
    engine = SpeakingEngine()
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
        {"role": "assistant", "content": "It is"},
    ]
    body = {"messages": messages, "tools": [TOOL], "chat_template_kwargs": {"enable_thinking": False}}
    ask(engine, "POST", CHAT_PATH, json=body | {"continue_final_message": True})
    shown = engine.tokenizer.rendered[0]
    assert shown["messages"][1]["tool_calls"][0]["function"] == {"name": "f", "arguments": {"a": 1}}
    assert shown["tools"] == [TOOL]
    assert shown["options"] == {"enable_thinking": False}
    assert shown["flags"] == (False, True)
    for change, flags in (({}, (True, False)), ({"add_generation_prompt": False}, (False, False))):
        ask(engine, "POST", CHAT_PATH, json=CHAT | change)
        assert engine.tokenizer.rendered[-1]["flags"] == flags


# -- /tokenize and /detokenize -----------------------------------------------------------------------------------------


def test_tokenize_and_detokenize_are_inverse() -> None:
    reply = ask(FakeEngine(), "POST", "/tokenize", json={"prompt": "Hé", "return_token_strs": True})
    assert reply.json() == {"count": 3, "max_model_len": 64, "tokens": [72, 195, 169], "token_strs": ["H", "�", "�"]}
    assert ask(FakeEngine(), "POST", "/detokenize", json={"tokens": [72, 195, 169]}).json() == {"prompt": "Hé"}
    chat = ask(FakeEngine(), "POST", "/tokenize", json={"messages": CHAT["messages"]}).json()
    assert bytes(chat["tokens"]).decode() == "u:Hi\n"
    assert chat["token_strs"] is None


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        ("/tokenize", {}, 400, "prompt"),
        ("/tokenize", {"prompt": "a", "messages": CHAT["messages"]}, 400, "prompt"),
        ("/tokenize", {"prompt": 5}, 400, "prompt"),
        ("/tokenize", {"prompt": "a", "model": "none"}, 404, "model"),
        ("/tokenize", {"messages": []}, 400, "messages"),
        ("/detokenize", {}, 400, "tokens"),
        ("/detokenize", {"tokens": [1, 256]}, 400, "tokens[1]"),
        ("/detokenize", {"tokens": [-1]}, 400, "tokens[0]"),
        ("/detokenize", {"tokens": "a"}, 400, "tokens"),
    ],
)
def test_a_bad_tokenize_request_is_refused_by_field(path: str, body: dict[str, Any], status: int, param: str) -> None:
    reply = ask(FakeEngine(), "POST", path, json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (status, param)


def test_tokenize_and_detokenize_need_the_key() -> None:
    config = ServerConfig(api_key=("secret",))
    for path, body in (("/tokenize", {"prompt": "a"}), ("/detokenize", {"tokens": [1]})):
        assert ask(FakeEngine(), "POST", path, json=body, config=config).status_code == 401
        headers = {"authorization": "Bearer secret"}
        assert ask(FakeEngine(), "POST", path, json=body, config=config, headers=headers).status_code == 200


# -- rounds, and the page that shows them ------------------------------------------------------------------------------


class TracingEngine(SpeakingEngine):
    """An engine that reports rounds of three tokens, two of them drafted."""

    async def _events(self, request: Any) -> Any:
        async for event in super()._events(request):
            part = RequestRound("a", "knapspec", 3, 4, 2, 4, 9, 0, 2, 60.0, None, plan=(1, 1, 0, 0, 1))
            trace = part if request.sampling.trace else None
            yield replace(event, trace=trace, pieces=(event.text[:1], event.text[1:2], event.text[2:]))


def test_returned_rounds_name_their_drafted_tokens() -> None:
    body = CHAT | {"return_rounds": True}
    choice = whole(TracingEngine(("Hel", "lo!")), CHAT_PATH, body)
    expected = {"drafted": 4, "accepted": 2, "context": 9, "plan": "11001", "predicted_tpt": 60.0, "source": "model"}
    assert choice["rounds"] == [
        {"tokens": [["H", False], ["e", False], ["l", True]]} | expected,
        {"tokens": [["l", False], ["o", False], ["!", True]]} | expected,
    ]
    streamed = deltas(TracingEngine(("Hel", "lo!")), CHAT_PATH, body)
    assert [c["round"] for c in streamed if "round" in c] == choice["rounds"]
    assert "rounds" not in whole(TracingEngine(), CHAT_PATH, CHAT)


def test_the_page_needs_no_key_and_no_other_host() -> None:
    reply = ask(FakeEngine(), "GET", "/", config=ServerConfig(api_key=("secret",)))
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "unsafe-inline" not in reply.headers["content-security-policy"].partition("script-src")[2]
    assert not re.search(r"(src|href)\s*=\s*\W?[a-z]*:?//", reply.text.partition("<script>")[0])
    assert "return_rounds" in reply.text


FORCED = CHAT | {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "weather"}}}


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_a_limit_or_a_stop_string_ends_within_a_call_says_so(streamed: bool) -> None:
    for limit in range(1, len(pieces(CALL))):
        body = FORCED | {"max_tokens": limit}
        if streamed:
            choices = deltas(SpeakingEngine(pieces(CALL)), CHAT_PATH, body)
            content, reason = "".join(c["delta"].get("content") or "" for c in choices), choices[-1]["finish_reason"]
        else:
            choice = whole(SpeakingEngine(pieces(CALL)), CHAT_PATH, body)
            content, reason = choice["message"]["content"] or "", choice["finish_reason"]
        assert (content, reason) == ("", "length")


@pytest.mark.parametrize(("ended_by", "reason"), [(",", "stop"), ("</tool_call>", "tool_calls")])
def test_a_stop_string_within_a_call_is_no_call(ended_by: str, reason: str) -> None:
    class StoppedEngine(SpeakingEngine):
        async def _events(self, request: Any) -> Any:
            async for event in super()._events(request):
                yield event if event.finish_reason is None else replace(event, stop_string=ended_by)

    text = CALL[: CALL.index('": "Bern') if ended_by == "," else CALL.index(ended_by)]
    choice = whole(StoppedEngine(pieces(text)), CHAT_PATH, FORCED | {"stop": [ended_by]})
    assert choice["finish_reason"] == reason
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "weather"


def test_a_stop_string_that_ends_within_a_marker_shows_no_part_of_the_marker() -> None:
    class StoppedEngine(SpeakingEngine):
        async def _events(self, request: Any) -> Any:
            async for event in super()._events(request):
                yield event if event.finish_reason is None else replace(event, stop_string=request.sampling.stop[0])

    for said, stop, shown in (("<tool_", "call>", ""), ("<t", "hink>", ""), ("<t", "able>", "<t"), ("a <", "b", "a <")):
        body = CHAT | {"tools": [TOOL], "stop": [stop]}
        assert whole(StoppedEngine((said,)), CHAT_PATH, body)["message"]["content"] == shown


@pytest.mark.parametrize("max_calls", [None, 1])
def test_an_answer_that_a_limit_ends_after_a_call_has_a_complete_call(max_calls: int | None) -> None:
    """The same holds where a second call is left out. Text after the call, as its closing tag, may be missing."""
    format = ReplyFormat(
        [1],
        parser=lambda: make_parser("hermes", reasoning=False, thinking=False),
        max_calls=max_calls,
    )
    for end in range(CALL.index('":'), len(CALL + CALL)):
        request = TokenEvent("r", (CALL + CALL)[:end], (1,), FinishReason.LENGTH, 1, 1, 0)
        piece = Answers(format).step(0, request)[-1]
        rest = end - len(CALL) if max_calls is None and end > len(CALL) else min(end, len(CALL))
        assert piece.finish is not None
        assert piece.finish.unfinished_call == (CALL.index(", ") <= rest < CALL.index("}}") + 2)


OTHER = CALL.replace("Bern", "Berlin")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("said", "calls"),
    [
        ([CALL, CALL, CALL, OTHER], 1),
        ([CALL, OTHER, CALL, OTHER], 2),
        ([CALL, OTHER], 2),
        ([OTHER, CALL], 2),
        ([CALL], 1),
        ([CALL, CALL[:-30]], 2),
    ],
)
def test_a_repeated_call_ends_an_answer_that_must_call(said: list[str], calls: int, streamed: bool) -> None:
    engine = SpeakingEngine(pieces("\n".join(said)))
    body = CHAT | {"tools": [TOOL], "tool_choice": "required"}
    if streamed:
        choices = deltas(engine, CHAT_PATH, body)
        parts = [call for c in choices for call in c["delta"].get("tool_calls", [])]
        found = ["".join(p["function"]["arguments"] for p in parts if p["index"] == i) for i in range(calls)]
        assert max(part["index"] for part in parts) == calls - 1
        reason = choices[-1]["finish_reason"]
    else:
        choice = whole(engine, CHAT_PATH, body)
        found = [call["function"]["arguments"] for call in choice["message"]["tool_calls"]]
        reason = choice["finish_reason"]
    assert len(found) == calls
    assert found[0] == ('{"city": "Berlin"}' if said[0] == OTHER else '{"city": "Bern"}')
    assert reason == ("stop" if said[-1] not in (CALL, OTHER) else "tool_calls")
    assert not engine.running
    free = SpeakingEngine(pieces("\n".join([CALL, CALL])))
    assert len(whole(free, CHAT_PATH, CHAT | {"tools": [TOOL]})["message"]["tool_calls"]) == 2


@pytest.mark.parametrize("size", [1, 4, 7, 23, 1000])
def test_what_follows_a_repeated_call_is_not_counted(size: int) -> None:
    """However many tokens a round has, usage and log-probabilities end with the call."""
    text = "\n".join([CALL, CALL, OTHER, OTHER])

    class RoundsEngine(SpeakingEngine):
        async def _events(self, request: Any) -> Any:
            events = [event async for event in super()._events(request)]
            for first in range(0, len(events), size):
                joined = TokenEvent.joined(events[first : first + size])
                yield joined

    engine = RoundsEngine(tuple(text))
    body = CHAT | {"tools": [TOOL], "tool_choice": "required", "logprobs": True}
    reply = ask(engine, "POST", CHAT_PATH, json=body).json()
    end = len(CALL) * 2 + 1 - len("}\n</tool_call>")
    assert reply["usage"]["completion_tokens"] in (end, end + 1)
    assert len(reply["choices"][0]["logprobs"]["content"]) == reply["usage"]["completion_tokens"]
    assert reply["choices"][0]["finish_reason"] == "tool_calls"
