"""What a client asks for becomes engine requests."""

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from engine.api import PromptTokenizer
from engine.sampling.seeds import mix64
from engine.types import EngineInfo, GenerateRequest, Owner, SamplingParams
from server.answer.pieces import ReplyFormat
from server.edge.errors import invalid, unknown_model
from server.options import Options
from server.prompt import Prompt
from server.sampling import RANDOM_SEED, SamplingReader

_MAX_LOGPROBS = 1 << 22  # per reply
_MASK63 = 2**63 - 1


def choice_seed(seed: int, choice: int) -> int:
    """Return the seed of choice `choice` of a request, in [0, 2**63).

    Choice 0 takes the seed itself (its low 63 bits if negative), so that n=1 and n>1 give the same first choice. The
    others take outputs of splitmix64, which differ even for neighbouring seeds and choices.
    """
    if choice == 0:
        return seed & _MASK63
    return mix64(seed + (choice - 1) * 0x9E3779B97F4A7C15) & _MASK63


@dataclass(frozen=True, slots=True)
class Ask:
    """What a client asks for beside the prompt. Tokens are counted for each choice."""

    options: Options
    max_tokens: int | None  # 0: only read the prompt; None: as many as the context allows
    capped: bool = False  # `max_tokens` is lowered to what the context has room for, instead of a refusal
    stop: Sequence[str] = ()
    n: int = 1  # choices of each prompt
    logprobs: int | None = None  # alternatives per token; None: no log-probabilities
    logprobs_path: str = ""  # path of the field that asks for them
    prompt_logprobs: bool = False
    rounds: bool = False  # figures of each round


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A validated request with encoded prompts."""

    id: str
    created: int  # seconds since the epoch
    model: str
    options: Options
    format: ReplyFormat
    prompts: tuple[tuple[int, ...], ...]
    sampling: SamplingParams

    def requests(self, key: str = "", salt: str = "") -> Iterator[GenerateRequest]:
        """Yield one engine request per choice, lazily. Choice i of prompt p has index p·n + i.

        `key` stands for the client's API key; `salt` is added to the request's own.
        """
        options = self.options
        owner, salt = Owner(key, self.id), "\0".join(filter(None, (salt, options.cache_salt)))
        seeded = options.seed not in RANDOM_SEED  # choices depend on the seed and on their number only
        for index in range(self.format.choices):
            prompt, choice = divmod(index, self.format.n)
            seed = choice_seed(self.sampling.seed, choice if seeded else index)
            sampling = replace(self.sampling, seed=seed)
            name, tokens = f"{self.id}-{index}", self.prompts[prompt]
            yield GenerateRequest(name, tokens, sampling, options.draft_policy, owner, options.priority, salt)


class Preparer:
    """Makes engine requests, for all APIs. Thread-safe."""

    def __init__(
        self, info: EngineInfo, tokenizer: PromptTokenizer, names: Sequence[str], max_n: int, *, priorities: bool
    ) -> None:
        """Take the names of the served model, and the most choices of a request.

        `priorities`: requests may have a priority.
        """
        self._info = info
        self._sampling = SamplingReader(info, tokenizer)
        self._names = tuple(names)
        self._max_n, self._priorities = max_n, priorities

    def check(self, options: Options, n: int = 1) -> None:
        """Check what does not depend on the prompts. Raises APIError, UnknownPolicyError."""
        self.check_model(options.model)
        if n > self._max_n:
            raise invalid(f"'n' must be at most {self._max_n}.", "n")
        if options.priority and not self._priorities:
            raise invalid("'priority' requires a server with --scheduling-policy priority.", "priority")
        self._info.check_policy(options.draft_policy)

    def check_model(self, name: str) -> None:
        """Raise APIError if no served model has this name."""
        if name and name not in self._names:
            raise unknown_model(name, self._names)

    def prepare(self, prefix: str, prompt: Prompt, ask: Ask) -> ParsedRequest:
        """Return the engine's view of a request that `check` accepts. `prefix` begins its id. Raises APIError."""
        longest = max(map(len, prompt.tokens))
        room = self._info.max_model_len - longest
        max_tokens = ask.max_tokens
        if ask.capped and max_tokens is not None:
            max_tokens = min(max_tokens, room)
        sampling = self._sampling.read(
            ask.options, stop=ask.stop, max_tokens=max_tokens, longest=longest, trace=ask.rounds
        )
        least = ask.options.min_tokens
        if least > (limit := sampling.max_tokens or room):
            raise invalid(f"'min_tokens' is {least}, but the answer can have at most {limit} tokens.", "min_tokens")
        self._check_logprobs(prompt, ask, sampling.max_tokens)
        format = replace(
            prompt.format,
            prompt_lengths=[len(tokens) for tokens in prompt.tokens],
            n=ask.n,
            prompt_only=max_tokens == 0,
        )
        sampling = replace(
            sampling,
            grammar=prompt.grammar,
            grammar_param=prompt.grammar_path,
            logprobs=ask.logprobs,
            prompt_logprobs=ask.prompt_logprobs,
            predicted=prompt.predicted,
            thought_limit=prompt.thought_limit,
            skip_special_tokens=sampling.skip_special_tokens and not prompt.special_markers,
        )
        id, model, now = f"{prefix}{uuid.uuid4().hex}", ask.options.model or self._names[0], int(time.time())
        return ParsedRequest(id, now, model, ask.options, format, prompt.tokens, sampling)

    def fills_context(self, request: ParsedRequest) -> bool:
        """Whether the longest answer of a request with one prompt ends where the context does."""
        limit = request.sampling.max_tokens
        return limit is not None and len(request.prompts[0]) + limit == self._info.max_model_len

    def _check_logprobs(self, prompt: Prompt, ask: Ask, max_tokens: int | None) -> None:
        """Limit the memory of a reply: a log-probability takes a few hundred bytes. Raises APIError."""
        if ask.logprobs is None:
            return
        lengths = [len(tokens) for tokens in prompt.tokens]
        longest = self._info.max_model_len - min(lengths) if max_tokens is None else max_tokens
        echoed = sum(lengths) if ask.prompt_logprobs else 0
        count = ask.n * (len(lengths) * longest + echoed) * (1 + ask.logprobs)
        if count > _MAX_LOGPROBS:
            raise invalid(
                f"The reply could have {count} log-probabilities; the limit is {_MAX_LOGPROBS}. "
                "Ask for fewer tokens, alternatives or choices.",
                ask.logprobs_path,
            )
