"""Summaries of short texts: one sentence of a fixed form a kind of text, its values copied from the text."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import get_args

from engine.embedded.corpus.base import Draw, Example, Phrases, Split, chat
from engine.embedded.corpus.summaries_more import MORE_FILLERS, further, parted, slots
from engine.embedded.corpus.summaries_words import DAYS, KINDS, MONTHS, PLACES, POOLS, UNITS, Kind
from engine.embedded.corpus.wordings import wordings

FEWEST_WORDS = 50
MOST_FILLERS: dict[Split, int] = {"train": 9, "held_out": 6}
LONGEST_SHARE = 0.6  # of the text's length, in characters

BEFORE = Phrases(
    "(Summarise|Summarize) {this}",
    "(Please |)(summarise|summarize) {this}",
    "Give me a (short |brief |)summary of {this}",
    "(Summarise|Summarize) {this} in one sentence",
    "TL;DR of {this}",
    "Write a (short |brief |one-sentence |)summary of {this}",
    "Can you (summarise|summarize) {this}( for me|)?",
    "Sum up {this}",
    "I need a (short|quick|brief) summary of {this}",
    "What are the main points of {this}?",
    "(Please |)give (me |)a (short |)summary of {this}",
    "Shorten {this} to the main facts",
    "(Summarise|Summarize) {this} (briefly|in a few words)",
    "Tell me in one sentence what {this} (says|is about|contains)",
    "(Please |)sum up {this} in one sentence",
    "Make a (short |brief |)summary of {this}",
    "Could you (sum up|summarise|summarize) {this}(, please|)?",
    "Can you give me a (short|brief|one-sentence) summary of {this}?",
    "What does {this} say, (in short|in brief|in a nutshell)?",
    "Write a summary",
    "(Short |)summary, please",
    "(Summarise|Summarize)",
    "TL;DR",
    "I have no time to read {this}, so (please |)(summarise|summarize) it",
    "Write a (short|brief) summary of {this}",
    "Boil {this} down to (one sentence|the main facts|the key facts)",
    "Give me the key facts of {this} in one sentence",
    "(Please |)(condense|shorten) {this} (into|to) one sentence",
    "(Summarise|Summarize) the following for me",
    "Your task is to (summarise|summarize) {this}",
    "(Summarise|Summarize) {this} for (my boss|a colleague|a busy reader|a friend)",
    "(Please |)write a one-sentence summary of {this}",
    more=wordings("summaries.BEFORE"),
)
FRAMES_BEFORE = Phrases(
    "{ask}\n\n{text}",
    "{ask}:\n\n{text}",
    '{ask}: "{text}"',
    "{ask}:\n{text}",
    "{ask}: {text}",
    '{ask}\n\n"{text}"',
    "{ask}.\n\n{text}",
    "{ask}\n---\n{text}\n---",
    "{ask}:\n\n'''\n{text}\n'''",
    "{ask}:\n\nText: {text}",
    '{ask}:\n\n"{text}"',
    "{ask}:\n\n{text}\n\nSummary:",
    "{ask} - {text}",
    "{ask}\n\n<text>\n{text}\n</text>",
    "{ask}\n{text}",
    more=wordings("summaries.FRAMES_BEFORE"),
)
AFTER = Phrases(
    "(Summarise|Summarize) {this}.",
    "(Please |)(summarise|summarize) {this}.",
    "Give me a (short |brief |)summary of {this}.",
    "(Please |)(summarise|summarize) {this} in one sentence.",
    "Write a (short |brief |one-sentence |)summary of {this}.",
    "Can you (summarise|summarize) {this}( for me|)?",
    "Sum {this} up(| in one sentence).",
    "What are the main points?",
    "TL;DR",
    "TL;DR?",
    "(Summarise|Summarize) this in one sentence.",
    "Summary:",
    "Sum up {this}, please.",
    "In one sentence, what does {this} say?",
    "Now (sum it up|summarise it|summarize it) (briefly|in one sentence).",
    "Could you give me a (short|brief) summary of {this}?",
    "(A short summary|Short summary|Summary), please.",
    "Give me a (short|brief) summary.",
    "I need a (short|one-sentence) summary of {this}.",
    "What does {this} (say|tell us), in short?",
    "Tell me the key facts of {this} in one sentence.",
    "(Please |)make a (short |)summary of {this}.",
    "Shorten {this} to the main facts.",
    "How would you (sum up|summarise|summarize) {this}?",
    "Write a one-sentence summary.",
    more=wordings("summaries.AFTER"),
)
FRAMES_AFTER = Phrases(
    "{text}\n\n{ask}",
    '"{text}"\n\n{ask}',
    "{text}\n{ask}",
    "{text}\n\n---\n\n{ask}",
    "Text:\n{text}\n\n{ask}",
    "Read this:\n\n{text}\n\n{ask}",
    "Here is a text.\n\n{text}\n\n{ask}",
    "I (got|have|found) this text:\n\n{text}\n\n{ask}",
    "<text>\n{text}\n</text>\n\n{ask}",
    "'''\n{text}\n'''\n{ask}",
    "Text: {text}\n\n{ask}",
    '"{text}" {ask}',
    more=wordings("summaries.FRAMES_AFTER"),
)
CONFUSABLE = (("club", "rival"), ("day", "day2"), ("date", "date2"))
THIS_BEFORE = ("this", "this text", "the following text", "the following", "this passage", "the text below")
THIS_AFTER = ("this", "this text", "the text above", "the above", "this passage", "that")


def alternatives(pool: str) -> tuple[str, ...]:
    """The parts of `pool` between its lines and those `|` that are in no parentheses."""
    parts, depth = [""], 0
    for letter in pool.replace("\n", "|"):
        depth += (letter == "(") - (letter == ")")
        if letter == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(parts)


DAY_NAMES, MONTH_NAMES, PLACE_NAMES = DAYS.split(), MONTHS.split(), PLACES.split()
SLOTS = {name: alternatives(pool) for name, pool in POOLS.items()}
FACTS = {
    kind.name: tuple(Phrases(*fact, more=more) for fact, more in zip(parted(kind.facts), further(kind), strict=True))
    for kind in KINDS
}
NAMES = {kind.name: tuple(re.findall(r"{(\w+)}", kind.answer)) for kind in KINDS}


def filler_pool(kind: Kind, split: Split) -> tuple[str, ...]:
    more = MORE_FILLERS[kind.name] if split == "train" else ""
    return tuple((kind.fillers + kind.common + more).strip().replace("\n\n", "\n").split("\n"))


SPLITS: tuple[Split, ...] = get_args(Split)
FILLERS = {(kind.name, split): filler_pool(kind, split) for kind in KINDS for split in SPLITS}


class Summaries:
    """`expect` is {"text", "facts", "order"}: all facts, and the pairs in `order` one after the other."""

    name = "summaries"

    def make(self, draw: Draw) -> Example:
        kind = draw.choice(KINDS)
        values = draw_values(draw, NAMES[kind.name])
        answer = capital(draw.expand(kind.answer, **values))
        text = write_text(draw, kind, values, len(answer))
        facts = list(values.values())
        order = [(values[first], values[second]) for first, second in CONFUSABLE if second in values]
        return Example(
            self.name,
            chat(request(draw, kind, text), answer),
            key=" | ".join((kind.name, *facts)),
            expect={"text": text, "facts": facts, "order": order},
        )

    def check(self, example: Example, answer: str) -> bool:
        """Whether all facts are there, in a text that is much shorter than, and not a piece of, the one given."""
        text, said = plain(example.expect["text"]), plain(answer)
        return (
            all(holds(said, plain(fact)) for fact in example.expect["facts"])
            and all(said.index(plain(first)) < said.index(plain(second)) for first, second in example.expect["order"])
            and len(said) < LONGEST_SHARE * len(text)
            and said.rstrip(".") not in text
        )


def plain(text: str) -> str:
    return " ".join(text.lower().split())


def holds(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


def draw_values(draw: Draw, names: Sequence[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Different values for the slots `names`, none of them one of `taken`."""
    values: dict[str, str] = {}
    for name in names:
        while (value := draw_value(draw, name, values)) in values.values() or value in taken:
            pass
        values[name] = value
    return values


def draw_value(draw: Draw, name: str, values: dict[str, str]) -> str:
    if name in UNITS:
        low, high, unit = UNITS[name]
        return f"{draw.integer(low, high)}{unit}"
    if name == "person":
        return draw.first_name() if draw.chance(0.15) else f"{draw.first_name()} {draw.surname()}"
    if name in ("team", "library", "museum"):
        return draw.choice(PLACE_NAMES)
    if name in ("order", "extension"):
        return f"{name} {draw.integer(100, 9999)}"
    if name == "score":
        return f"{(goals := draw.integer(1, 6))}{draw.choice('-:')}{draw.integer(0, goals - 1)}"
    if name == "rival":
        return draw_value(draw, "club", values)
    if name in ("day", "day2"):
        return draw.choice(DAY_NAMES)
    if name == "date":
        return draw_date(draw, draw.choice(MONTH_NAMES[:-1]))
    if name == "date2":
        month = next(place for place, month in enumerate(MONTH_NAMES) if month in values["date"])
        return draw_date(draw, MONTH_NAMES[month + 1])
    if name == "clock":
        return draw_clock(draw)
    if name == "town":
        return draw.surname()
    if name == "company":
        return draw.surname() + draw.choice((" Foods", " Works", " Systems", " Motors", " Tools", " and Sons", ""))
    hour = draw.integer(1, 8)
    parts = {"n": draw.integer(2, 39), "h": hour, "k": hour + draw.integer(1, 4), "place": draw.choice(PLACE_NAMES)}
    return draw.expand(draw.choice(SLOTS[name]), **parts)


def draw_date(draw: Draw, month: str) -> str:
    day = draw.integer(1, 28)
    return f"{month} {day}" if draw.chance(0.3) else f"{day} {month}"


def draw_clock(draw: Draw) -> str:
    hour = draw.integer(1, 12)
    if draw.chance(0.5):
        return f"{hour + 8}:{draw.integer(0, 11) * 5:02d}"
    return draw.choice((f"{hour} o'clock", f"{hour} pm", f"{hour} am", f"half past {hour}"))


def write_text(draw: Draw, kind: Kind, values: dict[str, str], summary: int) -> str:
    """A text with all facts of `kind`, long enough for a summary of `summary` characters."""
    sentences = [capital(draw.phrase(fact, **values)) for fact in FACTS[kind.name]]
    if draw.chance(0.4):
        draw.random.shuffle(sentences)
    wanted = draw.integer(2, 5)
    for done, filler in enumerate(draw.sample(FILLERS[kind.name, draw.split], MOST_FILLERS[draw.split])):
        if done >= wanted and sum(map(len, sentences)) > 2 * summary and words(sentences) >= FEWEST_WORDS:
            break
        sentence = write_filler(draw, filler, values)
        sentences.insert(draw.integer(0, len(sentences)), sentence)
    return lay_out(draw, sentences, draw.choice(kind.titles))


def write_filler(draw: Draw, filler: str, values: dict[str, str]) -> str:
    """A sentence that does not matter. What it tells of the same sort as a fact is another value than the fact's."""
    usual = {"other": draw.first_name(), "n": draw.integer(2, 12), "hour": draw_clock(draw)}
    others = draw_values(draw, sorted(slots(filler) - set(usual)), values.values())
    return capital(draw.expand(filler, **usual, **others))


def words(sentences: list[str]) -> int:
    return sum(sentence.count(" ") + 1 for sentence in sentences)


def lay_out(draw: Draw, sentences: list[str], title: str) -> str:
    """Sentences as one paragraph, two paragraphs or a list; sometimes with a title."""
    if draw.chance(0.08):
        text = "\n".join(f"- {sentence}" for sentence in sentences)
    elif draw.chance(0.15):
        cut = draw.integer(1, len(sentences) - 1)
        text = " ".join(sentences[:cut]) + "\n\n" + " ".join(sentences[cut:])
    else:
        text = " ".join(sentences)
    return f"{title}\n\n{text}" if draw.chance(0.2) else text


def request(draw: Draw, kind: Kind, text: str) -> str:
    after = draw.chance(0.35)
    generic = THIS_AFTER if after else THIS_BEFORE
    this = draw.choice(generic if draw.chance(0.6) else kind.nouns)
    ask = draw.phrase(AFTER if after else BEFORE, this=this)
    if after:
        return draw.phrase(FRAMES_AFTER, text=text, ask=draw.casual(ask))
    ask = ask[0].lower() + ask[1:] if draw.chance(0.2) else ask
    return (
        draw.phrase(FRAMES_BEFORE, text=text, ask=ask)
        .replace("?:", "?", 1)
        .replace("?.", "?", 1)
        .replace(" - - ", "\n- ", 1)
    )


SKILL = Summaries()
