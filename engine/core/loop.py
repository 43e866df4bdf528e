"""The engine loop: messages in, rounds while there is work, reports out.

A thread or a process of `engine.host` runs it.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

from engine.core.turns import CompilingTurns
from engine.errors import RequestError, RequestFailedError
from engine.messages import CancelRequest, EngineMessage, Shutdown
from engine.types import GenerateRequest, RequestFailure, RoundReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.core.engine import Deliver, EngineCore

log = logging.getLogger("knapserve.engine")

_HEARTBEAT = 1.0  # seconds between signs of life of an idle loop
_MOST_FAILURES = 3  # rounds in a row that may fail
_COMPILING_POLL = 0.005  # seconds between looks at grammars that are being compiled


class LoopPort(Protocol):
    """The engine loop's connection to its clients."""

    def take(self) -> list[EngineMessage]:
        """All messages that have arrived, without waiting."""

    def wait(self, timeout: float) -> None:
        """Sleep until a message arrives, `timeout` seconds at most."""

    def deliver(self, report: RoundReport) -> None:
        """Send the report of a round to the clients."""

    def beat(self) -> None:
        """Show that the idle loop is alive."""


def run_rounds(core: EngineCore, port: LoopPort) -> None:
    """Run rounds while there is work, until `Shutdown` arrives.

    A round that fails ends its requests. Raises what it raises if several fail in a row, and a round without requests
    fails after each of them.
    """
    _Loop(core, port).run()


class _Loop:
    """The loop of one core, and what it remembers between rounds."""

    def __init__(self, core: EngineCore, port: LoopPort) -> None:
        self._core, self._port = core, port
        self._compiling: list[GenerateRequest] = []  # requests that wait for their grammar
        self._turns = CompilingTurns()
        self._reported = (0, 0)  # requests that the clients know of: in the core, and in `_compiling`
        self._failures = 0  # failed rounds in a row

    def run(self) -> None:
        """Take messages and run rounds until `Shutdown` arrives."""
        core, port = self._core, self._port
        while True:
            for message in port.take():
                self._attempt(core.flush)  # finished work does not wait for the message
                if isinstance(message, Shutdown):
                    return
                self._read(message)
            added = partial(_added, core, deliver=self._deliver)
            self._compiling = self._turns.without_ready(self._compiling, added)
            if not core.scheduler.idle:
                if self._attempt(core.run_round):
                    self._failures = 0
                continue
            self._attempt(core.flush)
            port.beat()
            waiting = len(self._compiling)
            if self._reported != (0, waiting):  # a cancellation emptied the engine, or grammars are being compiled
                self._deliver(core.idle_report())
            port.wait(_COMPILING_POLL if waiting else _HEARTBEAT)

    def _read(self, message: EngineMessage) -> None:
        if isinstance(message, GenerateRequest):
            self._compiling.append(message)
        elif isinstance(message, CancelRequest):
            self._compiling = [waiting for waiting in self._compiling if waiting.id != message.request_id]
            self._core.cancel(message.request_id)
        else:
            self._core.costs.reset()

    def _deliver(self, report: RoundReport) -> None:
        self._reported = (report.running + report.waiting, len(self._compiling))
        report.deferred += len(self._compiling)
        self._port.deliver(report)

    def _attempt(self, work: Callable[[Deliver], None]) -> bool:
        """Run or report a round; return whether it succeeded.

        If it fails, its requests end; if rounds fail again and again, the engine does.
        """
        try:
            work(self._deliver)
            return True
        except Exception:
            report = self._core.fail_running()
            self._failures = 0 if self._core.works() else self._failures + 1
            if self._failures == _MOST_FAILURES:
                raise
            log.exception("a round has failed; its requests end")
            self._deliver(report)
            return False


def _added(core: EngineCore, request: GenerateRequest, deliver: Deliver) -> bool:
    """Queue a request unless it must wait for its grammar. A request that cannot begin fails alone."""
    try:
        if not core.processors.ready(request.sampling):
            return False
        core.add(request)
        return True
    except (RequestError, RequestFailedError) as error:
        failure = RequestFailure(request.id, error)
    except Exception:
        log.exception("request %s could not be started", request.id)
        failure = RequestFailure(request.id, RequestFailedError("The request could not be started."))
    deliver(core.idle_report(failure))
    return True
