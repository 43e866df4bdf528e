"""Log-probabilities in the formats of OpenAI's two endpoints."""

import codecs
from collections.abc import Mapping, Sequence
from functools import cache

from engine.api import PromptTokenizer
from engine.types import TokenLogprobs
from server.answer.writer import Body

Lists = Mapping[str, Sequence[object]]  # field of `choices[].logprobs` → an item for each token
_MIN_LOGPROB = -9999.0  # stands for minus infinity, which JSON lacks, as in OpenAI's replies


class TokenTexts:
    """The texts of single tokens. Each is looked up once. Texts omit special tokens by default."""

    def __init__(self, tokenizer: PromptTokenizer) -> None:
        self.bytes = cache(lambda token: tokenizer.token_bytes(token))
        self.is_special = cache(lambda token: tokenizer.is_special(self.text(token)))

    def text(self, token: int) -> str:
        """Return the text of a token, with U+FFFD for bytes that form no character."""
        return self.bytes(token).decode("utf-8", errors="replace")

    def unambiguous_text(self, token: int) -> str:
        """Return the text of a token, or OpenAI's notation `bytes:\\x..` for bytes that form no character."""
        data = self.bytes(token)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)


def chat_logprobs(logprobs: Sequence[TokenLogprobs], texts: TokenTexts) -> list[Body]:
    """Return the entries of `choices[].logprobs.content` of chat completions."""

    def entry(token: int, logprob: float) -> Body:
        return {"token": texts.text(token), "logprob": max(logprob, _MIN_LOGPROB), "bytes": list(texts.bytes(token))}

    return [
        entry(item.token_id, item.logprob) | {"top_logprobs": [entry(*top) for top in item.top]} for item in logprobs
    ]


class TextOffsets:
    """Count the offsets of tokens in a text, in characters. A token that continues a character has its offset."""

    def __init__(self, first: int = 0, *, special: bool = True) -> None:
        """`first` is the offset of the next token. `special`: the text includes special tokens."""
        self._next = first
        self._shown = special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def advance(self, token: int, texts: TokenTexts) -> int:
        """Return the offset of the next token."""
        offset = self._next
        if self._shown or not texts.is_special(token):
            self._next += len(self._decoder.decode(texts.bytes(token)))
        return offset


def completion_logprobs(logprobs: Sequence[TokenLogprobs], texts: TokenTexts, offsets: TextOffsets) -> Lists:
    """`choices[].logprobs` of completions."""
    tokens = [texts.unambiguous_text(item.token_id) for item in logprobs]
    top: list[dict[str, float]] = []
    for item, token in zip(logprobs, tokens, strict=True):
        row = {token: max(item.logprob, _MIN_LOGPROB)}
        for alternative, logprob in item.top:
            row.setdefault(texts.unambiguous_text(alternative), max(logprob, _MIN_LOGPROB))
        top.append(row)
    return {
        "tokens": tokens,
        "token_logprobs": [max(item.logprob, _MIN_LOGPROB) for item in logprobs],
        "top_logprobs": top,
        "text_offset": [offsets.advance(item.token_id, texts) for item in logprobs],
    }


def prompt_logprobs(first: int, logprobs: Sequence[TokenLogprobs], texts: TokenTexts, echo: str) -> Lists:
    """`choices[].logprobs` of an echoed prompt. Its first token has no log-probability.

    The echo lacks a first token that the tokenizer has added, such as BOS.
    """
    offsets = TextOffsets()
    if echo.startswith(texts.text(first).rstrip("\ufffd")):
        offsets.advance(first, texts)
    rest = completion_logprobs(logprobs, texts, offsets)
    head = {"tokens": texts.unambiguous_text(first), "token_logprobs": None, "top_logprobs": None, "text_offset": 0}
    return {key: [value, *rest[key]] for key, value in head.items()}
