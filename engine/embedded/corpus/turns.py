"""Chats that refer back: facts, corrections, a shopping list, and questions about what was said."""

from __future__ import annotations

from collections.abc import Callable

from engine.embedded.corpus.base import Draw, Example, Message, Phrases, fill, phrases
from engine.embedded.corpus.talk_intents import CLOSINGS, OPENINGS
from engine.embedded.corpus.turns_facts import FACTS, Fact, Question, Values
from engine.embedded.corpus.turns_list import GROCERIES, LIST_ADDS, LIST_ASKS, LIST_OPENS, LIST_REMOVES, listed
from engine.embedded.corpus.wordings import wordings

GREETING = next(intent for intent in OPENINGS if intent.name == "greeting")
THANKS = next(intent for intent in CLOSINGS if intent.name == "thanks")

STATEMENTS = phrases(
    """Hi, {clause}. / Remember that {clause}. / Please remember: {clause}. / Just so you know, {clause}. /
    By the way, {clause}. / You should know that {clause}. / {Clause}, remember that. / Note that {clause}. /
    OK, {clause}. / Hello! {Clause}. / Keep in mind that {clause}. / For your information: {clause}. /
    Let me tell you: {clause}. / I want you to know that {clause}. / Please note that {clause}. / So, {clause}. /
    {Clause}, please keep that in mind. / Please keep in mind: {clause}.""",
    more=wordings("turns.STATEMENTS"),
)
SHORT_CORRECTIONS = phrases(
    """Actually, it is {v}. / Sorry, I meant {v}. / No, {v}. / Sorry, {v}, not {old}. / I meant {v}. /
    Correction: {v}. / Wait, {v}. / No, it is {v}. / Not {old}, {v}. / No, I meant {v}. / Actually {v}. /
    Actually it is {v} / Sorry, it is {v}. / Oh, I meant {v}, not {old}. / That was wrong, it is {v}. /
    I mean {v}. / No wait, {v}. / Not {old} but {v}. / Oh sorry, {v}.""",
    more=wordings("turns.SHORT_CORRECTIONS"),
)
LONG_CORRECTIONS = phrases(
    """Actually, {clause}. / Sorry, {clause}. / Correction: {clause}. / No, {clause}. / I was wrong, {clause}. /
    That was wrong. {Clause}. / Wait, {clause}. / I made a mistake: {clause}. / Let me correct that: {clause}. /
    Actually {clause} / No wait, {clause}. / Oh sorry, {clause}. / That is not right, {clause}. /
    I must correct that: {clause}.""",
    more=wordings("turns.LONG_CORRECTIONS"),
)
AGAIN = phrases(
    """Say that again. / Can you repeat that? / Repeat that, please. / Please say (that|it) again. / Again, please. /
    What did you say? / Repeat your (last answer|answer). / Could you say that again? / Once more, please. /
    Please repeat. / Can you say (that|it) again? / Repeat that. / Say it once more. /
    I did not get that, say it again. / Repeat what you said. / What did you just say? / Tell me again. /
    Sorry, can you repeat that?""",
    more=wordings("turns.AGAIN"),
)
FIRST = phrases(
    """What did I say first? / What was my first message? / What was the first thing I said? /
    What did I (tell|write) you first? / What did I say at the (beginning|start)? / Repeat my first message. /
    What was the first thing I told you? / Quote my first message. / How did I start this chat? /
    What were my first words? / What was the first message? / Which message did I send first? /
    Tell me the first thing I said. / My first message? / Can you quote my first message? /
    What did I ask first? / What did I say first in this chat? / Show me my first message.""",
    more=wordings("turns.FIRST"),
)
LAST = phrases(
    """What did I just say? / What was my last message? / What was the last thing I said? /
    What did I (just tell|just write) you? / Repeat my last message. / Quote my last message. /
    What did I say last? / What was the last thing I told you? / Tell me what I just said. /
    Which message did I send last? / My last message? / Can you repeat what I just said? /
    What did I say just now? / Show me my last message.""",
    more=wordings("turns.LAST"),
)
SUMMARIES = phrases(
    """What do you know about me? / Tell me what you know about me. / What have I told you about me? /
    What did I tell you about (me|myself)? / What do you know so far? / Sum up what I told you. /
    What have I told you so far? / Repeat all that I told you about me. / List what you know about me. /
    What have you learned about me? / Tell me all you know about me. / Sum up what you know about me. /
    What did I tell you so far? / What can you tell me about me? / Say what you know about me.""",
    more=wordings("turns.SUMMARIES"),
)


class Talk:
    """One conversation as it grows, and what the user has told so far."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.messages: list[Message] = []
        self.told: dict[str, tuple[Fact, Values]] = {}
        self.key = ""
        self.latest: list[str] = []  # names of the facts in the last message

    def turn(self, user: str, answer: str, key: str = "") -> None:
        self.messages += [{"role": "user", "content": user}, {"role": "assistant", "content": answer}]
        self.key = key
        self.latest = []

    @property
    def users(self) -> list[str]:
        return [m["content"] for m in self.messages if m["role"] == "user"]

    def greet(self) -> None:
        self.turn(self.draw.phrase(GREETING.phrases), GREETING.answer)

    def thank(self) -> None:
        self.turn(self.draw.phrase(THANKS.phrases), THANKS.answer)

    def tell(self, count: int) -> None:
        """One to three facts that are new, in one message."""
        facts = self._new_facts(count)
        drawn = [(fact, fact.draws(self.draw)) for fact in facts]
        clauses = [self.draw.phrase(fact.tells, **values) for fact, values in drawn]
        self.told.update({fact.name: (fact, values) for fact, values in drawn})
        if count == 1 and self.draw.chance(0.4):
            text = self.draw.phrase(STATEMENTS, clause=clauses[0], Clause=_capital(clauses[0]))
        elif self.draw.chance(0.6):
            text = _capital(" and ".join([", ".join(clauses[:-1]), clauses[-1]] if count > 1 else clauses)) + "."
        else:
            text = " ".join(_capital(clause) + "." for clause in clauses)
        self.turn(_loose(self.draw, text), _acknowledged(drawn))
        self.latest = [fact.name for fact in facts]

    def correct(self) -> None:
        """A new value for a fact: by the value alone if it is the last thing told."""
        alone = len(self.latest) == 1
        fact, values = self.told[self.latest[0] if alone else self.draw.choice(list(self.told))]
        new = values | {fact.main: _other(lambda: fact.draws(self.draw)[fact.main], values[fact.main])}
        if alone and self.draw.chance(0.6):
            text = self.draw.phrase(SHORT_CORRECTIONS, v=new[fact.main], old=values[fact.main])
        else:
            clause = self.draw.phrase(fact.tells, **new)
            text = self.draw.phrase(LONG_CORRECTIONS, clause=clause, Clause=_capital(clause))
        self.told[fact.name] = (fact, new)
        self.turn(_loose(self.draw, text), f"Okay, corrected. {fill(fact.knows, new)}")

    def ask(self) -> None:
        if len(self.told) > 1 and self.draw.chance(0.15):
            self._ask_two()
            return
        fact, values = self.draw.choice(list(self.told.values()))
        question = self.draw.choice(fact.questions)
        self.turn(self._question(question, values), fill(question.answer, values), _key(fact, values))

    def _ask_two(self) -> None:
        (first, values), (second, others) = self.draw.sample(list(self.told.values()), 2)
        questions = self.draw.choice(first.questions), self.draw.choice(second.questions)
        asked = [self.draw.phrase(q.asks, **v) for q, v in zip(questions, (values, others), strict=True)]
        if all(text.endswith("?") for text in asked) and self.draw.chance(0.6):
            text = f"{asked[0][:-1]} and {asked[1][0].lower()}{asked[1][1:]}"
        else:
            text = " ".join(asked)
        answer = f"{fill(questions[0].answer, values)} {fill(questions[1].answer, others)}"
        self.turn(text, answer, f"{_key(first, values)} {_key(second, others)}")

    def ask_unknown(self) -> None:
        (fact,) = self._new_facts(1)
        text = self._question(self.draw.choice(fact.questions), fact.draws(self.draw))
        self.turn(text, f"You have not told me {fact.unknown}.")

    def ask_summary(self) -> None:
        known = [fill(fact.knows, values) for fact, values in self.told.values()]
        self.turn(self._asked(SUMMARIES), " ".join(known), " ".join(known))

    def ask_again(self) -> None:
        """The last answer once more."""
        answer = self.messages[-1]["content"]
        self.turn(self._asked(AGAIN), answer, f"again {answer}")

    def ask_first(self) -> None:
        self.turn(self._asked(FIRST), f'Your first message was: "{self.users[0]}"', f"first {self.users[0]}")

    def ask_last(self) -> None:
        self.turn(self._asked(LAST), f'Your last message was: "{self.users[-1]}"', f"last {self.users[-1]}")

    def _asked(self, pool: Phrases) -> str:
        return self.draw.casual(self.draw.phrase(pool))

    def _question(self, question: Question, values: Values) -> str:
        return self.draw.casual(self.draw.phrase(question.asks, **values))

    def _new_facts(self, count: int) -> list[Fact]:
        """Facts that have not been told, all different."""
        found: dict[str, Fact] = {}
        while len(found) < count:
            fact = self.draw.choice(FACTS)
            if fact.name not in self.told:
                found[fact.name] = fact
        return list(found.values())


class ShoppingList:
    """A list that is begun, changed and asked for in a conversation."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.draw = talk.draw
        self.items = self.draw.sample(GROCERIES, self.draw.integer(2, 4))
        self._say(self.draw.phrase(LIST_OPENS, items=listed(self.items)))

    def change(self) -> None:
        """Something added, or one thing taken off."""
        if len(self.items) > 2 and self.draw.chance(0.4):
            gone = self.draw.choice(self.items)
            self.items.remove(gone)
            self._say(self.draw.phrase(LIST_REMOVES, item=gone))
        else:
            rest = [item for item in GROCERIES if item not in self.items]
            new = self.draw.sample(rest, self.draw.choice((1, 1, 2)))
            self.items += new
            self._say(self.draw.phrase(LIST_ADDS, items=listed(new)))

    def ask(self) -> None:
        answer = self._state()
        self.talk.turn(self.draw.casual(self.draw.phrase(LIST_ASKS)), answer, answer)

    def _say(self, text: str) -> None:
        self.talk.turn(_loose(self.draw, text), f"Got it. {self._state()}")

    def _state(self) -> str:
        return f"Your list has {listed(self.items)}."


class Turns:
    name = "turns"

    def make(self, draw: Draw) -> Example:
        talk = Talk(draw)
        if draw.chance(0.12):
            talk.greet()
        kind = draw.random.random()
        if kind < 0.14:
            self._shop(talk)
        elif kind < 0.18:
            talk.ask_unknown()
        else:
            self._chat(talk)
        return Example(self.name, talk.messages, talk.key, str(talk.messages[-1]["content"]))

    def check(self, example: Example, answer: str) -> bool:
        return answer.strip() == str(example.expect)

    def _shop(self, talk: Talk) -> None:
        """The list, with a fact and thanks in between; ended by a question about it."""
        draw = talk.draw
        if draw.chance(0.2):
            talk.tell(1)
        shopping = ShoppingList(talk)
        for _ in range(draw.choice((0, 1, 1, 2))):
            shopping.change()
        if draw.chance(0.2):
            talk.thank()
        shopping.ask()

    def _chat(self, talk: Talk) -> None:
        """Facts and corrections, other turns in between, and a question at the end."""
        draw = talk.draw
        talk.tell(draw.choice((1, 1, 1, 2, 2, 3)))
        if draw.chance(0.25):
            talk.correct()
        if draw.chance(0.3):
            talk.tell(draw.choice((1, 1, 2)))
        if draw.chance(0.12):
            talk.thank()
        if draw.chance(0.15):
            talk.correct()
        if draw.chance(0.25):
            talk.ask()
        self._end(talk)

    def _end(self, talk: Talk) -> None:
        kind = talk.draw.random.random()
        if kind < 0.58:
            talk.ask()
        elif kind < 0.7:
            talk.ask_unknown()
        elif kind < 0.78:
            talk.ask_first()
        elif kind < 0.82:
            talk.ask_last()
        elif kind < 0.9:
            talk.ask_again()
        elif kind < 0.97:
            talk.ask_summary()


def _key(fact: Fact, values: Values) -> str:
    return f"{fact.name} {' '.join(values.values())}"


def _acknowledged(drawn: list[tuple[Fact, Values]]) -> str:
    """A name is greeted; other facts are said back."""
    names = [values["v"] for fact, values in drawn if fact.name == "name"]
    if names:
        return f"Nice to meet you, {names[0]}!"
    return " ".join(["Got it.", *(fill(fact.knows, values) for fact, values in drawn)])


def _other(draws: Callable[[], str], old: str) -> str:
    while (new := draws()) == old:
        pass
    return new


def _capital(clause: str) -> str:
    return clause[0].upper() + clause[1:]


def _loose(draw: Draw, text: str) -> str:
    """A statement as people type it."""
    if draw.chance(0.1):
        text = text[0].lower() + text[1:]
    return text.rstrip(".") if draw.chance(0.15) else text


SKILL = Turns()
