"""Convert bodies of completions, OpenAI's API before chats, to engine requests."""

from collections.abc import Sequence

from server.http.errors import invalid
from server.openai.replies.build import ReplyFormat
from server.openai.replies.endpoints import COMPLETION
from server.openai.requests.answers import answer_of
from server.openai.requests.schemas import MAX_PROMPTS, CompletionRequest
from server.openai.requests.structured import grammar_of
from server.openai.requests.translate import EncodedPrompts, Translator, check_token_ids

_DEFAULT_TOKENS = 16  # OpenAI's


class CompletionTranslator(Translator[CompletionRequest]):
    request_type = CompletionRequest
    endpoint = COMPLETION
    renders = False
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
        limits = (request.max_completion_tokens, request.max_tokens, _DEFAULT_TOKENS)
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


def _is_ids(value: Sequence[object]) -> bool:
    """Whether all items are integers, which booleans are not here."""
    return all(type(item) is int for item in value)
