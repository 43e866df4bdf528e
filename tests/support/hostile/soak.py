"""Short mixed requests for a long time: none is lost, hangs or differs from the same request alone."""

from __future__ import annotations

import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from tests.support.hostile.bombs import CHAT, TEXT
from tests.support.hostile.client import Server
from tests.support.hostile.fuzz import SEEDS

_CANCELLED = 0.05  # of the requests are streams that are left early


def _said(status: int, reply: bytes) -> Any:
    """Return the status, and what a whole reply says, without ids, times and figures."""
    if status != 200:
        return status
    choices = json.loads(reply)["choices"]
    texts = [choice.get("text") or choice.get("message", {}).get("content") for choice in choices]
    calls = [call["function"] for choice in choices for call in choice.get("message", {}).get("tool_calls") or ()]
    return texts, calls, [choice["finish_reason"] for choice in choices]


def _leave(server: Server, path: str, body: dict[str, Any]) -> bool:
    """Begin to read a stream, and leave."""
    data = json.dumps(body | {"stream": True, "max_tokens": 200}).encode()
    with suppress(OSError), server.posted(path, data) as end:
        return bool(end.recv(200))
    return False


def run(server: Server, count: int, connections: int, seed: int) -> int:
    """Send recorded requests, and compare every answer. Returns how many were lost or another."""
    settings = {"temperature": 0.7, "seed": 7, "n": 2, "max_tokens": 8, "stream": False, "stream_options": None}
    kinds = [(path, body | settings) for path, body in SEEDS if path in (CHAT, TEXT)]
    alone = [_said(*server.post(path, json.dumps(body).encode())) for path, body in kinds]
    memory: list[list[float]] = []

    def send(number: int) -> str:
        if number % max(count // 50, 1) == 0:
            memory.append(server.memory())
        draw = random.Random((seed << 32) + number)
        kind = draw.randrange(len(kinds))
        path, body = kinds[kind]
        if draw.random() < _CANCELLED and isinstance(alone[kind], tuple):
            return "left" if _leave(server, path, body) else "lost"
        same = _said(*server.post(path, json.dumps(body).encode())) == alone[kind]
        return "same" if same else f"different: {body}"

    with ThreadPoolExecutor(connections) as pool:
        outcomes = Counter(pool.map(send, range(count)))
    half = memory[len(memory) // 2]
    grown = " and ".join(f"{now / max(before, 1) - 1:+.1%}" for now, before in zip(memory[-1], half, strict=True))
    print(f"soak: {count} requests of {len(kinds)} kinds at {connections} connections: {dict(outcomes)}")
    print(f"  memory of server and engine over the last half: {grown}")
    return count - outcomes["same"] - outcomes["left"]
