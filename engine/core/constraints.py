"""Logits processors of requests: penalties, biases and grammars, made once and replayed for searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from engine.config.grammar import GrammarConfig
from engine.core.request import Request
from engine.errors import RequestError
from engine.text.tokenizer import Tokenizer
from engine.types import EngineInfo, SamplingParams

if TYPE_CHECKING:
    from engine.grammar.host import GrammarHost
    from engine.grammar.protocol import Vocabulary
    from engine.kernels.library import KernelLibrary
    from engine.sampling.grammar import GrammarMatcher
    from engine.sampling.logits import LogitsProcessor
    from engine.sampling.sample import Edit

_REPLAY_SECONDS = 0.1  # a grammar is not followed for a search if it would take longer


class Processors:
    """Makes logits processors. The host of grammars is made at the first grammar."""

    def __init__(
        self, tokenizer: Tokenizer, info: EngineInfo, kernels: KernelLibrary | None, config: GrammarConfig
    ) -> None:
        self._tokenizer, self._info, self._kernels, self._config = tokenizer, info, kernels, config
        self.host: GrammarHost | None = None

    def ready(self, sampling: SamplingParams) -> bool:
        """Whether `make` need not wait: the grammar is compiled or refused. Begins to compile it, if unknown."""
        return sampling.grammar is None or self._grammars().ready(sampling.grammar)

    def close(self) -> None:
        """End the processes that follow grammars."""
        if self.host is not None:
            self.host.close()

    def make(self, sampling: SamplingParams, prompt: Sequence[int]) -> LogitsProcessor | None:
        """Return the processor of a request, or None if its logits stay as they are. Raises RequestError."""
        if not sampling.edits_logits:
            return None
        from engine.sampling.logits import LogitsProcessor  # imports torch, which the core does not need

        matcher = None if sampling.grammar is None else self.begin(sampling.grammar, sampling.grammar_param)
        return LogitsProcessor(sampling, prompt, self._info.eos_token_ids, matcher)

    @staticmethod
    def replay(request: Request, positions: Sequence[int]) -> Iterator[Edit | None]:
        """Yield the request's edit of the logits after each of these ascending positions of its text.

        Each edit is valid until the next is taken. Positions within the prompt have none. Yields nothing if the logits
        stay as they are, or if the grammar would take too long. Exhaust or close the iterator: it follows the grammar.
        """
        if request.processor is None or len(positions) * request.processor.step_seconds > _REPLAY_SECONDS:
            return
        known = len(request.prompt)
        with closing(request.processor.restarted(request.prompt)) as processor:
            for position in positions:
                processor.advance(request.tokens[known : position + 1])
                known = max(known, position + 1)
                yield partial(processor.edit, drafted=()) if position + 1 >= len(request.prompt) else None

    def begin(self, grammar: str, param: str) -> GrammarMatcher:
        """Return a matcher at the start of an answer, once the grammar is compiled. Raises RequestError."""
        from engine.sampling.grammar import GrammarMatcher

        try:
            compiled = self._grammars().wait(grammar)
            if compiled.slow:
                raise ValueError("following it takes too long")
            return GrammarMatcher(compiled, self._info.vocab_size, self._kernels)
        except ValueError as error:
            raise RequestError(f"'{param}' cannot be enforced: {error}.", param=param) from None

    def _grammars(self) -> GrammarHost:
        if self.host is None:
            from engine.grammar.host import GrammarHost

            self.host = GrammarHost(self._vocabulary, self._config)
        return self.host

    def _vocabulary(self) -> Vocabulary:
        from engine.grammar.protocol import Vocabulary

        tokenizer = self._tokenizer
        added = tokenizer.backend.get_added_tokens_decoder()
        return Vocabulary(
            tokens=[tokenizer.token_bytes(token) for token in range(self._info.vocab_size)],
            # All added tokens: llguidance 1.9 rolls back too far over one that a grammar names by its id otherwise.
            special_ids=sorted(added),
            end_ids=[*self._info.eos_token_ids],
            tokenizer=tokenizer.backend.to_str(),
        )
