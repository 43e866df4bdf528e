"""/tokenize and /detokenize, in vLLM's shapes."""

from __future__ import annotations

from collections.abc import Callable

from engine.api import PromptTokenizer
from engine.types import EngineInfo
from server.http.errors import invalid
from server.openai.chat import ChatTranslator, opens_turn
from server.openai.replies.logprobs import TokenNames
from server.openai.replies.schemas import Detokenized, Tokenized
from server.openai.requests.bodies import read_object, validated
from server.openai.requests.schemas import DetokenizeRequest, TokenizeRequest


class Tokens:
    """What the two endpoints answer. Synchronous and thread-safe: long bodies run it in a thread."""

    def __init__(
        self, info: EngineInfo, tokenizer: PromptTokenizer, chat: ChatTranslator, check_model: Callable[[str], None]
    ) -> None:
        self._info, self._tokenizer, self._chat, self._check_model = info, tokenizer, chat, check_model
        self._names = TokenNames(tokenizer)

    def tokenize(self, raw: bytes) -> Tokenized:
        """Raises APIError, RequestError."""
        body = read_object(raw)
        if "chat_template" in body:
            raise invalid("'chat_template' is not supported yet.", "chat_template")
        request = validated(TokenizeRequest, body)
        self._check_model(request.model)
        if (request.prompt is None) == (request.messages is None):
            raise invalid("Either 'prompt' or 'messages' is tokenised.", "prompt")
        open_turn = opens_turn(request)
        if request.messages is not None:
            text = self._chat.render(
                request.messages,
                request.tools,
                request.chat_template_kwargs,
                open_turn=open_turn,
                go_on=request.continue_final_message,
            )
            special = False if request.add_special_tokens is None else request.add_special_tokens
        else:
            text = request.prompt or ""
            special = True if request.add_special_tokens is None else request.add_special_tokens
        self._chat.check_characters(len(text))
        tokens = self._tokenizer.encode(text, add_special_tokens=special)
        names = [self._names.text(token) for token in tokens] if request.return_token_strs else None
        return Tokenized(count=len(tokens), max_model_len=self._info.max_model_len, tokens=tokens, token_strs=names)

    def detokenize(self, raw: bytes) -> Detokenized:
        """Raises APIError."""
        request = validated(DetokenizeRequest, read_object(raw))
        self._check_model(request.model)
        for index, token in enumerate(request.tokens):
            if token >= self._info.vocab_size:
                raise invalid(f"Token ids lie between 0 and {self._info.vocab_size - 1}.", f"tokens[{index}]")
        return Detokenized(prompt=self._tokenizer.decode(request.tokens))
