"""Operands of sums, and the worked steps of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from engine.embedded.corpus.base import Draw
from engine.embedded.corpus.sums_words import IRREGULAR


@dataclass(frozen=True)
class Term:
    """One operand of a sum with its sign ("+" or "-"): a number, or a product of two."""

    sign: str
    factors: tuple[int, ...]

    @property
    def amount(self) -> int:
        return prod(self.factors)


Problem = tuple[str, list[Term], str]  # prompt, operands, noun in the singular ("" if bare)


def places(number: int) -> list[int]:
    """The decimal places that are not zero, largest first: 305 is 300 and 5."""
    digits = str(number)
    return [int(d) * 10 ** (len(digits) - 1 - i) for i, d in enumerate(digits) if d != "0"] or [0]


def worked_product(a: int, b: int) -> str:
    single, split = (a, b) if b >= 10 or a < 10 else (b, a)
    parts = [f"{single} × {p} = {single * p}" for p in places(split)]
    if len(parts) > 1:
        parts.append(" + ".join(str(single * p) for p in places(split)) + f" = {a * b}")
    return f"{a} × {b}: {', '.join(parts)}."


def worked_step(total: int, sign: str, amount: int) -> str:
    parts, left = [], total
    for place in places(amount):
        after = left + place if sign == "+" else left - place
        parts.append(f"{left} {sign} {place} = {after}")
        left = after
    return f"{total} {sign} {amount}: {', '.join(parts)}."


def result(terms: Sequence[Term]) -> int:
    return sum(t.amount if t.sign == "+" else -t.amount for t in terms)


def worked(terms: Sequence[Term], noun: str) -> str:
    """The answer: the steps, and a last line with the result."""
    lines, total = [], 0
    for i, term in enumerate(terms):
        if len(term.factors) > 1:
            lines.append(worked_product(*term.factors))
        if i:
            lines.append(worked_step(total, term.sign, term.amount))
        total = result(terms[: i + 1])
    lines.append(f"The answer is {counted(total, noun)}.")
    return "\n".join(lines)


def key(terms: Sequence[Term]) -> str:
    return "".join(t.sign + "*".join(map(str, t.factors)) for t in terms).removeprefix("+")


def plural(noun: str) -> str:
    if noun in IRREGULAR:
        return IRREGULAR[noun]
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def counted(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else plural(noun)}" if noun else str(number)


def sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def start_value(draw: Draw, largest: int = 999) -> int:
    """A number of two, or seldom one or three digits."""
    digits = draw.choice((1, 2, 2, 2, 2, 2, 2, 3, 3))
    return draw.integer(*((2, 9), (10, 99), (100, largest))[digits - 1])


def operand(draw: Draw, most: int, least: int = 2) -> int:
    """A number of one, two or seldom three digits, at most `most`."""
    digits = draw.choice((1, 1, 1, 2, 2, 2, 2, 2, 2, 3))
    number = draw.integer(*((least, 9), (10, 99), (100, 450))[digits - 1])
    return number if number <= most else draw.integer(least, max(least, most))


def factors(draw: Draw, largest: int = 99) -> tuple[int, int]:
    number = draw.integer(2, min(largest, draw.choice((12, 12, 12, 12, 25, 25, 25, 99))))
    return draw.integer(2, 9), number


def more_terms(draw: Draw, terms: list[Term], count: int, signs: str, least: int = 2) -> list[Term]:
    """`terms` with `count` more operands; the result is never negative."""
    terms = list(terms)
    for _ in range(count):
        total = result(terms)
        sign = draw.choice(signs)
        if sign == "-" and total < least:
            if "+" not in signs:
                break
            sign = "+"
        terms.append(Term(sign, (operand(draw, total if sign == "-" else 450, least),)))
    return terms
