"""Turns of a conversation as chat templates want them, also those that know no tools."""

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from server.conversation import Call, Tool, Turn

Message = dict[str, Any]

# The prompt that Hermes models are trained with and Qwen's templates use. Calls have the format `HERMES`.
_TOOLS = """You may call one or more functions to assist with the user query. You are provided with function \
signatures within <tools></tools> tags:
<tools>
{tools}
</tools>

For each function call, return a JSON object with function name and arguments within <tool_call></tool_call> tags:
<tool_call>
{{"name": <function-name>, "arguments": <arguments-json-object>}}
</tool_call>"""


def template_messages(turns: Sequence[Turn], *, id_length: int | None) -> list[Message]:
    """Return the messages of a chat template. `id_length` is that of the ids of calls, if it matters.

    Results follow in the order of their calls, because not all templates show their ids. They have the names of their
    functions, which some templates demand and clients leave out.
    """
    messages: list[Message] = []
    names: dict[str, str] = {}  # names of the functions, by the id of the call
    calls: list[str] = []  # ids of the calls of the last answer
    for is_result, run in groupby(turns, lambda turn: turn.role == "tool"):
        group = [*run]
        if is_result:
            group = _in_order(group, calls)
        for turn in group:
            names |= {str(call.id): call.name for call in turn.calls}
            messages.append(_message(turn, names.get(str(turn.result_of)), id_length))
        calls = [str(call.id) for call in group[-1].calls]
    return messages


def _in_order(results: Sequence[Turn], calls: Sequence[str]) -> list[Turn]:
    """Return results in the order of their calls, if all of them are known."""
    places = {id: place for place, id in reversed([*enumerate(calls)])}
    if all(str(result.result_of) in places for result in results):
        return sorted(results, key=lambda result: places[str(result.result_of)])
    return [*results]


def _message(turn: Turn, called: str | None, id_length: int | None) -> Message:
    message: Message = {"role": turn.role, "content": turn.text, **turn.fields}
    if turn.thought is not None:
        message["reasoning_content"] = turn.thought
    if turn.calls:  # templates test whether this key exists
        message["tool_calls"] = [_call(call, id_length) for call in turn.calls]
    if turn.result_of is not None:
        message["tool_call_id"] = _fitted(turn.result_of, id_length)
    if turn.role == "tool" and called is not None:
        message.setdefault("name", called)
    return message


def _call(call: Call, id_length: int | None) -> Message:
    function = {"name": call.name, "arguments": call.arguments}
    if call.id is None:
        return {"type": "function", "function": function}
    return {"id": _fitted(call.id, id_length), "type": "function", "function": function}


def _fitted(id: str, length: int | None) -> str:
    """Return an id that chat templates accept."""
    return id if length is None else "".join(filter(str.isalnum, id))[-length:].rjust(length, "0")


def in_turns(messages: Sequence[Message], *, system: bool) -> list[Message]:
    """Write a chat for a template that wants turns of the user and the model, after one system message if `system`.

    Other system messages become the user's. Messages in a row by the system or the user become one.
    """
    turns: list[Message] = []
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


def with_tools(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """Write tools, calls and their results as text, for a template that knows none of them.

    Tools are described in the system message. Results of calls in a row become one message of the user.
    """
    converted: list[Message] = []
    for is_result, run in groupby(messages, lambda message: message["role"] == "tool"):
        if is_result:
            results = [f"<tool_response>\n{message['content']}\n</tool_response>" for message in run]
            converted.append({"role": "user", "content": "\n".join(results)})
            continue
        for message in run:
            calls = [_call_text(call["function"]) for call in message.get("tool_calls", ())]
            rest = {name: value for name, value in message.items() if name != "tool_calls"}
            converted.append(rest | {"content": "\n".join(filter(None, (message["content"], *calls)))})
    if tools:
        described = "\n".join(json.dumps(tool.template(), ensure_ascii=False) for tool in tools)
        text = _TOOLS.format(tools=described)
        if converted and converted[0]["role"] in ("system", "developer"):
            converted[0] = converted[0] | {"content": f"{converted[0]['content']}\n\n{text}"}
        else:
            converted.insert(0, {"role": "system", "content": text})
    return converted


def _call_text(function: Message) -> str:
    return f"<tool_call>\n{json.dumps(function, ensure_ascii=False)}\n</tool_call>"
