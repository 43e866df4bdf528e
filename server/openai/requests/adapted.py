"""Other APIs are translations: requests become chat requests, and the chunks of answers become the API's events."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from server.http.errors import APIError, invalid
from server.openai.chat import ChatTranslator
from server.openai.replies.build import Usage
from server.openai.replies.writer import ReplyWriter, encode_event
from server.openai.requests.bodies import read_object, validate
from server.openai.requests.parameters import (
    NO_VALUE,
    REFUSED_CHAT,
    Defaults,
    Inside,
    ParameterCheck,
    UnsupportedFieldError,
)
from server.openai.requests.schemas import MAX_MESSAGES, AdaptedChatRequest, ChatCompletionRequest, text_instead
from server.openai.requests.translate import ParsedRequest, RequestTranslator

Body = dict[str, Any]

_TOOL = re.compile(r"tools\[(?P<index>\d+)\]\.function\.(?P<field>.+)")

# Fields of chat completions that every API here takes too, under the same name.
SHARED = (
    *("model", "stream", "temperature", "top_p", "top_k", "min_p", "seed"),
    *("stop_token_ids", "min_tokens", "ignore_eos"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias", "chat_template_kwargs"),
    *("skip_special_tokens", "include_stop_str_in_output", "allowed_token_ids", "bad_words"),
    *("draft_policy", "priority", "cache_salt"),
)


class AdaptedTranslator(RequestTranslator):
    """Convert the bodies of an API to chat requests."""

    names: Mapping[str, str]  # fields of chat completions → their names in this API; inner fields before outer ones
    known: Iterable[str]  # fields beside SHARED
    described: Mapping[str, Body]  # JSON schemas of the most important ones
    ignored: Mapping[str, str]  # field → why it cannot change the text
    required: Iterable[str]
    chat_type: type[ChatCompletionRequest] = AdaptedChatRequest
    usage = Usage.AT_END  # which chunks of a stream have it
    parameters: str  # field of a tool with the schema of its arguments
    refused: Mapping[str, Defaults]
    refused_inside: Inside

    def __init__(self, chat: ChatTranslator) -> None:
        self._chat = chat
        self._check = self.parameter_check()

    def parse(self, raw: bytes) -> ParsedRequest:
        body = self.read(raw)
        try:
            parsed = self._chat.parse_request(self.chat_request(body))
        except APIError as error:
            raise self._located(error, body) from None
        writer = self.writer(body, parsed)
        sampling = replace(parsed.sampling, grammar_param=self._own_param(parsed.sampling.grammar_param, body))
        return replace(parsed, id=writer.id, usage=self.usage, sampling=sampling, writer=writer)

    def count_tokens(self, raw: bytes) -> int:
        """Return the number of tokens of a request's prompt. Raises APIError, RequestError."""
        return self._count_tokens(self.read(raw))

    def _count_tokens(self, body: Body) -> int:
        try:
            return self._chat.count_tokens(self.chat_request(body))
        except APIError as error:
            raise self._located(error, body) from None

    def read(self, raw: bytes) -> Body:
        """Return the object of a body, without its null fields. Raises APIError."""
        return read_object(raw)

    def chat_request(self, body: Body) -> ChatCompletionRequest:
        """Return the chat request that a body stands for. Raises APIError."""
        self._check(body)
        chat = {name: body[name] for name in SHARED if name in body} | self.to_chat(body)
        self._chat.prepare(chat)
        return validate(self.chat_type, chat)

    def _located(self, error: APIError, body: Body) -> APIError:
        """Return an error with this API's path of the invalid tool, in its message too."""
        param = error.param or ""
        return error.renamed(param, self._own_param(param, body))

    def _own_param(self, param: str, body: Body) -> str:
        """Return this API's path of a part of a tool, and the client's of an item."""
        found = _TOOL.match(param)
        if found is None:
            return param
        field = found["field"].removeprefix("parameters")
        own = found["field"] if field == found["field"] else self.parameters + field
        return f"{self.tool_paths(body)[int(found['index'])]}.{own}"

    def tool_paths(self, body: Body) -> Sequence[str]:
        """Return the paths of the tools in a body that are tools of the chat request, in their order."""
        return [f"tools[{index}]" for index in range(len(objects(body, "tools", "")))]

    @classmethod
    def parameter_check(cls) -> ParameterCheck:
        """Return a check of bodies. It refuses what chats refuse, and the names that fields have in chats only."""
        refused = {**_fields_of_chats(), **REFUSED_CHAT, **cls.refused}
        advice = {old: f": use '{new}'" for old, new in cls.names.items()}
        return ParameterCheck((*cls.known, *cls.ignored, *SHARED), refused, cls.refused_inside, advice)

    @classmethod
    def body_schema(cls) -> Body:
        """Return the JSON schema of a body for the OpenAPI document."""
        shared = ChatCompletionRequest.model_json_schema()["properties"]
        names = (*cls.known, *cls.ignored)
        fields: Body = {name: cls.described.get(name, {}) for name in names} | {name: shared[name] for name in SHARED}
        return {"type": "object", "required": [*cls.required], "properties": fields}

    @abstractmethod
    def to_chat(self, body: Body) -> Body:
        """Return a chat request's fields, but for SHARED. Raises APIError."""

    @abstractmethod
    def writer(self, body: Body, parsed: ParsedRequest) -> "EventWriter": ...

    def renamed(self, error: APIError) -> APIError:
        """Return an error with this API's name of the field, in its message too."""
        name = next((name for name in self.names if _is_within(error.param, name)), None)
        if name is None or error.param is None or isinstance(error, UnsupportedFieldError):
            return error
        return error.renamed(name, self.names[name])


@cache
def _fields_of_chats() -> Mapping[str, Defaults]:
    """Return the fields of chat requests and their defaults."""
    fields = ChatCompletionRequest.model_fields
    defaults = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    return {
        name: NO_VALUE if fields[name].is_required() or default is None else (default,)
        for name, default in defaults.items()
    }


def _is_within(param: str | None, name: str) -> bool:
    return param is not None and re.match(rf"{re.escape(name)}(?!\w)", param) is not None


class EventWriter(ReplyWriter):
    """A writer of named events, whose complete reply is what its events describe."""

    done = b""
    id: str

    @abstractmethod
    def events(self, chunk: Any) -> Iterable[tuple[str, Body]]:
        """Yield the names and objects of a chunk's events."""

    @abstractmethod
    def reply(self) -> Body:
        """Return the complete reply, after the last chunk."""

    def dump(self, body: Body) -> str:
        """Return an event or a reply as JSON in ASCII."""
        return encode_event(body)

    def frames(self, chunks: Iterable[Any]) -> bytes:
        return self.written(event for chunk in chunks for event in self.events(chunk))

    def written(self, events: Iterable[tuple[str, Body]]) -> bytes:
        """Return events as a stream has them."""
        return "".join([f"event: {name}\ndata: {self.dump(event)}\n\n" for name, event in events]).encode("ascii")

    def add(self, chunks: Iterable[Any]) -> None:
        for chunk in chunks:
            for _ in self.events(chunk):
                pass

    def encode(self) -> bytes:
        return self.dump(self.reply()).encode("ascii")


def event_frame(name: str, event: Body) -> bytes:
    return f"event: {name}\ndata: {encode_event(event)}\n\n".encode("ascii")


class Conversation:
    """The messages of a chat request, built from items that may be parts of one message."""

    def __init__(self) -> None:
        self.messages: list[Body] = []
        self._reasoning: list[str] = []  # before the next answer
        self._later: list[str] = []  # texts after the first call of the last message

    def say(self, role: str, content: str | list[Body]) -> None:
        """Add a message. The text of an answer after its calls is part of the same message."""
        if role != "assistant":
            self.end_reasoning()
        elif self.messages and self.messages[-1].get("tool_calls") and not self._reasoning:
            self._later.append(str(content))
            return
        self._add({"role": role, "content": content, **self._thoughts()})

    def reason(self, text: str) -> None:
        """Add reasoning, which belongs to the next answer."""
        if text:
            self._reasoning.append(text)

    def call(self, id: str, name: str, arguments: str) -> None:
        """Add a tool call to the last message, if that is an answer, else to a new one."""
        call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        if self._reasoning or not self.messages or self.messages[-1]["role"] != "assistant":
            self._add({"role": "assistant", "content": None, "tool_calls": [], **self._thoughts()})
        self.messages[-1].setdefault("tool_calls", []).append(call)

    def result(self, id: str, content: str) -> None:
        """Add the result of a tool call."""
        self.end_reasoning()
        self._add({"role": "tool", "tool_call_id": id, "content": content})

    def end_reasoning(self) -> None:
        """Add an answer that ended within its reasoning, if there is one."""
        self._end_answer()
        if thoughts := self._thoughts():
            self._add({"role": "assistant", "content": "", **thoughts})

    def _end_answer(self) -> None:
        """Complete the text of the last message. Its parts are paragraphs, unless there is white space between them."""
        if not self._later:
            return
        parts: list[str] = []
        for text in filter(None, (self.messages[-1]["content"], *self._later)):
            apart = parts and not parts[-1][-1].isspace() and not text[0].isspace()
            parts += ["\n\n", text] if apart else [text]
        self.messages[-1]["content"], self._later = "".join(parts), []

    def _thoughts(self) -> Body:
        text, self._reasoning = "\n".join(self._reasoning), []
        return {"reasoning_content": text} if text else {}

    def _add(self, message: Body) -> None:
        self._end_answer()
        if len(self.messages) == MAX_MESSAGES:
            raise invalid(f"A conversation can have at most {MAX_MESSAGES} messages.", "messages")
        self.messages.append(message)


def text_of(content: object, kinds: Mapping[str, str], param: str) -> str:
    """Return a text, or the texts of a list of parts. `kinds`: types of parts → the field with the text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(f"'{param}' must be a string or a list.", param)
    return "\n".join(part_text(part, kinds, f"{param}[{index}]") for index, part in enumerate(content))


def result_text(content: object, kinds: Mapping[str, str], param: str) -> str:
    """Return the text of a tool's result, also for parts that are no text."""
    if content is None:
        return ""
    if not isinstance(content, list):
        return text_of(content, kinds, param)
    texts = []
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or (isinstance(kind, str) and kind in kinds):
            texts.append(part_text(part, kinds, f"{param}[{index}]"))
        else:
            texts.append(text_instead(part))
    return "\n".join(texts)


def part_text(part: object, kinds: Mapping[str, str], param: str) -> str:
    """Return the text of a part. Raises APIError for other types of content."""
    kind = part.get("type") if isinstance(part, dict) else None
    field = kinds.get(kind) if isinstance(kind, str) else None
    if not isinstance(part, dict) or field is None:
        raise invalid(f"'{param}' must have one of the types {', '.join(kinds)}: this model reads text only.", param)
    return string(part, field, param)


def string(part: Mapping[str, Any], field: str, param: str, default: str | None = None) -> str:
    """Return a field that must be a string. `param` is the path of the object. Raises APIError."""
    value = part.get(field, default)
    if not isinstance(value, str):
        raise _wrong(param, field, "a string")
    return value


def objects(part: Mapping[str, Any], field: str, param: str) -> Sequence[Body]:
    """Return a field that must be a list of objects; none if it is absent. Raises APIError."""
    value = part.get(field)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _wrong(param, field, "a list of objects")
    return value


def an_object(part: Mapping[str, Any], field: str, param: str) -> Body:
    """Return a field that must be an object; an empty one if it is absent or null. Raises APIError."""
    value = part.get(field)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _wrong(param, field, "an object")
    return value


def without_nulls(part: Body) -> Body:
    """Return an object without its null fields, which count as absent."""
    return {name: value for name, value in part.items() if value is not None}


def _wrong(param: str, field: str, expected: str) -> APIError:
    name = f"{param}.{field}".lstrip(".")
    return invalid(f"'{name}' must be {expected}.", name)
