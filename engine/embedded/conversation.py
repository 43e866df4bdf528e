"""How a conversation becomes tokens: the chat template, and which of its tokens are learned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from engine.embedded.corpus.base import Example, Message

END = "<|end|>"
ROLES = ("system", "user", "assistant", "tool")
SPECIAL_TOKENS = (END, *(f"<|{role}|>" for role in ROLES))
TOOL_CALL_TOKENS = ("<tool_call>", "</tool_call>")
TOOLS_INTRODUCTION = "You can call these tools:"
TEMPLATE = Path(__file__).parent / "template.jinja"


@dataclass(frozen=True)
class Tokens:
    """One conversation for training: ids, and for each whether it is the assistant's (its text and its end); `skill`
    is the one that it practises."""

    ids: list[int]
    learned: list[bool]
    skill: str = ""


def segments(messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> list[tuple[str, bool]]:
    """What the template renders, cut into pieces with whether the piece is learned."""
    head = [str(m["content"]) for m in messages if m["role"] == "system"]
    if tools:
        schemas = (json.dumps(tool["function"], ensure_ascii=False) for tool in tools)
        head.append("\n".join((TOOLS_INTRODUCTION, "<tools>", *schemas, "</tools>")))
    pieces = [("<|system|>" + "\n\n".join(head) + END, False)] if head else []
    for m in messages:
        if m["role"] != "system":
            own = m["role"] == "assistant"
            pieces += [(f"<|{m['role']}|>", False), (m["content"] + END, own)]
    return pieces


def tokenize(tokenizer: Tokenizer, example: Example) -> Tokens:
    """The whole example; the pieces meet at special tokens, so that encoding them apart changes nothing."""
    ids: list[int] = []
    learned: list[bool] = []
    pieces = segments(example.messages, example.tools)
    for encoding, (_, own) in zip(tokenizer.encode_batch_fast([p for p, _ in pieces]), pieces, strict=True):
        ids += encoding.ids
        learned += [own] * len(encoding.ids)
    return Tokens(ids, learned, example.skill)
