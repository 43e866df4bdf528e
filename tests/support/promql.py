"""The selectors of a PromQL expression, as far as our rules need them."""

from __future__ import annotations

import re

_STRING = r'"(?:[^"\\]|\\.)*"'
_GROUPING = re.compile(r"\b(by|on|group_left|group_right)\s*\(([^)]*)\)")
_NAME = re.compile(rf"{_STRING}|(?<![\w.$])([a-zA-Z_:][\w:]*)(\{{(?:[^{{}}\"]|{_STRING})*\}})?(\s*\()?")
_WORDS = frozenset({"and", "or", "unless", "bool", "offset"})


def _operand(expression: str, start: int) -> range:
    """Position behind the parenthesis that opens at `start`. Strings must not contain parentheses."""
    start = expression.index("(", start)
    depth = 0
    for place in range(start, len(expression)):
        depth += {"(": 1, ")": -1}.get(expression[place], 0)
        if depth == 0:
            return range(start, place)
    raise ValueError(f"a parenthesis stays open: {expression}")


def selectors(expression: str, *more: str) -> list[str]:
    """The series that an expression reads, with the labels that it groups and matches by.

    `more` labels are added where no aggregation has dropped them.
    """
    blank = re.compile(r"\[[^\]]*\]").sub(lambda found: " " * len(found[0]), expression)
    of_operand: list[tuple[range, list[str]]] = []
    of_all: list[str] = []
    for found in _GROUPING.finditer(blank):
        labels = re.findall(r"\w+", found[2])
        if found[1] == "by":
            of_operand.append((_operand(blank, found.end()), labels))
        else:
            of_all += labels
    blank = _GROUPING.sub(lambda found: " " * len(found[0]), blank)
    asked = []
    for found in _NAME.finditer(blank):
        name, matchers, call = found.groups()
        if name is None or call or name in _WORDS:
            continue
        around = [labels for place, labels in of_operand if found.start() in place]
        required = {*of_all, *(label for labels in around for label in labels)}
        required |= {label for label in more if all(label in labels for labels in around)}
        parts = [*filter(None, [(matchers or "{}")[1:-1]]), *(f'{label}!=""' for label in sorted(required))]
        asked.append(f"{name}{{{', '.join(parts)}}}")
    return asked
