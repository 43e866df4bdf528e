"""Structured output: which tokens a grammar allows next, through llguidance."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper
from torch import Tensor

from engine.kernels.library import kernel_library
from engine.text.tokenizer import Tokenizer

log = logging.getLogger("knapserve.engine")

_LIMITS = LLParserLimits(max_items_in_row=20_000, step_max_items=200_000)
_COMPILED = 64  # grammars kept


Bits = npt.NDArray[np.int32]  # a bit a token


def unpacked(bits: Bits, count: int) -> npt.NDArray[np.bool_]:
    """The first bits as booleans."""
    return np.unpackbits(bits.view(np.uint8), count=count, bitorder="little").view(np.bool_)


class _Vocabulary:
    """A model's tokens as llguidance's `TokenizerWrapper` asks for them."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, size: int, end_ids: Sequence[int]) -> None:
        self.tokens = [tokenizer.token_bytes(token) for token in range(size)]
        added = tokenizer.backend.get_added_tokens_decoder()
        self.special_token_ids = [token for token, entry in added.items() if entry.special]
        self.eos_token_id = end_ids[0] if end_ids else None
        self._tokenizer = tokenizer

    def __call__(self, text: bytes) -> list[int]:
        return self._tokenizer.encode(text.decode(), add_special_tokens=False)


def vocabulary(tokenizer: Tokenizer, size: int, end_ids: Sequence[int]) -> LLTokenizer:
    """A model's tokens as grammars see them. A second's work for 150,000 of them, once for all requests."""
    size = max(size, tokenizer.backend.get_vocab_size())
    return LLTokenizer(
        TokenizerWrapper(_Vocabulary(tokenizer, size, end_ids)), n_vocab=size, eos_token=list(end_ids) or None
    )


class Grammars:
    """A model's grammars: what was compiled lately is copied for the next request, not compiled again."""

    def __init__(self, tokens: LLTokenizer) -> None:
        self._tokens = tokens
        self._compiled: OrderedDict[str, LLMatcher] = OrderedDict()

    def begin(self, grammar: str) -> GrammarMatcher:
        """The beginning of an answer. `grammar`: what llguidance takes (a JSON schema or Lark). Raises ValueError."""
        matcher = self._compiled.pop(grammar, None)
        if matcher is None:
            matcher = LLMatcher(self._tokens, grammar, log_level=0, limits=_LIMITS)
            matcher.compute_bitmask()  # the costly part, which copies share
            if matcher.is_error():
                raise ValueError(matcher.get_error().partition("\n<state>")[0].strip())
        self._compiled[grammar] = matcher
        if len(self._compiled) > _COMPILED:
            self._compiled.popitem(last=False)
        return GrammarMatcher(matcher, self._tokens.vocab_size)


class GrammarMatcher:
    """Where one request's answer is in its grammar. What was drafted is matched ahead and rolled back."""

    def __init__(self, origin: LLMatcher, size: int) -> None:
        """`origin`: a matcher at its beginning, where it stays; `size`: of the vocabulary."""
        self._matcher = origin.deep_copy()
        self._origin = origin
        self._lost = False
        self._said: list[int] = []
        self._ahead: list[int] = []  # drafted tokens that the matcher has taken
        self._masks: dict[int, Bits] = {}  # after that many of them
        self._size = size
        self._words = -(-self._size // 32)
        self._everything = np.full(self._words, -1, dtype=np.int32)

    @property
    def failed(self) -> str | None:
        """Why the grammar cannot be followed any further: it is too complex. Only after `advance`."""
        return "The grammar became too complex to follow." if self._lost else None

    @property
    def stopped(self) -> bool:
        """Nothing can follow. Only after `advance`."""
        return not self._ahead and bool(self._matcher.is_stopped())

    def advance(self, tokens: Sequence[int]) -> None:
        """These were emitted."""
        self._said += tokens
        if self._ahead[: len(tokens)] == list(tokens):
            del self._ahead[: len(tokens)]
            self._masks = {depth - len(tokens): bits for depth, bits in self._masks.items() if depth >= len(tokens)}
            return
        self._back_to(0)
        self._masks.clear()
        if self._matcher.try_consume_tokens(list(tokens)) < len(tokens) and not self._matcher.is_stopped():
            self._lost = True
        if self._matcher.is_error():
            self._lost = True
        if self._lost:
            log.warning("a grammar cannot be followed: %.200s", self._matcher.get_error())

    def mask(self, scores: Tensor, drafted: Sequence[int]) -> None:
        """Leave, of scores [vocab], those of tokens that may follow these drafted ones."""
        bits = self._allowed(drafted)
        on_cpu = scores.dtype == torch.float32 and scores.device.type == "cpu"
        if on_cpu and (kernels := kernel_library()):
            kernels.mask(scores.data_ptr(), bits.ctypes.data, len(scores))
        else:
            allowed = torch.from_numpy(unpacked(bits, len(scores)))
            scores.masked_fill_(~allowed.to(scores.device, non_blocking=True), float("-inf"))

    def allowed(self, drafted: Sequence[int]) -> Tensor:
        """Tokens that may follow these drafted ones: bool [vocab]."""
        return torch.from_numpy(unpacked(self._allowed(drafted), self._size))

    def allows(self, token: int, drafted: list[int]) -> bool:
        """Whether a token may follow these drafted ones: any, behind a draft that is not allowed itself.

        All that `mask` leaves may, and besides other ways to cut a text that is settled into tokens.
        """
        if self._ahead != drafted:
            common = self._common(drafted)
            if common == len(drafted) < len(self._ahead) and self._ahead[common] == token:
                return True
            if not self._follow(drafted, common):
                return True
        return self._take(token) or self._ahead != drafted

    def _allowed(self, drafted: Sequence[int]) -> Bits:
        """All, behind a draft that is not allowed itself."""
        common = self._common(drafted)
        if common == len(drafted) in self._masks:
            return self._masks[common]
        return self._mask() if self._follow(drafted, common) else self._everything

    def _common(self, drafted: Sequence[int]) -> int:
        """How many of these are matched ahead already."""
        common = 0
        while common < min(len(drafted), len(self._ahead)) and drafted[common] == self._ahead[common]:
            common += 1
        return common

    def _follow(self, drafted: Sequence[int], common: int) -> bool:
        """Match these ahead, and nothing else; False where they are not allowed. `common` of them are."""
        self._back_to(common)
        return all(self._take(token) for token in drafted[common:])

    def _take(self, token: int) -> bool:
        """Match one more ahead; False where it is not allowed, or too complex, or everything has been said."""
        if self._matcher.is_stopped() or self._matcher.try_consume_tokens([token]) == 0:
            if self._matcher.is_error():
                self._recover()
            return False
        self._ahead.append(token)
        return True

    def _mask(self) -> Bits:
        """After what is matched ahead."""
        depth = len(self._ahead)
        if depth not in self._masks:
            bits = np.zeros(self._words, dtype=np.int32)
            self._matcher.unsafe_compute_mask_ptr(bits.ctypes.data, bits.nbytes)
            if self._matcher.is_error():
                self._recover()
                return self._everything
            self._masks[depth] = bits
        return self._masks[depth]

    def _recover(self) -> None:
        """What was matched ahead is too complex, which counts only if it is accepted: back to what was emitted.

        A matcher in error stays so. Everything is allowed behind such a draft; `advance` will find the same.
        """
        self._matcher = self._origin.deep_copy()
        self._matcher.try_consume_tokens(self._said)
        self._ahead.clear()
        self._masks.clear()

    def _back_to(self, depth: int) -> None:
        if len(self._ahead) > depth:
            self._matcher.rollback(len(self._ahead) - depth)
            del self._ahead[depth:]
            for behind in [d for d in self._masks if d > depth]:
                del self._masks[behind]
