"""Mutated request bodies: none may get a 5xx or end the server."""

from __future__ import annotations

import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support import REPOSITORY
from tests.support.hostile.bombs import CHAT, TEXT, schemas
from tests.support.hostile.client import Server
from tests.support.mutation import damaged, mutated

_CONNECTIONS = 8
_PATIENCE = 2.0  # seconds; a body without a limit gets an answer of the whole context, for which nobody waits
# Recorded requests to each endpoint, and how the length of their answers is limited.
_LIMITS = {CHAT: "max_tokens", TEXT: "max_tokens", "/v1/messages": "max_tokens", "/v1/responses": "max_output_tokens"}
_RECORDED = [json.loads(line) for line in (REPOSITORY / "tests" / "corpus" / "requests.jsonl").read_text().splitlines()]
SEEDS: list[tuple[str, dict[str, Any]]] = [
    (request["path"], request["body"] | ({_LIMITS[request["path"]]: 2} if request["path"] in _LIMITS else {}))
    for request in _RECORDED
    if isinstance(request.get("body"), dict)
]


def body(number: int, seed: int) -> tuple[str, bytes]:
    """Return the path and the body of a mutated request; the same number gives the same."""
    draw = random.Random((seed << 32) + number)
    path, value = draw.choice(SEEDS)
    if draw.random() < 0.15 and "response_format" in value:
        schema = draw.choice([*schemas().values()])
        value = value | {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        value = mutated(value, draw)
    data = json.dumps(value, ensure_ascii=draw.random() < 0.5).encode(errors="replace")
    return path, damaged(data, draw) if draw.random() < 0.4 else data


def run(server: Server, count: int, seed: int) -> int:
    """Send mutated bodies on several connections, and count the statuses. Returns how many replies were bad."""
    statuses: Counter[int] = Counter()
    worst: list[tuple[int, int]] = []  # number and status of bodies with a bad reply

    def send(number: int) -> None:
        path, data = body(number, seed)
        status, _ = server.post(path, data, _PATIENCE)
        statuses[status] += 1
        if status == 0 or status >= 500:
            worst.append((number, status))

    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        list(pool.map(send, range(count)))
    alive = server.get("/health")[0] == 200
    print(f"fuzz: {count} bodies: {dict(sorted(statuses.items()))}; healthy afterwards: {alive}")
    for number, status in worst[:10]:
        print(f"  body {number} of seed {seed}: {status} {body(number, seed)[1][:300]!r}")
    return len(worst) + (not alive)
