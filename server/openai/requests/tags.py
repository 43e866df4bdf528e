"""Structural tags of XGrammar and vLLM: answers whose parts between given markers have forms of their own."""

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from engine.api import PromptTokenizer
from server.edge.errors import invalid
from server.edge.reading import read_field, validate
from server.openai.requests.schema import rewritten
from server.openai.requests.structured import check_size, regular_expression
from server.openai.requests.tag_formats import (
    AnyText,
    ConstString,
    Format,
    JsonSchema,
    OlderStructuralTag,
    OneOf,
    Regex,
    SequenceOf,
    StructuralTag,
    Tag,
    TagsWithSeparator,
    TriggeredTags,
)

MAX_GRAMMAR_CHARACTERS = 2**18

_TEXT = "/(?s:.*)/"
_END_OF_ANSWER: tuple[str, ...] = ()

# The texts of which one follows a format. None: what follows is no fixed text, so a free text would not end.
Following = tuple[str, ...] | None


def structural_tag(value: Any, param: str, tokenizer: PromptTokenizer) -> tuple[str, tuple[str, ...]]:
    """Return a structural tag as an expression in Lark with its rules, and the added tokens that it names.

    `value` is an object or its JSON; `param` is its name in the request. Raises APIError.
    """
    value = read_field(value, param)
    check_size(value, param)
    builder = _Builder(tokenizer, param)
    if "structures" in value:
        older = validate(OlderStructuralTag, value, param)
        expression = builder.older(older, param)
    else:
        format = validate(StructuralTag, value, param).format
        expression = builder.expression(format, f"{param}.format", _END_OF_ANSWER)
    return "\n".join([expression, *builder.rules]), tuple(builder.markers)


class _Builder:
    """Collects rules.

    In expressions, a free text ends at the first of the texts that may follow it. Added tokens are forced by their
    ids: they are no text, so a free text ends before them in any case.
    """

    def __init__(self, tokenizer: PromptTokenizer, param: str) -> None:
        self._tokenizer, self._param = tokenizer, param
        self._names: dict[tuple[str, str], str] = {}  # rules by their attributes and bodies
        self._size = 0
        self._pieces_of: dict[str, list[str]] = {}
        self._ends_of: dict[tuple[str, ...], tuple[str, list[str]]] = {}
        self._untils: dict[tuple[str, Following], str] = {}  # rules of `_until`, and of `_one_of` without a body
        self.rules: list[str] = []
        self.markers: dict[str, int] = {}  # added tokens that are named, with their ids

    def expression(self, format: Format, path: str, following: Following) -> str:
        """Return an expression of a format and of what follows it. Raises APIError naming a part of `path`."""
        match format:
            case AnyText():
                return self._until(self._free_text(format.excludes, path, following), following)
            case ConstString():
                return f"{self._literal(format.value)} {self._one_of(following)}"
            case Regex():
                return self._until(regular_expression(format.pattern, f"{path}.pattern"), following)
            case JsonSchema():
                if format.style != "json":
                    raise invalid(f"'{path}.style' must be 'json'.", f"{path}.style")
                return f"{self._schema(format.json_schema, f'{path}.json_schema')} {self._one_of(following)}"
            case SequenceOf():
                return self._sequence(format.elements, path, following)
            case OneOf():
                items = enumerate(format.elements)
                return _alternatives(self.expression(item, f"{path}.elements[{i}]", following) for i, item in items)
            case Tag():
                begin = self._literal(format.begin)
                return f"{begin} {self._inside(format.content, f'{path}.content', format.end, following)}"
            case TriggeredTags():
                rests = []  # of each tag, after the start that ends the free text
                for index, tag in enumerate(format.tags):
                    name = f"{path}.tags[{index}]"
                    head, begin = self._divided(tag.begin, format.triggers, f"{name}.begin")
                    inside = self._inside(tag.content, f"{name}.content", tag.end, None)
                    rests.append((head, f"{self._literal(begin)} {inside}"))
                return self._triggered(format, rests, path, following)
            case TagsWithSeparator():
                return f"{self._separated(format, path)} {self._one_of(following)}"

    def older(self, format: OlderStructuralTag, path: str) -> str:
        """Return an expression of free text with tags."""
        rests = []
        for index, item in enumerate(format.structures):
            name = f"{path}.structures[{index}]"
            head, begin = self._divided(item.begin, format.triggers, f"{name}.begin")
            schema = self._schema(item.schema_, f"{name}.schema")
            rests.append((head, f"{self._literal(begin)} {schema} {self._literal(item.end)}"))
        triggered = TriggeredTags.model_construct(triggers=format.triggers)  # its tags are those of `rests`
        return self._triggered(triggered, rests, path, _END_OF_ANSWER)

    def _schema(self, schema: Any, param: str) -> str:
        if isinstance(schema, bool):
            schema = {} if schema else {"not": {}}
        check_size(schema, param)
        # A rule of its own, because references within the schema are relative to it.
        return self._rule(f"%json {json.dumps(rewritten(schema, param, strict=False))}")

    def _sequence(self, elements: Sequence[Format], path: str, following: Following) -> str:
        """Return an expression of elements in a row. Regular ones become one, as each alone would take all it can."""
        runs = [[*run] for _, run in groupby(enumerate(elements), lambda item: self._is_regular(item[1]))]
        parts = []
        for run in runs:
            after = following if run is runs[-1] else None
            if any(isinstance(item, Regex) for _, item in run):
                parts.append(
                    self._until(" ".join(self._regular(item, f"{path}.elements[{i}]") for i, item in run), after)
                )
            else:
                last = run[-1][0]
                parts += [
                    self.expression(item, f"{path}.elements[{i}]", after if i == last else None) for i, item in run
                ]
        return " ".join(parts)

    def _is_regular(self, format: Format) -> bool:
        return isinstance(format, Regex) or (
            isinstance(format, ConstString) and not any(piece in self.markers for piece in self._pieces(format.value))
        )

    def _regular(self, format: Format, path: str) -> str:
        if isinstance(format, Regex):
            return regular_expression(format.pattern, f"{path}.pattern")
        assert isinstance(format, ConstString)
        return json.dumps(format.value)

    def _inside(self, content: Format, path: str, end: str | list[str], following: Following) -> str:
        """Return an expression of a tag after its beginning, and of what follows it."""
        if end == "":
            return self.expression(content, path, following)
        ends = (end,) if isinstance(end, str) else tuple(end)
        return f"{self.expression(content, path, ends)} {self._one_of(following)}"

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

    def _triggered(
        self, format: TriggeredTags, rests: Sequence[tuple[str, str]], path: str, following: Following
    ) -> str:
        """Return an expression of free text with tags, and of what follows it.

        `rests` are the tags: where the free text ends, and an expression of the rest of the tag.
        """
        for index, trigger in enumerate(format.triggers):
            param = f"{path}.triggers[{index}]"
            if not any(head.startswith(trigger) for head, _ in rests):
                raise invalid(f"No tag begins with the trigger {trigger!r:.80}.", param)
            if any(trigger in other and not other.startswith(trigger) for other in format.triggers):
                raise invalid(f"The trigger {trigger!r:.80} is a part of another one.", param)
        heads: dict[str, list[str]] = {}
        for head, rest in rests:
            heads.setdefault(head, []).append(self._rule(rest))
        groups = {head: _alternatives(rules) for head, rules in heads.items()}
        tags = _alternatives(f"{self._literal(head)} {rest}" for head, rest in groups.items())
        if format.at_least_one and format.stop_after_first:
            return f"{tags} {self._one_of(following)}"
        text = self._free_text(format.excludes, path, following)
        later = _alternatives(f"{self._until(text, (head,))} {rest}" for head, rest in groups.items())
        if format.stop_after_first:
            return _alternatives([f"{later} {self._one_of(following)}", self._until(text, following)])
        return f"{tags if format.at_least_one else ''} {later}* {self._until(text, following)}"

    def _separated(self, format: TagsWithSeparator, path: str) -> str:
        tags = enumerate(format.tags)
        tag = self._rule(_alternatives(self.expression(item, f"{path}.tags[{i}]", None) for i, item in tags))
        more = "" if format.stop_after_first else f"({self._literal(format.separator)} {tag})*"
        return f"({tag} {more}){'' if format.at_least_one else '?'}"

    @staticmethod
    def _free_text(excludes: Sequence[str], path: str, following: Following) -> str:
        """Return the body of a terminal: any text without some. Raises APIError if nothing ends it."""
        if following is None:
            raise invalid(f"'{path}' has no end: it must come last in its tag or in the answer.", path)
        if not excludes:
            return _TEXT
        return f"({_TEXT} & ~({_TEXT} {_alternatives(json.dumps(text) for text in excludes)} {_TEXT}))"

    def _until(self, body: str, following: Following) -> str:
        """Return an expression of a text that a terminal's `body` describes, and of the first text that may follow."""
        if not following:
            return self._rule(body, terminal=True)
        key = body, following
        if key not in self._untils:
            self._untils[key] = self._ended(body, following)
        return self._untils[key]

    def _ended(self, body: str, following: tuple[str, ...]) -> str:
        plain, marked = self._ends(following)
        found = [self._rule(self._rule(f"{body} {plain}", terminal=True), "[lazy]")] if plain else []
        for end in marked:
            first, *rest = self._pieces(end)
            if first in self.markers:
                found.append(f"{self._rule(body, terminal=True)} {self._literal(end)}")
            elif rest:  # what comes before the marker may occur earlier
                found.append(
                    f"{self._rule(f'{body} {json.dumps(first)}', terminal=True)} {self._literal(end[len(first) :])}"
                )
        return self._rule(_alternatives(found))

    def _ends(self, following: tuple[str, ...]) -> tuple[str, list[str]]:
        """Return a terminal of the texts without added tokens, and the other texts."""
        if following not in self._ends_of:
            plain = [text for text in following if self._pieces(text) == [text] and text not in self.markers]
            rule = self._rule(_alternatives(map(json.dumps, plain)), terminal=True) if plain else ""
            known = {*plain}
            self._ends_of[following] = rule, [text for text in following if text not in known]
        return self._ends_of[following]

    def _one_of(self, following: Following) -> str:
        if not following:
            return ""
        key = "", following
        if key not in self._untils:
            self._untils[key] = self._rule(_alternatives(map(self._literal, following)))
        return self._untils[key]

    def _literal(self, text: str) -> str:
        """Return an expression of exactly this text."""
        return " ".join(f"<[{self.markers[p]}]>" if p in self.markers else json.dumps(p) for p in self._pieces(text))

    def _pieces(self, text: str) -> list[str]:
        """Divide a text into added tokens, which it adds to `markers`, and what is between them."""
        if text not in self._pieces_of:
            pieces, start = [], 0
            for token in self._tokenizer.encode(text, add_special_tokens=False) if text else ():
                name = self._tokenizer.token_bytes(token).decode(errors="replace")
                position = text.find(name, start) if self._tokenizer.added_token_id(name) == token else -1
                if position >= 0:
                    self.markers[name] = token
                    pieces += [text[start:position], name]
                    start = position + len(name)
            self._pieces_of[text] = [piece for piece in (*pieces, text[start:]) if piece]
        return self._pieces_of[text]

    def _rule(self, body: str, attributes: str = "", *, terminal: bool = False) -> str:
        """Add a rule, or a terminal, unless it exists, and return its name. Raises APIError if there are too many."""
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


def _alternatives(expressions: Iterable[str]) -> str:
    return f"({' | '.join(expressions)})"
