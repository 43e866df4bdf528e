"""Structured output and forced tool calls as grammars, checked before the engine sees them. llguidance reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from server.http.errors import invalid
from server.openai.replies.parsers import THINK_CLOSE
from server.openai.requests.schemas import ResponseFormat, Tool

MAX_SCHEMA_CHARACTERS = 65_536
MAX_SCHEMA_DEPTH = 64
_LARGEST_KEPT = 65_536  # characters of a grammar whose check is remembered
# Some white space is for the model to choose; a bound keeps an unsure one from choosing it for ever.
_OPTIONS = {"whitespace_pattern": r"[ \n\t]{0,20}"}

Marker = Callable[[str], str]  # text that surrounds calls -> how a grammar writes it


def answer_schema(response_format: ResponseFormat | None) -> dict[str, Any] | None:
    """The JSON schema an answer has to follow; None for text. Raises APIError."""
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
    thinks: str | None = None,
) -> str | None:
    """The grammar of an answer: of a schema, of tool calls, or of either; None where it is free.

    `calls` are Lark rules for `calls` (`calls_grammar`); `optional`: an answer by the schema is as good. `thinking`:
    the prompt has opened the reasoning, which comes first and is free; `thinks`: how a grammar writes what opens it, if
    the model may do that itself. Raises APIError naming `param`.
    """
    if schema is not None:
        check_size(schema, param)
    if calls is None and schema is not None and not thinking and thinks is None:
        return _validated(lambda: _library().grammar_from_json_schema(_plain(schema), overrides=_OPTIONS), param)
    rules = [] if calls is None else [calls]
    if schema is not None:
        rules.append(f"answer: {_json(schema)}")
    if not rules:
        return None
    either = "calls" if schema is None else "answer" if calls is None else "(calls | answer)" if optional else "calls"
    before = "think " if thinking else "" if thinks is None else f"({thinks} think)? "
    start = f"start: {before}{either}"
    if before:
        rules.append(f"think[lazy]: /(?s:.*){THINK_CLOSE.replace('/', chr(92) + '/')}/")
    return _validated(lambda: _library().grammar_from_lark("\n".join([start, *rules])), param)


def calls_grammar(kind: str, tools: Sequence[Tool], marker: Marker, *, parallel: bool) -> str:
    """Lark rules for one or, if `parallel`, more calls of these tools in a format of `server.openai.replies.calls`.

    Raises APIError.
    """
    # Their sizes have been checked.
    key = "parameters" if kind == "llama3_json" else "arguments"
    rules = [f"call: {' | '.join(f'call_{index}' for index in range(len(tools)))}"]
    for index, tool in enumerate(tools):
        parameters = tool.function.parameters or _ANY
        begin = json.dumps(f'{{"name": {json.dumps(tool.function.name)}, "{key}": ')
        # A rule of its own: references within the parameters mean the parameters.
        rules += [f'call_{index}: {begin} arguments_{index} "}}"', f"arguments_{index}: {_json(parameters)}"]
    call = "\n".join(rules)
    if kind == "hermes":
        one = f'{marker("<tool_call>")} "\\n" call "\\n" {marker("</tool_call>")}'
        more = f' ("\\n" {one})*' if parallel else ""
        return f"calls: {one}{more}\n{call}"
    if kind == "mistral":
        more = ' (", " call)*' if parallel else ""
        return f'calls: {marker("[TOOL_CALLS]")} "[" call{more} "]"\n{call}'
    more = ' ("; " call)*' if parallel else ""
    return f"calls: call{more}\n{call}"


_ANY: dict[str, Any] = {"type": "object"}


def _json(schema: Mapping[str, Any]) -> str:
    return "%json " + json.dumps(_plain(schema) | {"x-guidance": _OPTIONS})


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Without what the library would take for its own options."""
    return {key: value for key, value in schema.items() if key != "x-guidance"}


def check_size(schema: Any, param: str) -> None:
    """Raises APIError naming `param` for a schema that is too large or too deep."""
    if len(json.dumps(schema)) > MAX_SCHEMA_CHARACTERS:
        raise invalid(f"A schema has at most {MAX_SCHEMA_CHARACTERS} characters.", param)
    if _depth(schema) > MAX_SCHEMA_DEPTH:
        raise invalid(f"A schema is at most {MAX_SCHEMA_DEPTH} levels deep.", param)


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_SCHEMA_DEPTH:
        depth += 1
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
        ]
    return depth


def _library() -> Any:
    from llguidance import LLMatcher  # with the first grammar: requests without one need not wait for it

    return LLMatcher


def _validated(make: Callable[[], str], param: str) -> str:
    try:
        grammar = make()
        complaint = _complaint(grammar)
    except ValueError as error:  # a number that the library cannot take
        complaint = str(error)
    if complaint:
        raise invalid(f"The schema is not supported: {complaint}", param)
    return grammar


def _complaint(grammar: str) -> str:
    return (_known_complaint if len(grammar) <= _LARGEST_KEPT else _new_complaint)(grammar)


def _new_complaint(grammar: str) -> str:
    found = str(_library().validate_grammar(grammar, None))
    return found.partition("\n<state>")[0].strip()


_known_complaint = lru_cache(maxsize=256)(_new_complaint)
