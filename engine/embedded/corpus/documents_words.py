"""What documents are about: kinds of records with their fields, section names, filler lines, and questions.

Patterns of values: `#` is a digit, `%` a digit but 0, `@` a capital letter; documents_text.py draws a `<name>`.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.embedded.corpus.base import Phrases
from engine.embedded.corpus.wordings import wordings


def pool(text: str) -> tuple[str, ...]:
    """The parts of `text` between commas."""
    return tuple(" ".join(part.split()) for part in text.split(","))


@dataclass(frozen=True)
class Field:
    """A field of a record.

    values  a pattern, or the few values that it takes (then no question finds a record by it).
    verbs   how a sentence about the record says it; asks  a question for it, and the same as an indirect question.
    """

    name: str
    values: str | tuple[str, ...]
    verbs: tuple[str, ...]
    asks: tuple[str, str]


@dataclass(frozen=True)
class Kind:
    """A kind of records.

    key      the pattern of its keys; column  what its column is called; label  the key in a sentence, from {key}.
    noun     what one record is called; lists  what the whole is called; sections  ends of section names.
    special  layouts of a line other than the usual ones.
    """

    name: str
    key: str
    column: str
    label: str
    noun: str
    lists: tuple[str, ...]
    sections: tuple[str, ...]
    fields: tuple[Field, ...]
    special: tuple[str, ...] = ()


KINDS = (
    Kind(
        "staff",
        "<person>",
        "name",
        "{key}",
        "person",
        ("Staff list", "Staff records", "Who sits where", "Phone list", "Employees"),
        ("office", "department", "branch", "house"),
        (
            Field(
                "room",
                "%##",
                ("sits in room {}", "works in room {}", "is in room {}"),
                ("which room is {label} in", "which room {label} is in"),
            ),
            Field(
                "extension",
                "%###",
                ("has extension {}", "answers on extension {}", "can be reached on extension {}"),
                ("which extension does {label} have", "on which extension {label} can be reached"),
            ),
            Field(
                "team",
                pool("sales, design, support, finance, research, training, security, planning, legal, press"),
                ("works in the {} team", "belongs to the {} team"),
                ("which team does {label} belong to", "which team {label} belongs to"),
            ),
            Field(
                "badge",
                "@##%#",
                ("has badge {}", "wears badge {}"),
                ("which badge does {label} have", "which badge {label} has"),
            ),
        ),
    ),
    Kind(
        "stock",
        "<item>",
        "item",
        "the {key}",
        "item",
        ("Stock list", "Stock", "What we have in store", "Articles"),
        ("store", "warehouse", "shop", "depot"),
        (
            Field(
                "code",
                "@@-%##",
                ("has code {}", "has the code {}", "is listed under code {}"),
                ("which code does {label} have", "under which code {label} is listed"),
            ),
            Field(
                "count",
                "%#",
                ("has a count of {}", "is there with a count of {}"),
                ("how many of {label} are there", "how many of {label} there are"),
            ),
            Field(
                "shelf",
                "@%",
                ("is on shelf {}", "stands on shelf {}", "lies on shelf {}"),
                ("which shelf is {label} on", "on which shelf {label} is"),
            ),
            Field(
                "price",
                "%#.#0",
                ("costs {}", "has a price of {}"),
                ("what does {label} cost", "how much {label} costs"),
            ),
        ),
    ),
    Kind(
        "log",
        "E%###",
        "event",
        "event {key}",
        "event",
        ("Event log", "Log", "System log", "Events"),
        ("server", "cluster", "gateway", "node"),
        (
            Field(
                "time",
                "<second>",
                ("happened at {}", "was logged at {}"),
                ("when did {label} happen", "when {label} happened"),
            ),
            Field(
                "service",
                pool("auth, billing, search, mail, cache, proxy, queue, storage, backup, login, metrics, upload"),
                ("came from service {}", "concerns service {}"),
                ("which service does {label} come from", "which service {label} comes from"),
            ),
            Field(
                "level",
                pool("INFO, WARN, ERROR, DEBUG, FATAL"),
                ("has level {}", "was of level {}"),
                ("which level does {label} have", "which level {label} has"),
            ),
            Field(
                "message",
                pool("""connection lost, disk almost full, started, stopped, timeout, job done, key expired,
                out of memory, user locked, file missing, retry failed, cache cleared, port closed, slow query,
                new version"""),
                ("says {}", "reports {}"),
                ("what does {label} say", "what {label} says"),
            ),
        ),
        (
            "{time} {level} {service}: {message} ({key})",
            "[{time}] {level} {service} {key} {message}",
            "{key} {time} {service} [{level}] {message}",
        ),
    ),
    Kind(
        "minutes",
        "<next>",
        "item",
        "item {key}",
        "item",
        ("Minutes of the meeting", "Minutes", "Decisions", "To do"),
        ("committee", "board", "group", "council"),
        (
            Field(
                "owner",
                "<person>",
                ("belongs to {}", "is owned by {}", "goes to {}"),
                ("who owns {label}", "who owns {label}"),
            ),
            Field(
                "decision",
                pool("approved, rejected, postponed, withdrawn, adopted, dropped"),
                ("was {}",),
                ("what was decided on {label}", "what was decided on {label}"),
            ),
            Field(
                "due date",
                "<date>",
                ("is due on {}", "has to be done by {}"),
                ("when is {label} due", "when {label} is due"),
            ),
            Field(
                "topic",
                "<topic>",
                ("is about {}", "deals with {}"),
                ("what is {label} about", "what {label} is about"),
            ),
        ),
        (
            "Item {key}: {topic}. Owner: {owner}. Due date: {due date}.",
            "Item {key} ({owner}): {topic}, {decision}",
            "Item {key}. {topic} - {decision} - {owner} - {due date}",
        ),
    ),
    Kind(
        "visitors",
        "<person>",
        "visitor",
        "{key}",
        "visitor",
        ("Visitor book", "Visitors", "Guests of the day"),
        ("gate", "building", "site", "entrance"),
        (
            Field(
                "host",
                "<person>",
                ("visits {}", "came to see {}", "was met by host {}"),
                ("who is the host of {label}", "whom {label} visits"),
            ),
            Field(
                "arrival time",
                "<minute>",
                ("arrived at {}", "came in at {}"),
                ("when did {label} arrive", "when {label} arrived"),
            ),
            Field(
                "badge",
                "V%##",
                ("has badge {}", "got badge {}"),
                ("which badge did {label} get", "which badge {label} got"),
            ),
            Field(
                "company",
                "<company>",
                ("comes from {}", "works for {}"),
                ("which company does {label} come from", "which company {label} comes from"),
            ),
        ),
    ),
    Kind(
        "parcels",
        "P-%###",
        "parcel",
        "parcel {key}",
        "parcel",
        ("Parcel list", "Parcels", "Deliveries", "Post"),
        ("route", "van", "post office", "tour"),
        (
            Field(
                "recipient",
                "<person>",
                ("is for {}", "goes to {}"),
                ("who gets {label}", "who gets {label}"),
            ),
            Field(
                "weight",
                "%.# kg",
                ("weighs {}", "has a weight of {}"),
                ("how heavy is {label}", "how heavy {label} is"),
            ),
            Field(
                "town",
                "<town>",
                ("is sent to {}", "travels to {}"),
                ("which town does {label} go to", "which town {label} goes to"),
            ),
            Field(
                "locker",
                "%#",
                ("is in locker {}", "waits in locker {}"),
                ("which locker is {label} in", "which locker {label} is in"),
            ),
        ),
    ),
    Kind(
        "timetable",
        "%##",
        "train",
        "train {key}",
        "train",
        ("Timetable", "Trains", "Departures"),
        ("line", "junction", "branch line", "terminus"),
        (
            Field(
                "destination",
                "<town>",
                ("goes to {}", "runs to {}"),
                ("where does {label} go", "where {label} goes"),
            ),
            Field(
                "departure",
                "<minute>",
                ("leaves at {}", "departs at {}"),
                ("when does {label} leave", "when {label} leaves"),
            ),
            Field(
                "platform",
                tuple("123456789"),
                ("leaves from platform {}", "stands at platform {}"),
                ("which platform does {label} leave from", "from which platform {label} leaves"),
            ),
        ),
        ("{departure} train {key} to {destination}", "Train {key}: {destination}, {departure}, platform {platform}"),
    ),
    Kind(
        "inventory",
        "D-%##@",
        "device",
        "device {key}",
        "device",
        ("Inventory", "Devices", "Equipment list"),
        ("lab", "floor", "workshop", "studio"),
        (
            Field(
                "type",
                pool("laptop, printer, monitor, scanner, camera, phone, router, tablet, projector, speaker, keyboard"),
                ("is a {}",),
                ("what type is {label}", "what type {label} is"),
            ),
            Field(
                "user",
                "<person>",
                ("is used by {}", "was given to {}"),
                ("who uses {label}", "who uses {label}"),
            ),
            Field(
                "year",
                tuple(str(year) for year in range(2008, 2026)),
                ("was bought in {}", "dates from {}"),
                ("when was {label} bought", "in which year {label} was bought"),
            ),
            Field(
                "serial number",
                "%#@@##",
                ("has serial number {}", "bears serial number {}"),
                ("which serial number does {label} have", "which serial number {label} has"),
            ),
        ),
    ),
    Kind(
        "settings",
        "<setting>",
        "key",
        "{key}",
        "setting",
        ("Settings", "Configuration", "Options"),
        ("profile", "module", "service", "host"),
        (
            Field(
                "value",
                "<value>",
                ("is set to {}", "has the value {}"),
                ("what is {label} set to", "what {label} is set to"),
            ),
        ),
        ("{key} = {value}", "{key}={value}", "{key}: {value}", "{key} {value}", "set {key} {value}"),
    ),
    Kind(
        "books",
        "<title>",
        "title",
        "{key}",
        "book",
        ("Book list", "Books", "Library catalogue"),
        ("shelf", "collection", "reading room", "library"),
        (
            Field(
                "author",
                "<person>",
                ("was written by {}", "is by {}"),
                ("who wrote {label}", "who wrote {label}"),
            ),
            Field(
                "year",
                tuple(str(year) for year in range(1890, 2025)),
                ("came out in {}", "dates from {}"),
                ("when did {label} come out", "in which year {label} came out"),
            ),
            Field(
                "call number",
                "%##.@",
                ("has call number {}", "stands under call number {}"),
                ("which call number does {label} have", "under which call number {label} stands"),
            ),
        ),
    ),
    Kind(
        "hotel",
        "%##",
        "room",
        "room {key}",
        "room",
        ("Room list", "Rooms", "Hotel bookings"),
        ("wing", "hotel", "house", "inn"),
        (
            Field(
                "guest",
                "<person>",
                ("is booked for {}", "is taken by {}"),
                ("who is in {label}", "who stays in {label}"),
            ),
            Field(
                "arrival date",
                "<date>",
                ("is taken from {}", "is booked from {}"),
                ("when does the guest of {label} arrive", "from when {label} is booked"),
            ),
            Field(
                "stay",
                tuple(f"{nights} nights" for nights in range(2, 15)),
                ("is booked for a stay of {}", "is taken for a stay of {}"),
                ("how long is the stay in {label}", "how long the stay in {label} is"),
            ),
        ),
        ("Room {key}: {guest}, {stay}", "Room {key}: {guest}, {stay} from {arrival date}"),
    ),
    Kind(
        "orders",
        "%####",
        "order",
        "order {key}",
        "order",
        ("Orders", "Order list", "Open orders"),
        ("region", "district", "dealer", "branch"),
        (
            Field(
                "customer",
                "<company>",
                ("comes from {}", "was placed by {}"),
                ("who placed {label}", "who placed {label}"),
            ),
            Field(
                "amount",
                "%##",
                ("has an amount of {}", "comes to an amount of {}"),
                ("what is the amount of {label}", "how high the amount of {label} is"),
            ),
            Field(
                "status",
                pool("open, shipped, paid, cancelled, packed, returned, on hold"),
                ("is {}", "has the status {}"),
                ("what is the status of {label}", "which status {label} has"),
            ),
            Field(
                "item",
                "<item>",
                ("is for the {}", "contains the {}"),
                ("what was ordered with {label}", "what {label} contains"),
            ),
        ),
    ),
    Kind(
        "doors",
        "<place>",
        "place",
        "the {key}",
        "place",
        ("Keys and codes", "Door codes", "Access list"),
        ("campus", "quarter", "yard", "estate"),
        (
            Field(
                "code",
                "%###",
                ("has code {}", "opens with code {}", "has the code {}"),
                ("which code opens {label}", "which code opens {label}"),
            ),
            Field(
                "keeper",
                "<person>",
                ("is kept by {}", "has keeper {}"),
                ("who is the keeper of {label}", "who keeps {label}"),
            ),
            Field(
                "phone",
                "555-%###",
                ("has phone {}", "can be called on phone {}"),
                ("which phone does {label} have", "which phone {label} has"),
            ),
        ),
    ),
)

PLACES = pool("""Harbour, Mill, River, Bridge, Garden, Station, Castle, Forest, Hill, Lake, Market, Church, Meadow,
Orchard, Tower, Valley, Summit, Coast, Canal, Quarry, Abbey, Maple, Willow, Cedar, Falcon, Heron, Otter, Badger, Swan,
Raven, Amber, Copper, Silver, Granite, Marble, North, South, East, West, Central, Upper, Lower, Linden,
Birch, Poplar, Hazel""")
ADJECTIVES = pool("""blue, red, green, grey, black, white, small, large, round, flat, heavy, light, old, new, soft,
hard, long, short, cheap, folding, wooden, steel, glass, paper, plastic, garden, office, kitchen, travel, winter,
summer, silent, bright, dark, plain, double, narrow, wide, square, solid""")
ITEMS = pool("""lamp, chair, table, clock, vase, brush, bucket, ladder, rope, hammer, saw, drill, shelf, box, bag, cup,
plate, bowl, spoon, fork, knife, towel, pillow, blanket, carpet, curtain, mirror, frame, candle, pen, pencil, ruler,
folder, stapler, tape, glue, hook, hinge, screw, nail, bolt, pipe, valve, hose, pump, fan, heater, kettle, pan, pot,
tray, basket, bench, stool, tent, torch, whistle, kite, ball, puzzle""")
TOPICS = pool("""parking, heating, training, summer party, website, budget, safety, travel, hiring, cleaning, canteen,
storage, printer, lighting, recycling, phone, insurance, archive""")
TOPIC_NOUNS = pool("plan, review, report, contract, survey, problem, offer, rules")
DOORS = pool("""gate, door, hall, cellar, garage, shed, tower, workshop, store, office, attic, lift, kitchen, studio,
archive, barn, depot, cabin, pavilion, stable""")
SIDES = pool("""north, south, east, west, old, new, main, upper, lower, inner, outer, left, right, front, back, middle,
first, second, third, fourth""")
SETTING_GROUPS = pool("""cache, mail, log, user, net, disk, web, auth, queue, backup, report, theme, search, job, sync,
audio, video, proxy, index, alert""")
SETTING_NAMES = pool("""max_size, min_size, timeout, retries, level, path, port, enabled, limit, interval, color,
mode, delay, depth, width, height, batch, workers, quota, language, format, age, rate, burst, ttl, host, token,
prefix, suffix, folder, backoff, threads, margin, offset, start, end, step, scale, seed, region, zone, owner, title,
font, locale, weight, priority, window, filter, target, source, version, grace, jitter""")
SETTING_VALUES = pool("true, false, on, off, auto, none, fast, slow, strict, plain, full, basic, debug, always, never")
MONTHS = pool("January, February, March, April, May, June, July, August, September, October, November, December")
COMPANY_ENDS = pool("Foods, Works, Systems, Motors, Tools, Energy, Textiles, Logistics")

FILLERS = (
    "Please tell the front desk about any change.",
    "This list is checked (every week|every month|from time to time).",
    "Thank you for keeping this up to date.",
    "Some lines were added later.",
    "The old list is no longer valid.",
    "Ask the office if something is not clear.",
    "There was a short break here.",
    "Everything was checked twice.",
    "(Nothing|Nothing else) has changed since last month.",
    "The weather was (fine|cold|grey) that day.",
    "A copy lies in the archive.",
    "The coffee machine on this floor is out of order.",
    "The windows were cleaned last week.",
    "The next check is planned for (spring|summer|autumn|winter).",
    "It is best to call in the morning.",
    "The car park is full on most days.",
    "A new printer has been ordered.",
    "The meeting was moved because of the holiday.",
    "All doors are locked at night.",
    "Mistakes should be reported at once.",
    "The lift was repaired and works again.",
    "(Many|Some|A few) people asked about this.",
    "Old papers go into the blue bin.",
    "The heating will be switched on soon.",
    "There is fresh fruit in the kitchen.",
    "Nobody had any questions about it.",
    "The rest follows the usual rules.",
    "The garden looks good this year.",
    "The map in the hall shows the way.",
    "Please do not print this page.",
)

LOOK_UP = Phrases(
    "What is {thing}?",
    "Tell me {thing}.",
    "(Please |)(give|show) me {thing}.",
    "Can you tell me {thing}?",
    "Find {thing}.",
    "I need {thing}.",
    "(Please |)look up {thing}( for me|).",
    "Could you look up {thing}( for me|, please|)?",
    "What's {thing}?",
    "According to the (list|document|text), what is {thing}?",
    "(Please |)find {thing} in the (list|document|text).",
    "(Do|Can) you see {thing}( anywhere|)?",
    "I am looking for {thing}.",
    "What does the (document|list|text) (say about|give as) {thing}?",
    "Can you find {thing}( here|)?",
    "From the (document|list|text), what is {thing}?",
    "I'd like to (know|have) {thing}.",
    "Please tell me {thing}.",
    "(Read off|Copy|Quote) {thing}.",
    "I forgot {thing}.",
    "Quick question: what is {thing}?",
    "I have a question: what is {thing}?",
    "Answer with {thing}.",
    more=wordings("documents_words.LOOK_UP"),
)
CLAUSES = Phrases(
    "{Direct}?",
    "Tell me {indirect}.",
    "Do you (know|see) {indirect}?",
    "Can you tell me {indirect}?",
    "(Please |)look up {indirect}.",
    "I (need|want|have) to know {indirect}.",
    "{Direct}, (please|according to this|do you know)?",
    "Find out {indirect}.",
    "According to the (document|list|text), {direct}?",
    "Could you (check|see|find out|look up) {indirect}?",
    "(Please |)tell me {indirect}.",
    "(Please |)check {indirect}.",
    "Quick question: {direct}?",
    "Can you (see|find out|check) {indirect}?",
    "I have a question: {direct}?",
    more=wordings("documents_words.CLAUSES"),
)
REVERSE = Phrases(
    "{Who} has {field} {value}?",
    "{Who} has the {field} {value}?",
    "Whose {field} is {value}?",
    "{Who} is listed with {field} {value}?",
    "(Find|Show me) the {noun} with {field} {value}.",
    "Which {noun} has {value} as {field}?",
    "The {field} is {value}. Which {noun} is (it|that)?",
    "To which {noun} does {field} {value} belong?",
    "(Tell me|Look up) which {noun} has {field} {value}.",
    "I only (have|know) the {field}: {value}. Which {noun} is (it|that)?",
    "Which {noun} is listed with the {field} {value}?",
    "{Field} {value} belongs to which {noun}?",
    "Which {noun} goes with {field} {value}?",
    "{Who} in the (document|list|text) has {field} {value}?",
    "(Please |)look up {field} {value}. Which {noun} has it?",
    "Can you tell me which {noun} has {field} {value}?",
    "For which {noun} is the {field} {value}?",
    "Which {noun} has the {field} {value}?",
    "Find the {noun} whose {field} is {value}.",
    more=wordings("documents_words.REVERSE"),
)
TWO_FIELDS = Phrases(
    "What are the {a} and the {b} of {label}?",
    "What is the {a} and what is the {b} of {label}?",
    "(Give|Tell|Show) me the {a} and (the |){b} of {label}.",
    "Tell me the {a} and the {b} of {label}.",
    "(Please |)look up the {a} and (the |){b} for {label}.",
    "I need both the {a} and the {b} of {label}.",
    "Find the {a} and (the |){b} of {label}.",
    "What are the {a} and (the |){b} for {label}?",
    "For {label}, what are the {a} and the {b}?",
    "Can you (give|tell) me the {a} and the {b} of {label}?",
    "I need the {a} and (the |){b} of {label}.",
    "Which {a} and which {b} does {label} have?",
    "Could you look up two things for {label}: the {a} and the {b}?",
    "About {label}: I need the {a} and the {b}.",
    "The {a} and the {b} of {label}, please.",
    more=wordings("documents_words.TWO_FIELDS"),
)
LISTED = Phrases(
    "Is {label} in the (document|list|text)?",
    "Is {label} (listed|mentioned)( here|)?",
    "Does the (document|list|text) (mention|contain|list) {label}?",
    "Is {label} listed in the (document|text)?",
    "Can you see whether {label} is in the (document|list|text)?",
    "(Please |)check (if|whether) {label} is (listed|there|mentioned).",
    "Do you find {label} in (this|the list|the document)?",
    "Is there an entry for {label}?",
    "Tell me (if|whether) {label} is (listed|in the document).",
    "Does {label} appear( in the document| in the list| anywhere|)?",
    "Is {label} mentioned in the (document|list|text)?",
    "Is {label} on the list?",
    "I wonder (if|whether) {label} is (on the list|in the document).",
    "Can you find {label} in the (list|document)?",
    "Has {label} been listed?",
    more=wordings("documents_words.LISTED"),
)
COUNT = Phrases(
    "How many entries does {part} have?",
    "How many entries are (there |)in {part}?",
    "Count the entries (in|of) {part}.",
    "How many entries are listed in {part}?",
    "What is the number of entries in {part}?",
    "Tell me how many entries {part} has.",
    "(Please |)count the entries in {part}.",
    "How many lines with entries does {part} have?",
    "How (long is the list in|large is) {part}, in entries?",
    "Give me the number of entries in {part}.",
    "(Please |)tell me how many entries are in {part}.",
    "I need the number of entries (in|of) {part}.",
    "Can you count the entries (in|of) {part}?",
    "How many entries can you (see|find) in {part}?",
    more=wordings("documents_words.COUNT"),
)
SUMMARY = Phrases(
    "(Summarise|Summarize) {part}.",
    "(Please |)(summarise|summarize) {part}.",
    "Give me a (short |)summary of {part}.",
    "Can you (summarise|summarize) {part}( for me|)?",
    "What is in {part}?",
    "Sum up {part}.",
    "What does {part} contain?",
    "TL;DR of {part}",
    "Write a (short |)summary of {part}.",
    "I need a (short |)summary of {part}.",
    "(Please |)give (me |)a summary of {part}.",
    "(Summarise|Summarize) only {part}.",
    "Tell me (in short |)what {part} contains.",
    "Could you (sum up|summarise|summarize) {part}(, please|)?",
    "What is {part} about?",
    "(Please |)sum up {part} in one sentence.",
    "(Summarise|Summarize) {part} (in one sentence|briefly).",
    "Write a summary of {part}.",
    more=wordings("documents_words.SUMMARY"),
)
AFTER = Phrases(
    "{document}\n\n{question}",
    "Here is a (document|list|text):\n\n{document}\n\n{question}",
    "Document:\n{document}\n\nQuestion: {question}",
    "{document}\n\nQuestion: {question}",
    "(Use|Read) (this|the following) (document|list|text):\n\n{document}\n\n{question}",
    "{document}\n---\n{question}",
    "<document>\n{document}\n</document>\n\n{question}",
    "'''\n{document}\n'''\n\n{question}",
    "Read (this|the text) and answer the question.\n\n{document}\n\n{question}",
    "Answer (from|with the help of) the document.\n\n{document}\n\n{question}",
    "Document:\n\n{document}\n\n{question}",
    "Text:\n{document}\n\n{question}",
    "{document}\n\n\n{question}",
    "{document}\n\nQ: {question}\nA:",
    "I have this (document|list|text):\n\n{document}\n\n{question}",
    "```\n{document}\n```\n{question}",
    "{document}\n\n(Now a question|My question|One question): {question}",
    "Here is the (document|list|text).\n\n{document}\n\n{question}",
    "(Given this|Look at this) (document|list|text):\n\n{document}\n\n{question}",
    "Below is a document. A question follows.\n\n{document}\n\nQuestion: {question}",
    "Context:\n{document}\n\nQuestion: {question}",
    "{document}\n{question}",
    "Someone sent me this:\n\n{document}\n\n{question}",
    more=wordings("documents_words.AFTER"),
)
BEFORE = Phrases(
    "{question}\n\n{document}",
    "{question}\n\nHere is the (document|list|text):\n\n{document}",
    "{question}\n---\n{document}",
    "{question}\n\nDocument:\n{document}",
    "Question: {question}\n\nDocument:\n{document}",
    "{question} (Use|Read) this (document|list|text):\n\n{document}",
    "{question}\n\n<document>\n{document}\n</document>",
    "{question}\n\n'''\n{document}\n'''",
    "Q: {question}\n\n{document}",
    "{question} Answer from this:\n\n{document}",
    "Question: {question}\n\n{document}",
    "{question}\n{document}",
    more=wordings("documents_words.BEFORE"),
)
