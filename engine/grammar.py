"""Structured output: which tokens a grammar allows next, through llguidance. Imported with the first grammar."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import torch
from llguidance import LLMatcher, LLTokenizer
from tokenizers import Tokenizer as BackendTokenizer
from torch import Tensor

log = logging.getLogger("knapserve.engine")


def vocabulary(tokenizer: BackendTokenizer, size: int, end_ids: Sequence[int]) -> LLTokenizer:
    """A model's tokens as grammars see them. Takes a while for large ones: once for all requests."""
    return LLTokenizer(tokenizer.to_str(), n_vocab=size, eos_token=list(end_ids) or None)


class GrammarMatcher:
    """Where one request's answer is in its grammar. What was drafted is matched ahead and rolled back."""

    def __init__(self, tokens: LLTokenizer, grammar: str) -> None:
        """`grammar`: what llguidance takes (a JSON schema or Lark), which has been validated."""
        self._matcher = LLMatcher(tokens, grammar, log_level=0)
        self._lost = False
        self._ahead: list[int] = []  # drafted tokens that the matcher has taken
        self._masks: list[Tensor] = []  # after 0, 1 … of them
        self._size = tokens.vocab_size
        self._bits = np.zeros(-(-self._size // 32), dtype=np.int32)
        self._everything = torch.ones(self._size, dtype=torch.bool)

    @property
    def stopped(self) -> bool:
        """Nothing can follow. Only after `advance`."""
        return self._lost or bool(self._matcher.is_stopped())

    def advance(self, tokens: Sequence[int]) -> None:
        """These were emitted."""
        self._back_to(0)
        self._masks.clear()
        if self._matcher.try_consume_tokens(list(tokens)) < len(tokens) and not self._matcher.is_stopped():
            self._lost = True
            log.error("a grammar does not take the tokens that it allowed: %s", self._matcher.get_error())

    def allowed(self, drafted: Sequence[int]) -> Tensor:
        """Tokens that may follow these drafted ones: bool [vocab]. All, behind a draft that is not allowed itself."""
        common = 0
        while common < min(len(drafted), len(self._ahead)) and drafted[common] == self._ahead[common]:
            common += 1
        if common == len(drafted) and len(self._masks) > common:
            return self._masks[common]
        self._back_to(common)
        for token in drafted[common:]:
            self._mask()
            if self._matcher.try_consume_tokens([token]) == 0:
                return self._everything
            self._ahead.append(token)
        return self._mask()

    def _mask(self) -> Tensor:
        """After what is matched ahead."""
        depth = len(self._ahead)
        if len(self._masks) == depth:
            self._matcher.unsafe_compute_mask_ptr(self._bits.ctypes.data, self._bits.nbytes)
            bits = np.unpackbits(self._bits.view(np.uint8), count=self._size, bitorder="little")
            self._masks.append(torch.from_numpy(bits.view(np.bool_)))
        return self._masks[depth]

    def _back_to(self, depth: int) -> None:
        if len(self._ahead) > depth:
            self._matcher.rollback(len(self._ahead) - depth)
            del self._ahead[depth:]
            del self._masks[depth + 1 :]
