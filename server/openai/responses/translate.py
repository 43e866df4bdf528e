"""Convert requests of OpenAI's Responses API, which have all items of a conversation, to chat requests."""

import json
from collections.abc import Sequence

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
from server.openai.requests.messages import CUSTOM_INPUT
from server.openai.requests.parameters import NO_VALUE, Defaults, Inside, called_directly
from server.openai.requests.schemas import MAX_TOP_LOGPROBS
from server.openai.requests.translate import ParsedRequest
from server.openai.responses.events import ResponseWriter
from server.openai.responses.tools import DOT, TOOL_LISTS, as_function, listed_tools, offered_tools, tool_choice

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
_FORMATS = ("text", "json_object", "json_schema")
_ROLES = ("user", "assistant", "system", "developer")
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
    known: tuple[str, ...] = _KNOWN
    described = _DESCRIBED
    required = ("input",)
    ignored = _IGNORED
    refused = _REFUSED
    refused_inside = _REFUSED_INSIDE

    def for_request(self, key: str) -> "ResponsesTranslator":
        """Return the translator for one request with an API key."""
        return self

    def to_chat(self, body: Body) -> Body:
        for name in _COUNTS:
            count = body.get(name, 0)
            if isinstance(count, bool) or not isinstance(count, int | float) or count != int(count) or count < 0:
                raise invalid(f"'{name}' must be a whole number.", name)
            if name in body:
                body[name] = int(count)
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
            if format.get("type") not in (*_FORMATS, None):
                raise invalid(f"'text.format.type' must be one of {', '.join(_FORMATS)}.", "text.format.type")
            schema = {name: value for name, value in format.items() if name != "type"}
            if schema and format.get("type") != "json_schema":
                param = f"text.format.{next(iter(schema))}"
                raise invalid(f"'{param}' needs the type 'json_schema'.", param)
            chat["response_format"] = {"type": format.get("type"), "json_schema": schema or None}
        choice = body.get("tool_choice")
        tools = offered_tools(body)
        chat["tools"] = [as_function(name, tool, param) for name, (_, tool, param) in tools.items()]
        chat["tool_choice"] = tool_choice(choice, [*tools]) if isinstance(choice, dict) else choice
        return {name: value for name, value in chat.items() if value is not None}

    def tool_paths(self, body: Body) -> Sequence[str]:
        return [path for _, _, path in offered_tools(body).values()]

    def writer(self, body: Body, parsed: ParsedRequest) -> ResponseWriter:
        text, reasoning = an_object(body, "text", ""), an_object(body, "reasoning", "")
        format = without_nulls(an_object(text, "format", "text"))
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
                "text": {"format": format or {"type": "text"}, "verbosity": text.get("verbosity")},
                "tool_choice": body.get("tool_choice", "auto"),
                "tools": listed_tools(body),
                "top_logprobs": body.get("top_logprobs", 0),
                "top_p": parsed.sampling.top_p,
            },
            tools={name: offered for name, (offered, _, _) in offered_tools(body).items()},
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
        field = "content" if item.get("content") else "summary"
        talk.reason(text_of(item.get(field, []), _REASONING_PARTS, f"{param}.{field}"))
    elif kind.endswith("_call") or kind in ("mcp_approval_request", "program"):
        talk.call(string(item, "call_id", param, item.get("id", kind)), *_called(kind, item, param))
    elif kind.endswith("_output") or kind == "mcp_approval_response":
        id = item.get("approval_request_id", item.get("id", kind))
        talk.result(string(item, "call_id", param, id), _result(kind, item, param))
    elif kind not in (*TOOL_LISTS, "mcp_list_tools"):  # which lists tools that run on OpenAI's servers
        reason = (
            "nothing is stored without --response-store, so send the item itself ('store': false)"
            if kind == "item_reference"
            else "this model reads text and calls only"
        )
        raise invalid(f"Items of type {kind!r:.80} are not supported: {reason}.", f"{param}.type")


def _result(kind: str, item: Body, param: str) -> str:
    """Return the text of a call's result. Chat templates know no failed results."""
    status = {"status": item["status"]} if "status" in item else {}
    absent = "" if kind in ("function_call_output", "custom_tool_call_output") else [_rest(item) | status]
    output = item.get("output", absent)
    text = result_text([output] if isinstance(output, dict) else output, _TEXT_PARTS, f"{param}.output")
    return f"Error: {text}" if "output" in item and item.get("status") == "failed" else text


def _called(kind: str, item: Body, param: str) -> tuple[str, str]:
    """Return the name and the arguments of an earlier call.

    A call of a tool that only OpenAI describes becomes a call of a function with the name of its type.
    """
    if kind not in ("function_call", "custom_tool_call"):
        return kind.removesuffix("_call"), json.dumps(_rest(item), ensure_ascii=False)
    name = string(item, "name", param)
    name = f"{item['namespace']}{DOT}{name}" if item.get("namespace") else name
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
