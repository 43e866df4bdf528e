"""Documents of records, and questions that are answered from one line or one section of them, at any depth.

An answer quotes the line it rests on before it says what was asked for, names the value by which it found that line,
and lists what it counts: what a reader can check is also what a small network can do, one step after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.embedded.corpus import documents_words as given
from engine.embedded.corpus.base import Draw, Example, Split, belongs, chat
from engine.embedded.corpus.documents_text import (
    Document,
    Record,
    Section,
    Writer,
    capital,
    draw_value,
    identity,
    label,
)
from engine.embedded.corpus.documents_words import Field, Kind

ABSENT = "It is not in the document."
LONGEST_SUMMARY = 8  # entries
LONGEST_COUNT = 14  # entries
MOST_FOLLOW_UPS = 8
ASKED = ("one", "reverse", "two", "listed", "absent", "count", "summary")  # what does not suit becomes the first
WEIGHTS: dict[Split, tuple[int, ...]] = {"train": (42, 40, 11, 9, 14, 5, 18), "held_out": (40, 16, 10, 4, 8, 5, 18)}


@dataclass(frozen=True)
class Question:
    """`holds` is what the answer was made of; the first of it is the kind of question."""

    text: str
    answer: str
    holds: tuple[str, ...]

    @property
    def key(self) -> str:
        return "|".join(self.holds)


class Documents:
    """Documents of about `words` words, log-uniform, in prompts of at most `tokens` estimated tokens.

    In training at most `follow_ups` more questions come after the first. `expect` is what the answer was made of: the
    kind of question, the key, and the values.
    """

    def __init__(
        self, words: tuple[int, int], tokens: int, name: str = "documents", follow_ups: int = MOST_FOLLOW_UPS
    ) -> None:
        self.words, self.tokens, self.name, self.follow_ups = words, tokens, name, follow_ups

    def make(self, draw: Draw) -> Example:
        low, high = self.words
        words = round(low * (high / low) ** draw.random.random())
        return make_document(draw, words, self.tokens, self.name, self.follow_ups)

    def check(self, example: Example, answer: str) -> bool:
        return answer.strip() == example.answer


def make_document(
    draw: Draw, words: int, tokens: int = 7800, name: str = "documents", follow_ups: int = MOST_FOLLOW_UPS
) -> Example:
    """An example on a document of about `words` words, or fewer if the prompt would exceed `tokens`."""
    document = Writer(draw, words, tokens).write()
    question = draw_question(draw, document)
    pool = given.AFTER if draw.chance(0.75) else given.BEFORE
    prompt = draw.phrase(pool, document=document.text, question=draw.casual(question.text))
    key, messages = question.key, chat(prompt, question.answer)
    for _ in range(draw.follow_ups(follow_ups)):
        more = draw_question(draw, document)
        if belongs(more.key, draw.split):
            messages += chat(draw.casual(more.text), more.answer)
            question = more
    part = {"reverse": "by value", "count": "listings", "summary": "listings"}.get(question.holds[0], "by key")
    return Example(name, messages, key=key, expect=list(question.holds), part=part)


def draw_question(draw: Draw, document: Document) -> Question:
    """A question about a record, or a section, that is equally likely to be anywhere in the document."""
    record = draw.choice(document.records)
    section = draw.choice(document.sections)
    (kind,) = draw.random.choices(ASKED, WEIGHTS[draw.split])
    if kind == "count" and len(document.records) <= LONGEST_COUNT and not document.has_fillers:
        return ask_count(draw, section)
    if kind == "summary" and section.number and len(section.records) <= LONGEST_SUMMARY:
        return ask_summary(draw, section)
    if kind == "reverse" and (fields := telling_fields(document, record)):
        return ask_reverse(draw, record, draw.choice(fields))
    if kind == "two" and len(record.form.fields) > 1:
        return ask_two(draw, record)
    if kind == "listed":
        answer = quoting(record, f"Yes, {record.label} is in the document.")
        return ask_listed(draw, record.form.kind, record.key, answer)
    if kind == "absent":
        return ask_absent(draw, document, record)
    return ask_one(draw, record, draw.choice(record.form.fields))


def telling_fields(document: Document, record: Record) -> list[Field]:
    """The fields whose value leads to this record alone."""
    others = [other for other in document.records if other is not record]
    return [
        item
        for item in record.form.fields
        if isinstance(item.values, str)
        and not any(other.values.get(item.name) == record.values[item.name] for other in others)
    ]


def fact(item: Field, record: Record) -> str:
    return f"The {item.name} of {record.label} is {record.values[item.name]}."


def quoting(record: Record, answer: str) -> str:
    """`answer` below the line that it rests on."""
    return f"> {record.quote}\n\n{answer}"


def look_up(draw: Draw, kind: Kind, key: str, item: Field) -> str:
    """A question for one field of the record `key`."""
    name = label(kind, key)
    if draw.chance(0.4):
        direct, indirect = (clause.replace("{label}", name) for clause in item.asks)
        return draw.phrase(given.CLAUSES, direct=direct, Direct=capital(direct), indirect=indirect)
    owned = kind.key == "<person>" and draw.chance(0.6)
    thing = f"{name}'s {item.name}" if owned else f"the {item.name} {draw.choice(('of', 'of', 'for'))} {name}"
    return draw.phrase(given.LOOK_UP, thing=thing)


def ask_one(draw: Draw, record: Record, item: Field) -> Question:
    text = look_up(draw, record.form.kind, record.key, item)
    return Question(text, quoting(record, fact(item, record)), ("one", record.key, item.name, record.values[item.name]))


def reverse(draw: Draw, kind: Kind, name: str, value: str) -> str:
    """A question for the record whose field `name` is `value`."""
    who = "Who" if kind.key == "<person>" else f"Which {kind.noun}"
    slots = {"Who": who, "noun": kind.noun, "field": name, "Field": capital(name), "value": value}
    return draw.phrase(given.REVERSE, **slots)


def ask_reverse(draw: Draw, record: Record, item: Field) -> Question:
    value = record.values[item.name]
    text = reverse(draw, record.form.kind, item.name, value)
    answer = f"The line with {item.name} {value}:\n{quoting(record, fact(item, record))}"
    return Question(text, answer, ("reverse", record.key, item.name, value))


def ask_two(draw: Draw, record: Record) -> Question:
    first, second = draw.sample(record.form.fields, 2)
    text = draw.phrase(given.TWO_FIELDS, a=first.name, b=second.name, label=record.label)
    answer = f"{fact(first, record)[:-1]} and the {second.name} is {record.values[second.name]}."
    values = (first.name, record.values[first.name], second.name, record.values[second.name])
    return Question(text, quoting(record, answer), ("two", record.key, *values))


def ask_listed(draw: Draw, kind: Kind, key: str, answer: str) -> Question:
    return Question(draw.phrase(given.LISTED, label=label(kind, key)), answer, ("listed", key))


def ask_absent(draw: Draw, document: Document, like: Record) -> Question:
    """A question of any kind whose answer is that the document does not say."""
    kind, item = like.form.kind, draw.choice(like.form.fields)
    key = absent_key(draw, document, like)
    if draw.chance(0.5):
        return ask_listed(draw, kind, key, ABSENT)
    value = draw_value(draw, item.values)
    if draw.chance(0.3) and isinstance(item.values, str) and value not in document.text:
        return Question(reverse(draw, kind, item.name, value), ABSENT, ("absent", value, item.name))
    return Question(look_up(draw, kind, key, item), ABSENT, ("absent", key, item.name))


def absent_key(draw: Draw, document: Document, like: Record) -> str:
    """A key like that of `like` which no record has; of people, often with the same first name."""
    present = {identity(record.key) for record in document.records}
    kind = like.form.kind
    while True:
        key = str(len(present) + draw.integer(1, 30)) if kind.key == "<next>" else draw_value(draw, kind.key)
        if kind.key == "<person>" and draw.chance(0.5):
            key = like.key.split()[0] + " " + draw.surname()
        if " " not in like.key and kind.key == "<person>":
            key = draw.first_name()
        if identity(key) not in present:
            return key


def listing(title: str, section: Section) -> str:
    """The entries of a section, numbered, and how many they are."""
    lines = [f"{number}. {record.key}" for number, record in enumerate(section.records, 1)]
    last = f"{len(lines)} entr{'y' if len(lines) == 1 else 'ies'} in all."
    return "\n".join((f"{title}:", *lines, "", last))


def part(draw: Draw, section: Section) -> str:
    """What a section may be called; the document itself if it is not divided."""
    if not section.number:
        return draw.choice(("the document", "this document", "the list", "this list"))
    number = f"section {section.number}"
    return draw.choice((number, number, f"{number} ({section.name})", f"the section on the {section.name}"))


def ask_count(draw: Draw, section: Section) -> Question:
    where = f"Section {section.number}" if section.number else "The document"
    keys = ",".join(record.key for record in section.records)
    text = draw.phrase(given.COUNT, part=part(draw, section))
    return Question(text, listing(where, section), ("count", where, str(len(section.records)), keys))


def ask_summary(draw: Draw, section: Section) -> Question:
    keys = [record.key for record in section.records]
    answer = listing(f"Section {section.number}, {section.name}", section)
    return Question(draw.phrase(given.SUMMARY, part=part(draw, section)), answer, ("summary", section.name, *keys))


SKILL = Documents(words=(30, 250), tokens=400)
LONG = Documents(words=(250, 1300), tokens=1900, name="documents_long", follow_ups=36)
VERY_LONG = Documents(words=(1300, 4500), tokens=7800, name="documents_8k", follow_ups=36)
