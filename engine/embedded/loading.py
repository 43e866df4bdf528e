"""Processes that make the pools of a training run ahead of it, in order, whatever their number."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

SPARE = 4  # pools made or begun beyond one for each worker
_POLL = 0.1  # seconds between two looks at whether the run is over, while a pool is waited for
_PIPE = 1 << 20  # bytes; most systems allow no more
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


class Pools:
    """What `make` gives for each pool number, made by workers.

    They are forked when this is built, which has to be before the process begins with CUDA, and wait for `begin`. They
    must not compute with torch beyond small things: its threads are not forked with them.
    """

    def __init__(self, make: Callable[[int], Any], workers: int) -> None:
        context = multiprocessing.get_context("fork")
        self._next = context.Value("q", 0)  # number of the pool that is made next
        self._room = context.Semaphore(0)  # for pools that are not taken yet
        self._ready: dict[int, bytes] = {}
        self._receivers: list[Connection] = []
        self._workers = []
        with _quiet_fork():
            for _ in range(workers):
                receiver, sender = context.Pipe(duplex=False)
                _widen(sender)
                worker = context.Process(target=self._work, args=(make, sender), daemon=True)
                worker.start()
                sender.close()  # so that the end of the worker is the end of the pipe
                self._receivers.append(receiver)
                self._workers.append(worker)

    def begin(self, number: int) -> None:
        """Make the pools from `number` on; once."""
        self._next.value = number
        for _ in range(len(self._workers) + SPARE):
            self._room.release()

    def take(self, number: int, over: Callable[[], bool]) -> Any:
        """Pool `number`, which has to be the one after the last taken; None if it is `over` before there is one.

        Raises RuntimeError where a worker failed or died.
        """
        while number not in self._ready:
            if over():
                return None
            self._receive()
        self._room.release()
        return pickle.loads(self._ready.pop(number))

    def close(self) -> None:
        """End the workers, whatever they are at."""
        for worker in self._workers:
            worker.kill()
        for worker, receiver in zip(self._workers, self._receivers, strict=True):
            worker.join()
            receiver.close()
        self._workers, self._receivers = [], []

    def _receive(self) -> None:
        for receiver in wait(self._receivers, _POLL):
            assert isinstance(receiver, Connection)
            try:
                number, failure = receiver.recv()
                if not failure:
                    self._ready[number] = receiver.recv_bytes()
            except (EOFError, OSError):
                worker = self._workers[self._receivers.index(receiver)]
                worker.join(1.0)
                raise RuntimeError(f"a worker that makes batches died, exit code {worker.exitcode}") from None
            if failure:
                raise RuntimeError(f"pool {number} could not be made\n{failure}")

    def _work(self, make: Callable[[int], Any], sender: Connection) -> None:
        _leave_signals_to_the_parent()
        torch.set_num_threads(1)
        while True:
            self._room.acquire()
            with self._next.get_lock():
                number = self._next.value
                self._next.value += 1
            try:
                made = pickle.dumps(make(number), protocol=5)
            except Exception:
                sender.send((number, traceback.format_exc()))
                return
            sender.send((number, ""))
            sender.send_bytes(made)


def _widen(sender: Connection) -> None:
    """Where it can be done: a pool then crosses the pipe in a few pieces instead of hundreds."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(sender.fileno(), fcntl.F_SETPIPE_SZ, _PIPE)


def _leave_signals_to_the_parent() -> None:
    """Ctrl-C reaches all processes of a terminal; the parent ends its workers when it has ended its step, and the
    system where it does not come to that."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


@contextlib.contextmanager
def _quiet_fork() -> Iterator[None]:
    """No warnings of what is avoided: workers use neither torch's threads nor those of the tokenizer."""
    name = "TOKENIZERS_PARALLELISM"
    before = os.environ.get(name)
    os.environ[name] = "false"
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before
