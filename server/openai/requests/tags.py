"""Structural tags: an answer whose parts between given markers have forms of their own, as vLLM and XGrammar write it.

Both notations are read: `{"format": …}`, and the older `{"structures": […], "triggers": […]}`.
"""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, ConfigDict, Field

from engine.api import PromptTokenizer
from server.http.errors import APIError, invalid
from server.openai.requests.bodies import validate
from server.openai.requests.schema import rewritten
from server.openai.requests.schemas import RequestModel
from server.openai.requests.structured import check_size, regular_expression

_TEXT = "/(?s:.*)/"

Marker = Annotated[str, Field(min_length=1)]
Markers = Annotated[list[Marker], Field(min_length=1)]


class _Strict(RequestModel):
    model_config = ConfigDict(extra="forbid")


class ConstString(_Strict):
    type: Literal["const_string"]
    value: str


class JsonSchema(_Strict):
    type: Literal["json_schema"]
    json_schema: dict[str, Any] | Literal[True]


class Regex(_Strict):
    type: Literal["regex"]
    pattern: Marker


class AnyText(_Strict):
    type: Literal["any_text"]
    excludes: list[Marker] = Field(default=[], validation_alias=AliasChoices("excludes", "excluded_str"))


class Sequence_(_Strict):
    type: Literal["sequence"]
    elements: Annotated[list["Format"], Field(min_length=1)]


class Or(_Strict):
    type: Literal["or"]
    elements: Annotated[list["Format"], Field(min_length=1)]


class Tag(_Strict):
    type: Literal["tag"] = "tag"
    begin: str
    content: "Format"
    end: str | Markers


class TriggeredTags(_Strict):
    type: Literal["triggered_tags"]
    triggers: Markers
    tags: Annotated[list[Tag], Field(min_length=1)]
    excludes: list[Marker] = Field(default=[])
    at_least_one: bool = False
    stop_after_first: bool = False


class TagsWithSeparator(_Strict):
    type: Literal["tags_with_separator"]
    tags: Annotated[list[Tag], Field(min_length=1)]
    separator: str
    at_least_one: bool = False
    stop_after_first: bool = False


Format = Annotated[
    ConstString | JsonSchema | Regex | AnyText | Sequence_ | Or | Tag | TriggeredTags | TagsWithSeparator,
    Field(discriminator="type"),
]


class Structure(_Strict):
    begin: Marker
    schema_: dict[str, Any] = Field(alias="schema")
    end: str


class StructuralTag(_Strict):
    type: Literal["structural_tag"] = "structural_tag"
    format: Format


class OlderStructuralTag(_Strict):
    type: Literal["structural_tag"] = "structural_tag"
    structures: Annotated[list[Structure], Field(min_length=1)]
    triggers: Markers


def structural_tag(value: Any, param: str, tokenizer: PromptTokenizer) -> tuple[str, tuple[str, ...]]:
    """Return a structural tag as an expression in Lark with its rules, and the added tokens that it names.

    `value` is an object or its JSON; `param` is its name in the request. Raises APIError.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise invalid(f"'{param}' is not valid JSON.", param) from None
    if not isinstance(value, dict):
        raise invalid(f"'{param}' must be an object.", param)
    check_size(value, param)
    builder = _Builder(tokenizer)
    if "structures" in value:
        older = validate(OlderStructuralTag, value, param)
        tags = [
            Tag(begin=item.begin, content=JsonSchema(type="json_schema", json_schema=item.schema_), end=item.end)
            for item in older.structures
        ]
        triggered = TriggeredTags(type="triggered_tags", triggers=older.triggers, tags=tags)
        paths = [f"{param}.structures[{index}]" for index in range(len(tags))]
        expression = builder.triggered(triggered, paths, f"{param}.triggers", ())
    else:
        expression = builder.expression(validate(StructuralTag, value, param).format, f"{param}.format", ())
    return "\n".join([expression, *builder.rules]), tuple(builder.markers)


class _Builder:
    """Collects rules. In expressions, `ends` are the texts of which one follows; a free text ends at the first."""

    def __init__(self, tokenizer: PromptTokenizer) -> None:
        self._tokenizer = tokenizer
        self.rules: list[str] = []
        self.markers: dict[str, int] = {}  # added tokens that are named, with their ids

    def expression(self, format: Format, path: str, ends: Sequence[str]) -> str:
        """Return an expression of a format and of what follows it. Raises APIError naming a part of `path`."""
        if isinstance(format, AnyText):
            return self._text(ends, format.excludes)
        if isinstance(format, Sequence_):
            return self._sequence(format, path, ends)
        if isinstance(format, Or):
            items = enumerate(format.elements)
            return _either([self.expression(item, f"{path}.elements[{index}]", ends) for index, item in items])
        if isinstance(format, Tag):
            return self._tag(format, path, format.begin, ends)
        if isinstance(format, TriggeredTags):
            paths = [f"{path}.tags[{index}]" for index in range(len(format.tags))]
            return self.triggered(format, paths, f"{path}.triggers", ends)
        if isinstance(format, TagsWithSeparator):
            return f"{self._separated(format, path)} {self._one_of(ends)}"
        return f"{self._leaf(format, path)} {self._one_of(ends)}"

    def _leaf(self, format: ConstString | JsonSchema | Regex, path: str) -> str:
        if isinstance(format, ConstString):
            return self._literal(format.value)
        if isinstance(format, Regex):
            return regular_expression(format.pattern)
        schema = {} if format.json_schema is True else format.json_schema
        check_size(schema, f"{path}.json_schema")
        return self._rule(f"%json {json.dumps(rewritten(schema, f'{path}.json_schema', strict=False))}")

    def _sequence(self, format: Sequence_, path: str, ends: Sequence[str]) -> str:
        *before, last = enumerate(format.elements)
        for index, item in before:
            _check_end(item, f"{path}.elements[{index}]")
        parts = [self.expression(item, f"{path}.elements[{index}]", ()) for index, item in before]
        return " ".join([*parts, self.expression(last[1], f"{path}.elements[{last[0]}]", ends)])

    def _tag(self, tag: Tag, path: str, begin: str, ends: Sequence[str]) -> str:
        """Return an expression of a tag of which `begin` is still to come, and of what follows it."""
        if tag.end == "":
            return f"{self._literal(begin)} {self.expression(tag.content, f'{path}.content', ends)}"
        own = [tag.end] if isinstance(tag.end, str) else tag.end
        content = self.expression(tag.content, f"{path}.content", own)
        return f"{self._literal(begin)} {content} {self._one_of(ends)}"

    def triggered(self, format: TriggeredTags, paths: Sequence[str], triggers: str, ends: Sequence[str]) -> str:
        """Return an expression of free text with tags, and of what follows it.

        `paths` are the names of the tags in the request, and `triggers` that of the triggers.
        """
        heads: dict[str, list[str]] = {}  # start of a tag, at which the free text ends → rules of the rest
        for tag, path in zip(format.tags, paths, strict=True):
            _check_end(tag, path)
            found = [trigger for trigger in format.triggers if tag.begin.startswith(trigger)]
            if len(found) != 1:
                raise invalid(f"Exactly one of 'triggers' must be the start of '{path}.begin'.", f"{path}.begin")
            cut = self._boundary(tag.begin, len(found[0]))
            rest = self._rule(self._tag(tag, path, tag.begin[cut:], ()))
            heads.setdefault(tag.begin[:cut], []).append(rest)
        for index, trigger in enumerate(format.triggers):
            if not any(head.startswith(trigger) for head in heads):
                raise invalid(f"No tag begins with the trigger {trigger!r:.80}.", f"{triggers}[{index}]")
        tags = _either([f"{self._literal(head)} {_either(rests)}" for head, rests in heads.items()])
        later = _either([f"{self._text([head], format.excludes)} {_either(rests)}" for head, rests in heads.items()])
        after, text = self._one_of(ends), self._text(ends, format.excludes)
        if format.stop_after_first:
            return f"{tags} {after}" if format.at_least_one else _either([f"{later} {after}", text])
        return f"{tags if format.at_least_one else ''} {later}* {text}"

    def _separated(self, format: TagsWithSeparator, path: str) -> str:
        tags = []
        for index, item in enumerate(format.tags):
            _check_end(item, f"{path}.tags[{index}]")
            tags.append(self._tag(item, f"{path}.tags[{index}]", item.begin, ()))
        tag = self._rule(_either(tags))
        more = "" if format.stop_after_first else f"({self._literal(format.separator)} {tag})*"
        return f"({tag} {more}){'' if format.at_least_one else '?'}"

    def _text(self, ends: Sequence[str], excludes: Sequence[str]) -> str:
        """Return an expression of a free text and of its end, which is the first occurrence of one of `ends`."""
        without = f" & ~({_TEXT} {_either([json.dumps(text) for text in excludes])} {_TEXT})" if excludes else ""
        if not ends:
            return self._rule(self._terminal(_TEXT + without))
        found = []
        for end in ends:
            first = self._pieces(end)[0]
            if first in self.markers:
                found.append(f"{self._rule(self._terminal(_TEXT + without))} {self._literal(end)}")
            else:
                lazy = self._rule(self._terminal(f"({_TEXT} {json.dumps(first)}){without}"), "[lazy]")
                found.append(f"{lazy} {self._literal(end[len(first) :])}")
        return _either(found)

    def _one_of(self, texts: Sequence[str]) -> str:
        return _either([self._literal(text) for text in texts]) if texts else ""

    def _literal(self, text: str) -> str:
        """Return an expression of exactly this text, with added tokens by their ids."""
        pieces = self._pieces(text)
        return " ".join(f"<[{self.markers[p]}]>" if p in self.markers else json.dumps(p) for p in pieces)

    def _pieces(self, text: str) -> list[str]:
        """Divide a text into added tokens, which it adds to `markers`, and what is between them."""
        pieces, start = [], 0
        for token in self._tokenizer.encode(text, add_special_tokens=False) if text else ():
            name = self._tokenizer.token_bytes(token).decode(errors="replace")
            position = text.find(name, start) if self._tokenizer.added_token_id(name) == token else -1
            if position >= 0:
                self.markers[name] = token
                pieces += [text[start:position], name]
                start = position + len(name)
        return [piece for piece in (*pieces, text[start:]) if piece]

    def _boundary(self, text: str, least: int) -> int:
        """Return the first position in a text from `least` on that does not divide an added token."""
        position = 0
        for piece in self._pieces(text):
            if position + len(piece) > least and (piece not in self.markers or position == least):
                return least
            position += len(piece)
            if position >= least:
                break
        return position

    def _rule(self, body: str, attribute: str = "") -> str:
        name = f"tag_{len(self.rules)}"
        self.rules.append(f"{name}{attribute}: {body}")
        return name

    def _terminal(self, body: str) -> str:
        name = f"TAG_{len(self.rules)}"
        self.rules.append(f"{name}: {body}")
        return name


def _either(expressions: Sequence[str]) -> str:
    return f"({' | '.join(expressions)})"


def _check_end(format: Format, path: str) -> None:
    """Raise APIError if a format that something follows can be a free text without an end."""
    if error := _endless(format, path):
        raise error


def _endless(format: Format, path: str) -> APIError | None:
    if isinstance(format, AnyText) or (
        isinstance(format, TriggeredTags) and not (format.at_least_one and format.stop_after_first)
    ):
        return invalid(f"'{path}' has no end: it must come last in its tag or in the answer.", path)
    if isinstance(format, Or):
        found = (_endless(item, f"{path}.elements[{index}]") for index, item in enumerate(format.elements))
        return next(filter(None, found), None)
    if isinstance(format, Sequence_):
        return _endless(format.elements[-1], f"{path}.elements[{len(format.elements) - 1}]")
    if isinstance(format, Tag) and format.end == "":
        return _endless(format.content, f"{path}.content")
    return None
