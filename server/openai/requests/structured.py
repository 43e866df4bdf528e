"""Grammars of structured output and forced tool calls, for llguidance, validated before the engine gets them."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from server.http.errors import invalid
from server.openai.replies.parsers import THINK_CLOSE
from server.openai.requests.schemas import ResponseFormat, Tool

MAX_SCHEMA_CHARACTERS = 65_536
MAX_SCHEMA_DEPTH = 64
_MAX_CACHED = 65_536  # characters of a grammar whose validation is cached
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
        return _validated_grammar(
            lambda: _matcher().grammar_from_json_schema(_without_options(schema), overrides=_GUIDANCE_OPTIONS), param
        )
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
    return _validated_grammar(lambda: _matcher().grammar_from_lark("\n".join([start, *rules])), param)


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
    return "%json " + json.dumps(_without_options(schema) | {"x-guidance": _GUIDANCE_OPTIONS})


def _without_options(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the key that llguidance reads as its own options."""
    return {key: value for key, value in schema.items() if key != "x-guidance"}


def check_size(schema: Mapping[str, Any] | None, param: str) -> None:
    """Raise APIError naming `param` if a schema is too large or too deep."""
    if len(json.dumps(schema)) > MAX_SCHEMA_CHARACTERS:
        raise invalid(f"The schema must have at most {MAX_SCHEMA_CHARACTERS} characters.", param)
    if _depth(schema) > MAX_SCHEMA_DEPTH:
        raise invalid(f"The schema must be at most {MAX_SCHEMA_DEPTH} levels deep.", param)


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


def _matcher() -> Any:
    from llguidance import LLMatcher  # imported with the first grammar, as it takes a while

    return LLMatcher


def _validated_grammar(make: Callable[[], str], param: str) -> str:
    try:
        grammar = make()
        reason = (_cached_error if len(grammar) <= _MAX_CACHED else _grammar_error)(grammar)
    except ValueError as error:  # a number that llguidance cannot represent
        reason = str(error)
    if reason:
        raise invalid(f"The schema is not supported: {reason}", param)
    return grammar


def _grammar_error(grammar: str) -> str:
    message = str(_matcher().validate_grammar(grammar, None))
    return message.partition("\n<state>")[0].strip()


_cached_error = lru_cache(maxsize=256)(_grammar_error)
