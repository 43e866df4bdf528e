"""The sentence patterns of the translation skill: each draws one English text with its German.

Texts begin with a small letter (unless the word has a capital anyway) and have no final mark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.embedded.corpus.base import Draw
from engine.embedded.corpus.german_grammar import (
    ACCUSATIVE,
    DATIVE,
    FIRST,
    NOMINATIVE,
    PRONOUNS,
    THEY,
    Clause,
    Pair,
    Term,
    adjectives,
    adjectives_of,
    english,
    english_question,
    german,
    german_final,
    german_fronted,
    german_middle,
    noun_phrase,
    nouns,
    nouns_of,
    verbs,
    with_preposition,
)
from engine.embedded.corpus.german_parts import (
    ANIMATE,
    HE,
    OWNERS,
    PEOPLE,
    SHE,
    Text,
    be_adjective,
    draw_adjective,
    draw_clause,
    draw_companion,
    draw_names,
    draw_place,
    draw_quality,
    draw_some,
    draw_subject,
    draw_term,
    intransitive,
    is_person,
    places,
    statement,
    vary,
    verb_named,
    verbs_of,
    with_tense,
)
from engine.embedded.corpus.german_parts import direction as moving
from engine.embedded.corpus.german_phrases import (
    CITIES,
    COUNTRIES,
    GAMES,
    IMPERATIVES,
    LANGUAGES,
    PHRASES,
    PROFESSIONS,
    QUESTIONS,
    WORDS,
    number_words,
)
from engine.embedded.corpus.german_words import BE, NUMBERS, Noun, Verb, words

SPEAK = Verb(
    "speak", "spoke", "speaking", "", "sprechen", "", "spreche", "sprichst", "spricht", "gesprochen", "haben", "",
    (), (),
)  # fmt: skip
THINKING = (
    Verb("know", "knew", "", "", "wissen", "", "weiß", "weißt", "weiß", "gewusst", "haben", "", (), ()),
    Verb("think", "thought", "", "", "denken", "", "denke", "denkst", "denkt", "gedacht", "haben", "", (), ()),
    Verb("say", "said", "", "", "sagen", "", "sage", "sagst", "sagt", "gesagt", "haben", "", (), ()),
    Verb("hope", "hoped", "", "", "hoffen", "", "hoffe", "hoffst", "hofft", "gehofft", "haben", "", (), ()),
    Verb("believe", "believed", "", "", "glauben", "", "glaube", "glaubst", "glaubt", "geglaubt", "haben", "", (), ()),
)


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def simple(draw: Draw) -> Text:
    return statement(draw, draw_clause(draw))


def several(draw: Draw) -> Text:
    """Two to four short sentences."""
    clauses = [
        be_adjective(draw) if draw.chance(0.6) else draw_clause(draw) for _ in range(draw.choice((2, 2, 2, 3, 3, 4)))
    ]
    texts = [statement(draw, clause) for clause in clauses]
    return Text(". ".join(capital(text.english) for text in texts), ". ".join(capital(text.german) for text in texts))


def varied(draw: Draw) -> Text:
    return statement(draw, vary(draw, draw_clause(draw)))


def joined(draw: Draw) -> Text:
    """Two main clauses."""
    first, second = (statement(draw, draw_clause(draw) if draw.chance(0.5) else be_adjective(draw)) for _ in range(2))
    link = draw.choice(
        ((" and ", " und "), (" and ", " und "), (", and ", " und "), (", but ", ", aber "), (" or ", " oder "))
    )
    return Text(first.english + link[0] + second.english, first.german + link[1] + second.german)


def yes_or_no(draw: Draw) -> Text:
    clause = _askable(draw)
    if draw.chance(0.5):
        clause = with_tense(draw, clause)
    return _asked(clause, "", "")


def _askable(draw: Draw) -> Clause:
    """A clause that is asked with one natural order of words."""
    clause = draw_clause(draw)
    if clause.object and clause.object.pronoun:
        clause = replace(clause, object=noun_phrase(draw.choice(nouns_of(PEOPLE)), "the"))
    return replace(clause, subject=PRONOUNS["you"]) if clause.subject.person == FIRST else clause


def _asked(clause: Clause, asked: str, asked_german: str) -> Text:
    return Text(english_question(clause, asked), german_fronted(clause, asked_german, time=True), "?")


def open_question(draw: Draw) -> Text:
    return draw.choice(OPEN_QUESTIONS)(draw)


def _where_is(draw: Draw) -> Text:
    return _asked(Clause(draw_subject(draw, (*ANIMATE, "thing", "vehicle", "place")), BE), "where", "wo")


def _where_when_why(draw: Draw) -> Text:
    asked = draw.choice((("where", "wo"), ("why", "warum"), ("when", "wann")))
    unfit = ("run", "jump", "fly", "stay", "lie") if asked[0] == "where" else ("live", "lie")
    clause = intransitive(draw)
    while clause.verb.base in unfit:  # "wohin" is as right, or it would mean something else ("why does he lie")
        clause = intransitive(draw)
    return _asked(replace(clause, place=None, companion=None, manner=None), *asked)


def _where_to(draw: Draw) -> Text:
    return _asked(Clause(draw_subject(draw, PEOPLE), verb_named("go")), "where", "wohin")


def _when(draw: Draw) -> Text:
    return _asked(replace(moving(draw), companion=None), "when", "wann")


def _what(draw: Draw) -> Text:
    verb = draw.choice([v for v in verbs_of("object") if v.objects[0] != "person" or v.base in ("see", "look", "like")])
    return _asked(Clause(draw_subject(draw, PEOPLE), verb), "what", "was")


def _who(draw: Draw) -> Text:
    who = Term("who", "whom", ("wer",) * 3)
    clause = draw_clause(draw)
    while not is_person(clause.subject):
        clause = draw_clause(draw)
    clause = replace(clause, subject=who)
    return Text(english(clause), german(clause), "?")


def _who_is(draw: Draw) -> Text:
    determiner, plural = draw.choice((("the", False), ("this", False), (draw.choice(OWNERS), False), ("the", True)))
    noun = draw.choice(nouns_of(PEOPLE))
    adjective = draw_adjective(draw, noun) if draw.chance(0.1) else None
    return _asked(Clause(noun_phrase(noun, determiner, plural=plural, adjective=adjective), BE), "who", "wer")


def _how(draw: Draw) -> Text:
    subject = draw_subject(draw, draw.choice((PEOPLE, ("animal", "vehicle", "thing"), ("nature", "place"))))
    quality = draw.choice([word for word in adjectives_of(subject.noun or nouns()["man"]) if word.comparative])
    return _asked(Clause(subject, BE), f"how {quality.english}", f"wie {quality.german}")


def _how_many(draw: Draw) -> Text:
    verb = draw.choice([verb_named(base) for base in ("have", "buy", "see", "need", "sell", "carry", "find")])
    noun = draw.choice([noun for noun in nouns_of(verb.objects) if noun.plural])
    clause = Clause(draw_subject(draw, PEOPLE), verb)
    return _asked(clause, f"how many {noun.english_plural}", f"wie viele {noun.plural}")


def _why(draw: Draw) -> Text:
    return _asked(_askable(draw), "why", "warum")


OPEN_QUESTIONS = (_where_is, _where_when_why, _where_to, _when, _what, _who, _who_is, _how, _how_many, _why)


def there_is(draw: Draw) -> Text:
    kind = draw.choice(("animal", "thing", "person", "furniture", "place", "nature", "food", "dish", "drink"))
    preposition, place = draw.choice([found for found in places() if _holds(*found, kind)])
    where = with_preposition(preposition, DATIVE, noun_phrase(place, "the"))
    noun = draw.choice([noun for noun in nouns_of((kind,)) if noun is not place])
    adjective = draw_adjective(draw, noun) if draw.chance(0.2) else None
    number = draw.choice(tuple(NUMBERS.items()))
    if not noun.plural:
        thing = noun_phrase(
            noun, draw.choice(("", "", "no") if kind in ("dish", "drink") else ("a",)), adjective=adjective
        )
    elif draw.chance(0.5):
        many = draw.choice(("number", "number", "many", "some", "no"))
        thing = noun_phrase(noun, many, plural=True, adjective=adjective, number=number)
    else:
        thing = noun_phrase(noun, draw.choice(("a", "a", "a", "no")), adjective=adjective)
    are = "are" if thing.person == THEY else "is"
    if not thing.english.startswith("no ") and draw.chance(0.2):
        return Text(f"{are} there {thing.english} {where[0]}", f"gibt es {thing.german[ACCUSATIVE]} {where[1]}", "?")
    return Text(f"there {are} {thing.english} {where[0]}", f"es gibt {thing.german[ACCUSATIVE]} {where[1]}")


WIDE = words("city village island mountain hill street farm beach park forest")
ROOMS = words(
    "house kitchen room school church hotel restaurant shop hospital castle museum library office tower garden"
)


def _holds(preposition: Pair, place: Noun, kind: str) -> bool:
    """Whether things of the kind may be there."""
    if kind in ("place", "nature"):
        return place.english in WIDE and preposition[0] in ("in", "on")
    if kind == "furniture":
        return place.english in ROOMS and preposition[0] == "in"
    return kind != "person" or not (preposition[0] in ("on", "under") and place.kind == "furniture")


def this_is(draw: Draw) -> Text:
    term = draw_term(draw, draw.choice(tuple(nouns().values())))
    while term.english.split()[0] in ("this", "these", "every", "all", "no", "time"):
        term = draw_term(draw, draw.choice(tuple(nouns().values())))
    if term.person == THEY:
        return Text(f"these are {term.english}", f"das sind {term.german[NOMINATIVE]}")
    if draw.chance(0.25):
        return Text(f"is this {term.english}", f"ist das {term.german[NOMINATIVE]}", "?")
    return Text(f"this is {term.english}", f"das ist {term.german[NOMINATIVE]}")


def comparison(draw: Draw) -> Text:
    kind = draw.choice((PEOPLE, ("animal",), ("vehicle",), ("clothes",), ("place",), ("nature",), ("thing",)))
    first, second = draw.sample(nouns_of(kind), 2)
    quality = draw.choice([word for word in adjectives_of(first) if word.comparative and word in adjectives_of(second)])
    owner, other = (draw.choice(("the", "the", "my", "his", "this")) for _ in range(2))
    subject, standard = noun_phrase(first, owner), noun_phrase(second, other)
    if kind == PEOPLE and draw.chance(0.3):
        subject, standard = draw_names(draw)
    than, as_much = f" {standard.english}", f" {standard.german[NOMINATIVE]}"
    if draw.chance(0.3):
        predicate = f"as {quality.english} as" + than, f"so {quality.german} wie" + as_much
    else:
        predicate = f"{quality.english_comparative} than" + than, f"{quality.comparative} als" + as_much
    clause = Clause(subject, BE, predicate=predicate)
    return _maybe_asked(draw, replace(clause, negative=draw.chance(0.15)))


def profession(draw: Draw) -> Text:
    """Without an article in German, unless there is an adjective; of men, because of the forms in -in."""
    man = nouns()[draw.choice([person for person in HE if person not in ("king", "prince")])]
    subject = PRONOUNS["he"] if draw.chance(0.3) else noun_phrase(man, draw.choice(("the", "this", *OWNERS)))
    job = nouns()[draw.choice(PROFESSIONS)]
    term = noun_phrase(job, "a")
    predicate = term.english, job.singular
    if draw.chance(0.35):
        term = noun_phrase(job, draw.choice(("a", "a", *OWNERS)), adjective=draw_adjective(draw, job))
        predicate = term.english, term.german[NOMINATIVE]
    none = term.none[NOMINATIVE] if term.none else ""
    clause = Clause(subject, BE, predicate=predicate, none_predicate=none)
    return _maybe_asked(draw, replace(clause, tense=draw.choice(("present", "past")), negative=draw.chance(0.25)))


def _maybe_asked(draw: Draw, clause: Clause) -> Text:
    if clause.subject.person != FIRST and not clause.negative and draw.chance(0.25):
        return _asked(clause, "", "")
    return statement(draw, clause)


def about_people(draw: Draw) -> Text:
    """Names, ages, where one comes from, languages, games."""
    return draw.choice((_name, _age, _origin, _language, _game))(draw)


def _name(draw: Draw) -> Text:
    owner, german_start = draw.choice(
        (("my", "ich heiße"), ("her", "sie heißt"), ("his", "er heißt"), ("your", "du heißt"))
    )
    name = draw.first_name()
    return Text(f"{owner} name is {name}", f"{german_start} {name}")


def _age(draw: Draw) -> Text:
    subject = draw_subject(draw, PEOPLE, 0.0)
    young = subject.noun is not None and subject.noun.english in ("baby", "child", "boy", "girl")
    age = number_words(draw.integer(2, 14 if young else 99))
    predicate = f"{age[0]} years old", f"{age[1]} Jahre alt"
    return statement(draw, Clause(subject, BE, predicate=predicate))


def _origin(draw: Draw) -> Text:
    place = draw.choice((*COUNTRIES.items(), *((city, city) for city in CITIES)))
    clause = Clause(draw_subject(draw, PEOPLE, 0.0), verb_named("come"), place=(f"from {place[0]}", f"aus {place[1]}"))
    return _maybe_asked(draw, clause)


def _language(draw: Draw) -> Text:
    verb = draw.choice((SPEAK, verb_named("learn")))
    clause = Clause(draw_subject(draw, PEOPLE, 0.0), verb, related=draw.choice(tuple(LANGUAGES.items())))
    return _maybe_asked(draw, clause)


def _game(draw: Draw) -> Text:
    clause = Clause(draw_subject(draw, PEOPLE, 0.0), verb_named("play"), related=draw.choice(tuple(GAMES.items())))
    tense = draw.choice(("present", "present", "progressive", "can", "want to", "past"))
    return _maybe_asked(draw, replace(clause, tense=tense))


def gift(draw: Draw) -> Text:
    """Something is for or from someone."""
    thing = draw_some(draw, ("thing", "text", "clothes", "food"), None, 0.1)
    person = draw_subject(draw, PEOPLE, 0.1)
    preposition, case = draw.choice(((("for", "für"), ACCUSATIVE), (("from", "von"), DATIVE)))
    return statement(draw, Clause(thing, BE, predicate=with_preposition(preposition, case, person)))


def because(draw: Draw) -> Text:
    main = _plain_order(draw)
    reason = vary(draw, draw_clause(draw)) if draw.chance(0.4) else be_adjective(draw)
    back = referring(main.subject)
    if back and draw.chance(0.7):
        reason = Clause(back, BE, predicate=draw_quality(draw, main.subject.noun))
    reason = replace(reason, time=None)
    first = statement(draw, main)
    return Text(f"{first.english} because {english(reason)}", f"{first.german}, {german_final(reason, 'weil')}")


def _plain_order(draw: Draw) -> Clause:
    """A clause that keeps its order when something else comes first."""
    clause = draw_clause(draw)
    while clause.object and clause.object.pronoun:
        clause = draw_clause(draw)
    return clause


def referring(subject: Term) -> Term | None:
    """The pronoun for the subject, where English and German agree on it."""
    if subject.pronoun:
        return subject
    if subject.person == THEY:
        return PRONOUNS["they"]
    if subject.noun and subject.noun.english in HE + SHE:
        return PRONOUNS["he" if subject.noun.english in HE else "she"]
    return None


def that(draw: Draw) -> Text:
    """I know that …"""
    clause = Clause(draw_subject(draw, PEOPLE, 0.0), draw.choice(THINKING))
    content = replace(vary(draw, draw_clause(draw)), time=None)
    return Text(f"{english(clause)} that {english(content)}", f"{german(clause)}, {german_final(content, 'dass')}")


WEATHER = (("it rains", "es regnet"), ("the sun shines", "die Sonne scheint"), ("it snows", "es schneit"))


def if_or_when(draw: Draw) -> Text:
    condition, result = draw_clause(draw), _plain_order(draw)
    texts = english(condition), german_final(condition, "")
    if draw.chance(0.25):
        texts = draw.choice(WEATHER)
    word = draw.choice(("if", "when"))
    if draw.chance(0.5):
        return Text(f"{word} {texts[0]}, {english(result)}", f"wenn {texts[1]}, {german_fronted(result, '')}")
    return Text(f"{english(result)} {word} {texts[0]}", f"{german(result)}, wenn {texts[1]}")


def command(draw: Draw) -> Text:
    name, imperative = draw.choice(tuple(IMPERATIVES.items()))
    verb = next(v for v in verbs() if v.case == "accusative" and name == f"{v.base} {v.particle}".strip())
    thing = _commanded(draw, draw.choice(nouns_of(verb.objects)), name == "forget")
    negative = not thing.none and (name == "forget" or draw.chance(0.25))
    middle = german_middle(Clause(PRONOUNS["you"], verb, object=thing, negative=negative))
    text = f"{name} {thing.english}"
    german_text = " ".join(part for part in (imperative, *middle, verb.prefix) if part)
    if negative:
        text = draw.choice(("do not ", "don't ")) + text
    if draw.chance(0.25):
        text, german_text = "please " + text, "bitte " + german_text
    return Text(text, german_text, draw.choice((".", "!")))


def _commanded(draw: Draw, noun: Noun, definite: bool) -> Term:
    if noun.kind == "unique" or definite:
        return noun_phrase(noun, "the")
    determiner = draw.choice(("the", "the", "your", "my", "this", "a"))
    return noun_phrase(noun, "" if noun.kind in ("dish", "drink") and determiner == "a" else determiner)


COLD: dict[str, str] = dict(
    zip(words("cold warm good bad dark late early"), words("kalt warm gut schlecht dunkel spät früh"), strict=True)
)


def weather(draw: Draw) -> Text:
    if draw.chance(0.3):
        return Text(*draw.choice((("it is raining", "es regnet"), ("it is snowing", "es schneit"), WEATHER[1])))
    word, german_word = draw.choice(tuple(COLD.items()))
    degree: Pair = draw.choice((("", ""), ("", ""), ("very ", "sehr ")))
    subject = Term("it", "it", ("es",) * 3)
    if word in ("good", "bad") or (word in ("cold", "warm") and draw.chance(0.3)):
        subject = Term("the weather", "the weather", ("das Wetter",) * 3)
    clause = Clause(
        subject, BE, negative=draw.chance(0.2),
        predicate=(degree[0] + word, degree[1] + german_word),
    )  # fmt: skip
    if draw.chance(0.4):
        return statement(draw, replace(clause, time=("today", "heute"), negative=False))
    return _maybe_asked(draw, clause)


def set_phrase(draw: Draw) -> Text:
    if draw.chance(0.3):
        phrase = draw.choice(tuple(QUESTIONS))
        return Text(*_small(phrase, QUESTIONS[phrase]), "?")
    phrase = draw.choice(tuple(PHRASES))
    return Text(*_small(phrase, PHRASES[phrase]))


def _small(phrase: str, german_phrase: str) -> Pair:
    """Both without their first capital, unless it belongs to the word."""
    if not phrase.startswith("I "):
        phrase = phrase[0].lower() + phrase[1:]
    if german_phrase not in ("Entschuldigung", "Prost"):
        german_phrase = german_phrase[0].lower() + german_phrase[1:]
    return phrase, german_phrase


def word(draw: Draw) -> Text:
    """A single word, or "to" and a verb."""
    form = draw.random.random()
    if form < 0.45:
        noun = draw.choice(tuple(nouns().values()))
        if noun.plural and draw.chance(0.15):
            return Text(noun.english_plural, noun.plural, "")
        return Text(noun.english, noun.singular, "")
    if form < 0.6:
        quality = draw.choice([word for word in adjectives() if word.english not in nouns()])
        return Text(quality.english, quality.german, "")
    if form < 0.75:
        verb = draw.choice([verb for verb in verbs() if "_" not in verb.case])
        return Text(f"to {verb.base} {verb.particle}".strip(), verb.prefix + verb.infinitive, "")
    if form < 0.85:
        return Text(*number_words(draw.integer(0, 100)), "")
    return Text(*draw.choice(tuple(WORDS.items())), "")


def phrase(draw: Draw) -> Text:
    """A noun phrase, sometimes with a preposition."""
    if draw.chance(0.2):
        return Text(*(draw_place(draw) if draw.chance(0.7) else draw_companion(draw)), "")
    term = draw_term(draw, draw.choice(tuple(nouns().values())), 0.6)
    return Text(term.english, term.german[NOMINATIVE], "")


PATTERNS: tuple[tuple[float, Callable[[Draw], Text]], ...] = (
    (24, simple),
    (9, several),
    (22, varied),
    (5, joined),
    (5, yes_or_no),
    (6, open_question),
    (3, there_is),
    (2, this_is),
    (3, comparison),
    (2, profession),
    (5, about_people),
    (1.5, gift),
    (3, because),
    (2, that),
    (2, if_or_when),
    (3, command),
    (1, weather),
    (2.5, set_phrase),
    (7, word),
    (9, phrase),
)
