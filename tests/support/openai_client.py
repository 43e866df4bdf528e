"""Requests of the official client to a real server, and the parts of its replies."""

from __future__ import annotations

from typing import Any

import openai
from tokenizers import Tokenizer

from tests.support import PREPARED
from tests.support.serving import MODEL

STORY = "Tell me a story about a kind dog and a market."  # ends by itself
POLICIES = ("none", "fixed", "layerskip", "knapspec")
TOKENIZER = Tokenizer.from_file(str(PREPARED / "tokenizer.json"))
GREEDY: dict[str, Any] = {"temperature": 0}
SAMPLED: dict[str, Any] = {"temperature": 1.6, "top_p": 0.95, "seed": 7}  # warm: the model is sure of most it says


def ids_of(text: str) -> list[int]:
    return list(TOKENIZER.encode(text).ids)


def messages(text: str) -> Any:
    return [{"role": "user", "content": text}]


def ask(client: openai.OpenAI, text: str, policy: str | None = None, **options: Any) -> Any:
    """The reply of a chat, of the client's own type."""
    extra = {"draft_policy": policy} | options.pop("extra_body", {})
    return client.chat.completions.create(model=MODEL, messages=messages(text), extra_body=extra, **options)


def said(reply: Any) -> str:
    """The text of the first choice."""
    return str(reply.choices[0].message.content)


def joined(chunks: list[Any], index: int = 0) -> str:
    """The text of a streamed choice."""
    choices = [choice for chunk in chunks for choice in chunk.choices if choice.index == index]
    return "".join(choice.delta.content or "" for choice in choices)


def figures(reply: Any) -> dict[str, Any]:
    """`metrics.speculative_decoding` of a reply, chunk or choice."""
    return dict(reply.model_extra["metrics"]["speculative_decoding"])
