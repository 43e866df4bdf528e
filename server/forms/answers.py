"""What an answer must match: a JSON schema, a regular expression, one of some texts, or a grammar."""

import json
from collections.abc import Mapping
from typing import Any

from engine.api import PromptTokenizer
from server.conversation import Form
from server.edge.errors import invalid
from server.edge.reading import read_field
from server.forms.grammar import MAX_SCHEMA_CHARACTERS, Answer, check_size, regular_expression
from server.forms.schema import rewritten
from server.forms.tags import structural_tag


def answer_of(form: Form | None, tokenizer: PromptTokenizer) -> Answer | None:
    """Return what the answer must match, or None for text. Raises APIError."""
    if form is None:
        return None
    if form.kind == "structural_tag":
        return structural_tag(form.value, form.path, tokenizer)
    return _answer(form.path, form.kind, form.value, strict=form.strict)


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
    return Answer(param, expression=f"%json {json.dumps(rewritten(schema, param, strict=strict))}")


def _check_size(characters: int, param: str) -> None:
    if characters > MAX_SCHEMA_CHARACTERS:
        raise invalid(f"'{param}' must have at most {MAX_SCHEMA_CHARACTERS} characters.", param)
