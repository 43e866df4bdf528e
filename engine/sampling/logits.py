"""What a request asks to be done to its logits before the temperature: penalties, bias, masks (docs/method.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from engine.tensors import to_device
from engine.types import SamplingParams

if TYPE_CHECKING:
    from engine.sampling.grammar import GrammarMatcher

_ROOM = 256  # ids
# A drafted token of at least this confidence is not checked against the grammar: it nearly always conforms, and
# computing the mask costs more than a rejected draft token (measured).
MASK_BELOW_CONFIDENCE = 0.7


class LogitsProcessor:
    """The state of one request, which knows the tokens that count so far.

    In this order: repetition penalty over prompt and answer, frequency and presence penalty over the answer, bias, the
    mask of a grammar, no end of the answer before `min_tokens` unless nothing else may follow. Elementwise: a row does
    not depend on its neighbours.
    """

    def __init__(
        self,
        sampling: SamplingParams,
        prompt: Sequence[int],
        end_ids: Sequence[int],
        grammar: GrammarMatcher | None = None,
    ) -> None:
        """`end_ids` end an answer, unless the request ignores them."""
        self._sampling = sampling
        self._grammar = grammar
        self._penalties = sampling.penalises
        self._generated = 0
        self._bias = [token for token, _ in sampling.logit_bias], [bias for _, bias in sampling.logit_bias]
        self._biases: tuple[Tensor, Tensor] | None = None  # on the device
        ends = (() if sampling.ignore_eos else tuple(end_ids)) + sampling.stop_token_ids
        self._ends = sorted(set(ends)) if sampling.min_tokens else []
        self._where: dict[int, int] = {}  # token -> index below
        # Not tensors: those made within inference mode, where drafts are edited, may not be changed outside it.
        self._ids: np.ndarray = np.zeros(_ROOM, np.int64)
        self._counts: np.ndarray = np.zeros(_ROOM, np.float32)  # in the answer
        if sampling.repetition_penalty != 1.0:
            self._see(prompt)
        self._mask_after_draw = grammar is not None and not (
            self._penalties or sampling.logit_bias or self._ends or sampling.truncates
        )

    @property
    def mask_after_draw(self) -> bool:
        """Whether `edit` may wait for a draw that breaks the grammar: a token that comes first of all, and is allowed,
        comes first of those that are allowed. Not so where probabilities of others count. It depends on the request
        alone: what the target says must not depend on what was drafted."""
        return self._mask_after_draw

    @property
    def failed(self) -> str | None:
        """Why the request cannot go on, if so."""
        return None if self._grammar is None else self._grammar.failed

    @property
    def stopped(self) -> bool:
        """Nothing can follow what was emitted."""
        return self._grammar is not None and self._grammar.stopped

    def advance(self, tokens: Sequence[int]) -> None:
        """These were emitted."""
        self._generated += len(tokens)
        if self._grammar is not None:
            self._grammar.advance(tokens)
        if self._penalties:
            self._see(tokens)
            self._add(tokens, 1.0)

    def edit(self, scores: Tensor, drafted: Sequence[int]) -> None:
        """Change one row of logits, scores [vocab], in place: that of the token after these drafted ones."""
        if self._penalties:
            known = len(self._where)
            self._see(drafted)
            self._add(drafted, 1.0)
            self._penalise(scores)
            self._add(drafted, -1.0)
            for token in [token for token in drafted if self._where.get(token, -1) >= known]:
                self._where.pop(token, None)
        if self._bias[0]:
            if self._biases is None:
                self._biases = (
                    to_device(self._bias[0], scores.device),
                    to_device(self._bias[1], scores.device, scores.dtype),
                )
            ids, biases = self._biases
            scores[ids] += biases
        if self._grammar is not None:
            self._grammar.mask(scores, drafted)
        if self._ends and self._generated + len(drafted) < self._sampling.min_tokens:
            ends = to_device(self._ends, scores.device)
            kept = scores[ends]
            scores[ends] = float("-inf")
            if self._grammar is not None and not bool((scores > float("-inf")).any()):
                scores[ends] = kept  # an answer that can only end, ends

    def allows(self, token: int, drafted: list[int]) -> bool:
        """Whether a token drawn after these drafted ones needs no `edit`. Only where that is `mask_after_draw`."""
        assert self._grammar is not None
        return self._grammar.allows(token, drafted)

    def _see(self, tokens: Iterable[int]) -> None:
        new = [token for token in dict.fromkeys(tokens) if token not in self._where]
        if not new:
            return
        known = len(self._where)
        end = known + len(new)
        if end > len(self._ids):
            more = max(end, 2 * len(self._ids)) - len(self._ids)
            self._ids, self._counts = (np.pad(array, (0, more)) for array in (self._ids, self._counts))
        self._where.update(zip(new, range(known, end), strict=True))
        self._ids[known:end] = new
        self._counts[known:end] = 0.0

    def _add(self, tokens: Iterable[int], amount: float) -> None:
        for token in tokens:
            self._counts[self._where[token]] += amount

    def _penalise(self, scores: Tensor) -> None:
        known = len(self._where)
        if not known:
            return
        sampling = self._sampling
        ids = torch.from_numpy(self._ids[:known]).to(scores.device, non_blocking=True)
        counts = torch.from_numpy(self._counts[:known]).to(scores.device, scores.dtype, non_blocking=True)
        picked = scores[ids]
        if sampling.repetition_penalty != 1.0:
            penalty = sampling.repetition_penalty
            picked = torch.where(picked > 0, picked / penalty, picked * penalty)
        picked = picked - sampling.frequency_penalty * counts - sampling.presence_penalty * (counts > 0)
        scores[ids] = picked


def make_processor(
    sampling: SamplingParams,
    prompt: Sequence[int],
    end_ids: Sequence[int],
    match: Callable[[str], GrammarMatcher] | None = None,
) -> LogitsProcessor | None:
    """What a request needs; None if its logits stay as they are. `match` begins a grammar."""
    grammar = match(sampling.grammar) if match and sampling.grammar is not None else None
    if sampling.edits_logits:
        return LogitsProcessor(sampling, prompt, end_ids, grammar)
    return None
