"""OpenAI's Responses API: items, also those of stored responses, become turns of a conversation."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from server.answer.writer import Body, ReplyWriter
from server.apis.api import CountingApi, Model
from server.apis.bodies import stop_strings
from server.apis.fields import NO_VALUE, Defaults, FieldCheck, Inside, called_directly
from server.apis.parts import CUSTOM_INPUT, arguments_of, part_text, result_text, template_variables
from server.apis.responses import bodies
from server.apis.responses.events import OnEnd, ResponseWriter
from server.apis.responses.store import ResponseStore, StoredResponse
from server.apis.responses.tools import DOT, OfferedTool, Place, chosen, offered_tools
from server.conversation import Call, Conversation, Form, Turns
from server.edge.errors import APIError, invalid
from server.edge.reading import validate
from server.prepare import Ask, ParsedRequest

_LOGPROBS = "message.output_text.logprobs"
IGNORED = {
    "stream_options": "its padding hides lengths from those who listen in",
    "background_options": "belongs to 'background', which is refused",
    "image": "prompts have no images",
    "client_metadata": "a label for the client's records",
}
_PREVIOUS = "previous_response_id"
_REFUSED: dict[str, Defaults] = {
    **dict.fromkeys((_PREVIOUS, "conversation", "prompt", "context_management", "moderation"), NO_VALUE),
    **dict.fromkeys(("previous_response", "previous_input_messages", "multi_agent"), NO_VALUE),
    "enable_response_messages": (False,),
    "background": (False,),
    "truncation": ("disabled",),
    "access_programs": ({"cyber": "standard"},),
}
_REFUSED_OF_TOOLS: dict[str, Defaults] = {"async": (False,), "allowed_callers": called_directly}
_REFUSED_INSIDE: Inside = {
    "prompt_cache_options": {"prewarm": (False,)},
    "reasoning": {"context": ("auto",), "mode": ("standard",)},
    "tools[]": _REFUSED_OF_TOOLS,
    "tools[].tools[]": _REFUSED_OF_TOOLS,
}
_NAMES = {  # fields of chat completions → what replaces them
    "messages": "input",
    "max_completion_tokens": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "logprobs": "include",
}
_TOOL_LISTS = ("additional_tools", "tool_search_output")  # items that offer further tools
_TEXT_PARTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_REASONING_PARTS = {"summary_text": "text", "reasoning_text": "text"}


Items = Sequence[tuple[bodies.Item, str]]  # items of a conversation, with their paths in the client's body


def _field_check(body: type[bodies.ResponsesRequest]) -> FieldCheck:
    return FieldCheck.of_other_api(
        body.model_fields, names=_NAMES, ignored=IGNORED, refused=_REFUSED, inside=_REFUSED_INSIDE
    )


class ResponsesApi(CountingApi):
    """Responses are stored, and requests may refer to stored ones, if there is a store."""

    body: type[bodies.ResponsesRequest] = bodies.ResponsesRequest
    fields = _field_check(bodies.ResponsesRequest)
    prompt_path = "input"

    def __init__(self, model: Model, store: ResponseStore | None = None, max_bytes: int = 0) -> None:
        """`max_bytes`: most bytes of a request with all that it refers to."""
        super().__init__(model)
        self._store, self._max_bytes = store, max_bytes
        if store is not None:
            self.body = bodies.StoringRequest
        self.fields = _field_check(self.body)

    def size(self, raw: bytes) -> int:
        refers = any(name in raw for name in (b'"previous_response_id"', b'"item_reference"'))
        if self._store is None or not refers:
            return len(raw)
        return min(len(raw) + self._store.size, self._max_bytes)

    def parse(self, raw: bytes, key: str) -> tuple[ParsedRequest, ReplyWriter]:
        request = self.read(self.body, raw)
        self.model.preparer.check(request)
        items = self._items(request, len(raw), key)
        offered = _offered(request, items)
        limit = request.max_output_tokens
        prompt = self.model.chats.prompt(_conversation(request, items, offered), limit)
        ask = Ask(
            request,
            limit,
            stop=stop_strings(request.stop),
            logprobs=request.top_logprobs if _LOGPROBS in request.include else None,
            logprobs_path="include",
        )
        parsed = self.model.preparer.prepare("resp_", prompt, ask)
        echo = _echoed(request, parsed)
        on_end = None
        if isinstance(request, bodies.StoringRequest):
            echo |= {_PREVIOUS: request.previous_response_id, "store": request.store}
            if request.store:
                on_end = self._storing(parsed.id, key, request.previous_response_id, items)
        return parsed, ResponseWriter(parsed.id, echo, offered, self.model.texts, on_end)

    def count_tokens(self, raw: bytes, key: str) -> int:
        request = self.read(self.body, raw)
        self.model.preparer.check_model(request.model)
        items = self._items(request, len(raw), key)
        return self.model.chats.count_tokens(_conversation(request, items, _offered(request, items)))

    def _items(self, request: bodies.ResponsesRequest, size: int, key: str) -> Items:
        """Return all items of a conversation, without references. `size`: bytes of the body. Raises APIError."""
        previous = request.previous_response_id if isinstance(request, bodies.StoringRequest) else None
        if request.input is None and previous is None:
            raise invalid("Missing required parameter: 'input'.", "input")
        items: list[tuple[bodies.Item, str]] = []
        referred: set[str] = set()
        if previous is not None:
            stored = self._previous_items(previous, key)
            size += len(stored)
            items += [(item, _PREVIOUS) for item in self._loaded(stored, size)]
        own = request.input or []
        if isinstance(own, str):
            own = [bodies.MessageItem(role="user", content=own)]
        for index, item in enumerate(own):
            path = f"input[{index}]"
            if isinstance(item, bodies.ReferenceItem):
                if item.id in referred:
                    raise invalid(f"'input' refers to {item.id!r:.80} twice.", f"{path}.id")
                referred.add(item.id)
                stored = self._referred(item, path, key)
                size += len(stored)
                (item,) = self._loaded(stored, size)
            items.append((item, path))
        return items

    def _loaded(self, stored: bytes, size: int) -> Sequence[bodies.Item]:
        """Return stored items. `size`: bytes of the request with all that it refers to. Raises APIError."""
        if size > self._max_bytes:
            raise invalid(f"The request has more than {self._max_bytes} bytes with all that it refers to.", "input")
        return validate(bodies.Stored, {"items": json.loads(b"[" + stored + b"]")}).items

    def _previous_items(self, id: str, key: str) -> bytes:
        items = None if self._store is None else self._store.conversation(id, key)
        if items is None:
            message = f"Previous response with id {id!r:.80} not found, or one that it continues."
            raise invalid(message, _PREVIOUS, "previous_response_not_found")
        return items

    def _referred(self, item: bodies.ReferenceItem, path: str, key: str) -> bytes:
        """Return the item that another one refers to, as JSON."""
        if self._store is None:
            reason = "nothing is stored without --response-store, so send the item itself ('store': false)"
            raise invalid(f"Items of type 'item_reference' are not supported: {reason}.", f"{path}.type")
        if (stored := self._store.item(item.id, key)) is None:
            reason = "it was not stored, or it has been forgotten since; send the item itself"
            raise APIError(404, f"Item with id {item.id!r:.80} not found: {reason}.", param="input")
        return stored

    def _storing(self, id: str, key: str, previous: str | None, items: Items) -> OnEnd:
        """Return a function that stores a reply with the items of its output, and says whether there was room."""
        own = _encoded([item.model_dump(exclude_unset=True) for item, path in items if path != _PREVIOUS])[1:-1]

        def store(reply: bytes, output: Sequence[Body]) -> bool:
            assert self._store is not None
            found = {item["id"]: _encoded(item) for item in output}
            return self._store.add(StoredResponse(id, key, previous, own, found, reply))

        return store


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _offered(request: bodies.ResponsesRequest, items: Items) -> dict[str, OfferedTool]:
    """Return the tools of a request, and those that items add to them."""
    places: list[Place] = [(tool, f"tools[{index}]") for index, tool in enumerate(request.tools)]
    for item, path in items:
        if isinstance(item, bodies.ToolsItem | bodies.OutputItem) and item.type in _TOOL_LISTS:
            tools = validate(bodies.Stored, {"tools": _extra(item, "tools", [])}, path).tools
            places += [(tool, f"{path}.tools[{index}]") for index, tool in enumerate(tools)]
    return offered_tools(places)


def _conversation(request: bodies.ResponsesRequest, items: Items, offered: Mapping[str, OfferedTool]) -> Conversation:
    turns = Turns("input")
    if request.instructions is not None:
        turns.say("system", request.instructions)
    for item, path in items:
        _add(turns, item, path)
    found = turns.all()
    if not found:
        raise invalid("'input' must have at least one item.", "input")
    return Conversation(
        found,
        "input",
        [tool.tool for tool in offered.values()],
        chosen(request.tool_choice, offered),
        parallel=request.parallel_tool_calls,
        form=_form(request.text.format),
        variables=template_variables(request.reasoning.effort, request.text.verbosity, request.chat_template_kwargs),
    )


def _form(format: bodies.TextFormat | None) -> Form | None:
    path = "text.format"
    if format is None:
        return None
    if format.type == "json_schema":
        for name, value in (("name", format.name), ("schema", format.schema_)):
            if value is None:
                raise invalid(f"Missing required parameter: '{path}.{name}'.", f"{path}.{name}")
        return Form("json", format.schema_, path, format.strict is True)
    if surplus := sorted(format.model_fields_set - {"type"}):
        name = f"{path}.{surplus[0].removesuffix('_')}"
        raise invalid(f"'{name}' needs the type 'json_schema'.", name)
    return Form("json_object", True, path) if format.type == "json_object" else None


def _echoed(request: bodies.ResponsesRequest, parsed: ParsedRequest) -> Body:
    """Return the fields of a response that repeat the request."""
    texts = ("instructions", "prompt_cache_key", "safety_identifier", "user")
    choice, format = request.tool_choice, request.text.format
    return {
        **{name: text if isinstance(text := getattr(request, name), str) else None for name in texts},
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": request.max_tool_calls,
        "top_logprobs": request.top_logprobs,
        "created_at": parsed.created,
        "model": parsed.model,
        "metadata": request.metadata,
        "parallel_tool_calls": request.parallel_tool_calls,
        "reasoning": {"effort": request.reasoning.effort, "summary": None},
        "temperature": parsed.sampling.temperature,
        "text": {
            "format": {"type": "text"} if format is None else format.model_dump(by_alias=True, exclude_unset=True),
            "verbosity": request.text.verbosity,
        },
        "tool_choice": choice if isinstance(choice, str) else choice.model_dump(exclude_unset=True),
        "tools": [tool.model_dump(exclude_unset=True) for tool in request.tools if tool.type not in bodies.HOSTED],
        "top_p": parsed.sampling.top_p,
    }


def _add(turns: Turns, item: bodies.Item, path: str) -> None:
    """Add an item of the input to a conversation. Raises APIError."""
    match item:
        case bodies.MessageItem():
            _add_message(turns, item, path)
        case bodies.ReasoningItem():
            field = "content" if item.content else "summary"
            turns.think("\n".join(_texts(item.content or item.summary, _REASONING_PARTS, f"{path}.{field}")))
        case bodies.OutputItem():
            approval = _extra(item, "approval_request_id", item.type if item.id is None else item.id)
            turns.result(str(approval) if item.call_id is None else item.call_id, _result(item, path))
        case bodies.CallItem():
            name, arguments = _called(item)
            id = item.type if item.id is None else item.id
            turns.call(Call(name, arguments, id if item.call_id is None else item.call_id))
        case bodies.OtherItem():
            if item.type != "mcp_list_tools":  # lists of tools that run on OpenAI's servers
                reason = "this model reads text and calls only"
                raise invalid(f"Items of type {item.type!r:.80} are not supported: {reason}.", f"{path}.type")


def _add_message(turns: Turns, item: bodies.MessageItem, path: str) -> None:
    texts = [*_texts(item.content, _TEXT_PARTS, f"{path}.content")]
    separator = "" if item.role == "assistant" else "\n"  # an answer's parts are one text
    turns.say(item.role, separator.join(texts))


def _texts(content: str | Sequence[Body], kinds: Mapping[str, str], path: str) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    else:
        for index, part in enumerate(content):
            yield part_text(part, kinds, f"{path}[{index}]")


def _result(item: bodies.OutputItem, path: str) -> str:
    """Return the text of a call's result. Chat templates know no failed results."""
    if item.output is not None:
        text = result_text(item.output, _TEXT_PARTS, f"{path}.output")
        return f"Error: {text}" if item.status == "failed" else text
    if item.type in ("function_call_output", "custom_tool_call_output"):
        return ""
    status = {} if item.status is None else {"status": item.status}
    return result_text(_rest(item) | status, _TEXT_PARTS, f"{path}.output")


def _called(item: bodies.CallItem) -> tuple[str, Any]:
    """Return the name and the arguments of an earlier call.

    A call of a tool that only OpenAI describes becomes a call of a function with the name of its type.
    """
    if not isinstance(item, bodies.FunctionCallItem | bodies.CustomCallItem):
        return item.type.removesuffix("_call"), _rest(item)
    name = f"{item.namespace}{DOT}{item.name}" if item.namespace else item.name
    if isinstance(item, bodies.CustomCallItem):
        return name, {CUSTOM_INPUT: item.input}
    return name, arguments_of(item.arguments)


def _extra(item: bodies.CallItem | bodies.ToolsItem, name: str, default: Any) -> Any:
    """Return a field that the model of an item does not name; the default if it is absent or null."""
    value = (item.model_extra or {}).get(name)
    return default if value is None else value


def _rest(item: bodies.CallItem) -> Body:
    """Return what an item says beside its place in the conversation. Images are left out."""
    skipped = {"result"} if item.type == "image_generation_call" else set()
    return {
        name: value for name, value in (item.model_extra or {}).items() if value is not None and name not in skipped
    }
