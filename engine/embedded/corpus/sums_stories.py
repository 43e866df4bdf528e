"""Sums in words: who has what, what happens to it, and the question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.embedded.corpus.base import Draw, Phrases
from engine.embedded.corpus.names import FIRST_NAMES
from engine.embedded.corpus.sums_steps import (
    Problem,
    Term,
    counted,
    factors,
    more_terms,
    plural,
    result,
    sentence,
    start_value,
)
from engine.embedded.corpus.sums_words import (
    AFTER,
    BOX_GAINS,
    BOX_LOSSES,
    BOX_STARTS,
    BOXES,
    FOODS,
    FRAMES,
    MEN,
    PAIRS,
    PRICES,
    PRODUCTS,
    ROLES,
    THINGS,
    World,
)
from engine.embedded.corpus.sums_worlds import WORLDS

TENSES = re.compile(r"(\w+)/(\w+)")
TIMES = re.compile(r"\b(morning|noon|afternoon|evening|bed|day|week|spring|later|winter|[A-Z][a-z]+day|May)\b")
Clause = tuple[str, str]  # in lower case; and what is left of it without its subject ("" if it begins otherwise)


@dataclass(frozen=True)
class Subject:
    """Who or what has the things: nominative at the first mention and later, and the pronouns."""

    first: str
    name: str
    he: str
    him: str
    his: str
    where: str = ""

    @property
    def speaks(self) -> bool:
        return self.name == "I"


def person(draw: Draw) -> Subject:
    chance = draw.random.random()
    if chance < 0.12:
        return Subject("I", "I", "I", "me", "my")
    role = draw.choice(ROLES) if chance < 0.24 else ""
    name = role or draw.first_name()
    man = name in MEN or name.endswith(("boy", "brother", "uncle"))
    if not man and name not in FIRST_NAMES and not name.endswith(("a", "girl", "sister", "aunt")):
        man = draw.chance(0.5)
    later = "the " + name.removeprefix("a ") if name.startswith("a ") else name
    return Subject(name, later, *(("he", "him", "his") if man else ("she", "her", "her")))


def place(draw: Draw, world: World) -> Subject:
    where, noun = draw.choice(world.places).split(" ", 1)
    article = draw.choice(("a", "a", "the"))
    return Subject(f"{article} {noun}", f"the {noun}", "it", "it", "its", where)


class Story:
    """The clauses of one story; it remembers who is spoken of."""

    def __init__(self, draw: Draw, world: World) -> None:
        self.draw = draw
        self.world = world
        self.noun = draw.choice(world.nouns)
        self.who = place(draw, world) if world.places else person(draw)
        self.past = self.who.speaks or draw.chance(0.4)
        self.other = self._somebody()
        self.mentioned = False

    def _somebody(self) -> str:
        if self.draw.chance(0.15):
            return self.draw.choice(("a friend", "a neighbour", "a woman", "a man", "a visitor", "a classmate"))
        name = self.draw.first_name()
        return name if name != self.who.name else "a friend"

    def clause(self, pool: Phrases, **slots: object) -> Clause:
        who, draw = self.who, self.draw
        template = draw.choice(pool.of(draw.split))
        name = who.name if self.mentioned else who.first
        subject = who.he if self.mentioned and draw.chance(0.5) else name
        if draw.chance(0.4):
            self.other = self._somebody()
        text = draw.expand(
            TENSES.sub(r"\2" if self.past else r"\1", template),
            S=subject,
            T=who.him if who.speaks or subject == who.he else name,
            P=who.his,
            O=self.other,
            owner="my" if who.speaks else f"{name}'s",
            nouns=plural(self.noun),
            does=f"do {subject}" if who.speaks else f"does {subject}",
            has=f"have {subject}" if who.speaks else f"has {subject}",
            have="have" if who.speaks else "has",
            at=f"{who.where} {who.name}",
            in_a=f"{who.where} {name}",
            a_S=name,
            **slots,
        )
        self.mentioned = self.mentioned or name in text
        return text, text.removeprefix(subject + " ") if template.startswith("{S} ") else ""

    def amount(self, term: Term) -> dict[str, str]:
        """The slots of an operand."""
        n, nouns = term.amount, plural(self.noun)
        if self.world.unit:
            more = self.draw.choice((f"{n} {nouns}", f"{n} {nouns}", f"another {n} {nouns}", f"{n} more {nouns}"))
            return {"more": more, "n": f"{n} {nouns}"}
        if term.sign == "+":
            more = self.draw.choice(
                (f"{n} more", f"{n} more", f"{n} more {nouns}", f"{n} {nouns}", f"another {n}", f"another {n} {nouns}")
            )
            return {"more": more, "n": self.draw.choice((f"{n} {nouns}", str(n)))}
        n_words = self.draw.choice((str(n), str(n), f"{n} {nouns}", f"{n} of the {nouns}", f"{n} of them"))
        return {"more": f"{n} {nouns}", "n": n_words}

    def boxes(self, term: Term) -> dict[str, object]:
        box = self.draw.choice([b for b in BOXES if b != self.noun])
        return {"k": term.factors[0], "m": term.factors[1], "box": box, "boxes": plural(box)}

    def start(self, term: Term) -> Clause:
        if len(term.factors) > 1:
            return self.clause(BOX_STARTS, **self.boxes(term))
        return self.clause(self.world.starts, N=counted(term.amount, self.noun))

    def event(self, term: Term) -> Clause:
        from_boxes = len(term.factors) > 1
        if term.sign == "+":
            pool = BOX_GAINS if from_boxes else self.world.gains
        else:
            pool = BOX_LOSSES if from_boxes else self.world.losses
        assert pool is not None
        return self.clause(pool, **(self.boxes(term) if from_boxes else self.amount(term)))

    def question(self, terms: Sequence[Term]) -> str:
        """The question, in lower case."""
        signs = {t.sign for t in terms[1:]}
        pool = self.world.questions
        if self.world.left and terms[-1].sign == "-" and self.draw.chance(0.6):
            pool = self.world.left
        elif self.world.total and signs == {"+"} and self.draw.chance(0.5):
            pool = self.world.total
        return self.clause(pool)[0]

    def tell(self, terms: Sequence[Term]) -> str:
        """The whole problem."""
        manner = self.draw.random.random()
        if manner < 0.12:
            return self._if(terms)
        if manner < 0.2 and self.who.first == self.who.name:
            return f"{sentence(self.question(terms))} {self._sentences(terms)}"
        return f"{self._sentences(terms)} {sentence(self.question(terms))}"

    def _if(self, terms: Sequence[Term]) -> str:
        *clauses, last = [self.start(terms[0])[0], *(self.event(t)[0] for t in terms[1:])]
        return f"If {', '.join(clauses)} and {last}, {self.question(terms)}"

    def _sentences(self, terms: Sequence[Term]) -> str:
        draw = self.draw
        text, rest = self.start(terms[0])
        sentences = [sentence(text)]
        for term in terms[1:]:
            joinable = bool(rest)
            text, rest = self.event(term)
            if rest and joinable and draw.chance(0.35):
                sentences[-1] += draw.choice((" and ", " and then ", ", then ")) + rest
            else:
                after = draw.choice(AFTER) if len(sentences) > 1 else ""
                sentences.append(sentence(text if TIMES.search(text) else after + text))
        return ". ".join(sentences) + "."


def story_terms(draw: Draw, world: World) -> list[Term]:
    signs = "+-" if world.gains and world.losses else "+" if world.gains else "-"
    if world.boxes and draw.chance(0.18):
        start = Term("+", factors(draw, 25))
    elif signs == "-":
        start = Term("+", (draw.integer(40, 480),))
    else:
        start = Term("+", (start_value(draw, world.largest),))
    terms = more_terms(draw, [start], draw.choice((1, 1, 1, 2, 2, 2, 2, 3, 3, 4)), signs)
    if world.boxes and draw.chance(0.12):
        pair = Term(draw.choice("+-"), factors(draw, 12))
        if pair.sign == "+" or pair.amount <= result(terms):
            terms.append(pair)
    return terms


def story(draw: Draw) -> Problem:
    world = draw.choice(WORLDS)
    terms = story_terms(draw, world)
    telling = Story(draw, world)
    text = telling.tell(terms)
    if draw.chance(0.2):
        text = draw.phrase(FRAMES, story=text)
    return draw.casual(text), terms, telling.noun


def product_story(draw: Draw) -> Problem:
    k, m = factors(draw, 25)
    noun, box = draw.choice(THINGS), draw.choice(BOXES)
    name = draw.first_name()
    if draw.chance(0.7):
        text = draw.phrase(PRODUCTS, k=k, m=m, nouns=plural(noun), noun=noun, box=box, boxes=plural(box), A=name)
    else:
        unit = draw.choice(("euro", "dollar", "pound"))
        text = draw.phrase(PRICES, k=k, m=m, nouns=plural(noun), noun=noun, A=name, units=plural(unit), unit=unit)
        noun = unit
    return draw.casual(text), [Term("+", (k, m))], noun


def pair_story(draw: Draw) -> Problem:
    """Two or three people, compared or taken together."""
    names = [draw.first_name() for _ in range(3)]
    if len(set(names)) < 3:
        names = ["Tom", "Mia", "Leo"]
    noun = draw.choice((*THINGS, *FOODS, "euro", "point"))
    kind, terms = draw.choice(("both", "three", "more", "fewer", "difference")), [Term("+", (start_value(draw),))]
    terms = more_terms(draw, terms, 2 if kind == "three" else 1, "-" if kind in ("fewer", "difference") else "+")
    a, b, *c = (t.amount for t in terms)
    text = draw.phrase(
        PAIRS[kind], A=names[0], B=names[1], C=names[2], a=a, b=b, c=c[0] if c else 0, nouns=plural(noun)
    )
    return draw.casual(text), terms, noun
