"""Requests that are cheap to send and dear to serve."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
_PRIMES = (9973, 9967, 9949)


@dataclass(frozen=True, slots=True)
class Bomb:
    """Bodies that are sent at the same time, each on a connection of its own."""

    name: str
    bodies: list[bytes]
    path: str = CHAT
    idle: int = 0  # further connections, which send this much of a request and then nothing
    sent: bytes = b""
    slow: bool = False  # read the replies at 1 kB/s
    settle: float = 0.0  # seconds before the probe, in which the answers are computed


def _chat(text: str = "Answer.", **fields: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": text}], "max_tokens": 64, **fields}).encode()


def _text(prompt: Any, **fields: Any) -> bytes:
    return json.dumps({"prompt": prompt, "max_tokens": 16, **fields}).encode()


def _schema(schema: object) -> bytes:
    return _chat(response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": schema}})


def _form(**form: object) -> bytes:
    return _chat(structured_outputs=form)


def _tool(schema: object) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}},
    }


def _links(count: int) -> dict[str, Any]:
    chain = {f"d{i}": {"type": "array", "items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(count)}
    return {"$ref": "#/$defs/d0", "$defs": chain | {f"d{count}": {"type": "string"}}}


def _words(count: int) -> str:
    draw = random.Random(count)
    return " ".join(draw.choice(("river", "stone", "light", "seven", "cloud", "paper")) for _ in range(count))


def schemas() -> dict[str, Any]:
    """Hostile JSON schemas, each of another kind."""
    lowest = -(2**63)
    every = {f"p{i}": {"type": "integer"} for i in range(2300)}
    return {
        "least common multiple": {"allOf": [{"type": "integer", "multipleOf": n} for n in _PRIMES]},
        "large divisor": {"type": "integer", "multipleOf": 1_000_003},
        "long constant": {"const": "x" * 60_000},
        "2,300 properties": {"type": "object", "properties": every},
        "bound that is text": {"type": "integer", "minimum": "é" * 60},
        "lowest integer": {"type": "object", "properties": {"a": {"enum": [{"b": [lowest]}]}}},
        "equal lowest bounds": {"type": "integer", "minimum": lowest, "maximum": lowest},
        "1,000 references": _links(1000),
        "recursion": {"anyOf": [{"$ref": "#"}, {"type": "array", "items": {"$ref": "#"}}]},
        "nested quantifiers": {"type": "string", "pattern": "^(((a{1,60}){1,60}){1,60})$"},
        "exponential states": {"type": "string", "pattern": "[ab]*a[ab]{40}"},
        "intersections": {"allOf": [{"type": "string", "pattern": f".*{c}.{{9}}"} for c in "abcdefghijkl"]},
        "many items": {"type": "array", "items": {"type": "integer"}, "minItems": 1_000_000},
        "5,000 constants": {"enum": [f"value {i}" for i in range(5000)]},
        "unions of objects": {
            "anyOf": [
                {"type": "object", "properties": {f"k{i}": {"type": "string", "pattern": f"(a|b){{{i}}}"}}}
                for i in range(400)
            ]
        },
    }


def forms() -> dict[str, dict[str, Any]]:
    """Other hostile forms of answers, which no rewriting of schemas makes cheaper."""
    rules = [f'r{i}: "a" r{i + 1} | "b" r{i + 1} | r{i + 1}' for i in range(1500)]
    tags = [_tag(i, {"type": "regex", "pattern": "[a-z]+"}) for i in range(600)]
    nested: dict[str, Any] = {"type": "any_text"}
    for i in range(9):
        nested = {"type": "or", "elements": [nested, _tag(i, nested)]}
    return {
        "300 alternatives": {"regex": "|".join(f".{{{i}}}a.{{{i}}}" for i in range(1, 300))},
        "classes of letters": {"regex": r"(\p{L}{1,500}\p{N}{1,500}){1,100}"},
        "ambiguous": {"grammar": 'start: s\ns: s s s | s s | "a" | ""'},
        "1,500 rules": {"grammar": "\n".join(["start: r0", *rules, 'r1500: "c"'])},
        "exponential terminal": {
            "grammar": "\n".join(["start: T0", *(f"T{i}: T{i + 1} T{i + 1}" for i in range(40)), 'T40: "x"'])
        },
        "600 tags": {"structural_tag": {"format": {"type": "triggered_tags", "triggers": ["<f"], "tags": tags}}},
        "tags that double": {"structural_tag": {"format": nested}},
    }


def _tag(number: int, content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tag", "begin": f"<f{number}>", "content": content, "end": "</f>"}


def bombs(context: int) -> Iterator[Bomb]:
    """Yield hostile requests to a model with this context length."""
    yield from _grammars()
    yield from _bodies()
    yield from _generations(min(8000, context - 200))
    yield from _connections()


def _grammars() -> Iterator[Bomb]:
    for name, schema in schemas().items():
        yield Bomb(f"schema: {name}", [_schema(schema)])
    for name, form in forms().items():
        yield Bomb(f"form: {name}", [_form(**form)])
    hostile = _tool({"allOf": [{"type": "integer", "multipleOf": n} for n in _PRIMES]})
    yield Bomb("tool: least common multiple", [_chat(tools=[hostile], tool_choice="required")])
    yield Bomb("tools: 128 of 2 kB", [_chat(tools=[_tool({"const": "x" * 2000})] * 128, tool_choice="required")])
    yield Bomb(
        "4 schemas at once", [_schema({"type": "integer", "multipleOf": 1_000_003 + i}) for i in (0, 30, 36, 78)]
    )

    yield Bomb("12 long constants at once", [_schema({"const": "xy"[i % 2] * 60_000 + str(i)}) for i in range(12)])


def _bodies() -> Iterator[Bomb]:
    million = b'{"messages":[{"role":"user","content":[%s]}]}'
    part = b'{"type":"text","text":"a"}'
    yield Bomb("body: 5 million lists", [b'{"messages":[' + b"[]," * 5_300_000 + b"[]]}"])
    yield Bomb("body: 500,000 text parts", [million % b",".join([part] * 500_000)])
    yield Bomb("body: 60,000 text parts", [million % b",".join([part] * 60_000)])
    yield Bomb("body: 200,000 levels", [b"[" * 200_000])
    yield Bomb("body: 15 MB of text", [_chat("x" * 15_000_000)])
    yield Bomb(
        "body: 15 MB of escapes", [b'{"messages":[{"role":"user","content":"' + b"\\u0041" * 2_500_000 + b'"}]}']
    )
    yield Bomb("body: 15 MB of quotes", [b'{"a":"' + b'\\"' * 7_500_000 + b'"}'])
    yield Bomb("body: 15 MB of spaces", [b" " * 15_000_000 + b"{}"])
    yield Bomb("body: 1 MB number", [b'{"max_tokens":' + b"9" * 1_000_000 + b"}"])
    yield Bomb("body: 90,000 fields", [json.dumps({f"field{i}": i for i in range(90_000)}).encode()])
    yield Bomb("body: 8 of 15 MB at once", [_chat("x" * 15_000_000)] * 8)
    yield Bomb(
        "chat: 16,000 messages", [json.dumps({"messages": [{"role": "user", "content": "x"}] * 16_000}).encode()]
    )
    yield Bomb("chat: 100,000 forged markers", [_chat("<|im_end|>" * 100_000)])
    yield Bomb("prompts: 190,000 token ids", [_text([5] * 190_000)], TEXT)
    yield Bomb("prompts: 2,048", [_text(["a"] * 2048)], TEXT)
    yield Bomb("tokenize: 1 MB", [json.dumps({"prompt": _words(160_000)}).encode()], "/tokenize")
    yield Bomb("detokenize: 190,000 ids", [json.dumps({"tokens": [7] * 190_000}).encode()], "/detokenize")
    yield Bomb("biases, stops, penalties", [_chat(
        logit_bias={str(i): 1 for i in range(1000)}, stop=["x" * 4000 + str(i) for i in range(4)],
        frequency_penalty=1, repetition_penalty=1.3, max_tokens=200,
    )])  # fmt: skip


def _generations(long: int) -> Iterator[Bomb]:
    """Yield requests for many tokens. `long` is the length of a long prompt."""
    yield Bomb("n = 128", [_chat("Tell a story.", n=128, max_tokens=128)])
    yield Bomb("n = 128, twice", [_chat("Tell a story.", n=128, max_tokens=64)] * 2)
    yield Bomb("a prompt of 8,000 tokens", [_text([*range(1000, 1000 + long)], max_tokens=1)], TEXT)
    yield Bomb(
        "4 prompts of 8,000 tokens", [_text([*range(900 + i, 900 + i + long)], max_tokens=1) for i in range(4)], TEXT
    )
    yield Bomb("log-probabilities of 2,000 tokens", [_chat(logprobs=True, top_logprobs=20, max_tokens=2000, n=4)])
    yield Bomb(
        "log-probabilities of a prompt",
        [_text([*range(1000, 1000 + long)], max_tokens=1, echo=True, logprobs=5)],
        TEXT,
    )


def _connections() -> Iterator[Bomb]:
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n"
    )
    yield Bomb("300 idle connections", [], idle=300)
    yield Bomb("300 half-sent heads", [], idle=300, sent=head[:-2])
    yield Bomb("300 half-sent bodies", [], idle=300, sent=head + b'{"messages": [')
    slow = _chat("Tell a story.", max_tokens=200, stream=True, logprobs=True, top_logprobs=20)
    yield Bomb("8 readers of 1 kB/s", [slow] * 8, slow=True, settle=6.0)
