"""`python -m tests.support.hostile`: hostile requests to a running server, with another user's short ones beside them.

Three parts: bombs, one kind after the other; mutated bodies (`fuzz`); and short mixed requests for a long time
(`soak`), whose answers are compared with those of the same requests alone.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

from tests.support.hostile import fuzz, soak
from tests.support.hostile.bombs import Bomb, bombs
from tests.support.hostile.client import Probe, Server

_PARTS = ("bombs", "fuzz", "soak")
_QUIET = 3.0  # seconds of probes before the first bomb
_IDLE = 3.0  # seconds for which connections idle
_SLOW = 12.0  # seconds for which slow readers read
_PATIENCE = 60.0  # seconds for a bomb's reply


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.support.hostile", description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="base URL of the server (default: %(default)s)")
    parser.add_argument("--parts", default=",".join(_PARTS), help="comma-separated (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only bombs whose names contain this")
    parser.add_argument("--bodies", type=int, default=50_000, help="mutated bodies to send (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=100_000, help="requests of the soak (default: %(default)s)")
    parser.add_argument("--connections", type=int, default=16, help="connections of the soak (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of mutations and requests (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run the parts. Returns 1 if a request was lost, or a reply was a 5xx or another than expected."""
    args = _arguments(arguments)
    parts = args.parts.split(",")
    assert {*parts} <= {*_PARTS}, f"--parts must be some of {', '.join(_PARTS)}"
    server = Server(args.url)
    context = server.context_length()
    results: dict[str, Any] = {}
    say = (lambda line: None) if args.json else (lambda line: print(line, flush=True))
    if "bombs" in parts:
        results["bombs"] = _throw_all(server, context, args.only, say)
    if "fuzz" in parts:
        results["fuzz"] = fuzz.run(server, args.bodies, args.seed, say)
    if "soak" in parts:
        results["soak"] = soak.run(server, args.requests, args.connections, args.seed, say)
    if args.json:
        print(json.dumps(results))
    return int(any(result["bad"] for result in results.values()))


def _throw_all(server: Server, context: int, only: str, say: Any) -> dict[str, Any]:
    with Probe(server) as quiet:
        time.sleep(_QUIET)
    idle = server.memory()
    say(f"{'milliseconds of the probe:':53} {'token':>6} {'p99':>5} {'worst':>6} {'live, worst':>12}  memory / idle")
    rows = [_row("nothing", [], _QUIET, quiet, [1.0, 1.0])]
    _say_row(rows[0], say)
    for bomb in bombs(context):
        if only in bomb.name:
            with ThreadPoolExecutor(1) as pool:
                started = time.perf_counter()
                thrown = pool.submit(_throw, server, bomb)
                time.sleep(bomb.settle)
                with Probe(server) as probe:
                    statuses = thrown.result()
                    seconds = time.perf_counter() - started
                    time.sleep(0.2)
            memory = [now / max(before, 1) for now, before in zip(server.memory(), idle, strict=True)]
            rows.append(_row(bomb.name, statuses, seconds, probe, memory))
            rows[-1]["bad"] |= probe.texts != quiet.texts
            _say_row(rows[-1], say)
    return {"rows": rows, "bad": sum(row["bad"] for row in rows)}


def _throw(server: Server, bomb: Bomb) -> list[int]:
    """Send a bomb and wait for its replies."""
    with ExitStack() as stack, ThreadPoolExecutor(max(len(bomb.bodies), 1)) as pool:
        for _ in range(bomb.idle):
            connection = stack.enter_context(closing(socket.create_connection(server.address, timeout=10)))
            connection.sendall(bomb.sent)
        if bomb.idle:
            time.sleep(_IDLE)
        if bomb.slow:
            return list(pool.map(lambda body: server.read_slowly(bomb.path, body, _SLOW), bomb.bodies))
        return [status for status, _ in pool.map(lambda body: server.post(bomb.path, body, _PATIENCE), bomb.bodies)]


def _row(name: str, statuses: list[int], seconds: float, probe: Probe, memory: list[float]) -> dict[str, Any]:
    lost = sum(status == 0 or status >= 500 for status in statuses) + probe.failures
    return {
        "name": name,
        "statuses": statuses,
        "seconds": seconds,
        "memory": memory,
        "bad": int(lost > 0),
        **probe.figures(),
    }


def _say_row(row: dict[str, Any], say: Any) -> None:
    statuses = ",".join(map(str, sorted(set(row["statuses"])))) or "-"
    token, live = row.get("token", {}), row.get("live", {})
    memory = " ".join(f"{share:.2f}" for share in row["memory"])
    say(
        f"{row['name'][:36]:36} {statuses:>9} {row['seconds']:6.2f} {token.get('median', 0):6.1f} "
        f"{token.get('p99', 0):5.0f} {token.get('worst', 0):6.0f} {live.get('worst', 0):12.0f}  {memory:>13}"
        f"{'  BAD' if row['bad'] else ''}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
