"""Structural tags: which texts their grammars allow, as llguidance follows them, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from server.answer.writer import Body as Json
from tests.support.fake import ByteTokenizer, FakeEngine
from tests.support.harness import CHAT, CHAT_PATH, TEXT, TEXT_PATH, ask

ADDED = {"<call>": 256, "</call>": 257, "<end>": 258}  # beside the bytes; the last one ends an answer


class MarkerTokenizer(ByteTokenizer):
    """Some texts are tokens of their own, of which the first is special."""

    special = frozenset(["<call>"])

    def encode(self, text: str, *, add_special_tokens: bool = True, literal: bool = False) -> list[int]:
        return split(text)

    def token_bytes(self, token: int) -> bytes:
        return TOKENS[token]

    def added_token_id(self, text: str) -> int | None:
        return ADDED.get(text)


TOKENS = [*(bytes([byte]) for byte in range(256)), *(name.encode() for name in ADDED)]


def split(text: str) -> list[int]:
    ids: list[int] = []
    while text:
        name = next((name for name in ADDED if text.startswith(name)), text[0])
        ids += [ADDED[name]] if name in ADDED else name.encode()
        text = text[len(name) :]
    return ids


class Vocabulary:
    tokens, special_token_ids, bos_token_id, eos_token_id = TOKENS, [*ADDED.values()], None, ADDED["<end>"]

    def __call__(self, text: bytes) -> list[int]:
        return [*text]


INDEX = LLTokenizer(TokenizerWrapper(Vocabulary()), n_vocab=len(TOKENS), eos_token=[ADDED["<end>"]])


def engine() -> FakeEngine:
    found = FakeEngine()
    found.tokenizer = MarkerTokenizer()
    return found


def grammar_of(tag: Any, **body: Any) -> str:
    found = engine()
    reply = ask(found, "POST", TEXT_PATH, json=TEXT | (body or {"structured_outputs": {"structural_tag": tag}}))
    assert reply.status_code == 200, reply.text
    return str(found.submitted[0].sampling.grammar)


def allows(grammar: str, text: str) -> bool:
    matcher = LLMatcher(INDEX, grammar, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    tokens = split(text)
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()


def tag(begin: str, content: Json, end: str | list[str]) -> Json:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def triggered(**options: bool | list[str]) -> Json:
    tags = [tag("<fn=f>", INTEGER, "</fn>"), tag("<fn=g>", TEXT_VALUE, "</fn>"), tag("<call>x", ANY, "</call>")]
    return {"type": "triggered_tags", "triggers": ["<fn=", "<call>"], "tags": tags, **options}


ANY: Json = {"type": "any_text"}
INTEGER: Json = {"type": "json_schema", "json_schema": {"type": "integer"}}
TEXT_VALUE: Json = {"type": "json_schema", "json_schema": {"type": "string"}}
PAIRS: Json = {"type": "tags_with_separator", "separator": ", ", "tags": [tag("(", INTEGER, ")")]}

# Format → texts that it allows, texts that it does not.
FORMATS: dict[str, tuple[Json, Sequence[str], Sequence[str]]] = {
    "a constant": ({"type": "const_string", "value": 'a "b"'}, ['a "b"'], ["", "a"]),
    "nothing": ({"type": "const_string", "value": ""}, [""], ["a"]),
    "a regular expression": ({"type": "regex", "pattern": "[a-c]+/"}, ["abc/"], ["abc", "d/"]),
    "an empty regular expression": (
        {"type": "sequence", "elements": [{"type": "regex", "pattern": "^$"}, {"type": "const_string", "value": "x"}]},
        ["x"],
        [""],
    ),
    "a regular expression that matches what follows": (
        tag("<a>", {"type": "regex", "pattern": ".*"}, "</a>"),
        ["<a></a>", "<a>b</a>"],
        ["<a>b", "<a>b</a>c"],
    ),
    "regular expressions in a row": (
        {
            "type": "sequence",
            "elements": [
                {"type": "regex", "pattern": "[a-z]+"},
                {"type": "const_string", "value": "end"},
                {"type": "regex", "pattern": "[a-z]*"},
                INTEGER,
            ],
        },
        ["bend1", "bcendd12", "endend3"],
        ["end1", "bend", "bcd1"],
    ),
    "any text": (ANY, ["", "a\nb", "<fn=f>"], ["<call>"]),
    "any text but some": ({"type": "any_text", "excluded_str": ["bad", "worse"]}, ["ba d"], ["bad", "so worse"]),
    "any JSON": (tag("<call>", {"type": "json_schema", "json_schema": True}, "</call>"), ["<call>[1]</call>"], ["[1]"]),
    "a tag": (tag("[", ANY, "]"), ["[]", "[a b]"], ["[", "[a]b"]),
    "a tag with several ends": (tag("[", ANY, ["]", "</call>"]), ["[a]", "[a</call>"], ["[a", "[a]]"]),
    "a tag whose end has a marker after its text": (
        tag("<call>\n", ANY, "\n</call>"),
        ["<call>\n\n</call>", "<call>\na\n\nb\n</call>"],
        ["<call>\na</call>", "<call>\na\n"],
    ),
    "a tag with all kinds of ends": (
        tag("[", ANY, ["]", "</call>", "\n<call>", "</call>x"]),
        ["[a]", "[a\nb</call>", "[\n\n<call>", "[</call>x"],
        ["[a\n", "[a]]", "[<call>"],
    ),
    "an excluded text that the end continues": (
        tag("[", {"type": "any_text", "excluded_str": ["a]"]}, "]"),
        ["[b]", "[a]"],
        ["[a"],
    ),
    "a tag without an end": (tag("[", ANY, ""), ["[", "[ab"], ["ab"]),
    "a tag around a tag without an end": (tag("[", tag("(", ANY, ""), "]"), ["[(a]"], ["[(a", "[a]"]),
    "alternatives": ({"type": "or", "elements": [INTEGER, tag("[", ANY, "]")]}, ["12", "[a]"], ["12[a]", "a"]),
    "a sequence": (
        {"type": "sequence", "elements": [tag("<think>", ANY, "</think>"), triggered()]},
        ["<think>a</think>", "<think></think>b<fn=f>3</fn>c"],
        ["a", "<think>a", "<think>a</think><fn=h>"],
    ),
    "triggers": (
        triggered(),
        [
            "",
            "ab",
            '<fn=g>"a"</fn>',
            'a<call>xyz</call>b<fn=f>1</fn>c<fn=g>"a"</fn>',
            "<fn",
            "<fn=f>1</fn><fn=f>2</fn>",
        ],
        ["<fn=", "<fn=h>", "<fn=f>a</fn>", "<call>y</call>", "<call>x"],
    ),
    "triggers, one at least": (
        triggered(at_least_one=True),
        ["<call>x</call>", "<fn=f>1</fn>a<fn=f>2</fn>"],
        ["", "a", "a<fn=f>1</fn>"],
    ),
    "triggers, one at most": (
        triggered(stop_after_first=True),
        ["", "ab", "a<fn=f>1</fn>"],
        ["<fn=f>1</fn>a", "<fn=f>1</fn><fn=f>1</fn>"],
    ),
    "triggers, exactly one": (
        triggered(stop_after_first=True, at_least_one=True),
        ["<fn=f>1</fn>", "<call>xa</call>"],
        ["", "a<fn=f>1</fn>", "<fn=f>1</fn>a"],
    ),
    "triggers and forbidden texts": (triggered(excludes=["bad"]), ["ab<fn=f>1</fn>"], ["bad", "bad<fn=f>1</fn>"]),
    "triggers within a tag": (
        tag("<o>", triggered(), "</o>"),
        ["<o></o>", "<o>a<fn=f>1</fn>b</o>"],
        ["<o>", "<o></o>a"],
    ),
    "exactly one in the middle": (
        {"type": "sequence", "elements": [triggered(stop_after_first=True, at_least_one=True), INTEGER]},
        ["<fn=f>1</fn>2"],
        ["<fn=f>1</fn>", "2"],
    ),
    "a trigger with a marker after its text": (
        {"type": "triggered_tags", "triggers": ["\n<call>"], "tags": [tag("\n<call>", INTEGER, "</call>")]},
        ["a\nb", "a\n\n<call>1</call>\n"],
        ["a<call>1</call>", "\n<call>a"],
    ),
    "a trigger within a token": (
        {"type": "triggered_tags", "triggers": ["<ca"], "tags": [tag("<call>", INTEGER, "</call>")]},
        ["a<call>1</call>", "a<ca"],
        ["<call>a"],
    ),
    "a list": (PAIRS, ["", "(1)", "(1), (2)"], ["(1)(2)", "(1), "]),
    "a list, one at least": (PAIRS | {"at_least_one": True}, ["(1)", "(1), (2)"], [""]),
    "a list, one at most": (PAIRS | {"stop_after_first": True}, ["", "(1)"], ["(1), (2)"]),
    "a list within a tag": (
        tag("<call>[", PAIRS, "]</call>"),
        ["<call>[]</call>", "<call>[(1), (2)]</call>"],
        ["<call>["],
    ),
}


@pytest.mark.parametrize(("format", "allowed", "others"), FORMATS.values(), ids=FORMATS)
def test_the_grammar_of_a_format(format: Json, allowed: Sequence[str], others: Sequence[str]) -> None:
    grammar = grammar_of({"type": "structural_tag", "format": format})
    assert [text for text in allowed if not allows(grammar, text)] == []
    assert [text for text in others if allows(grammar, text)] == []


OLDER = {
    "structures": [{"begin": "<fn=f>", "schema": {"type": "integer"}, "end": "</fn>"}],
    "triggers": ["<fn="],
}


def test_the_older_form_is_free_text_with_triggers() -> None:
    grammar = grammar_of(OLDER)
    assert [allows(grammar, text) for text in ("", "a<fn=f>1</fn>b", "<fn=f>a")] == [True, True, False]
    assert grammar_of(json.dumps(OLDER)) == grammar


@pytest.mark.parametrize("path", [CHAT_PATH, TEXT_PATH])
def test_it_is_a_response_format_too(path: str) -> None:
    found = engine()
    body = (CHAT if path == CHAT_PATH else TEXT) | {"response_format": OLDER | {"type": "structural_tag"}}
    assert ask(found, "POST", path, json=body).status_code == 200
    assert found.submitted[0].sampling.grammar == grammar_of(OLDER)


@pytest.mark.parametrize(("begin", "shown"), [("<call>", True), ("</call>", False), ("<fn>", False)])
def test_special_tokens_that_a_tag_names_are_part_of_the_text(begin: str, shown: bool) -> None:
    for path, base in ((CHAT_PATH, CHAT), (TEXT_PATH, TEXT)):
        found = engine()
        body = base | {"response_format": {"type": "structural_tag", "format": tag(begin, INTEGER, "]")}}
        assert ask(found, "POST", path, json=body).status_code == 200
        assert found.submitted[0].sampling.skip_special_tokens is not shown


NO_END: Json = {"type": "sequence", "elements": [ANY, INTEGER]}

REFUSED: dict[str, tuple[Any, str]] = {
    "no object": ([], ""),
    "no JSON": ("{", ""),
    "nothing": ({}, ".format"),
    "an unknown format": ({"format": {"type": "xml"}}, ".format.type"),
    "no type": ({"format": {}}, ".format.type"),
    "an unknown field": ({"format": ANY | {"style": "xml"}}, ".format.style"),
    "a wrong type": ({"format": tag("[", ANY, "]") | {"begin": 5}}, ".format.begin"),
    "no trigger": ({"format": triggered(triggers=["a"])}, ".format.tags[0].begin"),
    "two triggers": ({"format": triggered(triggers=["<fn=", "<fn", "<call>"])}, ".format.tags[0].begin"),
    "a trigger too many": ({"format": triggered(triggers=["<fn=", "<call>", "x"])}, ".format.triggers[2]"),
    "a trigger within another": (
        {"format": triggered(triggers=["n=", "<fn=", "<call>"], tags=[tag("n=", INTEGER, "."), *triggered()["tags"]])},
        ".format.triggers[0]",
    ),
    "a regular expression": ({"format": {"type": "regex", "pattern": "a\\"}}, ".format.pattern"),
    "a style": ({"format": INTEGER | {"style": "xml"}}, ".format.style"),
    "a schema of nothing": ({"format": INTEGER | {"json_schema": False}}, ".format.json_schema"),
    "half of a character": ('{"format": {"type": "const_string", "value": "\\ud800"}}', ""),
    "a text that nests too deep": ("[" * 50_000, ""),
    "too many texts for each end": (
        {
            "format": tag(
                "",
                {"type": "or", "elements": [{"type": "regex", "pattern": f"a{i}"} for i in range(800)]},
                [f"\n{'x' * i}<call>" for i in range(100)],
            )
        },
        "",
    ),
    "an older schema": (
        OLDER | {"structures": [OLDER["structures"][0] | {"schema": {"minimum": "a"}}]},
        ".format.tags[0].content.json_schema",
    ),
    "an older trigger too many": (OLDER | {"triggers": ["<fn=", "x"]}, ".format.triggers[1]"),
    "an older tag without a trigger": (OLDER | {"triggers": ["x"]}, ".format.tags[0].begin"),
    "an endless text before another": ({"format": NO_END}, ".format.elements[0]"),
    "an endless tag in a list": (
        {"format": PAIRS | {"tags": [tag("(", triggered(), "")]}},
        ".format.tags[0].content",
    ),
    "a schema": (
        {"format": tag("[", {"type": "json_schema", "json_schema": {"type": "integer", "minimum": "a"}}, "]")},
        ".format.content.json_schema",
    ),
    "too deep a format": ({"format": json.loads('{"type":"or","elements":[' * 40 + "{}" + "]}" * 40)}, ""),
    "too long a format": ({"format": {"type": "const_string", "value": "a" * 70_000}}, ""),
}


def test_older_servers_have_a_field_for_it() -> None:
    tag = {"format": {"type": "const_string", "value": "a"}}
    assert grammar_of(None, structural_tag=json.dumps(tag)) == grammar_of(None, structural_tag=tag) == grammar_of(tag)


def test_texts_that_many_ends_may_follow_share_one_rule() -> None:
    texts = {"type": "or", "elements": [ANY] * 500}
    ends = [f"{'x' * (i % 7)}{i}" for i in range(2000)]
    assert len(grammar_of({"format": tag("", texts, ends)})) < 50_000


@pytest.mark.parametrize(("value", "param"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_supported_is_refused_by_name(value: Any, param: str) -> None:
    found = engine()
    reply = ask(found, "POST", TEXT_PATH, json=TEXT | {"structured_outputs": {"structural_tag": value}})
    wanted = f"structured_outputs.structural_tag{param}"
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, wanted), reply.text
    assert not found.submitted
