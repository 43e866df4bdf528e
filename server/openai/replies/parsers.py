"""What a model's text says besides plain content: pure state machines over growing text. Here: reasoning.

However the text is cut, the deltas add up to the same; what may become a marker is held back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a message: content, reasoning, or of tool call `call` its name (at its beginning) or arguments."""

    content: str = ""
    reasoning: str = ""
    call: int | None = None
    name: str | None = None
    arguments: str = ""


class Parser(Protocol):
    """One message."""

    def push(self, text: str) -> list[Delta]: ...

    def finish(self) -> list[Delta]:
        """What was held back, at the end of the message."""


class Markers:
    """Splits a growing text at marker strings; the beginning of one is held back."""

    def __init__(self) -> None:
        self._held = ""

    def push(self, text: str, markers: Sequence[str]) -> tuple[str, str | None, str]:
        """Text before the first marker that is complete, the marker if there is one, and the text behind it."""
        held = self._held + text
        found = [(where, marker) for marker in markers if (where := held.find(marker)) >= 0]
        if found:
            where, marker = min(found)
            self._held = ""
            return held[:where], marker, held[where + len(marker) :]
        keep = max((_overlap(held, marker) for marker in markers), default=0)
        self._held = held[len(held) - keep :]
        return held[: len(held) - keep], None, ""

    def rest(self) -> str:
        held, self._held = self._held, ""
        return held


def _overlap(text: str, marker: str) -> int:
    """Length of the longest end of `text` that the marker begins with."""
    return next((n for n in range(min(len(marker) - 1, len(text)), 0, -1) if text.endswith(marker[:n])), 0)


class ReasoningParser:
    """`<think>…</think>` before the answer; the first tag may be part of the prompt. Elsewhere the tags are text."""

    def __init__(self, inner: Parser, *, thinking: bool) -> None:
        """`inner` parses what is no reasoning; `thinking`: the prompt has opened it."""
        self._inner = inner
        self._markers = Markers()
        self._before: str | None = None if thinking else ""  # white space until the first tag
        self.thinking = thinking  # whether the text is within the tags now
        self._trim = thinking  # line breaks around the tags are theirs

    def push(self, text: str) -> list[Delta]:
        if self._before is not None:
            held = self._before + text
            begun = held.lstrip()
            if THINK_OPEN.startswith(begun) and begun != THINK_OPEN:
                self._before = held
                return []
            self._before = None
            if not begun.startswith(THINK_OPEN):
                return self._inner.push(held)
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

    def finish(self) -> list[Delta]:
        before, self._before = self._before, None
        return self._reason(self._markers.rest()) + (self._inner.push(before) if before else []) + self._inner.finish()

    def _reason(self, text: str) -> list[Delta]:
        text = self._trimmed(text)
        return [Delta(reasoning=text)] if text else []

    def _answer(self, text: str) -> list[Delta]:
        text = self._trimmed(text)
        return self._inner.push(text) if text else []

    def _trimmed(self, text: str) -> str:
        """Without line breaks right behind a tag."""
        if self._trim:
            text = text.lstrip("\n")
            self._trim = not text
        return text


class PlainParser:
    """Text is text."""

    def push(self, text: str) -> list[Delta]:
        return [Delta(content=text)] if text else []

    def finish(self) -> list[Delta]:
        return []
