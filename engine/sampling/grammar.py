"""Constrain answers to a grammar, whose position a process of its own tracks (`engine.grammar.host`)."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engine.grammar.host import Grammar
from engine.kernels.library import KernelLibrary

_FADING = 0.8  # the estimate's factor each round: a dear step is rare where most drawn tokens are allowed at once
_UNKNOWN = 0.02  # seconds that the first step of an answer is expected to take


class GrammarMatcher:
    """Track one request's position in its grammar. Drafted tokens are matched ahead and rolled back if rejected."""

    def __init__(self, grammar: Grammar, size: int, kernels: KernelLibrary | None) -> None:
        """`size` is the vocabulary's; `kernels` apply masks to logits on a CPU, without them torch does."""
        self.grammar, self._kernels = grammar, kernels
        self._number = grammar.begin()
        self._size = size
        self._failed = self._ended = False  # `_ended`: no token may follow those emitted and those matched ahead
        self._seconds = 0.0  # the estimated time of a step; 0: unknown
        self._spent, self._steps = 0.0, 0  # seconds and steps since the last estimate
        self._emitted = 0  # the number of tokens emitted
        self._ahead: list[int] = []  # drafted tokens that the process has matched after those emitted
        self._masks: dict[int, np.ndarray] = {}  # masks by the number of tokens before, emitted and matched ahead

    def close(self) -> None:
        """Free what the process keeps of this matcher, which may not be used afterwards."""
        self.grammar.forget(self._number)

    def restarted(self) -> GrammarMatcher:
        """Return a matcher at the start of the same grammar."""
        return GrammarMatcher(self.grammar, self._size, self._kernels)

    @property
    def failed(self) -> str | None:
        """The reason why the grammar cannot be followed any further, or None. Valid after `advance`."""
        return "The grammar became too complex to follow." if self._failed else None

    @property
    def step_seconds(self) -> float:
        """The expected time of a step: a token drawn or drafted. Estimated from the dearest lately."""
        return self._seconds or _UNKNOWN

    @property
    def stopped(self) -> bool:
        """Whether no token may follow those emitted. Valid after `advance`."""
        return self._ended and not self._ahead

    def advance(self, tokens: Sequence[int]) -> None:
        """Consume these emitted tokens; drafted ones that differ are rolled back."""
        if self._steps:  # those of the round that ends
            self._seconds = max(self._spent / self._steps, _FADING * self._seconds)
            self._spent, self._steps = 0.0, 0
        matched = self._common(tokens)
        if matched < len(tokens):
            self._ask(tokens, matched)
            matched = len(self._ahead)
        self._failed |= matched < len(tokens) and not self._ended
        self._emitted += matched
        del self._ahead[:matched]
        self._masks = {place: bits for place, bits in self._masks.items() if place >= self._emitted}

    def mask(self, scores: Tensor, drafted: Sequence[int]) -> None:
        """Set scores [vocab] to -inf for all tokens that may not follow these drafted ones."""
        bits = self._allowed(drafted)
        if bits is None:
            return
        if self._kernels is not None and scores.dtype == torch.float32 and scores.device.type == "cpu":
            self._kernels.mask(scores.data_ptr(), bits.ctypes.data, len(scores))
        else:
            allowed = _unpacked(bits, len(scores))
            scores.masked_fill_(~allowed.to(scores.device, non_blocking=True), float("-inf"))

    def allowed(self, drafted: Sequence[int]) -> Tensor:
        """Return which tokens may follow these drafted ones: bool [vocab]."""
        bits = self._allowed(drafted)
        if bits is None:
            return torch.ones(self._size, dtype=torch.bool)
        return _unpacked(bits, self._size)

    def allows(self, token: int, drafted: list[int]) -> bool:
        """Whether a token may follow these drafted ones. Any token may follow a draft that breaks the grammar itself.

        This allows every token that `mask` keeps. Where the grammar prescribes the text, it also allows other ways
        to split that text into tokens.
        """
        self._steps = max(self._steps, len(drafted) + 1)
        tokens = [*drafted, token]
        common = self._common(tokens)
        if common < len(tokens):
            self._ask(tokens, common)
        return self._failed or len(self._ahead) != len(drafted)

    def _allowed(self, drafted: Sequence[int]) -> np.ndarray | None:
        """Return the mask after these drafted tokens; None: all tokens, as the draft breaks the grammar itself."""
        self._steps = max(self._steps, len(drafted) + 1)
        common, place = self._common(drafted), self._emitted + len(drafted)
        if common == len(drafted) and place in self._masks:
            return self._masks[place]
        bits = self._ask(drafted, common, mask=True)
        if not bits:
            return None
        self._masks[place] = np.frombuffer(bits, np.uint8)
        return self._masks[place]

    def _common(self, tokens: Sequence[int]) -> int:
        """Count the leading tokens of these that are matched ahead already."""
        differ = (at for at, (token, known) in enumerate(zip(tokens, self._ahead, strict=False)) if token != known)
        return next(differ, min(len(tokens), len(self._ahead)))

    def _ask(self, tokens: Sequence[int], common: int, *, mask: bool = False) -> bytes:
        """Match these tokens ahead instead, of which `common` are already. Ends before the first not allowed.

        Returns the mask after them, if asked for and if all are allowed.
        """
        started = time.monotonic()
        kept = self._emitted + common
        answer = self.grammar.ask(self._number, self._emitted, kept, tokens[common:], mask=mask)
        self._spent += time.monotonic() - started
        self._masks = {place: bits for place, bits in self._masks.items() if place <= kept}
        if answer is None:
            self._failed = True
            return b""
        self._ahead = [*self._ahead[:common], *tokens[common:]][: answer.consumed - self._emitted]
        self._ended = answer.stopped
        return answer.mask


def _unpacked(bits: np.ndarray, count: int) -> Tensor:
    """Return the first `count` bits as booleans [count]."""
    return torch.from_numpy(np.unpackbits(bits, count=count, bitorder="little").view(np.bool_))
