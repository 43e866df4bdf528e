"""What a task is: a function to write, ways to describe it, and calls that try it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.embedded.corpus.base import Draw, Phrases

Calls = Sequence[Sequence[Any]]
Constant = int | str

RETURNING = ("return the", "(find|get) the", "give (me |back |)the", "(output|produce) the", "determine the")
COMPUTING = (
    "return the",
    "(compute|calculate) the",
    "(find|get) the",
    "give (me |back |)the",
    "(determine|work out) the",
)
COMPUTED = re.compile(
    "sum|total|average|mean|product|number|count|median|length|difference|result|spread|running|cumul"
)
CHECKING = (
    "check (if|whether)",
    "(tell|say) (if|whether)",
    "return True if",
    "test (if|whether)",
    "find out (if|whether)",
    "(decide|determine) (if|whether)",
)


@dataclass(frozen=True)
class Task:
    """`names`: the default name and others that users like. `body` has CONST where the constant of the request goes.

    `phrases` are infinitives: "add two numbers".
    """

    names: tuple[str, ...]
    parameters: tuple[str, ...]
    body: str
    calls: Calls | Callable[[Any], Calls]
    phrases: Phrases
    constant: Callable[[Draw], Constant] | None
    kind: str

    def source(self, name: str, parameters: Sequence[str], constant: Constant | None) -> str:
        renamed = dict(zip(self.parameters, parameters, strict=True))
        body = self.body.replace("CONST", repr(constant).replace("'", '"'))
        if renamed != dict(zip(self.parameters, self.parameters, strict=True)):
            pattern = rf"(?<![.\"])\b({'|'.join(renamed)})\b"
            body = re.sub(pattern, lambda found: renamed[found.group(1)], body)
        return f"def {name}({', '.join(parameters)}):\n" + "\n".join("    " + line for line in body.split("\n"))

    def tried(self, constant: Constant | None) -> list[list[Any]]:
        calls = self.calls(constant) if callable(self.calls) else self.calls
        return [list(call) for call in calls]


def task(
    kind: str,
    signature: str,
    body: str,
    calls: Calls | Callable[[Any], Calls],
    *,
    the: str = "",
    whether: str = "",
    do: str = "",
    constant: Callable[[Draw], Constant] | None = None,
) -> Task:
    """`signature`: "name|other name: parameters". `the` continues "return the", `whether` "check whether"."""
    names, parameters = signature.split(": ")
    templates = [*_split(do)]
    for noun in _split(the):
        computed = kind == "number" or COMPUTED.match(noun)
        templates += [f"{verb} {noun}" for verb in (COMPUTING if computed else RETURNING)]
    templates += [f"{verb} {clause}" for clause in _split(whether) for verb in CHECKING]
    return Task(tuple(names.split("|")), tuple(parameters.split()), body, calls, Phrases(*templates), constant, kind)


def _split(text: str) -> list[str]:
    return " ".join(text.split()).split(" / ") if text else []


def between(low: int, high: int) -> Callable[[Draw], Constant]:
    return lambda draw: draw.integer(low, high)


def one_of(*values: str) -> Callable[[Draw], Constant]:
    return lambda draw: draw.choice(values)
