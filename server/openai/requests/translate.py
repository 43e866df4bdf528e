"""Convert request bodies to engine requests. `parse` is thread-safe, and long bodies run it in a thread."""

import secrets
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Generic, TypeVar

from engine.api import PromptTokenizer
from engine.errors import ContextLengthError
from engine.sampling.seeds import mix64
from engine.types import EngineInfo, GenerateRequest, Owner, SamplingParams, ThoughtLimit
from server.http.errors import APIError, invalid, unknown_model
from server.http.lifecycle import version
from server.openai.replies.build import ReplyFormat, Usage
from server.openai.replies.endpoints import COMPLETION, Endpoint
from server.openai.replies.logprobs import TokenTexts
from server.openai.replies.writer import ChunkWriter, ReplyWriter
from server.openai.requests.answers import answer_of
from server.openai.requests.bodies import read_object, validate
from server.openai.requests.parameters import ParameterCheck
from server.openai.requests.schemas import MAX_BIASES, MAX_PROMPTS, CompletionRequest, GenerationRequest, StreamOptions
from server.openai.requests.structured import grammar_of

DEFAULT_COMPLETION_TOKENS = 16
_MAX_LOGPROBS = 1 << 22  # per reply
_RANDOM_SEED = (None, -1)  # -1 as in vLLM and llama.cpp
_GREEDY_BELOW = 1e-5  # temperature; dividing logits by less would overflow

_DIGITS = 20  # a token id has fewer
_MASK63 = 2**63 - 1

RequestT = TypeVar("RequestT", bound=GenerationRequest)


def choice_seed(seed: int, choice: int) -> int:
    """Return the seed of choice `choice` of a request, in [0, 2**63).

    Choice 0 takes the seed itself (its low 63 bits if negative), so that n=1 and n>1 give the same first choice. The
    others take outputs of splitmix64, which differ even for neighbouring seeds and choices.
    """
    if choice == 0:
        return seed & _MASK63
    return mix64(seed + (choice - 1) * 0x9E3779B97F4A7C15) & _MASK63


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A validated request with encoded prompts."""

    id: str
    created: int  # seconds since the epoch
    model: str
    format: ReplyFormat
    prompts: tuple[tuple[int, ...], ...]
    sampling: SamplingParams
    seeded: bool  # the client has set a seed, so choices depend on it and on their number only
    draft_policy: str | None
    stream: bool
    usage: Usage  # in a stream
    priority: int
    cache_salt: str
    writer: ReplyWriter

    def requests(self, key: str = "", salt: str = "") -> Iterator[GenerateRequest]:
        """Yield one engine request per choice, lazily. Choice i of prompt p has index p·n + i.

        `key` stands for the client's API key; `salt` is added to the request's own.
        """
        owner, salt = Owner(key, self.id), "\0".join(filter(None, (salt, self.cache_salt)))
        for index in range(self.format.choices):
            prompt, choice = divmod(index, self.format.n)
            seed = choice_seed(self.sampling.seed, choice if self.seeded else index)
            sampling = replace(self.sampling, seed=seed)
            name, tokens = f"{self.id}-{index}", self.prompts[prompt]
            yield GenerateRequest(name, tokens, sampling, self.draft_policy, owner, self.priority, salt)


@dataclass(frozen=True, slots=True)
class EncodedPrompts:
    """The prompts of a request, and the parameters that depend on its endpoint."""

    prompts: tuple[tuple[int, ...], ...]
    format: ReplyFormat  # `parse` completes it
    logprobs: int | None = None  # alternatives per token; None: no log-probabilities
    grammar: str | None = None
    grammar_param: str = "response_format"
    predicted: tuple[int, ...] = ()
    thought_limit: ThoughtLimit | None = None
    special_markers: bool = False  # special tokens mark tool calls, so the text must include them


class RequestTranslator(ABC):
    """Convert the request bodies of one endpoint."""

    prompt_param: str  # name of the field with the prompt
    # Longer bodies are parsed, rendered and tokenised in a thread. Switching threads costs as much as 2,000 characters.
    inline_bytes = 2000

    @abstractmethod
    def parse(self, raw: bytes) -> ParsedRequest:
        """Validate, render and tokenise a request. Raises APIError or RequestError naming the invalid field."""

    def renamed(self, error: APIError) -> APIError:
        """Return an error with this endpoint's name of the invalid field."""
        return error


class Translator(RequestTranslator, Generic[RequestT]):
    """Convert the request bodies of chat completions or completions."""

    request_type: type[RequestT]
    endpoint: Endpoint
    adds_special_tokens: bool  # encoding adds tokens such as BOS; a chat template already contains them

    def __init__(
        self,
        info: EngineInfo,
        tokenizer: PromptTokenizer,
        names: Sequence[str],
        max_n: int,
        *,
        priorities: bool = False,
        literal: bool = False,
        tool_format: str = "",
        describes_tools: bool = False,
        thinks: bool = False,
    ) -> None:
        """Take the names of the served model, and the most choices of a request.

        `priorities`: requests may have a priority. `literal`: markers that a chat spells are text. `tool_format` is the
        format of this model's tool calls, or "" to leave calls in the text. `describes_tools`: the chat template does
        not describe tools, so the server does.
        """
        self._info = info
        self._defaults = dict(info.sampling_defaults)
        self._tokenizer = tokenizer
        self._token_texts = TokenTexts(tokenizer)
        self._fingerprint = (
            f"fp_{sha256(repr((version(), info.model, info.dtype, info.device)).encode()).hexdigest()[:10]}"
        )
        self._names = tuple(names)
        self._max_n, self._priorities = max_n, priorities
        self.literal = literal
        self._tool_format, self._describes_tools, self._thinks = tool_format, describes_tools, thinks
        self._check = ParameterCheck.of(self.request_type)
        fields = self.request_type.model_fields.items()
        self._integers = [name for name, field in fields if field.annotation in (int, int | None)]
        self.prompt_param = self.endpoint.prompt_param

    def parse(self, raw: bytes) -> ParsedRequest:
        return self.parse_request(self._validate_body(raw))

    def parse_request(self, request: RequestT) -> ParsedRequest:
        """Render and tokenise a validated request. Raises APIError or RequestError."""
        info = self._info
        self.check_model(request.model)
        if request.n > self._max_n:
            raise invalid(f"'n' must be at most {self._max_n}.", "n")
        if request.priority and not self._priorities:
            raise invalid("'priority' requires a server with --scheduling-policy priority.", "priority")
        info.check_policy(request.draft_policy)
        options = request.stream_options or StreamOptions()
        if options != StreamOptions() and not request.stream:
            raise invalid("'stream_options' is only allowed with 'stream': true.", "stream_options")
        encoded = self._encode_prompts(request)
        max_tokens = self._max_tokens(request)
        if request.lowers_max_tokens and max_tokens is not None:
            max_tokens = min(max_tokens, info.max_model_len - max(map(len, encoded.prompts)))
        format = replace(
            encoded.format,
            prompt_lengths=[len(prompt) for prompt in encoded.prompts],
            n=request.n,
            token_texts=None if encoded.logprobs is None else self._token_texts,
            shows_special=not request.skip_special_tokens,
            prompt_only=max_tokens == 0,
        )
        sampling = self._sampling(request, max_tokens, max(map(len, encoded.prompts)))
        limit = sampling.max_tokens or info.max_model_len - max(map(len, encoded.prompts))
        if request.min_tokens > limit:
            raise invalid(
                f"'min_tokens' is {request.min_tokens}, but the answer can have at most {limit} tokens.", "min_tokens"
            )
        self._check_logprobs(encoded, request.n, sampling.max_tokens)
        with_usage = options.include_usage
        id, model, created = (
            f"{self.endpoint.id_prefix}-{uuid.uuid4().hex}",
            request.model or self._names[0],
            int(time.time()),
        )
        return ParsedRequest(
            id=id,
            created=created,
            model=model,
            format=format,
            prompts=encoded.prompts,
            sampling=replace(
                sampling,
                grammar=encoded.grammar,
                grammar_param=encoded.grammar_param,
                logprobs=encoded.logprobs,
                prompt_logprobs=bool(format.echo_first_tokens),
                predicted=encoded.predicted,
                thought_limit=encoded.thought_limit,
                skip_special_tokens=sampling.skip_special_tokens and not encoded.special_markers,
            ),
            seeded=request.seed not in _RANDOM_SEED,
            draft_policy=request.draft_policy,
            stream=request.stream,
            usage=Usage.NEVER if not with_usage else Usage.ALWAYS if options.continuous_usage_stats else Usage.AT_END,
            priority=request.priority,
            cache_salt=request.cache_salt or "",
            writer=ChunkWriter(
                {"id": id, "created": created, "model": model, "system_fingerprint": self._fingerprint},
                format.endpoint,
                include_usage=with_usage,
            ),
        )

    def _check_logprobs(self, encoded: EncodedPrompts, choices: int, max_tokens: int | None) -> None:
        """Limit the memory of a reply: a log-probability takes a few hundred bytes. Raises APIError."""
        if encoded.logprobs is None:
            return
        prompts = encoded.prompts
        longest = self._info.max_model_len - min(map(len, prompts)) if max_tokens is None else max_tokens
        echoed = sum(map(len, prompts)) if encoded.format.echo_first_tokens else 0
        count = choices * (len(prompts) * longest + echoed) * (1 + encoded.logprobs)
        if count > _MAX_LOGPROBS:
            raise invalid(
                f"The reply could have {count} log-probabilities; the limit is {_MAX_LOGPROBS}. "
                "Lower 'n' or 'max_tokens'.",
                "logprobs",
            )

    @property
    def max_model_len(self) -> int:
        return self._info.max_model_len

    def check_model(self, name: str) -> None:
        """Raise APIError if no served model has this name."""
        if name and name not in self._names:
            raise unknown_model(name, self._names)

    def _sampling(self, request: RequestT, max_tokens: int | None, longest: int) -> SamplingParams:
        stop = request.stop
        temperature = self._value_or_default(request.temperature, "temperature", 1.0)
        return SamplingParams(
            max_tokens=self._cap_max_tokens(1 if max_tokens == 0 else max_tokens, longest),
            temperature=0.0 if temperature < _GREEDY_BELOW else temperature,
            top_p=self._value_or_default(request.top_p, "top_p", 1.0),
            top_k=int(self._value_or_default(request.top_k, "top_k", -1)),
            min_p=self._value_or_default(request.min_p, "min_p", 0.0),
            seed=secrets.randbits(63) if request.seed in _RANDOM_SEED else request.seed,
            stop=() if stop is None else (stop,) if isinstance(stop, str) else tuple(stop),
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
            trace=request.return_rounds,
        )

    def _known_ids(self, tokens: Sequence[int], param: str) -> tuple[int, ...]:
        vocabulary = self._info.vocab_size
        if tokens and max(tokens) >= vocabulary:
            raise invalid(f"Token ids must be between 0 and {vocabulary - 1}.", param)
        return tuple(tokens)

    def _bad_words(self, words: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """Return the tokens of words, at the start of a text and after a space, as vLLM does."""
        texts = [text for word in words if word.strip() for text in (word.strip(), f" {word.strip()}")]
        found = [tuple(self._tokenizer.encode(text, add_special_tokens=False, literal=True)) for text in texts]
        return tuple(dict.fromkeys(filter(None, found)))

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

    @abstractmethod
    def _encode_prompts(self, request: RequestT) -> EncodedPrompts:
        """Encode the prompts, and check their lengths before anything slow. Raises APIError, RequestError."""

    @abstractmethod
    def _max_tokens(self, request: RequestT) -> int | None: ...

    def _validate_body(self, raw: bytes) -> RequestT:
        body = read_object(raw)
        for name in ("stream_options", "response_format"):
            if isinstance(value := body.get(name), dict):
                body[name] = {key: inner for key, inner in value.items() if inner is not None}
        self.accept_whole_numbers(body)
        if isinstance(biases := body.get("logit_bias"), dict) and len(biases) > MAX_BIASES:
            raise invalid(f"'logit_bias' must have at most {MAX_BIASES} entries.", "logit_bias")
        self._check(body)
        return validate(self.request_type, body)

    def accept_whole_numbers(self, body: dict[str, Any]) -> None:
        """Turn 3.0 into 3 where a field is an integer, as other servers do."""
        for name in self._integers:
            if isinstance(value := body.get(name), float) and value.is_integer():
                body[name] = int(value)

    def _encode(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a text. Raises ContextLengthError for a text that is too long even to tokenise."""
        self.check_characters(len(text))
        return tuple(self._tokenizer.encode(text, add_special_tokens=self.adds_special_tokens, literal=self.literal))

    def check_characters(self, characters: int) -> None:
        limit = self._info.max_model_len
        if characters > limit * self._tokenizer.longest_token:
            requested = f"your prompt has {characters} characters, more than {limit} tokens can hold"
            raise ContextLengthError(limit, requested, param=self.endpoint.prompt_param)

    def _check_length(self, prompt_tokens: int, max_tokens: int | None) -> None:
        """Raise APIError or ContextLengthError for a prompt without tokens or too long for the requested answer."""
        limit, param = self._info.max_model_len, self.endpoint.prompt_param
        if prompt_tokens == 0:
            raise invalid("The prompt is empty.", param)
        if prompt_tokens + (max_tokens or 1) > limit:
            rest = "leaving no room for a completion" if max_tokens is None else f"{max_tokens} in the completion"
            requested = (
                f"you requested {prompt_tokens + (max_tokens or 0)} tokens ({prompt_tokens} in the {param}, {rest})"
            )
            raise ContextLengthError(limit, requested, param=param)


class CompletionTranslator(Translator[CompletionRequest]):
    request_type = CompletionRequest
    endpoint = COMPLETION
    adds_special_tokens = True

    def _encode_prompts(self, request: CompletionRequest) -> EncodedPrompts:
        value = request.prompt
        if isinstance(value, list) and value and not _is_ids(value):
            if len(value) > MAX_PROMPTS:
                raise invalid(f"A request can have at most {MAX_PROMPTS} prompts.", "prompt")
            values, names = value, [f"prompt[{index}]" for index in range(len(value))]
        else:
            values, names = [value], ["prompt"]
        prompts = tuple(self._prompt_ids(item, name) for item, name in zip(values, names, strict=True))
        for prompt in prompts:
            self._check_length(len(prompt), self._max_tokens(request))  # before ids are decoded
        echoes = [
            item if isinstance(item, str) else self._tokenizer.decode(item) for item in (values if request.echo else ())
        ]
        answer = answer_of(request, self._tokenizer)
        grammar = None
        if answer is not None:
            grammar = answer.grammar or grammar_of(
                answer.schema, answer.expression, None, thinking=False, optional=False
            )
        scored = tuple(prompt[0] for prompt in prompts) if request.echo and request.logprobs is not None else ()
        format = ReplyFormat(COMPLETION, (), echoes=echoes, echo_first_tokens=scored)
        return EncodedPrompts(
            prompts,
            format,
            logprobs=request.logprobs,
            grammar=grammar,
            grammar_param=answer.param if answer else "response_format",
            special_markers=answer is not None and any(map(self._tokenizer.is_special, answer.markers)),
        )

    def _max_tokens(self, request: CompletionRequest) -> int | None:
        limits = (request.max_completion_tokens, request.max_tokens, DEFAULT_COMPLETION_TOKENS)
        return next(limit for limit in limits if limit is not None)

    def _prompt_ids(self, value: object, param: str) -> tuple[int, ...]:
        """Return the token ids of one prompt, a text or a list of ids."""
        if isinstance(value, str):
            ids = self._encode(value)
        elif isinstance(value, list) and _is_ids(value):
            ids = tuple(value)
            check_token_ids(ids, self._info.vocab_size, param)
        else:
            raise invalid(
                "'prompt' must be a string, a list of token ids, or a list of strings or of lists of token ids.", param
            )
        if not value or not ids:  # an empty text may still yield BOS
            raise invalid("The prompt is empty.", param)
        return ids


def check_token_ids(ids: Sequence[int], vocabulary: int, param: str) -> None:
    """Raise APIError naming the first of a list's items that is not a token id."""
    if ids and not (min(ids) >= 0 and max(ids) < vocabulary):
        bad = next(position for position, token in enumerate(ids) if not 0 <= token < vocabulary)
        raise invalid(f"Token ids must be between 0 and {vocabulary - 1}.", f"{param}[{bad}]")


def _is_ids(value: Sequence[object]) -> bool:
    """Whether all items are integers, which booleans are not here."""
    return all(type(item) is int for item in value)
