"""Convert request bodies to engine requests. `parse` is thread-safe, and long bodies run it in a thread."""

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
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
from server.openai.replies.endpoints import Endpoint
from server.openai.replies.logprobs import TokenTexts
from server.openai.replies.writer import ChunkWriter, ReplyWriter
from server.openai.requests.bodies import read_object, validate
from server.openai.requests.parameters import ParameterCheck
from server.openai.requests.sampling import RANDOM_SEED, SamplingReader
from server.openai.requests.schemas import MAX_BIASES, GenerationRequest, StreamOptions

_MAX_LOGPROBS = 1 << 22  # per reply
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
    renders = True  # the prompt is a chat

    def size(self, raw: bytes) -> int:
        """Return the bytes of a body with all that it may refer to."""
        return len(raw)

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
        self._tokenizer = tokenizer
        self._sampling = SamplingReader(info, tokenizer)
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
        self._check_request(request)
        encoded = self._encode_prompts(request)
        longest = max(map(len, encoded.prompts))
        room = self._info.max_model_len - longest
        max_tokens = self._max_tokens(request)
        if request.lowers_max_tokens and max_tokens is not None:
            max_tokens = min(max_tokens, room)
        sampling = self._sampling.read(request, max_tokens, longest)
        if request.min_tokens > (limit := sampling.max_tokens or room):
            raise invalid(
                f"'min_tokens' is {request.min_tokens}, but the answer can have at most {limit} tokens.", "min_tokens"
            )
        self._check_logprobs(encoded, request.n, sampling.max_tokens)
        format = replace(
            encoded.format,
            prompt_lengths=[len(prompt) for prompt in encoded.prompts],
            n=request.n,
            token_texts=None if encoded.logprobs is None else self._token_texts,
            shows_special=not request.skip_special_tokens,
            prompt_only=max_tokens == 0,
        )
        sampling = replace(
            sampling,
            grammar=encoded.grammar,
            grammar_param=encoded.grammar_param,
            logprobs=encoded.logprobs,
            prompt_logprobs=bool(format.echo_first_tokens),
            predicted=encoded.predicted,
            thought_limit=encoded.thought_limit,
            skip_special_tokens=sampling.skip_special_tokens and not encoded.special_markers,
        )
        return self._parsed(request, encoded.prompts, format, sampling)

    def _check_request(self, request: RequestT) -> None:
        """Check what does not depend on the prompts. Raises APIError, UnknownPolicyError."""
        self.check_model(request.model)
        if request.n > self._max_n:
            raise invalid(f"'n' must be at most {self._max_n}.", "n")
        if request.priority and not self._priorities:
            raise invalid("'priority' requires a server with --scheduling-policy priority.", "priority")
        self._info.check_policy(request.draft_policy)
        if request.stream_options not in (None, StreamOptions()) and not request.stream:
            raise invalid("'stream_options' is only allowed with 'stream': true.", "stream_options")

    def _parsed(
        self,
        request: RequestT,
        prompts: tuple[tuple[int, ...], ...],
        format: ReplyFormat,
        sampling: SamplingParams,
    ) -> ParsedRequest:
        options = request.stream_options or StreamOptions()
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
            prompts=prompts,
            sampling=sampling,
            seeded=request.seed not in RANDOM_SEED,
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
        self.prepare(body)
        self._check(body)
        return validate(self.request_type, body)

    def prepare(self, body: dict[str, Any]) -> None:
        """Turn 3.0 into 3 where a field is an integer, as other servers do. Raises APIError for too many biases."""
        if isinstance(biases := body.get("logit_bias"), dict) and len(biases) > MAX_BIASES:
            raise invalid(f"'logit_bias' must have at most {MAX_BIASES} entries.", "logit_bias")
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
            raise ContextLengthError(limit, characters=characters, param=self.endpoint.prompt_param)

    def _check_length(self, prompt_tokens: int, max_tokens: int | None) -> None:
        """Raise APIError or ContextLengthError for a prompt without tokens or too long for the requested answer."""
        limit, param = self._info.max_model_len, self.endpoint.prompt_param
        if prompt_tokens == 0:
            raise invalid("The prompt is empty.", param)
        if prompt_tokens + (max_tokens or 1) > limit:
            raise ContextLengthError(limit, prompt_tokens, max_tokens, param=param)


def check_token_ids(ids: Sequence[int], vocabulary: int, param: str) -> None:
    """Raise APIError naming the first of a list's items that is not a token id."""
    if ids and not (min(ids) >= 0 and max(ids) < vocabulary):
        bad = next(position for position, token in enumerate(ids) if not 0 <= token < vocabulary)
        raise invalid(f"Token ids must be between 0 and {vocabulary - 1}.", f"{param}[{bad}]")
