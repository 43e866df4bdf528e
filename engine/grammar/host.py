"""The engine's side of the processes that compile and follow grammars (`engine.grammar.following`).

Compiling happens in threads that wait for such a process, so rounds go on meanwhile. Following is a question and an
answer of some 50 µs. A process that takes too long is killed, and the answers that need it fail; nobody else notices.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from hashlib import sha256

from engine.config.grammar import GrammarConfig
from engine.grammar.protocol import MOST_BYTES, WORD, Answer, Operation, Vocabulary
from engine.sandbox.host import Child, Sandbox

log = logging.getLogger("knapserve.engine")

_COMPILING = max(1, (os.cpu_count() or 1) // 4)  # threads of a lane; each one takes a core from the rounds
_QUICK = 0.05  # CPU seconds; slower grammars are compiled again in the patient lane
_KEPT = 16  # most compiled grammars that no answer uses
_QUEUED = 4  # most compilations that wait for the quick lane, so that it has work until the next round
_MOST_SLOW = 1000  # most digests of slow grammars
_MOST = 32  # most compiled grammars; each has a process
_ALLOWANCE = 0.5  # CPU seconds beside those of the steps, for all answers by a grammar
_PER_STEP = 0.005  # CPU seconds a step; usual grammars need less than a tenth
_SEND_SECONDS = 10.0  # most seconds in which a process reads its grammar
_RETRY = 1.0  # seconds until another attempt, if no process could be started


class GrammarError(ValueError):
    """A grammar is invalid or needs more than its budget."""


class _NoProcessError(GrammarError):
    """There was no process to compile the grammar, at a `time`."""

    def __init__(self, reason: object) -> None:
        super().__init__(f"its process cannot be started ({reason})")
        self.time = time.monotonic()


class _SlowError(GrammarError):
    """A grammar takes longer than `_QUICK` to compile."""


def _digest(grammar: str) -> bytes:
    return sha256(grammar.encode()).digest()


class Grammar:
    """A compiled grammar: the process that follows it. All methods belong to the thread of the rounds."""

    def __init__(self, child: Child, step_seconds: float) -> None:
        self._child, self._step_seconds = child, step_seconds
        self._numbers = 0
        self._left = _ALLOWANCE  # remaining CPU seconds
        self.matchers = 0  # number of matchers in use
        self.lost = False  # whether the process is gone
        self.slow = False  # whether the process was ended because a step took too long

    @property
    def pid(self) -> int:
        return self._child.pid

    def begin(self) -> int:
        """Make a matcher at the start of an answer, and return its number."""
        self._numbers += 1
        self.matchers += 1
        self._tell(Operation.BEGIN, self._numbers)
        return self._numbers

    def forget(self, number: int) -> None:
        self.matchers -= 1
        self._tell(Operation.FORGET, number)

    def ask(self, number: int, emitted: int, kept: int, tokens: Sequence[int], *, mask: bool = False) -> Answer | None:
        """Have a matcher consume tokens after `kept` tokens; None when the process is gone or takes too long.

        `emitted`: how many tokens of the answer are emitted. `mask`: also ask which tokens may follow.
        """
        before = self._child.cpu_seconds
        self._tell(Operation.MASK if mask else Operation.MATCH, number, emitted, kept, *tokens)
        if self.lost:
            return None
        allowance = _PER_STEP * max(kept - emitted + len(tokens), 1)  # a search replays a whole answer
        try:
            frame = self._child.receive(self._step_seconds + allowance)
            used = max(self._child.cpu_seconds - before, 0.0)
            self._left = min(self._left + allowance - used, _ALLOWANCE)
            if self._left < 0:
                raise TimeoutError
            return Answer.from_bytes(frame)
        except (EOFError, OSError, ValueError, struct.error) as error:  # a TimeoutError is an OSError
            self.slow = isinstance(error, TimeoutError)
            log.warning(
                "a grammar cannot be followed: %s", "it takes too long" if self.slow else "its process has ended"
            )
            self.end()
            return None

    def end(self) -> None:
        """End the process."""
        self.lost = True
        self._child.end()

    def _tell(self, *words: int) -> None:
        if self.lost:
            return
        try:
            self._child.send(array(WORD, words).tobytes())
        except OSError:
            self.end()


class _Lane:
    """Threads that compile grammars. Few more are taken than can begin at once, so that turns can be taken."""

    def __init__(self, name: str, queued: int = 0) -> None:
        self._most = _COMPILING + queued
        self._threads = ThreadPoolExecutor(_COMPILING, thread_name_prefix=f"knapserve-grammars-{name}")
        self._begun: list[Future[Grammar]] = []
        self.close = partial(self._threads.shutdown, cancel_futures=True)

    def begin(self, compile: Callable[[], Grammar]) -> Future[Grammar] | None:
        self._begun = [future for future in self._begun if not future.done()]
        if len(self._begun) == self._most:
            return None
        self._begun.append(self._threads.submit(compile))
        return self._begun[-1]


class GrammarHost:
    """Compiles the grammars of one model, and keeps those used last. Methods belong to the thread of the rounds.

    A grammar that takes longer than `_QUICK` is given up, and compiled again in the patient lane. So slow grammars do
    not delay quick ones.
    """

    def __init__(self, vocabulary: Callable[[], Vocabulary], config: GrammarConfig) -> None:
        """`vocabulary` is called at the first grammar, in another thread."""
        self._vocabulary, self._config = vocabulary, config
        self._grammars: OrderedDict[str, Future[Grammar]] = OrderedDict()
        self._quick, self._patient = _Lane("quick", _QUEUED), _Lane("patient")
        self._slow: OrderedDict[bytes, None] = OrderedDict()  # digests of the grammars for the patient lane
        self._lock = threading.Lock()  # guards the three fields below
        self._sandbox: Sandbox | None = None
        self._unavailable: str | None = None  # why this model has no grammars
        self._closed = False

    def compiled(self, grammar: str) -> Future[Grammar] | None:
        """Begin to compile a grammar, if nobody has. The future's result is the grammar, or a GrammarError.

        None: others are being compiled, or too many are in use. The order in which callers try again is the order in
        which their grammars are compiled.
        """
        future = self._grammars.pop(grammar, None)
        if future is not None and future.done() and isinstance(future.exception(), _SlowError):
            self._slow[_digest(grammar)] = None
            if len(self._slow) > _MOST_SLOW:
                self._slow.popitem(last=False)
            future = None
        if future is None or _is_stale(future):
            future = self._begin(grammar) if self._make_room() else None
        if future is not None:
            self._grammars[grammar] = future
        return future

    def ready(self, grammar: str) -> bool:
        """Whether `wait` need not wait. If not, the grammar is compiled as soon as possible: ask again."""
        future = self.compiled(grammar)
        return future is not None and future.done() and not isinstance(future.exception(), _SlowError)

    def _begin(self, grammar: str) -> Future[Grammar] | None:
        lane, seconds = self._quick, _QUICK
        if _digest(grammar) in self._slow or self._config.build_seconds <= _QUICK:
            lane, seconds = self._patient, self._config.build_seconds
        return lane.begin(partial(self._compile, grammar, seconds))

    def wait(self, grammar: str) -> Grammar:
        """Return a compiled grammar. Raises GrammarError."""
        while True:
            future = self.compiled(grammar)
            if future is None:
                raise GrammarError("too many other grammars are in use")
            with suppress(_SlowError):
                return future.result()

    def close(self) -> None:
        """End all processes."""
        self._closed = True
        with self._lock:
            if self._sandbox is not None:
                self._sandbox.end()
        for lane in (self._quick, self._patient):
            lane.close()  # threads that wait for a process see that it has ended

    def _make_room(self) -> bool:
        """Forget grammars that no answer needs, those unused longest first. False if too many are needed."""
        idle = [name for name, future in self._grammars.items() if _is_idle(future)]
        for name in idle[: max(len(idle) - _KEPT, len(self._grammars) + 1 - _MOST, 0)]:
            future = self._grammars.pop(name)
            if future.exception() is None:
                future.result().end()
        return len(self._grammars) < _MOST

    def _compile(self, grammar: str, seconds: float) -> Grammar:
        """Compile a grammar in `seconds` of CPU time. Raises GrammarError."""
        child = self._connect()
        try:
            child.send(grammar.encode(), seconds=_SEND_SECONDS)
            refusal = child.receive(seconds).decode()
        except TimeoutError:
            if seconds < self._config.build_seconds:
                child.end()
                raise _SlowError from None
            refusal = f"compiling it takes more than {seconds:g} s"
        except (EOFError, OSError, ValueError):
            refusal = f"compiling it fails, or takes more than {self._config.memory >> 20} MiB of memory"
        if refusal:
            child.end()
            raise GrammarError(refusal)
        return Grammar(child, self._config.step_seconds)

    def _connect(self) -> Child:
        """Return a new process. Raises GrammarError."""
        with self._lock:
            if self._closed or self._unavailable is not None:
                raise GrammarError(self._unavailable or "the server is shutting down")
            try:
                if self._sandbox is None or self._sandbox.ended:
                    payload = self._vocabulary(), self._config.build_seconds
                    self._sandbox = Sandbox("engine.grammar.following", payload, self._config.memory)
            except OSError as error:  # perhaps there is not enough memory
                raise _NoProcessError(error) from None
            except Exception as error:
                self._unavailable = f"structured output is not available with this model ({error})"
                raise GrammarError(self._unavailable) from None
            sandbox = self._sandbox
        try:
            return sandbox.fork(MOST_BYTES)
        except OSError as error:
            raise _NoProcessError(error) from None


def _is_idle(future: Future[Grammar]) -> bool:
    return future.done() and (future.exception() is not None or not future.result().matchers)


def _is_stale(future: Future[Grammar]) -> bool:
    """Whether a grammar has to be compiled again. One that was too slow to follow is refused instead."""
    if not future.done():
        return False
    error = future.exception()
    if error is not None:
        return isinstance(error, _NoProcessError) and time.monotonic() - error.time > _RETRY
    return future.result().lost and not future.result().slow
