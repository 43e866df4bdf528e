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


def begins(text: str, markers: Iterable[str]) -> bool:
    """Whether a text begins a marker, or with one."""
    return any(marker.startswith(text) or text.startswith(marker) for marker in markers)


class ReasoningParser:
    """Parse `<think>…</think>` before the answer. The prompt may contain the first tag. Later tags are text."""

    def __init__(self, inner: Parser, *, thinking: bool) -> None:
        """`inner` parses the answer. `thinking`: the prompt ends with the opening tag."""
        self._inner = inner
        self._markers = MarkerSplitter()
        self._before: str | None = None if thinking else ""  # white space before the first tag
        self.thinking = thinking  # between the tags
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
        if not self.thinking:
            return self._answer(text)
        reasoning, marker, rest = self._markers.push(text, [THINK_CLOSE])
        deltas = self._reason(reasoning)
        if marker is not None:
            self.thinking, self._trim = False, True
            deltas += self._answer(rest)
        return deltas

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        before, self._before = self._before or "", None
        if cut and begins(before.lstrip() + stop, [THINK_OPEN]):
            before = ""
        held = self._markers.flush()
        if cut and begins(held + stop, [THINK_CLOSE]):
            held = ""
        deltas = self._reason(held) + (self._inner.push(before) if before else [])
        return deltas + self._inner.finish(cut=cut, stop=stop)

    @property
    def calling(self) -> bool:
        return self._inner.calling

    def _reason(self, text: str) -> list[Delta]:
        text = self._trimmed(text)
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

    def push(self, text: str) -> list[Delta]:
        return [Delta(content=text)] if text else []

    def finish(self, *, cut: bool = False, stop: str = "") -> list[Delta]:
        return []

    @property
    def calling(self) -> bool:
        return False
