"""Render chats by transformers: the task of a sandbox (`engine.sandbox.worker`).

A child reads pickles of a template and the renderer's arguments. It answers with "+" and the prompt, or with "-" and
the reason why there is none.
"""

from __future__ import annotations

import pickle
from typing import Any

from transformers.utils.chat_template_utils import render_jinja_template

from engine.sandbox.frames import Frames

_MOST_REASON = 1000  # characters


def prepare(most_bytes: int) -> int:
    """Take the most bytes of an answer. What takes long is the import of transformers."""
    return most_bytes


def serve(frames: Frames, most_bytes: int) -> None:
    """Render chats until the socket is closed."""
    while True:
        template, arguments = pickle.loads(frames.receive())
        answer = _answer(template, arguments)
        frames.send(answer if len(answer) <= most_bytes else b"-the prompt has more than %d bytes" % most_bytes)


def _answer(template: str, arguments: dict[str, Any]) -> bytes:
    try:
        prompt = str(render_jinja_template(chat_template=template, **arguments)[0][0])
        return b"+" + prompt.encode("utf-8", "replace")
    except MemoryError:
        reason = "it takes too much memory"
    except Exception as error:  # whatever the template raises, it rejects the chat
        reason = str(error) or type(error).__name__
    return b"-" + reason[:_MOST_REASON].encode("utf-8", "replace")
