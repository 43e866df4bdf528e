"""Grammars of structured output and forced tool calls, for llguidance. The engine compiles them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from server.conversation import THINK_CLOSE, Tool
from server.edge.errors import invalid
from server.forms.keywords import COMBINING
from server.forms.references import inside
from server.forms.schema import check_object, rewritten
from server.tool_formats import ToolFormat

MAX_SCHEMA_CHARACTERS = 65_536
MAX_TOOLS_CHARACTERS = 262_144  # all tools together
MAX_SCHEMA_DEPTH = 64

_NO_PARAMETERS = {"type": "object", "properties": {}, "additionalProperties": False}
# Keywords that allow or demand properties which `properties` does not name.
_FURTHER_PROPERTIES = {"additionalProperties", "patternProperties", "required", "minProperties"} | COMBINING

_UNITS = re.compile(r"(?:\\.|[^\\])*", re.DOTALL)  # matches a regular expression without an unfinished escape

MarkerNotation = Callable[[str], str]  # text of a marker → its notation in a grammar


@dataclass(frozen=True, slots=True)
class Answer:
    """The form of an answer: either an `expression` in Lark, or a whole `grammar`, in Lark or GBNF."""

    param: str  # name of the field that asks for it
    expression: str = ""  # its further lines are rules
    grammar: str = ""
    markers: tuple[str, ...] = ()  # added tokens that are part of the answer's text


def grammar_of(answer: Answer | None, calls: str | None, *, thought: str = "", think_close: str = "") -> str | None:
    """Return the grammar of an answer, of tool calls, or of either; None for free text.

    `calls` are Lark rules that define `calls` (`tool_call_grammar`). `thought` is an expression of what may come first;
    in it, `think` is free text up to the closing tag, whose notation is `think_close`.
    """
    if answer is not None and answer.grammar:
        return answer.grammar
    rules = {}
    if calls is not None:
        rules["calls"] = calls
    if answer is not None:
        rules["answer"] = f"answer: {answer.expression}"
    if not rules:
        return None
    start = "(calls | answer)" if len(rules) == 2 else next(iter(rules))
    if not thought:
        return "\n".join([f"start: {start}", *rules.values()])
    return "\n".join([f"start: {thought} {start}", *rules.values(), _thoughts(think_close)])


def _thoughts(close: str) -> str:
    """Return a rule of free text up to the closing tag."""
    if close.startswith("<["):  # the tag is a token, which is no text in a grammar
        return f"think: /(?s:.*)/ {close}"
    escaped = THINK_CLOSE.replace("/", r"\/")
    return f"think[lazy]: /(?s:.*){escaped}/"


def tool_call_grammar(format: ToolFormat, tools: Sequence[Tool], marker: MarkerNotation, *, parallel: bool) -> str:
    """Return Lark rules for a call of these tools, or several if `parallel`.

    The caller has called `check_tools`. Raises APIError.
    """
    rules = [f"call: {' | '.join(f'call_{index}' for index in range(len(tools)))}"]
    first: dict[str, int] = {}  # the first tool that has these parameters
    for index, tool in enumerate(tools):
        parameters = json.dumps(_arguments(tool))
        prefix = json.dumps(f'{{"name": {json.dumps(tool.name)}, "{format.arguments_key}": ')
        # A separate rule, because references within the parameters are relative to them.
        if first.setdefault(parameters, index) == index:
            rules.append(f"arguments_{index}: %json {parameters}")
        rules.append(f'call_{index}: {prefix} arguments_{first[parameters]} "}}"')
    more = f" ({json.dumps(format.separator)} {format.item})*" if parallel else ""
    calls = format.calls.format(format.item + more)
    for mark in format.marks:
        calls = calls.replace(mark, marker(mark))
    return "\n".join([f"calls: {calls}", *rules])


def _arguments(tool: Tool) -> dict[str, Any]:
    """Return the schema of a tool's arguments for a grammar. Raises APIError."""
    parameters = tool.parameters
    further = {name for name, value in (parameters or {}).items() if value not in ([], False, 0)}
    if parameters is None or (parameters.get("properties") == {} and not further & _FURTHER_PROPERTIES):
        parameters = _NO_PARAMETERS
    return rewritten(parameters, tool.parameters_path, strict=tool.strict is True, arguments=True)


def regular_expression(pattern: str, param: str) -> str:
    """Return a regular expression in Lark, which writes it between slashes on one line. Raises APIError."""
    if not _UNITS.fullmatch(pattern):
        raise invalid(f"'{param}' ends within an escape.", param)
    pattern = pattern.removeprefix("^")
    if pattern.endswith("$") and _UNITS.fullmatch(pattern[:-1]):  # the anchor is not escaped
        pattern = pattern[:-1]  # a grammar matches the whole answer
    escapes = {"/": r"\/", "\n": r"\n", "\r": r"\r", "\\\n": r"\n", "\\\r": r"\r"}
    escaped = re.sub(r"\\.|[/\n\r]", lambda found: escapes.get(found[0], found[0]), pattern, flags=re.DOTALL)
    return f"/{escaped}/" if escaped else '""'


def check_characters(characters: int, param: str) -> int:
    """Return the characters of a form. Raises APIError naming `param` if they are too many."""
    if characters > MAX_SCHEMA_CHARACTERS:
        raise invalid(f"'{param}' must have at most {MAX_SCHEMA_CHARACTERS} characters.", param)
    return characters


def check_size(schema: Mapping[str, Any] | None, param: str) -> int:
    """Return a schema's characters. Raises APIError naming `param` if it is too large or too deep."""
    size = check_characters(len(json.dumps(schema)), param)
    if _depth(schema) > MAX_SCHEMA_DEPTH:
        raise invalid(f"The schema must be at most {MAX_SCHEMA_DEPTH} levels deep.", param)
    return size


def check_tools(tools: Sequence[Tool]) -> None:
    """Raise APIError if a tool's parameters describe no object, are too large or too deep, or strict in vain."""
    sizes = [check_size(tool.parameters, tool.parameters_path) for tool in tools]
    if sum(sizes) > MAX_TOOLS_CHARACTERS:
        raise invalid(f"The parameters of all tools must have at most {MAX_TOOLS_CHARACTERS} characters.", "tools")
    for tool in tools:
        if tool.strict:
            _arguments(tool)
        check_object(tool.parameters or {}, tool.parameters_path)


def _depth(part: object) -> int:
    """Return the levels of lists and objects within each other. JSON that was read has at most some hundred."""
    return 1 + max(map(_depth, inside(part)), default=0) if isinstance(part, (dict, list)) else 0
