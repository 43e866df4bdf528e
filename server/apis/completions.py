"""OpenAI's API before chats: prompts are texts or token ids, and there may be several."""

from collections.abc import Mapping, Sequence
from typing import Any

from server.answer.pieces import ReplyFormat
from server.answer.writer import ReplyWriter
from server.apis.api import Api
from server.apis.bodies import MAX_PROMPTS, CompletionRequest
from server.apis.chunks import CompletionWriter
from server.apis.fields import COMPLETION_FIELDS
from server.edge.errors import invalid
from server.forms.answers import answer_of
from server.forms.grammar import grammar_of
from server.prepare import ParsedRequest
from server.prompt import Prompt, Tokens

_DEFAULT_TOKENS = 16  # OpenAI's


class CompletionApi(Api):
    body = CompletionRequest
    prompt_path = "prompt"
    fields = COMPLETION_FIELDS
    renders = False

    def parse(self, raw: bytes, key: str) -> tuple[ParsedRequest, ReplyWriter]:
        request = self.read(CompletionRequest, raw)
        self.model.preparer.check(request, request.n)
        limits = (request.max_completion_tokens, request.max_tokens, _DEFAULT_TOKENS)
        limit = next(limit for limit in limits if limit is not None)
        scored = request.echo and request.logprobs is not None
        ask = request.ask(limit, request.logprobs, prompt_logprobs=scored)
        prompts = _prompts(request.prompt)
        prompt = self._prompt(request, prompts, limit)
        parsed = self.model.preparer.prepare("cmpl-", prompt, ask)
        echoes: list[str] = []
        if request.echo:
            decode = self.model.encoder.tokenizer.decode
            echoes = [value if isinstance(value, str) else decode(value) for value in prompts.values()]
        return parsed, CompletionWriter(parsed, self.model, request.stream_options, echoes)

    def _prompt(self, request: CompletionRequest, prompts: Mapping[str, object], max_tokens: int) -> Prompt:
        """Return the prompts, given by their paths."""
        encoder = self.model.encoder
        tokens = tuple(self._tokens(value, path) for path, value in prompts.items())
        for prompt in tokens:
            encoder.check_length(len(prompt), max_tokens, "prompt")
        format = ReplyFormat(opens=request.echo)
        answer = answer_of(request.form(), encoder.tokenizer)
        if answer is None:
            return Prompt(tokens, format)
        markers = encoder.has_special(answer.markers)
        return Prompt(tokens, format, grammar_of(answer, None), answer.param, special_markers=markers)

    def _tokens(self, value: object, path: str) -> Tokens:
        """Return the token ids of one prompt, a text or a list of ids."""
        if isinstance(value, str):
            ids = self.model.encoder.tokens(value, "prompt", special=True)
        elif isinstance(value, list) and _is_ids(value):
            ids = tuple(value)
            self.model.encoder.check_ids(ids, path)
        else:
            raise invalid(
                "'prompt' must be a string, a list of token ids, or a list of strings or of lists of token ids.", path
            )
        if not value or not ids:  # an empty text may still yield BOS
            raise invalid("The prompt is empty.", path)
        return ids


def _prompts(value: Any) -> dict[str, Any]:
    """Return the prompts of a request by their paths. Raises APIError."""
    if not isinstance(value, list) or not value or _is_ids(value):
        return {"prompt": value}
    if len(value) > MAX_PROMPTS:
        raise invalid(f"A request can have at most {MAX_PROMPTS} prompts.", "prompt")
    return {f"prompt[{index}]": item for index, item in enumerate(value)}


def _is_ids(value: Sequence[object]) -> bool:
    """Whether all items are integers, which booleans are not here."""
    return all(type(item) is int for item in value)
