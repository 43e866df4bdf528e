"""Parsers of tool calls in the formats of Hermes and Qwen, Llama 3 and Mistral, built like those of `parsers`."""

import re

from engine.text.markers import MarkerSplitter
from server.answer.call import CallParser
from server.answer.parsers import Delta, Parser, ReasoningParser, begins

# Markers around calls. Some models have special tokens for them.
TOOL_MARKS = {"hermes": ("<tool_call>", "</tool_call>"), "mistral": ("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]")}


class _ToolParser(Parser):
    """Common part of the formats: content and calls by turns."""

    _calls = 0  # complete ones
    _call: CallParser | None = None
    _said = False  # there is content

    def __init__(self, names: frozenset[str] | None) -> None:
        """`names` of the tools distinguish a call from an answer in JSON where no marker does."""
        self._names = names
        self._markers = MarkerSplitter()
        self._expected = [self.call_marker]  # markers that may come in text outside calls

    def push(self, text: str) -> list[Delta]:
        deltas: list[Delta] = []
        while text:
            call = self._call
            found, text = self._read_text(text) if call is None else call.push(text)
            if call is not None and call.closed:
                self._call = None
                if call.name is None:
                    found = self._content(call.text)
                else:
                    self._calls += 1
            deltas += found
        return deltas

    def _read_text(self, text: str) -> tuple[list[Delta], str]:
        """Parse text outside calls, and open the next call. Returns deltas, and the text to parse next."""
        raise NotImplementedError

    def _content(self, text: str) -> list[Delta]:
        self._said = self._said or bool(text)
        return [Delta(content=text)] if text else []

    @property
    def calling(self) -> bool:
        return self._call is not None and self._call.name is not None

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        rest = self._markers.flush()
        deltas = self._content("" if cut and begins(rest + stop, self._expected) else rest)
        if self._call is not None and self._call.name is None and not cut:
            deltas += self._content(self._call.text)
        return deltas


class HermesParser(_ToolParser):
    """Any number of `<tool_call>{"name": …, "arguments": …}</tool_call>` (Hermes, Qwen).

    White space is shown once text follows. Where calls lie between two texts, only its last run is; where calls precede
    all text, none is. Between a call and its closing tag, white space does not count, nor do surplus braces.
    """

    call_marker, _CLOSE = TOOL_MARKS["hermes"]
    call_start = re.compile(r"\s*(\{|\Z)")
    _space = ""  # since the last text or marker
    _space_before = ""  # the last run between the last text and that marker
    _calls_before = 0  # calls before the last text
    _calls_closed = 0  # calls whose closing tag is no longer expected

    def _read_text(self, text: str) -> tuple[list[Delta], str]:
        closing = [self._CLOSE] if self._calls > self._calls_closed else []
        self._expected = [self.call_marker, *closing, *self.ignored]
        before, marker, text = self._markers.push(text, self._expected)
        deltas = self._content(before)
        if marker == self.call_marker:
            self._call = CallParser(self._calls, marker)
            self._space, self._space_before = "", self._space or self._space_before
        elif marker == self._CLOSE and self._calls > self._calls_before:
            self._space = ""
        if marker in (self.call_marker, self._CLOSE):
            self._calls_closed = self._calls
        return deltas, text

    def _content(self, text: str) -> list[Delta]:
        if self._calls > max(self._calls_before, self._calls_closed):
            begun = text.lstrip("} \n\r\t")
            text = text[: len(text) - len(begun)].replace("}", "") + begun
        text = self._space + text
        shown = text.rstrip()
        self._space = text[len(shown) :]
        if not shown:
            return []
        if self._calls and not self._said:
            shown = shown.lstrip()
        elif not shown[0].isspace():
            shown = self._space_before + shown
        self._space_before, self._calls_before = "", self._calls
        return super()._content(shown)

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        deltas = super().finish(cut=cut, stop=stop)
        if not self._calls and not self.calling:  # a text without calls keeps its trailing white space
            deltas += super()._content(self._space_before + self._space)
        return deltas


class MistralParser(_ToolParser):
    """`[TOOL_CALLS][{"name": …, "arguments": …}, …]`, or later `[TOOL_CALLS]name[ARGS]{…}`, also without `[ARGS]`."""

    call_marker, _ID, _ARGS = TOOL_MARKS["mistral"]
    call_start = re.compile(r"\s*([\[{]|\Z)|[^\W\d]")  # a name follows the marker at once, unlike a word in prose
    _NAME = re.compile(r"[\w./:-]+(\[CALL_ID\]\w*)?\s*")
    _SEPARATORS = "[], \n\t"
    _announced = False  # no call since the last marker
    _held: str | None = None  # text since the last marker or call, which may be a name; None before the first marker

    def _read_text(self, text: str) -> tuple[list[Delta], str]:
        before, marker, text = self._markers.push(text, self._expected)
        if self._held is None:
            if marker is not None:
                self._held, self._announced = "", True
                self._expected = [self.call_marker, self._ARGS, "{"]
            return self._content(before), text
        held, self._held = self._held + before, ""
        if marker == self.call_marker:
            self._announced = True
            return self._between(held), text
        named = marker == self._ARGS or (marker and self._announced and self._NAME.fullmatch(held))
        if not named and (marker is None or held.strip(self._SEPARATORS)):
            self._held = held + (marker or "")
            return [], text
        text = text if marker == self._ARGS else "{" + text
        self._call, self._announced = CallParser(self._calls), False
        name = held.partition(self._ID)[0].strip(self._SEPARATORS)
        return self._call.begin_arguments(name) if named else [], text

    def _between(self, text: str) -> list[Delta]:
        """Return text that is not a name. After a call, it is shown with the white space before it if other text is."""
        begun = text.lstrip(self._SEPARATORS)
        skipped = text[: len(text) - len(begun)]
        if self._calls:
            skipped = skipped[len(skipped.rstrip()) :] if self._said else ""
        return self._content(skipped + begun) if begun else []

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        if self._held is None:
            return super().finish(cut=cut, stop=stop)
        held = self._held + self._markers.flush()
        before, marker, _ = MarkerSplitter().push(held + stop, TOOL_MARKS["mistral"])
        if cut and (not stop or self._announced or marker is not None or len(before) < len(held)):
            held = ""
        return self._between(held) + super().finish(cut=cut)


class Llama3Parser(_ToolParser):
    """Messages of only `{"name": …, "parameters": {…}}`, separated by `;`, perhaps after `<|python_tag|>`."""

    _TAG = "<|python_tag|>"
    _held = ""  # text that may precede a call

    def _read_text(self, text: str) -> tuple[list[Delta], str]:
        if self._said:
            return self._content(text), ""
        held, self._held = self._held + text, ""
        begun = held.lstrip(" \n;") if self._calls else held.lstrip()
        begun = begun.removeprefix(self._TAG).lstrip()
        if begun.startswith("{"):
            self._call = CallParser(self._calls, names=self._names)
            return [], begun
        if begun and not self._TAG.startswith(begun):
            return self._content(begun if self._calls else held), ""
        self._held = held
        return [], ""

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        held = "" if cut and begins(self._held.lstrip() + stop, [self._TAG]) else self._held
        deltas = self._content(held) if held.strip() and not self._calls else []
        text = "".join(self._call.text.split()) if self._call is not None else ""
        return deltas + super().finish(cut=cut and begins(text, ['{"name":']))


def make_parser(
    tools: str | None, *, reasoning: bool, thinking: bool, names: frozenset[str] | None = None
) -> Parser | None:
    """Make the parser of one message, or return None if its text is only content.

    `tools` is one of `server.config.TOOL_FORMATS`, or None for a message without calls; `names` are those of the tools.
    """
    formats = {"hermes": HermesParser, "mistral": MistralParser, "llama3_json": Llama3Parser}
    inner = formats[tools](names) if tools else Parser()
    if reasoning:
        return ReasoningParser(inner, thinking=thinking)
    return inner if tools else None
