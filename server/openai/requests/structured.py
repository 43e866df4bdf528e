"""Grammars of structured output and forced tool calls, for llguidance. The engine compiles them in another process."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from server.http.errors import invalid
from server.openai.replies.parsers import THINK_CLOSE
from server.openai.requests.schemas import ResponseFormat, Tool

MAX_SCHEMA_CHARACTERS = 65_536
MAX_TOOLS_CHARACTERS = 262_144  # of the schemas of all tools together
MAX_SCHEMA_DEPTH = 64
MAX_REFERENCE_DEPTH = 256  # levels with references followed
# The model may choose white space between tokens; the bound keeps it from generating white space for ever.
_GUIDANCE_OPTIONS = {"whitespace_pattern": r"[ \n\t]{0,20}"}

MarkerNotation = Callable[[str], str]  # text of a marker → its notation in a grammar


def answer_schema(response_format: ResponseFormat | None) -> dict[str, Any] | None:
    """Return the JSON schema that the answer must match, or None for text. Raises APIError."""
    if response_format is None or response_format.type == "text":
        return None
    if response_format.type == "json_object":
        return {"type": "object"}
    if response_format.json_schema is None:
        raise invalid("Missing required parameter: 'response_format.json_schema'.", "response_format.json_schema")
    return response_format.json_schema.schema_


def grammar_of(
    schema: Mapping[str, Any] | None,
    calls: str | None,
    *,
    thinking: bool,
    optional: bool,
    param: str,
    think_open: str | None = None,
) -> str | None:
    """Return the grammar of an answer by a schema, of tool calls, or of either; None for free text.

    `calls` are Lark rules that define `calls` (`tool_call_grammar`). With `optional`, the model may also answer by the
    schema. `thinking`: the prompt has opened the reasoning, which is free text. `think_open`: the grammar's
    notation of the opening tag, if the model may open the reasoning itself. Raises APIError naming `param`.
    """
    if schema is not None:
        check_size(schema, param)
    if calls is None and schema is not None and not thinking and think_open is None:
        return json.dumps({"grammars": [{"json_schema": _with_options(schema)}]})
    rules = [] if calls is None else [calls]
    if schema is not None:
        rules.append(f"answer: {_json_rule(schema)}")
    if not rules:
        return None
    either = "calls" if schema is None else "answer" if calls is None else "(calls | answer)" if optional else "calls"
    before = "think " if thinking else "" if think_open is None else f"({think_open} think)? "
    start = f"start: {before}{either}"
    if before:
        rules.append(f"think[lazy]: /(?s:.*){THINK_CLOSE.replace('/', chr(92) + '/')}/")
    return "\n".join([start, *rules])


def tool_call_grammar(tool_format: str, tools: Sequence[Tool], marker: MarkerNotation, *, parallel: bool) -> str:
    """Return Lark rules for a call of these tools, or several if `parallel`.

    `tool_format` is one of `server.openai.replies.calls`. The caller has checked the sizes of the schemas.
    """
    key = "parameters" if tool_format == "llama3_json" else "arguments"
    rules = [f"call: {' | '.join(f'call_{index}' for index in range(len(tools)))}"]
    for index, tool in enumerate(tools):
        parameters = tool.function.parameters or _ANY_OBJECT
        prefix = json.dumps(f'{{"name": {json.dumps(tool.function.name)}, "{key}": ')
        # A separate rule, because references within the parameters are relative to them.
        rules += [f'call_{index}: {prefix} arguments_{index} "}}"', f"arguments_{index}: {_json_rule(parameters)}"]
    call = "\n".join(rules)
    if tool_format == "hermes":
        tagged = f'{marker("<tool_call>")} "\\n" call "\\n" {marker("</tool_call>")}'
        more = f' ("\\n" {tagged})*' if parallel else ""
        return f"calls: {tagged}{more}\n{call}"
    if tool_format == "mistral":
        more = ' (", " call)*' if parallel else ""
        return f'calls: {marker("[TOOL_CALLS]")} "[" call{more} "]"\n{call}'
    more = ' ("; " call)*' if parallel else ""
    return f"calls: call{more}\n{call}"


_ANY_OBJECT: dict[str, Any] = {"type": "object"}


def _json_rule(schema: Mapping[str, Any]) -> str:
    return "%json " + json.dumps(_with_options(schema))


def _with_options(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Set the key that llguidance reads as its own options."""
    return {**schema, "x-guidance": _GUIDANCE_OPTIONS}


def check_size(schema: Mapping[str, Any] | None, param: str) -> int:
    """Return a schema's characters. Raises APIError naming `param` if it is too large or too deep."""
    size = len(json.dumps(schema))
    if size > MAX_SCHEMA_CHARACTERS:
        raise invalid(f"The schema must have at most {MAX_SCHEMA_CHARACTERS} characters.", param)
    if _depth(schema) > MAX_SCHEMA_DEPTH:
        raise invalid(f"The schema must be at most {MAX_SCHEMA_DEPTH} levels deep.", param)
    if _reference_depth(schema) > MAX_REFERENCE_DEPTH:
        raise invalid(f"The schema and its references must be at most {MAX_REFERENCE_DEPTH} levels deep.", param)
    return size


def check_tools(tools: Sequence[Tool]) -> None:
    """Raise APIError if the parameters of a tool, or of all tools together, are too large or too deep."""
    sizes = [
        check_size(tool.function.parameters, f"tools[{index}].function.parameters") for index, tool in enumerate(tools)
    ]
    if sum(sizes) > MAX_TOOLS_CHARACTERS:
        raise invalid(f"The parameters of all tools must have at most {MAX_TOOLS_CHARACTERS} characters.", "tools")


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_SCHEMA_DEPTH:
        depth += 1
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
        ]
    return depth


def _reference_depth(schema: object) -> int:
    """Return the levels of a schema with its references into itself followed. A reference to a part around it ends."""
    depths: dict[int, int] = {}  # of parts of the schema, by identity; 0 while a part is being visited
    stack = [(schema, False)]
    while stack:
        part, visited = stack.pop()
        inner = _referenced(part, schema)
        if visited:
            depths[id(part)] = 1 + max((depths.get(id(other), 1) for other in inner), default=0)
        elif id(part) not in depths:
            depths[id(part)] = 0
            stack.append((part, True))
            stack += [(other, False) for other in inner]
    return depths[id(schema)]


def _referenced(part: object, root: object) -> list[object]:
    """Return the objects and lists directly in a part of the schema `root`, and what the part refers to."""
    values = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    inner: list[object] = [value for value in values if isinstance(value, (dict, list))]
    reference = part.get("$ref") if isinstance(part, dict) else None
    if isinstance(reference, str) and reference.startswith("#/"):
        target: object = root
        for name in reference[2:].split("/"):
            name = unquote(name).replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        if isinstance(target, (dict, list)):
            inner.append(target)
    return inner
