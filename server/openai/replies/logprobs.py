"""Log-probabilities as OpenAI's two endpoints show them."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any

from engine.api import PromptTokenizer
from engine.types import TokenLogprobs

_NEVER = -9999.0  # what JSON gets for minus infinity, as from OpenAI


class TokenNames:
    """The text of single tokens, looked up once each."""

    def __init__(self, tokenizer: PromptTokenizer) -> None:
        self._tokenizer = tokenizer
        self._bytes: dict[int, bytes] = {}
        self._special: dict[int, bool] = {}

    def special(self, token: int) -> bool:
        """Whether texts are without it, unless asked for."""
        if token not in self._special:
            self._special[token] = self._tokenizer.skips(self.text(token))
        return self._special[token]

    def bytes(self, token: int) -> bytes:
        found = self._bytes.get(token)
        if found is None:
            found = self._bytes[token] = self._tokenizer.token_bytes(token)
        return found

    def text(self, token: int) -> str:
        """Bytes that are no whole character show as U+FFFD; `bytes` has them."""
        return self.bytes(token).decode("utf-8", errors="replace")

    def told_apart(self, token: int) -> str:
        """The text, or the bytes as OpenAI's completions write those of no whole character."""
        data = self.bytes(token)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)


def chat_logprobs(found: Sequence[TokenLogprobs], names: TokenNames) -> dict[str, Any]:
    """`choices[].logprobs` of chat completions."""

    def entry(token: int, logprob: float) -> dict[str, Any]:
        return {"token": names.text(token), "logprob": max(logprob, _NEVER), "bytes": list(names.bytes(token))}

    content = [
        entry(one.token_id, one.logprob) | {"top_logprobs": [entry(*likely) for likely in one.top]} for one in found
    ]
    return {"content": content, "refusal": None}


class Offsets:
    """Where tokens begin in a text, in characters. One that goes on with a character begins where that does."""

    def __init__(self, first: int = 0, *, special: bool = True) -> None:
        """`special`: the text has special tokens too."""
        self._next = first
        self._shown = special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def of(self, token: int, names: TokenNames) -> int:
        """Of the next token."""
        begin = self._next
        if self._shown or not names.special(token):
            self._next += len(self._decoder.decode(names.bytes(token)))
        return begin


def completion_logprobs(found: Sequence[TokenLogprobs], names: TokenNames, offsets: Offsets) -> dict[str, Any]:
    """`choices[].logprobs` of completions."""
    tokens = [names.told_apart(one.token_id) for one in found]
    likely: list[dict[str, float]] = []
    for one, token in zip(found, tokens, strict=True):
        row = {token: max(one.logprob, _NEVER)} if one.top else {}
        for other, logprob in one.top:
            row.setdefault(names.told_apart(other), max(logprob, _NEVER))
        likely.append(row)
    return {
        "tokens": tokens,
        "token_logprobs": [max(one.logprob, _NEVER) for one in found],
        "top_logprobs": likely,
        "text_offset": [offsets.of(one.token_id, names) for one in found],
    }


def prompt_logprobs(first: int, found: Sequence[TokenLogprobs], names: TokenNames, echo: str) -> dict[str, Any]:
    """`choices[].logprobs` of an echoed prompt. Of its first token there are none: nothing comes before it. The text
    may be without it, where a tokenizer has put it there."""
    offsets = Offsets()
    if echo.startswith(names.text(first).rstrip("\ufffd")):
        offsets.of(first, names)
    rest = completion_logprobs(found, names, offsets)
    head = {"tokens": names.told_apart(first), "token_logprobs": None, "top_logprobs": None, "text_offset": 0}
    return {key: [value, *rest[key]] for key, value in head.items()}
