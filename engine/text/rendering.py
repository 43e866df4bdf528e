"""A limit on the time in which a chat template renders: its sandbox forbids attributes, not loops."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from transformers.utils.chat_template_utils import _compile_jinja_template

SECONDS = 2.0


class _Deadline(threading.local):
    """When this thread's template must be done."""

    time = math.inf


_deadline = _Deadline()


class TemplateTimeoutError(ValueError):
    """A chat template takes too long."""


@contextmanager
def limited_time(template: str) -> Iterator[None]:
    """Let a template render for `SECONDS` in this thread. Raises TemplateTimeoutError and jinja2.TemplateError."""
    _watch(template)
    _deadline.time = time.monotonic() + SECONDS
    try:
        yield
    finally:
        _deadline.time = math.inf


@cache
def _watch(template: str) -> None:
    """Check the time whenever the compiled template, which transformers keeps, reads a field or an item."""
    environment = _compile_jinja_template(template).environment
    environment.getattr = _checked(environment.getattr)
    environment.getitem = _checked(environment.getitem)


def _checked(access: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*arguments: Any) -> Any:
        if time.monotonic() > _deadline.time:
            raise TemplateTimeoutError(f"rendering takes more than {SECONDS:g} s")
        return access(*arguments)

    return checked
