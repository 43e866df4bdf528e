"""The engine's process: `python -m engine.host.child FD`.

It receives `StartEngine` through the socket FD, answers with `StartReply`, and then runs rounds. When the parent goes
away, the socket says so and the child ends.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from engine import messages
from engine.config.engine import EngineConfig
from engine.core.loop import run_rounds
from engine.errors import EngineDeadError, KnapServeError
from engine.host.channel import Channel
from engine.logs import configure_logging
from engine.types import RoundReport

if TYPE_CHECKING:
    from engine.core.engine import EngineCore
    from engine.core.rounds import StepRunner
    from engine.runtime.runner import Runner

    WrapRunner = Callable[[Runner], StepRunner]

log = logging.getLogger("knapserve.engine")


class _SocketPort:
    """`engine.core.loop.LoopPort` at the child's end of the socket. A parent that is gone reads as `Shutdown`."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._poll = select.poll()
        self._poll.register(channel.socket, select.POLLIN)
        self._parent_gone = False

    def take(self) -> list[messages.EngineMessage]:
        taken: list[messages.EngineMessage] = []
        while not self._parent_gone and self._poll.poll(0):
            try:
                batches: list[list[messages.EngineMessage]] = self._channel.receive()
            except (EOFError, OSError):
                self._parent_gone = True
            else:
                taken += [message for batch in batches for message in batch]
        return [*taken, messages.Shutdown()] if self._parent_gone else taken

    def wait(self, timeout: float) -> None:
        self._poll.poll(1000 * timeout)

    def deliver(self, report: RoundReport) -> None:
        self._send(report)

    def beat(self) -> None:
        self._send(messages.Heartbeat())

    def _send(self, message: messages.LoopMessage) -> None:
        try:
            self._channel.send(message)
        except OSError:
            self._parent_gone = True


@contextmanager
def _ended_with_parent(channel: Channel) -> Iterator[None]:
    """End the child if its parent goes away while the child loads a model and cannot look at its socket."""
    poll, over = select.poll(), threading.Event()
    poll.register(channel.socket, select.POLLIN)  # the parent sends nothing during the load

    def watch() -> None:
        while not over.is_set():
            if poll.poll(100):
                os._exit(1)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _load(config: EngineConfig, wrap_runner: WrapRunner) -> EngineCore:
    from engine.runtime.build import LoadedModel

    model = LoadedModel(config)
    core = model.core(config, wrap_runner=wrap_runner)
    model.warm_up()
    with suppress(AttributeError, OSError):  # C libraries other than glibc lack it
        ctypes.CDLL(None).malloc_trim(0)  # gives some 30 MB back that loading has freed
    gc.freeze()  # otherwise a collection of all loaded objects would delay a round by 0.1 s
    gc.enable()
    return core


def main(descriptor: int, wrap_runner: WrapRunner = lambda runner: runner) -> int:
    """Load a model and run its rounds. Returns the exit code: 0, 1 (failure) or 2 (the settings are at fault).

    `wrap_runner` is the seam at which tests inject faults.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the parent drains, and then ends the child
    channel = Channel(socket.socket(fileno=descriptor))
    try:
        start: messages.StartEngine = channel.receive_one()
    except (EOFError, OSError):
        return 1  # the parent ended before it named a model
    configure_logging(start.log_level, start.log_format)
    gc.disable()  # loading makes no garbage, and collections would take a fifth of its time
    try:
        with _ended_with_parent(channel):
            core = _load(start.config, wrap_runner)
    except KnapServeError as error:
        channel.send(error)
        return 2
    except Exception as error:
        log.exception("the model cannot be loaded")
        channel.send(EngineDeadError(f"{type(error).__name__}: {error}"))
        return 1
    channel.send(core.info)
    try:
        run_rounds(core, _SocketPort(channel))
    except Exception as error:
        log.exception("the engine loop has failed")
        channel.send(messages.EngineFailed(f"{type(error).__name__}: {error}"))
        return 1
    finally:
        core.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
