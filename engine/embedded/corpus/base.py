"""What every skill of the corpus is made of: drawn values, phrasings and examples.

All text is made by the program from a seed. Two splits are kept apart in two ways: each pool of phrasings gives every
seventh one to the evaluation alone (`Phrases`), and of all combinations of values (`Example.key`) one in eight belongs
to the evaluation alone (`belongs`).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, Protocol, TypeVar

from engine.embedded.corpus.names import FIRST_NAMES, SYLLABLES

T = TypeVar("T")
Split = Literal["train", "held_out"]
Message = dict[str, Any]

HELD_OUT_PHRASES = 7  # one phrasing in seven
HELD_OUT_KEYS = 8  # one combination in eight


@dataclass(frozen=True)
class Example:
    """One conversation, ended by the assistant's reference answer.

    messages  in OpenAI's form; every assistant message in it is trained on.
    key       the combination of values that it is about ("" if it is not held out by combination).
    expect    what the skill's `check` needs to judge an answer.
    tools     JSON schemas in OpenAI's form, given to the chat template.
    part      of the skill, where scores are told apart by it.
    """

    skill: str
    messages: list[Message]
    key: str = ""
    expect: Any = None
    tools: list[dict[str, Any]] = field(default_factory=list)
    part: str = ""

    @property
    def prompt(self) -> list[Message]:
        return self.messages[:-1]

    @property
    def answer(self) -> str:
        return str(self.messages[-1]["content"])


class Skill(Protocol):
    """One module of the corpus. `make` may be called again with the same draw until the key is of its split."""

    name: str

    def make(self, draw: Draw) -> Example: ...

    def check(self, example: Example, answer: str) -> bool:
        """Whether the text `answer` is right for `example`; the reference answer always is."""
        ...


class Phrases:
    """A pool of templates; see `expand` for their syntax. At least seven, so that one is held out.

    What is `more` is for training alone, so that a pool can grow without a change of what the evaluation asks.
    """

    def __init__(self, *templates: str, more: Sequence[str] = ()) -> None:
        if len(templates) < HELD_OUT_PHRASES:
            raise ValueError(f"a pool needs at least {HELD_OUT_PHRASES} phrasings, got {len(templates)}")
        self.held_out = templates[3::HELD_OUT_PHRASES]
        self.train = (*(t for t in templates if t not in self.held_out), *more)

    def of(self, split: Split) -> Sequence[str]:
        return self.train if split == "train" else self.held_out


def phrases(text: str, *, more: Sequence[str] = (), **slots: str) -> Phrases:
    """Templates separated by " / ", with the slots already filled that are the same for the whole pool; `more` are for
    training alone."""
    text = " ".join(text.split())
    for name, value in slots.items():
        text = text.replace("{" + name + "}", value)
    return Phrases(*text.split(" / "), more=more)


class Draw:
    """A seeded source of values and phrasings for one example."""

    def __init__(self, seed: int, split: Split = "train") -> None:
        self.random = Random(seed)
        self.split: Split = split

    def choice(self, items: Sequence[T]) -> T:
        return items[self.random.randrange(len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """`count` different items, in random order."""
        return self.random.sample(items, count)

    def integer(self, low: int, high: int) -> int:
        """Uniform in [low, high]."""
        return self.random.randint(low, high)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def phrase(self, pool: Phrases, **slots: object) -> str:
        """A phrasing of this draw's split, expanded."""
        return self.expand(self.choice(pool.of(self.split)), **slots)

    def expand(self, template: str, **slots: object) -> str:
        """`(a|b|)` becomes one of its alternatives (they nest), then `{name}` becomes the slot's value.

        Values are not expanded. A literal parenthesis or brace belongs into a value.
        """
        return fill(self._alternatives(template), slots)

    def _alternatives(self, template: str) -> str:
        while (close := template.find(")")) >= 0:
            start = template.rindex("(", 0, close)
            template = template[:start] + self.choice(template[start + 1 : close].split("|")) + template[close + 1 :]
        return template

    def casual(self, text: str) -> str:
        """`text` as people type: sometimes without capital, full stop or question mark, sometimes with a greeting.

        Only for texts that begin with a word of the phrasing and whose last character carries no meaning.
        """
        if self.chance(0.12) and not text[1:2].isupper():
            text = text[0].lower() + text[1:]
        if self.chance(0.12):
            text = text.rstrip(".?!")
        if self.chance(0.06):
            text = self.choice(("Hi! ", "Hello, ", "Hey, ", "Hi there. ", "OK, ", "Now, ", "So, ")) + text
        if self.chance(0.05):
            text += self.choice((" Thanks!", " Please.", " Thank you.", " Thanks in advance."))
        return text

    def follow_ups(self, most: int) -> int:
        """How many more questions about the same text a conversation goes on with. None in the evaluation.

        What was read once is worth several answers: most of what a training run reads is prompts.
        """
        return self.integer(0, most) if self.split == "train" and self.chance(0.7) else 0

    def first_name(self) -> str:
        """A real first name, or (one in three) one made of syllables."""
        return self.choice(FIRST_NAMES) if self.chance(0.67) else self.made_up_word(2).capitalize()

    def surname(self) -> str:
        return self.made_up_word(self.integer(2, 3)).capitalize()

    def made_up_word(self, syllables: int) -> str:
        return "".join(self.choice(SYLLABLES) for _ in range(syllables))


def fill(template: str, slots: Mapping[str, object]) -> str:
    """`template` with its `{name}`s replaced, each once; a missing slot is a KeyError."""
    parts = template.split("{")
    return parts[0] + "".join(str(slots[name]) + rest for name, _, rest in (part.partition("}") for part in parts[1:]))


def belongs(key: str, split: Split) -> bool:
    """Whether examples about the combination `key` are of `split`; the empty key is of both."""
    return not key or (zlib.crc32(key.encode()) % HELD_OUT_KEYS == 0) == (split == "held_out")


def chat(user: str, answer: str) -> list[Message]:
    """One question, one answer."""
    return [{"role": "user", "content": user}, {"role": "assistant", "content": answer}]
