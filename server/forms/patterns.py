"""Regular expressions of JSON schemas, which are ECMAScript's, in the syntax that llguidance reads: Rust's."""

import re
from collections.abc import Sequence

# Escapes that llguidance lacks: borders of words, references to groups, and halves of surrogate pairs.
_ESCAPES = re.compile(r"\\u(?:[dD][89a-fA-F]|\{0*[dD][89a-fA-F]..\})|\\(?![aAdDfnpPrsStuUvwWxz])[A-Za-z0-9]")
# Escapes, classes, repetitions, starts of groups, and single characters. An unfinished class ends with the pattern:
# otherwise the rest would be searched for a "]" after each "[".
_UNITS = re.compile(
    r"\\[pPu]\{[\w=]*\}|\\.|\[(?:\\.|[^\]\\]|\\\Z)*(?:\]|\Z)|\{\d+(?:,\d*)?\}|\((?:\?(?::|P?<\w+>|))?|.", re.DOTALL
)
_IN_CLASSES = re.compile(r"\\.|\[|&&|--|~~", re.DOTALL)


def converted(pattern: str) -> str | None:
    """Return a pattern in Rust's syntax, or None if llguidance cannot follow it."""
    units = _UNITS.findall(pattern)
    if _ESCAPES.search(pattern.replace(r"\\", "")) or "(?" in units:  # "(?" begins a look-around, or a group with flags
        return None
    if not _anchored(units, "^", "(", ")") or not _anchored(units[::-1], "$", ")", "("):
        return None
    return "".join(map(_unit, units))


def _anchored(units: Sequence[str], anchor: str, opening: str, closing: str) -> bool:
    """Whether an anchor occurs only where nothing but the starts of groups comes before it."""
    first = True  # whether this alternative is empty so far, and nothing precedes its group
    groups = [True]  # the value of `first` at the start of each open group
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
        return f"\\{unit}"  # a brace that is no repetition stands for itself
    if unit in (r"\<", r"\>"):
        return unit[1]  # in Rust, these match the borders of words
    if unit in ("[]", "[^]"):  # these match no character, and any
        return r"[^\s\S]" if unit == "[]" else r"[\s\S]"
    if unit.startswith("[") and len(unit) > 1:
        return unit[0] + _IN_CLASSES.sub(_in_class, unit[1:])
    return unit


def _in_class(found: re.Match[str]) -> str:
    """Escape what has a meaning in Rust's classes only: classes within classes, and operations on sets."""
    text = found[0]
    if text.startswith("\\"):
        return _unit(text)
    return f"{text[:-1]}\\{text[-1]}"
