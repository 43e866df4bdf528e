"""Convert GBNF, the grammars of llama.cpp, to Lark as llguidance reads it."""

import re

_CHARACTER = r"\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\[nrt]|\\[!-/:-@\[-`{-~]|[^\\]"
_ESCAPES = {r"\n": "\n", r"\r": "\r", r"\t": "\t"}  # before other characters, a backslash means nothing
_RANGE = re.compile(rf"({_CHARACTER})(?:-({_CHARACTER}))?")
_REPEAT = r"(?:[*+?]|\{\s*(?:\d+\s*(?:,\s*\d*\s*)?|,\s*\d+\s*)\})"
_PART = re.compile(
    rf"""(?P<blank>\s+|(?:\#|//)[^\n]*)
    | (?P<rule>[\w-]+)\s*::=
    | (?P<name>[\w-]+)
    | "(?P<literal>(?:(?!")(?:{_CHARACTER}))*)"
    | \[(?P<negated>\^?+)(?P<ranges>(?:(?!\])(?:{_CHARACTER}))+)\]
    | (?P<sign>[.()|]|!?<\[\d+\]>|<[^<>\s]+>|{_REPEAT}(?!\s*{_REPEAT}))
    | (?P<other>.)""",
    re.VERBOSE | re.ASCII,
)
_SIGNS = {".": "/(?s:.)/", "{0}": "~0", "{0,0}": "~0"}  # signs that Lark writes otherwise
_BEGINNING = re.compile(r"(?:\s|(?:#|//)[^\n]*+)*+[\w-]+\s*::=", re.ASCII)


def to_lark(grammar: str) -> str:
    """Return a grammar in Lark; it is GBNF if `::=` defines its first rule. Raises ValueError for invalid GBNF.

    Every character becomes a lexeme: of those that match, llguidance's lexer would take only the longest.
    """
    if not _BEGINNING.match(grammar):
        return grammar
    names = {"root": "start"}
    defined: set[str] = set()

    def convert(found: re.Match[str]) -> str:
        kind = str(found.lastgroup)
        part = found[kind]
        match kind:
            case "blank":
                return " "
            case "rule" | "name":
                name = names.setdefault(part, f"r{len(names)}_{part.lower()}")  # a capital would make it a lexeme
                if kind == "name":
                    return name
                defined.add(part)
                return f"\n{name}:"
            case "literal":
                return f"({' '.join(f'/{_code(each)}/' for each in re.findall(_CHARACTER, part))})"
            case "ranges":
                ranges = [_code(first) + (last and f"-{_code(last)}") for first, last in _RANGE.findall(part)]
                return f"/[{found['negated']}{''.join(ranges)}]/"
            case "sign":
                sign = "".join(part.split()).replace("!<[", "<[^")
                return _SIGNS.get(sign, sign)
        line = grammar.count("\n", 0, found.start()) + 1
        raise ValueError(f"line {line} has no valid GBNF from {grammar[found.start() :][:20]!r} on")

    converted = _PART.sub(convert, grammar)
    if missing := names.keys() - defined:
        raise ValueError(f"the rule '{min(missing)}' is not defined")
    return converted


def _code(character: str) -> str:
    """Return a character, escaped or not, by its number, as a regular expression has it."""
    code = int(character[2:], 16) if len(character) > 2 else ord(_ESCAPES.get(character, character[-1]))
    return rf"\x{{{code:x}}}"
