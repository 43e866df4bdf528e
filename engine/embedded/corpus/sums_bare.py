"""Bare arithmetic: expressions, and sums said in words without a story."""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.embedded.corpus.base import Draw, Phrases
from engine.embedded.corpus.sums_steps import Problem, Term, factors, more_terms, sentence, start_value
from engine.embedded.corpus.wordings import wordings

BARE = Phrases(
    "What is {e}?",
    "{e}",
    "Compute {e}(.|)",
    "(Please |)calculate {e}(.|)",
    "What's {e}?",
    "{e} =",
    "How much is {e}?",
    "{e}=?",
    "Calculate {e}.",
    "(Please |)work out {e}.",
    "How much is {e}(|, please)?",
    "Evaluate {e}.",
    "{e}?",
    "What does {e} (give|make|equal)?",
    "Find {e}.",
    "Can you (compute|calculate|work out) {e}(| for me)?",
    "Solve {e}.",
    "What is the (result|value) of {e}?",
    "I need the (result|value) of {e}.",
    "What do (I|you|we) get for {e}?",
    "Tell me what {e} is.",
    "(Find|Give me) the (result|value) of {e}.",
    "{e} is how much?",
    "Compute: {e}",
    "Calculate: {e}",
    "What is {e} equal to?",
    "Do you know what {e} is?",
    "Could you tell me what {e} is?",
    "Work this out: {e}",
    "Math question: {e}",
    "What is {e}? Show (the|your) steps.",
    "Please compute {e}(.| step by step.)",
    "Compute {e} and show (the|your) steps.",
    "Answer this: {e}",
    "The sum is {e}. What is the result?",
    more=wordings("sums_bare.BARE"),
)

ADD = Phrases(
    "Add {a} and {b}.",
    "What is the sum of {a} and {b}?",
    "What do you get if you add {b} to {a}?",
    "What do you get (when|if) you add {a} and {b}?",
    "Find the sum of {a} and {b}.",
    "Add {b} to {a}.",
    "How much is {a} and {b} together?",
    "Sum of {a} and {b}?",
    "(Please |)add up {a} and {b}.",
    "Sum up {a} and {b}.",
    "(Please |)add {a} and {b}(| for me).",
    "Increase {a} by {b}.",
    "What number is {b} more than {a}?",
    "What is {b} more than {a}?",
    "The total of {a} and {b}?",
    more=wordings("sums_bare.ADD"),
)

SUBTRACT = Phrases(
    "Subtract {b} from {a}.",
    "What is the difference (between|of) {a} and {b}?",
    "Take {b} away from {a}.",
    "What do you get (when|if) you subtract {b} from {a}?",
    "What is left if you take {b} from {a}?",
    "Find the difference between {a} and {b}.",
    "What is {b} less than {a}?",
    "What is left when (I|you|we) take {b} away from {a}?",
    "Decrease {a} by {b}.",
    "How much is {a} less {b}?",
    "(Please |)subtract {b} from {a}(| for me).",
    "Reduce {a} by {b}.",
    "How much more is {a} than {b}?",
    "What do you get if you take away {b} from {a}?",
    "Difference between {a} and {b}?",
    more=wordings("sums_bare.SUBTRACT"),
)

MULTIPLY = Phrases(
    "Multiply {a} by {b}.",
    "What is the product of {a} and {b}?",
    "Multiply {a} and {b}.",
    "What do you get (when|if) you multiply {a} by {b}?",
    "Find the product of {a} and {b}.",
    "What is {a} multiplied by {b}?",
    "Product of {a} and {b}?",
    "(Please |)multiply {a} (by|and|with) {b}.",
    "Calculate {a} multiplied by {b}.",
    "How much is {a} multiplied by {b}?",
    "What is {a} multiplied (by|with) {b}?",
    "Compute the product of {a} and {b}.",
    more=wordings("sums_bare.MULTIPLY"),
)

FROM = Phrases(
    "start with {n}",
    "take {n}",
    "begin with {n}",
    "start (at|from) {n}",
    "take the number {n}",
    "I start with {n}",
    "I have the number {n}",
    "let us start at {n}",
    more=wordings("sums_bare.FROM"),
)
PLUS = Phrases(
    "add {n}",
    "then add {n}",
    "plus {n}",
    "(now |)add {n}",
    "add {n} to it",
    "increase it by {n}",
    "add {n} more",
    "put {n} on top",
    more=wordings("sums_bare.PLUS"),
)
MINUS = Phrases(
    "subtract {n}",
    "then subtract {n}",
    "take away {n}",
    "(now |)subtract {n}",
    "minus {n}",
    "reduce it by {n}",
    "take off {n}",
    "deduct {n}",
    more=wordings("sums_bare.MINUS"),
)
END = Phrases(
    "What is the result?",
    "What do you get?",
    "",
    "What do (I|you|we) get?",
    "What is it now?",
    "Result?",
    "Where do you end?",
    more=wordings("sums_bare.END"),
)

SIGNS = ({"+": " + ", "-": " - "}, {"+": " plus ", "-": " minus "}, {"+": "+", "-": "-"})
TIMES = ((" * ", " × ", " x "), (" times ",), ("*", "×", "x"))


def expression(draw: Draw, terms: Sequence[Term]) -> str:
    style = draw.choice((0, 0, 0, 0, 1, 1, 2))
    times = draw.choice(TIMES[style])
    parts = [SIGNS[style][t.sign] + times.join(map(str, t.factors)) for t in terms]
    return "".join(parts).removeprefix(SIGNS[style]["+"])


def bare_terms(draw: Draw) -> list[Term]:
    if draw.chance(0.3):
        pair = factors(draw)
        first = Term("+", pair if draw.chance(0.7) else pair[::-1])
        if draw.chance(0.7):
            return [first]
        if draw.chance(0.4):
            return [Term("+", (start_value(draw),)), first]
        return more_terms(draw, [first], 1, "+-", least=1)
    start = 0 if draw.chance(0.01) else start_value(draw)
    return more_terms(draw, [Term("+", (start,))], draw.choice((1, 1, 1, 2, 2, 3, 4)), "++-", least=1)


def bare(draw: Draw) -> Problem:
    terms = bare_terms(draw)
    text = draw.phrase(BARE, e=expression(draw, terms))
    return draw.casual(sentence(text)), terms, ""


def bare_in_words(draw: Draw) -> Problem:
    """Add a and b; subtract b from a; multiply a by b."""
    operation = draw.integer(0, 2)
    if operation == 2:
        pair = factors(draw)
        terms = [Term("+", pair if draw.chance(0.5) else pair[::-1])]
        a, b = terms[0].factors
    else:
        terms = more_terms(draw, [Term("+", (start_value(draw),))], 1, "+-"[operation], least=1)
        a, b = (t.amount for t in terms)
    text = draw.phrase((ADD, SUBTRACT, MULTIPLY)[operation], a=a, b=b)
    return draw.casual(text), terms, ""


def bare_chain(draw: Draw) -> Problem:
    """Start with a, add b, subtract c."""
    terms = more_terms(draw, [Term("+", (start_value(draw),))], draw.integer(1, 4), "+-", least=1)
    parts = [draw.phrase(FROM, n=terms[0].amount)]
    parts += [draw.phrase(PLUS if t.sign == "+" else MINUS, n=t.amount) for t in terms[1:]]
    text = sentence(draw.choice((", ", ", ", ". ")).join(parts)) + ". " + draw.phrase(END)
    return draw.casual(re.sub(r"\. [a-z]", lambda m: m.group().upper(), text).strip()), terms, ""
