"""Constrain answers to a grammar, whose position a process of its own tracks (`engine.grammar.host`)."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engine.grammar.host import Grammar
from engine.grammar.protocol import Answer, Operation
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
        self._failed = self._stopped = False
        self._seconds = 0.0  # the estimated time of a step; 0: unknown
        self._spent, self._steps = 0.0, 0  # since the last estimate
        self._ahead: list[tuple[int, bool]] = []  # tokens matched ahead, each with whether no token may follow

    def __del__(self) -> None:
        self.grammar.forget(self._number)

    def restarted(self) -> GrammarMatcher:
        """Return a matcher at the start of the same grammar."""
        return GrammarMatcher(self.grammar, self._size, self._kernels)

    @property
    def failed(self) -> str | None:
        """The reason why the grammar cannot be followed any further, or None. Valid after `advance`."""
        return "The grammar became too complex to follow." if self._failed else None

    def step_seconds(self) -> float:
        """Return what a step will take: a token drawn or drafted. Estimated from the dearest lately."""
        if self._steps:
            spent = self._spent / self._steps
            self._seconds = max(spent, _FADING * self._seconds)
            self._spent, self._steps = 0.0, 0
        return self._seconds or _UNKNOWN

    @property
    def stopped(self) -> bool:
        """Whether no token may follow. Valid after `advance`."""
        return self._stopped

    def advance(self, tokens: Sequence[int]) -> None:
        """Consume these emitted tokens; drafted ones that differ are rolled back."""
        if not tokens:
            return
        ahead = self._ahead[: len(tokens)]
        if [token for token, _ in ahead] == list(tokens):
            del self._ahead[: len(tokens)]
            self._stopped = ahead[-1][1]
            self.grammar.keep(self._number, tokens)
            return
        self._ahead.clear()
        answer, _ = self._ask(Operation.ADVANCE, tokens)
        self._stopped = Answer.STOPPED in answer

    def mask(self, scores: Tensor, drafted: Sequence[int]) -> None:
        """Set scores [vocab] to -inf for all tokens that may not follow these drafted ones."""
        bits = self._allowed(drafted)
        if bits is None:
            return
        on_cpu = scores.dtype == torch.float32 and scores.device.type == "cpu"
        if self._kernels is not None and on_cpu:
            self._kernels.mask(scores.data_ptr(), bits.ctypes.data, len(scores))
        else:
            allowed = torch.from_numpy(_unpacked(bits, len(scores)))
            scores.masked_fill_(~allowed.to(scores.device, non_blocking=True), float("-inf"))

    def allowed(self, drafted: Sequence[int]) -> Tensor:
        """Return which tokens may follow these drafted ones: bool [vocab]."""
        bits = self._allowed(drafted)
        if bits is None:
            return torch.ones(self._size, dtype=torch.bool)
        return torch.from_numpy(_unpacked(bits, self._size))

    def allows(self, token: int, drafted: list[int]) -> bool:
        """Whether a token may follow these drafted ones. Any token may follow a draft that breaks the grammar itself.

        This allows every token that `mask` keeps. Where the grammar prescribes the text, it also allows other ways
        to split that text into tokens.
        """
        known = self._follow(drafted)
        self._steps = max(self._steps, len(drafted) + 1)
        if known and len(self._ahead) > len(drafted) and self._ahead[len(drafted)][0] == token:
            return True
        answer, _ = self._ask(Operation.TAKE, (token, *drafted))
        del self._ahead[len(drafted) :]
        if known and Answer.TAKEN in answer:
            self._ahead.append((token, Answer.STOPPED in answer))
        return bool(answer & (Answer.ALLOWED | Answer.FAILED))

    def _allowed(self, drafted: Sequence[int]) -> np.ndarray | None:
        """Return the mask after these drafted tokens; None: all tokens, as the draft breaks the grammar itself."""
        self._follow(drafted)
        self._steps = max(self._steps, len(drafted) + 1)
        _, mask = self._ask(Operation.MASK, drafted)
        return np.frombuffer(mask, np.uint8) if mask else None

    def _follow(self, drafted: Sequence[int]) -> bool:
        """Forget tokens matched ahead from the first on that differs from these; whether these are all known."""
        common = 0
        while common < min(len(drafted), len(self._ahead)) and drafted[common] == self._ahead[common][0]:
            common += 1
        if common < len(drafted):
            del self._ahead[common:]
        return common == len(drafted)

    def _ask(self, operation: Operation, arguments: Sequence[int]) -> tuple[Answer, bytes]:
        started = time.monotonic()
        answer, mask = self.grammar.ask(operation, self._number, arguments)
        self._spent += time.monotonic() - started
        self._failed |= Answer.FAILED in answer
        return answer, mask


def _unpacked(bits: np.ndarray, count: int) -> np.ndarray:
    """Return the first `count` bits as booleans."""
    return np.unpackbits(bits, count=count, bitorder="little").view(np.bool_)
