"""The engine loop: messages in, rounds while there is work, reports out.

A thread or a process of `engine.host` runs it.
"""

from __future__ import annotations

import logging
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
    reported = (0, 0)  # requests that the clients know of: in the core, and in `compiling`
    failures = 0  # failed rounds in a row
    compiling: list[GenerateRequest] = []  # requests that wait for their grammar
    turns = CompilingTurns()

    def deliver(report: RoundReport) -> None:
        nonlocal reported
        reported = (report.running + report.waiting, len(compiling))
        report.deferred += len(compiling)
        port.deliver(report)

    def attempt(work: Callable[[Deliver], None]) -> None:
        """Run or report a round. If that fails, its requests end; if it fails again and again, the engine does."""
        nonlocal failures
        try:
            work(deliver)
        except Exception:
            report = core.fail_running()
            failures = 0 if core.works() else failures + 1
            if failures == _MOST_FAILURES:
                raise
            log.exception("a round has failed; its requests end")
            deliver(report)

    while True:
        for message in port.take():
            attempt(core.flush)  # finished work does not wait for the message
            if isinstance(message, Shutdown):
                return
            if isinstance(message, GenerateRequest):
                compiling.append(message)
            elif isinstance(message, CancelRequest):
                compiling = [waiting for waiting in compiling if waiting.id != message.request_id]
                core.cancel(message.request_id)
            else:
                core.reset_calibration()
        compiling = turns.without_ready(compiling, lambda message: _added(core, message, deliver))
        if not core.scheduler.idle:
            before = failures
            attempt(core.run_round)
            if failures == before:
                failures = 0
            continue
        attempt(core.flush)
        port.beat()
        if reported != (0, len(compiling)):  # a cancellation emptied the engine, or grammars are being compiled
            deliver(core.idle_report())
        port.wait(_COMPILING_POLL if compiling else _HEARTBEAT)


def _added(core: EngineCore, request: GenerateRequest, deliver: Deliver) -> bool:
    """Queue a request unless it must wait for its grammar. A request that cannot begin fails alone."""
    try:
        if not core.ready(request):
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
