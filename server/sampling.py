"""Read the sampling parameters of a request."""

import secrets
from collections.abc import Mapping, Sequence

from engine.api import PromptTokenizer
from engine.types import EngineInfo, SamplingParams
from server.edge.errors import invalid
from server.options import Options

RANDOM_SEED = (None, -1)  # vLLM and llama.cpp take -1 for a random seed
_GREEDY_BELOW = 1e-5  # dividing logits by a lower temperature would overflow
_DIGITS = 20  # all token ids have fewer


class SamplingReader:
    """Reads sampling parameters. Those that a request lacks are the checkpoint's."""

    def __init__(self, info: EngineInfo, tokenizer: PromptTokenizer) -> None:
        self._info, self._tokenizer = info, tokenizer
        self._defaults = dict(info.sampling_defaults)

    def read(
        self, request: Options, *, stop: Sequence[str], max_tokens: int | None, longest: int, trace: bool
    ) -> SamplingParams:
        """Return the sampling parameters of a request whose longest prompt has `longest` tokens. Raises APIError."""
        temperature = self._value_or_default(request.temperature, "temperature", 1.0)
        return SamplingParams(
            max_tokens=self._cap_max_tokens(1 if max_tokens == 0 else max_tokens, longest),
            temperature=0.0 if temperature < _GREEDY_BELOW else temperature,
            top_p=self._value_or_default(request.top_p, "top_p", 1.0),
            top_k=int(self._value_or_default(request.top_k, "top_k", -1)),
            min_p=self._value_or_default(request.min_p, "min_p", 0.0),
            seed=secrets.randbits(63) if request.seed in RANDOM_SEED else request.seed,
            stop=tuple(stop),
            stop_token_ids=self._known_ids(request.stop_token_ids, "stop_token_ids"),
            ignore_eos=request.ignore_eos,
            min_tokens=request.min_tokens,
            presence_penalty=request.presence_penalty,
            frequency_penalty=request.frequency_penalty,
            repetition_penalty=self._value_or_default(request.repetition_penalty, "repetition_penalty", 1.0),
            logit_bias=self._logit_bias(request.logit_bias),
            allowed_token_ids=self._known_ids(request.allowed_token_ids, "allowed_token_ids"),
            bad_words=self._bad_words(request.bad_words),
            skip_special_tokens=request.skip_special_tokens,
            include_stop=request.include_stop_str_in_output,
            trace=trace,
        )

    def _known_ids(self, tokens: Sequence[int], param: str) -> tuple[int, ...]:
        vocabulary = self._info.vocab_size
        if tokens and max(tokens) >= vocabulary:
            raise invalid(f"Token ids must be between 0 and {vocabulary - 1}.", param)
        return tuple(tokens)

    def _bad_words(self, words: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """Return the tokens of words, at the start of a text and after a space, as vLLM does."""
        texts = [text for word in words if word.strip() for text in (word.strip(), f" {word.strip()}")]
        found = [self._tokenizer.encode(text, add_special_tokens=False, literal=True) for text in texts]
        return tuple(dict.fromkeys(self._known_ids(word, "bad_words") for word in found if word))

    def _logit_bias(self, biases: Mapping[str, float]) -> tuple[tuple[int, float], ...]:
        if not all(token.isascii() and token.isdecimal() and len(token) < _DIGITS for token in biases):
            raise invalid("The keys of 'logit_bias' must be token ids.", "logit_bias")
        tokens = [int(token) for token in biases]
        if len(set(tokens)) < len(tokens):
            raise invalid("'logit_bias' contains a token twice.", "logit_bias")
        return tuple(zip(self._known_ids(tokens, "logit_bias"), biases.values(), strict=True))

    def _value_or_default(self, requested: float | None, name: str, neutral: float) -> float:
        """Return the requested value, else the checkpoint's default, else the neutral value."""
        return self._defaults.get(name, neutral) if requested is None else requested

    def _cap_max_tokens(self, requested: int | None, prompt_tokens: int) -> int | None:
        """Lower `max_tokens` to the checkpoint's own limit. That limit alone never rejects a prompt."""
        limit = self._defaults.get("max_tokens")
        if limit is None:
            return requested
        return min(int(limit), self._info.max_model_len - prompt_tokens if requested is None else requested)
