"""Convert requests of OpenAI's Responses API to chat requests. Nothing is stored: each request has all items."""

import json
from collections.abc import Iterator, Sequence

from server.http.errors import invalid
from server.openai.requests.adapted import (
    AdaptedTranslator,
    Body,
    Conversation,
    an_object,
    objects,
    part_text,
    result_text,
    string,
    text_of,
    without_nulls,
)
from server.openai.requests.parameters import NO_VALUE, Defaults, Inside, called_directly
from server.openai.requests.schemas import MAX_TOP_LOGPROBS
from server.openai.requests.translate import ParsedRequest
from server.openai.responses.events import CUSTOM_INPUT, OfferedTool, ResponseWriter

_LOGPROBS = "message.output_text.logprobs"
_KNOWN = (
    *("input", "instructions", "max_output_tokens", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning"),
    *("include", "top_logprobs", "stop", "metadata"),
)
_OBJECT: Body = {"type": "object"}
_OBJECTS: Body = {"type": "array", "items": _OBJECT}
_DESCRIBED: dict[str, Body] = {
    "input": {"anyOf": [{"type": "string"}, _OBJECTS | {"minItems": 1}]},
    "instructions": {"type": "string"},
    "max_output_tokens": {"type": "integer", "minimum": 1},
    "tools": _OBJECTS,
    "tool_choice": {"anyOf": [{"enum": ["none", "auto", "required"]}, _OBJECT]},
    "parallel_tool_calls": {"type": "boolean"},
    "text": _OBJECT,
    "reasoning": _OBJECT,
    "include": {"type": "array", "items": {"type": "string"}},
    "top_logprobs": {"type": "integer", "minimum": 0, "maximum": MAX_TOP_LOGPROBS},
}
_IGNORED = {
    "stream_options": "its padding hides lengths from those who listen in",
    "max_tool_calls": "limits tools that run on OpenAI's servers",
    "background_options": "belongs to 'background', which is refused",
    "image": "prompts have no images",
    "client_metadata": "a label for the client's records",
}
_REFUSED: dict[str, Defaults] = {
    **dict.fromkeys(("previous_response_id", "conversation", "prompt", "context_management", "moderation"), NO_VALUE),
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
# Fields that a response repeats.
_TEXTS = ("instructions", "prompt_cache_key", "safety_identifier", "user")
_COUNTS = ("max_output_tokens", "max_tool_calls", "top_logprobs")
_ROLES = ("user", "assistant", "system", "developer")
_DOT = "."  # between a namespace and a name
# Tools that run on OpenAI's servers. Codex offers its models some, whatever their provider.
_HOSTED = (
    *("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11", "file_search"),
    *("code_interpreter", "image_generation", "mcp", "tool_search", "programmatic_tool_calling"),
)
_CALLS = {"function": "function_call", "custom": "custom_tool_call"}  # type of a tool → of the items that call it
_TOOL_LISTS = ("additional_tools", "tool_search_output")  # items that offer further tools
_TEXT_PARTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_REASONING_PARTS = {"summary_text": "text", "reasoning_text": "text"}

_NAMES = {
    "messages": "input",
    "max_completion_tokens": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "logprobs": "include",
    "tool_choice.allowed_tools": "tool_choice",
}


class ResponsesTranslator(AdaptedTranslator):
    prompt_param = "input"
    parameters = "parameters"
    names = _NAMES
    known = _KNOWN
    described = _DESCRIBED
    required = ("input",)
    ignored = _IGNORED
    refused = _REFUSED
    refused_inside = _REFUSED_INSIDE

    def to_chat(self, body: Body) -> Body:
        for name in _COUNTS:
            if not isinstance(body.get(name, 0), int):
                raise invalid(f"'{name}' must be a whole number.", name)
        if not 0 <= body.get("top_logprobs", 0) <= MAX_TOP_LOGPROBS:
            raise invalid(f"'top_logprobs' must be between 0 and {MAX_TOP_LOGPROBS}.", "top_logprobs")
        text = without_nulls(an_object(body, "text", ""))
        reasoning = without_nulls(an_object(body, "reasoning", ""))
        include = body.get("include", [])
        if not isinstance(include, list) or not all(isinstance(name, str) for name in include):
            raise invalid("'include' must be a list of strings.", "include")
        chat: Body = {
            "messages": _messages(body),
            "max_completion_tokens": body.get("max_output_tokens"),
            "metadata": body.get("metadata"),
            "stop": body.get("stop"),
            "parallel_tool_calls": body.get("parallel_tool_calls"),
            "reasoning_effort": reasoning.get("effort"),
            "verbosity": text.get("verbosity"),
        }
        if _LOGPROBS in include:
            chat |= {"logprobs": True, "top_logprobs": body.get("top_logprobs", 0)}
        if (format := without_nulls(an_object(text, "format", "text"))) and format != {"type": "text"}:
            schema = {name: value for name, value in format.items() if name != "type"}
            if schema and format.get("type") != "json_schema":
                param = f"text.format.{next(iter(schema))}"
                raise invalid(f"'{param}' needs the type 'json_schema'.", param)
            chat["response_format"] = {"type": format.get("type"), "json_schema": schema or None}
        choice = body.get("tool_choice")
        tools = _tools(body)
        chat["tools"] = [_function(name, tool, param) for name, (_, tool, param) in tools.items()]
        chat["tool_choice"] = _choice(choice, [*tools]) if isinstance(choice, dict) else choice
        return {name: value for name, value in chat.items() if value is not None}

    def tool_paths(self, body: Body) -> Sequence[str]:
        return [path for _, _, path in _tools(body).values()]

    def writer(self, body: Body, parsed: ParsedRequest) -> ResponseWriter:
        text, reasoning = an_object(body, "text", ""), an_object(body, "reasoning", "")
        return ResponseWriter(
            {name: body[name] if isinstance(body.get(name), str) else None for name in _TEXTS}
            | {name: body.get(name) for name in _COUNTS}
            | {
                "created_at": parsed.created,
                "model": parsed.model,
                "metadata": body.get("metadata", {}),
                "parallel_tool_calls": body.get("parallel_tool_calls", True),
                "reasoning": {"effort": reasoning.get("effort"), "summary": None},
                "temperature": parsed.sampling.temperature,
                "text": {"format": text.get("format") or {"type": "text"}, "verbosity": text.get("verbosity")},
                "tool_choice": body.get("tool_choice", "auto"),
                "tools": _offered(body),
                "top_logprobs": body.get("top_logprobs", 0),
                "top_p": parsed.sampling.top_p,
            },
            tools={name: offered for name, (offered, _, _) in _tools(body).items()},
        )


def _messages(body: Body) -> list[Body]:
    talk = Conversation()
    if "instructions" in body:
        talk.say("system", string(body, "instructions", ""))
    if "input" not in body:
        raise invalid("Missing required parameter: 'input'.", "input")
    if isinstance(body["input"], str):
        talk.say("user", body["input"])
        return talk.messages
    for index, item in enumerate(objects(body, "input", "")):
        _add(talk, without_nulls(item), f"input[{index}]")
    talk.end_reasoning()
    return talk.messages


def _add(talk: Conversation, item: Body, param: str) -> None:
    """Add an item of the input to a conversation. Raises APIError."""
    kind = string(item, "type", param, "message")
    if kind == "message":
        role, content = string(item, "role", param), item.get("content")
        if role not in _ROLES:
            raise invalid(f"'{param}.role' must be one of {', '.join(_ROLES)}.", f"{param}.role")
        if isinstance(content, list):
            parts = [part_text(part, _TEXT_PARTS, f"{param}.content[{i}]") for i, part in enumerate(content)]
            texts = [{"type": "text", "text": text} for text in parts]
            talk.say(role, "".join(parts) if role == "assistant" else texts or "")  # an answer's parts are one text
        else:
            talk.say(role, string(item, "content", param))
    elif kind == "reasoning":
        parts = item.get("content") or item.get("summary") or []
        talk.reason(text_of(parts, _REASONING_PARTS, f"{param}.content"))
    elif kind.endswith("_call"):
        talk.call(string(item, "call_id", param, item.get("id", kind)), *_called(kind, item, param))
    elif kind.endswith("_output"):
        told = item.get("output", [_rest(item)])
        told = [told] if isinstance(told, dict) else told
        talk.result(string(item, "call_id", param, kind), result_text(told, _TEXT_PARTS, f"{param}.output"))
    elif kind not in (*_TOOL_LISTS, "mcp_list_tools"):  # which lists tools that run on OpenAI's servers
        reason = (
            "nothing is stored, so send the item itself ('store': false)"
            if kind == "item_reference"
            else "this model reads text and calls only"
        )
        raise invalid(f"Items of type {kind!r:.80} are not supported: {reason}.", f"{param}.type")


def _called(kind: str, item: Body, param: str) -> tuple[str, str]:
    """Return the name and the arguments of an earlier call.

    A call of a tool that only OpenAI describes is told as a call of a function with the name of its type.
    """
    if kind not in ("function_call", "custom_tool_call"):
        return kind.removesuffix("_call"), json.dumps(_rest(item), ensure_ascii=False)
    name = string(item, "name", param)
    name = f"{item['namespace']}{_DOT}{name}" if item.get("namespace") else name
    if kind == "custom_tool_call":
        return name, json.dumps({CUSTOM_INPUT: string(item, "input", param)}, ensure_ascii=False)
    arguments = item.get("arguments", "{}")
    return name, json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else string(
        item, "arguments", param, "{}"
    )


def _rest(item: Body) -> Body:
    """Return what an item says beside its place in the conversation. Images are left out."""
    skipped = {"type", "id", "call_id", "status", "caller"}
    if item["type"] == "image_generation_call":
        skipped.add("result")
    return {name: value for name, value in item.items() if name not in skipped}


def _tools(body: Body) -> dict[str, tuple[OfferedTool, Body, str]]:
    """Return the client's tools, with their paths in the body, by the names of the functions that they become.

    A name in a namespace has that before it, and a dot. Tools that run on OpenAI's servers are left out. Raises
    APIError for others.
    """
    found: dict[str, tuple[OfferedTool, Body, str]] = {}
    for tool, param in _listed(body):
        space = string(tool, "name", param) if tool.get("type") == "namespace" else None
        inner = [(tool, param)]
        if space is not None:
            inner = [(part, f"{param}.tools[{i}]") for i, part in enumerate(objects(tool, "tools", param))]
        for part, path in inner:
            kind = part.get("type")
            if not isinstance(kind, str) or kind not in _CALLS:
                raise invalid(
                    f"Tools of type {kind!r:.80} are not supported, only functions and custom tools.",
                    f"{path}.type",
                )
            own = string(part, "name", path)
            name = own if space is None else f"{space}{_DOT}{own}"
            if name in found and path.startswith("tools"):  # items may repeat a tool
                raise invalid("The names of 'tools' must differ.", f"{path}.name")
            found[name] = OfferedTool(_CALLS[kind], own, space), part, path
    return found


def _listed(body: Body) -> Iterator[tuple[Body, str]]:
    """Yield the tools of a body, and those that items add to them, with their paths."""
    lists = [(body, "")]
    if isinstance(items := body.get("input"), list):
        lists += [
            (item, f"input[{i}]")
            for i, item in enumerate(items)
            if isinstance(item, dict) and item.get("type") in _TOOL_LISTS
        ]
    for holder, path in lists:
        for index, tool in enumerate(objects(holder, "tools", path)):
            if tool.get("type") not in _HOSTED:
                yield tool, f"{path}.tools[{index}]".lstrip(".")


def _function(name: str, tool: Body, param: str) -> Body:
    """Return a tool as a function in the format of chat completions. Raises APIError."""
    tool = without_nulls(tool)
    given = _custom(tool, param) if tool["type"] == "custom" else tool
    fields = ("description", "parameters", "strict")
    return {"type": "function", "function": {"name": name} | {key: given[key] for key in fields if key in given}}


def _custom(tool: Body, param: str) -> Body:
    """Return a custom tool, whose input is a text, as a function. Its description has the grammar of the text."""
    format, description = an_object(tool, "format", param), string(tool, "description", param, "")
    if format.get("type", "text") == "grammar":
        syntax, definition = (string(format, field, f"{param}.format") for field in ("syntax", "definition"))
        description = f"{description}\n\nThe input must match this grammar ({syntax}):\n{definition}".lstrip()
    elif format.get("type", "text") != "text":
        raise invalid(f"'{param}.format.type' must be 'text' or 'grammar'.", f"{param}.format.type")
    parameters = {"type": "object", "properties": {CUSTOM_INPUT: {"type": "string"}}, "required": [CUSTOM_INPUT]}
    return {"description": description, "parameters": parameters | {"additionalProperties": False}}


def _offered(body: Body) -> list[Body]:
    """Return the tools of a request that the model is told about."""
    return [tool for tool in objects(body, "tools", "") if tool.get("type") not in _HOSTED]


def _choice(choice: Body, names: Sequence[str]) -> Body:
    """Return a choice among the functions of these names in the format of chat completions. Raises APIError."""
    if choice.get("type") in ("function", "custom"):
        (name,) = _chosen(choice, names)
        return {"type": "function", "function": {"name": name}}
    if choice.get("type") != "allowed_tools":
        raise invalid("'tool_choice' must be a string, a function or allowed tools.", "tool_choice.type")
    chosen = [tool for tool in objects(choice, "tools", "tool_choice") if tool.get("type") not in _HOSTED]
    allowed = [{"type": "function", "function": {"name": name}} for tool in chosen for name in _chosen(tool, names)]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.get("mode", "auto"), "tools": allowed}}


def _chosen(tool: Body, names: Sequence[str]) -> list[str]:
    """Return the full names of a chosen function, which may lack its namespace, or of all in a namespace."""
    name = string(tool, "name", "tool_choice")
    if tool.get("type") == "namespace":
        return [full for full in names if full.startswith(f"{name}{_DOT}")]
    if tool.get("namespace"):
        return [f"{tool['namespace']}{_DOT}{name}"]
    within = [full for full in names if full.endswith(f"{_DOT}{name}")]
    return within if name not in names and len(within) == 1 else [name]
