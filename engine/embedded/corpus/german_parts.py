"""Drawn parts of sentences for the translation skill: noun phrases, places, clauses, their tense, negation and time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from engine.embedded.corpus.base import Draw
from engine.embedded.corpus.german_grammar import (
    ACCUSATIVE,
    CASES,
    DATIVE,
    FIRST,
    PRONOUNS,
    SECOND,
    THIRD,
    WE,
    Clause,
    Pair,
    Term,
    adjectives_of,
    both,
    english,
    german,
    german_fronted,
    named,
    noun_phrase,
    nouns,
    nouns_of,
    owned,
    verbs,
    with_preposition,
)
from engine.embedded.corpus.german_phrases import ADVERBS, CITIES, COUNTRIES, MANNERS, TIMES
from engine.embedded.corpus.german_words import (
    BE,
    DIRECTIONS_TABLE,
    NUMBERS,
    PLACES_TABLE,
    Adjective,
    Noun,
    Verb,
    words,
)

OWNERS = ("my", "your", "his", "her", "our", "their")
ANIMATE = ("person", "family", "animal")
PEOPLE = ("person", "family")
KINDS = words(
    """person person person family animal animal thing thing furniture clothes vehicle place place nature food dish
    drink text unique"""
)
COLORS = words("red blue green yellow black white brown gray")
HE = words("man boy father brother king son uncle grandfather prince")
SHE = words("woman mother sister queen daughter aunt grandmother lady")
SHORT = (
    ("I am ", "I'm "), ("you are ", "you're "), ("he is ", "he's "), ("she is ", "she's "), ("we are ", "we're "),
    ("they are ", "they're "), ("I will ", "I'll "), ("I would ", "I'd "), ("we would ", "we'd "),
    ("he will ", "he'll "), ("she will ", "she'll "), ("we will ", "we'll "),
)  # fmt: skip
# determiner and whether it is of the plural, each with a weight
DETERMINERS = (
    (46, "the", False), (20, "a", False), (14, "my", False), (3, "this", False), (2, "every", False),
    (7, "the", True), (3, "my", True), (4, "number", True), (2, "many", True), (2, "some", True), (1, "these", True),
    (1, "all", True), (4, "", True), (1, "no", False), (1, "no", True),
)  # fmt: skip


@dataclass(frozen=True)
class Text:
    """One English text and its German; `mark` ends both, "" for words and noun phrases."""

    english: str
    german: str
    mark: str = "."


def draw_term(draw: Draw, noun: Noun, adjective: float = 0.2) -> Term:
    """A noun with an article or the like, and an adjective with the given probability."""
    word = draw_adjective(draw, noun) if noun.kind != "stuff" and draw.chance(adjective) else None
    if noun.kind == "unique":
        return noun_phrase(noun, "the", adjective=word)
    if noun.kind == "stuff":
        return noun_phrase(
            noun, draw.choice(("", "", "no", "the", draw.choice(OWNERS) if noun.english == "money" else ""))
        )
    if noun.kind in ("dish", "drink"):
        return noun_phrase(noun, draw.choice(("", "", "", "the", "the", "my")), adjective=word)
    if draw.chance(0.03):
        name = draw.first_name()
        if not name.endswith(("s", "x", "z", "ce")):
            return owned(name, noun)
    _, determiner, plural = draw.random.choices(DETERMINERS, _weights())[0]
    if plural and not noun.plural:
        determiner, plural = "the", False
    if determiner == "my":
        determiner = draw.choice(OWNERS)
    number = draw.choice(tuple(NUMBERS.items()))
    return noun_phrase(noun, determiner, plural=plural, adjective=word, number=number)


def draw_adjective(draw: Draw, noun: Noun) -> Adjective:
    """One that fits; a color more rarely for who lives."""
    word = draw.choice(adjectives_of(noun))
    return draw.choice(adjectives_of(noun)) if word.english in COLORS and noun.kind in ANIMATE else word


@cache
def _weights() -> tuple[int, ...]:
    return tuple(weight for weight, *_ in DETERMINERS)


def draw_subject(draw: Draw, kinds: tuple[str, ...], adjective: float = 0.15) -> Term:
    if "person" in kinds:
        kind = draw.random.random()
        if kind < 0.17:
            return PRONOUNS[draw.choice(tuple(PRONOUNS))]
        if kind < 0.29:
            return named(draw.first_name())
        if kind < 0.33:
            first, second = draw.sample(nouns_of(PEOPLE), 2)
            return draw.choice((both(*draw_names(draw)), both(noun_phrase(first, "the"), noun_phrase(second, "the"))))
    return draw_some(draw, kinds, None, adjective)


def draw_names(draw: Draw) -> tuple[Term, Term]:
    """Two people."""
    first = second = draw.first_name()
    while first == second:
        second = draw.first_name()
    return named(first), named(second)


def draw_other(draw: Draw, kinds: tuple[str, ...], subject: Term | None, adjective: float = 0.2) -> Term:
    """A term of another noun than the subject's."""
    known = subject.noun if subject else None
    return draw_term(draw, draw.choice([noun for noun in nouns_of(kinds) if noun is not known]), adjective)


def draw_some(draw: Draw, kinds: tuple[str, ...], subject: Term | None, adjective: float = 0.2) -> Term:
    """The same, but not with "no"."""
    term = draw_other(draw, kinds, subject, adjective)
    while term.english.startswith("no "):
        term = draw_other(draw, kinds, subject, adjective)
    return term


@cache
def places() -> tuple[tuple[Pair, Noun], ...]:
    found = []
    for line in PLACES_TABLE.strip().replace("\n    ", " ").splitlines():
        preposition, _, rest = line.partition(": ")
        english_preposition, *places = rest.split()
        pair = english_preposition.replace("_", " "), preposition
        found += [(pair, nouns()[place]) for place in places]
    return tuple(found)


@cache
def _directions() -> tuple[tuple[Pair, int, Noun], ...]:
    found = []
    for line in DIRECTIONS_TABLE.strip().splitlines():
        head, _, rest = line.partition(": ")
        preposition, _, case = head.partition("_")
        english_preposition, *places = rest.split()
        found += [((english_preposition, preposition), CASES[case], nouns()[place]) for place in places]
    return tuple(found)


WATER = ("lake", "sea", "river")
SHOPS = ("market", "shop", "station", "museum", "city", "village")
# with these verbs the English preposition would mean something else ("smile at", "work on")
OTHER_MEANING = {"laugh": "at", "smile": "at", "jump": "at", "run": "at", "work": "on"}


@cache
def _fitting(base: str, people: bool) -> tuple[tuple[Pair, Noun], ...]:
    return tuple((pair, noun) for pair, noun in places() if _fits(pair, noun, base, people))


def _fits(preposition: Pair, noun: Noun, base: str, people: bool) -> bool:
    """Whether one does there what the verb says."""
    english_preposition, german_preposition = preposition
    if base == "swim":
        return english_preposition == "in" and noun.english in WATER
    if base == "buy":
        return noun.english in SHOPS and english_preposition in ("in", "at")
    if base in ("get", "wake"):
        return english_preposition == "in" and noun.kind == "place"
    if OTHER_MEANING.get(base) == english_preposition:
        return False
    if base == "live" and noun.kind not in ("place", "nature") and noun.english not in ("ship", "boat"):
        return False
    if base in ("run", "jump", "dance", "fly") and noun.kind == "vehicle":
        return False
    hidden = german_preposition == "unter" and noun.kind == "furniture"
    wet = english_preposition == "in" and noun.english in WATER
    return not (people and (hidden or wet or (english_preposition == "on" and noun.english == "table")))


def draw_place(draw: Draw, base: str = "", people: bool = False) -> Pair:
    """Where something is or, given the base of a verb, is done (by people)."""
    if draw.chance(0.12):
        city = draw.choice(CITIES)
        return draw.choice(
            (("at home", "zu Hause"), ("at school", "in der Schule"), ("here", "hier"), ("there", "dort"),
             ("outside", "draußen"), (f"in {city}", f"in {city}"))
        )  # fmt: skip
    preposition, noun = draw.choice(_fitting(base, people))
    return with_preposition(preposition, DATIVE, _place_term(draw, noun))


def _place_term(draw: Draw, noun: Noun) -> Term:
    adjective = draw_adjective(draw, noun) if draw.chance(0.12) else None
    determiner = "the"
    if draw.chance(0.22):
        determiner = draw.choice(("a", "this", *OWNERS))
    return noun_phrase(noun, determiner, adjective=adjective)


def draw_direction(draw: Draw, base: str) -> Pair:
    if draw.chance(0.15):
        city = draw.choice(CITIES)
        country = draw.choice(tuple(COUNTRIES))
        return draw.choice(
            (("home", "nach Hause"), (f"to {city}", f"nach {city}"), (f"to {country}", f"nach {COUNTRIES[country]}"))
        )
    unfit = {"come": "", "drive": "into from"}.get(base, "from").split()
    preposition, case, noun = draw.choice([place for place in _directions() if place[0][0] not in unfit])
    return with_preposition(preposition, case, _place_term(draw, noun))


@cache
def verbs_of(group: str) -> tuple[Verb, ...]:
    """Of the groups "alone", "object", "dative", "related", "direction" and "recipient"."""

    def group_of(verb: Verb) -> str:
        if verb.subjects[0] in ("direction", "recipient"):
            return verb.subjects[0]
        return {"": "alone", "accusative": "object", "dative": "dative"}.get(verb.case, "related")

    return tuple(verb for verb in verbs() if group_of(verb) == group)


@cache
def verb_named(base: str) -> Verb:
    """The first without a preposition or particle."""
    return next(verb for verb in verbs() if verb.base == base and not verb.particle)


def be_adjective(draw: Draw) -> Clause:
    kind = draw.choice(KINDS)
    subject = draw_subject(draw, PEOPLE if kind == "person" else (kind,), 0.08)
    quality = draw_quality(draw, subject.noun)
    while set(quality[0].split()) & set(subject.english.split()):  # "the old man is old"
        quality = draw_quality(draw, subject.noun)
    return Clause(subject, BE, predicate=quality)


def draw_quality(draw: Draw, noun: Noun | None) -> Pair:
    """One or two adjectives that are said of the noun (of a person, if there is none)."""
    noun = noun or nouns()["man"]
    first, second = draw_adjective(draw, noun), draw_adjective(draw, noun)
    form = draw.random.random()
    if form < 0.15 and first.german != second.german and not _opposite(first, second):
        return f"{first.english} and {second.english}", f"{first.german} und {second.german}"
    if form < 0.25:
        return f"very {first.english}", f"sehr {first.german}"
    return first.english, first.german


OPPOSITES = words(
    """good/bad big/small big/little old/young old/new happy/sad strong/weak sick/healthy rich/poor expensive/cheap
    clean/dirty long/short cold/hot fast/slow beautiful/ugly pretty/ugly"""
)


def _opposite(first: Adjective, second: Adjective) -> bool:
    return any(f"{a.english}/{b.english}" in OPPOSITES for a, b in ((first, second), (second, first)))


def be_place(draw: Draw) -> Clause:
    kinds = draw.choice((PEOPLE, ANIMATE, ("animal",), ("thing", "text"), ("thing", "clothes", "food")))
    subject = draw_subject(draw, kinds)
    return Clause(subject, BE, predicate=draw_place(draw, people=is_person(subject)))


def is_person(term: Term) -> bool:
    return term.noun is None or term.noun.kind in PEOPLE


def intransitive(draw: Draw) -> Clause:
    verb = draw.choice(verbs_of("alone"))
    clause = Clause(draw_subject(draw, verb.subjects), verb)
    manners = MANNERS.get(verb.base)
    if manners and not verb.particle and draw.chance(0.25):
        clause = replace(clause, manner=draw.choice(tuple(manners.items())))
    if verb.base in ("live", "sit", "stand", "lie", "stay") or draw.chance(0.55):
        clause = replace(clause, place=draw_place(draw, verb.base, is_person(clause.subject)))
    elif draw.chance(0.25) and "person" in verb.subjects and verb.base not in ("sleep", "get", "wake"):
        clause = replace(clause, companion=draw_companion(draw, clause.subject))
    return clause


def draw_companion(draw: Draw, subject: Term | None = None) -> Pair:
    """Who is not the subject."""
    term = draw_subject(draw, PEOPLE if subject and is_person(subject) and draw.chance(0.8) else ANIMATE)
    if subject and term.pronoun:
        term = pronoun_object(draw, subject)
    elif subject and term.noun and term.noun is subject.noun:
        term = draw_some(draw, ANIMATE, subject)
    if draw.chance(0.25):
        return with_preposition(("without", "ohne"), ACCUSATIVE, term)
    return with_preposition(("with", "mit"), DATIVE, term)


SOMEWHERE = words("see eat read buy wash paint draw meet")
WITH_DRINKS = (("with milk", "mit Milch"), ("without milk", "ohne Milch"), ("without sugar", "ohne Zucker"))


def transitive(draw: Draw) -> Clause:
    verb = draw.choice(verbs_of("object"))
    subject = draw_subject(draw, verb.subjects)
    if "person" in verb.objects and draw.chance(0.12):
        return Clause(subject, verb, object=pronoun_object(draw, subject))
    thing = draw_other(draw, verb.objects, subject)
    clause = Clause(subject, verb, object=thing)
    if thing.noun and thing.noun.english in ("coffee", "tea") and draw.chance(0.5):
        return replace(clause, place=draw.choice(WITH_DRINKS))
    if verb.base in SOMEWHERE and draw.chance(0.25):
        return replace(clause, place=draw_place(draw, verb.base, is_person(subject)))
    return clause


def pronoun_object(draw: Draw, subject: Term) -> Term:
    """A pronoun that does not mean the subject itself, else a name."""
    thing = PRONOUNS[draw.choice(tuple(PRONOUNS))]
    same = {thing.person, subject.person}
    return named(draw.first_name()) if same <= {FIRST, WE} or same == {SECOND} else thing


def dative(draw: Draw) -> Clause:
    verb = draw.choice(verbs_of("dative"))
    subject = draw_subject(draw, verb.subjects)
    thing = draw_some(draw, verb.objects, subject)
    if draw.chance(0.25):
        thing = pronoun_object(draw, subject)
    return Clause(subject, verb, object=thing, case=DATIVE)


def related(draw: Draw) -> Clause:
    verb = draw.choice(verbs_of("related"))
    subject = draw_subject(draw, verb.subjects)
    preposition, _, case = verb.case.partition("_")
    thing = draw_some(draw, verb.objects, subject)
    english_object = thing.english_object
    return Clause(subject, verb, related=(english_object, with_preposition(("", preposition), CASES[case], thing)[1]))


def direction(draw: Draw) -> Clause:
    subject, verb = draw_subject(draw, PEOPLE), draw.choice(verbs_of("direction"))
    clause = Clause(subject, verb, place=draw_direction(draw, verb.base))
    return replace(clause, companion=draw_companion(draw, subject)) if draw.chance(0.1) else clause


def ditransitive(draw: Draw) -> Clause:
    verb = draw.choice(verbs_of("recipient"))
    subject = draw_subject(draw, PEOPLE)
    recipient = draw_some(draw, (*PEOPLE, "dog", "cat", "horse"), subject, 0.1)
    thing = draw_other(draw, verb.objects, subject)
    if draw.chance(0.25):  # in English after the object, in German not
        after = f"{thing.english_object} to {recipient.english_object}"
        return Clause(
            subject, verb, recipient=replace(recipient, english_object=after), object=replace(thing, english_object="")
        )
    return Clause(subject, verb, recipient=recipient, object=thing)


CLAUSES: tuple[tuple[int, Callable[[Draw], Clause]], ...] = (
    (30, be_adjective),
    (10, be_place),
    (22, intransitive),
    (32, transitive),
    (5, dative),
    (5, related),
    (6, direction),
    (4, ditransitive),
)


def draw_clause(draw: Draw) -> Clause:
    return draw.random.choices(CLAUSES, [weight for weight, _ in CLAUSES])[0][1](draw)


def vary(draw: Draw, clause: Clause) -> Clause:
    clause = with_tense(draw, clause)
    if draw.chance(0.2):
        clause = negated(draw, clause)
    indefinite = clause.object is None or bool(clause.object.none)
    plain = clause.tense == "present" and not clause.negative
    if plain and indefinite and clause.recipient is None and draw.chance(0.15):
        return replace(clause, adverb=draw.choice(tuple(ADVERBS.items())))
    return with_time(draw, clause) if draw.chance(0.4) else clause


def with_tense(draw: Draw, clause: Clause) -> Clause:
    """The clause in another tense or with a modal verb, if it has one that makes sense."""
    verb, subject = clause.verb, clause.subject
    form = draw.random.random()
    if form < 0.2 and verb is not BE and verb.gerund:
        return replace(clause, tense="progressive")
    if form < 0.45 and verb.past and not (verb.past == verb.base and subject.person != THIRD):
        return replace(clause, tense="past")
    if form < 0.55:
        return replace(clause, tense="will")
    if form < 0.6 and verb is BE:
        return replace(clause, tense=draw.choice(("can", "must", "should")))
    animate = subject.noun is None or subject.noun.kind in ANIMATE
    without = clause.object is not None and clause.object.english.startswith("no ")
    if form < 0.8 and animate and not without and verb.base not in ("belong", "like", "know", "hear", "need", "be"):
        return _with_modal(draw, clause)
    return clause


MODAL_CHOICE = ("can", "can", "must", "have to", "want to", "want to", "should", "may", "would like to", "like to")


def _with_modal(draw: Draw, clause: Clause) -> Clause:
    tense = draw.choice(MODAL_CHOICE)
    if tense != "like to":
        return replace(clause, tense=tense)
    indefinite = clause.object is None or (clause.object.none and clause.recipient is None)
    if not indefinite or clause.manner or clause.case == DATIVE or not clause.verb.gerund:
        return clause
    return replace(clause, tense="like to", adverb=("", "gern"))


def negated(draw: Draw, clause: Clause) -> Clause:
    """The clause with "not" or "kein", where that is unambiguous."""
    subject, thing = clause.subject, clause.object
    known = _definite(subject) and (thing is None or _definite(thing) or (thing.none and clause.case == ACCUSATIVE))
    if not known or clause.recipient or clause.tense in ("must", "may", "would like to", "like to"):
        return clause
    return replace(clause, negative=True, short=draw.chance(0.5))


def _definite(term: Term) -> bool:
    return term.noun is None or term.english.split()[0] in ("the", "this", *OWNERS)


def with_time(draw: Draw, clause: Clause) -> Clause:
    when = {"past": "b", "will": "l"}.get(clause.tense, "p")
    times = [(time, word) for time, (word, use) in TIMES.items() if when in use]
    if clause.verb is BE and when == "p":
        times = [pair for pair in times if pair[0] in ("now", "today", "this week", "in the morning", "this evening")]
    elif clause.tense == "progressive":
        times = [pair for pair in times if pair[0] in ("now", "today", "this evening")]
    elif when == "p" and clause.verb is not BE:
        times = [pair for pair in times if pair[0] != "now"]
    return replace(clause, time=draw.choice(times))


def statement(draw: Draw, clause: Clause) -> Text:
    thing = clause.object
    inverted_ok = not (thing and thing.pronoun and not clause.subject.pronoun)
    definite = thing is not None and not thing.none
    if clause.time and inverted_ok and (draw.chance(0.45) or (definite and clause.negative)):
        first, first_german = clause.time
        comma = "," if draw.chance(0.3) else ""
        text = english(replace(clause, time=None))
        return Text(f"{first}{comma} {text}", german_fronted(clause, first_german))
    if clause.time and (clause.negative or (thing and thing.pronoun)):
        clause = replace(clause, time=None)
    return Text(_shortened(draw, english(clause)), german(clause))


def _shortened(draw: Draw, text: str) -> str:
    if draw.chance(0.3):
        for long, short in SHORT:
            if text.startswith(long):
                return short + text.removeprefix(long)
    return text
