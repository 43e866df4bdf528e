"""Split a growing text into deltas that do not depend on where it is cut. This file: content and reasoning."""

import re
from dataclasses import dataclass

from engine.text.markers import MarkerSplitter
from server.conversation import THINK_CLOSE, THINK_OPEN


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a message: content, reasoning, or the name or arguments of tool call number `call`."""

    content: str = ""
    reasoning: str = ""
    call: int | None = None
    name: str | None = None
    arguments: str = ""


class Parser:
    """Parse one message. This class passes all text on as content."""

    call_marker = ""  # text that precedes a call; "" in formats without one
    call_start = re.compile("")  # matches the text after a marker if a call may begin there
    thinking = False  # whether the next text is reasoning
    _ignored: tuple[str, ...] = ()  # further markers, which are left out of the content

    def push(self, text: str) -> list[Delta]:
        return [Delta(content=text)] if text else []

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        """Return the deltas of the text held back at the end of the message.

        If the message was `cut` off, the beginnings of markers and of calls without a name are left out. `stop`: the
        stop string that came next. What cannot begin a marker together with it is text.
        """
        return []

    def ignore(self, marker: str) -> None:
        """Leave a marker out of the content from now on."""
        self._ignored = (marker,)

    @property
    def calling(self) -> bool:
        """Whether a tool call that has a name is incomplete."""
        return False


def begins(text: str, markers: list[str]) -> bool:
    """Whether a text begins a marker, or with one."""
    return any(marker.startswith(text) or text.startswith(marker) for marker in markers)


class ReasoningParser(Parser):
    """Parse `<think>…</think>` before the answer. The prompt may contain the first tag. Later tags are text.

    A call ends the reasoning too, because Qwen's models may forget the closing tag. If it comes later, it is left out.
    Reasoning that is not closed when the model ends the message is also its content: there is no other answer.
    """

    def __init__(self, inner: Parser, *, thinking: bool) -> None:
        """`inner` parses the answer. `thinking`: the prompt ends with the opening tag."""
        self._inner = inner
        self._markers = MarkerSplitter()
        self._tags = [THINK_CLOSE, inner.call_marker] if inner.call_marker else [THINK_CLOSE]
        self._starting = not thinking  # whether an opening tag may still come
        self._held = ""  # text that may be the beginning of a tag or a call
        self.thinking = thinking  # whether the opening tag came last
        self._thought: list[str] = []
        self._trim = thinking  # whether a tag came last, after which line breaks are dropped

    def push(self, text: str) -> list[Delta]:
        text, self._held = self._held + text, ""
        if self._starting:
            begun = text.lstrip()
            if THINK_OPEN.startswith(begun) and begun != THINK_OPEN:
                self._held = text
                return []
            self._starting = False
            self.thinking = self._trim = begun.startswith(THINK_OPEN)
            text = begun.removeprefix(THINK_OPEN) if self.thinking else text
        deltas: list[Delta] = []
        while text and self.thinking:
            reasoning, marker, text = self._markers.push(text, self._tags)
            deltas += self._reason(reasoning)
            if marker == THINK_CLOSE:
                self.thinking, self._trim = False, True
            elif marker is not None and not text.strip():
                self._held, text = marker + text, ""
            elif marker is not None and self._inner.call_start.match(text):
                self.thinking, text = False, marker + text
                self._inner.ignore(THINK_CLOSE)
            elif marker is not None:
                deltas += self._reason(marker)
        return deltas + self._inner.push(self._trimmed(text))

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        held = self._markers.flush() or self._held
        if cut and self._may_be_tag(held.lstrip() + stop):
            held = ""
        deltas = self._reason(held) if self.thinking else self._inner.push(held)
        if self.thinking and not cut and (thought := "".join(self._thought)).strip():
            deltas.append(Delta(content=thought))
        return deltas + self._inner.finish(cut=cut, stop=stop)

    def _may_be_tag(self, text: str) -> bool:
        """Whether a text begins a tag or a call, or with one."""
        marker = self._inner.call_marker
        if marker and text.startswith(marker):
            return self._inner.call_start.match(text, len(marker)) is not None
        return begins(text, [THINK_OPEN] if self._starting else self._tags)

    @property
    def calling(self) -> bool:
        return self._inner.calling

    def _reason(self, text: str) -> list[Delta]:
        text = self._trimmed(text)
        self._thought.append(text)
        return [Delta(reasoning=text)] if text else []

    def _trimmed(self, text: str) -> str:
        """Drop line breaks right after a tag."""
        if self._trim:
            text = text.lstrip("\n")
            self._trim = not text
        return text
