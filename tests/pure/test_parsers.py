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

Calls = list[tuple[str, Any]]
ONE, TWO = [("time", {})], [("time", {}), ("time", {})]
HERMES_CASES: dict[str, tuple[str, Calls]] = {  # texts -> content and calls
    "Just text, a < b, <tool> and {}.": ("Just text, a < b, <tool> and {}.", []),
    f"<tool_call>\n{WEATHER}\n</tool_call>": ("", [("weather", WEATHER_ARGUMENTS)]),
    f"Let me see.\n\n{CALL}": ("Let me see.", ONE),
    f"<tool_call>\n{WEATHER}\n</tool_call>\n{CALL}\n": ("", [("weather", WEATHER_ARGUMENTS), *ONE]),
    '<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>': ("", [("f", {"a": 1})]),
    '<tool_call>{"name": "f", "arguments": "{\\"a\\": \\"b\\"}"}</tool_call>': ("", [("f", {"a": "b"})]),
    # Line ends in strings, which JSON forbids, also where arguments are a text.
    '<tool_call>{"name": "f", "arguments": {\n"a": "b\n\t\\n\x01", "c": "\\\\\n"}}</tool_call>': (
        "",
        [("f", {"a": "b\n\t\n\x01", "c": "\\\n"})],
    ),
    '<tool_call>{"name": "f", "arguments": "{\\n\\"a\\": \\"b\\n\nc\\"}"}</tool_call>': ("", [("f", {"a": "b\n\nc"})]),
    '<tool_call>{"id": {"name": "x"}, "name": "f", "arguments": {"name": "y"}, "z": 1}</tool_call>': (
        "",
        [("f", {"name": "y"})],
    ),
    f"<tool_call>{TIME}</tool_call>\n\nDone now.\n\nNext one.": ("Done now.\n\nNext one.", ONE),
    f"Let me. {CALL}\n\nAnd then {CALL}\nDone.\n": ("Let me.\n\nAnd then\n\nDone.", TWO),
    f"\nLet me.\n{CALL}{CALL}Done.": ("\nLet me.\n\nDone.", TWO),
    f" {CALL} {CALL} x": ("x", TWO),
    # Without a closing tag, and with a brace more or less.
    f"<tool_call>{TIME}\n<tool_call>{TIME}": ("", TWO),
    f"<tool_call>{TIME}\nI called it.": ("I called it.", ONE),
    f'<tool_call>{{"name": "f", "arguments": {{"a": "<"}}\n</tool_call>\n{CALL}': ("", [("f", {"a": "<"}), *ONE]),
    f"<tool_call>{TIME}}}\n</tool_call>\nDone.": ("Done.", ONE),
    f"<tool_call>{TIME[:-1]}<b>bold</b> </tool_call>\nDone.": ("<b>bold</b> \nDone.", ONE),
    '<tool_call>{"name": "f"</tool_call>': ("", [("f", {})]),
    '<tool_call>{"arguments": true, "name": "f"</tool_call>': ("", [("f", True)]),
    # Arguments that are no object, and what is no call.
    '<tool_call>{"name": "f"}</tool_call>': ("", [("f", {})]),
    '<tool_call>{"name": "f", "arguments": null}</tool_call>': ("", [("f", {})]),
    '<tool_call>{"name": "f", "arguments": 5}</tool_call>': ("", [("f", 5)]),
    '\n<tool_call> {"a": 1}</tool_call>.': ('\n<tool_call> {"a": 1}</tool_call>.', []),
    "<tool_call>soon</tool_call>": ("<tool_call>soon</tool_call>", []),
}
LLAMA_CASES: dict[str, tuple[str, Calls]] = {
    '{"name": "f", "parameters": {"a": [1, 2]}}': ("", [("f", {"a": [1, 2]})]),
    '<|python_tag|>{"name": "f", "parameters": {}}; {"name": "g", "parameters": {"b": null}}': (
        "",
        [("f", {}), ("g", {"b": None})],
    ),
    **{text: (text, []) for text in ("It is {not} a call.", '{"answer": 5}', '{"name": "Bob", "age": 5}')},
}
MISTRAL_CASES: dict[str, tuple[str, Calls]] = {
    f"[TOOL_CALLS][{TIME}] ok then": ("ok then", ONE),
    f"Well.[TOOL_CALLS][{TIME}]\n\nAnd [TOOL_CALLS]f[ARGS]{{}} ok": ("Well.\n\nAnd\n\nok", [*ONE, ("f", {})]),
    'Well.[TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g[CALL_ID]x1 {"b": {}}\nOk {c}': (
        "Well.\n\nOk {c}",
        [("f", {"a": 1}), ("g", {"b": {}})],
    ),
    "[TOOL_CALLS] is {a}, b{c}": (" is {a}, b{c}", []),
    "[TOOL_CALLS]f[CALL_ID]abc[ARGS]{}": ("", [("f", {})]),
    f"[TOOL_CALLS] [{WEATHER}, {TIME}]": ("", [("weather", WEATHER_ARGUMENTS), *ONE]),
    'Well. [TOOL_CALLS]f[ARGS]{"a": {"b": "]}"}}[TOOL_CALLS]g[ARGS]{}': (
        "Well.",
        [("f", {"a": {"b": "]}"}}), ("g", {})],
    ),
    '[TOOL_CALLS]f[ARGS]{"a": "b\nc"}': ("", [("f", {"a": "b\nc"})]),
    "[TOOL] x [": ("[TOOL] x [", []),
}
REASONS, REASONING = maker(None, reasoning=True), maker(None, reasoning=True, thinking=True)
REASONING_CASES: list[tuple[Make, str, str, str, Calls]] = [  # maker, text, content, reasoning, calls
    (REASONS, "<think>\nHm, 1 < 2.\n</think>\n\nYes.", "Yes.", "Hm, 1 < 2.\n", []),
    (REASONS, "Yes, <think> is a tag.", "Yes, <think> is a tag.", "", []),
    (REASONING, "\nHm.</think>Yes.", "Yes.", "Hm.", []),
    (REASONING, "Hm </thin", "Hm </thin", "Hm </thin", []),
    (maker("hermes", reasoning=True), f"<think>a</think>\n{CALL}", "", "a", ONE),
    # Calls before it ends to think, and thoughts of calls.
    (THINKING, f"a\n{CALL}\n</think>\n\n{CALL}Done.", "Done.", "a\n", TWO),
    (THINKING, f"\n<tool_call> \n{TIME}", "", "", ONE),
    (THINKING, f"<tool_call> or <tool_call><tool_call>{TIME}", "", "<tool_call> or <tool_call>", ONE),
    (THINKING, "Say <tool_call>.</think>No.", "No.", "Say <tool_call>.", []),
    (THINKING, "Say <tool_call>\n", "Say <tool_call>\n", "Say <tool_call>\n", []),
    (THINKING, f'<tool_call>{{"name": "</think>", "arguments": {{}}}}{CALL}', "", "", [("</think>", {}), *ONE]),
    (
        maker("mistral", reasoning=True, thinking=True),
        "a [TOOL_CALLS] b[TOOL_CALLS]f[ARGS]{}",
        "",
        "a [TOOL_CALLS] b",
        [("f", {})],
    ),
]
CASES: list[tuple[Make, str, str, str, Calls]] = [
    *((HERMES, text, content, "", calls) for text, (content, calls) in HERMES_CASES.items()),
    *((LLAMA, text, content, "", calls) for text, (content, calls) in LLAMA_CASES.items()),
    *((MISTRAL, text, content, "", calls) for text, (content, calls) in MISTRAL_CASES.items()),
    *REASONING_CASES,
]


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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1])
def test_a_message_that_is_cut_off_shows_no_part_of_a_marker(case: tuple[Make, str, str, str, Calls]) -> None:
    """What it shows is the beginning of what the whole message shows, wherever the limit or a stop string falls."""
    make, text, *_ = case
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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1])
def test_a_message_is_parsed_alike_wherever_it_is_cut(case: tuple[Make, str, str, str, Calls]) -> None:
    make, text, content, reasoning, calls = case
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
def test_texts_around_calls_are_stripped_and_become_paragraphs(parts: list[str]) -> None:
    texts = "".join(part if len(part) == 1 else "|" for part in parts).split("|")
    stripped = [text.strip() for text in texts if text.strip()]
    if len(texts) == 1:
        stripped = texts
    elif texts[0].strip():  # its first white space has been sent before there was a call
        stripped[0] = texts[0].rstrip()
    assert parsed(HERMES, ["".join(parts)])[0] == "\n\n".join(stripped)
