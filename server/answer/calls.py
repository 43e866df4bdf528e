"""Parsers of tool calls in the formats of Hermes and Qwen, Llama 3 and Mistral."""

import re

from engine.text.markers import MarkerSplitter
from server.answer.call import CallParser
from server.answer.parsers import Delta, Parser, ReasoningParser, begins
from server.tool_formats import HERMES, LLAMA3, MISTRAL


class _ToolParser(Parser):
    """Common part of the formats: content and calls by turns.

    If there are calls, the texts between them are stripped of white space, and joined as paragraphs.
    """

    _SEPARATORS = " \n\r\t"  # characters around calls that are no content

    def __init__(self, names: frozenset[str] | None) -> None:
        """`names` of the tools distinguish a call from an answer in JSON where no marker does."""
        self._names = names
        self._markers = MarkerSplitter()
        self._expected = [self.call_marker]  # markers that may come in text outside calls
        self._calls = 0  # complete calls
        self._call: CallParser | None = None  # the incomplete call
        self._said = False  # whether there is content
        self._after_call = False  # whether a call came last
        self._space = ""  # white space that is content if more content follows

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
                    self._after_call = True
            deltas += found
        return deltas

    def _read_text(self, text: str) -> tuple[list[Delta], str]:
        """Parse text outside calls, and open the next call. Returns deltas, and the text to parse next."""
        raise NotImplementedError

    def _content(self, text: str) -> list[Delta]:
        text = self._space + text
        if self._after_call:
            text = text.lstrip(self._SEPARATORS)
        shown = text.rstrip()
        self._space = text[len(shown) :]
        if not shown:
            return []
        if self._after_call and self._said:
            shown = f"\n\n{shown}"
        self._said, self._after_call = True, False
        return [Delta(content=shown)]

    @property
    def calling(self) -> bool:
        return self._call is not None and self._call.name is not None

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        rest = self._markers.flush()
        deltas = self._content("" if cut and begins(rest + stop, self._expected) else rest)
        if self._call is not None and self._call.name is None and not cut:
            deltas += self._content(self._call.text)
        if self._space and not self._calls and not self.calling:
            deltas.append(Delta(content=self._space))
        return deltas


class HermesParser(_ToolParser):
    """Any number of `<tool_call>{"name": …, "arguments": …}</tool_call>` (Hermes, Qwen)."""

    call_marker, _CLOSE = HERMES.marks
    call_start = re.compile(r"\s*(\{|\Z)")
    _SEPARATORS = "} \n\r\t"  # models may write surplus braces

    def _read_text(self, text: str) -> tuple[list[Delta], str]:
        closing = [self._CLOSE] if self._calls else []
        self._expected = [self.call_marker, *closing, *self._ignored]
        before, marker, text = self._markers.push(text, self._expected)
        deltas = self._content(before)
        if marker == self.call_marker:
            self._call = CallParser(self._calls, marker)
        return deltas, text


class MistralParser(_ToolParser):
    """`[TOOL_CALLS][{"name": …, "arguments": …}, …]`, or `[TOOL_CALLS]name[ARGS]{…}` and `[TOOL_CALLS]name{…}`."""

    call_marker, _ID, _ARGS = MISTRAL.marks
    call_start = re.compile(r"\s*([\[{]|\Z)|[^\W\d]")  # a name follows the marker at once, unlike a word in prose
    _NAME = re.compile(r"[\w./:-]+(\[CALL_ID\]\w*)?\s*")
    _SEPARATORS = "[], \n\r\t"
    _announced = False  # whether a marker came last, and no call since
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
        """Return text that is not a name, unless it only separates calls."""
        return self._content(text) if text.strip(self._SEPARATORS) else []

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        if self._held is None:
            return super().finish(cut=cut, stop=stop)
        held = self._held + self._markers.flush()
        before, marker, _ = MarkerSplitter().push(held + stop, MISTRAL.marks)
        if cut and (not stop or self._announced or marker is not None or len(before) < len(held)):
            held = ""
        return self._between(held) + super().finish(cut=cut)


class Llama3Parser(_ToolParser):
    """Messages of only `{"name": …, "parameters": {…}}`, separated by `;`, perhaps after `<|python_tag|>`."""

    _TAG = "<|python_tag|>"
    _SEPARATORS = "; \n\r\t"
    _held = ""  # text that may precede a call

    def _read_text(self, text: str) -> tuple[list[Delta], str]:
        if self._said:
            return self._content(text), ""
        held, self._held = self._held + text, ""
        begun = held.lstrip(self._SEPARATORS if self._after_call else None).removeprefix(self._TAG).lstrip()
        if begun.startswith("{"):
            self._call = CallParser(self._calls, names=self._names)
            return [], begun
        if begun and not self._TAG.startswith(begun):
            return self._content(begun if self._after_call else held), ""
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

    `tools` names one of `TOOL_FORMATS`, or is None if there are no tools; `names` are the names of the tools.
    """
    formats = {HERMES.name: HermesParser, MISTRAL.name: MistralParser, LLAMA3.name: Llama3Parser}
    inner = formats[tools](names) if tools else Parser()
    if reasoning:
        return ReasoningParser(inner, thinking=thinking)
    return inner if tools else None
