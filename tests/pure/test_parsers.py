"""Reasoning and tool calls are parsed alike however the text is cut into pieces."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.answer.calls import make_parser
from server.answer.parsers import Delta, Parser
from tests.support.examples import examples

Make = Callable[[], Parser]


def maker(
    tools: str | None, *, reasoning: bool = False, thinking: bool = False, names: frozenset[str] | None = None
) -> Make:
    def make() -> Parser:
        parser = make_parser(tools, reasoning=reasoning, thinking=thinking, names=names)
        assert parser is not None
        return parser

    return make


HERMES, LLAMA, MISTRAL = maker("hermes"), maker("llama3_json", names=frozenset("fg")), maker("mistral")
THINKING = maker("hermes", reasoning=True, thinking=True)
WEATHER = '{"name": "weather", "arguments": {"city": "Bern", "days": [1, {"n": "}]"}], "note": "a \\"b\\" {"}}'
TIME = '{"name": "time", "arguments": {}}'
CALL = f"<tool_call>{TIME}\n</tool_call>"
WEATHER_ARGUMENTS = {"city": "Bern", "days": [1, {"n": "}]"}], "note": 'a "b" {'}

# maker, text -> content, reasoning, calls
CASES: dict[str, tuple[Make, str, str, str, list[tuple[str, Any]]]] = {
    "no call": (HERMES, "Just text, a < b, <tool> and {}.", "Just text, a < b, <tool> and {}.", "", []),
    "one": (HERMES, f"<tool_call>\n{WEATHER}\n</tool_call>", "", "", [("weather", WEATHER_ARGUMENTS)]),
    "text before": (HERMES, f"Let me see.\n\n<tool_call>{TIME}</tool_call>", "Let me see.", "", [("time", {})]),
    "two": (
        *(HERMES, f"<tool_call>\n{WEATHER}\n</tool_call>\n<tool_call>\n{TIME}\n</tool_call>\n", "", ""),
        [("weather", WEATHER_ARGUMENTS), ("time", {})],
    ),
    "arguments first": (
        *(HERMES, '<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>', "", ""),
        [("f", {"a": 1})],
    ),
    "arguments as text": (
        *(HERMES, '<tool_call>{"name": "f", "arguments": "{\\"a\\": \\"b\\"}"}</tool_call>', "", ""),
        [("f", {"a": "b"})],
    ),
    "line ends in strings": (  # which JSON forbids
        *(HERMES, '<tool_call>{"name": "f", "arguments": {\n"a": "b\n\t\\n\x01", "c": "\\\\\n"}}</tool_call>', "", ""),
        [("f", {"a": "b\n\t\n\x01", "c": "\\\n"})],
    ),
    "line ends in arguments as text": (
        *(HERMES, '<tool_call>{"name": "f", "arguments": "{\\n\\"a\\": \\"b\\n\nc\\"}"}</tool_call>', "", ""),
        [("f", {"a": "b\n\nc"})],
    ),
    "line ends in bare arguments": (MISTRAL, '[TOOL_CALLS]f[ARGS]{"a": "b\nc"}', "", "", [("f", {"a": "b\nc"})]),
    "further keys": (
        *(
            HERMES,
            '<tool_call>{"id": {"name": "x"}, "name": "f", "arguments": {"name": "y"}, "z": 1}</tool_call>',
            "",
            "",
        ),
        [("f", {"name": "y"})],
    ),
    "text after": (
        *(HERMES, f"<tool_call>{TIME}</tool_call>\n\nDone now.\n\nNext one.", "Done now.\n\nNext one.", ""),
        [("time", {})],
    ),
    "text around": (
        *(HERMES, f"Let me. {CALL}\n\nAnd then {CALL}\nDone.\n", "Let me.\n\nAnd then\nDone.", ""),
        [("time", {}), ("time", {})],
    ),
    "text around two": (
        *(HERMES, f"\nLet me.\n{CALL}{CALL}Done.", "\nLet me.\nDone.", "", [("time", {}), ("time", {})]),
    ),
    "white space around": (HERMES, f" {CALL} {CALL} x", "x", "", [("time", {}), ("time", {})]),
    "no closing tag": (HERMES, f"<tool_call>{TIME}\n<tool_call>{TIME}", "", "", [("time", {}), ("time", {})]),
    "no closing tag, text": (HERMES, f"<tool_call>{TIME}\nI called it.", "I called it.", "", [("time", {})]),
    "a brace short": (
        *(
            HERMES,
            f'<tool_call>{{"name": "f", "arguments": {{"a": "<"}}\n</tool_call>\n<tool_call>{TIME}</tool_call>',
            "",
        ),
        *("", [("f", {"a": "<"}), ("time", {})]),
    ),
    "a brace too many": (HERMES, f"<tool_call>{TIME}}}\n</tool_call>\nDone.", "Done.", "", [("time", {})]),
    "a broken call, text, its closing tag": (
        *(HERMES, f"<tool_call>{TIME[:-1]}<b>bold</b> </tool_call>\nDone.", "<b>bold</b> \nDone.", ""),
        [("time", {})],
    ),
    "no arguments": (HERMES, '<tool_call>{"name": "f"}</tool_call>', "", "", [("f", {})]),
    "null arguments": (HERMES, '<tool_call>{"name": "f", "arguments": null}</tool_call>', "", "", [("f", {})]),
    "a number as arguments": (HERMES, '<tool_call>{"name": "f", "arguments": 5}</tool_call>', "", "", [("f", 5)]),
    "a word as arguments, a brace short": (
        *(HERMES, '<tool_call>{"arguments": true, "name": "f"</tool_call>', "", "", [("f", True)]),
    ),
    "no arguments, a brace short": (HERMES, '<tool_call>{"name": "f"</tool_call>', "", "", [("f", {})]),
    "no name": (HERMES, '\n<tool_call> {"a": 1}</tool_call>.', '\n<tool_call> {"a": 1}</tool_call>.', "", []),
    "no object": (HERMES, "<tool_call>soon</tool_call>", "<tool_call>soon</tool_call>", "", []),
    "llama": (LLAMA, '{"name": "f", "parameters": {"a": [1, 2]}}', "", "", [("f", {"a": [1, 2]})]),
    "llama, two": (
        *(LLAMA, '<|python_tag|>{"name": "f", "parameters": {}}; {"name": "g", "parameters": {"b": null}}', "", ""),
        [("f", {}), ("g", {"b": None})],
    ),
    "llama, text": (LLAMA, "It is {not} a call.", "It is {not} a call.", "", []),
    "llama, JSON that is no call": (LLAMA, '{"answer": 5}', '{"answer": 5}', "", []),
    "llama, JSON with a name": (LLAMA, '{"name": "Bob", "age": 5}', '{"name": "Bob", "age": 5}', "", []),
    "mistral, text after": (MISTRAL, f"[TOOL_CALLS][{TIME}] ok then", "ok then", "", [("time", {})]),
    "mistral, text around": (
        *(MISTRAL, f"Well.[TOOL_CALLS][{TIME}]\n\nAnd [TOOL_CALLS]f[ARGS]{{}} ok", "Well.\n\nAnd  ok", ""),
        [("time", {}), ("f", {})],
    ),
    "mistral, no marker of arguments": (
        *(MISTRAL, 'Well.[TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g[CALL_ID]x1 {"b": {}}\nOk {c}', "Well.\nOk {c}", ""),
        [("f", {"a": 1}), ("g", {"b": {}})],
    ),
    "mistral, no call": (MISTRAL, "[TOOL_CALLS] is {a}, b{c}", " is {a}, b{c}", "", []),
    "mistral, ids": (MISTRAL, "[TOOL_CALLS]f[CALL_ID]abc[ARGS]{}", "", "", [("f", {})]),
    "mistral": (
        *(MISTRAL, f"[TOOL_CALLS] [{WEATHER}, {TIME}]", "", ""),
        [("weather", WEATHER_ARGUMENTS), ("time", {})],
    ),
    "mistral, new": (
        *(MISTRAL, 'Well. [TOOL_CALLS]f[ARGS]{"a": {"b": "]}"}}[TOOL_CALLS]g[ARGS]{}', "Well. ", ""),
        [("f", {"a": {"b": "]}"}}), ("g", {})],
    ),
    "mistral, text": (MISTRAL, "[TOOL] x [", "[TOOL] x [", "", []),
    "thinks": (maker(None, reasoning=True), "<think>\nHm, 1 < 2.\n</think>\n\nYes.", "Yes.", "Hm, 1 < 2.\n", []),
    "has begun to think": (maker(None, reasoning=True, thinking=True), "\nHm.</think>Yes.", "Yes.", "Hm.", []),
    "does not think": (maker(None, reasoning=True), "Yes, <think> is a tag.", "Yes, <think> is a tag.", "", []),
    "never ends": (maker(None, reasoning=True, thinking=True), "Hm </thin", "Hm </thin", "Hm </thin", []),
    "calls before it ends to think": (
        *(THINKING, f"a\n{CALL}\n</think>\n\n{CALL}Done.", "Done.", "a\n", [("time", {}), ("time", {})]),
    ),
    "calls first": (THINKING, f"\n<tool_call> \n{TIME}", "", "", [("time", {})]),
    "thinks of calls": (
        *(THINKING, f"<tool_call> or <tool_call><tool_call>{TIME}", "", "<tool_call> or <tool_call>", [("time", {})]),
    ),
    "thinks of calls only": (THINKING, "Say <tool_call>.</think>No.", "No.", "Say <tool_call>.", []),
    "thinks of calls to the end": (THINKING, *["Say <tool_call>\n"] * 3, []),
    "calls with a tag, then mentions it": (
        *(THINKING, f'<tool_call>{{"name": "</think>", "arguments": {{}}}}{CALL}', "", ""),
        [("</think>", {}), ("time", {})],
    ),
    "mistral, calls before it ends to think": (
        *(maker("mistral", reasoning=True, thinking=True), "a [TOOL_CALLS] b[TOOL_CALLS]f[ARGS]{}", ""),
        *("a [TOOL_CALLS] b", [("f", {})]),
    ),
    "thinks and calls": (
        *(maker("hermes", reasoning=True), f"<think>a</think>\n<tool_call>{TIME}</tool_call>", "", "a"),
        [("time", {})],
    ),
}


def parsed(
    make: Make, pieces: list[str], *, cut: bool = False, stop: str = ""
) -> tuple[str, str, list[tuple[str, str]]]:
    """Content, reasoning, and calls with their arguments as text; deltas of calls must come in order."""
    parser = make()
    deltas: list[Delta] = []
    for piece in pieces:
        deltas += parser.push(piece)
    deltas += parser.finish(cut=cut, stop=stop)
    calls: list[tuple[str, str]] = []
    for delta in deltas:
        assert sum(map(bool, (delta.content, delta.reasoning, delta.call is not None))) == 1
        if delta.name is not None:
            assert delta.call == len(calls)
            calls.append((delta.name, ""))
        elif delta.call is not None:
            assert delta.call == len(calls) - 1
            calls[-1] = calls[-1][0], calls[-1][1] + delta.arguments
    return "".join(d.content for d in deltas), "".join(d.reasoning for d in deltas), calls


@pytest.mark.parametrize("name", CASES)
def test_a_message_that_is_cut_off_shows_no_part_of_a_marker(name: str) -> None:
    """What it shows is the beginning of what the whole message shows, wherever the limit or a stop string falls."""
    make, text, *_ = CASES[name]
    content, reasoning, calls = parsed(make, [text])
    for end, length in itertools.product(range(len(text)), (0, 1, 4, 20)):
        said, thought, called = parsed(make, [text[:end]], cut=True, stop=text[end : end + length])
        assert content.startswith(said.rstrip())  # white space may belong to a tag that follows
        assert reasoning.startswith(thought)
        assert [name for name, _ in called] == [name for name, _ in calls[: len(called)]]
        assert all(whole.startswith(part) for (_, whole), (_, part) in zip(calls, called, strict=False))


@pytest.mark.parametrize("tools", ["hermes", "llama3_json", "mistral"])
def test_text_before_a_stop_string_is_kept_if_no_marker_fits(tools: str) -> None:
    for text in ("<", "a <tool_", "a [TOOL", "<think>", "<thi", "<|py"):
        make = maker(tools, names=frozenset("f"), reasoning=text != "<think>")
        assert parsed(make, [text], cut=True, stop="x")[0] == text


@pytest.mark.parametrize("name", CASES)
def test_a_message_is_parsed_alike_wherever_it_is_cut(name: str) -> None:
    make, text, content, reasoning, calls = CASES[name]
    cuts = [[text], list(text), *([text[:i], text[i:]] for i in range(1, len(text)))]
    for pieces in cuts:
        said, thought, called = parsed(make, pieces)
        assert (said, thought) == (content, reasoning)
        assert [(name, json.loads(arguments)) for name, arguments in called] == calls


@examples(300)
@given(st.data())
def test_any_mixture_of_markers_is_parsed_alike_wherever_it_is_cut(data: st.DataObject) -> None:
    """Texts are random mixtures of markers, JSON and letters."""
    parts = ["<tool_call>", "</tool_call>", "<think>", "</think>", "[TOOL_CALLS]", "[ARGS]", WEATHER, TIME, "{", "}"]
    parts += ['"', "\\", "name", ":", ",", " ", "\n", "x", "<", "[", "]", ";", "ü", "<|python_tag|>"]
    text = "".join(data.draw(st.lists(st.sampled_from(parts), max_size=14)))
    tools = data.draw(st.sampled_from([None, "hermes", "llama3_json", "mistral"]))
    make = maker(tools, reasoning=tools is None or data.draw(st.booleans()), thinking=data.draw(st.booleans()))
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6))
    edges = [0, *sorted(cuts), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    assert parsed(make, pieces) == parsed(make, [text]) == parsed(make, list(text))


@pytest.mark.parametrize(
    ("make", "before"), [(HERMES, '<tool_call>{"name": "f", "arguments": '), (MISTRAL, "[TOOL_CALLS]f[ARGS]")]
)
@given(st.dictionaries(st.text(), st.text() | st.lists(st.integers() | st.none(), max_size=3), max_size=3), st.data())
def test_each_piece_of_the_arguments_is_shown_at_once_as_it_is_written(
    make: Make, before: str, arguments: dict[str, Any], data: st.DataObject
) -> None:
    """Only control characters are escaped, which JSON does not allow within strings."""
    text = json.dumps(arguments, ensure_ascii=data.draw(st.booleans()), indent=data.draw(st.sampled_from([None, 2])))
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6))
    parser = make()
    assert [delta.name for delta in parser.push(before)] == ["f"]
    for start, end in itertools.pairwise([0, *sorted(cuts), len(text)]):
        assert "".join(delta.arguments for delta in parser.push(text[start:end])) == text[start:end]


@given(st.lists(st.sampled_from(["a", " ", "\n", CALL, f"<tool_call>{TIME} \n}}\n</tool_call>"]), max_size=12))
def test_the_last_white_space_around_calls_is_kept_between_texts(parts: list[str]) -> None:
    message = "".join(parts)
    runs: list[list[str]] = [[""]]  # of white space between calls, before, between and after texts
    for part in parts:
        if part == "a":
            runs.append([""])
        elif part.isspace():
            runs[-1][-1] += part
        else:
            runs[-1].append("")
    first, last = runs[0], runs[-1]
    gaps = [next((run for run in reversed(gap) if run), "") for gap in runs]
    gaps[0] = gaps[0] if len(first) == 1 else ""
    called = any(len(gap) > 1 for gap in runs)
    if called and last is not first:
        gaps[-1] = ""
    assert parsed(HERMES, [message])[0] == "a".join(gaps)
