"""Request bodies to engine requests. `prepare` is synchronous and thread-safe: long bodies run it in a thread."""

from __future__ import annotations

import secrets
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from engine.api import PromptTokenizer
from engine.errors import ContextLengthError, UnknownPolicyError
from engine.sampling.seeds import mix64
from engine.types import EngineInfo, GenerateRequest, SamplingParams
from server.http.errors import invalid, unknown_model
from server.openai.replies.build import COMPLETION, Dialect, Form
from server.openai.replies.logprobs import TokenNames
from server.openai.requests.bodies import read_object, validated
from server.openai.requests.parameters import ParameterCheck
from server.openai.requests.schemas import MAX_BIASES, MAX_PROMPTS, CompletionRequest, GenerationRequest
from server.openai.requests.structured import answer_schema, grammar_of

DEFAULT_COMPLETION_TOKENS = 16
_MAX_LOGPROBS = 1 << 22  # of a reply
_ANY_SEED = (None, -1)  # -1 as in vLLM and llama.cpp
_GREEDY_BELOW = 1e-5  # temperature: less makes logits too large to count with

_DIGITS = 20  # fewer have token ids
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
    form: Form
    prompts: tuple[tuple[int, ...], ...]
    sampling: SamplingParams
    seeded: bool  # by the client: then each prompt's choices are drawn alike
    draft_policy: str | None
    stream: bool
    include_usage: bool

    @property
    def dialect(self) -> Dialect:
        return self.form.dialect

    @property
    def n(self) -> int:
        return self.form.n

    @property
    def choices(self) -> int:
        return self.form.choices

    def requests(self) -> Iterator[GenerateRequest]:
        """One engine request per choice, choice i of prompt p at index p*n + i. Lazy: a full queue ends it early."""
        for index in range(self.choices):
            prompt, choice = divmod(index, self.n)
            seed = choice_seed(self.sampling.seed, choice if self.seeded else index)
            yield GenerateRequest(
                id=f"{self.id}-{index}",
                prompt=self.prompts[prompt],
                sampling=replace(self.sampling, seed=seed),
                draft_policy=self.draft_policy,
            )


@dataclass(frozen=True, slots=True)
class Prepared:
    """The prompts of a request, and what depends on its endpoint."""

    prompts: tuple[tuple[int, ...], ...]
    form: Form  # without what is the same everywhere
    logprobs: int | None = None  # alternatives to show; None: no log-probabilities
    grammar: str | None = None
    grammar_param: str = "response_format"
    predicted: tuple[int, ...] = ()
    special_markers: bool = False  # tool calls are marked by special tokens, which the text has to show


class Translator(ABC, Generic[Kind]):
    """Turns bodies of one endpoint into jobs; what is the same for every request is worked out once."""

    kind: type[Kind]
    dialect: Dialect
    bare_prompts: bool  # prompts still need what the model expects around them; a chat template has put it there

    def __init__(
        self,
        info: EngineInfo,
        tokenizer: PromptTokenizer,
        names: Sequence[str],
        max_n: int,
        *,
        tool_format: str = "",
        thinks: bool = False,
    ) -> None:
        """`tool_format`: how tool calls look in this model's text; "": they are not told from it."""
        self._info = info
        self._defaults = dict(info.sampling_defaults)
        self._tokenizer = tokenizer
        self._token_names = TokenNames(tokenizer)
        self._names = tuple(names)
        self._max_n = max_n
        self._tool_format, self._thinks = tool_format, thinks
        self._check = ParameterCheck(self.kind)

    def prepare(self, raw: bytes) -> Job:
        """Parse, validate, render and tokenise. Raises APIError or RequestError naming the field at fault."""
        request = self._parse(raw)
        info = self._info
        self.check_model(request.model)
        if request.n > self._max_n:
            raise invalid(f"At most {self._max_n} choices are allowed.", "n")
        if request.draft_policy is not None and request.draft_policy not in info.policies:
            raise UnknownPolicyError(request.draft_policy, info.policies)
        if request.stream_options is not None and not request.stream:
            raise invalid("'stream_options' is only allowed with 'stream': true.", "stream_options")
        prepared = self._prompts(request)
        max_tokens = self._max_tokens(request)
        for prompt in prepared.prompts:
            self._check_length(len(prompt), max_tokens)
        form = replace(
            prepared.form,
            prompt_lengths=[len(prompt) for prompt in prepared.prompts],
            n=request.n,
            names=None if prepared.logprobs is None else self._token_names,
            special=not request.skip_special_tokens,
            mute=max_tokens == 0,
        )
        sampling = self._sampling(request, max_tokens, max(map(len, prepared.prompts)))
        most = sampling.max_tokens or info.max_model_len - max(map(len, prepared.prompts))
        if request.min_tokens > most:
            raise invalid(f"'min_tokens' is {request.min_tokens}; an answer has at most {most} tokens.", "min_tokens")
        self._check_logprobs(prepared, request.n, sampling.max_tokens)
        return Job(
            id=f"{self.dialect.id_prefix}-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=request.model or self._names[0],
            form=form,
            prompts=prepared.prompts,
            sampling=replace(
                sampling,
                grammar=prepared.grammar,
                grammar_param=prepared.grammar_param,
                logprobs=prepared.logprobs,
                prompt_logprobs=bool(form.scored_from),
                predicted=prepared.predicted,
                skip_special_tokens=sampling.skip_special_tokens and not prepared.special_markers,
            ),
            seeded=request.seed not in _ANY_SEED,
            draft_policy=request.draft_policy,
            stream=request.stream,
            include_usage=request.stream_options is not None and request.stream_options.include_usage,
        )

    def _check_logprobs(self, prepared: Prepared, choices: int, max_tokens: int | None) -> None:
        """All that a reply says is in memory at once, a few hundred bytes for each log-probability."""
        if prepared.logprobs is None:
            return
        prompts = prepared.prompts
        longest = self._info.max_model_len - min(map(len, prompts)) if max_tokens is None else max_tokens
        echoed = sum(map(len, prompts)) if prepared.form.scored_from else 0
        count = choices * (len(prompts) * longest + echoed) * (1 + prepared.logprobs)
        if count > _MAX_LOGPROBS:
            raise invalid(
                f"These could be {count} log-probabilities; {_MAX_LOGPROBS} are allowed: lower 'n' or 'max_tokens'.",
                "logprobs",
            )

    def check_model(self, name: str) -> None:
        """Raises APIError."""
        if name and name not in self._names:
            raise unknown_model(name, self._names)

    def _sampling(self, request: Kind, max_tokens: int | None, longest: int) -> SamplingParams:
        """How the answers to prompts of at most `longest` tokens are drawn."""
        stop = request.stop
        temperature = self._or_default(request.temperature, "temperature", 1.0)
        return SamplingParams(
            max_tokens=self._limited(1 if max_tokens == 0 else max_tokens, longest),
            temperature=0.0 if temperature < _GREEDY_BELOW else temperature,
            top_p=self._or_default(request.top_p, "top_p", 1.0),
            top_k=int(self._or_default(request.top_k, "top_k", -1)),
            min_p=self._or_default(request.min_p, "min_p", 0.0),
            seed=secrets.randbits(63) if request.seed in _ANY_SEED else request.seed,
            stop=() if stop is None else (stop,) if isinstance(stop, str) else tuple(stop),
            stop_token_ids=self._known_ids(request.stop_token_ids, "stop_token_ids"),
            ignore_eos=request.ignore_eos,
            min_tokens=request.min_tokens,
            presence_penalty=request.presence_penalty,
            frequency_penalty=request.frequency_penalty,
            repetition_penalty=self._or_default(request.repetition_penalty, "repetition_penalty", 1.0),
            logit_bias=self._bias(request.logit_bias),
            skip_special_tokens=request.skip_special_tokens,
            include_stop=request.include_stop_str_in_output,
            trace=request.return_rounds,
        )

    def _known_ids(self, tokens: Sequence[int], param: str) -> tuple[int, ...]:
        vocabulary = self._info.vocab_size
        if tokens and max(tokens) >= vocabulary:
            raise invalid(f"Token ids lie between 0 and {vocabulary - 1}.", param)
        return tuple(tokens)

    def _bias(self, biases: Mapping[str, float]) -> tuple[tuple[int, float], ...]:
        if not all(token.isascii() and token.isdecimal() and len(token) < _DIGITS for token in biases):
            raise invalid("The keys of 'logit_bias' are token ids.", "logit_bias")
        tokens = [int(token) for token in biases]
        if len(set(tokens)) < len(tokens):
            raise invalid("'logit_bias' names a token twice.", "logit_bias")
        return tuple(zip(self._known_ids(tokens, "logit_bias"), biases.values(), strict=True))

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
    def _prompts(self, request: Kind) -> Prepared: ...

    @abstractmethod
    def _max_tokens(self, request: Kind) -> int | None: ...

    def _parse(self, raw: bytes) -> Kind:
        body = read_object(raw)
        if isinstance(options := body.get("stream_options"), dict):
            body["stream_options"] = {name: value for name, value in options.items() if value is not None}
        if isinstance(biases := body.get("logit_bias"), dict) and len(biases) > MAX_BIASES:
            raise invalid(f"'logit_bias' has at most {MAX_BIASES} entries.", "logit_bias")
        self._check(body)
        return validated(self.kind, body)

    def _encode(self, text: str) -> tuple[int, ...]:
        """Token ids of a text, refused unseen if it needs more than `longest_token` characters a token."""
        self.check_characters(len(text))
        return tuple(self._tokenizer.encode(text, add_special_tokens=self.bare_prompts))

    def check_characters(self, characters: int) -> None:
        limit = self._info.max_model_len
        if characters > limit * self._tokenizer.longest_token:
            asked = f"your prompt has {characters} characters, more than {limit} tokens can hold"
            raise ContextLengthError(limit, asked, param=self.dialect.prompt_param)

    def _check_length(self, prompt_tokens: int, max_tokens: int | None) -> None:
        limit, param = self._info.max_model_len, self.dialect.prompt_param
        if prompt_tokens == 0:
            raise invalid("The prompt is empty.", param)
        if prompt_tokens + (max_tokens or 1) > limit:
            rest = "leaving no room for a completion" if max_tokens is None else f"{max_tokens} in the completion"
            asked = f"you requested {prompt_tokens + (max_tokens or 0)} tokens ({prompt_tokens} in the {param}, {rest})"
            raise ContextLengthError(limit, asked, param=param)


class CompletionTranslator(Translator[CompletionRequest]):
    kind = CompletionRequest
    dialect = COMPLETION
    bare_prompts = True

    def _prompts(self, request: CompletionRequest) -> Prepared:
        value = request.prompt
        if isinstance(value, list) and value and not _is_ids(value):
            if len(value) > MAX_PROMPTS:
                raise invalid(f"At most {MAX_PROMPTS} prompts are allowed in one request.", "prompt")
            values, names = value, [f"prompt[{index}]" for index in range(len(value))]
        else:
            values, names = [value], ["prompt"]
        prompts = tuple(self._prompt(item, name) for item, name in zip(values, names, strict=True))
        for prompt in prompts:
            self._check_length(len(prompt), self._max_tokens(request))  # before ids become text
        echoes = [
            item if isinstance(item, str) else self._tokenizer.decode(item) for item in (values if request.echo else ())
        ]
        schema = answer_schema(request.response_format)
        grammar = grammar_of(schema, None, thinking=False, optional=False, param="response_format")
        scored = tuple(prompt[0] for prompt in prompts) if request.echo and request.logprobs is not None else ()
        form = Form(COMPLETION, (), echoes=echoes, scored_from=scored)
        return Prepared(prompts, form, logprobs=request.logprobs, grammar=grammar)

    def _max_tokens(self, request: CompletionRequest) -> int | None:
        return DEFAULT_COMPLETION_TOKENS if request.max_tokens is None else request.max_tokens

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
