"""Tool calls in a model's text: Hermes and Qwen, Llama 3, Mistral. State machines like those of `parsers`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from server.openai.replies.parsers import Delta, Markers, Parser, PlainParser, ReasoningParser

TOOL_FORMATS = ("hermes", "llama3_json", "mistral")
# What tells calls from text; some models have special tokens for it.
TOOL_MARKS = {"hermes": ("<tool_call>", "</tool_call>"), "mistral": ("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]")}


class _Call:
    """One JSON object {"name": …, "arguments": {…}} as it grows; arguments are passed on as they come."""

    def __init__(self, index: int, before: str = "", names: frozenset[str] | None = None) -> None:
        """`before`: what announced it, which is content should it be no call. `names`: no other name makes it one."""
        self._names = names
        self._passed = False  # arguments, of whatever kind
        self.index = index
        self.before = before
        self.text = ""  # all of it
        self.named = False
        self.closed = False  # or broken off
        self._depth = 0
        self._string = self._escaped = False
        self._token = ""  # the string being read
        self._key: str | None = None
        self._expects_value = False
        self._value: str | None = None  # arguments so far, raw
        self._early = ""  # arguments that came before the name

    def push(self, text: str) -> tuple[list[Delta], str]:
        """Deltas, and what is behind the end of the object."""
        deltas: list[Delta] = []
        arguments: list[str] = []
        for position, character in enumerate(text):
            if character == "<" and not self._string:  # of a tag: no JSON has one there
                self.closed = True
                deltas += self._arguments(arguments)
                return deltas, text[position:]
            self.text += character
            name = self._step(character, arguments)
            if name is not None and not self.named and (self._names is None or name in self._names):
                self.named = True
                deltas.append(Delta(call=self.index, name=name))
            if self.closed:
                deltas += self._arguments(arguments)
                if self.named and not self._passed:
                    deltas.append(Delta(call=self.index, arguments="{}"))
                return deltas, text[position + 1 :]
        return deltas + self._arguments(arguments), ""

    def _arguments(self, pieces: list[str]) -> list[Delta]:
        text = self._early + "".join(pieces)
        if not self.named:
            self._early = text
            return []
        self._early = ""
        self._passed = self._passed or bool(text)
        return [Delta(call=self.index, arguments=text)] if text else []

    def _step(self, character: str, arguments: list[str]) -> str | None:
        """Reads a character; the call's name, once it is known."""
        inside = self._value is not None
        if self._string:
            self._token += character
            if inside and not self._quoted:
                arguments.append(character)
            if self._escaped:
                self._escaped = False
            elif character == "\\":
                self._escaped = True
            elif character == '"':
                self._string = False
                return self._end_string(arguments)
            return None
        if character == '"':
            self._string, self._token = True, '"'
            if self._depth == 1 and self._expects_value and self._key in ("arguments", "parameters") and not inside:
                self._value, self._quoted = "", True  # arguments as a string of JSON
            elif inside:
                arguments.append(character)
            return None
        if character in "{[":
            self._depth += 1
            if self._depth == 2 and self._expects_value and self._key in ("arguments", "parameters") and not inside:
                self._value, self._quoted, inside = "", False, True
            if inside:
                arguments.append(character)
        elif character in "}]":
            self._depth -= 1
            if inside and self._depth >= 1:
                arguments.append(character)
            if self._depth == 1:
                self._value = None
            self.closed = self._depth == 0
        elif character == ":" and self._depth == 1:
            self._expects_value = True
        elif character == "," and self._depth == 1:
            self._expects_value, self._key, self._value = False, None, None
        elif inside and not self._quoted:
            arguments.append(character)
        return None

    _quoted = False

    def _end_string(self, arguments: list[str]) -> str | None:
        if self._depth != 1:
            return None
        text = _string(self._token)
        if not self._expects_value:
            self._key = text
        elif self._value is not None and self._quoted:
            arguments.append(text)
            self._value = None
        elif self._key == "name":
            return text
        return None


def _string(token: str) -> str:
    """What a JSON string says; halves of surrogate pairs, which no reply could be encoded with, are replaced."""
    try:
        return str(json.loads(token, strict=False)).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    except ValueError:
        return token.strip('"')


class _ToolParser:
    """What the formats have in common: content, then calls one after the other, perhaps with content between them."""

    def __init__(self, names: frozenset[str] | None = None) -> None:
        self._markers = Markers()
        self._names = names
        self._calls = 0
        self._call: _Call | None = None

    def _open(self, announced: str = "") -> None:
        self._call = _Call(self._calls, announced, self._names)

    def _read(self, text: str) -> tuple[list[Delta], str]:
        """Text into the open call; deltas, and what is behind the call once it is closed."""
        call = self._call
        assert call is not None
        if not call.text:
            begun = text.lstrip()
            call.before += text[: len(text) - len(begun)]
            text = begun
            if text and text[0] != "{":
                self._call = None
                return [Delta(content=call.before)] if call.before else [], text  # no call after all
        deltas, rest = call.push(text)
        if call.closed:
            self._call = None
            if call.named:
                self._calls += 1
            else:
                deltas = [Delta(content=call.before + call.text)]
        return deltas, rest

    def _cut_off(self) -> list[Delta]:
        """The message ended within a call: what has no name yet is content."""
        call, self._call = self._call, None
        text = "" if call is None or call.named else call.before + call.text
        return [Delta(content=text)] if text else []


class HermesParser(_ToolParser):
    """`<tool_call>{"name": …, "arguments": …}</tool_call>`, as many as there are (Hermes, Qwen)."""

    _OPEN, _CLOSE = "<tool_call>", "</tool_call>"

    def __init__(self) -> None:
        super().__init__()
        self._spaces = ""  # before a call they belong to its tag
        self._closing = False  # a call's closing tag is still to come
        self._after = False  # a call, and no content since

    def push(self, text: str) -> list[Delta]:
        deltas: list[Delta] = []
        while text:
            if self._call is not None:
                calls = self._calls
                found, text = self._read(text)
                deltas += self._unspaced(found)
                self._closing = self._after = self._calls > calls
                continue
            markers = [self._CLOSE, self._OPEN] if self._closing else [self._OPEN]
            before, marker, text = self._markers.push(text, markers)
            deltas += self._content(before)
            if marker is not None:
                self._closing = False
            if marker == self._OPEN:
                self._open(self._OPEN)
        return deltas

    def _unspaced(self, deltas: list[Delta]) -> list[Delta]:
        """What came of a call. White space before it belongs to its tag, unless it was none."""
        spaces, self._spaces = self._spaces, ""
        if spaces and deltas and deltas[0].content:
            return [Delta(content=spaces + deltas[0].content), *deltas[1:]]
        if not deltas:
            self._spaces = spaces
        return deltas

    def finish(self) -> list[Delta]:
        rest = self._markers.rest()
        called = self._calls > 0 or (self._call is not None and self._call.named)
        deltas = self._content(rest) + self._unspaced(self._cut_off())
        if self._spaces and not called:  # the end of a text without calls
            deltas.append(Delta(content=self._spaces))
        return deltas

    def _content(self, text: str) -> list[Delta]:
        """Content without the white space that surrounds calls, nor braces too many behind them."""
        if self._after:
            text = text.lstrip("} \n\r\t") if self._closing else text.lstrip()
        if not text:
            return []
        self._after = False
        text = self._spaces + text
        stripped = text.rstrip()
        self._spaces = text[len(stripped) :]
        return [Delta(content=stripped)] if stripped else []


class MistralParser(_ToolParser):
    """`[TOOL_CALLS][{"name": …, "arguments": …}, …]`, or `[TOOL_CALLS]name[ARGS]{…}` of later versions."""

    _OPEN, _ID, _ARGS, _SEPARATORS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[], \n\t"

    def __init__(self) -> None:
        super().__init__()
        self._within = False
        self._name = ""
        self._bare: _Arguments | None = None

    def push(self, text: str) -> list[Delta]:
        deltas: list[Delta] = []
        while text:
            if self._bare is not None:
                found, text = self._bare.push(text)
                deltas += found
                if self._bare.closed:
                    self._bare, self._calls = None, self._calls + 1
            elif self._call is not None:
                found, text = self._read(text)
                deltas += found
            elif not self._within:
                before, marker, text = self._markers.push(text, [self._OPEN])
                deltas += [Delta(content=before)] if before else []
                self._within, self._name = marker is not None, ""
            else:
                text = self._between(text, deltas)
        return deltas

    def _between(self, text: str, deltas: list[Delta]) -> str:
        """Behind the marker or a call: the next call's beginning."""
        character, rest = text[0], text[1:]
        if character == "{" and not self._name.strip(self._SEPARATORS):
            self._name = ""
            self._open()
            return text
        self._name += character
        if self._name.endswith(self._ARGS):
            name = self._name.removesuffix(self._ARGS).partition(self._ID)[0].strip(self._SEPARATORS)
            deltas.append(Delta(call=self._calls, name=name))
            self._bare, self._name = _Arguments(self._calls), ""
        elif self._name.endswith(self._OPEN):
            self._name = ""
        return rest

    def finish(self) -> list[Delta]:
        rest = self._markers.rest()
        name, self._name = self._name, ""
        name = name.lstrip(self._SEPARATORS) if self._calls else name if name.strip(self._SEPARATORS) else ""
        return [Delta(content=text) for text in (rest, name) if text] + self._cut_off()


class _Arguments:
    """A bare JSON value in braces."""

    def __init__(self, index: int) -> None:
        self._call = _Call(index)
        self._call.named = True
        self._call.push('{"arguments":')
        self.closed = False

    def push(self, text: str) -> tuple[list[Delta], str]:
        deltas: list[Delta] = []
        for position, character in enumerate(text):
            found, _ = self._call.push(character)
            deltas += found
            if character in "}]" and self._call._depth == 1:
                self.closed = True
                return list(_joined(deltas)), text[position + 1 :]
        return list(_joined(deltas)), ""


def _joined(deltas: Sequence[Delta]) -> Iterator[Delta]:
    """Arguments of one call in one piece."""
    text = "".join(delta.arguments for delta in deltas)
    if text:
        yield Delta(call=deltas[0].call, arguments=text)


class Llama3Parser(_ToolParser):
    """`{"name": …, "parameters": {…}}`, and nothing else; several with `;` between, perhaps after `<|python_tag|>`."""

    _TAG = "<|python_tag|>"

    def __init__(self, names: frozenset[str] | None = None) -> None:
        """`names` of the tools: nothing else tells a call from an answer that is JSON."""
        super().__init__(names)
        self._content = False
        self._held = ""

    def push(self, text: str) -> list[Delta]:
        deltas: list[Delta] = []
        while text:
            if self._content:
                return [*deltas, Delta(content=text)]
            if self._call is not None:
                found, text = self._read(text)
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

    def finish(self) -> list[Delta]:
        held, self._held = self._held, ""
        return ([Delta(content=held)] if held.strip() and not self._calls else []) + self._cut_off()


def make_parser(
    tools: str | None, *, reasoning: bool, thinking: bool, names: frozenset[str] | None = None
) -> Parser | None:
    """For one message: `tools` is one of TOOL_FORMATS where calls may come, `names` those of the tools.

    None where text is only text.
    """
    formats: dict[str, Callable[[], Parser]] = {
        "hermes": HermesParser,
        "mistral": MistralParser,
        "llama3_json": partial(Llama3Parser, names),
    }
    inner = formats[tools]() if tools else PlainParser()
    if reasoning:
        return ReasoningParser(inner, thinking=thinking)
    return inner if tools else None
