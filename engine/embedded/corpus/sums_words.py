"""Sums in words: the nouns, and how people say that somebody has more or less of them.

Clauses begin in lower case and end without a full stop, so that they can be joined. `finds/found` is the present and
the past of one verb. Slots:

{S} {T} {P}         who or what has it: Tom or he, Tom or him, his (a place: the bus, it, its).
{O}                 somebody else.
{N}                 the start with its noun: 55 cards.
{more} {n}          an operand gained (19 more, another 19 cards), an operand lost (30, 30 of them).
{does} {has} {have} does Tom, has Tom, has.
{at} {in_a} {a_S}   a place with its preposition: on the bus, on a bus; a bus.
{owner}             Tom's.
{k} {m} {boxes}     factors of a product, and what holds `m` each.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.embedded.corpus.base import Phrases
from engine.embedded.corpus.wordings import wordings


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@dataclass(frozen=True)
class World:
    """A setting: its nouns in the singular, and its clauses; a world without gains (or losses) has none of that sign.

    places   "on bus": preposition and noun of the subject; empty if a person is the subject.
    unit     the noun is said with every number ("12 euros", never "12 of them").
    left     questions to choose from if the last operation is a loss.
    total    questions to choose from if all operations are gains.
    boxes    there may be products: "3 boxes of 12 pens each" as the start or as an operand.
    """

    nouns: tuple[str, ...]
    starts: Phrases
    questions: Phrases
    gains: Phrases | None = None
    losses: Phrases | None = None
    places: tuple[str, ...] = ()
    unit: bool = False
    largest: int = 999
    left: Phrases | None = None
    total: Phrases | None = None
    boxes: bool = False


THINGS = words(
    """card marble stamp coin pen book sticker shell toy pencil stone balloon bead button badge key postcard comic
    candle crayon ticket magnet poster doll sock scarf bottle cup plate spoon brush hat flower rose feather seed
    nail screw brick block ball kite puzzle notebook eraser folder envelope photo token chip dice bracelet ring
    bulb battery glove cap mug basket towel ribbon rock leaf acorn pebble star domino figure"""
)
FOODS = words(
    """apple plum pear cookie cake sweet nut egg orange banana grape cherry peach lemon mango carrot potato tomato
    onion muffin pretzel bagel sandwich pancake waffle biscuit donut strawberry fig date olive lollipop cracker
    roll melon candy cupcake chocolate walnut raisin kiwi pie dumpling berry"""
)
IRREGULAR = {"leaf": "leaves", "potato": "potatoes", "tomato": "tomatoes", "person": "people", "child": "children"}
IRREGULAR |= {"sheep": "sheep", "goose": "geese", "km": "km", "dice": "dice", "mango": "mangoes"}
BOXES = words("""box bag pack bundle basket set crate jar packet carton tin bucket tray parcel case""")
ROLES = (
    *("my sister", "my brother", "our teacher", "the farmer", "my friend", "the baker", "my uncle", "my aunt"),
    *("a girl", "a boy", "our neighbour", "the gardener", "a student", "my cousin", "the cook", "a collector"),
)
MEN = frozenset(
    words(
        """Adam Alan Amir Anton Ben Bruno Carl Dan David Ed Eli Emil Eric Felix Frank Fred Hans Henry Hugo Ian Ivan
    Jack Jan Jin Jon Jonas Kai Karl Leo Liam Louis Luis Luke Marc Mark Max Milo Noah Oscar Otto Owen Paul Peter
    Raul Rob Sam Sean Sven Theo Tim Tom Victor Wei Will"""
    )
)

STARTS = Phrases(
    "{S} has/had {N}",
    "{S} has/had {N}( at first| in the morning| today|)",
    "{S} starts/started with {N}",
    "{S} (first |)has/had {N}( in a box| at home| in a bag|)",
    "{S} owns/owned {N}",
    "{S} has/had got {N}",
    "there are/were {N} in {P} (box|bag|room|drawer|pocket)",
    "{S} begins/began (the day |the week |)with {N}",
    "{S} keeps/kept {N} in a (box|drawer|jar|bag)",
    "{S} has/had a collection of {N}",
    "{S} has/had exactly {N}",
    "at the beginning {S} has/had {N}",
    "{S} has/had a (bag|box|drawer) with {N}",
    "in {P} (bag|room|box) {S} has/had {N}",
    more=wordings("sums_words.STARTS"),
)

GAINS = Phrases(
    "{S} finds/found {more}( in the park| on the way home| under the bed||)",
    "{O} gives/gave {T} {more}",
    "{S} buys/bought {more}( at the market| in a shop| online||)",
    "{S} gets/got {more} from {O}",
    "{S} receives/received {more}( from {O}| in the mail| as a present|)",
    "{S} wins/won {more}( in a game| at the fair||)",
    "{O} sends/sent {T} {more}",
    "{S} collects/collected {more}",
    "{S} picks/picked up {more}",
    "{S} gets/got {more}( as a gift| for the holidays||)",
    "{S} is/was given {more}( by {O}|)",
    "{S} is/was given {more} by {P} (uncle|aunt|sister|brother|teacher|friend)",
    "{S} gets/got back {n} from {O}",
    "{O} brings/brought {more} for {T}",
    "{S} borrows/borrowed {more}( for a week||)",
    "{S} takes/took {more} from the (table|shop|shelf)",
    "{O} hands/handed {more} over to {T}",
    "{O} hands/handed {T} {more}",
    "{O} lends/lent {T} {more}",
    "{S} discovers/discovered {more} in a (drawer|cupboard|cellar)",
    "{S} orders/ordered {more} and they arrive/arrived",
    "{S} trades/traded a (hat|lamp|game) for {more}",
    "{O} donates/donated {more} to {T}",
    "{S} adds/added {more}",
    "{O} brings/brought {T} {more}",
    "{S} comes/came across {more}",
    "{S} gathers/gathered {more}",
    "{O} shares/shared {more} with {T}",
    "{S} accepts/accepted {more} from {O}",
    "{O} sells/sold {T} {more}",
    "{S} earns/earned {more}( by helping {O}|)",
    "{S} borrows/borrowed {more} from {O}",
    "{O} passes/passed {more} to {T}",
    "{O} returns/returned {n} to {T}",
    "a parcel with {more} (comes/came|arrives/arrived) for {T}",
    "{S} obtains/obtained {more}",
    "{S} gains/gained {more}",
    "{S} inherits/inherited {more}",
    "{S} adds/added {more} to the (collection|pile|box)",
    "{S} is/was sent {more} by {O}",
    "{O} leaves/left {more} for {T}",
    "{S} brings/brought home {more}",
    "{S} gets/got {more} from {P} (mother|father|grandmother|grandfather)",
    "{P} (mother|father|aunt|uncle|grandmother) gives/gave {T} {more}",
    more=wordings("sums_words.GAINS"),
)

LOSSES = Phrases(
    "{S} gives/gave {n} to {O}",
    "{S} loses/lost {n}( on the way| at school| on the bus||)",
    "{S} sells/sold {n}( to {O}| at the market||)",
    "{S} gives/gave {O} {n}",
    "{S} gives/gave away {n}",
    "{S} hands/handed {n} to {O}",
    "{S} throws/threw away {n}",
    "{S} lends/lent {n} to {O}",
    "{O} takes/took {n} from {T}",
    "{S} donates/donated {n}( to a school| to charity||)",
    "{S} sells/sold {O} {n}",
    "{S} returns/returned {n} to {O}",
    "{S} breaks/broke {n}",
    "{S} mails/mailed {n} to {O}",
    "{O} borrows/borrowed {n} from {T}",
    "{S} gets/got rid of {n}",
    "{n} get/got lost",
    "{S} hands/handed {O} {n}",
    "{O} buys/bought {n} from {T}",
    "{S} sends/sent {n} to {O}",
    "{S} leaves/left {n} (at school|on the train|in a hotel) for good",
    "{S} parts/parted with {n}",
    "{S} passes/passed {n} (on |)to {O}",
    "{S} puts/put {n} in the bin",
    "{S} sends/sent {O} {n}",
    "{S} trades/traded {n} for a (hat|lamp|game)",
    "{n} are/were stolen",
    "{S} misplaces/misplaced {n}",
    "{S} shares/shared {n} with {O}",
    "{n} fall/fell into the (river|lake|sea)",
    "{S} uses/used up {n}",
    "{S} lends/lent {O} {n}",
    "{S} swaps/swapped {n} for a (book|toy|cap)",
    "{S} discards/discarded {n}",
    "{S} ruins/ruined {n}",
    "{S} gives/gave back {n} to {O}",
    "{O} steals/stole {n} from {T}",
    "{S} drops/dropped and breaks/broke {n}",
    "{S} loses/lost {n} in a (game|bet)",
    "{S} gives/gave {P} (brother|sister|teacher|friend) {n}",
    "{S} has/had to give {n} away",
    "{S} offers/offered {n} to {O} who takes/took them",
    "{n} disappear/disappeared",
    "{n} go/went missing",
    more=wordings("sums_words.LOSSES"),
)

FOOD_LOSSES = Phrases(
    "{S} eats/ate {n}",
    "{S} eats/ate {n} for (lunch|breakfast|dinner)",
    "{O} eats/ate {n}",
    "{S} and {O} eat/ate {n}( together|)",
    "{n} are/were eaten( by {O}|)",
    "{n} go/went bad",
    "{S} cooks/cooked {n}",
    "{S} feeds/fed {n} to a (horse|goat|pig)",
    "{S} shares/shared {n} with {O}",
    "{n} are/were rotten and thrown away",
    "{S} eats/ate {n} (at school|in the evening|on the way home)",
    "{S} uses/used {n} for a (salad|recipe|party)",
    "{S} drops/dropped {n} into the mud and leaves/left them there",
    "{S} packs/packed {n} into a lunch box for {O}",
    "{S} serves/served {n} to guests",
    more=wordings("sums_words.FOOD_LOSSES"),
)

QUESTIONS = Phrases(
    "how many {nouns} {does} have now?",
    "how many {nouns} {does} have (in the end|at the end)?",
    "how many {nouns} {has} got now?",
    "how many {nouns} {does} have (after that|after all this)?",
    "how many {nouns} {does} own now?",
    "what is the number of {nouns} that {S} {have} now?",
    "how many {nouns} are there now?",
    "how many does that make?",
    "tell me how many {nouns} {S} {have} now.",
    "how many {nouns} (will {S} have|{does} end up with)?",
    "(tell me|find out) how many {nouns} {S} {have} (in the end|at the end).",
    "how many {does} have now?",
    "find the number of {nouns} {S} {have} now.",
    "work out how many {nouns} {S} {have} in the end.",
    "{nouns} now?",
    "so how many {nouns} {does} have?",
    more=wordings("sums_words.QUESTIONS"),
)

LEFT = Phrases(
    "how many {nouns} {does} have left?",
    "how many {nouns} are left?",
    "how many {nouns} remain?",
    "how many {nouns} {does} (still |)have left now?",
    "how many {nouns} {does} still have?",
    "how many {nouns} {has} got left?",
    "how many are left?",
    "how many {does} have left?",
    "how many {nouns} are remaining?",
    "find how many {nouns} are left.",
    "how many {nouns} are (still |)left (in the end|now)?",
    more=wordings("sums_words.LEFT"),
)

TOTAL = Phrases(
    "how many {nouns} {does} have (in total|altogether|in all)?",
    "how many {nouns} is that in total?",
    "how many {nouns} are there (in total|altogether)?",
    "how many {nouns} {does} have in total now?",
    "what is the total number of {nouns}?",
    "how many {nouns} {does} have together?",
    "find the total number of {nouns}.",
    "how many {does} have altogether?",
    more=wordings("sums_words.TOTAL"),
)

BOX_STARTS = Phrases(
    "{S} has/had {k} {boxes} with {m} {nouns} each",
    "{S} has/had {k} {boxes} of {m} {nouns} each",
    "{S} has/had {k} {boxes} and each {box} holds/held {m} {nouns}",
    "{S} has/had {k} {boxes} with {m} {nouns} in each",
    "{S} has/had {m} {nouns} in each of {k} {boxes}",
    "each of {owner} {k} {boxes} holds/held {m} {nouns}",
    "{S} starts/started with {k} {boxes} of {m} {nouns} each",
    "{S} owns/owned {k} {boxes} with {m} {nouns} in every {box}",
    more=wordings("sums_words.BOX_STARTS"),
)

BOX_GAINS = Phrases(
    "{S} buys/bought {k} {boxes} of {m} {nouns} each",
    "{O} gives/gave {T} {k} {boxes} with {m} {nouns} each",
    "{S} gets/got {k} {boxes} with {m} {nouns} in each",
    "{S} (finds/found|buys/bought) {k} {boxes} with {m} {nouns} in each",
    "{S} finds/found {k} {boxes} with {m} {nouns} each",
    "{S} receives/received {k} more {boxes} with {m} {nouns} in every {box}",
    "{S} wins/won {k} {boxes} and each {box} holds/held {m} {nouns}",
    more=wordings("sums_words.BOX_GAINS"),
)

BOX_LOSSES = Phrases(
    "{S} gives/gave {m} {nouns} to each of {k} friends",
    "{S} fills/filled {k} {boxes} with {m} {nouns} each for {O}",
    "{S} sells/sold {k} {boxes} of {m} {nouns} each",
    "{S} gives/gave {k} (children|friends) {m} {nouns} each",
    "{S} gives/gave away {k} {boxes} of {m} {nouns} each",
    "{S} hands/handed {m} {nouns} to each of {k} children",
    "{k} friends get/got {m} {nouns} each from {T}",
    more=wordings("sums_words.BOX_LOSSES"),
)

AFTER = (
    "",
    "",
    "",
    "",
    "",
    "Then ",
    "After that ",
    "Later ",
    "The next day ",
    "Next ",
    "Afterwards ",
    "In the evening ",
)

FRAMES = Phrases(
    "Solve this: {story}",
    "{story} (Show|Write) (the|your) steps.",
    "Word problem: {story}",
    "(Please |)solve (this|the) (word |)problem: {story}",
    "{story} Please (show|explain) each step.",
    "Math problem: {story}",
    "(Please |)help me with this: {story}",
    "Here is a problem. {story}",
    "Problem: {story}",
    "Question: {story}",
    "{story} Solve (it|this) step by step.",
    "(Please |)work this out: {story}",
    "{story} Answer:",
    "Can you solve this? {story}",
    "I need help with a sum. {story}",
    more=wordings("sums_words.FRAMES"),
)

PRODUCTS = Phrases(
    "There are {k} {boxes} with {m} {nouns} in each {box}. How many {nouns} are there?",
    "{A} has {k} {boxes} of {m} {nouns} each. How many {nouns} does {A} have (in total|altogether|)?",
    "Each of {k} {boxes} holds {m} {nouns}. How many {nouns} is that (in total|)?",
    "{A} has {k} {boxes} with {m} {nouns} each. How many {nouns} are (there|in all {boxes} together)?",
    "How many {nouns} are in {k} {boxes} if each {box} holds {m} {nouns}?",
    "If one {box} holds {m} {nouns}, how many {nouns} are in {k} {boxes}?",
    "{A} buys {k} {boxes} of {nouns}. Each {box} holds {m}. How many {nouns} is that?",
    "{A} gives {m} {nouns} to each of {k} friends. How many {nouns} does {A} give away?",
    "{A} puts {m} {nouns} into each of {k} {boxes}. How many {nouns} does {A} need?",
    "There are {k} rows of {m} {nouns}. How many {nouns} are there?",
    "A {box} holds {m} {nouns}. How many {nouns} do {k} {boxes} hold?",
    "{A} fills {k} {boxes}. Every {box} gets {m} {nouns}. How many {nouns} is that in total?",
    "{k} {boxes} hold {m} {nouns} each. How many {nouns} are there in all?",
    "{k} children have {m} {nouns} each. How many {nouns} do they have together?",
    "One {box} has {m} {nouns}. {A} buys {k} of them. How many {nouns} does {A} have?",
    "{A} packs {m} {nouns} a day for {k} days. How many {nouns} is that?",
    "{A} makes {m} {nouns} (every|each) day. How many {nouns} are made in {k} days?",
    "How many {nouns} does {A} have in {k} {boxes} with {m} {nouns} each?",
    "{k} {boxes}, {m} {nouns} in each. How many {nouns}?",
    more=wordings("sums_words.PRODUCTS"),
)

PRICES = Phrases(
    "One {noun} costs {m} {units}. How much do {k} {nouns} cost?",
    "{A} buys {k} {nouns} for {m} {units} each. How much does {A} pay?",
    "{A} buys {k} {nouns}. Each {noun} costs {m} {units}. How much does {A} pay (in total|)?",
    "One {noun} costs {m} {units}. How much does {A} pay for {k} {nouns}?",
    "How much do {k} {nouns} cost if one costs {m} {units}?",
    "{A} sells {k} {nouns} at {m} {units} each. How many {units} does {A} get?",
    "{A} earns {m} {units} a day. How much does {A} earn in {k} days?",
    "What do {k} {nouns} cost at {m} {units} each?",
    "The price of one {noun} is {m} {units}. What is the price of {k} {nouns}?",
    more=wordings("sums_words.PRICES"),
)

BOTH = Phrases(
    "{A} has {a} {nouns} and {B} has {b} {nouns}. How many {nouns} do they have together?",
    "{A} has {a} {nouns}. {B} has {b} {nouns}. How many {nouns} do they have in total?",
    "{A} has {a} {nouns}, {B} has {b}. How many do they have altogether?",
    "{A} has {a} {nouns} and {B} has {b}. How many {nouns} do they have (together|in total)?",
    "How many {nouns} do {A} and {B} have together if {A} has {a} and {B} has {b}?",
    "There are {a} {nouns} in one box and {b} in another. How many {nouns} are there in total?",
    "{A} and {B} put their {nouns} together. {A} has {a} and {B} has {b}. How many is that?",
    "{A} collected {a} {nouns} and {B} collected {b}. What is the total?",
    "Together with {B}, how many {nouns} does {A} have? {A} has {a} and {B} has {b}.",
    more=wordings("sums_words.BOTH"),
)

THREE = Phrases(
    "{A} has {a} {nouns}, {B} has {b} and {C} has {c}. How many {nouns} do they have together?",
    "{A} has {a} {nouns}. {B} has {b}. {C} has {c}. How many {nouns} do they have in total?",
    "There are {a} {nouns} in the first box, {b} in the second and {c} in the third. How many are there in all?",
    "{A} has {a} {nouns}, {B} has {b} {nouns} and {C} has {c} {nouns}. How many is that (together|in total)?",
    "{A}, {B} and {C} have {a}, {b} and {c} {nouns}. How many {nouns} is that in total?",
    "{A} counts {a} {nouns} on Monday, {b} on Tuesday and {c} on Friday. How many {nouns} is that?",
    "How many {nouns} do {A}, {B} and {C} have if they have {a}, {b} and {c}?",
    more=wordings("sums_words.THREE"),
)

MORE = Phrases(
    "{A} has {a} {nouns}. {B} has {b} more (|{nouns} )than {A}. How many {nouns} does {B} have?",
    "{A} has {a} {nouns} and {B} has {b} more. How many {nouns} does {B} have?",
    "{B} has {b} more {nouns} than {A}, who has {a}. How many {nouns} does {B} have?",
    "{B} has {b} more {nouns} than {A}. {A} has {a} {nouns}. How many {nouns} does {B} have?",
    "How many {nouns} does {B} have if {A} has {a} and {B} has {b} more than {A}?",
    "If {A} has {a} {nouns} and {B} has {b} more than that, how many does {B} have?",
    "{A} found {a} {nouns}. {B} found {b} more than {A}. How many {nouns} did {B} find?",
    more=wordings("sums_words.MORE"),
)

FEWER = Phrases(
    "{A} has {a} {nouns}. {B} has {b} fewer than {A}. How many {nouns} does {B} have?",
    "{A} has {a} {nouns} and {B} has {b} fewer. How many {nouns} does {B} have?",
    "{B} has {b} fewer {nouns} than {A}, who has {a}. How many {nouns} does {B} have?",
    "{B} has {b} (fewer|less) {nouns} than {A}. {A} has {a} {nouns}. How many {nouns} does {B} have?",
    "How many {nouns} does {B} have if {A} has {a} and {B} has {b} less than {A}?",
    "If {A} has {a} {nouns} and {B} has {b} fewer than that, how many does {B} have?",
    "{A} found {a} {nouns}. {B} found {b} fewer than {A}. How many {nouns} did {B} find?",
    more=wordings("sums_words.FEWER"),
)

DIFFERENCE = Phrases(
    "{A} has {a} {nouns} and {B} has {b}. How many more {nouns} does {A} have than {B}?",
    "{B} has {b} {nouns}. {A} has {a} {nouns}. How many more {nouns} does {A} have than {B}?",
    "How many more {nouns} does {A} have than {B} if {A} has {a} and {B} has {b}?",
    "{A} has {a} {nouns}. {B} has {b} {nouns}. How many (more|extra) {nouns} does {A} have?",
    "{A} has {a} {nouns}, {B} has {b}. What is the difference?",
    "{B} has {b} {nouns} and wants {a}. How many more {nouns} does {B} need?",
    "{A} has {a} {nouns}. How many fewer {nouns} does {B} have with {b}?",
    "{B} needs {a} {nouns} and has {b}. How many {nouns} are missing?",
    more=wordings("sums_words.DIFFERENCE"),
)

PAIRS = {"both": BOTH, "three": THREE, "more": MORE, "fewer": FEWER, "difference": DIFFERENCE}
