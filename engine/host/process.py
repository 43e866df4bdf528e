"""The engine in a process of its own, so that HTTP work and rounds do not fight for one interpreter lock.

`python -m engine.host.process FD` is the child: it gets its settings through the socket FD, answers with what it
loaded, or with the error that kept it from that, and then runs rounds: messages in, a pickled report a round out. When
the parent goes away the socket says so, and the child ends.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from engine.clock import Clock, SystemClock
from engine.config import EngineConfig
from engine.core.loop import EngineClient, Message, run_rounds
from engine.errors import EngineDeadError, KnapServeError
from engine.logs import configure_logging
from engine.types import EngineInfo, RoundReport

if TYPE_CHECKING:
    from engine.core.engine import EngineCore
    from engine.text.tokenizer import Tokenizer

log = logging.getLogger("knapserve.engine")

_HEADER = struct.Struct("<Q")
_READ = 1 << 18
_LAST_BREATH = 1.0  # seconds


def packed(item: Any) -> bytes:
    """An object on its way through a `Channel`."""
    data = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
    return _HEADER.pack(len(data)) + data


class Channel:
    """Pickled objects over a socket; both ends belong to the same program."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._buffer = bytearray()
        self._early: list[Any] = []

    def send(self, item: Any) -> None:
        self.socket.sendall(packed(item))

    def receive(self) -> list[Any]:
        """What is there, after waiting for some bytes of it. Raises EOFError when the other end is gone."""
        if self._early:
            items, self._early = self._early, []
            return items
        data = self.socket.recv(_READ)
        if not data:
            raise EOFError
        self._buffer += data
        items, at = [], 0
        while len(self._buffer) - at >= _HEADER.size:
            (size,) = _HEADER.unpack_from(self._buffer, at)
            if len(self._buffer) - at - _HEADER.size < size:
                break
            at += _HEADER.size
            items.append(pickle.loads(memoryview(self._buffer)[at : at + size]))
            at += size
        del self._buffer[:at]
        return items

    def one(self) -> Any:
        """The next object; others that came with it stay for `receive`."""
        while not (items := self.receive()):
            pass
        self._early = items[1:]
        return items[0]


class Launch:
    """A child that loads a model, while its parent does something else. Leaving it without an engine ends the child."""

    def __init__(self, config: EngineConfig, *, log_level: str = "info", log_format: str = "text") -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            # -P: modules that happen to lie in the current directory are not ours.
            command = [sys.executable, "-P", "-m", "engine.host.process", str(theirs.fileno())]
            self.child = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        self.channel = Channel(ours)
        self._model = config.model
        self._handed_over = False
        try:
            self.channel.send((config, log_level, log_format))
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Launch:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if not self._handed_over:
            self._end()

    def ready(self, clock: Clock | None = None) -> EngineProcess:
        """Read and prepare the tokenizer, and wait until the model is loaded. Raises what kept it from that."""
        from engine.runtime.vocabulary import (
            open_tokenizer,  # not the child's business, and a quarter of a second's work
        )

        tokenizer, refusal = None, None
        try:
            tokenizer = open_tokenizer(self._model)
            tokenizer.prepare()
        except KnapServeError as error:
            refusal = error  # unless the child, which reads more, finds a better one
        info, max_live = self._answer()
        if tokenizer is None:
            raise refusal or AssertionError
        self._handed_over = True
        return EngineProcess(self, clock or SystemClock(), info, tokenizer, max_live)

    def _answer(self) -> tuple[EngineInfo, int]:
        """The child's. Raises what kept it from loading the model."""
        try:
            answer = self.channel.one()
        except (EOFError, OSError):
            raise EngineDeadError(f"its process ended while loading ({how_it_ended(self.child.wait())})") from None
        if isinstance(answer, str):
            raise EngineDeadError(answer)
        if isinstance(answer, KnapServeError):
            raise answer
        info, max_live = answer
        return info, max_live

    def _end(self) -> None:
        self.child.kill()
        self.child.wait()
        self.channel.socket.close()


def how_it_ended(code: int) -> str:
    """A process's return code in words."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    return f"{name}, perhaps for lack of memory" if name == "SIGKILL" else name


class EngineProcess(EngineClient):
    """Runs an engine in a child process. Public methods belong to the event loop's thread."""

    def __init__(self, launch: Launch, clock: Clock, info: EngineInfo, tokenizer: Tokenizer, max_live: int) -> None:
        super().__init__(info, tokenizer, clock, max_live)
        self._child, self._channel = launch.child, launch.channel
        self._outgoing: list[Message | None] = []
        self._sent = False  # something, in this turn of the event loop
        self._unsent = bytearray()
        self._started = self._ended = False
        self._burial: asyncio.Task[None] | None = None  # kept, for the event loop does not

    async def start(self) -> None:
        self._started = True
        asyncio.get_running_loop().add_reader(self._channel.socket.fileno(), self._readable)

    def _send(self, message: Message | None) -> None:
        """The first of a turn of the event loop at once, all others of it together: choices share a prompt."""
        if self._sent:
            self._outgoing.append(message)
            return
        self._sent = True
        asyncio.get_running_loop().call_soon(self._send_rest)
        self._write([message])

    def _send_rest(self) -> None:
        self._sent = False
        if self._outgoing:
            outgoing, self._outgoing = self._outgoing, []
            self._write(outgoing)

    def _write(self, outgoing: list[Message | None]) -> None:
        """What the socket has no room for until the child's round is over follows then."""
        if self._ended:
            return
        waiting = bool(self._unsent)
        self._unsent += packed(outgoing)
        if not waiting:
            self._writable()
            if self._unsent:
                asyncio.get_running_loop().add_writer(self._channel.socket.fileno(), self._writable)

    def _writable(self) -> None:
        try:
            del self._unsent[: self._channel.socket.send(self._unsent, socket.MSG_DONTWAIT)]
        except BlockingIOError:
            return
        except OSError:
            log.debug("the engine's process no longer listens")
            self._unsent.clear()
        if not self._unsent:
            asyncio.get_running_loop().remove_writer(self._channel.socket.fileno())

    @property
    def pid(self) -> int:
        return self._child.pid

    def _alive(self) -> bool:
        return self._started and self._child.poll() is None

    async def _join(self) -> None:
        self._send(None)
        if not self._started:
            self._child.kill()
        try:
            await asyncio.to_thread(self._child.wait, 10.0)
        except subprocess.TimeoutExpired:
            self._child.kill()
            await asyncio.to_thread(self._child.wait)
        if self._burial is not None:
            await self._burial
        self._close()

    def _readable(self) -> None:
        """Whatever has come is delivered together."""
        try:
            items = self._channel.receive()
        except (EOFError, OSError):
            items = [None]
        for item in items:
            self._heartbeat = self._clock.now()
            if isinstance(item, RoundReport):
                self._last = item
                try:
                    self._deliver(item)
                except Exception:
                    log.exception("a round's report could not be delivered")
            elif isinstance(item, str):
                self._failed(item)
            elif item is None:
                self._close()
                self._burial = asyncio.get_running_loop().create_task(self._bury())

    async def _bury(self) -> None:
        """The child takes a moment to end, in which other things go on."""
        code = self._child.poll()
        if code is None:
            code = await asyncio.to_thread(self._last_breath)
        self._failed(f"its process has ended ({how_it_ended(code)})")

    def _last_breath(self) -> int:
        """The return code of a child that has closed its socket, by force if it takes its time."""
        try:
            return self._child.wait(_LAST_BREATH)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()

    def _failed(self, reason: str) -> None:
        if self._failure is None and not self._stop:
            log.error("the engine has failed: %s", reason)
            self._failure = reason
            self._fail()

    def _close(self) -> None:
        if not self._ended:
            self._ended = True
            loop, descriptor = asyncio.get_running_loop(), self._channel.socket.fileno()
            loop.remove_reader(descriptor)
            loop.remove_writer(descriptor)
            self._channel.socket.close()


class _Child:
    """`engine.core.loop.Outside` at the child's end of the socket."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._poll = select.poll()
        self._poll.register(channel.socket, select.POLLIN)
        self.stopped = False

    def take(self) -> list[Message]:
        taken: list[Message] = []
        while not self.stopped and self._poll.poll(0):
            try:
                items = self._channel.receive()
            except (EOFError, OSError):
                items = [[None]]
            for messages in items:
                taken += [message for message in messages if message is not None]
                self.stopped = self.stopped or None in messages
        return taken

    def wait(self, timeout: float) -> None:
        self._poll.poll(1000 * timeout)

    def deliver(self, report: RoundReport) -> None:
        self._send(report)

    def show_life(self) -> None:
        self._send(True)

    def _send(self, item: RoundReport | bool) -> None:
        try:
            self._channel.send(item)
        except OSError:  # the parent is gone
            self.stopped = True


class _Watch:
    """Ends the child if its parent goes away while it cannot look at its socket: while it loads."""

    def __init__(self, channel: Channel) -> None:
        self._poll = select.poll()
        self._poll.register(channel.socket, select.POLLIN)  # nothing but the end comes in at that time
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            if self._poll.poll(100):
                os._exit(1)


def _load(config: EngineConfig) -> EngineCore:
    from engine.runtime.build import LoadedModel

    model = LoadedModel(config)
    core = model.core(config)
    model.warm_up()
    _trim()
    gc.freeze()  # or a look at all that was loaded, a tenth of a second, falls into some round
    gc.enable()
    return core


def _trim() -> None:
    """Give the system back what loading has freed, some 30 MB, where the C library can."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _main(descriptor: int) -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the parent drains, then says when to end
    channel = Channel(socket.socket(fileno=descriptor))
    try:
        config, *style = channel.one()
    except (EOFError, OSError):
        return 1  # the parent was told to end before it could say what to load
    configure_logging(*style)
    gc.disable()  # nothing of what is loaded is garbage, and to look for some takes a fifth of the time
    try:
        with _Watch(channel):
            core = _load(config)
    except KnapServeError as error:
        channel.send(error)
        return 2
    except Exception as error:
        log.exception("the model cannot be loaded")
        channel.send(f"{type(error).__name__}: {error}")
        return 1
    channel.send((core.info, core.info.max_num_seqs + core.info.max_queued))
    try:
        run_rounds(core, _Child(channel))
    except Exception as error:
        log.exception("the engine loop has failed")
        channel.send(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1])))
