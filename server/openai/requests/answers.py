"""What an answer must match: a JSON schema, a regular expression, one of some texts, or a grammar.

OpenAI's `response_format` asks for it, vLLM's `structured_outputs` and its older `guided_*`, and llama.cpp's `grammar`
and `json_schema`.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.api import PromptTokenizer
from server.http.errors import invalid
from server.openai.requests.bodies import read_field
from server.openai.requests.schema import rewritten
from server.openai.requests.schemas import GenerationRequest
from server.openai.requests.structured import MAX_SCHEMA_CHARACTERS, check_size, regular_expression
from server.openai.requests.tags import structural_tag

_SATISFIED = ("disable_any_whitespace", "disable_fallback")  # options of vLLM that hold here in any case
_KINDS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")


@dataclass(frozen=True, slots=True)
class Answer:
    """The form of an answer: either an `expression` in Lark, or a whole `grammar`, in Lark or GBNF."""

    param: str  # name of the field that asks for it
    expression: str = ""  # further lines are the rules that it uses
    grammar: str = ""
    schema: Mapping[str, Any] | None = None  # that `expression` stands for
    markers: tuple[str, ...] = ()  # added tokens that the answer has in its text


def answer_of(request: GenerationRequest, tokenizer: PromptTokenizer) -> Answer | None:
    """Return what the answer must match, or None for text. Raises APIError, also for several forms."""
    asked = [*_asked(request)]
    if any(kind == "json" for _, kind, _ in asked):  # a schema says more than that the answer is an object
        asked = [form for form in asked if form[1] != "json_object"]
    if len(asked) > 1:
        names = ", ".join(f"'{param}'" for param, _, _ in asked)
        raise invalid(f"An answer can have one form only, but {names} ask for one each.", asked[1][0])
    if not asked:
        return None
    param, kind, value = asked[0]
    if kind == "structural_tag":
        expression, markers = structural_tag(value, param, tokenizer)
        return Answer(param, expression, markers=markers)
    return _answer(param, kind, value, strict=_is_strict(request))


def _is_strict(request: GenerationRequest) -> bool:
    format = request.response_format
    return format is not None and format.json_schema is not None and format.json_schema.strict is True


def _asked(request: GenerationRequest) -> Iterator[tuple[str, str, Any]]:
    """Yield the names of fields that ask for a form, with its kind and value."""
    format = request.response_format
    if format is not None and format.type == "json_object":
        yield "response_format", "json_object", True
    if format is not None and format.type == "json_schema":
        if format.json_schema is None:
            raise invalid("Missing required parameter: 'response_format.json_schema'.", "response_format.json_schema")
        yield "response_format", "json", format.json_schema.schema_
    if format is not None and format.type == "structural_tag":
        yield "response_format", "structural_tag", format.model_dump(exclude_unset=True)
    for name, value in (request.structured_outputs or {}).items():
        if value is None or value is False or name in _SATISFIED:
            continue
        if name not in _KINDS:
            raise invalid(
                f"'structured_outputs' may have {', '.join(_KINDS)}, but not {name!r:.80}.", "structured_outputs"
            )
        yield f"structured_outputs.{name}", name, value
    older = {
        "guided_json": ("json", request.guided_json),
        "guided_regex": ("regex", request.guided_regex),
        "guided_choice": ("choice", request.guided_choice),
        "guided_grammar": ("grammar", request.guided_grammar),
        "structural_tag": ("structural_tag", request.structural_tag),
        "json_schema": ("json", request.json_schema),
        "grammar": ("grammar", request.grammar or None),
    }
    for name, (kind, value) in older.items():
        if value is not None:
            yield name, kind, value


def _answer(param: str, kind: str, value: Any, *, strict: bool) -> Answer:
    if kind == "json_object":
        return _by_schema({"type": "object"}, param, strict=False)
    if kind == "json":
        return _by_schema(read_field(value, param), param, strict=strict)
    if kind == "choice":
        if not isinstance(value, list) or not value or not all(isinstance(text, str) and text for text in value):
            raise invalid(f"'{param}' must be a list of texts that are not empty.", param)
        _check_size(sum(map(len, value)), param)
        # A grammar's text has no U+007F, which JSON's may have.
        texts = [json.dumps(text, ensure_ascii=False).replace("\x7f", r"\u007f") for text in value]
        return Answer(param, expression=" | ".join(texts))
    if not isinstance(value, str) or not value:
        raise invalid(f"'{param}' must be a text that is not empty.", param)
    _check_size(len(value), param)
    if kind == "grammar":
        return Answer(param, grammar=value)
    return Answer(param, expression=regular_expression(value, param))


def _by_schema(schema: Mapping[str, Any], param: str, *, strict: bool) -> Answer:
    check_size(schema, param)
    found = rewritten(schema, param, strict=strict)
    return Answer(param, expression=f"%json {json.dumps(found)}", schema=found)


def _check_size(characters: int, param: str) -> None:
    if characters > MAX_SCHEMA_CHARACTERS:
        raise invalid(f"'{param}' must have at most {MAX_SCHEMA_CHARACTERS} characters.", param)
