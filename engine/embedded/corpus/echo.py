"""Repeats what it is told, letter by letter: words nobody has seen, numbers, codes; on one line, in lines, numbered.

Every other skill copies in passing. Here copying is all there is to learn, so it is learned first.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence

from engine.embedded.corpus.base import Draw, Example, chat, phrases
from engine.embedded.corpus.wordings import wordings

CODE_LETTERS = string.ascii_letters + string.digits + string.digits
MARKS = ("", "", "", "", "", ",", ".", "!", "?", ";", ":")


LINE = phrases(
    """Repeat after me: {text} / Repeat (this|the following): {text} / Say (exactly this|this): {text} /
    (Please repeat|Repeat): {text} / Echo this: {text} / Copy this (word for word|exactly): {text} /
    Say (the following|these words): {text} / Write this (again|down): {text} / Repeat (exactly|word for word): {text} /
    Can you say this? {text} / Answer with exactly this: {text} / Give this back to me: {text} /
    Reply with this text: {text} / Type this (for me|again): {text} / Copy: {text} / Say it as I do: {text} /
    Output (exactly this|this text): {text} / Repeat this (text|line) unchanged: {text} / Echo: {text} /
    Your answer must be: {text} / Say after me: {text}""",
    more=wordings("echo.LINE"),
)
LINES = phrases(
    """Write these one per line: {text} / One per line, please: {text} / Put each on its own line: {text} /
    List these, one (per|on each) line: {text} / Write each of these on a new line: {text} /
    Give me these in lines: {text} / Put these on lines of their own: {text} / Each on a line: {text} /
    Break this into lines: {text} / One line each: {text} / Write them one below the other: {text} /
    Make a list with one item per line: {text} / Repeat these, a line each: {text} /
    A line for each of these: {text}""",
    more=wordings("echo.LINES"),
)
NUMBERED = phrases(
    """Number these: {text} / Make a numbered list of these: {text} / Write these as a numbered list: {text} /
    Give each of these a number: {text} / A numbered list, please: {text} / List these with numbers: {text} /
    Turn this into a numbered list: {text} / Number the following: {text} / Put numbers before these: {text} /
    Write these down, numbered: {text} / Repeat these as a numbered list: {text} / Numbered, please: {text} /
    Count these through: {text} / Make this a list with numbers: {text}""",
    more=wordings("echo.NUMBERED"),
)


def code(draw: Draw) -> str:
    return "".join(draw.choice(CODE_LETTERS) for _ in range(draw.integer(2, 8)))


def number(draw: Draw) -> str:
    return str(draw.integer(0, 10 ** draw.integer(1, 7)))


ITEMS: Sequence[Callable[[Draw], str]] = (
    lambda draw: draw.made_up_word(draw.integer(1, 4)),
    lambda draw: draw.made_up_word(draw.integer(1, 3)).capitalize(),
    Draw.first_name,
    code,
    number,
)


def items(draw: Draw, count: int) -> list[str]:
    """`count` items, of one kind or of all."""
    kinds = ITEMS if draw.chance(0.6) else (draw.choice(ITEMS),)
    return [draw.choice(kinds)(draw) for _ in range(count)]


class Echo:
    name = "echo"

    def make(self, draw: Draw) -> Example:
        form = draw.random.choices((LINE, LINES, NUMBERED), (6, 1, 1))[0]
        if form is LINE:
            answer = text = " ".join(i + draw.choice(MARKS) for i in items(draw, draw.integer(1, 14)))
        else:
            listed = items(draw, draw.integer(2, 8))
            text = ", ".join(listed)
            answer = "\n".join(listed if form is LINES else (f"{n}. {item}" for n, item in enumerate(listed, 1)))
        return Example(self.name, chat(draw.phrase(form, text=text), answer), text)

    def check(self, example: Example, answer: str) -> bool:
        return answer.strip() == example.answer.strip()


SKILL = Echo()
