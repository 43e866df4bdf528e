"""Texts of a kind put together from parts instead of from a template, for training alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

from engine.embedded.corpus.base import Draw
from engine.embedded.corpus.fields_composed_words import COMMON, GREETINGS, NEUTRAL, PARTS, SIGNATURES, Parts
from engine.embedded.corpus.fields_values import MAKERS, Value
from engine.embedded.corpus.fields_words import KINDS, Kind, slots_in
from engine.embedded.corpus.sql_words import CITIES

Made = Mapping[str, tuple[str, Value]]
Composer = Callable[[Draw, Kind, Made], str]
Suits = Callable[[str], bool]

MOST_SLOTS = 6
WITH_NEUTRAL = 0.1
# A value of these sorts tells by itself what it is only if this holds; values of other sorts always do.
TELLING: dict[str, Callable[[str], bool]] = {
    "code": lambda value: value[0].isalpha(),
    "weight": lambda value: not value.endswith("pounds"),
}
# Of these sorts, a single word without a meaning tells what it is only where no other one stands by itself.
NAMES = ("city", "company", "brand", "carbrand", "model", "team", "first")
# After values of these sorts, a preposition could be taken for a part of the value.
OPEN = ("topic", "issue", "complaint", "event", "hobby", "place", "course", "item", "job")
PREPOSITIONS = ("by ", "for ", "at ", "in ", "on ", "from ", "to ", "with ", "of ", "about ", "until ", "because of ")
LETTER = ("Dear ", "Hi ", "Hi, ", "Hello ", "Hello, ", "Hey ", "Subject:", "From:", "{")
JOINTS = (", ", ", ", "; ", " - ", " | ", " / ", "\n")
MOST_ADDED = 4  # slots
LABEL_JOINTS = ("\n", "\n", "\n", "; ", ", ", ". ", " | ")


def compose(draw: Draw, kind: Kind) -> tuple[str, Made]:
    """A template that is none of the kind's, with at least two slots, and what fills them."""
    while True:
        made = {slot: MAKERS[maker](draw) for slot, (maker, _) in kind.fields.items()}
        composer = draw.random.choices((listing, labelled, note, templates, extended), (18, 17, 27, 16, 22))[0]
        template = composer(draw, kind, made)
        if composer is not templates and draw.chance(WITH_NEUTRAL):
            template = with_neutral(draw, template)
        present = slots_in(template)
        if len(present) > 1 and template not in kind.texts.held_out:
            return template, {slot: made[slot] for slot in present}


def with_common(kind: Kind) -> Parts:
    """The parts of the kind with those that are common to values of a sort."""
    parts = PARTS[kind.name]
    labels = {slot: parts.labels.get(slot, ()) for slot in kind.fields}
    values, phrases, sentences = list(parts.values), list(parts.phrases), list(parts.sentences)
    for slot, (maker, _) in kind.fields.items():
        if maker not in COMMON or slot in parts.own:
            continue
        common, value = COMMON[maker], "{" + slot + "}"
        labels[slot] += common.labels["x"]
        values += (part.replace("{x}", value) for part in common.values)
        phrases += (part.replace("{x}", value) for part in common.phrases)
        sentences += (part.replace("{x}", value) for part in common.sentences)
    return replace(parts, labels=labels, values=tuple(values), phrases=tuple(phrases), sentences=tuple(sentences))


PARTS_OF = {kind.name: with_common(kind) for kind in KINDS}


def some_slots(draw: Draw, kind: Kind) -> list[str]:
    return draw.sample(list(kind.fields), draw.integer(2, min(MOST_SLOTS, len(kind.fields))))


@cache
def by_slot(pool: tuple[str, ...]) -> dict[str, list[tuple[str, frozenset[str]]]]:
    """The parts of a pool in which a slot stands, with all their slots."""
    found: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for part in pool:
        for slot in slots_in(part):
            found.setdefault(slot, []).append((part, frozenset(slots_in(part))))
    return found


def covering(draw: Draw, pool: tuple[str, ...], slots: Sequence[str], suits: Suits = lambda part: True) -> list[str]:
    """Parts that suit, in which each of `slots` that the pool has stands once, and no other slot."""
    left, chosen = set(slots), []
    for slot in slots:
        fits = [(part, held) for part, held in by_slot(pool).get(slot, ()) if held <= left and suits(part)]
        if slot in left and fits:
            part, held = draw.choice(fits)
            chosen.append(part)
            left -= held
    return chosen


def capital(text: str) -> str:
    """`text` with a capital; a value at its beginning stays as it is."""
    return text[:1].upper() + text[1:]


def stopped(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else text + "."


def listing(draw: Draw, kind: Kind, made: Made) -> str:
    """Values alone, in forms that tell what they are; in some texts a few have labels."""
    parts, joint = PARTS_OF[kind.name], draw.choice(JOINTS)
    mixed = 0.3 if draw.chance(0.3) else 0.0
    slots, used = some_slots(draw, kind), set[str]()
    named = [slot for slot in slots if draw.chance(mixed)]
    plain = [slot for slot in slots if slot not in named]
    chosen = telling_values(draw, kind, plain, made)
    chosen += [label_for(draw, parts, slot, used) + ": {" + slot + "}" for slot in named]
    text = joint.join(draw.sample(chosen, len(chosen)))
    if draw.chance(0.35):
        text = draw.choice(parts.headings) + draw.choice((joint, "\n") if named else (": ", ": ", joint, "\n")) + text
    return text + "." if joint in (", ", "; ") and draw.chance(0.3) else text


def telling_values(draw: Draw, kind: Kind, slots: Sequence[str], made: Made) -> list[str]:
    """Forms of values that show what each of them is: by other words, by the value itself, or because it is the only
    name among them."""
    names = [slot for slot in slots if is_bare_name(kind, slot, made)]

    def tells(part: str) -> bool:
        slot = part.strip("{}")
        if slot not in made or part != "{" + slot + "}":
            return True
        telling = TELLING.get(kind.fields[slot][0])
        return (telling is None or telling(made[slot][0])) and (len(names) == 1 or slot not in names)

    return covering(draw, PARTS_OF[kind.name].values, slots, tells)


def is_bare_name(kind: Kind, slot: str, made: Made) -> bool:
    """Whether a value is a single word that could be the name of anything."""
    value = made[slot][0]
    return kind.fields[slot][0] in NAMES and value.isalpha() and value not in CITIES


def label_for(draw: Draw, parts: Parts, slot: str, used: set[str]) -> str:
    """A label that no other value has."""
    label = draw.choice([label for label in parts.labels[slot] if label not in used])
    used.add(label)
    return label


def labelled(draw: Draw, kind: Kind, made: Made) -> str:
    """Labels, each with its value."""
    parts, joint, used = PARTS_OF[kind.name], draw.choice(LABEL_JOINTS), set[str]()
    colon = draw.choice((": ", ": ", ": ", ": ", " = ", " - "))
    bullet = draw.choice(("- ", "* ")) if joint == "\n" and draw.chance(0.2) else ""
    small = draw.chance(0.25)
    lines = []
    for slot in some_slots(draw, kind):
        label = label_for(draw, parts, slot, used)
        lines.append(bullet + (label.lower() if small else label) + colon + "{" + slot + "}")
    text = joint.join(lines)
    if draw.chance(0.3):
        text = draw.choice(parts.headings) + ("\n" if joint == "\n" else draw.choice((" - ", ". ", "\n"))) + text
    return text + "." if joint == ". " else text


def note(draw: Draw, kind: Kind, made: Made) -> str:
    """Phrases and sentences, in a letter if a person is greeted or signs."""
    parts, slots = PARTS_OF[kind.name], some_slots(draw, kind)
    greeting = letter_part(draw, slots, parts.greets, GREETINGS)
    signature = letter_part(draw, slots, parts.signs, SIGNATURES)
    chosen = covering(draw, parts.phrases + parts.sentences, slots)
    pieces = [stopped(capital(part)) for part in chosen if part in parts.sentences]
    phrases = [part for part in chosen if part not in parts.sentences]
    cut = draw.integer(1, len(phrases)) if len(phrases) > 3 and draw.chance(0.5) else len(phrases)
    heading = draw.choice(parts.headings) if not greeting and draw.chance(0.35) else ""
    runs = [run(draw, kind, phrases[:cut], heading), run(draw, kind, phrases[cut:])]
    pieces = [*filter(None, runs), *pieces]
    if not heading and draw.chance(0.4):
        pieces = draw.sample(pieces, len(pieces))
    joint = "\n" if draw.chance(0.15) else " "
    body = joint.join(pieces)
    if draw.chance(0.12):
        body = body.removesuffix(".") if not signature else body
    return draw.choice((" ", "\n")).join(filter(None, (greeting, body, signature)))


def letter_part(draw: Draw, slots: list[str], able: Sequence[str], forms: Sequence[str]) -> str:
    """A greeting or signature, with a slot that is taken from `slots`; empty if none of them is able to be there."""
    fits = [slot for slot in slots if slot in able]
    if not fits or not draw.chance(0.6):
        return ""
    slot = draw.choice(fits)
    slots.remove(slot)
    return draw.choice(forms).replace("{x}", "{" + slot + "}")


def run(draw: Draw, kind: Kind, phrases: Sequence[str], heading: str = "") -> str:
    """Phrases in a row as one sentence of a note."""
    if not phrases:
        return ""
    text = phrases[0]
    for before, phrase in pairwise(phrases):
        closed = ":" not in before and kind.fields[slots_in(before)[-1]][0] not in OPEN
        text += (" " if closed and phrase.startswith(PREPOSITIONS) and draw.chance(0.4) else ", ") + phrase
    if heading:
        joint = " " if text.startswith(PREPOSITIONS) else ", " if ":" in phrases[0] else ": "
        text = heading + joint + text
    return stopped(capital(text))


def templates(draw: Draw, kind: Kind, made: Made) -> str:
    """A template of the kind and another one with other slots, or a neutral sentence, after or before it."""
    first = draw.choice(kind.texts.train)
    others = [text for text in kind.texts.train if not set(slots_in(text)) & set(slots_in(first))]
    if not others or draw.chance(0.5):
        return with_neutral(draw, first)
    second = draw.choice(others)
    if second.startswith(LETTER) and not first.startswith(LETTER):
        first, second = second, first
    return first + joint_after(draw, first) + second


def extended(draw: Draw, kind: Kind, made: Made) -> str:
    """A template of the kind and, behind or before it, values alone, as in short notices that say all in one line."""
    short = [text for text in kind.texts.train if "\n" not in text and not text.startswith(LETTER[:-1])]
    first = draw.choice(short)
    left = [slot for slot in kind.fields if slot not in slots_in(first)]
    added = telling_values(draw, kind, draw.sample(left, min(len(left), draw.integer(1, MOST_ADDED))), made)
    if not added:
        return first
    joint = draw.choice((", ", ", ", ", ", "; ", " - "))
    values = joint.join(added)
    if draw.chance(0.25):
        return values + draw.choice((": ", ": ", ". ", " - ")) + first
    whole = first.endswith(("?", "!"))
    text = capital(values) if whole else values
    text = first.removesuffix(".") + (" " if whole else joint) + text
    return stopped(text) if draw.chance(0.7) else text


def with_neutral(draw: Draw, text: str) -> str:
    sentence = draw.choice(NEUTRAL)
    if sentence.endswith(":"):
        return sentence + draw.choice((" ", "\n")) + text
    if text.startswith(LETTER) or draw.chance(0.6):
        return text + joint_after(draw, text) + sentence
    return sentence + ("\n" if "\n" in text else draw.choice((" ", "\n"))) + text


def joint_after(draw: Draw, text: str) -> str:
    """What may stand between `text` and another one: a new line if the text has lines or does not end a sentence."""
    return "\n" if "\n" in text or not text.endswith((".", "?", "!")) else draw.choice((" ", " ", "\n"))
