"""Convert requests of Anthropic's Messages API to chat requests."""

import json
from collections.abc import Mapping
from typing import Any

from server.anthropic.events import MessageWriter
from server.http.errors import invalid
from server.openai.replies.build import Usage
from server.openai.requests.adapted import (
    AdaptedTranslator,
    Body,
    Conversation,
    an_object,
    objects,
    part_text,
    result_text,
    string,
    without_nulls,
)
from server.openai.requests.parameters import NO_VALUE, Defaults, Inside, called_directly
from server.openai.requests.schemas import MessagesChatRequest
from server.openai.requests.translate import ParsedRequest

_OBJECT: Body = {"type": "object"}
_OBJECTS: Body = {"type": "array", "items": _OBJECT}
_TEXT_OR_BLOCKS: Body = {"anyOf": [{"type": "string"}, _OBJECTS]}
_MESSAGE: Body = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"enum": ["user", "assistant", "system"]}, "content": _TEXT_OR_BLOCKS},
}
_DESCRIBED: dict[str, Body] = {
    "messages": {"type": "array", "items": _MESSAGE, "minItems": 1},
    "system": _TEXT_OR_BLOCKS,
    "max_tokens": {"type": "integer", "minimum": 1},
    "stop_sequences": {"type": "array", "items": {"type": "string", "minLength": 1}},
    "tools": _OBJECTS,
    **dict.fromkeys(("tool_choice", "thinking", "output_config"), _OBJECT),
}
_KNOWN = (
    *("messages", "system", "max_tokens", "stop_sequences", "tools", "tool_choice", "thinking", "output_config"),
    *("output_format",),
)
_IGNORED = {
    "betas": "the bodies of beta versions are read too",
    "cache_control": "prefixes are cached anyway, and cached ones give the same tokens",
    "diagnostics": "adds figures about the cache to the reply",
    **dict.fromkeys(("inference_geo", "speed"), "all requests run here, at the same speed"),
    **dict.fromkeys(("user_profile_id", "workspace_id"), "a label for the client's records"),
    **dict.fromkeys(("billing_policy", "fallback_credit_token"), "nothing is billed"),
    "fallbacks": "no model declines here",
}


def _clears_thinking(body: Mapping[str, Any]) -> bool:
    """Whether the context is edited at most by what chat templates do themselves: earlier thinking is left out."""
    edits = objects(an_object(body, "context_management", ""), "edits", "context_management")
    return all(str(edit.get("type")).startswith("clear_thinking") for edit in edits)


_REFUSED: dict[str, Defaults] = {
    **dict.fromkeys(("container", "thread", "compaction"), NO_VALUE),
    "context_management": _clears_thinking,
    "mcp_servers": ([],),
}
_REFUSED_INSIDE: Inside = {
    "tools[]": {"allowed_callers": called_directly},
    "messages[]": {"clear_at": ("never",), "output_config": NO_VALUE},
    "output_config": {"task_budget": NO_VALUE},
}
_NAMES = {
    "thinking_token_budget": "thinking.budget_tokens",
    "stop": "stop_sequences",
    "max_completion_tokens": "max_tokens",
    "reasoning_effort": "output_config.effort",
    "response_format.json_schema": "output_config.format",
    "response_format": "output_config.format",
}
_TEXT = {"type": "text"}
_TEXT_BLOCKS = {"text": "text"}
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")  # those of the server are Anthropic's own
# The first system block of Claude Code. It differs from request to request, so that no prefix could be shared.
_BILLING = "x-anthropic-billing-header:"


class MessagesTranslator(AdaptedTranslator):
    prompt_param = "messages"
    parameters = "input_schema"
    names = _NAMES
    known = _KNOWN
    described = _DESCRIBED
    required: tuple[str, ...] = ("messages", "max_tokens")
    chat_type = MessagesChatRequest
    usage = Usage.ALWAYS  # the first event has it too
    ignored = _IGNORED
    refused = _REFUSED
    refused_inside = _REFUSED_INSIDE

    def count_tokens(self, raw: bytes) -> int:
        return self._count_tokens(self.read(raw) | {"max_tokens": 1, "stream": False})

    def to_chat(self, body: Body) -> Body:
        if "max_tokens" not in body:
            raise invalid("Missing required parameter: 'max_tokens'.", "max_tokens")
        messages = _messages(body)
        if not messages:
            raise invalid("'messages' must have at least one message that the model can read.", "messages")
        config = without_nulls(an_object(body, "output_config", ""))
        choice = an_object(body, "tool_choice", "")
        alone = choice.get("disable_parallel_tool_use") or False
        if not isinstance(alone, bool):
            name = "tool_choice.disable_parallel_tool_use"
            raise invalid(f"'{name}' must be a boolean.", name)
        chat: Body = {
            "messages": messages,
            "max_tokens": body["max_tokens"],
            "stop": body.get("stop_sequences") or None,
            "tools": [_tool(tool, f"tools[{index}]") for index, tool in enumerate(objects(body, "tools", ""))],
            "tool_choice": _choice(choice) if "tool_choice" in body else None,
            "parallel_tool_calls": not alone,
            "reasoning_effort": config.get("effort"),
        }
        if format := config.get("format") or body.get("output_format"):
            if not isinstance(format, dict) or format.get("type") != "json_schema":
                raise invalid("The format of an answer must be of type 'json_schema'.", "output_config.format")
            schema = {"name": "answer", "schema": format.get("schema")}
            chat["response_format"] = {"type": "json_schema", "json_schema": schema}
        if "thinking" in body:
            thinking = an_object(body, "thinking", "")
            if thinking.get("type") not in ("enabled", "adaptive", "disabled"):
                raise invalid("'thinking.type' must be 'enabled', 'adaptive' or 'disabled'.", "thinking.type")
            if thinking.get("display") not in (None, "summarized", "omitted"):
                raise invalid("'thinking.display' must be 'summarized' or 'omitted'.", "thinking.display")
            budget = thinking.get("budget_tokens")
            if budget is not None and (not isinstance(budget, int | float) or isinstance(budget, bool)):
                raise invalid("'thinking.budget_tokens' must be a number.", "thinking.budget_tokens")
            thinks = thinking["type"] != "disabled"
            if self._chat.limits_thoughts:
                chat["thinking_token_budget"] = budget
            chat["chat_template_kwargs"] = {"enable_thinking": thinks} | an_object(body, "chat_template_kwargs", "")
        last = messages[-1]
        if last["role"] == "assistant" and last["content"] and not last.get("tool_calls"):
            if "response_format" in chat:  # as with Anthropic
                raise invalid("The beginning of an answer cannot be combined with a format.", "output_config.format")
            chat["continue_final_message"] = True  # the beginning of the answer
        return {name: value for name, value in chat.items() if value is not None}

    def writer(self, body: Body, parsed: ParsedRequest) -> MessageWriter:
        omitted = an_object(body, "thinking", "").get("display") == "omitted"
        limit = parsed.sampling.max_tokens
        fills = limit is not None and len(parsed.prompts[0]) + limit == self._chat.max_model_len
        return MessageWriter(
            parsed.model, shows_thinking=not omitted, fills_context=fills and limit != body["max_tokens"]
        )


class CountTokensTranslator(MessagesTranslator):
    """Bodies of `count_tokens` need no limit."""

    required = ("messages",)


def _messages(body: Body) -> list[Body]:
    talk = Conversation()
    if "system" in body:
        system = body["system"]
        if isinstance(system, list):
            texts = [part_text(block, _TEXT_BLOCKS, f"system[{i}]") for i, block in enumerate(system)]
            system = "\n\n".join(text for text in texts if not text.startswith(_BILLING))
        if system != "":
            talk.say("system", string({"system": system}, "system", ""))
    if not objects(body, "messages", ""):
        raise invalid("'messages' must have at least one message.", "messages")
    for index, message in enumerate(body["messages"]):
        param = f"messages[{index}]"
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant", "system"):
            raise invalid(f"'{param}.role' must be 'user' or 'assistant'.", f"{param}.role")
        if content is None:
            raise invalid(f"Missing required parameter: '{param}.content'.", f"{param}.content")
        if isinstance(content, str):
            talk.say(role, content)
        else:
            _add(talk, role, objects(message, "content", param), param)
    talk.end_reasoning()
    return talk.messages


def _add(talk: Conversation, role: str, blocks: Any, param: str) -> None:
    """Add the blocks of a message. Results of the client's tools come before its text, as models expect them."""
    if role == "assistant":
        _add_answer(talk, blocks, param)
        return
    texts: list[Body] = []
    for index, block in enumerate(blocks):
        name = f"{param}.content[{index}]"
        if block.get("type") == "tool_result" and role == "user":
            talk.result(string(block, "tool_use_id", name), _result(block, name))
        else:
            texts.append(_TEXT | {"text": part_text(block, _TEXT_BLOCKS, name)})
    if texts or not blocks:
        talk.say(role, texts or "")


def _add_answer(talk: Conversation, blocks: Any, param: str) -> None:
    """Add the blocks of an answer, also those of tools that run on Anthropic's servers."""
    texts: list[str] = []  # that follow each other

    def say() -> None:
        if texts:
            talk.say("assistant", "".join(texts))
            texts.clear()

    for index, block in enumerate(blocks):
        kind, name = str(block.get("type")), f"{param}.content[{index}]"
        if kind == "redacted_thinking":
            continue
        if kind in _CALLS:
            say()
            arguments = json.dumps(an_object(block, "input", name), ensure_ascii=False)
            talk.call(string(block, "id", name), string(block, "name", name), arguments)
        elif kind.endswith("_tool_result"):
            say()
            talk.result(string(block, "tool_use_id", name), _result(block, name))
        elif kind == "thinking":
            say()
            talk.reason(string(block, "thinking", name))
        else:
            texts.append(part_text(block, _TEXT_BLOCKS, name))
    if not blocks:
        texts.append("")
    say()


def _result(block: Body, param: str) -> str:
    failed = block.get("is_error") or False
    if not isinstance(failed, bool):
        raise invalid(f"'{param}.is_error' must be a boolean.", f"{param}.is_error")
    content = block.get("content")
    told = [content] if isinstance(content, dict) else content
    text = result_text(told, _TEXT_BLOCKS, f"{param}.content")
    return f"Error: {text}" if failed else text  # chat templates know no failed results


def _tool(tool: Body, param: str) -> Body:
    """Return a tool in the format of chat completions. Raises APIError."""
    if (kind := tool.get("type") or "custom") != "custom":
        raise invalid(f"'{param}.type' is {kind!r:.80}, but only custom tools are supported.", f"{param}.type")
    function = {"name": string(tool, "name", param), "parameters": an_object(tool, "input_schema", param)}
    if tool.get("description") is not None:
        function["description"] = string(tool, "description", param)
    passed = {field: tool[field] for field in ("strict", "input_examples") if tool.get(field) is not None}
    return {"type": "function", "function": function | passed}


def _choice(choice: Body) -> Any:
    kind = choice.get("type")
    if kind == "tool":
        return {"type": "function", "function": {"name": string(choice, "name", "tool_choice")}}
    simple = {"auto": "auto", "any": "required", "none": "none"}.get(str(kind))
    if simple is None:
        raise invalid("'tool_choice.type' must be 'auto', 'any', 'tool' or 'none'.", "tool_choice.type")
    return simple
