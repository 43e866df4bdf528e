"""The text of documents: records of several kinds, in one of many layouts, in sections or not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.embedded.corpus import documents_words as given
from engine.embedded.corpus.base import Draw
from engine.embedded.corpus.documents_words import KINDS, Field, Kind

TOKEN_PARTS = re.compile(r"[A-Za-z]+|\d|\n|[ \t](?=\d)|[^\sA-Za-z\d]")
MOST_SECTIONS = 120  # there are names for more
QUESTION_TOKENS = 80.0  # kept free for the question and what is around it


@dataclass(frozen=True)
class Form:
    """How the records of one kind are written in one document: `line` is a format of the key and the fields."""

    kind: Kind
    fields: tuple[Field, ...]
    line: str
    header: str = ""
    is_sentence: bool = False
    short_names: bool = False


@dataclass(frozen=True)
class Record:
    form: Form
    key: str
    values: dict[str, str]

    @property
    def label(self) -> str:
        return label(self.form.kind, self.key)

    @property
    def line(self) -> str:
        """The record as it stands in the document."""
        return self.form.line.format_map({"key": self.key, **self.values})

    @property
    def quote(self) -> str:
        """The record as an answer quotes it: without the bullet."""
        return self.line.removeprefix("- ").removeprefix("* ")


@dataclass
class Section:
    """`number` is 0 if the document is not divided."""

    number: int
    name: str
    records: list[Record] = field(default_factory=list)


@dataclass
class Document:
    text: str
    sections: list[Section]
    has_fillers: bool

    @property
    def records(self) -> list[Record]:
        return [record for section in self.sections for record in section.records]


def token_estimate(text: str) -> float:
    """An upper estimate for 2,000 tokens trained on the corpus: a digit or a sign is one, a word of n letters more."""
    parts = TOKEN_PARTS.findall(text)
    return 0.6 * len(parts) + 0.4 * len("".join(parts))


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


def identity(key: str) -> str:
    """What no two keys of a document share: "cache.size" and "web.cache.size" would be mistaken for one another."""
    return ".".join(key.split(".")[-2:])


def label(kind: Kind, key: str) -> str:
    return kind.label.replace("{key}", key)


# Values


def draw_person(draw: Draw) -> str:
    return f"{draw.first_name()} {draw.surname()}"


def draw_minute(draw: Draw) -> str:
    return f"{draw.integer(6, 21):02d}:{draw.integer(0, 59):02d}"


def draw_setting(draw: Draw) -> str:
    group, name = draw.choice(given.SETTING_GROUPS), draw.choice(given.SETTING_NAMES)
    return f"{group}.{name}" if draw.chance(0.5) else f"{draw.choice(given.SETTING_GROUPS)}.{group}.{name}"


def draw_title(draw: Draw) -> str:
    return f"The {draw.choice(given.ADJECTIVES).capitalize()} {draw.choice(given.ITEMS).capitalize()}"


VALUES: dict[str, Callable[[Draw], str]] = {
    "<person>": draw_person,
    "<item>": lambda draw: f"{draw.choice(given.ADJECTIVES)} {draw.choice(given.ITEMS)}",
    "<second>": lambda draw: f"{draw_minute(draw)}:{draw.integer(0, 59):02d}",
    "<minute>": draw_minute,
    "<date>": lambda draw: f"{draw.integer(1, 28)} {draw.choice(given.MONTHS)}",
    "<topic>": lambda draw: f"the {draw.choice(given.TOPICS)} {draw.choice(given.TOPIC_NOUNS)}",
    "<company>": lambda draw: f"{draw.surname()} {draw.choice(given.COMPANY_ENDS)}",
    "<town>": lambda draw: draw.surname(),
    "<setting>": draw_setting,
    "<value>": lambda draw: str(draw.integer(2, 9999)) if draw.chance(0.7) else draw.choice(given.SETTING_VALUES),
    "<title>": draw_title,
    "<place>": lambda draw: f"{draw.choice(given.SIDES + given.PLACES)} {draw.choice(given.DOORS)}",
}
CHARACTERS = {"#": "0123456789", "%": "123456789", "@": "ABCDEFGHJKLMNPRSTUVWXYZ"}


def draw_value(draw: Draw, values: str | tuple[str, ...]) -> str:
    if isinstance(values, tuple):
        return draw.choice(values)
    if values in VALUES:
        return VALUES[values](draw)
    return "".join(draw.choice(CHARACTERS.get(letter, letter)) for letter in values)


# Layouts of lines


def draw_form(draw: Draw, kind: Kind) -> Form:
    if kind.special and draw.chance(0.35):
        line = draw.choice(kind.special)
        return Form(kind, tuple(item for item in kind.fields if f"{{{item.name}}}" in line), line)
    fields = tuple(draw.sample(kind.fields, min(len(kind.fields), draw.choice((1, 2, 2, 2, 3, 3, 3, 4)))))
    layout = draw.choice((sentence_form, sentence_form, named_form, named_form, inline_form, inline_form, table_form))
    return layout(draw, kind, fields)


def subject(kind: Kind) -> str:
    """The key as it begins a line that is no table: "Train {key}", but "blue lamp"."""
    return "{key}" if kind.label.startswith("the ") else capital(kind.label)


def sentence_form(draw: Draw, kind: Kind, fields: tuple[Field, ...]) -> Form:
    *first, last = (draw.choice(item.verbs).replace("{}", f"{{{item.name}}}") for item in fields)
    predicate = f"{', '.join(first)} and {last}" if first else last
    return Form(kind, fields, f"{capital(kind.label)} {predicate}.", is_sentence=True, short_names=draw.chance(0.2))


def named_form(draw: Draw, kind: Kind, fields: tuple[Field, ...]) -> Form:
    """Like "name: Mara Kell; room: 214"."""
    if draw.chance(0.15):
        pairs = [f'"{name}": "{{{slot}}}"' for name, slot in columns(kind, fields)]
        return Form(kind, fields, "{{" + ", ".join(pairs) + "}}")
    equals, between = draw.choice(((": ", "; "), (": ", ", "), ("=", " "), ("=", ", "), (" = ", "; "), (": ", " | ")))
    bullet = draw.choice(("", "", "- ", "* "))
    return Form(
        kind, fields, bullet + between.join(f"{name}{equals}{{{slot}}}" for name, slot in columns(kind, fields))
    )


def inline_form(draw: Draw, kind: Kind, fields: tuple[Field, ...]) -> Form:
    """Like "Mara Kell: room 214, extension 5521"."""
    pairs = ", ".join(f"{item.name} {{{item.name}}}" for item in fields)
    line = draw.choice(("{subject}: {pairs}", "{subject} ({pairs})", "{subject} - {pairs}", "{subject}, {pairs}"))
    line = line.replace("{subject}", subject(kind)).replace("{pairs}", pairs)
    return Form(kind, fields, draw.choice(("", "", "- ", "* ")) + line, short_names=draw.chance(0.2))


def table_form(draw: Draw, kind: Kind, fields: tuple[Field, ...]) -> Form:
    """Like "Mara Kell | 214 | 5521", below a header."""
    names, slots = zip(*columns(kind, fields), strict=True)
    cells = [f"{{{slot}}}" for slot in slots]
    if draw.chance(0.3):
        rule = "|" + "---|" * len(names)
        return Form(kind, fields, f"| {' | '.join(cells)} |", header=f"| {' | '.join(names)} |\n{rule}")
    between = draw.choice((" | ", " | ", ", ", "; ", "\t", ",", " - ", " / "))
    return Form(kind, fields, between.join(cells), header=between.join(names), short_names=draw.chance(0.2))


def columns(kind: Kind, fields: tuple[Field, ...]) -> list[tuple[str, str]]:
    """The name of each column and its slot in the format."""
    return [(kind.column, "key"), *((item.name, item.name) for item in fields)]


# Documents

HEADINGS = (
    "## Section {number}: {name}",
    "## Section {number}: {name}",
    "Section {number}: {name}",
    "### Section {number} - {name}",
    "[Section {number}: {name}]",
    "Section {number} ({name})",
    "## {number}. {name}",
    "{number}. {name}",
    "== Section {number}: {name} ==",
)
MIXED_TITLES = ("Handbook", "Notebook", "Office book", "All lists", "Records", "Collected lists", "Report")


class Writer:
    """Writes one document of about `words` words and at most `tokens` tokens."""

    def __init__(self, draw: Draw, words: int, tokens: float) -> None:
        self.draw = draw
        self.words, self.tokens, self.longest = words, tokens - QUESTION_TOKENS, 0.0
        self.keys: set[str] = set()
        self.names: set[str] = set()
        self.last_number = 0
        divided = draw.chance(0.35 if words < 120 else 0.6 if words < 400 else 0.85)
        self.section_size = self.draw_section_size(words) if divided else None
        kinds = draw.sample(KINDS, draw.integer(2, 3) if divided and draw.chance(0.3) else 1)
        self.forms = [draw_form(draw, kind) for kind in kinds]
        self.short_names = words < 150 and len(kinds) == 1 and kinds[0].name == "staff" and self.forms[0].short_names
        self.filler_rate = draw.choice((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.3, 1.5))
        sentences = all(form.is_sentence for form in self.forms)
        self.filler_prefix = "" if sentences else draw.choice(("Note: ", "(!) ", ""))
        self.is_prose = sentences and draw.chance(0.25)
        self.heading = draw.choice(HEADINGS)

    def draw_section_size(self, words: int) -> tuple[int, int]:
        if words < 400:
            return self.draw.choice(((2, 3), (2, 4), (3, 6)))
        return (2, 8) if self.draw.chance(0.7) else (6, 20)

    def write(self) -> Document:
        blocks = [self.title()] if self.draw.chance(0.6) else []
        header_once = len(self.forms) == 1 and bool(blocks) and self.draw.chance(0.3)
        sections: list[Section] = []
        while not sections or (len(sections) < MOST_SECTIONS and self.has_room(2)):
            form = self.draw.choice(self.forms)
            section = self.new_section(form, len(sections) + 1)
            header = form.header if not (header_once and sections) else ""
            blocks.append(self.write_section(section, form, header))
            sections.append(section)
        return Document("\n\n".join(blocks), sections, self.filler_rate > 0)

    def has_room(self, pieces: int = 1) -> bool:
        """Whether `pieces` more pieces of text fit, each as long as the longest so far."""
        return self.words > 0 and self.tokens > pieces * self.longest

    def spend(self, text: str) -> str:
        self.words -= len(text.split())
        tokens = token_estimate(f"{text}\n")
        self.tokens -= tokens
        self.longest = max(self.longest, tokens)
        return text

    def title(self) -> str:
        kind = self.forms[0].kind
        title = self.draw.choice(MIXED_TITLES if len(self.forms) > 1 else kind.lists)
        if self.draw.chance(0.3):
            title += f" of the {self.new_name(kind)}"
        return self.spend(self.draw.choice(("{}", "{}", "# {}", "{}:", "*** {} ***")).format(title))

    def new_name(self, kind: Kind) -> str:
        while (name := f"{self.draw.choice(given.PLACES)} {self.draw.choice(kind.sections)}") in self.names:
            pass
        self.names.add(name)
        return name

    def new_section(self, form: Form, number: int) -> Section:
        return Section(number, self.new_name(form.kind)) if self.section_size else Section(0, "")

    def write_section(self, section: Section, form: Form, header: str) -> str:
        top = [self.heading.format(number=section.number, name=section.name)] if section.number else []
        top += [header] if header else []
        self.spend("\n".join(["", *top]))
        most = self.draw.integer(*self.section_size) if self.section_size else None
        lines = []
        while len(section.records) != most and (self.has_room() or not section.records):
            section.records.append(record := self.new_record(form))
            lines.append(self.spend(record.line))
            lines += self.fillers()
        return "\n".join([*top, self.join(lines)])

    def fillers(self) -> list[str]:
        """None to three lines that say nothing, `filler_rate` of them on average."""
        count = self.draw.integer(0, 3) if self.filler_rate > 1 else int(self.draw.chance(self.filler_rate))
        lines: list[str] = []
        while len(lines) < count and self.has_room(2):
            lines.append(self.spend(self.filler_prefix + self.draw.expand(self.draw.choice(given.FILLERS))))
        return lines

    def join(self, lines: list[str]) -> str:
        if not self.is_prose:
            return "\n".join(lines)
        return "\n\n".join(" ".join(lines[start : start + 6]) for start in range(0, len(lines), 6))

    def new_record(self, form: Form) -> Record:
        return Record(form, self.new_key(form), {item.name: draw_value(self.draw, item.values) for item in form.fields})

    def new_key(self, form: Form) -> str:
        if form.kind.key == "<next>":
            self.last_number += 1
            return str(self.last_number)
        while identity(key := self.draw_key(form)) in self.keys:
            pass
        self.keys.add(identity(key))
        return key

    def draw_key(self, form: Form) -> str:
        return self.draw.first_name() if self.short_names else draw_value(self.draw, form.kind.key)
