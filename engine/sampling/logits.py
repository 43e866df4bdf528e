"""Edit a request's logits before the temperature: penalties, bias, grammar masks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from engine.tensors import to_device
from engine.types import SamplingParams

if TYPE_CHECKING:
    from engine.sampling.grammar import GrammarMatcher

_CAPACITY = 256  # token ids that a processor's arrays hold at first
# A drafted token of at least this confidence is not checked against the grammar: it nearly always conforms, and
# computing the mask costs more than a rejected draft token (measured).
MASK_BELOW_CONFIDENCE = 0.7


class LogitsProcessor:
    """Edit the logits of one request, whose emitted tokens it counts.

    Edits apply in this order: repetition penalty over prompt and answer; frequency and presence penalties over the
    answer; bias; allowed tokens; the grammar's mask; no end of a bad word and no end token before `min_tokens`, unless
    nothing else may follow; the end of the reasoning at its limit. All edits are elementwise, so a row does not depend
    on other rows.
    """

    def __init__(
        self, sampling: SamplingParams, prompt: Sequence[int], end_ids: Sequence[int], grammar: GrammarMatcher | None
    ) -> None:
        """Take the ids that end an answer (`end_ids`), unless the request ignores them."""
        self._sampling, self._end_ids = sampling, end_ids
        self._grammar = grammar
        self._penalties = sampling.penalises
        self._generated = 0
        self._bias: tuple[Tensor, Tensor] | None = None  # token ids and what is added to their logits, on the device
        ends = (() if sampling.ignore_eos else tuple(end_ids)) + sampling.stop_token_ids
        self._ends = sorted(set(ends)) if sampling.min_tokens else []
        self._limit = sampling.thought_limit
        # Tokens of the reasoning so far; None before it, and -1 after it.
        self._thought: int | None = 0 if self._limit is not None and self._limit.begun else None
        self._forbidden: Tensor | None = None  # which tokens are not allowed, [vocab] on the device
        # Whether, since tokens were last emitted, no token was both allowed and in the grammar.
        self.excluded_all = False
        self._words = sampling.bad_words
        self._recent: list[int] = []  # the last tokens, with which a bad word may begin
        self._index: dict[int, int] = {}  # token id -> its index in the arrays
        # numpy arrays: a tensor made in inference mode, where drafts are edited, must not be changed outside it.
        self._ids: np.ndarray = np.zeros(_CAPACITY, np.int64)
        self._counts: np.ndarray = np.zeros(_CAPACITY, np.float32)  # occurrences in the answer
        if sampling.repetition_penalty != 1.0:
            self._track(prompt)
        # Whether `edit` is needed only if the token drawn from unedited logits breaks the grammar. A token that wins
        # among all tokens, and is allowed, also wins among the allowed ones. This does not hold with top-k, top-p,
        # min-p or other edits. The answer depends on the request alone, never on what was drafted.
        self.mask_after_draw = grammar is not None and not (
            self._penalties
            or sampling.logit_bias
            or sampling.allowed_token_ids
            or self._words
            or self._limit
            or self._ends
            or sampling.truncates
        )

    def restarted(self, prompt: Sequence[int]) -> LogitsProcessor:
        """Return a processor of the same request at the start of its answer."""
        grammar = None if self._grammar is None else self._grammar.restarted()
        return LogitsProcessor(self._sampling, prompt, self._end_ids, grammar)

    def close(self) -> None:
        """Stop to follow the grammar. The processor may not be used afterwards."""
        if self._grammar is not None:
            self._grammar.close()

    @property
    def failed(self) -> str | None:
        """The reason why the request cannot continue, or None."""
        return None if self._grammar is None else self._grammar.failed

    @property
    def step_seconds(self) -> float:
        """The expected time of following the grammar for each token drawn or drafted."""
        return 0.0 if self._grammar is None else self._grammar.step_seconds

    @property
    def stopped(self) -> bool:
        """Whether no token may follow those emitted."""
        return self._grammar is not None and self._grammar.stopped

    def may_end(self, drafted: Sequence[int] = ()) -> bool:
        """Whether the form of the answer lets it end after these drafted tokens."""
        return self._grammar is None or bool(self._grammar.allowed(drafted)[list(self._end_ids)].any())

    def advance(self, tokens: Sequence[int]) -> None:
        """Count these tokens as emitted."""
        self._generated += len(tokens)
        self.excluded_all = False  # perhaps after drafted tokens that were rejected
        if self._grammar is not None:
            self._grammar.advance(tokens)
        self._thought = self._thought_after(tokens)
        if self._words:
            self._recent = [*self._recent, *tokens][-max(map(len, self._words)) :]
        if self._penalties:
            self._track(tokens)
            self._count(tokens, 1.0)

    def edit(self, scores: Tensor, drafted: Sequence[int]) -> None:
        """Edit scores [vocab] in place: the logits of the token after these drafted ones."""
        if self._penalties:
            known = len(self._index)
            self._track(drafted)
            self._count(drafted, 1.0)
            self._penalise(scores)
            self._count(drafted, -1.0)
            for token in [token for token in drafted if self._index.get(token, -1) >= known]:
                self._index.pop(token, None)
        if self._sampling.logit_bias:
            if self._bias is None:
                ids, added = zip(*self._sampling.logit_bias, strict=True)
                self._bias = to_device(ids, scores.device), to_device(added, scores.device, scores.dtype)
            scores[self._bias[0]] += self._bias[1]
        if self._sampling.allowed_token_ids:
            if self._forbidden is None:
                self._forbidden = torch.ones_like(scores, dtype=torch.bool)
                self._forbidden[to_device(self._sampling.allowed_token_ids, scores.device)] = False
            scores.masked_fill_(self._forbidden, float("-inf"))
        if self._grammar is not None:
            stops = [*self._sampling.stop_token_ids]
            kept = scores[stops] if stops and self.may_end(drafted) else None
            self._grammar.mask(scores, drafted)
            if kept is not None:
                scores[stops] = kept
            if self._sampling.allowed_token_ids and bool((scores == float("-inf")).all()):
                self.excluded_all = True
        if self._words:
            self._forbid(scores, self._ends_of_words(drafted))
        if self._ends and self._generated + len(drafted) < self._sampling.min_tokens:
            self._forbid(scores, self._ends)
        if self._limit is not None:
            thought = self._thought_after(drafted)
            if thought is not None and thought >= self._limit.tokens:
                self._force(scores, self._limit.close)

    def _thought_after(self, tokens: Sequence[int]) -> int | None:
        """Return the tokens of the reasoning after these, which are not emitted yet."""
        thought, limit = self._thought, self._limit
        if limit is None or thought == -1:
            return thought
        for token in tokens:
            if thought is None:
                thought = 0 if token == limit.open else None
            elif token == limit.close:
                return -1
            else:
                thought += 1
        return thought

    @staticmethod
    def _force(scores: Tensor, token: int) -> None:
        """Set scores [vocab] of all other tokens to -inf, unless this one is forbidden."""
        kept = scores[token].clone()
        if bool(kept > float("-inf")):
            scores.fill_(float("-inf"))
            scores[token] = kept

    def _forbid(self, scores: Tensor, tokens: Sequence[int]) -> None:
        """Set scores [vocab] of tokens to -inf, unless nothing else may follow."""
        if not tokens:
            return
        ids = to_device(tokens, scores.device)
        kept = scores[ids]
        scores[ids] = float("-inf")
        restricted = self._grammar is not None or self._sampling.allowed_token_ids or self._words
        if restricted and not bool((scores > float("-inf")).any()):
            scores[ids] = kept

    def _ends_of_words(self, drafted: Sequence[int]) -> list[int]:
        """Return the tokens that would complete a bad word after these drafted ones."""
        text = [*self._recent, *drafted]
        begun = (word for word in self._words if text[max(len(text) - len(word) + 1, 0) :] == [*word[:-1]])
        return [*{word[-1] for word in begun}]

    def allows(self, token: int, drafted: list[int]) -> bool:
        """Whether a token may follow these drafted ones, so that it needs no `edit`. Requires `mask_after_draw`."""
        assert self._grammar is not None
        stops = token in self._sampling.stop_token_ids and self.may_end(drafted)
        return stops or self._grammar.allows(token, drafted)

    def _track(self, tokens: Iterable[int]) -> None:
        new = [token for token in dict.fromkeys(tokens) if token not in self._index]
        if not new:
            return
        known = len(self._index)
        end = known + len(new)
        if end > len(self._ids):
            more = max(end, 2 * len(self._ids)) - len(self._ids)
            self._ids, self._counts = (np.pad(array, (0, more)) for array in (self._ids, self._counts))
        self._index.update(zip(new, range(known, end), strict=True))
        self._ids[known:end] = new
        self._counts[known:end] = 0.0

    def _count(self, tokens: Iterable[int], amount: float) -> None:
        for token in tokens:
            self._counts[self._index[token]] += amount

    def _penalise(self, scores: Tensor) -> None:
        """Apply the penalties to scores [vocab] in place."""
        known = len(self._index)
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
