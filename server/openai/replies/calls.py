"""Parsers of tool calls in the formats of Hermes and Qwen, Llama 3 and Mistral, built like those of `parsers`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from engine.text.markers import MarkerSplitter
from server.openai.replies.call import ArgumentsParser, CallParser
from server.openai.replies.parsers import AnswerParser, Delta, Parser, PlainParser, ReasoningParser, begins

TOOL_FORMATS = ("hermes", "llama3_json", "mistral")
# Markers around calls. Some models have special tokens for them.
TOOL_MARKS = {"hermes": ("<tool_call>", "</tool_call>"), "mistral": ("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]")}


_BEGUN = '{"name":'


class _ToolParser:
    """Common part of the formats: content, then calls, possibly with content between them."""

    call_marker = ""
    ignored: tuple[str, ...] = ()

    def __init__(self, names: frozenset[str] | None = None) -> None:
        self._markers = MarkerSplitter()
        self._names = names
        self._calls = 0
        self._call: CallParser | None = None

    def _open(self, announced: str = "") -> None:
        self._call = CallParser(self._calls, announced, self._names)

    def _read_call(self, text: str) -> tuple[list[Delta], str]:
        """Parse text of the open call. Returns deltas, and the text after the call if it is complete."""
        call = self._call
        assert call is not None
        if not call.text:
            begun = text.lstrip()
            call.before += text[: len(text) - len(begun)]
            text = begun
            if text and text[0] != "{":
                self._call = None
                return [Delta(content=call.before)] if call.before else [], text  # not a call
        deltas, rest = call.push(text)
        if call.closed:
            self._call = None
            if call.named:
                self._calls += 1
            else:
                deltas = [Delta(content=call.before + call.text)]
        return deltas, rest

    def begins_call(self, text: str) -> bool | None:
        begun = text.lstrip()
        return begun[0] == "{" if begun else None

    @property
    def calling(self) -> bool:
        return self._call is not None and self._call.named

    def _finish_call(self, *, cut: bool) -> list[Delta]:
        """End the message within a call. A call without a name is content, unless the message was cut off."""
        call, self._call = self._call, None
        if cut:
            return []
        text = "" if call is None or call.named else call.before + call.text
        return [Delta(content=text)] if text else []


class HermesParser(_ToolParser):
    """Any number of `<tool_call>{"name": …, "arguments": …}</tool_call>` (Hermes, Qwen)."""

    call_marker = _OPEN = "<tool_call>"
    _CLOSE = "</tool_call>"

    def __init__(self) -> None:
        super().__init__()
        self._space = ""  # trailing white space, which is shown before more text only
        self._space_before = ""  # the same of the text before the last calls
        self._said = False  # there is content
        self._closing = False  # a closing tag is expected
        self._after_call = False  # no content since the last call

    def push(self, text: str) -> list[Delta]:
        deltas: list[Delta] = []
        while text:
            if self._call is not None:
                calls = self._calls
                found, text = self._read_call(text)
                deltas += self._with_content(found)
                self._closing = self._after_call = self._calls > calls
                if self._after_call:
                    self._space_before, self._space = self._space or self._space_before, ""
                continue
            before, marker, text = self._markers.push(text, self._expected)
            deltas += self._content(before)
            if marker in (self._OPEN, self._CLOSE):
                self._closing = False
            if marker == self._CLOSE and self._after_call:
                self._space = ""  # between a call and its tag
            if marker == self._OPEN:
                self._open(self._OPEN)
        return deltas

    @property
    def _expected(self) -> list[str]:
        return [self._OPEN, *([self._CLOSE] if self._closing else []), *self.ignored]

    def _with_content(self, deltas: list[Delta]) -> list[Delta]:
        """Parse the text of an invalid call as content."""
        return [new for delta in deltas for new in (self._content(delta.content) if delta.content else [delta])]

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        rest = self._markers.flush()
        if cut and begins(rest + stop, self._expected):
            rest = ""
        called = self._calls > 0 or (self._call is not None and self._call.named)
        deltas = self._content(rest) + self._with_content(self._finish_call(cut=cut))
        if self._space and not called:  # a text without calls keeps its trailing white space
            deltas.append(Delta(content=self._space))
        return deltas

    def _content(self, text: str) -> list[Delta]:
        """Return content without the white space around it and without surplus braces after calls.

        White space between two texts is kept; where calls lie between them, only the last of it.
        """
        if self._after_call:
            begun = text.lstrip("} \n\r\t" if self._closing else None)
            self._space += text[: len(text) - len(begun)].replace("}", "")
            text = begun
        if not text:
            return []
        self._after_call = False
        text = self._space + text
        stripped = text.rstrip()
        self._space = text[len(stripped) :]
        if not stripped:
            return []
        if self._calls and not self._said:
            stripped = stripped.lstrip()
        elif not stripped[0].isspace():
            stripped = self._space_before + stripped
        self._space_before, self._said = "", True
        return [Delta(content=stripped)]


class MistralParser(_ToolParser):
    """`[TOOL_CALLS][{"name": …, "arguments": …}, …]`, or later `[TOOL_CALLS]name[ARGS]{…}`, also without `[ARGS]`."""

    call_marker = _OPEN = "[TOOL_CALLS]"
    _ID, _ARGS, _SEPARATORS = "[CALL_ID]", "[ARGS]", "[], \n\t"
    _NAME = re.compile(r"[\w./:-]+(\[CALL_ID\]\w*)?\s*")

    def __init__(self) -> None:
        super().__init__()
        self._in_calls = False
        self._announced = False  # no call since the last opening marker
        self._said = False  # there is content
        self._name = ""
        self._arguments_parser: ArgumentsParser | None = None

    def push(self, text: str) -> list[Delta]:
        deltas: list[Delta] = []
        while text:
            if self._arguments_parser is not None:
                found, text = self._arguments_parser.push(text)
                deltas += found
                if self._arguments_parser.closed:
                    self._arguments_parser, self._calls = None, self._calls + 1
            elif self._call is not None:
                found, text = self._read_call(text)
                deltas += found
            elif not self._in_calls:
                before, marker, text = self._markers.push(text, [self._OPEN])
                deltas += self._content(before)
                self._in_calls = self._announced = marker is not None
                self._name = ""
            else:
                text = self._next_call(text, deltas)
        return deltas

    def _next_call(self, text: str, deltas: list[Delta]) -> str:
        """Read a character between calls, where the next one may start. Returns the remaining text."""
        character, rest = text[0], text[1:]
        if character == "{" and not self._name.strip(self._SEPARATORS):
            self._name, self._announced = "", False
            self._open()
            return text
        if character == "{" and self._announced and self._NAME.fullmatch(self._name):
            character, rest = self._ARGS, text
        self._name += character
        if self._name.endswith(self._ARGS):
            name = self._name.removesuffix(self._ARGS).partition(self._ID)[0].strip(self._SEPARATORS)
            deltas.append(Delta(call=self._calls, name=name))
            self._arguments_parser, self._name, self._announced = ArgumentsParser(self._calls), "", False
        elif self._name.endswith(self._OPEN):
            deltas += self._between(self._name.removesuffix(self._OPEN)) if self._calls else []
            self._name, self._announced = "", True
        return rest

    def _content(self, text: str) -> list[Delta]:
        self._said = self._said or bool(text)
        return [Delta(content=text)] if text else []

    def _between(self, text: str) -> list[Delta]:
        """Return the text after a call, with the white space before it if it follows other text."""
        begun = text.lstrip(self._SEPARATORS)
        skipped = text[: len(text) - len(begun)]
        space = skipped[len(skipped.rstrip()) :] if self._said else ""
        return self._content(space + begun) if begun else []

    def begins_call(self, text: str) -> bool | None:
        """A name follows the marker at once, unlike a word in prose."""
        begun = text.lstrip()
        return begun[0] in "[{" or text[0].isalpha() or text[0] == "_" if begun else None

    @property
    def calling(self) -> bool:
        return super().calling or self._arguments_parser is not None

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        rest = self._markers.flush()
        name, self._name = self._name, ""
        if cut and begins(rest + stop, [self._OPEN]):
            rest = ""
        before, marker, _ = MarkerSplitter().push(name + stop, [self._ARGS, self._ID, self._OPEN])
        if cut and (not stop or self._announced or marker is not None or len(before) < len(name)):
            name = ""
        name = name if name.strip(self._SEPARATORS) else ""
        found = self._between(name) if self._calls else self._content(name)
        return self._content(rest) + found + self._finish_call(cut=cut)


class Llama3Parser(_ToolParser):
    """Messages of only `{"name": …, "parameters": {…}}`, separated by `;`, perhaps after `<|python_tag|>`."""

    _TAG = "<|python_tag|>"

    def __init__(self, names: frozenset[str] | None = None) -> None:
        """`names` of the tools distinguish a call from an answer in JSON."""
        super().__init__(names)
        self._content = False
        self._held = ""

    def push(self, text: str) -> list[Delta]:
        deltas: list[Delta] = []
        while text:
            if self._content:
                return [*deltas, Delta(content=text)]
            if self._call is not None:
                found, text = self._read_call(text)
                deltas += found
                self._content = any(delta.content for delta in found)
                continue
            self._held, text = self._held + text, ""
            begin = self._held.lstrip(" \n;") if self._calls else self._held.lstrip()
            begin = begin.removeprefix(self._TAG).lstrip()
            if begin.startswith("{"):
                self._held, text = "", begin
                self._open()
            elif begin and not self._TAG.startswith(begin):
                held, self._held, self._content = self._held, "", True
                deltas.append(Delta(content=begin if self._calls else held))
        return deltas

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        held, self._held = self._held, ""
        if cut and begins(held.lstrip() + stop, [self._TAG]):
            held = ""
        text = "".join(self._call.text.split()) if self._call is not None else ""
        call = text.startswith(_BEGUN) or _BEGUN.startswith(text)  # and no other answer in JSON
        deltas = [Delta(content=held)] if held.strip() and not self._calls else []
        return deltas + self._finish_call(cut=cut and call)


def make_parser(
    tools: str | None, *, reasoning: bool, thinking: bool, names: frozenset[str] | None = None
) -> Parser | None:
    """Make the parser of one message, or return None if its text is only content.

    `tools` is one of TOOL_FORMATS, or None for a message without calls. `names` are the names of the tools.
    """
    formats: dict[str, Callable[[], AnswerParser]] = {
        "hermes": HermesParser,
        "mistral": MistralParser,
        "llama3_json": partial(Llama3Parser, names),
    }
    inner = formats[tools]() if tools else PlainParser()
    if reasoning:
        return ReasoningParser(inner, thinking=thinking)
    return inner if tools else None
