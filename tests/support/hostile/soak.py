"""Short mixed requests for a long time: none is lost, hangs or differs from the same request alone."""

from __future__ import annotations

import json
import random
import socket
import statistics
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any

from tests.support.hostile.bombs import CHAT, TEXT
from tests.support.hostile.client import Server

_KINDS = 400  # different requests; each is sent alone first
_CANCELLED = 0.05  # of the streams are left early
_TOPICS = ("snow", "a river", "trains", "the moon", "bread", "a bridge", "music", "rain")
_SCHEMA = {"type": "object", "properties": {"a": {"enum": ["x", "y", "z"]}, "b": {"type": "boolean"}},
           "required": ["a", "b"], "additionalProperties": False}  # fmt: skip
_TOOL = {"type": "function", "function": {"name": "look", "parameters": _SCHEMA}}


def _kind(number: int, policies: list[str], draw: random.Random) -> tuple[str, dict[str, Any]]:
    topic = f"Say something about {draw.choice(_TOPICS)}, {number}."
    body: dict[str, Any] = {
        "max_tokens": draw.randrange(1, 16),
        "temperature": draw.choice((0, 0, 0.7, 1.0)),
        "seed": number,
        "draft_policy": draw.choice(policies),
        "n": draw.choice((1, 1, 1, 1, 3)),
    }
    if draw.random() < 0.3:
        return TEXT, body | {"prompt": topic, "logprobs": draw.choice((None, 2))}
    body["messages"] = [{"role": "user", "content": topic}]
    shape = draw.random()
    if shape < 0.15:
        body |= {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": _SCHEMA}}}
    elif shape < 0.3:
        body |= {"tools": [_TOOL], "tool_choice": draw.choice(("auto", "required"))}
    elif shape < 0.4:
        body |= {"logprobs": True, "top_logprobs": 2}
    return CHAT, body


def _alone(server: Server, path: str, body: dict[str, Any]) -> Any:
    """Return what the server answers to a request alone; None if the model cannot serve it."""
    status, reply = server.post(path, json.dumps(body).encode())
    return _content(reply) if status == 200 else None


def _content(reply: bytes) -> Any:
    """Return what a whole reply says, without ids, times and figures."""
    choices = json.loads(reply)["choices"]
    return [
        (
            choice.get("text") or (choice.get("message") or {}).get("content"),
            [call["function"] for call in (choice.get("message") or {}).get("tool_calls") or ()],
            choice["finish_reason"],
        )
        for choice in choices
    ]


def _streamed(data: bytes) -> Any:
    """Return what a stream says in all, like `_content`; None if it has no end."""
    events = [line[6:] for line in data.split(b"\n\n") if line.startswith(b"data: ")]
    if not events or events[-1] != b"[DONE]":
        return None
    texts: dict[int, list[Any]] = {}
    for event in events[:-1]:
        chunk = json.loads(event)
        if "error" in chunk:
            return None
        for choice in chunk["choices"]:
            said = texts.setdefault(choice["index"], ["", {}, None])
            delta = choice.get("delta") or {}
            said[0] += choice.get("text") or delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                function = said[1].setdefault(call["index"], {"name": "", "arguments": ""})
                for name, value in call["function"].items():
                    function[name] += value or ""
            said[2] = choice["finish_reason"] or said[2]
    return [(text or None, [*calls.values()], reason) for _, (text, calls, reason) in sorted(texts.items())]


def run(server: Server, count: int, connections: int, seed: int, say: Any) -> dict[str, Any]:
    """Send the requests, and compare every answer."""
    (card,) = json.loads(server.get("/v1/models")[1])["data"][:1]
    policies = [name for name in ("knapspec", "none", "lookup", "swift") if name in card["draft_policies"]]
    draw = random.Random(seed)
    kinds = [_kind(number, policies, draw) for number in range(min(_KINDS, count))]
    alone = [_alone(server, path, body) for path, body in kinds]
    kinds = [kind for kind, said in zip(kinds, alone, strict=True) if said is not None]  # some models have no tools
    alone = [said for said in alone if said is not None]
    outcomes: Counter[str] = Counter()
    wrong: list[int] = []
    memory: list[list[float]] = []
    lock = Lock()

    def send(number: int) -> None:
        choice = random.Random((seed << 32) + number)
        kind = choice.randrange(len(kinds))
        path, body = kinds[kind]
        way = choice.random()
        if way < _CANCELLED:
            outcome = _leave(server, path, body)
        elif way < 0.5:
            status, reply = server.post(path, json.dumps(body | {"stream": True}).encode())
            outcome = _compare(status, _streamed(reply) if status == 200 else None, alone[kind])
        else:
            status, reply = server.post(path, json.dumps(body).encode())
            outcome = _compare(status, _content(reply) if status == 200 else None, alone[kind])
        with lock:
            outcomes[outcome] += 1
            if outcome not in ("same", "left"):
                wrong.append(kind)
            if sum(outcomes.values()) % max(count // 50, 1) == 0:
                memory.append(server.memory())

    started = time.perf_counter()
    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(send, range(count)))
    seconds = time.perf_counter() - started
    half = memory[len(memory) // 2 :]
    growth = [_growth([at[i] for at in half]) for i in range(2)]
    say(
        f"soak: {count} requests of {len(kinds)} kinds at {connections} connections in {seconds:.0f} s: "
        f"{dict(outcomes)}; memory over the last half: server {growth[0]:+.1%}, engine {growth[1]:+.1%}"
    )
    for kind in wrong[:5]:
        say(f"  {kinds[kind]}")
    return {"outcomes": dict(outcomes), "seconds": seconds, "growth": growth, "bad": len(wrong)}


def _compare(status: int, said: Any, expected: Any) -> str:
    if status != 200:
        return f"status {status}"
    if said is None:
        return "no end"
    normal = [(text or None, calls, reason) for text, calls, reason in said]
    return "same" if normal == [(text or None, calls, reason) for text, calls, reason in expected] else "different"


def _leave(server: Server, path: str, body: dict[str, Any]) -> str:
    """Begin to read a stream, and leave."""
    data = json.dumps(body | {"stream": True, "max_tokens": 200}).encode()
    with suppress(OSError), socket.create_connection(server.address, timeout=60) as end:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        end.sendall(head.encode() + data)
        return "left" if end.recv(200) else "lost"
    return "lost"


def _growth(values: list[float]) -> float:
    """Return the growth from the first third to the last, by medians."""
    third = max(len(values) // 3, 1)
    return statistics.median(values[-third:]) / statistics.median(values[:third]) - 1 if values else 0.0
