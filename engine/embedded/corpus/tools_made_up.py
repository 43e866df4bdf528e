"""Tools nobody has seen: their names are drawn, so that they can only be used by reading their schemas."""

from __future__ import annotations

from engine.embedded.corpus.base import Draw, phrases
from engine.embedded.corpus.tools_form import Slot, Tool
from engine.embedded.corpus.tools_values import CODE, IDENTIFIER, Kind, enum, integer, text, words
from engine.embedded.corpus.wordings import wordings

ATTRIBUTES = words(
    """price weight colour height age speed status size level rating version limit score origin length capacity width
    depth power owner author grade rank code brand shape taste mood range cost value"""
)
THINGS = words(
    """car planet server patient plant recipe machine robot ship bridge tower book lamp engine garden horse painting
    student sensor tank camera bottle crystal dragon tree house player team ticket battery truck door stone tunnel
    printer account rocket island"""
)
VERBS = words(
    """start stop open close scan reset clean check repair launch move paint wash test load charge feed pause"""
)
COLOURS = words("red blue green yellow black white grey brown orange purple pink silver")
LEVELS = ("low", "medium", "high", "fast", "slow", "small", "large", "soft", "hard", "warm", "cold", "quiet", "loud")
STATES = words("done ready running finished waiting started open closed full empty active broken")
NAME = text("(Name|The name)", Draw.surname)

LOOKUPS = phrases(
    """Get the {attribute} of the {thing} {value}. / What is the {attribute} of the {thing} {value}? /
    {attribute} of {thing} {value} / Tell me the {attribute} of the {thing} {value}. /
    What {attribute} does the {thing} {value} have? / Look up the {attribute} of the {thing} called {value}. /
    I (need|want to know) the {attribute} of the {thing} {value}. /
    (Find|Check|Show me) the {attribute} of {thing} {value}. / Give me the {attribute} for the {thing} {value}. /
    Which {attribute} does {thing} {value} have? / (Can|Could) you get the {attribute} of the {thing} {value}? /
    Get the {attribute} of the {thing} named {value}. / What is the {thing} {value}'s {attribute}? /
    {thing} {value}: what is the {attribute}? / I have a {thing}, {value}. What is its {attribute}? /
    {value} {attribute} / Do you know the {attribute} of the {thing} {value}? /
    What is the {attribute} of {value}? / the {attribute} of {value}, please /
    For the {thing} {value}, get the {attribute}. / I would like to see the {attribute} of {thing} {value}. /
    (Return|Fetch) the {attribute} of the {thing} {value}.""",
    more=wordings("tools_made_up.LOOKUPS"),
)
CHANGES = phrases(
    """Set the {attribute} of the {thing} {value} to {to}. / Change the {attribute} of the {thing} {value} to {to}. /
    {attribute} of {thing} {value} to {to} /
    (Please set|Can you set|Set) the {attribute} of {thing} {value} to {to} /
    The {attribute} of the {thing} {value} should be {to}. / Make the {attribute} of {value} {to}. /
    I want the {attribute} of the {thing} {value} to be {to}. /
    Put the {attribute} of the {thing} {value} at {to}. / Give the {thing} {value} the {attribute} {to}. /
    For {value}, set the {attribute} to {to}. / Change the {thing} {value}: {attribute} {to} /
    Set {value}'s {attribute} to {to}. / The {thing} {value} needs the {attribute} {to}. /
    From now on the {attribute} of {value} is {to}. / Please change {value}'s {attribute} to {to}. /
    {thing} {value}: set the {attribute} to {to}""",
    more=wordings("tools_made_up.CHANGES"),
)
ACTIONS = phrases(
    """{verb} the {thing} {value}. / Please {verb} {thing} {value}. / {verb} {value} /
    Can you {verb} the {thing} {value}? / I want to {verb} the {thing} {value}. /
    Could you {verb} the {thing} called {value}? / {verb} the {thing} named {value} /
    It is time to {verb} the {thing} {value}. / You have to {verb} {value}. / Go and {verb} the {thing} {value}. /
    Please {verb} {value}. / {verb} {thing} {value}, please / I need you to {verb} the {thing} {value}. /
    The {thing} is called {value}. Please {verb} it. / Let us {verb} the {thing} {value}. /
    Would you {verb} {value}?""",
    more=wordings("tools_made_up.ACTIONS"),
)


def made_up(draw: Draw, like: Tool | None = None) -> Tool:
    """A new tool; with `like`, of the same attribute, verb or thing as that one, so that they are easily confused."""
    shared = like.fixed if like else {}
    keeps_thing = draw.chance(0.5)
    thing = shared["thing"] if like and keeps_thing else _noun(draw, THINGS)
    attribute = shared["attribute"] if "attribute" in shared and not keeps_thing else _noun(draw, ATTRIBUTES)
    verb = shared["verb"] if "verb" in shared and not keeps_thing else _noun(draw, VERBS)
    shape = draw.integer(0, 9)
    if shape < 6:
        return _lookup(draw, thing, attribute)
    return _change(draw, thing, attribute) if shape < 8 else _action(draw, thing, verb)


def _noun(draw: Draw, words: tuple[str, ...]) -> str:
    return draw.choice(words) if draw.chance(0.6) else draw.made_up_word(draw.integer(2, 3))


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _thing_slot(draw: Draw, thing: str) -> Slot:
    kind = draw.choice((NAME, NAME, CODE, IDENTIFIER))
    described = Kind(kind.type, f"({kind.description}|The {thing})", kind.make)
    return Slot(
        "value", (thing, "name" if kind is NAME else "id", f"{thing}_{'name' if kind is NAME else 'id'}"), described
    )


def _result_kind(draw: Draw, attribute: str) -> Kind:
    if attribute == "colour":
        return enum("Colour", *COLOURS)
    if attribute in ("owner", "author"):
        return NAME
    return draw.choice((integer("Number", 1, 999), integer("Number", 1, 999), enum("Word", *LEVELS), CODE, NAME))


def _lookup(draw: Draw, thing: str, attribute: str) -> Tool:
    return Tool(
        f"get {attribute} {thing}",
        (
            f"get_{attribute}",
            f"get_{thing}_{attribute}",
            f"{thing}_{attribute}",
            f"find_{attribute}",
            f"{attribute}_of_{thing}",
        ),
        f"(Get|Return|Look up|Find) the {attribute} of {_a(thing)}",
        (_thing_slot(draw, thing),),
        LOOKUPS,
        (Slot("result", (attribute, "result", "value"), _result_kind(draw, attribute)),),
        f"The {attribute} of {{value}} is {{result}}.",
        fixed={"attribute": attribute, "thing": thing},
    )


def _change(draw: Draw, thing: str, attribute: str) -> Tool:
    if draw.chance(0.5):
        kind = integer(f"(New|The new) {attribute}", 1, 500)
    else:
        values = draw.sample(COLOURS if attribute == "colour" else LEVELS, draw.integer(2, 4))
        kind = enum(f"(New|The new) {attribute}", *values)
    return Tool(
        f"set {attribute} {thing}",
        (f"set_{attribute}", f"set_{thing}_{attribute}", f"change_{attribute}", f"update_{thing}_{attribute}"),
        f"(Set|Change) the {attribute} of {_a(thing)}",
        (_thing_slot(draw, thing), Slot("to", (attribute, "value", f"new_{attribute}"), kind)),
        CHANGES,
        (),
        f"The {attribute} of {{value}} is {{to}}.",
        fixed={"attribute": attribute, "thing": thing},
    )


def _action(draw: Draw, thing: str, verb: str) -> Tool:
    return Tool(
        f"{verb} {thing}",
        (f"{verb}_{thing}", f"{verb}", f"{thing}_{verb}"),
        f"{verb.capitalize()} {_a(thing)}",
        (_thing_slot(draw, thing),),
        ACTIONS,
        (Slot("status", ("status", "state"), enum("Status", *STATES)),),
        "The status of {value} is {status}.",
        fixed={"verb": verb, "thing": thing},
    )
