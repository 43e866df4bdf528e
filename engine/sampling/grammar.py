"""Constrain answers to a grammar: compute which tokens it allows next, by llguidance."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper
from torch import Tensor

from engine.kernels.library import KernelLibrary
from engine.text.tokenizer import Tokenizer

log = logging.getLogger("knapserve.engine")

_LIMITS = LLParserLimits(max_items_in_row=20_000, step_max_items=200_000)
_COMPILED = 64  # grammars that stay compiled

Bits = npt.NDArray[np.int32]  # one bit per token


def unpacked(bits: Bits, count: int) -> npt.NDArray[np.bool_]:
    """Return the first `count` bits as booleans."""
    return np.unpackbits(bits.view(np.uint8), count=count, bitorder="little").view(np.bool_)


class _Vocabulary:
    """Present a model's tokens as llguidance's `TokenizerWrapper` expects them."""

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
    """Prepare a model's tokens for grammars. Takes a second for 150,000 tokens, once for all requests."""
    size = max(size, tokenizer.backend.get_vocab_size())
    return LLTokenizer(
        TokenizerWrapper(_Vocabulary(tokenizer, size, end_ids)), n_vocab=size, eos_token=list(end_ids) or None
    )


class Grammars:
    """Compile a model's grammars. Recently used ones are copied for the next request instead of compiled again."""

    def __init__(self, tokens: LLTokenizer, kernels: KernelLibrary | None) -> None:
        """`kernels` apply masks to logits on a CPU; without them torch does."""
        self._tokens, self._kernels = tokens, kernels
        self._compiled: OrderedDict[str, LLMatcher] = OrderedDict()

    def begin(self, grammar: str) -> GrammarMatcher:
        """Return a matcher at the start of an answer.

        `grammar` is llguidance's input: a JSON schema or Lark. Raises ValueError if it is invalid or too complex.
        """
        matcher = self._compiled.pop(grammar, None)
        if matcher is None:
            matcher = LLMatcher(self._tokens, grammar, log_level=0, limits=_LIMITS)
            matcher.compute_bitmask()  # the expensive part; copies share the result
            if matcher.is_error():
                raise ValueError(matcher.get_error().partition("\n<state>")[0].strip())
        self._compiled[grammar] = matcher
        if len(self._compiled) > _COMPILED:
            self._compiled.popitem(last=False)
        return GrammarMatcher(matcher, self._tokens.vocab_size, self._kernels)


class GrammarMatcher:
    """Track one request's position in its grammar. Drafted tokens are matched ahead and rolled back if rejected."""

    def __init__(self, origin: LLMatcher, size: int, kernels: KernelLibrary | None) -> None:
        """Start from `origin`, a matcher at its start, which stays there; `size` is the vocabulary's."""
        self._matcher = origin.deep_copy()
        self._origin, self._kernels = origin, kernels
        self._failed = False
        self._emitted: list[int] = []
        self._ahead: list[int] = []  # drafted tokens that the matcher has consumed
        self._masks: dict[int, Bits] = {}  # by the number of drafted tokens before
        self._size = size
        self._words = -(-self._size // 32)
        self._everything = np.full(self._words, -1, dtype=np.int32)

    @property
    def failed(self) -> str | None:
        """The reason why the grammar cannot be followed any further, or None. Valid after `advance`."""
        return "The grammar became too complex to follow." if self._failed else None

    @property
    def stopped(self) -> bool:
        """Whether no token may follow. Valid after `advance`."""
        return not self._ahead and bool(self._matcher.is_stopped())

    def advance(self, tokens: Sequence[int]) -> None:
        """Consume these emitted tokens; drafted ones that differ are rolled back."""
        self._emitted += tokens
        if self._ahead[: len(tokens)] == list(tokens):
            del self._ahead[: len(tokens)]
            self._masks = {depth - len(tokens): bits for depth, bits in self._masks.items() if depth >= len(tokens)}
            return
        self._back_to(0)
        self._masks.clear()
        if self._matcher.try_consume_tokens(list(tokens)) < len(tokens) and not self._matcher.is_stopped():
            self._failed = True
        if self._matcher.is_error():
            self._failed = True
        if self._failed:
            log.warning("a grammar cannot be followed: %.200s", self._matcher.get_error())

    def mask(self, scores: Tensor, drafted: Sequence[int]) -> None:
        """Set scores [vocab] to -inf for all tokens that may not follow these drafted ones."""
        bits = self._allowed(drafted)
        on_cpu = scores.dtype == torch.float32 and scores.device.type == "cpu"
        if self._kernels is not None and on_cpu:
            self._kernels.mask(scores.data_ptr(), bits.ctypes.data, len(scores))
        else:
            allowed = torch.from_numpy(unpacked(bits, len(scores)))
            scores.masked_fill_(~allowed.to(scores.device, non_blocking=True), float("-inf"))

    def allowed(self, drafted: Sequence[int]) -> Tensor:
        """Return which tokens may follow these drafted ones: bool [vocab]."""
        return torch.from_numpy(unpacked(self._allowed(drafted), self._size))

    def allows(self, token: int, drafted: list[int]) -> bool:
        """Whether a token may follow these drafted ones. Any token may follow a draft that breaks the grammar itself.

        This allows every token that `mask` keeps. Where the grammar prescribes the text, it also allows other ways
        to split that text into tokens.
        """
        if self._ahead != drafted:
            common = self._common(drafted)
            if common == len(drafted) < len(self._ahead) and self._ahead[common] == token:
                return True
            if not self._follow(drafted, common):
                return True
        return self._take(token) or self._ahead != drafted

    def _allowed(self, drafted: Sequence[int]) -> Bits:
        """Return the mask after these drafted tokens; all tokens, if they break the grammar themselves."""
        common = self._common(drafted)
        if common == len(drafted) in self._masks:
            return self._masks[common]
        return self._mask() if self._follow(drafted, common) else self._everything

    def _common(self, drafted: Sequence[int]) -> int:
        """Count the leading tokens of these that are matched ahead already."""
        common = 0
        while common < min(len(drafted), len(self._ahead)) and drafted[common] == self._ahead[common]:
            common += 1
        return common

    def _follow(self, drafted: Sequence[int], common: int) -> bool:
        """Match exactly these ahead, of which `common` are already; False if one of them is not allowed."""
        self._back_to(common)
        return all(self._take(token) for token in drafted[common:])

    def _take(self, token: int) -> bool:
        """Match one more token ahead; False if it is not allowed or too complex, or if the answer is complete."""
        if self._matcher.is_stopped() or self._matcher.try_consume_tokens([token]) == 0:
            if self._matcher.is_error():
                self._recover()
            return False
        self._ahead.append(token)
        return True

    def _mask(self) -> Bits:
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
        """Return to the emitted tokens after a drafted token put the matcher into an error, which it cannot leave.

        Such a draft counts only if it is accepted; then `advance` meets the same error. Until then any token may
        follow.
        """
        self._matcher = self._origin.deep_copy()
        self._matcher.try_consume_tokens(self._emitted)
        self._ahead.clear()
        self._masks.clear()

    def _back_to(self, depth: int) -> None:
        if len(self._ahead) > depth:
            self._matcher.rollback(len(self._ahead) - depth)
            del self._ahead[depth:]
            for later in [d for d in self._masks if d > depth]:
                del self._masks[later]
