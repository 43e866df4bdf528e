"""Structural tags of XGrammar and vLLM: answers whose parts between given markers have forms of their own."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from engine.api import PromptTokenizer
from server.edge.errors import invalid
from server.edge.reading import read_field, validate
from server.forms import tag_formats
from server.forms.grammar import Answer, check_size, regular_expression
from server.forms.schema import rewritten

MAX_GRAMMAR_CHARACTERS = 2**18

_TEXT = "/(?s:.*)/"


@dataclass(frozen=True, slots=True)
class _Ends:
    """The texts of which one follows a format; none at the end of the answer."""

    one: str = ""  # expression that matches any of these texts
    plain: str = ""  # terminal that matches any text without added tokens
    marked: tuple[str, ...] = ()  # texts with added tokens
    unknown: bool = False  # what follows is no fixed text, so that a free text would not end


_UNKNOWN = _Ends(unknown=True)


def structural_tag(value: Any, param: str, tokenizer: PromptTokenizer) -> Answer:
    """Return the answer that a structural tag describes.

    `value` is an object or its JSON; `param` is its name in the request. Raises APIError.
    """
    value = read_field(value, param)
    check_size(value, param)
    builder = _Builder(tokenizer, param)
    format = validate(tag_formats.StructuralTag, tag_formats.newer(value), param).format
    expression = builder.expression(format, f"{param}.format", _Ends())
    return Answer(param, "\n".join([expression, *builder.rules]), markers=tuple(builder.markers))


class _Builder:
    """Collects rules.

    A free text ends at the first of the texts that may follow it. Added tokens are no text in a grammar: they are
    forced by their ids, and a free text ends before them in any case.
    """

    def __init__(self, tokenizer: PromptTokenizer, param: str) -> None:
        self._tokenizer, self._param = tokenizer, param
        self._names: dict[tuple[str, str], str] = {}  # names of rules, by attributes and body
        self._size = 0
        self.rules: list[str] = []
        self.markers: dict[str, int] = {}  # added tokens that are named, with their ids

    def expression(self, format: tag_formats.Format, path: str, ends: _Ends) -> str:
        """Return an expression of a format and of what follows it. Raises APIError naming a part of `path`."""
        match format:
            case tag_formats.AnyText():
                return self._until(self._free_text(format.excludes, path, ends), ends)
            case tag_formats.ConstString():
                return f"{self._literal(format.value)} {ends.one}"
            case tag_formats.Regex():
                return self._until(regular_expression(format.pattern, f"{path}.pattern"), ends)
            case tag_formats.JsonSchema():
                if format.style != "json":
                    raise invalid(f"'{path}.style' must be 'json'.", f"{path}.style")
                return f"{self._schema(format.json_schema, f'{path}.json_schema')} {ends.one}"
            case tag_formats.Combined():
                items = [(item, f"{path}.elements[{index}]") for index, item in enumerate(format.elements)]
                if format.type == "sequence":
                    return self._sequence(items, ends)
                return _alternatives(self.expression(*item, ends) for item in items)
            case tag_formats.Tag():
                return f"{self._literal(format.begin)} {self._inside(format, path, ends)}"
            case tag_formats.TriggeredTags():
                return self._triggered(format, path, ends)
            case tag_formats.TagsWithSeparator():
                tags = (self.expression(tag, f"{path}.tags[{i}]", _UNKNOWN) for i, tag in enumerate(format.tags))
                tag = self._rule(_alternatives(tags))
                more = "" if format.stop_after_first else f"({self._literal(format.separator)} {tag})*"
                return f"({tag} {more}){'' if format.at_least_one else '?'} {ends.one}"

    def _triggered(self, format: tag_formats.TriggeredTags, path: str, ends: _Ends) -> str:
        """Return an expression of free text with tags, and of what follows it. Raises APIError naming a part."""
        rests: dict[str, list[str]] = {}  # beginning that ends the free text → rests of its tags
        for index, tag in enumerate(format.tags):
            name = f"{path}.tags[{index}]"
            head, begin = self._divided(tag.begin, format.triggers, f"{name}.begin")
            rest = f"{self._literal(begin)} {self._inside(tag, name, _UNKNOWN)}"
            rests.setdefault(head, []).append(self._rule(rest))
        for index, trigger in enumerate(format.triggers):
            param = f"{path}.triggers[{index}]"
            if not any(head.startswith(trigger) for head in rests):
                raise invalid(f"No tag begins with the trigger {trigger!r:.80}.", param)
            if any(trigger in other and not other.startswith(trigger) for other in format.triggers):
                raise invalid(f"The trigger {trigger!r:.80} is a part of another one.", param)
        groups = {head: _alternatives(rules) for head, rules in rests.items()}
        first = _alternatives(f"{self._literal(head)} {rest}" for head, rest in groups.items())
        if format.at_least_one and format.stop_after_first:
            return f"{first} {ends.one}"
        text = self._free_text(format.excludes, path, ends)
        later = _alternatives(f"{self._until(text, self._ends([head]))} {rest}" for head, rest in groups.items())
        if format.stop_after_first:
            return _alternatives([f"{later} {ends.one}", self._until(text, ends)])
        return f"{first if format.at_least_one else ''} {later}* {self._until(text, ends)}"

    def _schema(self, schema: Any, param: str) -> str:
        if isinstance(schema, bool):
            schema = {} if schema else {"not": {}}
        check_size(schema, param)
        # A rule of its own, because references within the schema are relative to it.
        return self._rule(f"%json {json.dumps(rewritten(schema, param))}")

    def _sequence(self, items: Sequence[tuple[tag_formats.Format, str]], ends: _Ends) -> str:
        """Return an expression of a sequence. Regular elements in a row become one terminal."""
        parts = []
        for regular, group in groupby(items, lambda item: self._is_regular(item[0])):
            run = [*group]
            after = ends if run[-1] is items[-1] else _UNKNOWN
            if regular:
                parts.append(self._until(" ".join(_regular(*item) for item in run), after))
            else:
                parts += [self.expression(*item, _UNKNOWN) for item in run[:-1]]
                parts.append(self.expression(*run[-1], after))
        return " ".join(parts)

    def _is_regular(self, format: tag_formats.Format) -> bool:
        return isinstance(format, tag_formats.Regex) or (
            isinstance(format, tag_formats.ConstString) and self._is_plain(format.value)
        )

    def _is_plain(self, text: str) -> bool:
        """Whether a text has no added tokens."""
        return self.markers.keys().isdisjoint(self._pieces(text))

    def _inside(self, tag: tag_formats.Tag, path: str, ends: _Ends) -> str:
        """Return an expression of a tag after its beginning, and of what follows it."""
        if tag.end == "":
            return self.expression(tag.content, f"{path}.content", ends)
        own = self._ends([tag.end] if isinstance(tag.end, str) else tag.end)
        return f"{self.expression(tag.content, f'{path}.content', own)} {ends.one}"

    def _divided(self, begin: str, triggers: Sequence[str], param: str) -> tuple[str, str]:
        """Divide the beginning of a tag after its trigger, but not within an added token."""
        found = [trigger for trigger in triggers if begin.startswith(trigger)]
        if len(found) != 1:
            raise invalid(f"Exactly one of 'triggers' must be the start of '{param}'.", param)
        cut = len(found[0])
        position = 0
        for piece in self._pieces(begin):
            if position < cut < position + len(piece) and piece in self.markers:
                cut = position + len(piece)
            position += len(piece)
        return begin[:cut], begin[cut:]

    @staticmethod
    def _free_text(excludes: Sequence[str], path: str, ends: _Ends) -> str:
        """Return the body of a terminal: any text without some. Raises APIError if nothing ends it."""
        if ends.unknown:
            raise invalid(f"'{path}' has no end: it must come last in its tag or in the answer.", path)
        if not excludes:
            return _TEXT
        return f"({_TEXT} & ~({_TEXT} {_alternatives(map(json.dumps, excludes))} {_TEXT}))"

    def _ends(self, texts: Sequence[str]) -> _Ends:
        plain = [json.dumps(text) for text in texts if self._is_plain(text)]
        return _Ends(
            one=self._rule(_alternatives(map(self._literal, texts))),
            plain=self._rule(_alternatives(plain), terminal=True) if plain else "",
            marked=tuple(text for text in texts if not self._is_plain(text)),
        )

    def _until(self, body: str, ends: _Ends) -> str:
        """Return an expression of a terminal with this `body`, and of the first text that may follow."""
        if not ends.one:
            return self._rule(body, terminal=True)
        found = [self._rule(self._rule(f"{body} {ends.plain}", terminal=True), "[lazy]")] if ends.plain else []
        for end in ends.marked:
            first, *_ = self._pieces(end)
            # A text before the added token may also occur earlier, so it belongs to the same terminal.
            before = "" if first in self.markers else first
            terminal = self._rule(f"{body} {json.dumps(before)}" if before else body, terminal=True)
            found.append(f"{terminal} {self._literal(end[len(before) :])}")
        return self._rule(_alternatives(found))

    def _literal(self, text: str) -> str:
        """Return an expression of exactly this text."""
        return " ".join(f"<[{self.markers[p]}]>" if p in self.markers else json.dumps(p) for p in self._pieces(text))

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

    def _rule(self, body: str, attributes: str = "", *, terminal: bool = False) -> str:
        """Add a rule or a terminal if it is new, and return its name. Raises APIError if there are too many."""
        key = ("terminal" if terminal else attributes, body)
        if key not in self._names:
            name = f"{'TAG' if terminal else 'tag'}_{len(self._names)}"
            self._names[key] = name
            self.rules.append(f"{name}{attributes}: {body}")
            self._size += len(self.rules[-1])
            if self._size > MAX_GRAMMAR_CHARACTERS:
                raise invalid(
                    f"'{self._param}' needs a grammar of more than {MAX_GRAMMAR_CHARACTERS} characters.", self._param
                )
        return self._names[key]


def _regular(format: tag_formats.Format, path: str) -> str:
    if isinstance(format, tag_formats.Regex):
        return regular_expression(format.pattern, f"{path}.pattern")
    assert isinstance(format, tag_formats.ConstString)
    return json.dumps(format.value)


def _alternatives(expressions: Iterable[str]) -> str:
    return f"({' | '.join(expressions)})"
