"""Regular expressions of JSON schemas, which are ECMAScript's, in the syntax that llguidance reads: Rust's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

# Escapes that llguidance lacks.
_ESCAPES = re.compile(r"\\u(?:[dD][89a-fA-F]|\{0*[dD][89a-fA-F]..\})|\\(?![aAdDfnpPrsStuUvwWxz])[A-Za-z0-9]")
# Escapes, classes, repetitions, the starts of groups, and single characters. An unfinished class ends with the pattern;
# otherwise each "[" would be a reason to search the rest for a "]".
_UNITS = re.compile(
    r"\\[pPu]\{[\w=]*\}|\\.|\[(?:\\.|[^\]\\]|\\\Z)*(?:\]|\Z)|\{\d+(?:,\d*)?\}|\((?:\?(?::|P?<\w+>))?|.", re.DOTALL
)
_IN_CLASSES = re.compile(r"\\.|\[|&&|--|~~", re.DOTALL)

# Calendar dates of the years 1 to 9999, and times of a day, which llguidance's own formats do not check.
_LEAP_DAYS = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][48]|[13579][26]|[2468]0)00)-02-29"
_DATE = (
    rf"(?:{_LEAP_DAYS}|(?:\d{{3}}[1-9]|\d\d[1-9]\d|\d[1-9]\d\d|[1-9]\d{{3}})-"
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8])))"
)
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
FORMATS = {"date": f"^{_DATE}$", "time": f"^{_TIME}$", "date-time": f"^{_DATE}T{_TIME}$"}


def converted(pattern: str) -> str | None:
    """Return a pattern in Rust's syntax, or None if llguidance cannot follow it."""
    if _ESCAPES.search(pattern.replace(r"\\", "")):
        return None
    units = _UNITS.findall(pattern)
    if "(" in units and any(map(_is_special, pairwise([*units, ""]))):
        return None
    if not _anchored(units, "^", "(", ")") or not _anchored(units[::-1], "$", ")", "("):
        return None
    return "".join(map(_unit, units))


def _is_special(units: tuple[str, str]) -> bool:
    """Whether a group is none of those that `_UNITS` knows: a look-around, a reference, or one with flags."""
    return units == ("(", "?")


def _anchored(units: Sequence[str], anchor: str, opening: str, closing: str) -> bool:
    """Whether an anchor occurs only where nothing but the starts of groups comes before it."""
    first = True  # whether nothing has come in this alternative, nor before its group
    groups = [True]  # the same for the starts of the groups that are open
    for unit in units:
        if unit.startswith(opening):
            groups.append(first)
        elif unit.startswith(closing):
            if len(groups) > 1:
                groups.pop()
            first = False
        elif unit == "|":
            first = groups[-1]
        elif unit == anchor and not first:
            return False
        elif unit not in ("^", "$"):
            first = False
    return True


def _unit(unit: str) -> str:
    if unit in ("{", "}"):
        return f"\\{unit}"  # no repetition
    if unit.startswith("\\"):
        return _escape(unit)
    if unit in ("[]", "[^]"):  # no character, and any
        return r"[^\s\S]" if unit == "[]" else r"[\s\S]"
    if unit.startswith("[") and len(unit) > 1:
        return unit[0] + _IN_CLASSES.sub(_in_class, unit[1:])
    return unit


def _escape(unit: str) -> str:
    """Return an escape without its backslash where Rust has no such escape, or one for the borders of words."""
    return unit[1] if unit[1:] in ("<", ">") or not unit[1:].isascii() else unit


def _in_class(found: re.Match[str]) -> str:
    """Escape what has a meaning in Rust's classes only: classes within classes, and operations on sets."""
    text = found[0]
    return _escape(text) if text.startswith("\\") else f"\\{text}" if len(text) == 1 else f"{text[0]}\\{text[1]}"
