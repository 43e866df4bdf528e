"""The engine in a process of its own, so that HTTP work and rounds do not share one interpreter lock.

`EngineLaunch` starts the child (`engine.host.child`) and waits for its model; `EngineProcess` is the running engine.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.clock import Clock, SystemClock
from engine.config.engine import EngineConfig
from engine.errors import EngineDeadError, KnapServeError
from engine.host.channel import Channel, packed
from engine.host.client import EngineClient
from engine.messages import EngineFailed, EngineMessage, Heartbeat, Shutdown, StartEngine, StartReply
from engine.sandbox.host import spawn
from engine.types import EngineInfo, RoundReport

if TYPE_CHECKING:
    from engine.text.tokenizer import Tokenizer

log = logging.getLogger("knapserve.engine")

_STOP_SECONDS = 10.0  # time for a child to end after `Shutdown`
_EXIT_SECONDS = 1.0  # time for a child to end after it has closed its socket


class EngineLaunch:
    """A child process that loads a model. Leaving the context without an engine ends the child."""

    def __init__(
        self,
        config: EngineConfig,
        *,
        log_level: str = "info",
        log_format: str = "text",
        module: str = "engine.host.child",
    ) -> None:
        """Run `module` in the child: tests have others, whose engines have faults."""
        ours, self.child = spawn(module)
        self.channel = Channel(ours)
        self._model = config.model
        self._handed_over = False
        try:
            self.channel.send(StartEngine(config, log_level, log_format))
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> EngineLaunch:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if not self._handed_over:
            self._end()

    def ready(self, meanwhile: Callable[[], object] = lambda: None) -> EngineProcess:
        """Read the tokenizer, call `meanwhile`, and wait for the model. Raises what kept the child from loading it."""
        tokenizer, refusal = None, None
        try:
            tokenizer = open_tokenizer(self._model)
            tokenizer.prepare()
        except KnapServeError as error:
            refusal = error  # the child reads more of the checkpoint, and may have a better message
        meanwhile()
        info = self._start_reply()
        if tokenizer is None:
            raise refusal or AssertionError
        tokenizer.restrict(info.vocab_size)
        self._handed_over = True
        return EngineProcess(self.child, self.channel, SystemClock(), info, tokenizer)

    def _start_reply(self) -> EngineInfo:
        """Wait for the child's answer. Raises what kept it from loading the model."""
        try:
            reply: StartReply = self.channel.receive_one()
        except (EOFError, OSError):
            ended = describe_exit(self.child.wait())
            raise EngineDeadError(f"its process ended while loading the model ({ended})") from None
        if isinstance(reply, KnapServeError):
            raise reply
        return reply

    def _end(self) -> None:
        self.child.kill()
        self.child.wait()
        self.channel.socket.close()


def open_tokenizer(model: str | None) -> Tokenizer:
    """Read a model's tokenizer; None: the default model's. Raises ConfigError, ModelError."""
    from engine.checkpoints import shapes  # these imports take as long as reading the file
    from engine.checkpoints.gguf_file import GgufFile
    from engine.checkpoints.gguf_tokenizer import read_tokenizer
    from engine.checkpoints.hub import SYNTHETIC, resolve
    from engine.text.tokenizer import Tokenizer

    if model is not None and model.startswith(SYNTHETIC):
        return Tokenizer(shapes.tokenizer(shapes.parse(model).spec.vocab))
    path = resolve(model)
    return read_tokenizer(GgufFile(path)) if path.suffix == ".gguf" else Tokenizer.from_directory(path)


def describe_exit(code: int) -> str:
    """Describe a process's return code in words."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    return f"{name}, perhaps for lack of memory" if name == "SIGKILL" else name


class EngineProcess(EngineClient):
    """Runs an engine in a child process. Public methods belong to the event loop's thread."""

    def __init__(
        self, child: subprocess.Popen[bytes], channel: Channel, clock: Clock, info: EngineInfo, tokenizer: Tokenizer
    ) -> None:
        super().__init__(info, tokenizer, clock)
        self._child, self._channel = child, channel
        self._outbox: list[EngineMessage] = []
        self._sent_this_turn = False
        self._unsent = bytearray()
        self._started = self._closed = False
        self._reaper: asyncio.Task[None] | None = None  # the event loop holds tasks weakly

    async def start(self) -> None:
        self._started = True
        asyncio.get_running_loop().add_reader(self._channel.socket.fileno(), self._on_readable)

    @property
    def pid(self) -> int:
        return self._child.pid

    def fail(self, reason: str) -> None:
        super().fail(reason)
        self._child.kill()  # `_on_readable` then sees that its socket has ended

    def _alive(self) -> bool:
        return self._started and self._child.poll() is None

    async def _stop(self) -> None:
        self._send(Shutdown())
        if not self._started:
            self._child.kill()
        await asyncio.to_thread(self._wait_or_kill, _STOP_SECONDS)
        if self._reaper is not None:
            await self._reaper
        self._close()

    def _send(self, message: EngineMessage) -> None:
        """Send the first message of an event loop's turn at once and the others together: choices share a prompt."""
        if self._sent_this_turn:
            self._outbox.append(message)
            return
        self._sent_this_turn = True
        asyncio.get_running_loop().call_soon(self._send_outbox)
        self._write([message])

    def _send_outbox(self) -> None:
        self._sent_this_turn = False
        if self._outbox:
            messages, self._outbox = self._outbox, []
            self._write(messages)

    def _write(self, messages: list[EngineMessage]) -> None:
        """Write messages; bytes for which the socket has no room follow when it has."""
        if self._closed:
            return
        waiting = bool(self._unsent)
        self._unsent += packed(messages)
        if not waiting:
            self._on_writable()
            if self._unsent:
                asyncio.get_running_loop().add_writer(self._channel.socket.fileno(), self._on_writable)

    def _on_writable(self) -> None:
        try:
            del self._unsent[: self._channel.socket.send(self._unsent, socket.MSG_DONTWAIT)]
        except BlockingIOError:
            return
        except OSError:
            log.debug("the engine's process no longer reads")
            self._unsent.clear()
        if not self._unsent:
            asyncio.get_running_loop().remove_writer(self._channel.socket.fileno())

    def _on_readable(self) -> None:
        try:
            messages = self._channel.receive()
        except (EOFError, OSError):
            self._close()
            self._reaper = asyncio.get_running_loop().create_task(self._reap_child())
            return
        except Exception:
            log.exception("a message of the engine's process could not be read")
            self.fail("a message of its process could not be read")
            return
        self._heartbeat = self._clock.now()
        for message in messages:
            self._receive(message)

    def _receive(self, message: Any) -> None:
        if isinstance(message, RoundReport):
            self._receive_report(message)
        elif isinstance(message, EngineFailed):
            self._fail(message.reason)
        else:
            assert isinstance(message, Heartbeat), message

    async def _reap_child(self) -> None:
        """Wait for the end of a child that has closed its socket, while other work goes on."""
        code = self._child.poll()
        if code is None:
            code = await asyncio.to_thread(self._wait_or_kill, _EXIT_SECONDS)
        self._fail(f"its process has ended ({describe_exit(code)})")

    def _wait_or_kill(self, seconds: float) -> int:
        """Return the child's return code; kill a child that takes too long."""
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()

    def _fail(self, reason: str) -> None:
        if self._failure is None and not self._stopping:
            log.error("the engine has failed: %s", reason)
            super()._fail(reason)

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            loop, descriptor = asyncio.get_running_loop(), self._channel.socket.fileno()
            loop.remove_reader(descriptor)
            loop.remove_writer(descriptor)
            self._channel.socket.close()
