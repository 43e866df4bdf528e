"""Whose turn it is: equal shares for API keys, and for the requests of each, however many choices they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count

from engine.core.request import Request
from engine.types import GenerateRequest

_GRAMMAR_SECONDS = 0.03  # seconds of each round in which grammars are followed


class Shares:
    """How many choices run for each API key and for each of its requests."""

    def __init__(self, running: Sequence[Request]) -> None:
        self._running = running
        self._keys = Counter(r.owner.key for r in running)
        self._requests = Counter(r.owner for r in running)

    def turn(self, request: Request) -> tuple[int, int, int, bool, float]:
        """Sort key of waiting requests: the lowest is next. Preempted ones precede others of the same owner."""
        owner = request.owner
        began = request.admitted is not None
        return request.priority, self._keys[owner.key], self._requests[owner], not began, request.arrival

    def turn_to_yield(self, request: Request) -> tuple[int, int, int, float]:
        """Sort key of running requests when memory is short: the highest is preempted."""
        owner = request.owner
        return request.priority, self._keys[owner.key], self._requests[owner], request.arrival

    def yielding(self, request: Request) -> Request | None:
        """Return the running choice that must make way for a waiting one, or None.

        It is one of lower priority. Otherwise it belongs to the key, or to the request of the same key, that runs most,
        if that still runs no fewer than the waiting one's afterwards. So nobody makes way in turns.
        """
        lower = [r for r in self._running if r.priority > request.priority]
        if lower:
            return max(lower, key=lambda r: (r.priority, r.arrival))
        key, running = request.owner.key, [r for r in self._running if r.priority == request.priority]
        most = max((r.owner.key for r in running), key=self._keys.__getitem__, default=key)
        if self._keys[most] - self._keys[key] < 2:
            most = key
        rivals = [r for r in reversed(running) if r.owner.key == most]  # the last admitted first
        rival = max(rivals, key=lambda r: self._requests[r.owner], default=None)
        if rival is None or (most == key and self._requests[rival.owner] - self._requests[request.owner] < 2):
            return None
        return rival


class CompilingTurns:
    """The order in which grammars are compiled: of low priority values first, then in turn for each API key."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._served: dict[str, int] = {}  # each API key's last turn: the higher, the later

    def without_ready(
        self, requests: Sequence[GenerateRequest], try_to_add: Callable[[GenerateRequest], bool]
    ) -> list[GenerateRequest]:
        """Try to add requests that wait for their grammar, in turn. Returns those that still wait."""
        left = []
        for request in sorted(requests, key=lambda r: (r.priority, self._served.get(r.owner.key, 0))):
            if not try_to_add(request):
                left.append(request)
            elif request.sampling.grammar is not None:
                self._served[request.owner.key] = next(self._numbers)
        return left


def share_rows(pending: Sequence[int], limits: Sequence[int], spare: int) -> list[int]:
    """Share `spare` rows of a round among prompts in order of admission; return the rows of each.

    `pending`: tokens left of each prompt. `limits`: rows that each would get alone. Half of the round is for the one
    admitted first, the rest is for the shortest: a long prompt delays short ones little, and these never stop it.
    """
    rows = [0] * len(pending)
    left, rest = 1.0, 0.5 if len(pending) > 1 else 1.0  # shares of the round: for all, and for others than the first
    for i in sorted(range(len(pending)), key=pending.__getitem__):
        limit = max(min(limits[i], spare), 1)
        share = left if i == 0 else min(left, rest)
        rows[i] = min(pending[i], spare - sum(rows), int(share * limit))
        left -= rows[i] / limit
        rest = left if i == 0 else rest - rows[i] / limit
    return rows


class GrammarTime:
    """Leaves requests out of a round whose grammars take so long to follow that the others would wait for them."""

    def __init__(self) -> None:
        self._used = 0.0

    def take(self, request: Request) -> bool:
        """Take the time in which a request draws tokens, and return True; or take none, where too little is left."""
        gamma = 0 if request.plan is None else min(request.plan.gamma, most_drafted(request))
        seconds = (gamma + 1) * _step_seconds(request)
        if seconds and self._used and self._used + seconds > _GRAMMAR_SECONDS:
            return False
        self._used += seconds
        return True

    def among(self, decoding: Sequence[Request]) -> list[Request]:
        """Take the time of those that may go on, and return them in the same order: first those served longest ago."""
        served = {r.id for r in sorted(decoding, key=lambda r: r.last_token or 0.0) if self.take(r)}
        return [r for r in decoding if r.id in served]


def most_drafted(request: Request) -> int:
    """Return the most tokens that a request may draft in its room, and in half of the time for grammars."""
    step, most = _step_seconds(request), request.room - 1
    return max(min(most, int(_GRAMMAR_SECONDS / 2 / step) - 1), 0) if step else most


def _step_seconds(request: Request) -> float:
    return 0.0 if request.processor is None else request.processor.step_seconds
