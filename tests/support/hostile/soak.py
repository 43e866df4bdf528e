"""Short mixed requests for a long time: none is lost, hangs or differs from the same request alone."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
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


def _said(choices: list[dict[str, Any]]) -> dict[int, list[str]]:
    """Return text, calls and finish reason of each choice, of a whole reply or of all chunks of a stream."""
    said: dict[int, list[str]] = {}
    for choice in choices:
        part = choice.get("delta") or choice.get("message") or choice
        known = said.setdefault(choice["index"], ["", "", ""])
        known[0] += part.get("content") or part.get("text") or ""
        for call in part.get("tool_calls") or ():
            known[1] += (call["function"].get("name") or "") + (call["function"].get("arguments") or "")
        known[2] += choice["finish_reason"] or ""
    return said


def _content(reply: bytes) -> dict[int, list[str]]:
    """Return what a whole reply says, without ids, times and figures."""
    return _said(json.loads(reply)["choices"])


def _streamed(data: bytes) -> dict[int, list[str]] | None:
    """Return what a stream says in all; None if it has no end."""
    events = [line[6:] for line in data.split(b"\n\n") if line.startswith(b"data: ")]
    if not events or events[-1] != b"[DONE]":
        return None
    chunks = [json.loads(event) for event in events[:-1]]
    return (
        None if any("error" in chunk for chunk in chunks) else _said([c for chunk in chunks for c in chunk["choices"]])
    )


def run(server: Server, count: int, connections: int, seed: int) -> int:
    """Send the requests, and compare every answer. Returns how many were lost or another."""
    (card,) = json.loads(server.get("/v1/models")[1])["data"][:1]
    policies = [name for name in ("knapspec", "none", "lookup", "swift") if name in card["draft_policies"]]
    draw = random.Random(seed)
    kinds = [_kind(number, policies, draw) for number in range(min(_KINDS, count))]
    replies = [server.post(path, json.dumps(body).encode()) for path, body in kinds]
    kinds = [kind for kind, (status, _) in zip(kinds, replies, strict=True) if status == 200]  # some models lack tools
    alone = [_content(reply) for status, reply in replies if status == 200]
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
        else:
            stream = way < 0.5
            status, reply = server.post(path, json.dumps(body | {"stream": stream}).encode())
            outcome = _compare(status, reply, _streamed if stream else _content, alone[kind])
        with lock:
            outcomes[outcome] += 1
            if outcome not in ("same", "left"):
                wrong.append(kind)
            if sum(outcomes.values()) % max(count // 50, 1) == 0:
                memory.append(server.memory())

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(send, range(count)))
    grown = " and ".join(
        f"{now / before - 1:+.1%}" for now, before in zip(memory[-1], memory[len(memory) // 2], strict=True)
    )
    print(f"soak: {count} requests of {len(kinds)} kinds at {connections} connections: {dict(outcomes)}")
    print(f"  memory of server and engine over the last half: {grown}")
    for kind in wrong[:5]:
        print(f"  {kinds[kind]}")
    return len(wrong)


def _compare(status: int, reply: bytes, read: Callable[[bytes], Any], expected: Any) -> str:
    if status != 200:
        return f"status {status}"
    said = read(reply)
    if said is None:
        return "no end"
    return "same" if said == expected else "different"


def _leave(server: Server, path: str, body: dict[str, Any]) -> str:
    """Begin to read a stream, and leave."""
    data = json.dumps(body | {"stream": True, "max_tokens": 200}).encode()
    with suppress(OSError), server.posted(path, data) as end:
        return "left" if end.recv(200) else "lost"
    return "lost"
