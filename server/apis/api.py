"""What all APIs have in common: bodies in, requests with the writers of their replies out."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, TypeVar

from server.answer.writer import ReplyWriter
from server.apis.fields import FieldCheck
from server.apis.logprobs import TokenTexts
from server.edge.errors import invalid
from server.edge.reading import read_object, validate, whole
from server.options import MAX_BIASES, Options
from server.prepare import ParsedRequest, Preparer
from server.prompt import ChatPrompts, Encoder

log = logging.getLogger("knapserve.server")

RequestT = TypeVar("RequestT", bound=Options)

_MAX_WARNED = 100  # names of fields come from clients, so their number must have a limit


@dataclass(frozen=True, slots=True)
class Model:
    """What the APIs know of the served model."""

    preparer: Preparer
    encoder: Encoder
    texts: TokenTexts
    chats: ChatPrompts
    fingerprint: str  # digest of what determines the text beside the request


class Api(ABC):
    """One API. `parse` is thread-safe, and long bodies run it in a thread."""

    body: type[Options]
    fields: FieldCheck
    prompt_path: ClassVar[str]  # field of the body with the prompt
    renders: ClassVar[bool] = True  # the prompt is a chat

    def __init__(self, model: Model) -> None:
        self.model = model
        self._warned: set[str] = set()  # unknown fields that the log has named

    def size(self, raw: bytes) -> int:
        """Return the bytes of a body with all that it may refer to."""
        return len(raw)

    @abstractmethod
    def parse(self, raw: bytes, key: str) -> tuple[ParsedRequest, ReplyWriter]:
        """Validate, render and tokenise a request. Raises APIError or RequestError naming the invalid field.

        `key` stands for the client's API key.
        """

    def read(self, kind: type[RequestT], raw: bytes) -> RequestT:
        """Return a validated body, whose null fields count as absent. Raises APIError.

        3.0 counts as 3 where a field is annotated as `int` or `int | None`, as with other servers. In parts of a body,
        `server.edge.reading.Whole` does the same.
        """
        body = read_object(raw)
        for name in self.fields.unknown(body):
            if name not in self._warned and len(self._warned) < _MAX_WARNED:
                self._warned.add(name)
                log.warning("ignoring the unknown request field %.80r", name)
        if isinstance(biases := body.get("logit_bias"), dict) and len(biases) > MAX_BIASES:
            raise invalid(f"'logit_bias' must have at most {MAX_BIASES} entries.", "logit_bias")
        for name in _integers(kind):
            if name in body:
                body[name] = whole(body[name])
        return validate(kind, body)


class CountingApi(Api):
    """An API with an endpoint that counts the tokens of prompts."""

    @abstractmethod
    def count_tokens(self, raw: bytes, key: str) -> int:
        """Return the number of tokens of a request's prompt. Raises APIError, RequestError."""


@cache
def _integers(kind: type[Options]) -> Sequence[str]:
    """Return the names of the fields of a body that are integers."""
    return [name for name, field in kind.model_fields.items() if field.annotation in (int, int | None)]
