"""Mutated request bodies: none may get a 5xx or end the server."""

from __future__ import annotations

import json
import random
import string
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.hostile.bombs import CHAT, TEXT, schemas
from tests.support.hostile.client import Server

_CONNECTIONS = 8
_PATIENCE = 2.0  # seconds; a body without a limit gets an answer of the whole context, for which nobody waits
_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"enum": ["x", "y"]}}}
_TOOL = {"type": "function", "function": {"name": "f", "description": "Do it", "parameters": _SCHEMA}}
_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 3}'}}
_TAG = {"type": "tag", "begin": "<f>", "content": {"type": "json_schema", "json_schema": _SCHEMA}, "end": ["</f>", "."]}
_TAGS = {"type": "triggered_tags", "triggers": ["<f"], "tags": [_TAG], "at_least_one": True, "excludes": ["a"]}
_LIST = {"type": "tags_with_separator", "tags": [_TAG], "separator": ","}
_FORMS = [{"type": "const_string", "value": "a"}, {"type": "regex", "pattern": "[a-z]+"}, _LIST, _TAGS]
_ITEMS: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}], "content": None},
    {"type": "function_call", "call_id": "c1", "name": "f", "namespace": "n", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "3"}]},
    {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "3"},
]
_BLOCKS: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm", "signature": "s"},
                                      {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 3}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "image"}]}]},
]  # fmt: skip
_NAMED = {"name": "f", "description": "Do it", "input_schema": _SCHEMA}
_FUNCTION = {"type": "function", "name": "f", "parameters": _SCHEMA, "strict": True}
_CUSTOM = {"type": "custom", "name": "g", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"}}
_SEEDS: list[tuple[str, dict[str, Any]]] = [
    (CHAT, {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "temperature": 0.5, "top_p": 0.9}),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "max_tokens": 2, "n": 2}),
    (CHAT, {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "tools": [_TOOL], "tool_choice": "auto"}),
    (CHAT, {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "response_format":
            {"type": "json_schema", "json_schema": {"name": "a", "schema": _SCHEMA}}}),
    (CHAT, {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "stream": True,
            "stream_options": {"include_usage": True}, "logprobs": True, "top_logprobs": 3, "seed": 4}),
    (TEXT, {"prompt": "Once", "max_tokens": 2, "stop": ["a", "b"], "logit_bias": {"5": 1}, "echo": True,
            "logprobs": 2}),
    (TEXT, {"prompt": [[1, 2], [3]], "max_tokens": 2, "priority": 0, "cache_salt": "x", "draft_policy": "none"}),
    ("/tokenize", {"messages": [{"role": "user", "content": "Hi"}], "return_token_strs": True}),
    ("/detokenize", {"tokens": [1, 2, 3]}),
    (CHAT, {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [_CALL]},
                         {"role": "tool", "tool_call_id": "c1", "content": "3"}], "tools": [_TOOL], "max_tokens": 2,
            "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
                {"type": "function", "function": {"name": "f"}}]}}}),
    (TEXT, {"prompt": "a", "max_tokens": 4, "structured_outputs": {"structural_tag": {"format": {
            "type": "sequence", "elements": [_TAG, {"type": "or", "elements": _FORMS}]}}}}),
    (CHAT, {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "allowed_token_ids": [5, 6, 7],
            "bad_words": ["a"], "min_tokens": 1, "thinking_token_budget": 3, "guided_regex": "[a-z]+"}),
    ("/v1/chat/completions/render", {"messages": [{"role": "user", "content": "Hi"}], "tools": [_TOOL]}),
    ("/v1/responses", {"input": "Hi", "max_output_tokens": 4, "text": {"format": {
            "type": "json_schema", "name": "a", "schema": _SCHEMA}}, "reasoning": {"effort": "low"}, "stream": True}),
    ("/v1/responses", {"input": _ITEMS, "max_output_tokens": 2, "instructions": "Be brief.", "tools": [
            _FUNCTION, _CUSTOM, {"type": "namespace", "name": "n", "tools": [_FUNCTION]}],
            "tool_choice": {"type": "function", "name": "f"}, "include": ["message.output_text.logprobs"]}),
    ("/v1/messages", {"messages": _BLOCKS, "max_tokens": 2, "system": [{"type": "text", "text": "Be brief."}],
            "tools": [_NAMED], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}, "stream": True,
            "stop_sequences": ["."], "thinking": {"type": "enabled", "budget_tokens": 1024}}),
    ("/v1/messages/count_tokens", {"messages": _BLOCKS, "tools": [_NAMED]}),
]  # fmt: skip
_ODD: list[Any] = [None, True, -1, 0, 1, 2**31, 2**63, -(2**63), 2**64, 1e308, 1e-320, 0.5, "", "x",
                   "é\u0000\ud7ff\U0001f98a", [], {}, [[]], [None], {"": ""}, "<|im_end|>", "a" * 3000,
                   [0] * 300]  # fmt: skip


def _mutated(value: Any, draw: random.Random) -> Any:
    """Change one place of a JSON value."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        key = draw.choice([*value])
        action = draw.random()
        if action < 0.1:
            return {name: inner for name, inner in value.items() if name != key}
        if action < 0.2:
            return value | {draw.choice([*value, "extra", "", "é"]) + draw.choice(["", "_"]): draw.choice(_ODD)}
        return value | {key: _mutated(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.7:
        at = draw.randrange(len(value))
        return [*value[:at], _mutated(value[at], draw), *value[at + 1 :], *(value if draw.random() < 0.1 else ())]
    if isinstance(value, str) and draw.random() < 0.4:
        at = draw.randrange(len(value) + 1)
        return value[:at] + draw.choice([*string.printable, "\u2028", "<|im_start|>", '"', "\\"]) + value[at:]
    return draw.choice(_ODD)


def body(number: int, seed: int) -> tuple[str, bytes]:
    """Return the path and the body of a mutated request; the same number gives the same."""
    draw = random.Random((seed << 32) + number)
    path, value = draw.choice(_SEEDS)
    if draw.random() < 0.15 and "response_format" in value:
        schema = draw.choice([*schemas().values()])
        value = value | {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        value = _mutated(value, draw)
    data = json.dumps(value, ensure_ascii=draw.random() < 0.5).encode(errors="replace")
    for _ in range(draw.choice((0, 0, 0, 1, 3))):  # damage the text itself
        at = draw.randrange(len(data) + 1)
        data = data[:at] + bytes([draw.randrange(256)] * draw.choice((0, 1, 2))) + data[at + draw.choice((0, 1)) :]
    return path, data


def run(server: Server, count: int, seed: int) -> int:
    """Send mutated bodies on several connections, and count the statuses. Returns how many replies were bad."""
    statuses: Counter[int] = Counter()
    worst: list[tuple[int, int]] = []  # number and status of bodies with a bad reply
    started = time.perf_counter()

    def send(number: int) -> None:
        path, data = body(number, seed)
        status, _ = server.post(path, data, _PATIENCE)
        statuses[status] += 1
        if status == 0 or status >= 500:
            worst.append((number, status))

    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        list(pool.map(send, range(count)))
    seconds = time.perf_counter() - started
    alive = server.get("/health")[0] == 200
    print(f"fuzz: {count} bodies in {seconds:.0f} s: {dict(sorted(statuses.items()))}; healthy afterwards: {alive}")
    for number, status in worst[:10]:
        print(f"  body {number} of seed {seed}: {status} {body(number, seed)[1][:300]!r}")
    return len(worst) + (not alive)
