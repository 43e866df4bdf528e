"""English and German phrases and clauses built side by side, so that each English text has one German one.

German order of a clause: subject, finite verb, pronoun object, time, frequency, recipient, object, nicht, manner,
companion, place, predicate, rest of the verb. Verb-second, verb-first and verb-final orders are made from the same
parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from engine.embedded.corpus.german_words import (
    ADJECTIVES_TABLE,
    ARTICLES,
    BE,
    MODALS,
    NOUNS_TABLE,
    PLURAL,
    VERBS_TABLE,
    Adjective,
    Noun,
    Verb,
)

NOMINATIVE, ACCUSATIVE, DATIVE = range(3)
CASES = {"accusative": ACCUSATIVE, "dative": DATIVE}
FIRST, SECOND, THIRD, WE, THEY = range(5)  # grammatical persons

# by case, then gender and plural
DEFINITE = (("der", "die", "das", "die"), ("den", "die", "das", "die"), ("dem", "der", "dem", "den"))
DER_ENDINGS = (("er", "e", "es", "e"), ("en", "e", "es", "e"), ("em", "er", "em", "en"))
EIN_ENDINGS = (("", "e", "", "e"), ("en", "e", "", "e"), ("em", "er", "em", "en"))
WEAK = (("e", "e", "e", "en"), ("en", "e", "e", "en"), ("en", "en", "en", "en"))
MIXED = (("er", "e", "es", "en"), ("en", "e", "es", "en"), ("en", "en", "en", "en"))
STRONG = DER_ENDINGS

DER_WORDS = {"this": "dies", "these": "dies", "every": "jed", "all": "all"}
EIN_WORDS = {
    "a": "ein", "no": "kein", "my": "mein", "your": "dein", "his": "sein", "her": "ihr", "our": "unser", "their": "ihr",
}  # fmt: skip
STRONG_WORDS = {"many": "viel", "some": "einig"}

CONTRACTIONS = {
    "in dem ": "im ", "an dem ": "am ", "von dem ": "vom ", "zu dem ": "zum ", "zu der ": "zur ", "bei dem ": "beim ",
    "in das ": "ins ", "an das ": "ans ",
}  # fmt: skip

BE_FORMS = (("am", "bin", "war"), ("are", "bist", "warst"), ("is", "ist", "war"), ("are", "sind", "waren"))
HAVE_FORMS = (("habe", "hatte"), ("hast", "hattest"), ("hat", "hatte"), ("haben", "hatten"))
EARLY_PLACES = ("hier", "dort", "draußen")  # before a manner or an object that is not known
NOT = {
    "do": "don't", "does": "doesn't", "did": "didn't", "is": "isn't", "are": "aren't", "was": "wasn't",
    "were": "weren't", "will": "won't", "can": "can't", "should": "shouldn't",
}  # fmt: skip

Pair = tuple[str, str]  # English, German


@dataclass(frozen=True)
class Term:
    """A noun phrase or pronoun. `german` and `none` (with kein, if it can be negated so) are by case."""

    english: str
    english_object: str
    german: Sequence[str]
    person: int = THIRD
    none: Sequence[str] = ()
    pronoun: bool = False
    noun: Noun | None = None


@dataclass(frozen=True)
class Clause:
    """What is said, without an order of words. `tense`: present, progressive, past, like to, or one of MODALS.

    Pairs are English and German; `predicate` is what follows "to be", `related` an object with a preposition.
    """

    subject: Term
    verb: Verb
    tense: str = "present"
    negative: bool = False
    short: bool = False
    object: Term | None = None
    case: int = ACCUSATIVE
    recipient: Term | None = None
    related: Pair | None = None
    predicate: Pair | None = None
    none_predicate: str = ""
    adverb: Pair | None = None
    manner: Pair | None = None
    companion: Pair | None = None
    place: Pair | None = None
    time: Pair | None = None


@cache
def nouns() -> dict[str, Noun]:
    """All nouns by their English singular."""
    found = {}
    for kind, entry in _entries(NOUNS_TABLE):
        english, article, german, plural = entry.split()
        one, _, many = english.partition("/")
        singular, _, oblique = german.partition("/")
        many = "" if many == "-" else many or one + "s"
        found[one] = Noun(kind, one, many, ARTICLES[article], singular, oblique or singular, plural.strip("-"))
    return found


@cache
def adjectives() -> tuple[Adjective, ...]:
    found: dict[str, Adjective] = {}
    for kinds, entry in _entries(ADJECTIVES_TABLE):
        english, german = entry.split()
        english, _, english_comparative = english.replace("_", " ").partition("/")
        german, _, comparative = german.partition("/")
        german, _, stem = german.partition("|")
        before = found[english].kinds if english in found else frozenset()
        found[english] = Adjective(
            before.union(kinds.split()), english, german, stem or german, english_comparative, comparative
        )
    return tuple(found.values())


@cache
def verbs() -> tuple[Verb, ...]:
    lines = VERBS_TABLE.replace("\n    ", " ").strip().splitlines()
    return tuple(_verb(*(part.strip() for part in line.replace("=", ":").split(":"))) for line in lines)


def _verb(english: str, german: str, subjects: str, objects: str = "") -> Verb:
    forms, _, particle = english.partition(" ")
    base, past, gerund = forms.split("/")
    infinitive, first, second, third, participle = german.split()
    prefix, _, stem = infinitive.rpartition("|")
    case, *kinds = objects.split() or [""]
    return Verb(
        base, past.strip("-"), gerund.strip("-"), particle, stem, prefix, first, second, third,
        participle.strip("+-"), "sein" if participle.startswith("+") else "haben", case,
        tuple(subjects.split()), tuple(kinds),
    )  # fmt: skip


def _entries(table: str) -> list[tuple[str, str]]:
    lines = table.strip().replace("\n    ", " ").splitlines()
    return [
        (head, entry.strip()) for head, _, rest in (line.partition(":") for line in lines) for entry in rest.split(",")
    ]


@cache
def nouns_of(kinds: tuple[str, ...]) -> tuple[Noun, ...]:
    """Nouns of the given kinds; English nouns are given singly."""
    return tuple(noun for noun in nouns().values() if noun.kind in kinds or noun.english in kinds)


@cache
def adjectives_of(noun: Noun) -> tuple[Adjective, ...]:
    return tuple(word for word in adjectives() if noun.kind in word.kinds or noun.english in word.kinds)


def noun_phrase(
    noun: Noun,
    determiner: str = "the",
    *,
    plural: bool = False,
    adjective: Adjective | None = None,
    number: Pair = ("", ""),
) -> Term:
    """`determiner` is "" for none, "number" for `number`."""
    group = PLURAL if plural else noun.gender
    head = [noun.english_plural if plural else noun.english]
    if adjective:
        head.insert(0, adjective.english)
    lead = number[0] if determiner == "number" else determiner
    if determiner == "a":
        lead = "an" if head[0][0] in "aeiou" else "a"
    english = " ".join([lead, *head] if lead else head)
    german = [_german(noun, determiner, case, group, adjective, number[1]) for case in range(3)]
    none: Sequence[str] = ()
    if determiner in ("a", ""):
        none = tuple(_german(noun, "no", case, group, adjective, "") for case in range(3))
    return Term(english, english, german, THEY if plural else THIRD, none, noun=noun)


def _german(noun: Noun, determiner: str, case: int, group: int, adjective: Adjective | None, number: str) -> str:
    endings = STRONG
    words = []
    if determiner == "the":
        words, endings = [DEFINITE[case][group]], WEAK
    elif stem := DER_WORDS.get(determiner):
        words, endings = [stem + DER_ENDINGS[case][group]], WEAK
    elif stem := EIN_WORDS.get(determiner):
        words, endings = [stem + EIN_ENDINGS[case][group]], MIXED
    elif stem := STRONG_WORDS.get(determiner):
        words = [stem + DER_ENDINGS[case][group]]
    elif determiner:
        words = [number]
    if adjective:
        words.append(adjective.stem + endings[case][group])
    return " ".join([*words, _declined(noun, case, group)])


def _declined(noun: Noun, case: int, group: int) -> str:
    if group == PLURAL:
        return noun.dative_plural if case == DATIVE else noun.plural
    return noun.singular if case == NOMINATIVE else noun.oblique


def owned(name: str, noun: Noun, plural: bool = False) -> Term:
    """ "Anna's dog"; not for names that end in an s sound."""
    group = PLURAL if plural else noun.gender
    english = f"{name}'s {noun.english_plural if plural else noun.english}"
    german = [f"{name}s {_declined(noun, case, group)}" for case in range(3)]
    return Term(english, english, german, THEY if plural else THIRD, noun=noun)


def named(name: str) -> Term:
    return Term(name, name, (name,) * 3)


def both(first: Term, second: Term) -> Term:
    """Two subjects joined by "and"."""
    german = [f"{one} und {other}" for one, other in zip(first.german, second.german, strict=True)]
    return Term(
        f"{first.english} and {second.english}", f"{first.english_object} and {second.english_object}", german, THEY
    )


def _pronoun(english: str, english_object: str, german: str, person: int) -> Term:
    return Term(english, english_object, german.split(), person, pronoun=True)


PRONOUNS = {
    "I": _pronoun("I", "me", "ich mich mir", FIRST),
    "you": _pronoun("you", "you", "du dich dir", SECOND),
    "he": _pronoun("he", "him", "er ihn ihm", THIRD),
    "she": _pronoun("she", "her", "sie sie ihr", THIRD),
    "we": _pronoun("we", "us", "wir uns uns", WE),
    "they": _pronoun("they", "them", "sie sie ihnen", THEY),
}


def with_preposition(preposition: Pair, case: int, term: Term) -> Pair:
    """A preposition and its noun, contracted in German where that is the rule."""
    german = f"{preposition[1]} {term.german[case]} "
    for long, short in CONTRACTIONS.items():
        if german.startswith(long):
            german = short + german.removeprefix(long)
    return f"{preposition[0]} {term.english_object}", german.strip()


def third_person(base: str) -> str:
    if base in ("have", "be"):
        return {"have": "has", "be": "is"}[base]
    if base.endswith(("s", "sh", "ch", "x", "o")):
        return base + "es"
    return base[:-1] + "ies" if base.endswith("y") and base[-2] not in "aeiou" else base + "s"


def english_verb(clause: Clause, question: bool = False) -> Pair:
    """The auxiliary (or "") and the rest of the verb, without "not"."""
    verb, tense, person = clause.verb, clause.tense, clause.subject.person
    third = person == THIRD
    if tense == "progressive":
        return BE_FORMS[min(person, WE)][0], verb.gerund
    if verb is BE and tense == "present":
        return BE_FORMS[min(person, WE)][0], ""
    if verb is BE and tense == "past":
        return ("was" if person in (FIRST, THIRD) else "were"), ""
    if tense == "would like to":
        return "would", f"like to {verb.base}"
    if tense in MODALS and not tense.endswith(" to"):
        return tense, verb.base
    modal = tense.partition(" ")[0] if tense.endswith(" to") else ""
    rest = f" to {verb.base}" if modal else ""
    if clause.negative or question:
        return ("did" if tense == "past" else "does" if third else "do"), (modal or verb.base) + rest
    if tense == "past":
        return "", verb.past
    return "", (third_person(modal or verb.base) if third else modal or verb.base) + rest


def _english_negation(clause: Clause, auxiliary: str) -> str:
    if not clause.negative:
        return auxiliary
    if clause.short and auxiliary in NOT:
        return NOT[auxiliary]
    return "cannot" if auxiliary == "can" else f"{auxiliary} not"


def _english_rest(clause: Clause) -> list[str]:
    parts = [clause.predicate[0] if clause.predicate else ""]
    parts += [term.english_object for term in (clause.recipient, clause.object) if term]
    details = (clause.related, clause.manner, clause.place, clause.companion, clause.time)
    return parts + [detail[0] for detail in details if detail]


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def english(clause: Clause) -> str:
    auxiliary, main = english_verb(clause)
    adverb = clause.adverb[0] if clause.adverb else ""
    return _join(
        clause.subject.english, _english_negation(clause, auxiliary), adverb, main, clause.verb.particle,
        *_english_rest(clause),
    )  # fmt: skip


def english_question(clause: Clause, asked: str = "") -> str:
    """Of the clause, or of what `asked` ("where", "how old") stands for."""
    auxiliary, main = english_verb(clause, question=True)
    adverb = clause.adverb[0] if clause.adverb else ""
    rest = _english_rest(clause)
    return _join(asked, auxiliary, clause.subject.english, adverb, main, clause.verb.particle, *rest)


def german_verb(clause: Clause) -> Pair:
    """The finite verb and what stands at the end."""
    verb, tense, form = clause.verb, clause.tense, min(clause.subject.person, WE)
    if tense == "past":
        if verb is BE:
            return BE_FORMS[form][2], ""
        if verb.base == "have":
            return HAVE_FORMS[form][1], ""
        auxiliary = BE_FORMS[form][1] if verb.auxiliary == "sein" else HAVE_FORMS[form][0]
        return auxiliary, verb.participle
    if tense in MODALS:
        return MODALS[tense].split()[form], verb.prefix + verb.infinitive
    if verb is BE:
        return BE_FORMS[form][1], ""
    return (verb.first, verb.second, verb.third, verb.infinitive)[form], verb.prefix


def german_middle(clause: Clause, time: bool = True) -> list[str]:
    """What stands between the finite verb (and the subject, if it follows) and the end."""
    thing, recipient = clause.object, clause.recipient
    negated = clause.negative
    objects = []
    if recipient:
        objects.append(recipient.german[DATIVE])
    if thing and not thing.pronoun:
        with_none = negated and thing.none
        objects.append(thing.none[clause.case] if with_none else thing.german[clause.case])
        negated = negated and not with_none
    predicate = clause.predicate[1] if clause.predicate else ""
    if negated and clause.none_predicate:
        predicate, negated = clause.none_predicate, False
    place = clause.place[1] if clause.place else ""
    early = place in EARLY_PLACES and bool(clause.manner or (thing and thing.none))
    details = (clause.related, clause.manner, clause.companion)
    return [
        thing.german[clause.case] if thing and thing.pronoun else "",
        clause.time[1] if clause.time and time else "",
        clause.adverb[1] if clause.adverb else "",
        place if early else "",
        *objects,
        "nicht" if negated else "",
        *(detail[1] for detail in details if detail),
        "" if early else place,
        predicate,
    ]


def german(clause: Clause) -> str:
    finite, end = german_verb(clause)
    return _join(clause.subject.german[NOMINATIVE], finite, *german_middle(clause), end)


def german_fronted(clause: Clause, first: str, time: bool = False) -> str:
    """`first`, the finite verb, the subject and the rest: also a question, with a question word or nothing in front."""
    finite, end = german_verb(clause)
    return _join(first, finite, clause.subject.german[NOMINATIVE], *german_middle(clause, time), end)


def german_final(clause: Clause, conjunction: str) -> str:
    """A subordinate clause."""
    finite, end = german_verb(clause)
    joined = end + finite if clause.verb.prefix and end == clause.verb.prefix else _join(end, finite)
    return _join(conjunction, clause.subject.german[NOMINATIVE], *german_middle(clause), joined)
