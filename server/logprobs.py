"""Log-probabilities as OpenAI's two endpoints show them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from engine.seam import PromptTokenizer
from engine.types import TokenLogprobs

_NEVER = -9999.0  # what JSON gets for minus infinity, as from OpenAI


class TokenNames:
    """The text of single tokens, looked up once each."""

    def __init__(self, tokenizer: PromptTokenizer) -> None:
        self._tokenizer = tokenizer
        self._bytes: dict[int, bytes] = {}

    def bytes(self, token: int) -> bytes:
        found = self._bytes.get(token)
        if found is None:
            found = self._bytes[token] = self._tokenizer.token_bytes(token)
        return found

    def text(self, token: int) -> str:
        """Bytes that are no whole character show as U+FFFD; `bytes` has them."""
        return self.bytes(token).decode("utf-8", errors="replace")


def chat_logprobs(found: Sequence[TokenLogprobs], names: TokenNames) -> dict[str, Any]:
    """`choices[].logprobs` of chat completions."""

    def entry(token: int, logprob: float) -> dict[str, Any]:
        return {"token": names.text(token), "logprob": max(logprob, _NEVER), "bytes": list(names.bytes(token))}

    content = [
        entry(one.token_id, one.logprob) | {"top_logprobs": [entry(*likely) for likely in one.top]} for one in found
    ]
    return {"content": content, "refusal": None}


def completion_logprobs(found: Sequence[TokenLogprobs], names: TokenNames, offset: int) -> dict[str, Any]:
    """`choices[].logprobs` of completions; the first token begins at character `offset`."""
    tokens = [names.text(one.token_id) for one in found]
    *offsets, _ = accumulate(map(len, tokens), initial=offset)
    likely: list[dict[str, float]] = []
    for one, token in zip(found, tokens, strict=True):
        top = {names.text(i): max(logprob, _NEVER) for i, logprob in reversed(one.top)}
        likely.append({token: max(one.logprob, _NEVER)} | top if one.top else {})
    return {
        "tokens": tokens,
        "token_logprobs": [max(one.logprob, _NEVER) for one in found],
        "top_logprobs": likely,
        "text_offset": offsets,
    }


def prompt_logprobs(first: int, found: Sequence[TokenLogprobs], names: TokenNames, echo: str) -> dict[str, Any]:
    """`choices[].logprobs` of an echoed prompt. Of its first token there are none: nothing comes before it. The text
    may be without it, where a tokenizer has put it there."""
    name = names.text(first)
    rest = completion_logprobs(found, names, len(name) if echo.startswith(name) else 0)
    head = {"tokens": name, "token_logprobs": None, "top_logprobs": None, "text_offset": 0}
    return {key: [value, *rest[key]] for key, value in head.items()}
