"""Request bodies to engine requests. `prepare` is synchronous and thread-safe: long bodies run it in a thread."""

from __future__ import annotations

import secrets
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import pydantic_core
from pydantic import ValidationError

from engine.errors import UnknownPolicyError
from engine.seam import PromptTokenizer
from engine.seeds import mix64
from engine.types import EngineInfo, GenerateRequest, SamplingParams
from server.errors import APIError, context_length, invalid
from server.parameters import ParameterCheck
from server.replies import CHAT, COMPLETION, Dialect
from server.schemas import ChatCompletionRequest, CompletionRequest, GenerationRequest, Message, TextPart

MAX_PROMPTS = 2048
DEFAULT_COMPLETION_TOKENS = 16

_MASK63 = 2**63 - 1

Kind = TypeVar("Kind", bound=GenerationRequest)


def choice_seed(seed: int, choice: int) -> int:
    """Seed of choice `choice` of a request, in [0, 2**63).

    Choice 0 takes the seed itself (negative ones by their low 63 bits), so that n=1 and n>1 begin alike. The others
    take the outputs of splitmix64 started at the seed, far apart even where seeds or choices are neighbours.
    """
    if choice == 0:
        return seed & _MASK63
    return mix64(seed + (choice - 1) * 0x9E3779B97F4A7C15) & _MASK63


@dataclass(frozen=True, slots=True)
class Job:
    """A validated request: everything the rest of the server needs to know of it."""

    id: str
    created: int  # seconds since the epoch
    model: str
    dialect: Dialect
    prompts: tuple[tuple[int, ...], ...]
    n: int
    sampling: SamplingParams
    draft_policy: str | None
    stream: bool
    include_usage: bool

    @property
    def choices(self) -> int:
        return len(self.prompts) * self.n

    def requests(self) -> Iterator[GenerateRequest]:
        """One engine request per choice, choice i of prompt p at index p*n + i. Lazy: a full queue ends it early."""
        for index in range(self.choices):
            prompt, choice = divmod(index, self.n)
            yield GenerateRequest(
                id=f"{self.id}-{index}",
                prompt=self.prompts[prompt],
                sampling=replace(self.sampling, seed=choice_seed(self.sampling.seed, choice)),
                draft_policy=self.draft_policy,
            )


class Translator(ABC, Generic[Kind]):
    """Turns bodies of one endpoint into jobs; what is the same for every request is worked out once."""

    kind: type[Kind]
    dialect: Dialect
    bare_prompts: bool  # prompts still need what the model expects around them; a chat template has put it there

    def __init__(self, info: EngineInfo, tokenizer: PromptTokenizer, names: Sequence[str], max_n: int) -> None:
        self._info = info
        self._defaults = dict(info.sampling_defaults)
        self._tokenizer = tokenizer
        self._names = tuple(names)
        self._max_n = max_n
        self._check = ParameterCheck(self.kind)

    def prepare(self, raw: bytes) -> Job:
        """Parse, validate, render and tokenise. Raises APIError or RequestError naming the field at fault."""
        request = self._parse(raw)
        info = self._info
        if request.model and request.model not in self._names:
            raise APIError(404, f"The model '{request.model}' does not exist.", param="model", code="model_not_found")
        if request.n > self._max_n:
            raise invalid(f"At most {self._max_n} choices are allowed.", "n")
        if request.draft_policy is not None and request.draft_policy not in info.policies:
            raise UnknownPolicyError(request.draft_policy, info.policies)
        if request.stream_options is not None and not request.stream:
            raise invalid("'stream_options' is only allowed with 'stream': true.", "stream_options")
        prompts = self._prompts(request)
        max_tokens = self._max_tokens(request)
        for prompt in prompts:
            self._check_length(len(prompt), max_tokens)
        stop = request.stop
        return Job(
            id=f"{self.dialect.id_prefix}-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=request.model or self._names[0],
            dialect=self.dialect,
            prompts=prompts,
            n=request.n,
            sampling=SamplingParams(
                max_tokens=self._limited(max_tokens, max(map(len, prompts))),
                temperature=self._or_default(request.temperature, "temperature", 1.0),
                top_p=self._or_default(request.top_p, "top_p", 1.0),
                top_k=int(self._or_default(request.top_k, "top_k", -1)),
                seed=secrets.randbits(63) if request.seed is None else request.seed,
                stop=() if stop is None else (stop,) if isinstance(stop, str) else tuple(stop),
                ignore_eos=request.ignore_eos,
            ),
            draft_policy=request.draft_policy,
            stream=request.stream,
            include_usage=request.stream_options is not None and request.stream_options.include_usage,
        )

    def _or_default(self, asked: float | None, name: str, neutral: float) -> float:
        """What the request says, else the checkpoint's default, else the neutral value."""
        return self._defaults.get(name, neutral) if asked is None else asked

    def _limited(self, asked: int | None, prompt_tokens: int) -> int | None:
        """No more tokens than the checkpoint's own limit, if it has one; that limit alone never refuses a prompt."""
        limit = self._defaults.get("max_tokens")
        if limit is None:
            return asked
        return min(int(limit), self._info.max_model_len - prompt_tokens if asked is None else asked)

    @abstractmethod
    def _prompts(self, request: Kind) -> tuple[tuple[int, ...], ...]: ...

    @abstractmethod
    def _max_tokens(self, request: Kind) -> int | None: ...

    def _parse(self, raw: bytes) -> Kind:
        try:
            body = pydantic_core.from_json(raw, allow_inf_nan=False)
        except ValueError as error:
            raise invalid(f"The body is not valid JSON: {error}") from None
        if not isinstance(body, dict):
            raise invalid("The body must be a JSON object.")
        body = {name: value for name, value in body.items() if value is not None}
        if isinstance(options := body.get("stream_options"), dict):
            body["stream_options"] = {name: value for name, value in options.items() if value is not None}
        self._check(body)
        if body.get("max_tokens") == 0 and type(body["max_tokens"]) is int and self.kind is CompletionRequest:
            raise invalid("'max_tokens' 0 is not supported yet.", "max_tokens")
        try:
            return self.kind.model_validate(body)
        except ValidationError as error:
            raise _from_validation(error, body) from None

    def _encode(self, text: str) -> tuple[int, ...]:
        """Token ids of a text, refused unseen if it needs more than `longest_token` characters a token."""
        self._check_characters(len(text))
        return tuple(self._tokenizer.encode(text, add_special_tokens=self.bare_prompts))

    def _check_characters(self, characters: int) -> None:
        limit = self._info.max_model_len
        if characters > limit * self._tokenizer.longest_token:
            asked = f"your prompt has {characters} characters, more than {limit} tokens can hold"
            raise context_length(limit, asked, self.dialect.prompt_param)

    def _check_length(self, prompt_tokens: int, max_tokens: int | None) -> None:
        limit, param = self._info.max_model_len, self.dialect.prompt_param
        if prompt_tokens == 0:
            raise invalid("The prompt is empty.", param)
        if prompt_tokens + (max_tokens or 1) > limit:
            rest = "leaving no room for a completion" if max_tokens is None else f"{max_tokens} in the completion"
            asked = f"you requested {prompt_tokens + (max_tokens or 0)} tokens ({prompt_tokens} in the {param}, {rest})"
            raise context_length(limit, asked, param)


class ChatTranslator(Translator[ChatCompletionRequest]):
    kind = ChatCompletionRequest
    dialect = CHAT
    bare_prompts = False

    def _prompts(self, request: ChatCompletionRequest) -> tuple[tuple[int, ...], ...]:
        messages = [_template_message(index, message) for index, message in enumerate(request.messages)]
        self._check_characters(sum(len(message["content"]) for message in messages))
        return (self._encode(self._tokenizer.render_chat(messages)),)

    def _max_tokens(self, request: ChatCompletionRequest) -> int | None:
        return request.max_completion_tokens or request.max_tokens


class CompletionTranslator(Translator[CompletionRequest]):
    kind = CompletionRequest
    dialect = COMPLETION
    bare_prompts = True

    def _prompts(self, request: CompletionRequest) -> tuple[tuple[int, ...], ...]:
        value = request.prompt
        if isinstance(value, list) and value and not _is_ids(value):
            if len(value) > MAX_PROMPTS:
                raise invalid(f"At most {MAX_PROMPTS} prompts are allowed in one request.", "prompt")
            return tuple(self._prompt(item, f"prompt[{index}]") for index, item in enumerate(value))
        return (self._prompt(value, "prompt"),)

    def _max_tokens(self, request: CompletionRequest) -> int | None:
        return request.max_tokens or DEFAULT_COMPLETION_TOKENS

    def _prompt(self, value: Any, param: str) -> tuple[int, ...]:
        """Token ids of one prompt, given as text or as ids."""
        if isinstance(value, str):
            ids = self._encode(value)
        elif isinstance(value, list) and _is_ids(value):
            ids = tuple(value)
            vocabulary = self._info.vocab_size
            if ids and not (min(ids) >= 0 and max(ids) < vocabulary):
                bad = next(position for position, token in enumerate(ids) if not 0 <= token < vocabulary)
                raise invalid(f"Token ids lie between 0 and {vocabulary - 1}.", f"{param}[{bad}]")
        else:
            raise invalid("A prompt is a string or a list of token ids, or a list of one or the other.", param)
        if not value or not ids:  # an empty text may still yield a beginning-of-sequence token
            raise invalid("The prompt is empty.", param)
        return ids


def _is_ids(value: list[Any]) -> bool:
    """All integers; true is none. The empty list counts as one."""
    return all(type(item) is int for item in value)


def _template_message(index: int, message: Message) -> dict[str, Any]:
    """A message as chat templates expect it: text content, and further fields only where they say something."""
    content = message.content
    if isinstance(content, list):
        content = "\n".join(part.text for part in content if isinstance(part, TextPart))
    extra = {name: value for name, value in (message.model_extra or {}).items() if value is not None}
    if content is None:
        if message.role != "assistant" or not extra.get("tool_calls"):
            raise invalid("A message needs content.", f"messages[{index}].content")
        content = ""
    return {"role": message.role, "content": content, **extra}


def _from_validation(error: ValidationError, body: dict[str, Any]) -> APIError:
    """The 400 for pydantic's finding that lies deepest in the body: of a union's complaints, the most specific."""
    found = [(_path(detail["loc"], body), detail) for detail in error.errors(include_url=False, include_input=False)]
    path, detail = max(found, key=lambda item: len(item[0]))
    param = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    if detail["type"] == "missing":
        return invalid(f"Missing required parameter: '{param}'.", param)
    return invalid(f"Invalid value for '{param}': {detail['msg']}.", param)


def _path(location: tuple[int | str, ...], body: Any) -> list[int | str]:
    """The parts of an error's location that exist in the body; the others are names of union members."""
    path: list[int | str] = []
    node = body
    for depth, part in enumerate(location):
        if isinstance(node, dict) and (part in node or depth == len(location) - 1):
            path.append(part)
            node = node.get(part)
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            path.append(part)
            node = node[part]
    return path
