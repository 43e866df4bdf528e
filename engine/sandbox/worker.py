"""The processes that meet a stranger's program first: `python -m engine.sandbox.worker FD`.

A grammar or a chat template can hang, crash or exhaust its memory. This process makes once what all children need, and
runs no such program. For every socket that it receives it forks a child, which does. The death of a child ends nobody
else, and a child ends when its socket is closed.

The module of a task has two functions: `prepare(payload)` returns what children need, and `serve(frames, prepared)`
answers the frames that a child receives. A child sends its process id first.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import pickle
import resource
import signal
import socket
import struct
import sys
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from engine.sandbox.frames import Frames

_PR_SET_PDEATHSIG = 1


def main(descriptor: int) -> int:
    """Prepare the task, then fork a child for each socket that arrives. Ends when the other process is gone."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system then removes children that have ended
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy must not start threads in a process that forks
    with socket.socket(fileno=descriptor) as host:
        return _fork_children(host)


def _fork_children(host: socket.socket) -> int:
    frames = Frames(host)
    try:
        name, payload, memory = pickle.loads(frames.receive())
    except (EOFError, OSError):
        return 1
    try:
        task = import_module(name)
        prepared = task.prepare(payload)
    except Exception as error:
        frames.send(f"{type(error).__name__}: {error}".encode())
        return 1
    del payload
    frames.send(b"")
    while True:
        try:
            _, descriptors, _, _ = socket.recv_fds(host, 1, 1)
        except OSError:
            return 0
        if not descriptors:
            return 0
        parent = os.getpid()
        with suppress(OSError):  # if there are no more processes, the closed socket says so
            if os.fork() == 0:
                host.close()
                _child(parent, Frames(socket.socket(fileno=descriptors[0])), task, prepared, memory)
        os.close(descriptors[0])


def _child(parent: int, frames: Frames, task: ModuleType, prepared: object, memory: int) -> NoReturn:
    """Run programs until the socket is closed. Never returns."""
    code = 1
    try:
        _end_with(parent)
        _silence()
        _limit(memory)
        frames.send(struct.pack("<I", os.getpid()))
        task.serve(frames, prepared)
        code = 0
    except (EOFError, OSError):
        code = 0  # the host has closed the socket
    finally:
        os._exit(code)  # prints no traceback: a failed program is no failure of the server


def _end_with(parent: int) -> None:
    """Have the system kill this process when its parent ends, in the middle of whatever it computes."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise EOFError


def _silence() -> None:
    """Panics of libraries and reports of crashes are expected here. The host says which program failed."""
    faulthandler.disable()
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)


def _limit(memory: int) -> None:
    """Allow this many bytes beside those that the process has."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError), open("/proc/self/statm", encoding="ascii") as statm:
        pages = int(statm.read().split()[0])
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
