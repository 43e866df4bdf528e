"""Grammars of structured output and forced tool calls, for llguidance. The engine compiles them in another process."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from server.http.errors import invalid
from server.openai.replies.parsers import THINK_CLOSE
from server.openai.requests.keywords import COMBINING
from server.openai.requests.references import References, inside
from server.openai.requests.schema import check_object, rewritten
from server.openai.requests.schemas import Tool

MAX_SCHEMA_CHARACTERS = 65_536
MAX_TOOLS_CHARACTERS = 262_144  # of the schemas of all tools together
MAX_SCHEMA_DEPTH = 64
MAX_REFERENCE_DEPTH = 256  # levels with references followed

_NO_PARAMETERS = {"type": "object", "properties": {}, "additionalProperties": False}
# Keywords that allow or demand properties which `properties` does not name.
_FURTHER_PROPERTIES = {"additionalProperties", "patternProperties", "required", "minProperties"} | COMBINING

_UNITS = re.compile(r"(?:\\.|[^\\])*", re.DOTALL)  # of a regular expression: characters and escapes

MarkerNotation = Callable[[str], str]  # text of a marker → its notation in a grammar


def grammar_of(
    schema: Mapping[str, Any] | None,
    expression: str,
    calls: str | None,
    *,
    thinking: bool,
    optional: bool,
    think_open: str | None = None,
    think_close: str = json.dumps(THINK_CLOSE),
) -> str | None:
    """Return the grammar of an answer by an `expression`, of tool calls, or of either; None for free text.

    `schema` is the JSON schema that the expression stands for, if it does. `calls` are Lark rules that define `calls`
    (`tool_call_grammar`). With `optional`, the model may also answer by the expression. `thinking`: the prompt has
    opened the reasoning, which is free text. `think_open`: the grammar's notation of the opening tag, if the model may
    open the reasoning itself; `think_close`: that of the closing tag.
    """
    if calls is None and schema is not None and not thinking and think_open is None:
        return json.dumps({"grammars": [{"json_schema": schema}]})
    rules = [] if calls is None else [calls]
    if expression:
        rules.append(f"answer: {expression}")
    if not rules:
        return None
    either = "calls" if not expression else "answer" if calls is None else "(calls | answer)" if optional else "calls"
    before = "think " if thinking else "" if think_open is None else f"({think_open} think)? "
    start = f"start: {before}{either}"
    if before and think_close.startswith("<["):  # a token of its own, which is no text
        rules.append(f"think: /(?s:.*)/ {think_close}")
    elif before:
        rules.append(f"think[lazy]: /(?s:.*){THINK_CLOSE.replace('/', chr(92) + '/')}/")
    return "\n".join([start, *rules])


def tool_call_grammar(
    tool_format: str,
    tools: Sequence[Tool],
    marker: MarkerNotation,
    *,
    parallel: bool,
    positions: Sequence[int] | None = None,
) -> str:
    """Return Lark rules for a call of these tools, or several if `parallel`.

    `tool_format` is one of `server.openai.replies.calls`. `positions` are those of the tools in the request, for
    errors. The caller has called `check_tools`. Raises APIError.
    """
    key = "parameters" if tool_format == "llama3_json" else "arguments"
    rules = [f"call: {' | '.join(f'call_{index}' for index in range(len(tools)))}"]
    first: dict[str, int] = {}  # tools with other parameters than those before them
    for index, tool in enumerate(tools):
        parameters = json.dumps(_arguments(tool, positions[index] if positions else index))
        prefix = json.dumps(f'{{"name": {json.dumps(tool.function.name)}, "{key}": ')
        # A separate rule, because references within the parameters are relative to them.
        if first.setdefault(parameters, index) == index:
            rules.append(f"arguments_{index}: %json {parameters}")
        rules.append(f'call_{index}: {prefix} arguments_{first[parameters]} "}}"')
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


def _arguments(tool: Tool, index: int) -> dict[str, Any]:
    """Return the schema of a tool's arguments for a grammar. Raises APIError."""
    param = f"tools[{index}].function.parameters"
    parameters = tool.function.parameters
    further = {name for name, value in (parameters or {}).items() if value not in ([], False, 0)}
    if parameters is None or (parameters.get("properties") == {} and not further & _FURTHER_PROPERTIES):
        parameters = _NO_PARAMETERS
    return rewritten(parameters, param, strict=tool.function.strict is True, arguments=True)


def regular_expression(pattern: str, param: str) -> str:
    """Return a regular expression in Lark, which writes it between slashes on one line. Raises APIError."""
    if not _UNITS.fullmatch(pattern):
        raise invalid(f"'{param}' ends within an escape.", param)
    pattern = pattern.removeprefix("^")
    if pattern.endswith("$") and _UNITS.fullmatch(pattern[:-1]):  # it is not escaped
        pattern = pattern[:-1]  # a grammar matches the whole answer
    escapes = {"/": r"\/", "\n": r"\n", "\r": r"\r", "\\\n": r"\n", "\\\r": r"\r"}
    escaped = re.sub(r"\\.|[/\n\r]", lambda found: escapes.get(found[0], found[0]), pattern, flags=re.DOTALL)
    return f"/{escaped}/" if escaped else '""'


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
    """Raise APIError if a tool's parameters describe no object, are too large or too deep, or strict in vain."""
    sizes = [
        check_size(tool.function.parameters, f"tools[{index}].function.parameters") for index, tool in enumerate(tools)
    ]
    if sum(sizes) > MAX_TOOLS_CHARACTERS:
        raise invalid(f"The parameters of all tools must have at most {MAX_TOOLS_CHARACTERS} characters.", "tools")
    for index, tool in enumerate(tools):
        if tool.function.strict:
            _arguments(tool, index)
        check_object(tool.function.parameters or {}, f"tools[{index}].function.parameters")


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_SCHEMA_DEPTH:
        depth += 1
        level = [inner for item in level for inner in inside(item)]
    return depth


def _reference_depth(schema: object) -> int:
    """Return the levels of a schema with its references into itself followed. A reference to a part around it ends."""
    references = References(schema)
    depths: dict[int, int] = {}  # of parts of the schema, by identity; 0 while a part is being visited
    stack = [(schema, False)]
    while stack:
        part, visited = stack.pop()
        targets = references.targets(part) if isinstance(part, dict) else []
        inner = [value for value in (*inside(part), *targets) if isinstance(value, (dict, list))]
        if visited:
            depths[id(part)] = 1 + max((depths.get(id(other), 1) for other in inner), default=0)
        elif id(part) not in depths:
            depths[id(part)] = 0
            stack.append((part, True))
            stack += [(other, False) for other in inner]
    return depths[id(schema)]
