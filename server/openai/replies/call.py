"""Read the JSON of one tool call as it grows."""

from __future__ import annotations

import json
import re

from server.openai.replies.parsers import Delta

# JSON forbids control characters within strings, but models write them, above all line ends in code.
_ESCAPES = {code: json.dumps(chr(code))[1:-1] for code in range(32)}
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*', re.DOTALL)


class CallParser:
    """Parse one growing JSON object {"name": …, "arguments": {…}}. Arguments are returned as they arrive."""

    def __init__(self, index: int, before: str = "", names: frozenset[str] | None = None) -> None:
        """`before` is the text of the marker, which is content if no call follows. `names`: the only valid names."""
        self._names = names
        self._has_arguments = False
        self.index = index
        self.before = before
        self.text = ""  # all characters of the object
        self.named = False
        self.closed = False  # complete or broken off
        self._depth = 0
        self._string = self._escaped = False
        self._token = ""  # current string
        self._key: str | None = None
        self._expects_value = False
        self._value: str | None = None  # not None within the arguments
        self._quoted = False  # the arguments are a JSON string
        self._scalar = ""  # the arguments, if they are a number or word
        self._pending = ""  # arguments that precede the name

    def push(self, text: str) -> tuple[list[Delta], str]:
        """Return deltas, and the text after the end of the object."""
        deltas: list[Delta] = []
        arguments: list[str] = []
        for position, character in enumerate(text):
            tag = character == "<" and not self._string  # the start of a tag; JSON has no "<" outside strings
            if tag:
                self.closed, name = True, None
            else:
                self.text += character
                name = self._step(character, arguments)
            if name is not None and not self.named and (self._names is None or name in self._names):
                self.named = True
                deltas.append(Delta(call=self.index, name=name))
            if self.closed:
                self._end_scalar(arguments)
                deltas += self._arguments(arguments)
                if self.named and not self._has_arguments:
                    deltas.append(Delta(call=self.index, arguments="{}"))
                return deltas, text[position if tag else position + 1 :]
        return deltas + self._arguments(arguments), ""

    def _arguments(self, pieces: list[str]) -> list[Delta]:
        text = self._pending + "".join(pieces)
        if not self.named:
            self._pending = text
            return []
        self._pending = ""
        self._has_arguments = self._has_arguments or bool(text)
        return [Delta(call=self.index, arguments=text)] if text else []

    def _step(self, character: str, arguments: list[str]) -> str | None:
        """Read a character. Returns the call's name when it is complete."""
        inside = self._value is not None
        if self._string:
            self._token += character
            if inside and not self._quoted:
                arguments.append(_ESCAPES.get(ord(character), character))
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
            if self._expects_arguments:
                self._value, self._quoted = "", True  # arguments given as a JSON string
            elif inside:
                arguments.append(character)
            return None
        if character in "{[":
            if self._expects_arguments:
                self._value, self._quoted, inside = "", False, True
            self._depth += 1
            if inside:
                arguments.append(character)
        elif character in "}]":
            self._depth -= 1
            if inside and self._depth >= 1:
                arguments.append(character)
            if self._depth == 1:
                self._value = self._key = None
            self.closed = self._depth == 0
        elif character == ":" and self._depth == 1:
            self._expects_value = True
        elif character == "," and self._depth == 1:
            self._end_scalar(arguments)
            self._expects_value, self._key, self._value = False, None, None
        elif inside and not self._quoted:
            arguments.append(character)
        elif self._expects_arguments:
            self._scalar += character
        return None

    @property
    def _expects_arguments(self) -> bool:
        key = self._key in ("arguments", "parameters")
        return self._depth == 1 and self._expects_value and key and self._value is None

    def _end_scalar(self, arguments: list[str]) -> None:
        scalar, self._scalar = self._scalar.strip(), ""
        if scalar not in ("", "null"):
            arguments.append(scalar)

    def _end_string(self, arguments: list[str]) -> str | None:
        if self._depth != 1:
            return None
        text = _string(self._token)
        if not self._expects_value:
            self._key = text
        elif self._value is not None and self._quoted:
            arguments.append(_STRINGS.sub(lambda found: found[0].translate(_ESCAPES), text))
            self._value = self._key = None
        elif self._key == "name":
            return text
        return None


def _string(token: str) -> str:
    """Decode a JSON string. Lone surrogates are replaced, because a reply cannot encode them."""
    try:
        return str(json.loads(token, strict=False)).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    except ValueError:
        return token.strip('"')


class ArgumentsParser:
    """Parse the arguments of one call, a bare JSON object."""

    def __init__(self, index: int) -> None:
        self._call = CallParser(index)
        self._call.named = True
        self._call.push('{"arguments":')
        self.closed = False

    def push(self, text: str) -> tuple[list[Delta], str]:
        arguments, rest = "", ""
        for position, character in enumerate(text):
            found, _ = self._call.push(character)
            arguments += "".join(delta.arguments for delta in found)
            if character in "}]" and self._call._depth == 1:
                self.closed, rest = True, text[position + 1 :]
                break
        return [Delta(call=self._call.index, arguments=arguments)] if arguments else [], rest
