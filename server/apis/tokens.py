"""The endpoints /tokenize and /detokenize, in vLLM's formats."""

from engine.types import EngineInfo
from server.apis.api import Model
from server.apis.bodies import DetokenizeRequest, TokenizeRequest
from server.apis.chat import conversation
from server.apis.replies import Detokenized, Tokenized
from server.edge.errors import invalid
from server.edge.reading import read_object, validate


class TokenizeService:
    """Answer both endpoints. Thread-safe, as long bodies run it in a thread."""

    def __init__(self, info: EngineInfo, model: Model) -> None:
        self._info, self._model = info, model

    def tokenize(self, raw: bytes) -> Tokenized:
        """Tokenise a prompt or a rendered chat. Raises APIError, RequestError."""
        body = read_object(raw)
        if "chat_template" in body:
            raise invalid("'chat_template' is not supported; the checkpoint's template is used.", "chat_template")
        request = validate(TokenizeRequest, body)
        self._model.preparer.check_model(request.model)
        if (request.prompt is None) == (request.messages is None):
            raise invalid("Exactly one of 'prompt' and 'messages' is required.", "prompt")
        special = request.messages is None if request.add_special_tokens is None else request.add_special_tokens
        if request.messages is None:
            found = self._model.encoder.tokens(request.prompt or "", "prompt", special=special)
        else:
            talk = conversation(request, request.messages)
            text = self._model.chats.render(talk, talk.tools)
            found = self._model.chats.encode(talk, text, special=special)
        names = [self._model.texts.text(token) for token in found] if request.return_token_strs else None
        return Tokenized(count=len(found), max_model_len=self._info.max_model_len, tokens=[*found], token_strs=names)

    def detokenize(self, raw: bytes) -> Detokenized:
        """Decode token ids. Raises APIError."""
        request = validate(DetokenizeRequest, read_object(raw))
        self._model.preparer.check_model(request.model)
        self._model.encoder.check_ids(request.tokens, "tokens")
        return Detokenized(prompt=self._model.encoder.tokenizer.decode(request.tokens))
