"""What a user says about themselves, and how they ask for it later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.embedded.corpus.base import Draw, Phrases, phrases

Values = dict[str, str]


@dataclass(frozen=True)
class Question:
    asks: Phrases
    answer: str


@dataclass(frozen=True)
class Fact:
    """`tells` are clauses without a full stop; `main` is the value that a correction replaces.

    `knows` states the fact to the user; `unknown` ends "You have not told me".
    """

    name: str
    draws: Callable[[Draw], Values]
    tells: Phrases
    knows: str
    questions: tuple[Question, ...]
    unknown: str
    main: str = "v"


def words(text: str) -> Callable[[Draw], Values]:
    pool = tuple(part.strip() for part in text.split(",")) if "," in text else tuple(text.split())
    return lambda draw: {"v": draw.choice(pool)}


def simple(
    name: str, draws: Callable[[Draw], Values], knows: str, unknown: str, tells: str, asks: str, **slots: str
) -> Fact:
    """A fact with one value and one question, answered by what is known."""
    question = Question(phrases(asks, **slots), knows)
    return Fact(name, draws, phrases(tells, **slots), knows, (question,), unknown)


def _time(draw: Draw) -> str:
    if draw.chance(0.5):
        return f"{draw.integer(1, 12)} {draw.choice(HALVES)}"
    return f"{draw.integer(6, 22):02}:{draw.choice(('00', '15', '30', '45'))}"


def _date(draw: Draw) -> Values:
    return {"v": f"{draw.integer(1, 28)} {draw.choice(MONTHS)}"}


def _place(draw: Draw) -> Values:
    return {"v": draw.choice(PLACES) if draw.chance(0.6) else draw.surname()}


def _code(draw: Draw) -> Values:
    return {"v": "".join(str(draw.integer(0, 9)) for _ in range(draw.integer(3, 6)))}


def _person(draw: Draw) -> Values:
    return {"v": draw.first_name()}


MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
HALVES = ("am", "pm", "pm", "o'clock")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PLACES = (
    *("Oslo", "Bergen", "Paris", "London", "Berlin", "Rome", "Madrid", "Vienna", "Tokyo", "Kyoto", "Lima", "Cairo"),
    *("Delhi", "Seoul", "Dublin", "Lisbon", "Prague", "Warsaw", "Athens", "Helsinki", "Stockholm", "Hamburg", "Munich"),
    *("Geneva", "Milan", "Naples", "Lyon", "Brussels", "Boston", "Chicago", "Denver", "Seattle", "Toronto", "Sydney"),
    *("Nairobi", "Lagos", "Istanbul", "Beijing", "Bangkok", "New York", "Hong Kong", "Cape Town"),
)
ANIMALS = ("dog", "cat", "horse", "rabbit", "parrot", "hamster", "turtle", "goat", "snake", "goldfish", "pony")
JOBS = """nurse, teacher, baker, driver, painter, farmer, lawyer, doctor, pilot, cook, gardener, carpenter, programmer,
    writer, librarian, dentist, plumber, singer, waiter, photographer, tailor, judge, builder, postman, designer"""
FAVOURITES = {
    "colour": "red blue green yellow black white purple orange pink brown grey turquoise silver gold",
    "food": "pizza pasta rice soup sushi curry bread cheese pancakes salad noodles dumplings lasagne",
    "fruit": "apple, banana, mango, pear, plum, orange, melon, papaya, peach, kiwi",
    "animal": "the dog, the cat, the horse, the fox, the owl, the whale, the bear, the otter, the tiger, the penguin",
    "season": "spring summer autumn winter",
    "sport": "football tennis chess swimming running cycling hockey climbing rowing skiing basketball",
    "drink": "tea coffee water milk juice cocoa lemonade cider",
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "subject": "maths history music art physics biology geography chemistry",
    "flower": "the rose, the tulip, the daisy, the lily, the poppy, the sunflower, the violet, the iris",
}
RELATIONS = ("sister", "brother", "mother", "father", "boss", "neighbour", "teacher", "best friend", "cousin", "doctor")
CODES = ("locker code", "room number", "password", "seat number", "order number", "phone number", "door code", "PIN")
COLOURED = ("car", "bike", "bag", "house", "coat", "umbrella", "front door")
COLOURS = "red, blue, green, yellow, black, white, grey, brown, orange, purple, pink, silver"


def _favourite(thing: str, draws: Callable[[Draw], Values]) -> Fact:
    return simple(
        f"favourite {thing}",
        draws,
        f"Your favourite {thing} is {{v}}.",
        f"your favourite {thing}",
        """my (favourite|favorite) {thing} is {v} / the {thing} I like (most|best) is {v} /
        my one (favourite|favorite) {thing} is {v} / {v} is my (favourite|favorite) {thing} /
        the best {thing} is {v}, if you ask me / no {thing} is better than {v} for me /
        I like {v} best, that is my (favourite|favorite) {thing} / for me the best {thing} is {v} /
        I have a (favourite|favorite) {thing}, {v}""",
        """What is my (favourite|favorite) {thing}? / Which {thing} do I like (best|most)? /
        (Tell me|Say) my (favourite|favorite) {thing}. / What (was|is) my (favourite|favorite) {thing}(| again)? /
        Do you remember my (favourite|favorite) {thing}? / What {thing} do I like? /
        My (favourite|favorite) {thing}? / Do you know which {thing} I like best? /
        Which {thing} is my (favourite|favorite)? / What did I say my (favourite|favorite) {thing} is? /
        Can you tell me my (favourite|favorite) {thing}?""",
        thing=thing,
    )


def _relation(thing: str) -> Fact:
    return simple(
        thing,
        _person,
        f"Your {thing} is called {{v}}.",
        f"what your {thing} is called",
        """my {thing} is called {v} / I have a {thing} called {v} / my {thing} has the name {v} /
        my {thing}'s name is {v} / the name of my {thing} is {v} / {v} is my {thing} / I have a {thing} named {v}""",
        """What is my {thing} called? / What is my {thing}'s name? / What is the name of my {thing}? /
        What is my {thing}('s name| called) again? / Who is my {thing}? / Tell me my {thing}'s name. /
        Do you remember the name of my {thing}? / My {thing}'s name? / Do you know what my {thing} is called? /
        Can you tell me what my {thing} is called? / What did I say my {thing} is called?""",
        thing=thing,
    )


def _code_of(thing: str) -> Fact:
    return simple(
        thing,
        _code,
        f"Your {thing} is {{v}}.",
        f"your {thing}",
        """my {thing} is {v} / the {thing} is {v} / my {thing} is now {v} / I have the {thing} {v} /
        my new {thing} is {v} / here is my {thing}, {v} / I got the {thing} {v} / they gave me the {thing} {v}""",
        """What is my {thing}? / Which {thing} do I have? / Tell me my {thing}. /
        What (was|is) my {thing}(| again)? / Do you remember my {thing}? / My {thing}? / What was the {thing}? /
        I forgot my {thing}. What is it? / Can you give me my {thing}? / Say my {thing}, please. /
        What did I say my {thing} is?""",
        thing=thing,
    )


def _colour_of(thing: str) -> Fact:
    return simple(
        f"colour of the {thing}",
        words(COLOURS),
        f"Your {thing} is {{v}}.",
        f"the colour of your {thing}",
        """my {thing} is {v} / I have a {v} {thing} / the (colour|color) {v} is the (colour|color) of my {thing} /
        the (colour|color) of my {thing} is {v} / my new {thing} is {v} / my {thing} has the (colour|color) {v} /
        I got a {v} {thing} / I bought a {v} {thing}""",
        """What (colour|color) is my {thing}? / What is the (colour|color) of my {thing}? /
        Which (colour|color) does my {thing} have? / What (colour|color) (was|is) my {thing}(| again)? /
        Do you remember the (colour|color) of my {thing}? / The (colour|color) of my {thing}? /
        Tell me the (colour|color) of my {thing}. / Do you know what (colour|color) my {thing} is? /
        Which (colour|color) is my {thing}? / Can you tell me what (colour|color) my {thing} is?""",
        thing=thing,
    )


NAME = simple(
    "name",
    lambda draw: {"v": draw.first_name() if draw.chance(0.85) else f"{draw.first_name()} {draw.surname()}"},
    "Your name is {v}.",
    "your name",
    """my name is {v} / I am {v} / I'm {v} / my name's {v} / I am called {v} / my first name is {v} /
    you can call me {v} / people call me {v}""",
    """What is my name? / What's my name? / Who am I? / What (was|is) my name(| again)? / Do you remember my name? /
    Tell me my name. / My name? / Do you know my name? / What am I called? / Say my name. / How am I called? /
    Can you tell me my name? / Can you tell me who I am? / What did I say my name is? / Which name did I tell you?""",
)
CITY = simple(
    "city",
    _place,
    "You live in {v}.",
    "where you live",
    """I live in {v} / my home is in {v} / I live in the city of {v} / I am living in {v} /
    (now|these days) I live in {v} / my house is in {v} / I have a flat in {v} / the town I live in is {v} /
    I moved to {v} and live there""",
    """Where do I live? / In which city do I live? / What city do I live in? / Where do I live(| again)? /
    Which town do I live in? / Do you remember where I live? / Tell me where I live. / Where is my home? /
    Do you know where I live? / Where did I say I live? / Can you tell me where I live? /
    Name the city I live in. / My city? / Where am I living?""",
)
AGE = simple(
    "age",
    lambda draw: {"v": str(draw.integer(5, 99))},
    "You are {v} years old.",
    "your age",
    """I am {v} years old / I am now {v} years old / my age is {v} / I'm {v} years old / I am {v} / I'm {v} /
    I turned {v} this year / I am {v} years of age""",
    """How old am I? / What is my age? / Do you remember how old I am? / How old am I(| again)? / Tell me my age. /
    My age? / Do you know my age? / How old did I say I am? / Can you tell me how old I am? / What age am I? /
    Tell me how old I am.""",
)
JOB = simple(
    "job",
    words(JOBS),
    "You work as a {v}.",
    "your job",
    """I work as a {v} / I am a {v} / my job is {v} / I'm a {v} / I am working as a {v} / I have work as a {v} /
    my work is {v} / I have a job as a {v}""",
    """What is my job? / What do I do? / What do I work as? / What (was|is) my job(| again)? /
    Do you remember my job? / What do I do for a living? / Tell me my job. / My job? /
    Do you know what my job is? / What is my work? / What did I say my job is? / Can you tell me what I work as?""",
)
BIRTHDAY = simple(
    "birthday",
    _date,
    "Your birthday is on {v}.",
    "your birthday",
    """my birthday is on {v} / I was born on {v} / I have my birthday on {v} / my birthday is {v} /
    my birthday is always on {v} / {v} is my birthday / the date of my birthday is {v} /
    I celebrate my birthday on {v}""",
    """When is my birthday? / What is my birthday? / On which day is my birthday? /
    When (was|is) my birthday(| again)? / Do you remember my birthday? / Tell me my birthday. / My birthday? /
    What is the date of my birthday? / Do you know when my birthday is? / When was I born? /
    Can you tell me when my birthday is?""",
)
LANGUAGE = simple(
    "language",
    words("English, French, German, Spanish, Italian, Dutch, Polish, Danish, Greek, Hindi, Swedish, Turkish, Arabic"),
    "You are learning {v}.",
    "which language you are learning",
    """I am learning {v} / now I am learning {v} / I want to learn {v} / I'm learning {v} /
    I have started to learn {v} / the language I am learning is {v} / I learn {v} / I am learning the language {v}""",
    """Which language am I learning? / What language am I learning? / What am I learning? /
    Which language (was|am) I learning(| again)? / Do you remember which language I am learning? /
    Tell me which language I am learning. / What language do I want to learn? /
    Do you know what language I learn? / Which language do I learn? /
    Can you tell me which language I am learning?""",
)
HOBBY = simple(
    "hobby",
    words(
        "painting, chess, cooking, reading, dancing, fishing, gardening, sailing, singing, knitting, hiking, surfing"
    ),
    "Your hobby is {v}.",
    "your hobby",
    """my hobby is {v} / I have a hobby, {v} / my main hobby is {v} / {v} is my hobby / as a hobby I do {v} /
    my only hobby is {v} / my new hobby is {v} / in my free time I like {v}""",
    """What is my hobby? / Which hobby do I have? / Tell me my hobby. / What (was|is) my hobby(| again)? /
    Do you remember my hobby? / My hobby? / What do I do in my free time? / Do you know my hobby? /
    What did I say my hobby is? / Can you tell me my hobby?""",
)
PET = Fact(
    "pet",
    lambda draw: {"kind": draw.choice(ANIMALS), "v": draw.first_name()},
    phrases(
        """I have a {kind} called {v} / my {kind} is called {v} / I have a {kind}, {v} /
        I have a {kind} (named|called) {v} / my {kind}'s name is {v} / the name of my {kind} is {v} /
        {v} is my {kind} / I own a {kind} named {v}"""
    ),
    "Your {kind} is called {v}.",
    (
        Question(
            phrases(
                """What is my {kind} called? / What is my {kind}'s name? / What is the name of my {kind}? /
                What is my {kind}('s name| called) again? / Tell me my {kind}'s name. / What is my pet called? /
                Do you remember the name of my {kind}? / My {kind}'s name? /
                Do you know what my {kind} is called? / Can you tell me the name of my {kind}? /
                What did I say my {kind} is called?"""
            ),
            "Your {kind} is called {v}.",
        ),
        Question(
            phrases(
                """What pet do I have? / Which animal do I have? / Which pet do I have? /
                What (kind of |)animal do I have? / What animal is {v}? / Do you remember what pet I have? /
                What kind of pet is {v}? / Tell me which animal I have. / What kind of animal is {v}?"""
            ),
            "You have a {kind}.",
        ),
    ),
    "about a pet",
)
MEETING = Fact(
    "meeting",
    lambda draw: {"who": draw.first_name(), "v": _time(draw), "day": draw.choice(WEEKDAYS)},
    phrases(
        """I have a meeting with {who} at {v} on {day} / I meet {who} on {day} at {v} /
        I am meeting {who} at {v} on {day} / I have a meeting with {who} on {day} at {v} /
        on {day} at {v} I meet {who} / my meeting with {who} is on {day} at {v} /
        there is a meeting with {who} on {day} at {v} / I will meet {who} at {v} on {day}"""
    ),
    "Your meeting with {who} is on {day} at {v}.",
    (
        Question(
            phrases(
                """When is my meeting? / What time is my meeting? / When do I meet {who}? /
                When is my meeting(| with {who})(| again)? / At what time is my meeting? /
                Do you remember when my meeting is? / Tell me when I meet {who}. / What time do I meet {who}? /
                Do you know when I meet {who}? / Can you tell me when my meeting is?"""
            ),
            "Your meeting is on {day} at {v}.",
        ),
        Question(
            phrases(
                """Who do I meet? / Who is my meeting with? / With whom is my meeting? / Who do I meet on {day}? /
                Who am I meeting? / Do you remember who I meet? / Tell me who I meet. /
                With whom do I have a meeting? / Do you know who my meeting is with? /
                Who am I meeting on {day}? / Who do I meet at {v}?"""
            ),
            "Your meeting is with {who}.",
        ),
    ),
    "about a meeting",
)

FACTS = (
    *(NAME, NAME, NAME, CITY, CITY, CITY, AGE, AGE, JOB, JOB, BIRTHDAY, LANGUAGE, HOBBY, PET, PET, PET),
    *(MEETING, MEETING),
    *(_favourite(thing, words(pool)) for thing, pool in FAVOURITES.items()),
    _favourite("number", lambda draw: {"v": str(draw.integer(1, 200))}),
    _favourite("city", _place),
    *(_relation(thing) for thing in RELATIONS),
    *(_code_of(thing) for thing in CODES),
    *(_colour_of(thing) for thing in COLOURED),
)
