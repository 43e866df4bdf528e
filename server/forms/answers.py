"""What an answer must match: a JSON schema, a regular expression, one of some texts, or a grammar."""

import json

from engine.api import PromptTokenizer
from server.conversation import Form
from server.edge.errors import invalid
from server.edge.reading import read_field
from server.forms.grammar import Answer, check_characters, check_size, regular_expression
from server.forms.schema import rewritten
from server.forms.tags import structural_tag


def answer_of(form: Form | None, tokenizer: PromptTokenizer) -> Answer | None:
    """Return what the answer must match, or None for text. Raises APIError."""
    if form is None:
        return None
    kind, value, param = form.kind, form.value, form.path
    if kind == "structural_tag":
        return structural_tag(value, param, tokenizer)
    if kind in ("json", "json_object"):
        schema = read_field(value, param) if kind == "json" else {"type": "object"}
        check_size(schema, param)
        return Answer(param, expression=f"%json {json.dumps(rewritten(schema, param, strict=form.strict))}")
    if kind == "choice":
        if not isinstance(value, list) or not value or not all(isinstance(text, str) and text for text in value):
            raise invalid(f"'{param}' must be a list of texts that are not empty.", param)
        check_characters(sum(map(len, value)), param)
        # A grammar's text has no U+007F, which JSON's may have.
        texts = [json.dumps(text, ensure_ascii=False).replace("\x7f", r"\u007f") for text in value]
        return Answer(param, expression=" | ".join(texts))
    if not isinstance(value, str) or not value:
        raise invalid(f"'{param}' must be a text that is not empty.", param)
    check_characters(len(value), param)
    if kind == "grammar":
        return Answer(param, grammar=value)
    return Answer(param, expression=regular_expression(value, param))
