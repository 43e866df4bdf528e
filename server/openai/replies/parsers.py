"""Parsers of a growing text: pure state machines that split it into deltas. This file: reasoning.

The deltas of a text do not depend on where it is cut.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from engine.text.markers import MarkerSplitter

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a message: content, reasoning, or the name or arguments of tool call number `call`."""

    content: str = ""
    reasoning: str = ""
    call: int | None = None
    name: str | None = None
    arguments: str = ""


class Parser(Protocol):
    """Parse one message."""

    def push(self, text: str) -> list[Delta]: ...

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        """Return the deltas of the text held back at the end of the message.

        If the message was `cut` off, the beginnings of markers and of calls without a name are left out. `stop`: the
        stop string that came next. What cannot begin a marker together with it is text.
        """

    @property
    def calling(self) -> bool:
        """Whether a tool call that has a name is incomplete."""


class AnswerParser(Parser, Protocol):
    """Parse one message without reasoning."""

    call_marker: str  # before calls; "" if there is none
    ignored: tuple[str, ...]  # markers to leave out

    def begins_call(self, text: str) -> bool | None:
        """Whether a text that follows the marker begins a call; None if its beginning does not tell."""


def begins(text: str, markers: Iterable[str]) -> bool:
    """Whether a text begins a marker, or with one."""
    return any(marker.startswith(text) or text.startswith(marker) for marker in markers)


class ReasoningParser:
    """Parse `<think>…</think>` before the answer. The prompt may contain the first tag. Later tags are text.

    A call ends the reasoning too, because Qwen's models may forget the closing tag. If it comes later, it is left out.
    Reasoning that is not closed when the model ends the message is also its content: there is no other answer.
    """

    def __init__(self, inner: AnswerParser, *, thinking: bool) -> None:
        """`inner` parses the answer. `thinking`: the prompt ends with the opening tag."""
        self._inner = inner
        self._markers = MarkerSplitter()
        self._tags = [THINK_CLOSE, inner.call_marker] if inner.call_marker else [THINK_CLOSE]
        self._call = ""  # a marker within the reasoning, and text that does not tell whether a call follows
        self._before: str | None = None if thinking else ""  # white space before the first tag
        self.thinking = thinking  # between the tags
        self._thought: list[str] = []
        self._trim = thinking  # drop line breaks after a tag

    def push(self, text: str) -> list[Delta]:
        if self._before is not None:
            pending = self._before + text
            begun = pending.lstrip()
            if THINK_OPEN.startswith(begun) and begun != THINK_OPEN:
                self._before = pending
                return []
            self._before = None
            if not begun.startswith(THINK_OPEN):
                return self._inner.push(pending)
            self.thinking = self._trim = True
            text = begun.removeprefix(THINK_OPEN)
        deltas: list[Delta] = []
        while text and self.thinking:
            if self._call:
                text = self._call_or_reasoning(text, deltas)
                continue
            reasoning, marker, text = self._markers.push(text, self._tags)
            deltas += self._reason(reasoning)
            if marker == THINK_CLOSE:
                self.thinking, self._trim = False, True
            elif marker is not None:
                self._call = marker
        return deltas if self.thinking else deltas + self._answer(text)

    def _call_or_reasoning(self, text: str, deltas: list[Delta]) -> str:
        """Read text after a marker of calls. Returns the remaining text."""
        marker = self._inner.call_marker
        text, self._call = self._call + text, ""
        calls = self._inner.begins_call(text.removeprefix(marker))
        if calls is None:
            self._call = text
            return ""
        if calls:
            self.thinking, self._inner.ignored = False, (THINK_CLOSE,)
            return text
        deltas += self._reason(marker)
        return text.removeprefix(marker)

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        before, self._before = self._before or "", None
        if cut and begins(before.lstrip() + stop, [THINK_OPEN]):
            before = ""
        held = self._markers.flush() or self._call
        marked = begins(held + stop, self._tags)
        if self._call:
            marked = self._inner.begins_call((self._call + stop).removeprefix(self._inner.call_marker)) is not False
        if cut and marked:
            held = ""
        deltas = self._reason(held) + (self._inner.push(before) if before else [])
        if self.thinking and not cut and (thought := "".join(self._thought)).strip():
            deltas.append(Delta(content=thought))
        return deltas + self._inner.finish(cut=cut, stop=stop)

    @property
    def calling(self) -> bool:
        return self._inner.calling

    def _reason(self, text: str) -> list[Delta]:
        text = self._trimmed(text)
        self._thought.append(text)
        return [Delta(reasoning=text)] if text else []

    def _answer(self, text: str) -> list[Delta]:
        text = self._trimmed(text)
        return self._inner.push(text) if text else []

    def _trimmed(self, text: str) -> str:
        """Drop line breaks right after a tag."""
        if self._trim:
            text = text.lstrip("\n")
            self._trim = not text
        return text


class PlainParser:
    """Pass all text on as content."""

    call_marker = ""
    ignored: tuple[str, ...] = ()

    def begins_call(self, text: str) -> bool | None:
        return False

    def push(self, text: str) -> list[Delta]:
        return [Delta(content=text)] if text else []

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        return []

    @property
    def calling(self) -> bool:
        return False
