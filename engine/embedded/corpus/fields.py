"""Fields of a short text as JSON: the keys that are asked for, in that order, on one line; null for what is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.embedded.corpus.base import Draw, Example, Phrases, belongs, chat, phrases
from engine.embedded.corpus.fields_composed import Made, compose
from engine.embedded.corpus.fields_values import MAKERS, Value
from engine.embedded.corpus.fields_words import KINDS, Kind, slots_in
from engine.embedded.corpus.wordings import wordings

# Asked for where the text has nothing of that sort.
ABSENT = (
    ("phone", "phone"),
    ("email", "email"),
    ("age", "age"),
    ("color", "color"),
    ("website", "website"),
    ("time", "time"),
)
PEOPLE = ("person", "first", "doctor")
MISSING = {"train": 0.25, "held_out": 0.1}
TWO_MISSING = 0.3  # of those, in training
COMPOSED = 0.5  # of the training texts; all others are made from a template
# What a key, or one whose values are made so, could also mean by a careless reader: in training, such a key is asked
# for in vain only if the question asks for that other value, too.
CONFUSABLE = {
    **dict.fromkeys(PEOPLE, ("company", "brand", "email")),
    "name": ("item", "hotel", "restaurant", "event", "course", "title", "team", "stadium", "carbrand", "model"),
    "company": ("brand", "website", "city"),
    "brand": ("company", "city"),
    "carbrand": ("model",),
    "model": ("carbrand",),
    "seller": ("person",),
    "receiver": ("person",),
    "payee": ("person",),
    "to": ("person",),
    "recipient": ("city",),
    "contact": ("person", "company", "website"),
    "item": ("brand", "event", "course"),
    "title": ("item", "department"),
    "city": ("country", "team", "stadium", "company", "brand"),
    "home": ("country", "street"),
    "country": ("city", "language"),
    "place": ("city", "country", "street", "hotel", "restaurant", "stadium"),
    "street": ("city", "place", "email", "website"),
    "website": ("email", "topic"),
    "date": ("year",),
    "departure": ("date", "city"),
    "time": ("duration", "hours"),
    "duration": ("time", "hours", "nights"),
    "hours": ("time", "duration"),
    "number": ("count", "phone", "street"),
    "size": ("item", "area", "weight"),
    "age": ("year",),
    "topic": ("item", "department"),
    "price": ("weight",),
}
ARTICLE = re.compile(r"\ba(?= [aeiou])")

PROMPTS = Phrases(
    "Extract {keys} as JSON: {text}",
    "Extract {keys} as JSON.\n\n{text}",
    "Return a JSON object with the keys {keys}.\n\n{text}",
    "Extract {keys} (from this text |)as JSON:\n{text}",
    "fields: {keys}\n\n{text}",
    "{text}\n\nExtract {keys} as JSON.",
    "Text: {text}\nFields: {keys}\nJSON:",
    'Extract {keys} from this text as JSON: "{text}"',
    "Please extract {keys} from the following text and return JSON.\n\n{text}",
    "Give me {keys} as JSON:\n{text}",
    "(Please |)return (a |)JSON (object |)with (the keys |){keys}(:|.)\n{text}",
    "Read the text and fill in the fields {keys}. Answer in JSON.\n\n{text}",
    "{text}\n\nReturn JSON with {keys}.",
    "Turn this into JSON with the keys {keys}:\n\n{text}",
    "I need {keys} from this message as a JSON object.\n\n{text}",
    "Parse this: {text}\nKeys: {keys}",
    "What are {keys} in this text? Answer as JSON.\n\n{text}",
    "{text}\n\n(Extract|Get|Return) {keys} as JSON(.| please.)",
    "Get {keys} from the text below as JSON.\n\n{text}",
    "Find {keys} in the text. Output JSON only.\n\nText: {text}",
    "JSON with {keys}: {text}",
    "Convert to JSON. Fields: {keys}.\n{text}",
    "Information extraction. Keys: {keys}. Text: {text}",
    "Create a JSON object with {keys} from this:\n{text}",
    "(Text:|From this text:) {text}\n(Extract|Get) (the fields |){keys} as JSON.",
    "Extract the fields {keys} from the note:\n\n{text}",
    "Here is a text:\n{text}\n\nPlease give me {keys} as JSON.",
    "From the text, extract these fields: {keys}. Reply in JSON.\n\n{text}",
    "Write {keys} as JSON for this text:\n{text}",
    "Can you pull {keys} out of this? JSON please.\n\n{text}",
    "Message:\n{text}\n\nWanted fields: {keys}\nFormat: JSON",
    "(Extract|Return|Give me) the fields {keys} (from the text |)in JSON(:|.)\n\n{text}",
    "Return only JSON with these keys: {keys}.\n\n{text}",
    "Extract to JSON [{keys}]: {text}",
    "Use the keys {keys} and answer with a JSON object.\n\n{text}",
    "{text}\n\nWhich {keys} are given? JSON.",
    "{text}\nfields: {keys}",
    "get {keys} as json: {text}",
    "(Here is a text|Text|Message):\n{text}\n\n(Return JSON with {keys}.|Extract {keys} as JSON.)",
    "Make a JSON object from this text. It has the keys {keys}.\n\n{text}",
    "Put {keys} into a JSON object.\n\n{text}",
    "Extract these fields as JSON:\n{lines}\n\n{text}",
    "Fill in this JSON: {skeleton}\n\n{text}",
    "{text}\n\nReturn JSON with these fields:\n{lines}",
    "{text}\n\nFill in: {skeleton}",
    "(Return|Extract) these fields as JSON:\n{lines}\n\n(Text: |){text}",
    "Use the text to fill in {skeleton}\n\nText: {text}",
    "Complete this JSON from the text.\n{skeleton}\n{text}",
    more=wordings("fields.PROMPTS"),
)

FOLLOW_UPS = phrases(
    """And {keys}? / Now {keys}. / Now (extract|give me|get) {keys}. / Then {keys}, please. / Also {keys} as JSON. /
    And as JSON: {keys} / The same for {keys}. / Next: {keys} / And what about {keys}? / Now only {keys}. /
    (Please |)(return|write) {keys} as well. / I also need {keys}. / Another object with {keys}, please.""",
    more=wordings("fields.FOLLOW_UPS"),
)
MOST_FOLLOW_UPS = 3


def listed(draw: Draw, keys: Sequence[str]) -> str:
    """The keys as people write a list."""
    style = draw.integer(0, 9)
    if style < 4:
        return ", ".join(keys[:-1]) + " and " + keys[-1]
    if style < 8:
        return ", ".join(keys)
    return ", ".join(f'"{k}"' if style == 8 else f"`{k}`" for k in keys)


def missing_key(
    draw: Draw, kind: Kind, present: Sequence[str], asked: Sequence[str] = (), missing: Sequence[str] = ()
) -> str | None:
    """A key for which the text has no value, nor one of the same sort.

    In training, also not one of a sort that could be confused with it, unless the slot is asked for; nor one of the
    same sort as a key of `missing`.
    """
    makers = {key: maker for maker, keys in kind.fields.values() for key in keys}
    taken = {kind.fields[slot][0] for slot in present} | {{**dict(ABSENT), **makers}[key] for key in missing}
    if taken & set(PEOPLE):
        taken |= set(PEOPLE)
    own = [
        draw.choice(keys) for slot, (maker, keys) in kind.fields.items() if slot not in present and maker not in taken
    ]
    others = [key for key, maker in ABSENT if maker not in taken and key not in makers]
    if draw.split == "train":
        doubtful = {kind.fields[slot][0] for slot in present if slot not in asked}
        own = [key for key in own if not doubtful & confusable(key, makers[key])]
        others = [key for key in others if not doubtful & confusable(key, dict(ABSENT)[key])]
    pool = own if own and draw.chance(0.6) else others
    return draw.choice(pool) if pool else None


def confusable(key: str, maker: str) -> set[str]:
    """The sorts of values that could be taken for that of `key`, whose values are of the sort `maker`."""
    return {*CONFUSABLE.get(key, ()), *CONFUSABLE.get(maker, ())}


@dataclass(frozen=True)
class Text:
    """A text of one kind, and what its slots were filled with: as written there, and as a JSON value."""

    kind: Kind
    text: str
    made: Made

    def ask(self, draw: Draw) -> dict[str, Value | None]:
        """Some fields in the order in which they are asked for."""
        asked = draw.sample(list(self.made), draw.integer(2, min(5, len(self.made))))
        fields: dict[str, Value | None] = {draw.choice(self.kind.fields[s][1]): self.made[s][1] for s in asked}
        if not draw.chance(MISSING[draw.split]):
            return fields
        count = 2 if draw.split == "train" and draw.chance(TWO_MISSING) else 1
        missing: list[str] = []
        for _ in range(count):
            if key := missing_key(draw, self.kind, list(self.made), asked[: 5 - count], missing):
                missing.append(key)
        pairs = list(fields.items())[: 5 - count] if missing else list(fields.items())
        for key in missing:
            pairs.insert(draw.integer(0, len(pairs)), (key, None))
        return dict(pairs)


def draw_text(draw: Draw) -> Text:
    kind = draw.choice(KINDS)
    if draw.split == "train" and draw.chance(COMPOSED):
        template, made = compose(draw, kind)
    else:
        template = draw.choice(kind.texts.of(draw.split))
        made = {slot: MAKERS[kind.fields[slot][0]](draw) for slot in slots_in(template)}
    text = draw.expand(template, **{slot: text for slot, (text, _) in made.items()})
    return Text(kind, ARTICLE.sub("an", text), made)


def key_of(fields: Mapping[str, Value | None]) -> str:
    """The combination of values."""
    return "|".join(sorted(map(str, fields.values())))


def written(draw: Draw, key: str, manner: float) -> str:
    """A key as the user writes it, sometimes with spaces or a capital."""
    if manner < 0.07:
        return key.capitalize()
    return key.replace("_", " ") if manner < 0.15 else key


class Fields:
    name = "fields"

    def make(self, draw: Draw) -> Example:
        text = draw_text(draw)
        manner = draw.random.random()
        fields = {written(draw, key, manner): value for key, value in text.ask(draw).items()}
        template = draw.choice(PROMPTS.of(draw.split))
        skeleton = json.dumps(dict.fromkeys(fields, draw.choice((None, ""))), ensure_ascii=False)
        bullet = draw.choice(("", "- ", "* "))
        lines = "\n".join(bullet + key for key in fields)
        prompt = draw.expand(template, keys=listed(draw, list(fields)), lines=lines, skeleton=skeleton, text=text.text)
        if not template.startswith("{text}"):
            prompt = draw.casual(prompt)
        key, messages = key_of(fields), chat(prompt, json.dumps(fields, ensure_ascii=False))
        for _ in range(draw.follow_ups(MOST_FOLLOW_UPS)):
            more = {written(draw, name, manner): value for name, value in text.ask(draw).items()}
            if belongs(key_of(more), draw.split):
                asked = draw.phrase(FOLLOW_UPS, keys=listed(draw, list(more)))
                messages += chat(draw.casual(asked), json.dumps(more, ensure_ascii=False))
                fields = more
        return Example(self.name, messages, key, fields)

    def check(self, example: Example, answer: str) -> bool:
        """The same keys in the same order, with equal values of equal types."""
        try:
            pairs = json.loads(answer, object_pairs_hook=list)
        except (ValueError, RecursionError):
            return False
        return repr(pairs) == repr(list(example.expect.items()))


SKILL = Fields()
