"""Logits processors of requests: penalties, biases and grammars, made once and replayed for searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from engine.core.request import Request
from engine.errors import RequestError
from engine.text.tokenizer import Tokenizer
from engine.types import EngineInfo, SamplingParams

if TYPE_CHECKING:
    from engine.kernels.library import KernelLibrary
    from engine.sampling.grammar import Grammars
    from engine.sampling.logits import LogitsProcessor
    from engine.sampling.sample import Edit


class Processors:
    """Makes logits processors. The grammar compiler is made at the first grammar: it reads the whole vocabulary."""

    def __init__(self, tokenizer: Tokenizer, info: EngineInfo, kernels: KernelLibrary | None) -> None:
        self._tokenizer, self._info, self._kernels = tokenizer, info, kernels
        self._grammars: Grammars | None = None
        self._unavailable: str | None = None  # why this model has no grammars

    def make(self, sampling: SamplingParams, prompt: Sequence[int]) -> LogitsProcessor | None:
        """Return the processor of a request, or None if its logits stay as they are. Raises RequestError."""
        if not sampling.edits_logits:
            return None
        from engine.sampling.logits import LogitsProcessor  # imports torch, which the core does not need

        try:
            grammar = None if sampling.grammar is None else self._compiler().begin(sampling.grammar)
        except ValueError as error:
            raise RequestError(f"Invalid grammar: {error}", param=sampling.grammar_param) from None
        return LogitsProcessor(sampling, prompt, self._info.eos_token_ids, grammar)

    def replay(self, request: Request, positions: Sequence[int]) -> Iterator[Edit | None]:
        """Yield the request's edit of the logits after each of these ascending positions of its text.

        Each edit is valid until the next is taken. Positions within the prompt have none.
        """
        if request.processor is None:
            return
        processor = self.make(request.sampling, request.prompt)
        assert processor is not None
        known = len(request.prompt)
        for position in positions:
            processor.advance(request.tokens[known : position + 1])
            known = max(known, position + 1)
            yield partial(processor.edit, drafted=()) if position + 1 >= len(request.prompt) else None

    def _compiler(self) -> Grammars:
        """Raises ValueError without the grammar library, or if it cannot read the tokenizer."""
        if self._grammars is None and self._unavailable is None:
            info = self._info
            try:
                from engine.sampling.grammar import Grammars, vocabulary

                tokens = vocabulary(self._tokenizer, info.vocab_size, info.eos_token_ids)
                self._grammars = Grammars(tokens, self._kernels)
            except Exception as error:
                self._unavailable = f"structured output is not available with this model ({error})"
        if self._grammars is None:
            raise ValueError(self._unavailable)
        return self._grammars
