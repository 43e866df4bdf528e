"""The endpoints /tokenize and /detokenize, in vLLM's formats."""

from engine.api import PromptTokenizer
from engine.types import EngineInfo
from server.http.errors import invalid
from server.openai.chat import ChatTranslator, check_turn
from server.openai.replies.logprobs import TokenTexts
from server.openai.replies.schemas import Detokenized, Tokenized
from server.openai.requests.bodies import read_object, validate
from server.openai.requests.schemas import DetokenizeRequest, TokenizeRequest
from server.openai.requests.translate import check_token_ids


class TokenizeService:
    """Answer both endpoints. Thread-safe, as long bodies run it in a thread."""

    def __init__(self, info: EngineInfo, tokenizer: PromptTokenizer, chat: ChatTranslator) -> None:
        self._info, self._tokenizer, self._chat = info, tokenizer, chat
        self._texts = TokenTexts(tokenizer)

    def tokenize(self, raw: bytes) -> Tokenized:
        """Tokenise a prompt or a rendered chat. Raises APIError, RequestError."""
        body = read_object(raw)
        if "chat_template" in body:
            raise invalid("'chat_template' is not supported; the checkpoint's template is used.", "chat_template")
        request = validate(TokenizeRequest, body)
        self._chat.check_model(request.model)
        if (request.prompt is None) == (request.messages is None):
            raise invalid("Exactly one of 'prompt' and 'messages' is required.", "prompt")
        check_turn(request)
        if request.messages is not None:
            text = self._chat.render(request, request.messages, request.tools)
        else:
            text = request.prompt or ""
        special = request.messages is None if request.add_special_tokens is None else request.add_special_tokens
        self._chat.check_characters(len(text))
        literal = self._chat.literal and request.messages is not None
        tokens = self._tokenizer.encode(text, add_special_tokens=special, literal=literal)
        names = [self._texts.text(token) for token in tokens] if request.return_token_strs else None
        return Tokenized(count=len(tokens), max_model_len=self._info.max_model_len, tokens=tokens, token_strs=names)

    def detokenize(self, raw: bytes) -> Detokenized:
        """Decode token ids. Raises APIError."""
        request = validate(DetokenizeRequest, read_object(raw))
        self._chat.check_model(request.model)
        check_token_ids(request.tokens, self._info.vocab_size, "tokens")
        return Detokenized(prompt=self._tokenizer.decode(request.tokens))
