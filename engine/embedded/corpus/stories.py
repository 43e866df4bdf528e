"""Skill: a short story with everything in it that the prompt names.

The one skill whose answers are free: who, where, what and which plot are drawn where the prompt does not say, but all
sentences come from a finite stock (`story_words`, `story_plots`), and pronouns follow the hero's name.
"""

from __future__ import annotations

import re

from engine.embedded.corpus.base import Draw, Example, Phrases, chat
from engine.embedded.corpus.names import FIRST_NAMES
from engine.embedded.corpus.story_plots import PLOTS, Plot
from engine.embedded.corpus.story_words import (
    ANIMALS,
    HABITS,
    HE,
    KINDS,
    LOOKS,
    MEN,
    MORALS,
    OBJECTS,
    OPENINGS,
    PEOPLE,
    PLACES,
    RESTS,
    SHE,
    TRAITS,
)
from engine.embedded.corpus.wordings import wordings

Cast = dict[str, str]

PRONOUNS = {
    HE: {"he": "he", "his": "his", "him": "him", "himself": "himself"},
    SHE: {"he": "she", "his": "her", "him": "her", "himself": "herself"},
}

# What a prompt names, each with a weight.
NAMED = (
    (3, ""),
    (5, "kind"),
    (3, "name"),
    (3, "object"),
    (3, "place"),
    (2, "theme"),
    (9, "trait kind"),
    (6, "kind name"),
    (7, "kind place"),
    (7, "kind object"),
    (7, "kind friend"),
    (2, "kind theme"),
    (3, "name place"),
    (3, "name object"),
    (2, "object place"),
    (14, "trait kind place"),
    (8, "trait kind object"),
    (6, "trait kind name"),
    (6, "trait kind friend"),
    (6, "kind name object"),
    (5, "kind name place"),
    (6, "kind object place"),
    (3, "kind friend object"),
    (3, "kind friend place"),
)
WEIGHTS, SETS = zip(*((weight, tuple(named.split())) for weight, named in NAMED), strict=True)

ABOUT = Phrases(
    "Tell me a story about {topic}.",
    "Tell me a (short |little |)story about {topic}(, please|).",
    "Write a short story about {topic}.",
    "(Please |)(tell|write) (me |us |)a (short |)story about {topic}.",
    "(Can|Could) you tell me a story about {topic}?",
    "story about {topic} please",
    "I (would like|want) to hear a story about {topic}.",
    "A story about {topic}(, please|).",
    "Make up a (little|short|nice) story about {topic}.",
    "(Please tell|Tell) a (short |little |)story about {topic}.",
    "Write a (short|brief) story about {topic}, please.",
    "short story: {topic}",
    "Give me a (short |)story about {topic}.",
    "Invent a (short|little) tale about {topic}.",
    "Please write a (bedtime|children's) story about {topic}.",
    "My (daughter|son|niece) wants a bedtime story about {topic}.",
    "Do you know a (nice |)story about {topic}?",
    "I need a (short|little) story about {topic}.",
    "(Tell|Write) me a story about {topic}, (please|not too long|with a happy end).",
    "Let's have a story about {topic}!",
    "Write a few sentences about {topic}, as a story.",
    "Tell us a tale about {topic}.",
    "It's bedtime. (Please tell|Tell) me a story about {topic}.",
    "I'd love a story about {topic}.",
    "(Could|Would) you (please |)write a short story about {topic}?",
    "Story time! Something about {topic}, please.",
    "Compose a short (fairy tale|fable|tale) about {topic}.",
    "Think of a story about {topic} and tell it to me.",
    "write story about {topic}",
    "How about a story about {topic}?",
    "Can I have a (short|little|bedtime) story about {topic}?",
    "Can you write a short story about {topic}?",
    "Read me a story about {topic}.",
    "{topic} - write a (short |)story about that.",
    "I want a (funny|sweet|short) story about {topic}.",
    "Please make up a story. It should be about {topic}.",
    "Create a short story about {topic}.",
    "For my class I need a short story about {topic}. Can you write it?",
    "(I'd|I would) like to hear a tale about {topic}.",
    "Entertain me with a (short |)story about {topic}.",
    "Tell a story about {topic}.",
    "What happens in a story about {topic}? Tell me!",
    "We are bored. Tell us a story about {topic}.",
    more=wordings("stories.ABOUT"),
)
WHICH = Phrases(
    "Tell me a story in which {clause}.",
    "Write a (short |)story where {clause}.",
    "I'd like to hear a tale in which {clause}.",
    "Write a (short |)story in which {clause}.",
    "Make up a story where {clause}(, please|).",
    "(Can|Could) you tell me a story where {clause}?",
    "I want a story in which {clause}.",
    "In my story, {clause}. Please write it.",
    "Please tell a (short |)story where {clause}.",
    "story where {clause}",
    "Please write a story in which {clause}.",
    "Imagine that {clause}. Tell me (the|that) story.",
    "(Give|Tell) me a short tale where {clause}.",
    "(Could|Would) you write a story in which {clause}?",
    "{Clause}. Make a story out of that.",
    more=wordings("stories.WHICH"),
)
WORDS = Phrases(
    "Write a story with these words: {words}.",
    "Write a (short |)story that uses the words {words}.",
    "Make a story with the words {words}.",
    "Tell me a story with these words: {words}.",
    "Story with {words}, please.",
    "Use the words {words} in a (short |)story.",
    "I give you some words: {words}. Tell me a story with them.",
    "Words: {words}. Write a short story.",
    "Please write a short story (with|using) the words {words}.",
    "{words} - tell me a story with these words",
    "Please tell a story that uses these words: {words}.",
    "Can you make up a story from the words {words}?",
    "A story, please. It must contain: {words}.",
    more=wordings("stories.WORDS"),
)
PARTS = Phrases(
    "Write a short story.\n{parts}",
    "Tell me a story.\n{parts}",
    "{parts}\nWrite a story about this.",
    "(Please write|Write) a (short |)story.\n{parts}",
    "Story, please.\n{parts}",
    "{parts}\n\nPlease tell me a story.",
    "Make up a story with the following.\n{parts}",
    "I need a short story. Here are the details.\n{parts}",
    more=wordings("stories.PARTS"),
)
ANY = Phrases(
    "Tell me a story.",
    "Write a (short |)story.",
    "(Please tell|Tell) me a bedtime story.",
    "(Please tell|Can you tell) me a (short |)story?",
    "I want to hear a story.",
    "story please",
    "Make up a (short|little) story.",
    "Tell me (something nice, a little story maybe|a tale).",
    "Write something for children, a short story.",
    "Do you know a (good |)story?",
    "(Please write|Write) a short story for me.",
    "Surprise me with a story.",
    more=wordings("stories.ANY"),
)


class Stories:
    """Stories of five to eight sentences."""

    name = "stories"

    def make(self, draw: Draw) -> Example:
        named = draw.random.choices(SETS, WEIGHTS)[0]
        plot = draw.choice(PLOTS)
        cast = _cast(draw, plot, named)
        items = [cast[item] for item in named]
        prompt = draw.casual(_prompt(draw, plot, cast, named))
        return Example(
            self.name, chat(prompt, _tell(draw, plot, cast, named)), key="|".join(sorted(items)), expect=items
        )

    def check(self, example: Example, answer: str) -> bool:
        text = answer.strip()
        told = sentences(text)
        return (
            len(told) >= 4
            and len(set(told)) == len(told)
            and text.endswith((".", "!", "?", '."', '!"', '?"'))
            and all(re.search(rf"\b{re.escape(item)}\b", text, re.IGNORECASE) for item in example.expect)
        )


def sentences(text: str) -> list[str]:
    """The sentences of a story; one that ends within quotation marks keeps them."""
    return re.split(r'(?<=[.!?])\s+(?=[A-Z"])|(?<=[.!?]")\s+(?=[A-Z"])', text)


def pronoun(name: str) -> str:
    """Of a first name; of a made-up one by its last letter."""
    if name in FIRST_NAMES:
        return HE if name in MEN else SHE
    return SHE if name[-1] in "aei" else HE


def article(words: str) -> str:
    vowel = words.startswith("honest") or (words[0] in "aeiou" and not words.startswith("uni"))
    return ("an " if vowel else "a ") + words


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _cast(draw: Draw, plot: Plot, named: tuple[str, ...]) -> Cast:
    """Who, where and what, and all forms of them that the sentences use."""
    kind = draw.choice(KINDS)
    fixed = PEOPLE.get(kind, "")
    name = draw.first_name()
    while fixed and pronoun(name) != fixed:
        name = draw.first_name()
    friend = draw.choice(KINDS)
    while friend == kind:
        friend = draw.choice(KINDS)
    looks = draw.chance(0.25 if kind in ANIMALS else 0.03)
    trait = draw.choice(LOOKS if looks else TRAITS)
    place, thing = draw.choice(tuple(PLACES)), draw.choice(OBJECTS)
    shown = "trait" in named or draw.chance(0.7)
    friend_trait = "friend" not in named and draw.chance(0.3)
    lives, happens = PLACES[place]
    cast = {
        "kind": kind,
        "name": name,
        "trait": trait,
        "friend": friend,
        "place": place,
        "object": thing,
        "theme": plot.theme,
        "hero": article(f"{trait} {kind}" if shown else kind),
        "a_friend": article(f"{draw.choice(TRAITS)} {friend}" if friend_trait else friend),
        "an_object": article(thing),
        "home": f"{lives} {article(place)}",
        "at": f"{happens} the {place}",
        **PRONOUNS[fixed or pronoun(name)],
    }
    return cast | {capital(slot): capital(value) for slot, value in cast.items()}


def _tell(draw: Draw, plot: Plot, cast: Cast, named: tuple[str, ...]) -> str:
    told = [draw.choice(OPENINGS)]
    if draw.chance(0.4):
        told.append(draw.choice(HABITS))
    told += [draw.choice(stage) for stage in plot.stages]
    ending = draw.random.random()
    moral = "theme" in named or plot.asleep or ending < 0.65
    if not plot.asleep and ending > (0.85 if len(told) > 6 and moral else 0.45):
        told.append(draw.choice(RESTS))
    if moral:
        told.append(draw.choice(MORALS[plot.theme]))
    return draw.expand(" ".join(told), **cast)


def _prompt(draw: Draw, plot: Plot, cast: Cast, named: tuple[str, ...]) -> str:
    if not named:
        return draw.phrase(ANY)
    form = draw.random.random()
    if form < 0.1 and len(named) > 1 and "theme" not in named:
        words = [cast[item] for item in named]
        draw.random.shuffle(words)
        return draw.phrase(WORDS, words=_listed(draw, words))
    if form < 0.17:
        return draw.phrase(PARTS, parts=_parts(draw, cast, named))
    if form < 0.35 and (clause := _clause(draw, plot, cast, named)):
        return draw.phrase(WHICH, clause=clause, Clause=capital(clause))
    return draw.phrase(ABOUT, topic=_topic(draw, plot, cast, named))


def _listed(draw: Draw, words: list[str]) -> str:
    if len(words) == 1 or draw.chance(0.3):
        return ", ".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


def _parts(draw: Draw, cast: Cast, named: tuple[str, ...]) -> str:
    heads = {
        "kind": "(Character|Hero|Who|Main character)",
        "name": "(Name|Name of the hero)",
        "friend": "(Friend|Second character)",
        "place": "(Place|Where|Setting)",
        "object": "(Object|Thing|Item)",
        "theme": "(Theme|Topic|Moral)",
    }
    values = {item: cast[item] for item in named if item != "trait"}
    if "trait" in named:
        values["kind"] = f"{cast['trait']} {cast['kind']}"
    return "\n".join(f"{draw.expand(heads[item])}: {value}" for item, value in values.items())


def _protagonist(draw: Draw, cast: Cast, named: tuple[str, ...]) -> str:
    """The hero as the prompt names it: "a small bear named Mila", "Mila", "Mila the bear", or nothing."""
    if "kind" not in named:
        return cast["name"] if "name" in named else ""
    kind = f"{cast['trait']} {cast['kind']}" if "trait" in named else cast["kind"]
    if "name" not in named:
        return article(kind)
    alone = {"trait", "kind", "name"}.issuperset(named)
    return draw.expand(
        "({a_kind} named {name}|{a_kind} called {name}|{name} the {kind}" + ("|{name}, {a_kind})" if alone else ")"),
        kind=kind, a_kind=article(kind), name=cast["name"],
    )  # fmt: skip


def _clause(draw: Draw, plot: Plot, cast: Cast, named: tuple[str, ...]) -> str:
    """A sentence about the hero, or "" if what is named does not make one."""
    hero = _protagonist(draw, cast, named)
    if not hero:
        return ""
    where = f" {cast['home']}"
    if "friend" in named:
        rest = where if "place" in named else f" with {cast['an_object']}" if "object" in named else ""
        return f"{hero} {draw.choice(('meets', 'helps'))} {cast['a_friend']}{rest}"
    if "object" in named and plot.does:
        return f"{hero} {plot.does} {cast['an_object']}" + (where if "place" in named else "")
    if "place" in named and "object" not in named:
        return f"{hero} {draw.choice(('lives', 'has a home'))} {cast['home']}"
    return f"{hero} learns about {cast['theme']}" if "theme" in named else ""


def _topic(draw: Draw, plot: Plot, cast: Cast, named: tuple[str, ...]) -> str:
    """What the story is about, as a noun phrase."""
    things = [_protagonist(draw, cast, named)]
    if "friend" in named:
        things.append(cast["a_friend"])
    if "object" in named and things[0] and "friend" not in named and draw.chance(0.5):
        verb = plot.does if plot.does and draw.chance(0.6) else ""
        things = [f"{things[0]} who {verb} {cast['an_object']}" if verb else f"{things[0]} with {cast['an_object']}"]
    elif "object" in named:
        things.append(cast["an_object"])
    if "theme" in named:
        things.append(cast["theme"])
    things = [thing for thing in things if thing]
    if "place" not in named:
        return _joined(things)
    if things and draw.chance(0.5):
        return f"{_joined(things)} {cast['home']}"
    return _joined([*things, article(cast["place"])])


def _joined(things: list[str]) -> str:
    return ", ".join(things[:-1]) + " and " + things[-1] if len(things) > 1 else things[0]


SKILL = Stories()
