"""Grammars of both languages, as their documentation writes them: recognised, followed exactly, or refused by name."""

from __future__ import annotations

import re
from random import Random

import pytest
from llguidance import LLTokenizer

from engine.grammar.matching import build

BYTES = LLTokenizer("byte")


def allowed(grammar: str, texts: list[str]) -> list[str]:
    """Return those of the texts that match a grammar."""
    origin, found = build(BYTES, grammar), []
    for text in texts:
        matcher, tokens = origin.deep_copy(), list(text.encode())
        if matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting():
            found.append(text)
    return found


# grammar, texts that match, texts that do not
GBNF: dict[str, tuple[str, list[str], list[str]]] = {
    "new lines": ('root ::=\n "a" |\n "b" # or\n  | (\n "c"\n\n | "d" )\n', ["a", "b", "c", "d"], ["e"]),
    "no spaces": ('root::="a"|x("b"x)*\nx::="c"', ["a", "c", "cbc"], ["ab"]),
    "carriage returns": ('root ::= x "b"\r\n# c\r\nx ::= "a"\r\n', ["ab"], ["a"]),
    "an indent": ('\n    root ::= x "b"\n    x ::= "a"\n    ', ["ab"], ["a"]),
    "escapes": (
        r'root ::= "\x41\u00e9\U0001F600\"\\\[\]\n\r\t" [\x42-\u0044\]\-]',
        ['Aé😀"\\[]\n\r\tC', 'Aé😀"\\[]\n\r\t]', 'Aé😀"\\[]\n\r\t-'],
        ['Aé😀"\\[]\n\r\tE'],
    ),
    "a class": (r"root ::= [a-cあ-ん^\\/&~.-]+", ["abc", "かな", "^\\/&~.-"], ["d", "", "カ"]),
    "a negated class": (r'root ::= [^"\\\x00-\x1F]+', ["aé😀]"], ['"', "\n", "\\"]),
    "any character": ("root ::= .{2}", ["ab", "é\n", "😀😀"], ["a", "abc"]),
    "counts": (
        'root ::= "ab"{2} ("c" "d"?){ 1 , 2 } "e"{2,} "f"{,1} "g"{0} "h" * "i"+',
        ["ababcdceei", "ababcceeeefhhii"],
        ["ababceei" + "g", "abbceei", "ababceif", "ababcccee"],
    ),
    "nested repetitions": ('root ::= (("a"{1,2} "b")? "c"){2}', ["cc", "abcaabc"], ["c", "aaabcc"]),
    "nothing": ('root ::= | "a" ("" | ()) [b]', ["", "ab"], ["a"]),
    "names": (
        "root ::= Ab ab AB a-b a_b start 1a\n"
        'Ab ::= "1"\nab ::= "2"\nAB ::= "3"\na-b ::= "4"\na_b ::= "5"\nstart ::= "6"\n1a ::= "7"',
        ["1234567"],
        ["1224567"],
    ),
    "marks of the other language": ('# start: "x"\nroot ::= "a: b" x\nx ::= [:] "//" "#"', ["a: b://#"], ["x"]),
    "a shorter reading": ('root ::= name "b" | "a" "c" "d" | "ac" "e"\nname ::= [a-z]+', ["aab", "acd", "ace"], ["a"]),
    "recursion": ('root ::= "(" root ")" | ws\nws ::= ([ \\t] ws)?', ["((\t ))", ""], ["(()"]),
    "tokens": ('root ::= <[65]> !<[66]> "c"', ["AAc"], ["ABc", "Ac"]),
}

LARK: dict[str, tuple[str, list[str], list[str]]] = {
    "a mark before the rule": ('?start: "yes" | "no"', ["yes", "no"], ["start"]),
    "another": ('!start: _x\n_x: "a"', ["a"], [""]),
    "two": ('?!start: x\n!?x: "a"\n ?!y: "b"', ["a"], [""]),
    "terminals first": ('%ignore " "\nX: "a"\nstart: X "b" -> name', ["ab", "a b"], ["a"]),
    "directives first": ('%import common.INT -> N\nstart: N "::="', ["12::="], ["::="]),
    "options": ('%llguidance {"no_forcing": true}\nstart: "a"', ["a"], [""]),
    "repetitions": ('start: ["a"] "b" ~ 2 "c" ~ 1..2 ("d" | /e/)*', ["bbc", "abbccde"], ["bc", "bbccc"]),
    "attributes": ('start[capture]: /a+/i "b"i', ["aAB"], ["b"]),
}


@pytest.mark.parametrize(("grammar", "yes", "no"), [*GBNF.values(), *LARK.values()], ids=[*GBNF, *LARK])
def test_a_grammar_allows_the_texts_of_its_documentation_and_no_others(
    grammar: str, yes: list[str], no: list[str]
) -> None:
    assert allowed(grammar, [*yes, *no]) == yes


@pytest.mark.parametrize("grammar", ['root ::= "a"', '?start: "a"'], ids=["gbnf", "lark"])
@pytest.mark.parametrize("before", ["\ufeff", '// x ::= "\n', "# x: '\n", "\n \t\r\n", '\ufeff# a\n\n// start: "b"\n '])
def test_what_stands_before_the_first_rule_does_not_decide_the_language(before: str, grammar: str) -> None:
    assert allowed(before + grammar, ["a", "b"]) == ["a"]


@pytest.mark.parametrize(
    ("grammar", "named"),
    [
        ('root ::= "a"\nx ::= "\\d"', r"line 2 .*\"\\\\d"),
        ("root ::= 'a'", "line 1 .*'a'"),
        ('root ::= "a" ;', "line 1 .*;"),
        ('root ::= "a"?*', r"line 1 .*\?\*"),
        ("root ::= !<think>", "line 1 .*!<think>"),
        ("root ::= []", r"line 1 .*\[\]"),
        ('root ::= "a', 'line 1 .*"a'),
        ('answer ::= "a"', "rule 'root' is not defined"),
        ("root ::= other", "rule 'other' is not defined"),
        ("root ::= root", "no text"),
        ("root ::= <none>", '<none>"$'),
        ('start: X\nX.2: "a"', "priority"),
        ("start: t{x}\nt{y}: y", "templates"),
        ("%declare A\nstart: A", "declare"),
        ('%override start: "a"', "override"),
        ('%extend start: "a"', "line 1 .*%extend"),
        ("%import .own.X\nstart: X", r"\.own\.X"),
        ("start: /(?=a)a/", "look-around"),
        ("start: 'a'", "line 1 .*'a'"),
        ('root = "a"', "found '='"),
        ("", "Empty"),
        ("\ufeff# nothing", "no start rule"),
        ("{", "EOF"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_name(grammar: str, named: str) -> None:
    with pytest.raises(ValueError, match=named) as refused:
        build(BYTES, grammar)
    assert "\n" not in str(refused.value)


SIGNS = (
    *("root", "start", "x", " ::= ", ": ", '"a"', '"', "[a-b]", "[", "^", "]", "/a/", "/", "(", ")", "|", "*", "?"),
    *("+", "{2}", "{", "}", "~", "..", "1", "->", ".", "!", "%", "ignore", "json", "<[7]>", "<", "#", "\n", "\\"),
)


def outcome(grammar: str) -> str:
    try:
        build(BYTES, grammar)
    except ValueError as error:
        return str(error)
    return "compiled"


def test_any_mixture_of_signs_is_compiled_or_refused_in_a_line() -> None:
    random, found = Random(7), []
    for _ in range(120):
        head = random.choice(["root ::= ", "start: ", ""])
        found.append(outcome(head + "".join(random.choices(SIGNS, k=random.randrange(8)))))
    assert 0 < found.count("compiled") < len(found)
    assert all(re.fullmatch(r"[^\n]+", text) for text in found)
