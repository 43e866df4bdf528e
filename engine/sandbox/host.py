"""Our side of the processes that run programs of strangers (`engine.sandbox.worker`)."""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import time
import weakref
from contextlib import suppress

from engine.sandbox.frames import Frames

WALL = 10.0  # a process that waits for a core may take this multiple of its CPU seconds
_POLL = 0.05  # seconds between looks at the time that a process has used
_START_SECONDS = 10.0  # a forked process must answer in this time


def spawn(module: str) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Run a module of this program in a new process, whose argument is the descriptor of a socket.

    Returns the other end of the socket, and the process. Raises OSError.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        # With -P, Python imports no modules from the current directory.
        command = [sys.executable, "-P", "-m", module, str(theirs.fileno())]
        try:
            return ours, subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        except OSError:
            ours.close()
            raise


class Sandbox:
    """A process that is prepared for a task, and forks a child for each program of a stranger."""

    def __init__(self, task: str, payload: object, memory: int) -> None:
        """`task` names a module, as `engine.sandbox.worker` describes; a child may use `memory` bytes.

        Raises RuntimeError if the task cannot be prepared, OSError if there is no process.
        """
        self._end, self._process = spawn("engine.sandbox.worker")
        self.end = weakref.finalize(self, _end, self._end, self._process)
        frames = Frames(self._end)
        try:
            frames.send(pickle.dumps((task, payload, memory), pickle.HIGHEST_PROTOCOL))
            refusal = frames.receive().decode()
        except (EOFError, OSError):
            self.end()
            raise ChildProcessError("it has ended") from None
        if refusal:
            self.end()
            raise RuntimeError(refusal)

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def fork(self, most_bytes: int) -> Child:
        """Return a new child, whose frames have at most `most_bytes`. Raises OSError if there is no process."""
        ours, theirs = socket.socketpair()
        with theirs, suppress(OSError):  # if the sandbox has ended, reading from the child fails
            socket.send_fds(self._end, [b"f"], [theirs.fileno()])
        return Child(ours, most_bytes)


def _end(end: socket.socket, process: subprocess.Popen[bytes]) -> None:
    end.close()
    process.kill()
    process.wait()


class Child:
    """A process that runs one program, and the socket to it."""

    def __init__(self, end: socket.socket, most_bytes: int) -> None:
        """Wait until the process answers. Raises OSError if it does not."""
        self._end, self._frames = end, Frames(end, most_bytes)
        self.end = weakref.finalize(self, end.close)  # the process ends when its socket does
        end.settimeout(_START_SECONDS)
        try:
            self.pid: int = struct.unpack("<I", self._frames.receive())[0]
        except (EOFError, OSError, ValueError, struct.error) as error:
            self.end()
            raise ChildProcessError(str(error) or "it has ended") from None

    @property
    def alive(self) -> bool:
        """Whether a child that owes no answer is still there."""
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        return not poll.poll(0)

    @property
    def cpu_seconds(self) -> float:
        """The CPU time of the process so far; 0 if it has ended."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2)  # Linux numbers the CPU clocks of processes so
        except OSError:
            return 0.0

    def send(self, frame: bytes, seconds: float = _POLL) -> None:
        """Write a frame within `seconds`. Raises OSError if the process is gone or does not read."""
        self._end.settimeout(seconds)
        self._frames.send(frame)

    def receive(self, seconds: float) -> bytes:
        """Wait for a frame that the process computes.

        Raises TimeoutError when it has used `seconds` of CPU time, and kills it; EOFError, OSError or ValueError when
        it is gone or sends an invalid frame.
        """
        self._end.settimeout(_POLL)
        before, started = self.cpu_seconds, time.monotonic()
        while True:
            try:
                return self._frames.receive()
            except TimeoutError:
                if self.cpu_seconds - before > seconds or time.monotonic() - started > WALL * seconds:
                    with suppress(ProcessLookupError):
                        os.kill(self.pid, signal.SIGKILL)
                    raise
