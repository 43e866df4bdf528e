"""Read the JSON of one tool call as it grows."""

import json
import re

from server.answer.parsers import Delta

# JSON forbids control characters within strings, but models write them, above all line ends in code.
_ESCAPES = {code: json.dumps(chr(code))[1:-1] for code in range(32)}
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*', re.DOTALL)
_ARGUMENTS = ("arguments", "parameters")

# A state is an expression that matches what may come next. Text that it does not match ends the call.
_START = re.compile(r"\s+|\{")
_JSON = re.compile(r'[{}\[\]:,"]|[^{}\[\]:,"<]+')  # outside strings, "<" begins a tag
_STRING = re.compile(r'(?:[^"\\]+|\\.)+|["\\]', re.DOTALL)
_ESCAPED = re.compile(r".", re.DOTALL)  # the character after a backslash that ended a piece
_AFTER_STRING = {'"': _JSON, "\\": _ESCAPED}


class CallParser:
    """Parse one growing JSON object {"name": …, "arguments": {…}}. Arguments are returned as they arrive."""

    def __init__(self, index: int, marker: str = "", names: frozenset[str] | None = None) -> None:
        """`marker` precedes the object. `names`: the only valid names."""
        self.name: str | None = None
        self.text = marker  # all text so far, until the call has a name
        self.closed = False  # whether the object is complete, or its text is no JSON
        self._index = index
        self._names = names
        self._state = _START
        self._depth = self._outer_depth = 0
        self._key = ""
        self._value_of: str | None = None  # the key whose value follows; "" after the value, None before the key
        self._token: list[str] = []  # pieces of the current string, number or word, outside of inner objects
        self._arguments: list[str] = []  # pieces of the arguments that are not returned yet
        self._has_arguments = False

    def begin_arguments(self, name: str) -> list[Delta]:
        """Begin a call with this name, of which only the arguments follow. Returns its deltas."""
        self.push('{"arguments":')
        self.name, self._outer_depth = name, 1
        return [Delta(call=self._index, name=name)]

    def push(self, text: str) -> tuple[list[Delta], str]:
        """Return deltas, and the text after the end of the call."""
        named, end = self.name is not None, 0
        while not self.closed and (found := self._state.match(text, end)):
            end = found.end()
            read = self._read_json if self._state in (_START, _JSON) else self._read_string
            read(found[0])
        if end < len(text) or self.closed:
            self.closed = True
            self._end_member()
        if self.name is None:
            self.text += text[:end]
            return [], text[end:]
        arguments, self._arguments = "".join(self._arguments), []
        self._has_arguments = self._has_arguments or bool(arguments)
        if self.closed and not self._has_arguments:
            arguments = "{}"
        deltas = [] if named else [Delta(call=self._index, name=self.name)]
        if arguments:
            deltas.append(Delta(call=self._index, arguments=arguments))
        return deltas, text[end:]

    def _read_json(self, lexeme: str) -> None:
        nested = self._depth > 1 or lexeme in ("{", "[")
        if lexeme in ("{", "["):
            self._state = _JSON
            self._depth += 1
        elif lexeme in ("}", "]"):
            self._depth -= 1
            self.closed = self._depth <= self._outer_depth
        elif lexeme == '"':
            self._state = _STRING
            self._token = []
        if nested:
            if self._value_of in _ARGUMENTS:
                self._arguments.append(lexeme)
            if self._depth == 1 and self._value_of is not None:
                self._value_of = ""
        elif lexeme == ":":
            self._value_of = self._key if self._value_of is None else self._value_of
        elif lexeme == ",":
            self._end_member()
        elif not self.closed:
            self._token.append(lexeme)

    def _read_string(self, lexeme: str) -> None:
        self._state = _AFTER_STRING.get(lexeme, _STRING) if self._state is _STRING else _STRING
        if self._depth == 1:
            self._token.append(lexeme)
        elif self._value_of in _ARGUMENTS:
            self._arguments.append(lexeme.translate(_ESCAPES))
        if self._depth > 1 or self._state is not _JSON:
            return
        text, self._token = _decode("".join(self._token)), []
        if self._value_of is None:
            self._key = text
        elif self._value_of in _ARGUMENTS:
            self._arguments.append(_STRINGS.sub(lambda found: found[0].translate(_ESCAPES), text))
            self._value_of = ""
        elif self._value_of == "name" and self.name is None and (self._names is None or text in self._names):
            self.name = text

    def _end_member(self) -> None:
        scalar = "".join(self._token).strip()
        if self._value_of in _ARGUMENTS and scalar != "null":
            self._arguments.append(scalar)
        self._key, self._value_of, self._token = "", None, []


def _decode(string: str) -> str:
    """Decode a JSON string. Lone surrogates are replaced, because a reply cannot encode them."""
    try:
        text = str(json.loads(string, strict=False))
    except ValueError:
        return string.strip('"')
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
