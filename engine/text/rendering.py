"""Render chat templates: programs of strangers, which run in processes with limits (`engine.sandbox`)."""

from __future__ import annotations

import math
import pickle
import threading
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

from engine.errors import RequestFailedError
from engine.sandbox.host import WALL, Child, Sandbox

SECONDS = 2.0  # CPU seconds to render a chat, and to compile its template at first use
# After a chat that took longer, its template has only this share of the time for a while.
_REDUCED, _PROBATION = 0.1, 30.0  # seconds of probation
_MEMORY = 512 * 2**20  # bytes beside those that the process itself needs
_MOST_BYTES = 64 * 2**20  # longest prompt, in bytes


class TemplateError(ValueError):
    """A template rejects a chat, fails, or needs more than its limits."""


class TemplateRenderer:
    """Renders templates by transformers. Thread-safe: each thread takes an idle process, or starts one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sandbox: Sandbox | None = None
        self._idle: list[Child] = []
        self._exceeded: dict[str, float] = {}  # template → when it last took too long

    def render(self, template: str, arguments: Mapping[str, Any]) -> str:
        """Render a template, with further arguments of transformers' renderer.

        Raises TemplateError, and RequestFailedError if there is no process.
        """
        child = self._take()
        recent = time.monotonic() - self._exceeded.get(template, -math.inf) < _PROBATION
        seconds = SECONDS * (_REDUCED if recent else 1)
        try:
            child.send(pickle.dumps((template, dict(arguments)), pickle.HIGHEST_PROTOCOL), seconds=WALL * seconds)
            answer = child.receive(seconds)
        except (EOFError, OSError, ValueError) as error:
            child.end()
            if isinstance(error, TimeoutError):
                self._exceeded = {template: time.monotonic()}
                raise TemplateError(f"rendering takes more than {seconds:g} s") from None
            raise TemplateError(f"rendering fails, or takes more than {_MEMORY >> 20} MiB of memory") from None
        self._idle.append(child)
        text = answer[1:].decode()
        if answer[:1] != b"+":
            raise TemplateError(text)
        return text

    def _take(self) -> Child:
        """Return a process that renders nothing. Raises RequestFailedError if there is none."""
        with self._lock:
            while self._idle:
                if (child := self._idle.pop()).alive:
                    return child
            try:
                if self._sandbox is None or self._sandbox.ended:
                    self._sandbox = Sandbox("engine.text.render", _MOST_BYTES, _MEMORY)
                return self._sandbox.fork(_MOST_BYTES)
            except (OSError, RuntimeError) as error:
                raise RequestFailedError(f"The process for chat templates cannot be started ({error}).") from None


@cache
def template_renderer() -> TemplateRenderer:
    """Return the renderer that all tokenizers of this process share: its process takes a second to start."""
    return TemplateRenderer()
