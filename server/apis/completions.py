"""OpenAI's API before chats: prompts are texts or token ids, and there may be several."""

import uuid
from collections.abc import Sequence

from server.answer.logprobs import completion_logprobs
from server.answer.pieces import ReplyFormat
from server.answer.writer import ReplyWriter
from server.apis.api import Api
from server.apis.bodies import MAX_PROMPTS, CompletionRequest
from server.apis.chunks import ChunkWriter, TextChoices, envelope
from server.apis.fields import COMPLETION_FIELDS
from server.edge.errors import invalid
from server.edge.reading import read_object
from server.forms.answers import answer_of
from server.forms.grammar import grammar_of
from server.prepare import Ask, ParsedRequest
from server.prompt import Prompt, Tokens

_DEFAULT_TOKENS = 16  # OpenAI's


class CompletionApi(Api):
    body = CompletionRequest
    prompt_path = "prompt"
    fields = COMPLETION_FIELDS
    renders = False

    def parse(self, raw: bytes, key: str) -> tuple[ParsedRequest, ReplyWriter]:
        request = self.read(CompletionRequest, read_object(raw))
        self.model.preparer.check(request, request.n)
        request.check_stream()
        limits = (request.max_completion_tokens, request.max_tokens, _DEFAULT_TOKENS)
        limit = next(limit for limit in limits if limit is not None)
        ask = Ask(
            request,
            limit,
            stop=request.stop_strings,
            n=request.n,
            logprobs=request.logprobs,
            usage=request.usage,
            rounds=request.return_rounds,
        )
        prompt = self._prompt(request, limit)
        parsed = self.model.preparer.prepare(f"cmpl-{uuid.uuid4().hex}", prompt, ask, self.prompt_path)
        return parsed, ChunkWriter(envelope(parsed, self.model.fingerprint), TextChoices(), parsed.usage)

    def _prompt(self, request: CompletionRequest, max_tokens: int) -> Prompt:
        encoder = self.model.encoder
        value = request.prompt
        values, paths = [value], ["prompt"]
        if isinstance(value, list) and value and not _is_ids(value):
            if len(value) > MAX_PROMPTS:
                raise invalid(f"A request can have at most {MAX_PROMPTS} prompts.", "prompt")
            values, paths = value, [f"prompt[{index}]" for index in range(len(value))]
        prompts = tuple(self._tokens(item, path) for item, path in zip(values, paths, strict=True))
        for prompt in prompts:
            encoder.check_length(len(prompt), max_tokens, "prompt")  # before ids are decoded
        echoes: list[str] = []
        if request.echo:
            echoes = [item if isinstance(item, str) else encoder.tokenizer.decode(item) for item in values]
        scored = request.echo and request.logprobs is not None
        format = ReplyFormat(
            opens=False,
            logprobs=completion_logprobs,
            echoes=echoes,
            echo_first_tokens=tuple(prompt[0] for prompt in prompts) if scored else (),
        )
        answer = answer_of(request.form(), encoder.tokenizer)
        if answer is None:
            return Prompt(prompts, format)
        markers = encoder.has_special(answer.markers)
        return Prompt(prompts, format, grammar_of(answer, None), answer.param, special_markers=markers)

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


def _is_ids(value: Sequence[object]) -> bool:
    """Whether all items are integers, which booleans are not here."""
    return all(type(item) is int for item in value)
