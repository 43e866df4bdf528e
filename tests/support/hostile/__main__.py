"""`python -m tests.support.hostile`: hostile requests to a running server, with another user's short ones beside them.

Three parts: bombs, one kind after the other; mutated bodies (`fuzz`); and short mixed requests for a long time
(`soak`), whose answers are compared with those of the same requests alone.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

from tests.support.hostile import fuzz, soak
from tests.support.hostile.bombs import Bomb, bombs
from tests.support.hostile.client import Probe, Server

_CONNECTIONS = 16  # of the soak
_QUIET = 3.0  # seconds of probes before the first bomb
_IDLE = 3.0  # seconds for which connections idle
_SLOW = 12.0  # seconds for which slow readers read
_PATIENCE = 60.0  # seconds for a bomb's reply


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.support.hostile", description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="base URL of the server (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only bombs whose names contain this")
    parser.add_argument("--bodies", type=int, default=50_000, help="mutated bodies to send (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=100_000, help="requests of the soak (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of mutations and requests (default: %(default)s)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run the parts. Returns 1 if a request was lost, or a reply was a 5xx or another than expected."""
    args = _arguments(arguments)
    server = Server(args.url)
    bad = _throw_all(server, server.context_length(), args.only)
    bad += fuzz.run(server, args.bodies, args.seed)
    bad += soak.run(server, args.requests, _CONNECTIONS, args.seed)
    return int(bad > 0)


def _throw_all(server: Server, context: int, only: str) -> int:
    """Throw the bombs one after the other and print a row for each. Returns the number of bad rows."""
    with Probe(server) as quiet:
        time.sleep(_QUIET)
    idle = server.memory()
    print(f"{'milliseconds of the probe:':53} {'token':>6} {'p99':>5} {'worst':>6} {'live, worst':>12}  memory / idle")
    bad = 0
    bad += _print_row("nothing", [], _QUIET, quiet, idle, idle, quiet.failures > 0)
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
            lost = probe.failures > 0 or any(status == 0 or status >= 500 for status in statuses)
            differs = probe.texts != quiet.texts
            bad += _print_row(bomb.name, statuses, seconds, probe, server.memory(), idle, lost or differs)
    return bad


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


def _print_row(
    name: str, statuses: list[int], seconds: float, probe: Probe, memory: list[float], idle: list[float], bad: bool
) -> bool:
    shares = " ".join(f"{now / max(before, 1):.2f}" for now, before in zip(memory, idle, strict=True))
    token, p99, worst = probe.milliseconds(probe.tokens)
    *_, live = probe.milliseconds(probe.lives)
    print(
        f"{name[:36]:36} {','.join(map(str, sorted(set(statuses)))) or '-':>9} {seconds:6.2f} {token:6.1f} "
        f"{p99:5.0f} {worst:6.0f} {live:12.0f}  {shares:>13}{'  BAD' if bad else ''}",
        flush=True,
    )
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
