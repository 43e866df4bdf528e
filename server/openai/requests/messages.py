"""Convert the messages of a chat for chat templates, also for those that know no tools."""

import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any

import pydantic_core

from server.http.errors import invalid
from server.openai.replies.endpoints import MISTRAL_ID_LENGTH
from server.openai.requests import schemas

CUSTOM_INPUT = "input"  # the only argument of the function that stands for a custom tool

# The prompt that Hermes models are trained with and Qwen's templates use. Calls have the format `hermes`.
_TOOLS = """You may call one or more functions to assist with the user query. You are provided with function \
signatures within <tools></tools> tags:
<tools>
{tools}
</tools>

For each function call, return a JSON object with function name and arguments within <tool_call></tool_call> tags:
<tool_call>
{{"name": <function-name>, "arguments": <arguments-json-object>}}
</tool_call>"""


def text_content(message: schemas.Message) -> str | None:
    """Return the text of a message, whose parts are lines."""
    if isinstance(message.content, list):
        return "\n".join(
            part.refusal if isinstance(part, schemas.RefusalPart) else part.text for part in message.content
        )
    return message.content


def template_messages(messages: Sequence[schemas.Message]) -> list[dict[str, Any]]:
    """Convert messages for chat templates: text content, no null fields, and tools instead of older functions."""
    converted: list[dict[str, Any]] = []
    names: dict[str, str] = {}  # of the functions, by the id of the call
    function = "call_0"  # id of the last call of a function
    for index, message in enumerate(messages):
        template = _template_message(index, message)
        call = template.pop("function_call", None)
        if call is not None and "tool_calls" not in template:
            function = f"call_{index}"
            calls = [{"id": function, "type": "function", "function": call}]
            template["tool_calls"] = _template_calls(calls, f"messages[{index}].function_call", legacy=True)
        if message.role == "function":
            template |= {"role": "tool", "tool_call_id": function}
        names |= {str(call.get("id")): call["function"]["name"] for call in template.get("tool_calls", ())}
        called = names.get(str(template.get("tool_call_id")))
        if template["role"] == "tool" and called is not None:  # some templates demand it, and clients leave it out
            template.setdefault("name", called)
        converted.append(template)
    return _ordered(converted)


def _ordered(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the results of calls in the order of the calls: not all templates show their ids."""
    ordered: list[dict[str, Any]] = []
    for is_result, run in groupby(messages, lambda message: message["role"] == "tool"):
        if is_result and ordered:
            calls = [str(call.get("id")) for call in ordered[-1].get("tool_calls", ())]
            places = {id: place for place, id in reversed([*enumerate(calls)])}
            results = [*run]
            if all(str(result.get("tool_call_id")) in places for result in results):
                results.sort(key=lambda result: places[str(result.get("tool_call_id"))])
            ordered += results
        else:
            ordered += run
    return ordered


def _template_message(index: int, message: schemas.Message) -> dict[str, Any]:
    content = text_content(message)
    extra = {name: value for name, value in (message.model_extra or {}).items() if value is not None}
    if extra.get("tool_calls") == []:
        del extra["tool_calls"]  # templates test whether the key exists
    if message.role == "assistant":
        refusal = extra.pop("refusal", None)
        content = "\n".join(text for text in (content, refusal) if isinstance(text, str) and text)
        if reasoning := extra.pop("reasoning", None):  # templates know the older name
            extra["reasoning_content"] = extra.get("reasoning_content") or reasoning
    elif content is None and message.role in ("tool", "function"):
        content = ""
    elif content is None:
        raise invalid("'content' is required in a message without tool calls.", f"messages[{index}].content")
    if "tool_calls" in extra:
        extra["tool_calls"] = _template_calls(extra["tool_calls"], f"messages[{index}].tool_calls")
    return {"role": message.role, "content": content, **extra}


def shorten_ids(messages: Sequence[dict[str, Any]]) -> None:
    """Convert the ids of tool calls to the length that Mistral's templates accept."""
    for message in messages:
        for holder, name in ((message, "tool_call_id"), *((call, "id") for call in message.get("tool_calls", ()))):
            if isinstance(holder.get(name), str):
                characters = "".join(filter(str.isalnum, holder[name]))
                holder[name] = characters[-MISTRAL_ID_LENGTH:].rjust(MISTRAL_ID_LENGTH, "0")


def _template_calls(calls: object, param: str, *, legacy: bool = False) -> list[dict[str, Any]]:
    """Return tool calls of an earlier answer with their arguments as objects, as templates expect, unless broken.

    `legacy`: `param` names the only call.
    """
    if not isinstance(calls, list):
        raise invalid("'tool_calls' must be a list.", param)
    converted = []
    for position, call in enumerate(calls):
        if isinstance(call, dict) and isinstance(custom := call.get("custom"), dict) and "function" not in call:
            arguments = {CUSTOM_INPUT: custom.get("input", "")}
            rest = {name: value for name, value in call.items() if name != "custom"}
            call = rest | {"type": "function", "function": {"name": custom.get("name"), "arguments": arguments}}
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            place = param if legacy else f"{param}[{position}]"
            raise invalid("A tool call must have a 'function' with a 'name' and 'arguments'.", place)
        arguments = function.get("arguments", "{}")
        if isinstance(arguments, str):
            with suppress(ValueError):  # the answer may have ended within them, and stays as it is
                arguments = pydantic_core.from_json(arguments.strip() or "{}", allow_inf_nan=False)
        arguments = {} if arguments is None else arguments
        converted.append(call | {"function": function | {"arguments": arguments}})
    return converted


def in_turns(messages: Sequence[dict[str, Any]], *, system: bool) -> list[dict[str, Any]]:
    """Write a chat for a template that wants turns of the user and the model, after one system message if `system`.

    Other system messages become the user's. Messages in a row by the system or the user become one.
    """
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = message["role"]
        if role in ("system", "developer"):
            role = "system" if system and all(turn["role"] == "system" for turn in turns) else "user"
        if turns and role == turns[-1]["role"] and role in ("system", "user"):
            text = "\n\n".join(filter(None, (turns[-1]["content"], message["content"])))
            turns[-1] = turns[-1] | {"content": text}
        else:
            turns.append(message | {"role": role})
    return turns


def with_tools(messages: Sequence[dict[str, Any]], tools: Sequence[schemas.Tool]) -> list[dict[str, Any]]:
    """Write tools, calls and their results as text, for a template that knows none of them.

    Tools are described in the system message. Results of calls in a row become one message of the user.
    """
    converted: list[dict[str, Any]] = []
    for message in messages:
        content = message["content"]
        if message["role"] == "tool":
            content = f"<tool_response>\n{content}\n</tool_response>"
            if converted and converted[-1]["role"] == "user" and converted[-1].get("results"):
                converted[-1]["content"] += f"\n{content}"
            else:
                converted.append({"role": "user", "content": content, "results": True})
            continue
        calls = [_call_text(call["function"]) for call in message.get("tool_calls", ())]
        rest = {name: value for name, value in message.items() if name != "tool_calls"}
        converted.append(rest | {"content": "\n".join(filter(None, (content, *calls)))})
    if tools:
        described = "\n".join(json.dumps(tool.model_dump(exclude_none=True), ensure_ascii=False) for tool in tools)
        text = _TOOLS.format(tools=described)
        if converted and converted[0]["role"] in ("system", "developer"):
            converted[0] = converted[0] | {"content": f"{converted[0]['content']}\n\n{text}"}
        else:
            converted.insert(0, {"role": "system", "content": text})
    return [{name: value for name, value in message.items() if name != "results"} for message in converted]


def _call_text(function: dict[str, Any]) -> str:
    call = {"name": function["name"], "arguments": function["arguments"]}
    return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"
